#!/bin/sh
# Builds the native library and puts it at priv/ats_nif.so.
#
# Called by rebar3 and by Mix before they compile; harmless to call at any time, also several
# times at once. Two profiles of rebar3 get another library: that of `test` lets tests force tables
# to adapt (the feature `forcing`), and those of `test` and `bench` have stores for comparison (the
# feature `rivals`). Each goes into the folder of its profile, so none is ever in the place of
# another. These variables change what it does:
#
#   ATS_SKIP_NIF_BUILD  if set and not empty: keep the library that is there
#   ATS_NIF_PATH        a library built elsewhere, to be used instead of building one
#   ATS_PRECOMPILED_URL a folder of precompiled libraries (http, https or file). If none fits,
#                       which is said, cargo builds it (see scripts/precompiled.escript)
#   ATS_CARGO_FLAGS     further flags for cargo, for example "--offline"
#   ATS_PRECOMPILED_CHECKSUMS   a file with the SHA-256 of each, in the place of checksums.term
#   ATS_PRECOMPILED_CACHE   a folder in which fetched libraries are kept
#   HTTPS_PROXY, HTTP_PROXY, NO_PROXY   proxies, through which they are fetched
#   CARGO_TARGET_DIR, CARGO_BUILD_TARGET   as cargo understands them
set -eu

cd "$(dirname "$0")"
priv=priv
target=${CARGO_TARGET_DIR:-target}
features=""
profile=release
# Of this project, that is: a project that depends on it compiles it without what tests need.
if [ "$(cd "${REBAR_ROOT_DIR:-/}" && pwd -P)" = "$(pwd -P)" ]; then
    case ${REBAR_BUILD_DIR##*/} in
        test)
            target=$target/forcing
            features="--features forcing,rivals"
            profile=forcing
            ;;
        bench)
            target=$target/rivals
            features="--features rivals"
            ;;
    esac
fi
if [ -n "$features" ]; then
    priv=$REBAR_BUILD_DIR/lib/ats/priv
    # If nothing is there, rebar3 makes a link to the folder of the source.
    [ ! -L "$priv" ] || rm "$priv"
fi
library=$priv/ats_nif.so

fail() {
    echo "build_nif.sh: $*" >&2
    exit 1
}

# Another build may be running, in another container, too, so what is made here has a folder with a
# name of its own, which is gone at the end. Those of builds that were killed go after a day.
work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
make_work() {
    [ -z "$work" ] || return 0
    mkdir -p "$priv"
    find "$priv" -name '.ats_nif.*' -prune -mtime +0 -exec rm -rf {} +
    work=$(mktemp -d "$priv/.ats_nif.XXXXXX")
}

# A running virtual machine has the old library mapped into its memory, so the old file must
# stay as it is: the new one is written beside it and takes over its name. An unchanged library
# is left alone.
install_library() {
    [ -f "$1" ] || fail "there is no file $1"
    if [ -f "$library" ] && cmp -s "$1" "$library"; then
        return
    fi
    make_work
    cp "$1" "$work/installed.so"
    mv -f "$work/installed.so" "$library"
}

if [ -n "${ATS_SKIP_NIF_BUILD:-}" ]; then
    [ -f "$library" ] || fail "ATS_SKIP_NIF_BUILD is set but there is no $library"
    exit 0
fi

if [ -n "${ATS_NIF_PATH:-}" ]; then
    install_library "$ATS_NIF_PATH"
    exit 0
fi

# What only tests and measurements have is in no precompiled library.
if [ -n "${ATS_PRECOMPILED_URL:-}" ] && [ -z "$features" ]; then
    make_work
    if escript scripts/precompiled.escript "$ATS_PRECOMPILED_URL" "$work/fetched.so"; then
        install_library "$work/fetched.so"
        exit 0
    fi
    echo "build_nif.sh: the library is built by cargo instead" >&2
fi

# A dependency of another project is built once, in a folder that is removed at the end: it would
# keep a hundred megabytes for a build after a change. `priv/.built' tells from what the library was
# built, since cargo can no longer tell. Who names a folder by CARGO_TARGET_DIR keeps it.
settings="${CARGO_BUILD_TARGET:-}|${RUSTFLAGS:-}|${ATS_CARGO_FLAGS:-}"
built=
case $PWD in
    */_build/*/lib/ats | */deps/ats)
        profile=dependency
        if [ -z "${CARGO_TARGET_DIR:-}" ]; then
            built=$priv/.built
            if [ -f "$library" ] && [ -f "$built" ] &&
                [ "$(cat "$built")" = "$settings $(cksum <"$library")" ] &&
                [ -z "$(find Cargo.toml Cargo.lock crates -newer "$built")" ]; then
                exit 0
            fi
            make_work
            target=$work/target
        fi
        ;;
esac

command -v cargo >/dev/null 2>&1 ||
    fail "Rust is needed to build ats: install it from https://rustup.rs, or name a folder of" \
        "precompiled libraries by ATS_PRECOMPILED_URL, or a library by ATS_NIF_PATH" \
        "(docs/use/installing.md)"

# shellcheck disable=SC2086 # Lists of words.
cargo build --profile "$profile" --locked -p ats-nif --target-dir "$target" \
    $features ${ATS_CARGO_FLAGS:-} >&2

case "$(uname -s)" in
    Darwin) made=libats_nif.dylib ;;
    *) made=libats_nif.so ;;
esac
install_library "$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$profile/$made"
[ -z "$built" ] || echo "$settings $(cksum <"$library")" >"$built"
