#!/bin/sh
# run.sh TARGET SECONDS: builds a fuzz target with a nightly compiler and runs it from its seeds. No cargo-fuzz needed.
# What it finds is left in fuzz/artifacts/TARGET; what it learnt in fuzz/corpus/TARGET.
set -eu
target=${1:?target: wire, codec or allocator} seconds=${2:-30}
cd "$(dirname "$0")"
triple=$(rustc +nightly -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-trace-compares"
case $target in
  allocator) sanitizer="" features="--features allocator" ;; # it is the allocator that is tested: none in front of it
  *) sanitizer="-Zsanitizer=address" features="" ;;
esac
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
# shellcheck disable=SC2086
RUSTFLAGS=$(echo --cfg fuzzing $coverage $sanitizer) \
  ${CARGO:-cargo} +nightly build --release --target "$triple" --bin "$target" $features
mkdir -p "corpus/$target" "artifacts/$target"
exec "$CARGO_TARGET_DIR/$triple/release/$target" -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=1024 \
  -print_final_stats=1 -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target"
