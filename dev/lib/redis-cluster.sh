# shellcheck shell=bash
# shellcheck disable=SC2153 # NAME and PORT are set by select_service
# A Redis Cluster of three primaries and three replicas that require TLS and a login as redis@secure
# does. The group redis-cluster contains all of them. Each is a server of its own (redis-cluster1 to
# redis-cluster6), so that a test can kill and restart it.

redis_cluster_members() { printf 'redis-cluster%s\n' 1 2 3 4 5 6; }
redis_cluster_names() { redis_cluster_members; }
redis_cluster_port() { echo $((25360 + VERSION)); }
redis_cluster_install() { redis_install; }

redis_cluster_init() {
  as_server mkdir -p "$DIR/data"
  as_server tee "$DIR/redis.conf" >/dev/null <<EOT
bind 127.0.0.1
dir $DIR/data
appendonly yes
appendfsync always
save ""
maxmemory-policy noeviction
cluster-enabled yes
cluster-config-file $DIR/data/nodes.conf
cluster-node-timeout 2000
cluster-port $(extra_port bus)
cluster-require-full-coverage no
tls-cluster yes
tls-replication yes
masteruser postrider
masterauth secret
$(redis_secure)
EOT
}

redis_cluster_start() { daemon_launch /usr/bin/redis-server "$DIR/redis.conf"; }
redis_cluster_pid() { daemon_pid; }
redis_cluster_stop() { daemon_stop 30; }

redis_cluster_cli() {
  redis-cli --tls --cacert "$(ca_dir)/ca.pem" -h 127.0.0.1 -p "$PORT" --user postrider --pass secret --no-auth-warning "$@" 2>/dev/null
}

# The last node to start creates the cluster. After that a node is ready when it knows the cluster's
# slots, and a replica when it replicates.
redis_cluster_ready() {
  local info name running nodes=()
  info=$(redis_cluster_cli cluster info) || return 1
  mapfile -t running < <(redis_cluster_running)
  if [[ $info == *cluster_known_nodes:1[^0-9]* ]]; then
    if ((${#running[@]} < 6)); then return; fi
    for name in "${running[@]}"; do nodes+=("127.0.0.1:$(<"$BASE/$name/port")"); done
    redis_cluster_cli --cluster create "${nodes[@]}" --cluster-replicas 1 --cluster-yes >>"$DIR/log" || return 1
  fi
  if ((${#running[@]} < 4)); then return; fi
  [[ $info == *cluster_state:ok* && $(redis_cluster_cli info replication) != *master_link_status:down* ]]
}

redis_cluster_running() {
  local name
  for name in $(redis_cluster_members); do
    if [[ -n $(DIR=$BASE/$name daemon_pid) ]]; then echo "$name"; fi
  done
}

# All nodes in one variable, including those that are down: clients must find one that runs.
redis_cluster_env() {
  local name hosts='' running
  mapfile -t running < <(redis_cluster_running)
  if [[ ${running[0]:-} != "$NAME" ]]; then return; fi # one of them prints it
  for name in $(redis_cluster_members); do
    if [[ -s $BASE/$name/port ]]; then hosts+=,127.0.0.1:$(<"$BASE/$name/port"); fi
  done
  export_line POSTRIDER_TEST_REDIS_CLUSTER "rediss://${hosts#,}/0"
  export_line POSTRIDER_TEST_CA "$(ca_dir)"
}
