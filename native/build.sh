#!/usr/bin/env bash
# Builds librocksdb.a once into a cache outside the checkout and prints the directory it lies in.
#
# The crate librocksdb-sys compiles one object a source file, which takes more than an hour on two cores. Here the same
# sources (those inside the crate, found through `cargo metadata`) are compiled as unity groups of 16 files. The result is
# keyed by crate version, architecture, compiler and this script, so that every profile and checkout shares it:
#
#   export ROCKSDB_LIB_DIR="$(native/build.sh)" ROCKSDB_STATIC=1
#
# PLIMSOLL_CACHE moves the cache (default: ~/.cache/plimsoll). Exit code 1 with one line on stderr when something is missing.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
cache="${PLIMSOLL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/plimsoll}"
cxx="${PLIMSOLL_CXX:-clang++}"
die() { echo "native/build.sh: $*" >&2; exit 1; }
command -v "$cxx" >/dev/null || die "$cxx is not installed (Debian: apt-get install clang), or name another with PLIMSOLL_CXX"
command -v ar >/dev/null || die "ar is not installed (Debian: apt-get install binutils)"

root="${PLIMSOLL_MANIFEST_DIR:-$here/..}"
metadata="$(cd "$root" && cargo metadata --format-version 1 --locked 2>/dev/null || cd "$root" && cargo metadata --format-version 1)"
crate_dir() {
  local path
  path="$(grep -o "\"manifest_path\":\"[^\"]*/$1-[0-9][^\"/]*/Cargo.toml\"" <<<"$metadata" | head -1 | cut -d'"' -f4)"
  [ -n "$path" ] || die "cargo metadata names no crate $1"
  dirname "$path"
}
rocks="$(crate_dir librocksdb-sys)"
zstd="$(crate_dir zstd-sys)/zstd/lib"
lz4="$(crate_dir lz4-sys)/liblz4/lib"

defines=(LZ4=1 ZSTD=1 NDEBUG=1 HAVE_ALIGNED_NEW HAVE_UINT128_EXTENSION OS_LINUX ROCKSDB_PLATFORM_POSIX ROCKSDB_LIB_IO_POSIX
  ROCKSDB_SCHED_GETCPU_PRESENT ROCKSDB_AUXV_GETAUXVAL_PRESENT ROCKSDB_FALLOCATE_PRESENT ROCKSDB_RANGESYNC_PRESENT)
case "$(uname -m)" in
  x86_64) arch=(-msse4.2 -mpclmul) ;;
  aarch64 | arm64) arch=(-march=armv8-a+crc+crypto) ;;
  *) arch=() ;;
esac
flags=(-std=c++20 -O2 -fPIC -w -include cstdint -ffunction-sections -fdata-sections "${arch[@]}" "${defines[@]/#/-D}"
  "-I$rocks/rocksdb/include" "-I$rocks/rocksdb" "-I$rocks" "-I$zstd" "-I$lz4")

# Paths differ from machine to machine and do not change the code: leave them out of the key.
key="$( (basename "$rocks"; uname -m; "$cxx" --version | head -1; cat "$here/build.sh") | sha256sum | cut -c1-16)"
out="$cache/native/$(basename "$rocks")-$key"
if [ -f "$out/librocksdb.a" ]; then echo "$out"; exit 0; fi

mkdir -p "$cache/native"
exec 9>"$cache/native/.lock"
flock 9
if [ -f "$out/librocksdb.a" ]; then echo "$out"; exit 0; fi
echo "building RocksDB once into $out (about 9 minutes on two cores)" >&2
work="$out.work"
mkdir -p "$work"; rm -f "$work"/*.cc # objects of a build that was interrupted are taken up again

# One unity file for up to 16 sources of one folder.
group=0; last=""; n=0
while IFS= read -r file; do
  case "$file" in '' | *build_version.cc*) continue ;; esac
  dir="$(dirname "$file")"
  if [ "$dir" != "$last" ] || [ "$n" -eq 16 ]; then group=$((group + 1)); n=0; last="$dir"; fi
  echo "#include \"$rocks/rocksdb/$file\"" >>"$work/$(printf 'unity_%03d' "$group").cc"
  n=$((n + 1))
done < <(sort "$rocks/rocksdb_lib_sources.txt")
cp "$rocks/build_version.cc" "$work/build_version.cc"

jobs="$(nproc 2>/dev/null || echo 2)"
find "$work" -name '*.cc' -print0 | sort -z |
  xargs -0 -P "$jobs" -I{} sh -c 'o="${1%.cc}"; shift; [ -f "$o.o" ] || { "$@" -c "$o.cc" -o "$o.part" && mv "$o.part" "$o.o"; } || exit 255' _ {} "$cxx" "${flags[@]}" >&2 ||
  die "a unity group did not compile; the objects so far are in $work"
ar crs "$work/librocksdb.a" "$work"/*.o
rm -f "$work"/*.o "$work"/*.cc
mv "$work" "$out"
echo "$out"
