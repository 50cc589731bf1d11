# shellcheck shell=bash
# Not a kind: Debezium Server, which reads our log in test/cdc and is compared with Postrider in
# test/proof/peers. "dev/services install debezium" fetches it. It needs Java 21 or newer.

DEBEZIUM_VERSION=3.6.0.Final

debezium_program() { echo "$BASE/programs/debezium-server-$DEBEZIUM_VERSION"; }

fetch_debezium() {
  local target name=debezium-server-dist
  target=$(debezium_program)
  if [[ -d $target ]]; then return; fi
  java_install
  say "fetching Debezium Server $DEBEZIUM_VERSION (782 MB)"
  rm -rf "$target.part"
  mkdir -p "$target.part"
  maven copy "-Dartifact=io.debezium:$name:$DEBEZIUM_VERSION:tar.gz" "-DoutputDirectory=$target.part"
  tar -xzf "$target.part/$name-$DEBEZIUM_VERSION.tar.gz" -C "$target.part" --strip-components=1 --no-same-owner
  rm -f "$target.part/$name-$DEBEZIUM_VERSION.tar.gz"
  mv "$target.part" "$target"
}
