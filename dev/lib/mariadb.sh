# shellcheck shell=bash
# MariaDB from the distribution, but not as its service: own folders, own port, loopback only. Its
# settings are the defaults of a fresh installation with the buffers of a small server; commits are
# flushed to disk.

mariadb_names() { echo mariadb; }
mariadb_port() { echo 25306; }

mariadb_install() {
  if [[ ! -x /usr/sbin/mariadbd ]]; then apt_install mariadb-server; fi
}

# Socket paths are limited to 107 bytes.
mariadb_socket() { if ((${#DIR} > 85)); then echo "/tmp/postrider-$PORT.sock"; else echo "$DIR/sock"; fi; }

mariadb_init() {
  as_server tee "$DIR/init.sql" >/dev/null <<'EOT'
CREATE DATABASE IF NOT EXISTS postrider CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'postrider'@'127.0.0.1' IDENTIFIED BY 'postrider';
GRANT ALL PRIVILEGES ON *.* TO 'postrider'@'127.0.0.1' WITH GRANT OPTION;
EOT
  as_server tee "$DIR/my.cnf" >/dev/null <<EOT
[mariadbd]
datadir = $DIR/data
socket = $(mariadb_socket)
pid-file = $DIR/mariadbd.pid
init-file = $DIR/init.sql
bind-address = 127.0.0.1
port = $PORT
skip-name-resolve
max_allowed_packet = 64M
max_connections = 600
max_connect_errors = 1000000
innodb_buffer_pool_size = 512M
innodb_log_file_size = 512M
innodb_flush_log_at_trx_commit = 1
default-time-zone = +00:00
EOT
  if [[ -e $DIR/initialised ]]; then return; fi
  rm -rf "$DIR/data" # left by an interrupted attempt
  as_server mariadb-install-db --no-defaults --datadir="$DIR/data" --skip-test-db >>"$DIR/install.log" 2>&1 ||
    die "mariadb-install-db failed; see $DIR/install.log"
  as_server touch "$DIR/initialised"
}

mariadb_start() { daemon_launch /usr/sbin/mariadbd --defaults-file="$DIR/my.cnf"; }

# The server sends a greeting: packet number 0, protocol version 10.
mariadb_ready() { [[ -n $(mariadb_pid) ]] && answers_bytes "$PORT" '' '??????000a'; }
mariadb_pid() { daemon_pid; }
mariadb_stop() { daemon_stop 60; }

mariadb_env() {
  export_line "$(env_name MARIADB)" "postrider:postrider@tcp(127.0.0.1:$PORT)/postrider"
}
