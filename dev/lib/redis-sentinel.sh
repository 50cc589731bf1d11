# shellcheck shell=bash
# shellcheck disable=SC2153 # NAME and PORT are set by select_service
# A Redis primary with two replicas and three sentinels that fail over between them: redis-sentinel1
# to redis-sentinel3 are the servers, redis-sentinel4 to redis-sentinel6 the sentinels. The group
# redis-sentinel contains all of them. Servers require the password "secret", sentinels "watch".
# Sentinels rewrite the configuration of all six, so it is written only once.

redis_sentinel_members() { printf 'redis-sentinel%s\n' 1 2 3 4 5 6; }
redis_sentinel_names() { redis_sentinel_members; }
redis_sentinel_port() { echo $((25370 + VERSION)); }
redis_sentinel_install() { redis_install; }

redis_sentinel_init() {
  if [[ -e $DIR/redis.conf ]]; then return; fi
  as_server mkdir -p "$DIR/data"
  if ((VERSION <= 3)); then redis_sentinel_data; else redis_sentinel_watch; fi | as_server tee "$DIR/redis.conf" >/dev/null
}

redis_sentinel_first() { cat "$BASE/redis-sentinel1/port"; }

redis_sentinel_data() {
  cat <<EOT
bind 127.0.0.1
port $PORT
dir $DIR/data
appendonly yes
appendfsync always
save ""
maxmemory-policy noeviction
requirepass secret
masterauth secret
EOT
  if ((VERSION > 1)); then echo "replicaof 127.0.0.1 $(redis_sentinel_first)"; fi
}

redis_sentinel_watch() {
  cat <<EOT
bind 127.0.0.1
port $PORT
dir $DIR/data
requirepass watch
sentinel sentinel-pass watch
sentinel monitor shop 127.0.0.1 $(redis_sentinel_first) 2
sentinel auth-pass shop secret
sentinel down-after-milliseconds shop 2000
sentinel failover-timeout shop 10000
EOT
}

redis_sentinel_start() {
  if ((VERSION <= 3)); then
    daemon_launch /usr/bin/redis-server "$DIR/redis.conf"
  else
    daemon_launch /usr/bin/redis-server "$DIR/redis.conf" --sentinel
  fi
}
redis_sentinel_pid() { daemon_pid; }
redis_sentinel_stop() { daemon_stop 30; }
redis_sentinel_cli() { REDISCLI_AUTH=$1 redis-cli -p "$PORT" "${@:2}" 2>/dev/null; }

# A sentinel is ready when it knows the replicas, and the last one when it also knows the other
# sentinels: before that, no failover is possible. A restarted server is ready when it replicates
# from the primary, unless the sentinels have elected it primary; that takes them ten seconds.
redis_sentinel_ready() {
  local info leads
  if ((VERSION <= 3)); then
    info=$(redis_sentinel_cli secret info replication) || return 1
    leads=$(redis_sentinel_leader)
    [[ -z $leads || $leads == "$PORT" && $info == *role:master* || $info == *master_link_status:up* ]]
    return
  fi
  info=$(redis_sentinel_cli watch info sentinel) || return 1
  if ((VERSION < 6)); then [[ $info == *slaves=2* ]]; else [[ $info == *slaves=2,sentinels=3* ]]; fi
}

# Prints the port of the primary according to the sentinels, or nothing if no sentinel runs yet.
redis_sentinel_leader() {
  local sentinel=$BASE/redis-sentinel4
  if [[ -n $(DIR=$sentinel daemon_pid) ]]; then
    PORT=$(<"$sentinel/port") redis_sentinel_cli watch sentinel get-master-addr-by-name shop | tail -n 1
  fi
}

# Only one of the sentinels prints the list of all.
redis_sentinel_env() {
  local n hosts=''
  if ((VERSION <= 3)); then return; fi
  for n in 4 5 6; do
    if [[ -s $BASE/redis-sentinel$n/port ]]; then hosts+=,127.0.0.1:$(<"$BASE/redis-sentinel$n/port"); fi
  done
  export_line POSTRIDER_TEST_REDIS_SENTINEL "redis://:secret@${hosts#,}/0"
}
