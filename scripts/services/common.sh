# shellcheck shell=bash
# Ports, processes and waiting: what the three servers have in common.
# Sourced by services.sh, which sets root (the checkout) and run (its .run).
: "${root:?}" "${run:?}"

# Set by load_ports.
redis_port='' mysql_port='' amqp_port='' epmd_port='' dist_port=''

servers=(redis mariadb rabbitmq)
readonly mark=STOCKADE_TEST_SERVER
readonly await_seconds=60
readonly stop_seconds=5 # nothing of theirs is kept, so a kill costs nothing
readonly probe_seconds=2
readonly lock_seconds=600
readonly log_tail_lines=30

say() { echo "services: $*"; }
warn() { echo "services: $*" >&2; }
die() {
  warn "$@"
  exit 1
}

# take_lock makes up and down of one checkout wait for each other. The lock is
# on this script and not under .run/, because down removes .run/.
take_lock() {
  exec 9<"$root/scripts/services.sh"
  flock -w "$lock_seconds" 9 || die "another up or down has held the lock for $lock_seconds s"
}

# port_settings lists: shell variable, environment variable, default.
port_settings() {
  cat <<'TABLE'
redis_port STOCKADE_REDIS_PORT 26379
mysql_port STOCKADE_MYSQL_PORT 23306
amqp_port STOCKADE_AMQP_PORT 25673
epmd_port STOCKADE_EPMD_PORT 24369
dist_port STOCKADE_DIST_PORT 25674
TABLE
}

# load_ports takes the ports of what is already running from .run/ports, so
# that env, status and a second up need no variables; else the environment's.
load_ports() {
  local var setting default recorded wanted
  while read -r var setting default; do
    recorded=
    if [[ -r $run/ports ]]; then
      recorded=$(sed -n "s/^$setting=//p" "$run/ports")
    fi
    wanted=${!setting:-${recorded:-$default}}
    if ! [[ $wanted =~ ^[1-9][0-9]{0,4}$ ]] || ((wanted > 65535)); then
      die "$setting=$wanted is not a port (1 to 65535)"
    fi
    [[ -z $recorded || $recorded == "$wanted" ]] ||
      die "$setting=$wanted, but the servers in .run/ use $recorded: run 'scripts/services.sh down' without it first"
    printf -v "$var" %s "$wanted"
  done < <(port_settings)
}

save_ports() {
  local var setting default
  mkdir -p "$run"
  while read -r var setting default; do
    echo "$setting=${!var}"
  done < <(port_settings) >"$run/ports"
}

# ports_of prints the shell variables of a server's ports, the main one first.
ports_of() {
  case $1 in
    redis) echo redis_port ;;
    mariadb) echo mysql_port ;;
    rabbitmq) echo amqp_port epmd_port dist_port ;;
  esac
}

main_port() {
  local vars
  read -ra vars <<<"$(ports_of "$1")"
  echo "${!vars[0]}"
}

# port_open is true when something accepts connections on the port.
port_open() {
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# require_free_ports refuses before anything has been started.
require_free_ports() {
  local server var setting
  for server in "$@"; do
    for var in $(ports_of "$server"); do
      if port_open "${!var}"; then
        setting=$(port_settings | sed -n "s/^$var \([A-Z_]*\) .*/\1/p")
        die "port ${!var} for $server is already in use: free it or choose another with $setting"
      fi
    done
  done
}

require_ports_closed() {
  local server var
  [[ -e $run/ports ]] || return 0
  for server in "${servers[@]}"; do
    for var in $(ports_of "$server"); do
      ! port_open "${!var}" || die "port ${!var} of $server is still open"
    done
  done
}

# pids_of prints every process that was started for the servers named. They
# carry a mark in their environment, which children inherit: that finds the
# Erlang port mapper and helpers too, and never a stranger who reuses an id.
pids_of() {
  local server marks=() pid
  for server in "$@"; do
    marks+=(-e "$mark=$run/$server")
  done
  grep -lzxF "${marks[@]}" /proc/[0-9]*/environ 2>/dev/null |
    while IFS=/ read -r _ _ pid _; do
      echo "$pid"
    done || true
}

# is_running tells whether a server of an earlier up is still there.
is_running() {
  if [[ -e $run/docker ]]; then
    "$1_answers"
    return
  fi
  [[ -r $run/$1/pid ]] && pids_of "$1" | grep -x "$(<"$run/$1/pid")" >/dev/null
}

# is_alive is for a server that this very call started or has seen running.
is_alive() {
  kill -0 "$(<"$run/$1/pid")" 2>/dev/null
}

# launch starts a server in a session of its own, so that Ctrl-C in a terminal
# stops the tests and leaves the servers to down. It goes through this script
# again because the mark of pids_of only shows once a process is executed.
launch() {
  local server=$1
  mkdir -p "$run/$server"
  env "$mark=$run/$server" setsid "$root/scripts/services.sh" serve "$server" \
    >"$run/$server/log" 2>&1 </dev/null 9<&- &
  echo $! >"$run/$server/pid"
}

# first_bytes connects, sends a request (printf format) and prints the first
# bytes of the answer in hexadecimal. Needs no client program.
first_bytes() {
  local port=$1 request=$2 count=$3
  (
    exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
    # shellcheck disable=SC2059 # the request is ours and holds escapes
    printf "$request" >&3
    timeout "$probe_seconds" head -c "$count" <&3 | od -An -tx1
  ) 2>/dev/null || true
}

# await_all waits for every server to answer, all under one deadline.
await_all() {
  local server deadline=$((SECONDS + await_seconds))
  for server in "${servers[@]}"; do
    until "${server}_answers"; do
      if ! is_alive "$server" || ((SECONDS >= deadline)); then
        warn "$server does not answer on port $(main_port "$server"); the end of its log:"
        tail -n "$log_tail_lines" "$run/$server/log" >&2
        exit 1
      fi
      sleep 0.1
    done
    say "$server is up on 127.0.0.1:$(main_port "$server")"
  done
}

# stop ends the servers named, with their helpers.
stop() {
  local pids signal=TERM deadline=$((SECONDS + stop_seconds))
  mapfile -t pids < <(pids_of "$@")
  while ((${#pids[@]} > 0)); do
    # One may end by itself between the listing and the signal.
    [[ -z $signal ]] || kill "-$signal" "${pids[@]}" 2>/dev/null || true
    signal=
    sleep 0.1
    if ((SECONDS >= deadline)); then
      warn "$* not stopped after $stop_seconds s, killing"
      signal=KILL deadline=$((SECONDS + stop_seconds))
    fi
    mapfile -t pids < <(pids_of "$@")
  done
}
