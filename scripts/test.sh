#!/usr/bin/env bash
# Everything: the tests with the race detector on real servers, and lint. The
# servers are stopped whatever happens, Ctrl-C included; the count comes last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly test_timeout=20m # for one package
readonly bin=.bin
readonly count=$bin/test-count

tests=

# shellcheck disable=SC2317 # called by the trap
stop_services() {
  local status=$?
  trap '' INT TERM # a second Ctrl-C must not leave servers behind
  trap - EXIT
  [[ -z $tests ]] || kill -TERM -- "-$tests" 2>/dev/null || true
  scripts/services.sh down || status=1
  [[ ! -s $count ]] || cat "$count"
  rm -f "$count"
  exit "$status"
}

mkdir -p "$bin"
rm -f "$count"
trap stop_services EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

scripts/services.sh up
eval "$(scripts/services.sh env)"
CGO_ENABLED=0 go build -o "$bin/testsummary" ./scripts/testsummary

# The random histories run in full, and what has a bound of time runs alone, without
# the race detector, which makes them five times as long. The longest packages come first, so that the last one is short.
# -count=1: go would take a cached result for good, knowing nothing of servers. -vet=off: lint vets all of it.
go_tests() {
  local status=0
  CGO_ENABLED=1 go test -json -count=1 -vet=off -race -tags services -timeout "$test_timeout" \
    ./cmd/stockade/drill ./biz/service ./scripts/planted ./cmd/stockade/e2e ./... || status=1
  CGO_ENABLED=0 go test -json -count=1 -vet=off -tags services \
    -run '^(TestModel(Embedded|Durability|Real|DurabilityReal)|TestManyOrdersExpireAtOnce(Real)?|TestReshareIsFastEnough)$' \
    ./biz/service || status=1
  return "$status"
}

# A pipeline fails when either go test or the summary does.
run_tests() {
  go_tests | "$bin/testsummary" -count "$count"
}

# In a process group of its own: bash runs a trap at once while it waits for a
# background job, and the whole group can be told to stop.
status=0
set -m
run_tests &
tests=$!
set +m
wait "$tests" || status=1
tests=

if scripts/lint.sh; then
  echo "lint: ok"
else
  echo "lint: FAILED"
  status=1
fi
exit "$status"
