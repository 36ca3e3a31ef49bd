#!/usr/bin/env bash
# One long case: tests/long.sh CASE. Each takes at most ten minutes; its log is kept in the cache. Without a case it lists
# them. Every case has a short form in `make test`.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

list() {
  cat <<'LIST'
line        4,000,000 records against a real broker in a container hardly larger than the line
faults      the tests of killed processes and brokers, again and again for eight minutes
conformance 5,000 scenarios of each generator, or SEEDS=FIRST:COUNT, against Apache Kafka's own answers
drift       100,000,000 allocations on one thread freed on another: no byte is lost
fuzz        each fuzz target for four minutes
compile     how long a topology of 100 operators takes to build in release, over the library itself
LIST
}
repeat() { # MINUTES COMMAND…: until the time is over or it fails
  local until=$((SECONDS + $1 * 60)) rounds=0
  shift
  while [ "$SECONDS" -lt "$until" ]; do
    "$@" || return 1
    rounds=$((rounds + 1))
  done
  echo "$rounds rounds"
}

conformance() {
  local generator
  for generator in handed wide; do
    cargo test --quiet --test conformance -- --seeds "${SEEDS:-0:5000}" --generator "$generator" || return 1
  done
}

case "${1:-}" in
  conformance) command=(conformance) ;;
  line) command=(cargo test --release --test line -- --long) ;;
  faults) command=(repeat 8 cargo test --quiet --test faults) ;;
  drift) command=(cargo test --release -p plimsoll-alloc --test drift -- --ignored --test-threads=1 a_hundred_million) ;;
  compile) command=(tests/compile_time.sh) ;;
  fuzz) command=(env FUZZ_SECONDS=240 ./.ci/fuzz) ;;
  *)
    list
    [ -z "${1:-}" ]
    exit
    ;;
esac
log="${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}/long/$1.log"
mkdir -p "$(dirname "$log")"
"${command[@]}" < /dev/null 2>&1 | tee "$log"
status="${PIPESTATUS[0]}"
if [ "$status" -eq 0 ]; then echo "long case $1: passed (log: $log)"; else echo "long case $1: FAILED (log: $log)"; fi
exit "$status"
