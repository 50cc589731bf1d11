# shellcheck shell=bash
# shellcheck disable=SC2153 # NAME is set by select_service
# Three NATS servers as one cluster, for streams with three replicas; nats-cluster@secure requires
# TLS and a login as nats@secure does. The group nats-cluster contains all of them. Each node is a
# server of its own (nats-cluster1 to nats-cluster3), so that a test can kill and restart it.

nats_cluster_members() { printf 'nats-cluster%s\n' 1 2 3; }
nats_cluster_names() { nats_cluster_members; }
nats_cluster_port() { echo $((25320 + VERSION)); }
nats_cluster_install() { nats_install; }

# nats_cluster_nodes prints the names of all nodes of this cluster.
nats_cluster_nodes() { nats_cluster_members | sed "s/\$/${INSTANCE:+@$INSTANCE}/"; }

# Every node must know the routes to all others before any of them exists, so these ports are fixed
# for the cluster.
nats_cluster_route() {
  local shared=$BASE/nats-cluster${INSTANCE:+@$INSTANCE}
  mkdir -p "$shared"
  extra_port "route$1" "$shared"
}

nats_cluster_init() {
  nats_cluster_config | as_server tee "$DIR/nats.conf" >/dev/null
}

nats_cluster_config() {
  if is_secure; then
    ca_make
    nats_secure_config "n$VERSION"
  else
    nats_config "n$VERSION"
  fi
  cat <<EOT
http: "127.0.0.1:$(extra_port http)"
cluster {
  name: "postrider${INSTANCE:+-$INSTANCE}"
  listen: "127.0.0.1:$(nats_cluster_route "$VERSION")"
  routes: [
    "nats://127.0.0.1:$(nats_cluster_route 1)"
    "nats://127.0.0.1:$(nats_cluster_route 2)"
    "nats://127.0.0.1:$(nats_cluster_route 3)"
  ]
  $(if is_secure; then nats_cluster_tls; fi)
}
EOT
}

nats_cluster_tls() {
  echo "tls { cert_file: \"$(ca_dir)/server.pem\", key_file: \"$(ca_dir)/server.key\", ca_file: \"$(ca_dir)/ca.pem\" }"
}

nats_cluster_start() { nats_start; }

# A healthy node has caught up with a leader. Electing the first leader needs all three nodes, later
# ones any two; with fewer, do not wait.
nats_cluster_ready() {
  local name running formed=0
  nats_ready || return 1
  mapfile -t running < <(nats_cluster_running)
  for name in "${running[@]}"; do
    if [[ -e $BASE/$name/formed ]]; then formed=$((formed + 1)); fi
  done
  if ((${#running[@]} == 3 || formed >= 2)); then
    http_ok "$(extra_port http)" /healthz || return 1
    for name in "${running[@]}"; do touch "$BASE/$name/formed"; done
  fi
}

nats_cluster_running() {
  local name
  for name in $(nats_cluster_nodes); do
    if [[ -n $(DIR=$BASE/$name daemon_pid) ]]; then echo "$name"; fi
  done
}

nats_cluster_pid() { daemon_pid; }
nats_cluster_stop() { daemon_stop 30; }

# All nodes in one variable, including those that are down: clients must find one that runs.
nats_cluster_env() {
  local name urls='' running
  mapfile -t running < <(nats_cluster_running)
  if [[ ${running[0]:-} != "$NAME" ]]; then return; fi # one of them prints it
  for name in $(nats_cluster_nodes); do
    if [[ -s $BASE/$name/port ]]; then urls+=,nats://127.0.0.1:$(<"$BASE/$name/port"); fi
  done
  if is_secure; then
    urls=${urls//nats:/tls:}
    export_line POSTRIDER_TEST_CA "$(ca_dir)"
  fi
  export_line "$(VERSION='' env_name NATS_CLUSTER)" "${urls#,}"
}
