#!/bin/sh
# Looks at the code without running it: formatting, lints, cross references, types.
# Goes through all checks even if one fails, and fails at the end.
set -u
cd "$(dirname "$0")/.."

failed=""

check() {
    name=$1
    shift
    printf '\n== %s\n' "$name"
    "$@" || failed="$failed $name,"
}

check "formatting" cargo fmt --all --check
check "clippy" cargo clippy --workspace --all-targets --locked -- -D warnings
check "xref" rebar3 xref
check "dialyzer" rebar3 dialyzer

if [ -n "$failed" ]; then
    printf '\nnot in order:%s see above\n' "$failed"
    exit 1
fi
printf '\nall in order\n'
