#!/bin/sh
# Builds the library for musl, looks at what it needs, and loads it with the loader of musl.
#
#   scripts/others/musl.sh
#
# It needs musl-gcc (Debian: musl-tools) and `rustup target add ARCHITECTURE-unknown-linux-musl`. If
# one of them is missing the last line says "NOT RUN: reason" and the status is 77.
set -eu
cd "$(dirname "$0")/../.."

not_run() {
    echo "NOT RUN: $*"
    exit 77
}

target=$(uname -m)-unknown-linux-musl
command -v musl-gcc >/dev/null 2>&1 || not_run "musl: there is no musl-gcc (Debian: musl-tools)"
why=$(scripts/precompile.sh --can "$target") || not_run "musl: $why"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ATS_PROFILE=forcing ./scripts/precompile.sh --no-archive "$target" >"$work/path" || {
    echo "not ok: the library for musl needs nothing but musl"
    exit 1
}
echo "ok: the library for musl needs nothing but musl"
library=$(cat "$work/path")

if scripts/others/loads.sh "$library" musl-gcc; then
    echo "ok: musl loads the library"
else
    echo "not ok: musl loads the library"
    exit 1
fi
