#!/usr/bin/env bash
# Everything that `make test` runs. Ends with one line `N passed, N failed` (`, N skipped` where a test could not run
# here) and the exit code that belongs to it. Arguments go to cargo test (`tests/run.sh --lib budget`).
#
# Tests that mostly wait (for brokers, for time-outs) run beside those that compute; those whose figures want the machine
# for themselves come last, alone.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

waiting=(faults wire_faults security broker on_kafka)
alone=(line zero_alloc_engine consumer_memory alloc_attribution drift figures hosts instructions threads)

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export PLIMSOLL_SKIPPED="$work/skipped"
: > "$PLIMSOLL_SKIPPED"

passed=0 failed=0 broken=0
# One cargo test, its output in a file of this name, its exit status beside it.
cargo_test() {
  local log="$work/$1.log"
  shift
  echo "== cargo test $*" > "$log"
  cargo test --no-fail-fast "$@" < /dev/null >> "$log" 2>&1
  echo "$?" > "${log%.log}.status"
}
# Adds up the result lines of a file; a run that ends badly without a failed test counts as one failure.
count() {
  local log="$work/$1.log" before="$failed" line
  while IFS= read -r line; do
    [[ "$line" =~ ([0-9]+)\ passed\;\ ([0-9]+)\ failed ]] || continue
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
  done < <(grep -a '^test result:' "$log")
  if [ "$(cat "$work/$1.status")" != 0 ] && [ "$failed" -eq "$before" ]; then broken=$((broken + 1)); fi
}
# The same with the output on the screen while it runs.
run() {
  local tail
  : > "$work/$1.log"
  tail -n +1 -f "$work/$1.log" &
  tail=$!
  cargo_test "$@"
  sleep 0.2 # the last lines are on the screen by then
  kill "$tail" && wait "$tail" 2> /dev/null
  count "$1"
}
# Runs one command as a test of its own.
command_test() {
  local name="$1"
  shift
  echo "== $name"
  if "$@" < /dev/null; then passed=$((passed + 1)); echo "ok: $name"; else failed=$((failed + 1)); echo "FAILED: $name"; fi
}
# `--test NAME` for each argument.
tests() {
  printf -- '--test\n%s\n' "$@"
}
# Names of all integration tests of the package that are in neither list.
others() {
  local path name
  for path in tests/*.rs tests/*/main.rs; do
    name="${path#tests/}"
    name="${name%/main.rs}"
    name="${name%.rs}"
    [[ " ${waiting[*]} ${alone[*]} " == *" $name "* ]] || echo "$name"
  done
}

all=(--workspace --all-features)
if [ "$#" -gt 0 ]; then
  run given "$@"
elif ! cargo test "${all[@]}" --no-run; then
  broken=1
else
  mapfile -t now < <(tests "${waiting[@]}")
  { cargo_test waiting "${all[@]}" "${now[@]}"; cargo_test doc "${all[@]}" --doc; } &
  beside=$!
  run units "${all[@]}" --lib --bins
  mapfile -t now < <(others | xargs printf -- '--test\n%s\n')
  run others "${all[@]}" "${now[@]}"
  wait "$beside"
  cat "$work/waiting.log" "$work/doc.log"
  count waiting
  count doc
  mapfile -t now < <(tests "${alone[@]}")
  run alone "${all[@]}" "${now[@]}"
  command_test "the packaged crates build outside of the workspace" tests/downstream.sh
fi

failed=$((failed + broken))
skipped="$(wc -l < "$PLIMSOLL_SKIPPED" | tr -d ' ')"
sort -u "$PLIMSOLL_SKIPPED"
summary="$passed passed, $failed failed"
if [ "$skipped" -gt 0 ]; then
  # A test that could not run returned early and was counted as passed.
  summary="$((passed - skipped)) passed, $failed failed, $skipped skipped"
fi
echo "$summary"
[ "$failed" -eq 0 ] && { [ "$skipped" -eq 0 ] || [ "${CI:-}" != true ]; }
