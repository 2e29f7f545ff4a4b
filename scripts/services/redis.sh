# shellcheck shell=bash
# Redis: nothing is persisted, and a full memory refuses writes instead of
# evicting, as the product demands of its Redis.

redis_serve() {
  # The process title is left alone because writing it would overwrite the
  # environment in which pids_of looks for its mark.
  exec redis-server --port "$redis_port" --bind 127.0.0.1 --dir "$run/redis" \
    --save '' --appendonly no --maxmemory-policy noeviction --set-proc-title no
}

redis_answers() {
  [[ $(first_bytes "$redis_port" 'PING\r\n' 5) == " 2b 50 4f 4e 47" ]] # +PONG
}
