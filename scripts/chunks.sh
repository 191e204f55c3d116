#!/bin/sh
# Writes the documentation of the public modules as EEP-48 chunks to doc/chunks in the folder of the
# application, where `h(ats)` in the shell, and ex_doc, look for it.
#
#   scripts/chunks.sh [FOLDER]
#
# rebar3 and Mix call it when they build. It takes two seconds after a public module has changed,
# and some milliseconds otherwise. Documentation is no reason to fail: a machine without EDoc builds
# the application all the same, and is told.
set -eu
cd "$(dirname "$0")/.."

# rebar3 has dependencies and the project itself in the one place, checkouts in the other.
for folder in "${1:-${REBAR_DEPS_DIR:-_build/default/lib}/ats}" \
    ${REBAR_CHECKOUTS_OUT_DIR:+"$REBAR_CHECKOUTS_OUT_DIR/ats"}; do
    [ -d "$folder/ebin" ] || continue
    written=$folder/doc/chunks/.written
    public=$(find src -name '*.erl' -exec grep -L '^%% @private' {} +)
    # shellcheck disable=SC2086 # A list of words.
    if [ -f "$written" ] && [ -z "$(find $public scripts/chunks.* -newer "$written")" ]; then
        continue
    fi
    # shellcheck disable=SC2086 # A list of words.
    if escript scripts/chunks.escript "$folder/doc" $public; then
        touch "$written"
    else
        echo "chunks.sh: h(ats) in the shell will not find the documentation" >&2
    fi
done
