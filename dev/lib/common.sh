# shellcheck shell=bash
# shellcheck disable=SC2034 # the variables are read by the files of the kinds
# shellcheck disable=SC2153 # NAME is set by select_service
# Functions shared by all kinds of servers.
#
# A kind is a file dev/lib/<kind>.sh with these functions. NAME, VERSION, INSTANCE, DIR and PORT are set when they run:
#
#   <kind>_names     the names it offers, one a line (no instances)
#   <kind>_port      the port it would like to have
#   <kind>_install   bring the programs onto the machine; cheap when they are there
#   <kind>_init      create data and configuration in $DIR; must do nothing when that was done before
#   <kind>_start     start in the background with launch, also after a crash
#   <kind>_ready     succeed once clients are served
#   <kind>_pid       the process id, or nothing when it does not run
#   <kind>_stop      stop cleanly and wait for the end
#   <kind>_env       print export_line's for tests
#   <kind>_refresh   optional: other servers have come or gone

say() { printf '%s\n' "$*" >&2; }
die() {
  say "dev/services: $*"
  exit 1
}

# Lock files are not in the data folder, so that wiping a server does not remove a lock that another
# process waits for.
lock() {
  mkdir -p "$BASE/lock"
  exec 9>"$BASE/lock/$1"
  flock -w 600 9 || die "another process has held the lock of $1 for ten minutes"
}

with_lock() {
  local name=$1
  shift
  mkdir -p "$BASE/lock"
  (
    flock -w 600 8 || die "another process has held the lock of $name for ten minutes"
    "$@" 8>&-
  ) 8>"$BASE/lock/$name"
}

# export_line NAME VALUE prints an export statement, quoted for the shell that evaluates it.
export_line() {
  local quoted=${2//\'/\'\\\'\'}
  printf "export %s='%s'\n" "$1" "$quoted"
}

# env_name PREFIX: PREFIX15 for the default instance, PREFIX15_CRASH for @crash.
env_name() {
  local name=POSTRIDER_TEST_$1$VERSION${INSTANCE:+_$INSTANCE}
  echo "${name^^}"
}

# broker_url BROKER URL sets the default address of a broker for "postrider bench broker".
broker_url() {
  if [[ -z $INSTANCE ]]; then export_line "POSTRIDER_${1^^}_URL" "$2"; fi
}

# Most database servers refuse to run as root. When called by root, they run as server_user, one
# user for all of them, independent of the users that packages create; otherwise they run as the
# caller.
server_user() {
  if ((EUID != 0)); then
    id -un
  else
    [[ -s $BASE/user ]] || with_lock user choose_user
    cat "$BASE/user"
  fi
}

choose_user() {
  local user=postgres
  if [[ -s $BASE/user ]]; then return; fi
  if ! getent passwd $user >/dev/null; then
    user=postrider
    getent passwd $user >/dev/null || useradd --system --no-create-home --shell /usr/sbin/nologin $user >&2
  fi
  echo $user >"$BASE/user"
}

as_server() {
  if ((EUID != 0)); then
    "$@"
  else
    local user
    user=$(server_user)
    HOME=$DIR setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups -- "$@"
  fi
}

# launch runs a server detached. The server must not inherit the lock or the caller's pipes: a
# process that reads our output until EOF would wait for the server to exit.
#
# Linux divides processor time among sessions. Each PostgreSQL connection is one, and so is a whole
# broker, which would otherwise starve.
launch() {
  local user urgently='{ echo -10 >/proc/self/autogroup; } 2>/dev/null; exec "$@"'
  if ((EUID != 0)); then
    setsid "$@" </dev/null >>"$DIR/log" 2>&1 8>&- 9>&- &
  else
    user=$(server_user)
    HOME=$DIR setsid bash -c "$urgently" - setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups -- "$@" \
      </dev/null >>"$DIR/log" 2>&1 8>&- 9>&- &
  fi
  LAUNCHED=$!
}

# settled ends the wait also when the server has exited, as it does at once with an invalid setting.
settled() { "${KIND}_ready" || ! alive "$LAUNCHED"; }

prepare_dir() {
  mkdir -p "$DIR"
  if ((EUID == 0)); then chown "$(server_user):" "$DIR"; fi
  as_server test -w "$DIR" ||
    die "user $(server_user) cannot reach $DIR; set POSTRIDER_SERVICES_DIR to a folder that it can"
}

# choose_port uses only ports below 32768: above, an outgoing connection may hold the port when a
# crashed server restarts. Another checkout may run the same servers, so taken ports are skipped.
choose_port() {
  local port taken
  if [[ -n $INSTANCE ]]; then
    port=$((25400 + $(printf %s "$NAME" | cksum | cut -d' ' -f1) % 500))
  else
    port=$("${KIND}_port")
  fi
  taken=$(cat "$BASE"/*/port 2>/dev/null || true)
  while grep -qx "$port" <<<"$taken" || port_is_open "$port"; do port=$((port + 500)); done
  ((port < 32768)) || die "no free port for $NAME"
  echo "$port" >"$DIR/port"
}

port_is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# wait_for SECONDS COMMAND...
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

# alive is false for a zombie: where process 1 does not reap, a killed server stays in the process
# table.
alive() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  stat=${stat##*) }
  [[ ${stat%% *} != [ZX] ]]
}

none_alive() {
  local pid
  for pid; do
    if alive "$pid"; then return 1; fi
  done
}

# process_tree prints a process and all its descendants, parents first.
process_tree() {
  local level=$1
  echo "$1"
  while level=$(pgrep -d, -P "$level"); do tr , '\n' <<<"$level"; done
}

signal_tree() {
  local pids
  mapfile -t pids < <(process_tree "$2")
  kill "-$1" "${pids[@]}"
}

# kill_tree stops the parent first, so that it can neither start new children nor react to the death
# of the old ones.
kill_tree() {
  local pids
  kill -STOP "$1"
  mapfile -t pids < <(process_tree "$1")
  kill -KILL "${pids[@]}" 2>/dev/null || true
  wait_for 30 none_alive "${pids[@]}" || die "processes survived kill -9: ${pids[*]}"
}

can_be_root() { ((EUID == 0)) || sudo -n true 2>/dev/null; }
as_root() { if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi; }

apt_has() { command -v apt-get >/dev/null && apt-cache show "$1" 2>/dev/null | grep '^Package:' >/dev/null; }

# apt_install keeps packages from starting their own servers, by a policy file, which is the
# documented way. It runs in a subshell so that its trap removes the file also after an interrupt.
apt_install() (
  policy=/usr/sbin/policy-rc.d
  can_be_root || die "please install: $*"
  exec 7>"$BASE/lock/apt"
  flock -w 600 7 || die "another process has been installing packages for ten minutes"
  say "installing $*"
  if [[ ! -e $policy ]]; then
    trap 'as_root rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
  apt_get_install "$@" || { as_root apt-get -qq update >&2 && apt_get_install "$@"; } || die "could not install $*"
)

apt_get_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends \
    "$@" >"$BASE/apt.log" 2>&1 || {
    tail -n 5 "$BASE/apt.log" >&2
    return 1
  }
}

# npm_unpack PACKAGE VERSION TARGET
npm_unpack() {
  local cache=$BASE/cache file
  file=$cache/$(sed 's/^@//; s,/,-,' <<<"$1")-$2.tgz
  command -v npm >/dev/null || die "npm is needed to fetch $1"
  mkdir -p "$cache"
  if [[ ! -s $file ]]; then
    say "fetching $1 $2"
    (cd "$cache" && npm pack --silent "$1@$2" >/dev/null) || die "could not fetch $1 $2"
  fi
  rm -rf "$3.part"
  mkdir -p "$3.part"
  tar -xzf "$file" -C "$3.part" --strip-components=1 --no-same-owner
}
