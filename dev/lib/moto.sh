# shellcheck shell=bash
# An emulator of Amazon SQS and SNS: moto, from PyPI, in server mode. It keeps queues and messages
# in memory only.

moto_names() { echo moto; }
moto_port() { echo 25391; }

MOTO_VERSION=5.2.5
MOTO_FLASK_VERSION=3.1.3 # needed by the server, with flask-cors; "moto[server]" brings 180 MB more
MOTO_CORS_VERSION=6.0.5

moto_program() { echo "$BASE/programs/moto-$MOTO_VERSION"; }

# A virtual environment contains its own absolute path, so it must be created in its final location.
# A marker file says that it is complete. Every user can run the system's Python.
moto_install() {
  local target
  target=$(moto_program)
  if [[ -e $target/complete ]]; then return; fi
  if ! /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null; then apt_install python3-venv; fi
  say "fetching moto $MOTO_VERSION"
  rm -rf "$target"
  /usr/bin/python3 -m venv "$target" >&2 || die "could not make a virtual environment for Python"
  "$target/bin/pip" install --quiet --disable-pip-version-check "moto==$MOTO_VERSION" "flask==$MOTO_FLASK_VERSION" "flask-cors==$MOTO_CORS_VERSION" >&2 ||
    die "could not install moto"
  chmod -R a+rX "$target"
  touch "$target/complete"
}

moto_init() { :; }

moto_start() { daemon_launch "$(moto_program)/bin/moto_server" -H 127.0.0.1 -p "$PORT"; }

moto_ready() { [[ -n $(moto_pid) ]] && http_ok "$PORT" /moto-api/data.json; }
moto_pid() { daemon_pid; }
moto_stop() { daemon_stop 10; }
moto_env() { export_line "$(env_name MOTO)" "http://127.0.0.1:$PORT"; }
