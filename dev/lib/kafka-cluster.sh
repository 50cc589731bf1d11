# shellcheck shell=bash
# shellcheck disable=SC2153 # NAME is set by select_service
# Three Kafka nodes, each broker and controller, that want TLS and a login as kafka@secure does. The group kafka-cluster is all of them;
# each is a server for itself, so that a test can kill one and start it again: kafka-cluster1, kafka-cluster2, kafka-cluster3. Topics have three
# replicas, of which two must have a message.

kafka_cluster_members() { printf 'kafka-cluster%s\n' 1 2 3; }
kafka_cluster_names() { kafka_cluster_members; }
kafka_cluster_port() { echo $((25344 + VERSION)); }
kafka_cluster_install() { kafka_install; }

# Every node must know all controllers before there are any others, so these ports belong to the cluster.
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

# A node serves once two of them form a quorum; before that there is nothing to wait for. The answer lists the brokers that have joined.
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

# All nodes in one variable, also those that are down: finding one that is not is the client's business.
kafka_cluster_env() {
  local name hosts='' running
  mapfile -t running < <(kafka_cluster_running)
  if [[ ${running[0]} != "$NAME" ]]; then return; fi # one of them prints it
  for name in $(kafka_cluster_members); do
    if [[ -s $BASE/$name/port ]]; then hosts+=,127.0.0.1:$(<"$BASE/$name/port"); fi
  done
  export_line POSTRIDER_TEST_KAFKA_CLUSTER "${hosts#,}"
  export_line POSTRIDER_TEST_CA "$(ca_dir)"
}
