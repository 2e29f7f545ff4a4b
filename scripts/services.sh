#!/usr/bin/env bash
# Private Redis, MariaDB and RabbitMQ for the tests: on 127.0.0.1, on ports of
# their own, with everything they write under .run/ in the repository root.
# Nothing here is meant to hold data that anybody wants to keep.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
run=$root/.run
# mariadbd and redis-server may live in sbin, which is not on every user's path.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# shellcheck source=scripts/services/common.sh
source "$root/scripts/services/common.sh"
# shellcheck source=scripts/services/install.sh
source "$root/scripts/services/install.sh"
# shellcheck source=scripts/services/redis.sh
source "$root/scripts/services/redis.sh"
# shellcheck source=scripts/services/mariadb.sh
source "$root/scripts/services/mariadb.sh"
# shellcheck source=scripts/services/rabbitmq.sh
source "$root/scripts/services/rabbitmq.sh"
# shellcheck source=scripts/services/docker.sh
source "$root/scripts/services/docker.sh"

usage() {
  cat <<TEXT
usage: scripts/services.sh up|down|env|status
  up      install what is missing, start what is not running, wait until it answers
  down    stop everything that up started and remove .run/
  env     print the addresses as shell exports, for eval
  status  one line per server
Ports (environment): STOCKADE_REDIS_PORT STOCKADE_MYSQL_PORT STOCKADE_AMQP_PORT
                     STOCKADE_EPMD_PORT STOCKADE_DIST_PORT
TEXT
}

up() {
  local server started=()
  for server in "${servers[@]}"; do
    is_running "$server" || started+=("$server")
  done
  if ((${#started[@]} > 0)); then
    # A broker that crashed leaves its port mapper behind.
    stop "${started[@]}"
    require_free_ports "${started[@]}"
    install_missing
    save_ports
    if [[ -e $run/docker ]]; then
      docker_up
      return
    fi
    # In parallel: RabbitMQ alone takes longer than the other two together.
    for server in "${started[@]}"; do
      launch "$server"
    done
  fi
  await_all
}

down() {
  if [[ -e $run/docker ]]; then
    docker_down
  fi
  stop "${servers[@]}"
  require_ports_closed
  rm -rf "$run"
}

print_env() {
  # Quoted, because a DSN holds parentheses that eval would trip over.
  echo "export STOCKADE_TEST_REDIS='127.0.0.1:$redis_port'"
  echo "export STOCKADE_TEST_MYSQL='root@tcp(127.0.0.1:$mysql_port)/'"
  echo "export STOCKADE_TEST_AMQP='amqp://guest:guest@127.0.0.1:$amqp_port/'"
}

status() {
  local server state exit_status=0
  for server in "${servers[@]}"; do
    state=down
    if "${server}_answers"; then state=up; else exit_status=1; fi
    printf '%-9s %-5s 127.0.0.1:%s\n' "$server" "$state" "$(main_port "$server")"
  done
  return "$exit_status"
}

main() {
  local command=${1:-}
  case $command in
    up | down)
      take_lock
      load_ports
      "$command"
      ;;
    serve) # internal: becomes the server named, see launch
      load_ports
      cd "$run/$2"
      "$2_serve"
      ;;
    env)
      load_ports
      print_env
      ;;
    status)
      load_ports
      status
      ;;
    -h | --help | help) usage ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
}

main "$@"
