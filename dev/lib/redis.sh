# shellcheck shell=bash
# Redis from the distribution, with the settings an operator would give a stream: a log that reaches the disk every
# second, and an error instead of lost entries when memory is full. Instances are for being killed: in them every write reaches the
# disk before it is confirmed, because once a second Redis keeps confirmed writes in memory for as long as the disk is busy.

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
EOT
}

redis_start() { daemon_launch /usr/bin/redis-server "$DIR/redis.conf"; }
redis_ready() { [[ -n $(redis_pid) ]] && answers "$PORT" 'PING\r\n' '+PONG*'; }
redis_pid() { daemon_pid; }
redis_stop() { daemon_stop 30; }
redis_env() {
  export_line "$(env_name REDIS)" "redis://127.0.0.1:$PORT/0"
  broker_url redis "redis://127.0.0.1:$PORT/0"
  broker_url asynq "asynq://127.0.0.1:$PORT/0"
}
