#!/usr/bin/env bash
# Builds the programs and runs them; arguments as `bench-peer throughput --help` says. `make bench-peer` sets up the rest.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p plimsoll-peer
exec "${CARGO_TARGET_DIR:-target}/release/bench-peer" throughput "$@"
