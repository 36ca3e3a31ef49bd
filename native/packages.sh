#!/usr/bin/env bash
# Makes sure that the system packages are there: native/packages.sh [build] [ssl] [test] …
#
#   build   what compiling needs: a C++ compiler, libclang for bindgen, zlib, zstd
#   ssl     what feature ssl needs besides: OpenSSL's headers
#   test    what the tests need besides: a Java runtime and Maven for Apache Kafka, valgrind to count instructions
#
# As root with apt-get the missing ones are installed; otherwise one error names all of them. Prints nothing when all is
# there.
set -euo pipefail

missing=()
need() { # PACKAGE COMMAND…: the package is missing when the command fails
  local package="$1"
  shift
  "$@" > /dev/null 2>&1 || missing+=("$package")
}
has() { command -v "$1"; }
header() { echo "#include <$1>" | cc -E -x c - ; }
libclang() {
  ldconfig -p | grep -q 'libclang[-.0-9]*\.so' || compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' ||
    compgen -G "${LIBCLANG_PATH:-/nonexistent}/libclang*.so*"
}
look() {
  missing=()
  for set in "$@"; do
    case "$set" in
      build)
        need build-essential has cc
        need clang has clang++
        need libclang-dev libclang
        need zlib1g-dev header zlib.h
        need libzstd-dev header zstd.h
        need pkg-config has pkg-config
        ;;
      test)
        need default-jdk-headless has java
        need maven has mvn
        need valgrind has valgrind
        ;;
      ssl) need libssl-dev header openssl/ssl.h ;;
      *) echo "packages.sh: no set of packages is called $set" >&2; exit 2 ;;
    esac
  done
}

look "$@"
[ "${#missing[@]}" -eq 0 ] && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get > /dev/null; then
  echo "packages.sh: installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } < /dev/null >&2 || true
  look "$@"
  [ "${#missing[@]}" -eq 0 ] && exit 0
fi
echo "packages.sh: these packages are missing: ${missing[*]} (Debian: apt-get install ${missing[*]})" >&2
exit 1
