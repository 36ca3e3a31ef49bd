#!/bin/bash
# Prints the directory with the jars of Apache Kafka (and Kafka Streams) for tests and benches; collects them with
# Maven the first time, into a cache outside the checkout. Everything but the directory goes to stderr.
#
#   PLIMSOLL_CACHE    the cache (default: ~/.cache/plimsoll)
#   PLIMSOLL_KAFKA    a directory with the jars, to use instead of the cache
set -euo pipefail

if [ -n "${PLIMSOLL_KAFKA:-}" ]; then
  echo "$PLIMSOLL_KAFKA"
  exit 0
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(sed -n 's:.*<kafka>\(.*\)</kafka>.*:\1:p' "$here/kafka/pom.xml")
lib="${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}/kafka/$version"

if [ ! -f "$lib/complete" ]; then
  mkdir -p "$lib"
  # One at a time: test binaries may start together.
  exec 9> "$lib/lock"
  flock 9
  if [ ! -f "$lib/complete" ]; then
    command -v mvn > /dev/null || { echo "kafka.sh: Maven (mvn) is missing: install it, or set PLIMSOLL_KAFKA" >&2; exit 1; }
    echo "kafka.sh: collecting Apache Kafka $version into $lib (once, about 130 MB)" >&2
    build=$(mktemp -d)
    trap 'rm -rf "$build"' EXIT
    cp "$here/kafka/pom.xml" "$build/"
    mvn -B -q -f "$build/pom.xml" dependency:copy-dependencies -DoutputDirectory="$lib" >&2
    touch "$lib/complete"
  fi
fi
echo "$lib"
