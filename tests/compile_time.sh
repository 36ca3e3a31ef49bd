#!/usr/bin/env bash
# What a large topology costs its users: builds a program of 100 operators in release over the compiled library, and says
# how long that took beyond a program with one operator, and how much larger it is. Fails above LIMIT_S seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"
limit="${LIMIT_S:-20}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
target="${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}/compile-time"
mkdir -p "$work/src/bin"
cp Cargo.lock "$work/Cargo.lock"
cat > "$work/Cargo.toml" <<TOML
[package]
name = "compile-time"
version = "0.0.0"
edition = "2024"

[dependencies]
plimsoll = { path = "$root" }

[workspace]

[profile.release]
debug = false
TOML

# Twenty chains of five different operators, each with closures of its own: no two nodes have the same type.
chains() {
  local i
  for ((i = 0; i < $1; i++)); do
    cat <<RUST
fn chain_$i(builder: &StreamsBuilder) {
    builder
        .stream("in-$i", Consumed::with(Utf8, Utf8))
        .filter(|_, value| value.len() > $i)
        .map_values(I64, |value| value.len() as i64 + $i)
        .group_by(I64, |_, value| value % ($i + 2))
        .aggregate(I64, Materialized::named("sums-$i"), || $i, |_, value, sum| *sum += value)
        .to_stream()
        .map_values(Text, |sum| format!("$i {sum:?}"))
        .to("out-$i");
}
RUST
  done
  echo 'fn main() { let builder = StreamsBuilder::new();'
  for ((i = 0; i < $1; i++)); do echo "chain_$i(&builder);"; done
  echo 'let topology = builder.build().expect("a topology"); println!("{}", topology.describe().lines().count()); }'
}
echo 'fn main() {}' > "$work/src/main.rs"
for n in 1 20; do
  { echo 'use plimsoll::prelude::*;'; chains "$n"; } > "$work/src/bin/chains_$n.rs"
done

cd "$work"
export CARGO_TARGET_DIR="$target"
cargo build --release --quiet --bin compile-time # the library and what it needs
seconds() {
  local from to
  from="$(date +%s%N)"
  cargo build --release --quiet --bin "$1"
  to="$(date +%s%N)"
  echo "$(((to - from) / 1000000))"
}
one="$(seconds chains_1)"
many="$(seconds chains_20)"
size() { stat -c %s "$target/release/$1"; }
nodes="$("$target/release/chains_20" | tail -1)"
printf '{"operators":%d,"ms":%d,"ms_of_one_chain":%d,"bytes":%d,"bytes_of_one_chain":%d,"described_lines":%d}\n' \
  "$((20 * 5))" "$many" "$one" "$(size chains_20)" "$(size chains_1)" "$nodes"
if [ "$many" -gt "$((limit * 1000))" ]; then
  echo "compile_time.sh: $many ms, more than $limit s" >&2
  exit 1
fi
