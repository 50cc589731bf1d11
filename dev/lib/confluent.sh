# shellcheck shell=bash
# Not a kind: Confluent's own serializers for Python. The tests in adapter/schema use them to check
# that each side reads what the other writes. "dev/services install confluent" creates a virtual
# environment with them.

CONFLUENT_VERSION=2.13.0

confluent_program() { echo "$BASE/programs/confluent-python-$CONFLUENT_VERSION"; }

# A virtual environment contains its own absolute path, so it must be created in its final location.
# A marker file says that it is complete.
fetch_confluent() {
  local target
  target=$(confluent_program)
  if [[ -e $target/complete ]]; then return; fi
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  say "fetching Confluent's client for Python $CONFLUENT_VERSION"
  rm -rf "$target"
  python3 -m venv "$target" >&2 || die "could not make a virtual environment for Python"
  "$target/bin/pip" install --quiet --disable-pip-version-check \
    "confluent-kafka[avro,protobuf,schemaregistry]==$CONFLUENT_VERSION" >&2 || die "could not install Confluent's client for Python"
  touch "$target/complete"
}
