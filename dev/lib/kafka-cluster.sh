# shellcheck shell=bash
# shellcheck disable=SC2153 # NAME is set by select_service
# Three Kafka nodes, each both broker and controller, that require TLS and a login as kafka@secure
# does. The group kafka-cluster contains all of them. Each node is a server of its own
# (kafka-cluster1 to kafka-cluster3), so that a test can kill and restart it. Topics have three
# replicas, of which two must have a message.

kafka_cluster_members() { printf 'kafka-cluster%s\n' 1 2 3; }
kafka_cluster_names() { kafka_cluster_members; }
kafka_cluster_port() { echo $((25344 + VERSION)); }
kafka_cluster_install() { kafka_install; }

# Every node must know the addresses of all controllers before any of them exists, so these ports
# are fixed for the cluster.
kafka_cluster_controller() {
  mkdir -p "$BASE/kafka-cluster"
  extra_port "controller$1" "$BASE/kafka-cluster"
}

kafka_cluster_init() {
  local n voters=''
  for n in 1 2 3; do voters+=,$n@127.0.0.1:$(kafka_cluster_controller "$n"); done
  kafka_format "$(kafka_properties "$VERSION" "${voters#,}" 3 2)"
}

kafka_cluster_start() { kafka_start; }

# Nodes serve clients once two of them form a quorum; before that, do not wait. The response lists
# the brokers that have joined.
kafka_cluster_ready() {
  local joined running
  [[ -n $(daemon_pid) ]] || return 1
  running=$(kafka_cluster_running | wc -l)
  if ((running < 2)); then return; fi
  for ((joined = running; joined <= 3; joined++)); do
    answers_bytes "$(extra_port internal)" '\0\0\0\017\0\003\0\004\0\0\0\0101\0377\0377\0377\0377\0377\0377\0' \
      "????????00000041000000000000000$joined" && return
  done
  return 1
}

kafka_cluster_running() {
  local name
  for name in $(kafka_cluster_members); do
    if [[ -n $(DIR=$BASE/$name daemon_pid) ]]; then echo "$name"; fi
  done
}

kafka_cluster_pid() { daemon_pid; }
kafka_cluster_stop() { daemon_stop 60; }

# All nodes in one variable, including those that are down: clients must find one that runs.
kafka_cluster_env() {
  local name hosts='' running
  mapfile -t running < <(kafka_cluster_running)
  if [[ ${running[0]:-} != "$NAME" ]]; then return; fi # one of them prints it
  for name in $(kafka_cluster_members); do
    if [[ -s $BASE/$name/port ]]; then hosts+=,127.0.0.1:$(<"$BASE/$name/port"); fi
  done
  export_line POSTRIDER_TEST_KAFKA_CLUSTER "${hosts#,}"
  export_line POSTRIDER_TEST_CA "$(ca_dir)"
}
