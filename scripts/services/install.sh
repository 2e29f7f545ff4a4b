# shellcheck shell=bash
# Installing what is missing: by apt-get as root, else containers, else a
# message. The race detector needs gcc and the C library's headers; the runbook's
# pages need curl.

readonly policy=/usr/sbin/policy-rc.d
readonly policy_mark='# written while the test services of stockade are installed'
readonly apt_lock_seconds=300

missing_servers() {
  command -v redis-server >/dev/null || echo redis-server
  command -v mariadbd >/dev/null || echo mariadb-server
  [[ -x $rabbitmq_program ]] || echo rabbitmq-server
}

missing_tools() {
  command -v curl >/dev/null || echo curl
  command -v gcc >/dev/null || echo gcc
  gcc -E -include stdlib.h -x c /dev/null >/dev/null 2>&1 || echo libc6-dev
}

install_missing() {
  local servers_missing tools_missing
  mapfile -t servers_missing < <(missing_servers)
  mapfile -t tools_missing < <(missing_tools)
  local all=("${servers_missing[@]}" "${tools_missing[@]}")
  ((${#all[@]} > 0)) || return 0
  if ((EUID == 0)) && command -v apt-get >/dev/null; then
    apt_install "${all[@]}"
    return
  fi
  ((${#tools_missing[@]} == 0)) || refuse "${all[@]}"
  docker info >/dev/null 2>&1 || refuse "${all[@]}"
  mkdir -p "$run"
  touch "$run/docker"
}

refuse() {
  die "missing: $*. Install with: sudo apt-get install -y --no-install-recommends $*"
}

# apt_install keeps the packages' own services from starting now and at boot:
# the tests use private instances, and a machine that only wanted to run tests
# should not end up serving a database.
apt_install() (
  local log=$run/install.log
  say "installing $*"
  mkdir -p "$run"
  # One checkout at a time: the policy below belongs to the whole machine.
  exec 8</var/lib/dpkg
  flock -w "$lock_seconds" 8 || die "another checkout has been installing for $lock_seconds s"
  export DEBIAN_FRONTEND=noninteractive
  forbid_service_starts
  trap allow_service_starts EXIT
  trap 'exit 130' INT TERM
  {
    apt-get -q update &&
      apt-get -qy -o "DPkg::Lock::Timeout=$apt_lock_seconds" install --no-install-recommends "$@"
  } >"$log" 2>&1 </dev/null 8<&- 9<&- || {
    tail -n "$log_tail_lines" "$log" >&2
    die "apt-get could not install: $*"
  }
  disable_services "$@"
)

forbid_service_starts() {
  # One of ours is what a killed run left behind, nothing to restore later.
  if [[ -e $policy ]] && ! grep -qxF "$policy_mark" "$policy"; then
    mv "$policy" "$policy.stockade-saved"
  fi
  # 101: action forbidden by policy.
  printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >"$policy"
  chmod 755 "$policy"
}

allow_service_starts() {
  rm -f "$policy"
  if [[ -e $policy.stockade-saved ]]; then
    mv "$policy.stockade-saved" "$policy"
  fi
}

disable_services() {
  local package
  command -v systemctl >/dev/null || return 0
  for package in "$@"; do
    case $package in
      redis-server) systemctl --quiet disable redis-server ;;
      mariadb-server) systemctl --quiet disable mariadb ;;
      rabbitmq-server) systemctl --quiet disable rabbitmq-server epmd.socket epmd.service ;;
    esac >/dev/null 2>&1 || true
  done
}
