#!/usr/bin/env bash
# Everything that `make test` runs. Ends with one line `N passed, N failed` (`, N skipped` where a test could not run
# here) and the exit code that belongs to it. Arguments go to cargo test (`tests/run.sh --lib budget`).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export PLIMSOLL_SKIPPED="$work/skipped"
: > "$PLIMSOLL_SKIPPED"

passed=0 failed=0 broken=0
# Runs one cargo test and adds up its result lines; a run that ends badly without a failed test counts as one failure.
run() {
  local log="$work/log" status before="$failed" line
  echo "== cargo test $*"
  cargo test --no-fail-fast "$@" < /dev/null 2>&1 | tee "$log"
  status="${PIPESTATUS[0]}"
  while IFS= read -r line; do
    [[ "$line" =~ ([0-9]+)\ passed\;\ ([0-9]+)\ failed ]] || continue
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
  done < <(grep -a '^test result:' "$log")
  if [ "$status" -ne 0 ] && [ "$failed" -eq "$before" ]; then broken=$((broken + 1)); fi
}
# Runs one command as a test of its own.
command_test() {
  local name="$1"
  shift
  echo "== $name"
  if "$@" < /dev/null; then passed=$((passed + 1)); echo "ok: $name"; else failed=$((failed + 1)); echo "FAILED: $name"; fi
}

if [ "$#" -gt 0 ]; then
  run "$@"
else
  run --workspace --all-features
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
