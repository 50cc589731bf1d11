# shellcheck shell=bash
# NATS with JetStream, built from the version in dev/tools/nats.

nats_names() { echo nats; }
nats_port() { echo 25320; }

nats_program() {
  local version
  version=$(sed -n 's,.*github.com/nats-io/nats-server/v2 \(v[^ ]*\).*,\1,p' "$ROOT/dev/tools/nats/go.mod")
  echo "$BASE/programs/nats-server-$version"
}

nats_install() {
  local program
  program=$(nats_program)
  if [[ -x $program ]]; then return; fi
  command -v go >/dev/null || die "go is needed to build nats-server"
  say "building ${program##*/}"
  mkdir -p "$BASE/programs"
  GOWORK=off go -C "$ROOT/dev/tools/nats" build -o "$program.part" github.com/nats-io/nats-server/v2 >&2 ||
    die "could not build nats-server"
  mv "$program.part" "$program"
}

nats_init() { nats_config "${INSTANCE:-postrider}" | as_server tee "$DIR/nats.conf" >/dev/null; }

# nats_config SERVER
nats_config() {
  cat <<EOT
server_name: "$1"
listen: "127.0.0.1:$PORT"
jetstream {
  store_dir: "$DIR/data"
  max_memory_store: 1GB
  max_file_store: 20GB
}
# Who says nothing may do everything; the user restricted is for tests of what is forbidden.
no_auth_user: "postrider"
authorization {
  users: [
    {user: "postrider", password: "postrider"}
    {user: "restricted", password: "restricted", permissions: {publish: {deny: ["forbidden.>"]}}}
  ]
}
EOT
}

nats_start() { daemon_launch "$(nats_program)" -c "$DIR/nats.conf"; }

# It greets every client by itself; JetStream is in the greeting once it has read its files.
nats_ready() { [[ -n $(nats_pid) ]] && answers "$PORT" '' 'INFO *"jetstream":true*'; }
nats_pid() { daemon_pid; }
nats_stop() { daemon_stop 30; }
nats_env() {
  export_line "$(env_name NATS)" "nats://127.0.0.1:$PORT"
  broker_url nats "nats://127.0.0.1:$PORT"
}
