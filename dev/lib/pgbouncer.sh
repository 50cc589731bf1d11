# shellcheck shell=bash
# PgBouncer in transaction mode, in front of every PostgreSQL that "up" created: database pg15 is postgres15,
# pg15_crash is postgres15@crash.

pgbouncer_names() { echo pgbouncer; }
pgbouncer_port() { echo 25390; }

pgbouncer_install() {
  if [[ ! -x /usr/sbin/pgbouncer ]]; then apt_install pgbouncer; fi
}

pgbouncer_init() {
  pgbouncer_config | as_server tee "$DIR/pgbouncer.ini" >/dev/null
  echo '"postgres" ""' | as_server tee "$DIR/users.txt" >/dev/null
}

# Stopped PostgreSQL servers are listed too: the pooler connects only when a client asks for them.
pgbouncer_config() {
  local name alias
  echo '[databases]'
  for name in $(created); do
    [[ $name == postgres* ]] || continue
    alias=pg${name#postgres}
    echo "${alias/@/_} = host=127.0.0.1 port=$(<"$BASE/$name/port") dbname=postrider"
  done
  # Databases that are reached another way, such as through a proxy: an optional file beside this
  # one.
  cat "$DIR/databases" 2>/dev/null || true
  cat <<EOF
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $PORT
unix_socket_dir =
auth_type = trust
auth_file = $DIR/users.txt
admin_users = postgres
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 60
ignore_startup_parameters = extra_float_digits
pidfile = $DIR/pid
# A database that a test has killed and restarted must be usable at once.
server_login_retry = 0.2
EOF
}

pgbouncer_start() {
  pgbouncer_init
  # PgBouncer refuses to start over the pid file of a killed process when another process has that
  # ID.
  rm -f "$DIR/pid"
  as_server touch "$DIR/log"
  # Each client connection and each server connection uses a file descriptor.
  ulimit -n 4096 2>/dev/null || true
  launch /usr/sbin/pgbouncer "$DIR/pgbouncer.ini"
}

pgbouncer_ready() { [[ -n $(pgbouncer_pid) ]] && port_is_open "$PORT"; }

pgbouncer_pid() {
  local pid
  pid=$(cat "$DIR/pid" 2>/dev/null) || return 0
  [[ -n $pid ]] || return 0
  if alive "$pid" && [[ $(<"/proc/$pid/comm") == pgbouncer ]]; then echo "$pid"; fi
}

pgbouncer_stop() {
  local pid
  pid=$(pgbouncer_pid)
  kill -TERM "$pid" # at once; INT would wait for clients
  wait_for 30 none_alive "$pid" || kill_tree "$pid"
}

pgbouncer_refresh() {
  local new
  new=$(pgbouncer_config)
  if [[ $new != "$(<"$DIR/pgbouncer.ini")" ]]; then
    pgbouncer_init
    kill -HUP "$(pgbouncer_pid)"
  fi
}

pgbouncer_env() {
  local name pooler=$PORT
  for name in $(created); do
    [[ $name == postgres* ]] || continue
    select_service "$name"
    if ! is_running; then continue; fi
    export_line "$(env_name PGBOUNCER)" \
      "postgres://postgres@127.0.0.1:$pooler/pg$VERSION${INSTANCE:+_$INSTANCE}?sslmode=disable"
  done
}
