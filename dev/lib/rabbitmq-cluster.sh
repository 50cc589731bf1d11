# shellcheck shell=bash
# shellcheck disable=SC2153 # NAME and PORT are set by select_service
# Three RabbitMQ nodes as one cluster, for quorum queues, which require TLS and a login as
# rabbitmq@secure does. The group rabbitmq-cluster contains all of them. Each node is a server of
# its own (rabbitmq-cluster1 to rabbitmq-cluster3), so that a test can kill and restart it. The user
# restricted may not write to names that begin with "forbidden".

rabbitmq_cluster_members() { printf 'rabbitmq-cluster%s\n' 1 2 3; }
rabbitmq_cluster_names() { rabbitmq_cluster_members; }
rabbitmq_cluster_port() { echo $((25330 + VERSION)); }
rabbitmq_cluster_install() { rabbitmq_install; }

# The nodes share a cookie. On a partition the smaller side stops, as RabbitMQ's documentation
# recommends.
rabbitmq_cluster_init() {
  local cookie=$BASE/rabbitmq-cluster/cookie
  mkdir -p "$BASE/rabbitmq-cluster"
  if [[ ! -s $cookie ]]; then head -c 24 /dev/urandom | base64 | tr -dc A-Za-z0-9 >"$cookie"; fi
  if [[ ! -s $DIR/.erlang.cookie ]]; then
    as_server tee "$DIR/.erlang.cookie" <"$cookie" >/dev/null
    as_server chmod 400 "$DIR/.erlang.cookie"
  fi
  rabbitmq_init
  echo 'cluster_partition_handling = pause_minority' | as_server tee -a "$DIR/rabbitmq.conf" >/dev/null
}

rabbitmq_cluster_start() {
  local settings
  mapfile -t settings < <(rabbitmq_settings)
  env "${settings[@]}" epmd -daemon 8>&- 9>&-
  daemon_launch env "${settings[@]}" "$RABBITMQ_PROGRAMS/rabbitmq-server"
}

rabbitmq_cluster_ctl() { as_server "$DIR/rabbitmqctl" "$@" >>"$DIR/log" 2>&1; }

# A new node joins the first.
rabbitmq_cluster_ready() {
  rabbitmq_ready || return 1
  if [[ -e $DIR/joined ]]; then return; fi
  if ((VERSION > 1)); then
    rabbitmq_cluster_ctl stop_app && rabbitmq_cluster_ctl join_cluster postrider1@localhost && rabbitmq_cluster_ctl start_app || return 1
  else
    rabbitmq_cluster_ctl add_user restricted secret && rabbitmq_cluster_ctl set_permissions restricted '.*' '^(?!forbidden).*' '.*' || return 1
  fi
  touch "$DIR/joined"
}

rabbitmq_cluster_pid() { daemon_pid; }

# The port mapper ends with the last node.
rabbitmq_cluster_stop() {
  daemon_stop 60
  if [[ -z $(rabbitmq_cluster_running) ]]; then ERL_EPMD_PORT=$(rabbitmq_mapper) epmd -kill >/dev/null 2>&1 || true; fi
}

rabbitmq_cluster_running() {
  local name
  for name in $(rabbitmq_cluster_members); do
    if [[ -n $(DIR=$BASE/$name daemon_pid) ]]; then echo "$name"; fi
  done
}

# All nodes in one variable, including those that are down: clients must find one that runs.
rabbitmq_cluster_env() {
  local name hosts='' running
  mapfile -t running < <(rabbitmq_cluster_running)
  if [[ ${running[0]:-} != "$NAME" ]]; then return; fi # one of them prints it
  for name in $(rabbitmq_cluster_members); do
    if [[ -s $BASE/$name/port ]]; then hosts+=,127.0.0.1:$(<"$BASE/$name/port"); fi
  done
  export_line POSTRIDER_TEST_RABBITMQ_CLUSTER "amqps://${hosts#,}/"
  export_line POSTRIDER_TEST_RABBITMQCTL_CLUSTER "$DIR/rabbitmqctl"
  export_line POSTRIDER_TEST_CA "$(ca_dir)"
}
