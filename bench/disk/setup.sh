#!/bin/sh
# Makes sure that what RocksDB needs to be built is on this machine: a C++ compiler, and libclang,
# with which its header is read. Installs both on Debian and its relatives, and says what is missing
# elsewhere.
set -eu

say() { echo "bench-disk: $*"; }

fail() {
    echo "bench-disk: $*" >&2
    exit 1
}

# The library of C functions; libclang-cpp, which often stands beside it, is another.
has_libclang() {
    for folder in "${LIBCLANG_PATH:-/usr/lib}" /usr/lib/llvm-*/lib /usr/lib* /usr/lib/*; do
        for library in "$folder"/libclang.so* "$folder"/libclang-[0-9]*.so*; do
            [ -e "$library" ] && return 0
        done
    done
    return 1
}

missing_packages() {
    command -v c++ >/dev/null 2>&1 || echo g++
    has_libclang || echo libclang-dev
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

packages=$(missing_packages | tr '\n' ' ')
[ -n "$packages" ] || exit 0
command -v apt-get >/dev/null 2>&1 ||
    fail "RocksDB, which is measured too, needs a C++ compiler and libclang (Debian: $packages)"
[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null 2>&1 ||
    fail "installing packages needs root or sudo; as root run: apt-get install $packages"
say "installing $packages for RocksDB"
as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
# shellcheck disable=SC2086 # a list of words
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
