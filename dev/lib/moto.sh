# shellcheck shell=bash
# Amazon's SQS and SNS: moto, from PyPI, in server mode. It keeps queues and messages in memory, as long as it runs.

moto_names() { echo moto; }
moto_port() { echo 25391; }

MOTO_VERSION=5.2.5
MOTO_FLASK_VERSION=3.1.3 # which a server of it needs, with flask-cors; "moto[server]" brings 180 MB more
MOTO_CORS_VERSION=6.0.5

moto_program() { echo "$BASE/programs/moto-$MOTO_VERSION"; }

# A virtual environment holds its own path, so it is made where it stays; the file says that it is complete. The system's Python is the
# one that every user can run.
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
