# shellcheck shell=bash
# MySQL, which stable Debian does not package: its packages from unstable, with all the libraries
# that they need, unpacked into a folder. Nothing is installed on the machine.

mysql_names() { echo mysql; }
mysql_port() { echo 25406; }
mysql_root() { echo "$BASE/programs/mysql"; }

mysql_install() { with_lock mysql-packages mysql_fetch; }

mysql_fetch() {
  local target apt=() mirror work uri
  target=$(mysql_root)
  if [[ -e $target/complete ]]; then return; fi
  mirror=$(apt-get indextargets --format "\$(REPO_URI)" | grep -v security | sort -u | head -n 1)
  [[ -n $mirror ]] || die "apt-get knows no mirror of Debian, from which MySQL would come"
  say "fetching MySQL from Debian's unstable distribution"
  work=$target.work
  rm -rf "$target" "$work"
  mkdir -p "$target" "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages"
  echo "deb $mirror sid main" >"$work/sources.list"
  touch "$work/status" # an empty package status, so that all libraries are included
  apt=(apt-get -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State=$work/state"
    -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  "${apt[@]}" update >&2 || die "could not read the list of Debian's unstable packages"
  "${apt[@]}" --print-uris --yes --no-install-recommends install mysql-server-core | grep -o "^'[^']*'" | tr -d "'" >"$work/uris"
  while read -r uri; do
    curl -fsS --retry 3 -o "$work/packages/${uri##*/}" "$uri" >&2 || die "could not fetch $uri"
  done <"$work/uris"
  for uri in "$work"/packages/*.deb; do dpkg -x "$uri" "$target"; done
  [[ -x $target/usr/sbin/mysqld ]] || die "there is no mysqld in the packages"
  rm -rf "$work"
  touch "$target/complete"
}

# mysql_program runs mysqld with the libraries that it was built for.
mysql_program() {
  local usr lib
  usr=$(mysql_root)/usr
  lib=$usr/lib/x86_64-linux-gnu
  echo "$lib/ld-linux-x86-64.so.2" --library-path "$lib:$usr/lib/mysql/private" "$usr/sbin/mysqld" --defaults-file="$DIR/my.cnf"
}

mysql_init() {
  local usr
  usr=$(mysql_root)/usr
  as_server tee "$DIR/init.sql" >/dev/null <<'EOT'
CREATE DATABASE IF NOT EXISTS postrider CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'postrider'@'127.0.0.1' IDENTIFIED BY 'postrider';
GRANT ALL PRIVILEGES ON *.* TO 'postrider'@'127.0.0.1' WITH GRANT OPTION;
EOT
  as_server tee "$DIR/my.cnf" >/dev/null <<EOT
[mysqld]
basedir = $usr
lc-messages-dir = $usr/share/mysql
plugin-dir = $usr/lib/mysql/plugin
datadir = $DIR/data
socket = /tmp/postrider-$PORT.sock
pid-file = $DIR/mysqld.pid
secure-file-priv =
bind-address = 127.0.0.1
port = $PORT
mysqlx = OFF
skip-name-resolve
max_allowed_packet = 64M
max_connections = 600
max_connect_errors = 1000000
innodb_buffer_pool_size = 512M
default-time-zone = +00:00
EOT
  if [[ ! -e $DIR/initialised ]]; then mysql_create; fi
  echo "init-file = $DIR/init.sql" | as_server tee -a "$DIR/my.cnf" >/dev/null
}

mysql_create() {
  rm -rf "$DIR/data" # left by an interrupted attempt
  # shellcheck disable=SC2046 # it is several words, none of which has spaces
  as_server $(mysql_program) --initialize-insecure >>"$DIR/install.log" 2>&1 || die "mysqld --initialize failed; see $DIR/install.log"
  as_server touch "$DIR/initialised"
}

mysql_start() {
  # shellcheck disable=SC2046
  daemon_launch $(mysql_program)
}

mysql_ready() { [[ -n $(mysql_pid) ]] && answers_bytes "$PORT" '' '??????000a'; }
mysql_pid() { daemon_pid; }
mysql_stop() { daemon_stop 60; }

mysql_env() {
  export_line "$(env_name MYSQL)" "postrider:postrider@tcp(127.0.0.1:$PORT)/postrider"
}
