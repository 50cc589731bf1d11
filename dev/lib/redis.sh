# shellcheck shell=bash
# Redis from the distribution, with settings suitable for a stream: a log that is flushed to disk
# every second, and an error instead of evicted entries when memory is full. Instances are there to
# be killed: they flush every write before they confirm it, because with one flush per second Redis
# keeps confirmed writes in memory for as long as the disk is busy.

redis_names() { echo redis; }
redis_port() { echo 25350; }

redis_install() {
  if [[ ! -x /usr/bin/redis-server ]]; then apt_install redis-server; fi
}

redis_init() {
  as_server mkdir -p "$DIR/data"
  as_server tee "$DIR/redis.conf" >/dev/null <<EOT
bind 127.0.0.1
port $PORT
dir $DIR/data
appendonly yes
appendfsync $([[ -n $INSTANCE ]] && echo always || echo everysec)
save ""
maxmemory-policy noeviction
$(if is_secure; then redis_secure; fi)
EOT
}

# With TLS and two users: postrider may do everything, restricted may not write to streams.
redis_secure() {
  ca_make
  cat <<EOT
port 0
tls-port $PORT
tls-cert-file $(ca_dir)/server.pem
tls-key-file $(ca_dir)/server.key
tls-ca-cert-file $(ca_dir)/ca.pem
tls-auth-clients optional
user default off
user postrider on >secret ~* &* +@all
user restricted on >secret ~* &* +@all -xadd
EOT
}

redis_start() { daemon_launch /usr/bin/redis-server "$DIR/redis.conf"; }
redis_ready() {
  if is_secure; then
    [[ -n $(redis_pid) ]] && redis-cli --tls --cacert "$(ca_dir)/ca.pem" -p "$PORT" --user postrider --pass secret --no-auth-warning ping &>/dev/null
    return
  fi
  [[ -n $(redis_pid) ]] && answers "$PORT" 'PING\r\n' '+PONG*'
}
redis_pid() { daemon_pid; }
redis_stop() { daemon_stop 30; }
redis_env() {
  if is_secure; then
    export_line "$(env_name REDIS)" "rediss://127.0.0.1:$PORT/0"
    export_line POSTRIDER_TEST_CA "$(ca_dir)"
    return
  fi
  export_line "$(env_name REDIS)" "redis://127.0.0.1:$PORT/0"
  broker_url redis "redis://127.0.0.1:$PORT/0"
  broker_url asynq "asynq://127.0.0.1:$PORT/0"
}
