#!/bin/sh
# Makes archives of precompiled libraries, and the file that names them.
#
#   scripts/precompile.sh [TARGET...]    as Rust calls targets; without one, that of this machine
#   scripts/precompile.sh --no-archive TARGET    builds and checks a library, and prints its path
#   scripts/precompile.sh --needs LIBRARY TARGET    checks the needs of a library that is built, and
#                                                   prints them
#   scripts/precompile.sh --can TARGET    prints why this machine cannot build a library, and fails
#
# They go to _build/precompiled, which users name by ATS_PRECOMPILED_URL, there or where it was
# copied to. checksums.term, in that folder and in the package, gets the names and sums of all
# archives of this version that are in that folder. The needs of a library are checked first: one
# for glibc may need ATS_GLIBC or an older version of it, 2.31 by default. `make precompiled' makes
# a library for this machine's.
#
# With cargo-zigbuild (`pip install ziglang cargo-zigbuild`) a library for Linux needs no glibc
# newer than ATS_GLIBC, wherever it is built. Without it, build on a system that is as old. Then a
# library for musl is linked by musl-gcc (Debian: musl-tools), for the kind of processor of this
# machine, and one for glibc and another kind by the compiler of that name, such as
# aarch64-linux-gnu-gcc (Debian: gcc-aarch64-linux-gnu). Each needs `rustup target add`.
#
#   ATS_NIF_PATH    a library that is built already, for the one target
#   ATS_PROFILE     a profile of cargo in the place of `release`, for tests
set -eu
cd "$(dirname "$0")/.."

folder=_build/precompiled
version=$(sed -n 's/.*{vsn, "\(.*\)"}.*/\1/p' src/ats.app.src)
interface=$(sed -n 's/.*NIF_VERSION: .* = (\([0-9]*\), \([0-9]*\));/\1.\2/p' \
    crates/ats-nif/src/sys.rs)
output=${CARGO_TARGET_DIR:-target}/precompiled
glibc=${ATS_GLIBC:-2.31}
profile=${ATS_PROFILE:-release}

# Sets `build' to the command of cargo, and `linker' to a program that cargo does not know of.
choose_linker() {
    build=build
    linker=
    case $1 in
        *-linux-*) ! cargo-zigbuild --version >/dev/null 2>&1 || build=zigbuild ;;
    esac
    case $build$1 in
        build"$(uname -m)"-*-linux-gnu) ;;
        build*-linux-musl) linker=musl-gcc ;;
        build*-linux-gnu) linker=${1%%-*}-linux-gnu-gcc ;;
    esac
}

# Prints why there can be no library for a target, and fails; otherwise succeeds.
can_build() {
    choose_linker "$1"
    host=$(rustc -vV | sed -n 's/^host: //p')
    case $1 in
        *-linux-* | "$host") ;;
        *) echo "it is no Linux, and this machine is no ${1#*-}" && return 1 ;;
    esac
    if [ ! -d "$(rustc --print target-libdir --target "$1" 2>/dev/null)" ]; then
        echo "Rust has no standard library for it (rustup target add $1)"
    elif [ -n "$linker" ] && ! command -v "$linker" >/dev/null 2>&1; then
        echo "there is no $linker (Debian: musl-tools, gcc-aarch64-linux-gnu), nor cargo-zigbuild"
    elif [ "$linker" = musl-gcc ] && [ "${1%%-*}" != "$(uname -m)" ]; then
        echo "musl-gcc links for $(uname -m) only, and there is no cargo-zigbuild"
    else
        return 0
    fi
    return 1
}

# Sets `library'.
build() {
    choose_linker "$1"
    named=$1
    flags=${RUSTFLAGS:-}
    # Without this there is nothing but static programs for musl.
    case $1 in *-linux-musl*) flags="$flags -C target-feature=-crt-static" ;; esac
    case $build$1 in zigbuild*-linux-gnu*) named=$1.$glibc ;; esac
    if [ -n "$linker" ] && command -v "$linker" >/dev/null 2>&1; then
        name=$(echo "$1" | tr 'a-z-' 'A-Z_')
        export "CARGO_TARGET_${name}_LINKER=$linker"
    fi
    RUSTFLAGS=$flags cargo "$build" --profile "$profile" --locked -p ats-nif --target "$named" \
        --target-dir "$output"
    case $1 in
        *-darwin) library=$output/$1/$profile/libats_nif.dylib ;;
        *) library=$output/$1/$profile/libats_nif.so ;;
    esac
}

# Checks that a library needs nothing that its target may lack: check_needs LIBRARY TARGET. One for
# musl may not need libgcc_s, which small systems do not have. Each stays in memory once it is
# loaded. Libraries of other systems are not looked at.
check_needs() {
    case $2 in
        *-linux-gnu*) allowed='lib(c|m|pthread|dl|rt|gcc_s)\.so\.[0-9]+|ld-linux[a-z0-9_.-]*' ;;
        *-linux-musl*) allowed='libc\.so|libc\.musl-[a-z0-9_]+\.so\.1' ;;
        *)
            echo "precompile.sh: the needs of a library for $2 are unknown" >&2
            return 0
            ;;
    esac
    checked=$1
    status=0
    dynamic=$(LC_ALL=C readelf --wide --dynamic "$1")
    for needed in $(echo "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
        echo "$needed" | grep -qxE "$allowed" || refuse "needs $needed"
    done
    echo "$dynamic" | grep -q '(FLAGS_1).*NODELETE' || refuse "is not marked NODELETE"
    LC_ALL=C readelf --wide --dyn-syms "$1" | grep -qE ' [1-9][0-9]* nif_init$' ||
        refuse "has no function nif_init"
    newest=$(LC_ALL=C readelf --wide --version-info "$1" |
        sed -n 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' | sort -uV | tail -n 1)
    case $2 in
        *-linux-musl*) [ -z "$newest" ] || refuse "needs glibc $newest" ;;
        *)
            [ "$(printf '%s\n' "$newest" "$glibc" | sort -V | tail -n 1)" = "$glibc" ] ||
                refuse "needs glibc $newest, which is newer than $glibc"
            ;;
    esac
    return $status
}

refuse() {
    echo "precompile.sh: $checked $*" >&2
    status=1
}

# The same library gives the same bytes.
archive() {
    mkdir -p "$folder/one"
    cp "$library" "$folder/one/ats_nif.so"
    tar -C "$folder/one" --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=755 \
        -cf - ats_nif.so | gzip -9n >"$folder/ats_nif-$version-nif-$interface-$1.tar.gz"
    rm -r "$folder/one"
}

if [ "${1:-}" = --can ]; then
    can_build "$2"
    exit
fi
if [ "${1:-}" = --needs ]; then
    check_needs "$2" "$3"
    echo "needs" $(echo "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p') \
        ${newest:+and glibc "$newest"}
    exit
fi
if [ "${1:-}" = --no-archive ]; then
    build "$2"
    check_needs "$library" "$2"
    echo "$library"
    exit
fi
[ $# -gt 0 ] || set -- "$(rustc -vV | sed -n 's/^host: //p')"
for target; do
    if [ -n "${ATS_NIF_PATH:-}" ]; then
        library=$ATS_NIF_PATH
    else
        build "$target"
    fi
    check_needs "$library" "$target"
    archive "$target"
done

{
    echo "%% SHA-256 of the archives with precompiled libraries (see scripts/precompiled.escript)."
    (cd "$folder" && sha256sum "ats_nif-$version-nif-"*.tar.gz) |
        sed 's/^\([0-9a-f]*\)  \(.*\)$/{"\2",\n "\1"}./'
} >checksums.term
cp checksums.term "$folder"
cat checksums.term
echo "A project takes the library by ATS_PRECOMPILED_URL=file://$(cd "$folder" && pwd)" >&2
echo "The folder may be moved as a whole. A server needs ATS_PRECOMPILED_CHECKSUMS besides, which" \
    "names a copy of checksums.term." >&2
