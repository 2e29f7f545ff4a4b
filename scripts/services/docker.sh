# shellcheck shell=bash
# The same servers from container images, for who cannot install packages.

compose() {
  REDIS_PORT=$redis_port MYSQL_PORT=$mysql_port AMQP_PORT=$amqp_port \
    docker compose -f "$root/scripts/services.compose.yaml" -p "$(compose_project)" "$@"
}

# compose_project differs between two checkouts on one machine.
compose_project() {
  echo "stockade-$(cksum <<<"$root" | cut -d' ' -f1)"
}

docker_up() {
  say "starting containers"
  compose up --detach --wait --wait-timeout "$await_seconds" ||
    {
      compose logs --tail "$log_tail_lines" >&2
      die "the containers did not become healthy"
    }
}

docker_down() {
  compose down --volumes --timeout "$stop_seconds"
}
