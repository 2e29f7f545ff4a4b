#!/usr/bin/env bash
# Formatting, vet and staticcheck, over the plain build and over the files that
# only the tests with real servers see. Prints every finding, fails at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
check() {
  "$@" || status=1
}

# gofumpt lists what it would change and still exits 0.
# shellcheck disable=SC2317 # called by check
formatted() {
  local files
  files=$(find . -name '*.go' -not -path './.*' -exec go tool gofumpt -l {} +)
  [[ -z $files ]] || {
    printf 'not formatted by gofumpt: %s\n' "$files"
    return 1
  }
}

check formatted
check go vet ./...
check go vet -tags services,soak ./...
check go tool staticcheck ./...
check go tool staticcheck -tags services,soak ./...
exit "$status"
