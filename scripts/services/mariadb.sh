# shellcheck shell=bash
# MariaDB: durable commits as in production, everything else small.

mariadb_serve() {
  local user data=$run/mariadb/data
  # Named even when it is root, which mariadbd otherwise refuses to be.
  user=$(id -un)
  if [[ ! -d $data ]]; then
    mkdir -p "$run/mariadb/tmp"
    # A data directory only counts once it is complete.
    rm -rf "$data.new"
    mariadb-install-db --no-defaults --user="$user" --datadir="$data.new" \
      --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve \
      --innodb-log-file-size=64M --innodb-flush-log-at-trx-commit=0
    mv "$data.new" "$data"
  fi
  # The socket's name is relative to the data directory: an absolute one may
  # exceed what the kernel takes in a deep checkout.
  exec mariadbd --no-defaults --user="$user" --datadir="$data" --tmpdir="$run/mariadb/tmp" \
    --bind-address=127.0.0.1 --port="$mysql_port" --socket=mariadb.sock \
    --pid-file="$run/mariadb/mariadbd.pid" --skip-name-resolve --skip-log-bin \
    --max-connections=300 --performance-schema=OFF \
    --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci \
    --innodb-flush-log-at-trx-commit=1 --innodb-buffer-pool-size=256M \
    --innodb-log-file-size=64M
}

mariadb_answers() {
  # The greeting's fifth byte is the protocol version; an error has ff there.
  [[ $(first_bytes "$mysql_port" '' 5) == *" 0a" ]]
}
