# shellcheck shell=bash
# RabbitMQ from the distribution, but not as its service: own folders, own cookie, own port mapper, loopback only.

rabbitmq_names() { echo rabbitmq; }
rabbitmq_port() { echo 25330; }

RABBITMQ_PROGRAMS=/usr/lib/rabbitmq/bin

rabbitmq_install() {
  if [[ ! -x $RABBITMQ_PROGRAMS/rabbitmq-server ]]; then apt_install rabbitmq-server; fi
}

# A cluster's port mapper knows all its nodes and belongs to none of them.
rabbitmq_mapper() {
  if [[ $KIND == rabbitmq_cluster ]]; then
    mkdir -p "$BASE/rabbitmq-cluster"
    extra_port epmd "$BASE/rabbitmq-cluster"
  else
    extra_port epmd
  fi
}

# The distribution's own configuration must not affect this node, hence also names of files that do
# not exist.
rabbitmq_settings() {
  cat <<EOT
HOME=$DIR
ERL_EPMD_ADDRESS=127.0.0.1
ERL_EPMD_PORT=$(rabbitmq_mapper)
RABBITMQ_NODENAME=postrider$VERSION@localhost
RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
RABBITMQ_NODE_PORT=$(if is_secure; then extra_port plain; else echo "$PORT"; fi)
RABBITMQ_DIST_PORT=$(extra_port dist)
RABBITMQ_MNESIA_BASE=$DIR/data
RABBITMQ_LOG_BASE=$DIR/logs
RABBITMQ_LOGS=-
RABBITMQ_PID_FILE=$DIR/pid.erlang
RABBITMQ_CONF_ENV_FILE=$DIR/none
RABBITMQ_CONFIG_FILE=$DIR/rabbitmq.conf
RABBITMQ_ADVANCED_CONFIG_FILE=$DIR/none.config
RABBITMQ_ENABLED_PLUGINS_FILE=$DIR/enabled_plugins
RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}
RABBITMQ_CTL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}
EOT
}

# The user is postrider, by password or by certificate. Only the test of readiness uses the listener
# without TLS.
rabbitmq_secure_config() {
  cat <<EOT
listeners.ssl.default = 127.0.0.1:$PORT
ssl_options.cacertfile = $(ca_dir)/ca.pem
ssl_options.certfile = $(ca_dir)/server.pem
ssl_options.keyfile = $(ca_dir)/server.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = EXTERNAL
ssl_cert_login_from = common_name
default_user = postrider
default_pass = secret
EOT
}

rabbitmq_init() {
  local settings
  as_server mkdir -p "$DIR/data" "$DIR/logs"
  if is_secure; then
    ca_make
    echo '[rabbitmq_auth_mechanism_ssl].' | as_server tee "$DIR/enabled_plugins" >/dev/null
    rabbitmq_secure_config | as_server tee "$DIR/rabbitmq.conf" >/dev/null
  else
    echo '[].' | as_server tee "$DIR/enabled_plugins" >/dev/null
    echo 'loopback_users.guest = true' | as_server tee "$DIR/rabbitmq.conf" >/dev/null
  fi
  # Create the cookie here: if root's rabbitmqctl ran first, the server could not read the file.
  if [[ ! -s $DIR/.erlang.cookie ]]; then
    # shellcheck disable=SC2016 # for the other shell
    as_server sh -c 'umask 077; head -c 24 /dev/urandom | base64 | tr -dc A-Za-z0-9 >"$1"' - "$DIR/.erlang.cookie"
  fi
  # Tests use this wrapper to reach the node: rabbitmqctl set_vm_memory_high_watermark 0, and the
  # like.
  mapfile -t settings < <(rabbitmq_settings)
  {
    echo '#!/bin/sh'
    printf 'exec env'
    printf " '%s'" "${settings[@]}"
    printf ' %s/rabbitmqctl "$@"\n' "$RABBITMQ_PROGRAMS"
  } | as_server tee "$DIR/rabbitmqctl" >/dev/null
  as_server chmod 755 "$DIR/rabbitmqctl"
}

# The port mapper is a child of the server and ends with it.
rabbitmq_start() {
  local settings
  mapfile -t settings < <(rabbitmq_settings)
  # shellcheck disable=SC2016 # for the other shell
  daemon_launch env "${settings[@]}" bash -c 'epmd & exec "$1"/rabbitmq-server' - "$RABBITMQ_PROGRAMS"
}

# The response to the protocol's greeting is a frame of type 1 on channel 0.
rabbitmq_ready() {
  local at=$PORT
  if is_secure; then at=$(extra_port plain); fi
  [[ -n $(rabbitmq_pid) ]] && answers_bytes "$at" 'AMQP\0\0\011\001' 010000
}

rabbitmq_pid() { daemon_pid; }

rabbitmq_stop() {
  local pid mapper
  pid=$(daemon_pid)
  mapper=$(pgrep -P "$pid" -x epmd || true)
  daemon_stop 60
  if [[ -n $mapper ]]; then kill "$mapper" 2>/dev/null || true; fi
}

rabbitmq_env() {
  if is_secure; then
    export_line "$(env_name RABBITMQ)" "amqps://127.0.0.1:$PORT/"
    export_line POSTRIDER_TEST_CA "$(ca_dir)"
    return
  fi
  export_line "$(env_name RABBITMQ)" "amqp://guest:guest@127.0.0.1:$PORT/"
  broker_url rabbitmq "amqp://guest:guest@127.0.0.1:$PORT/"
  export_line "$(env_name RABBITMQCTL)" "$DIR/rabbitmqctl"
}
