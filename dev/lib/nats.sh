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

nats_init() {
  if is_secure; then
    ca_make
    nats_secure_config secure | as_server tee "$DIR/nats.conf" >/dev/null
  else
    nats_config "${INSTANCE:-postrider}" | as_server tee "$DIR/nats.conf" >/dev/null
  fi
}

# The public half of the nkey whose seed is in the tests.
NATS_NKEY=UBZDTUG2YLU3KNOJOUZVNN4OKCEGVBRGGFNZX6TYACHOIDZRLB4LSZYB

# nats_secure_config SERVER requires TLS and a login for everything. Clients with postrider's
# certificate need no password. The second account sees only what the first exports to it, under a
# separate prefix.
nats_secure_config() {
  cat <<EOT
server_name: "$1"
listen: "127.0.0.1:$PORT"
jetstream {
  store_dir: "$DIR/data"
  max_file_store: 5GB
  domain: "secure"
}
tls {
  cert_file: "$(ca_dir)/server.pem"
  key_file: "$(ca_dir)/server.key"
  ca_file: "$(ca_dir)/ca.pem"
}
accounts {
  SHOP {
    jetstream: enabled
    users: [
      {user: "postrider", password: "secret"}
      {nkey: "$NATS_NKEY"}
      {user: "restricted", password: "secret", permissions: {publish: {deny: ["forbidden.>"]}}}
    ]
    exports: [
      {service: "\$JS.API.>", response_type: stream}
      {service: "shared.>"}
      {stream: "deliver.>"}
    ]
  }
  GUEST {
    users: [{user: "guest", password: "secret"}]
    imports: [
      {service: {account: "SHOP", subject: "\$JS.API.>"}, to: "shop.api.>"}
      {service: {account: "SHOP", subject: "shared.>"}}
    ]
  }
}
EOT
}

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
# Clients without a login may do everything; the user restricted is for tests of permissions.
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

# The server sends a greeting to every client; JetStream is in the greeting once it has read its
# files.
nats_ready() { [[ -n $(nats_pid) ]] && answers "$PORT" '' 'INFO *"jetstream":true*'; }
nats_pid() { daemon_pid; }
nats_stop() { daemon_stop 30; }
nats_env() {
  if is_secure; then
    export_line "$(env_name NATS)" "tls://127.0.0.1:$PORT"
    export_line POSTRIDER_TEST_CA "$(ca_dir)"
    return
  fi
  export_line "$(env_name NATS)" "nats://127.0.0.1:$PORT"
  broker_url nats "nats://127.0.0.1:$PORT"
}
