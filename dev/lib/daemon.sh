# shellcheck shell=bash
# shellcheck disable=SC2153 # PORT and NAME are set by select_service
# Not a kind: functions for kinds whose program writes no pid file or listens on several ports.

# daemon_launch runs a program in $DIR, with that as its HOME. The pid file has the process ID and
# the start time, so that a later process with the same ID is not mistaken for it.
daemon_launch() {
  as_server touch "$DIR/log"
  launch env -C "$DIR" "HOME=$DIR" "$@"
  echo "$LAUNCHED $(born "$LAUNCHED")" >"$DIR/pid"
}

born() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  read -ra stat <<<"${stat##*) }"
  echo "${stat[19]}" # field 22, in clock ticks since boot
}

daemon_pid() {
  local pid birth
  read -r pid birth 2>/dev/null <"$DIR/pid" || return 0
  if alive "$pid" && [[ $(born "$pid") == "$birth" ]]; then echo "$pid"; fi
}

# daemon_stop SECONDS stops the server; SECONDS limits how long a clean shutdown may take.
daemon_stop() {
  local pid
  pid=$(daemon_pid)
  kill -TERM "$pid"
  wait_for "$1" none_alive "$pid" || kill_tree "$pid"
}

# extra_port WORD [DIRECTORY] prints another port of the server, chosen on first use. These ports
# are below those of choose_port, so that the two never conflict.
extra_port() {
  local file=${2:-$DIR}/port.$1
  if [[ ! -s $file ]]; then with_lock port choose_extra_port "$file"; fi
  cat "$file"
}

choose_extra_port() {
  local port=$((20000 + PORT % 500 * 10)) taken
  taken=$(cat "$BASE"/*/port.* 2>/dev/null || true)
  while grep -qx "$port" <<<"$taken" || port_is_open "$port"; do port=$((port + 1)); done
  ((port < 25300)) || die "no free port for $NAME"
  echo "$port" >"$1"
}

# answers PORT REQUEST PATTERN sends a request and compares one line of the response; PATTERN is a
# glob. It needs no client program, and a server that hangs does not block it. The request may
# contain backslash escapes, including \0.
answers() {
  local line
  line=$({
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf '%b' "$2" >&3
    timeout 5 head -n 1 <&3 | tr -d '\0'
  } 2>/dev/null) || return 1
  # shellcheck disable=SC2053 # a glob
  [[ $line == $3 ]]
}

# answers_bytes PORT REQUEST HEX: the same for binary protocols. The response must begin with these
# bytes; ?? matches any byte.
answers_bytes() {
  local bytes
  bytes=$({
    exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
    printf '%b' "$2" >&3
    timeout 5 head -c $((${#3} / 2)) <&3 | od -An -v -tx1 | tr -d ' \n'
  } 2>/dev/null) || return 1
  # shellcheck disable=SC2053 # a glob
  [[ $bytes == $3 ]]
}

# http_ok PORT PATH [HEADERS]
http_ok() { answers "$1" "GET $2 HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n${3-}\\r\\n" 'HTTP/1.? 200*'; }

# java_install downloads jars with Maven, from the repositories that Maven is configured for.
java_install() {
  command -v javac >/dev/null || apt_install default-jdk-headless
  command -v mvn >/dev/null || apt_install maven
}

# maven GOAL OPTION... runs a goal of Maven's dependency plugin.
maven() {
  local log=$BASE/maven.log goal=$1
  shift
  with_lock maven mvn -B -ntp "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:$goal" "$@" >"$log" 2>&1 ||
    die "maven failed; see $log"
}
