#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, for FUZZTIME each
# (default 10s). go test takes one target at a time, so they are looked up.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzztime=${FUZZTIME:-10s}
found=0
while IFS=: read -r file target; do
  found=1
  echo "fuzz: $target in ${file%/*}"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "${file%/*}"
done < <(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/func //')
((found)) || {
  echo "fuzz: no fuzz target found" >&2
  exit 1
}
