#!/usr/bin/env bash
# A stranger's view: packages the crates, unpacks them outside of the workspace and builds a new program against them,
# with ROCKSDB_LIB_DIR alone. The program counts words with the Driver and prints the counts.
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
lib="${ROCKSDB_LIB_DIR:-$(native/build.sh)}"

# The files exactly as a registry would get them; not verified here because the program below builds them.
cargo package --workspace --exclude plimsoll-peer --no-verify --allow-dirty --quiet --target-dir "$work/package"
mkdir -p "$work/app/src"
for crate in "$work"/package/package/*.crate; do tar -xzf "$crate" -C "$work"; done
for crate in plimsoll plimsoll-alloc; do
  # A folder without a version, so that the next run finds what it compiled.
  mv "$work"/"$crate"-[0-9]* "$work/$crate"
done

cp "$root/Cargo.lock" "$work/app/Cargo.lock" # the same versions; cargo drops what the program does not need
cp "$root/tests/data/downstream.rs" "$work/app/src/main.rs"
cat > "$work/app/Cargo.toml" <<'TOML'
[package]
name = "downstream"
version = "0.0.0"
edition = "2024"

[dependencies]
plimsoll = "0.1"
plimsoll-alloc = "0.1"

[patch.crates-io]
plimsoll = { path = "../plimsoll" }
plimsoll-alloc = { path = "../plimsoll-alloc" }

[workspace]

[profile.dev]
debug = false
TOML

# As the README tells a stranger: two lines of environment. The compiled dependencies stay between runs.
cd "$work/app"
target="${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}/downstream"
env ROCKSDB_LIB_DIR="$lib" ROCKSDB_STATIC=1 CARGO_TARGET_DIR="$target" cargo build --quiet
output="$("$target/debug/downstream")"
echo "$output"
[ "$output" = "all=1 is=2 lost=2 nothing=1" ] || { echo "downstream.sh: other counts were expected" >&2; exit 1; }
