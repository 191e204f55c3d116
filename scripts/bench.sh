#!/bin/sh
# Measures.
#
#   scripts/bench.sh WHAT [ARGUMENT...]     --quick is an argument of most
#
#   memory      tables in memory beside `ets`
#   latency     the delay of other processes by calls on large tables
#   moments     the cost of queries of one moment; BEFORE names a folder that has ebin and priv of
#               another version
#   stores      the stores that a table can have, beside one another
#   maps        the maps of the Rust crate beside other Rust maps
#   disk        stores on disk beside other embedded stores; RocksDB takes a quarter of an hour to
#               build, and WITHOUT_ROCKSDB=1 leaves it out
#   tables      tables on disk with the workloads of osmos, and beside dets and bitcask
#   mnesia      transactions of Mnesia on its own tables and on ours
#   steps       transactions and followers beside a server, messages and Mnesia
#   scaling     counts what operations cost other cores, and draws it into docs/inside
#   curves      draws the curves of docs/inside/scaling.md into the folder that the argument names
#   trace       draws how an ordered_set adapts to contention into docs/inside
#
# The application has to be built (`make build`). With BUILD_ONLY=1 what a measurement needs besides
# is built, and nothing is measured.
set -eu
cd "$(dirname "$0")/.."

usage() {
    sed -n '/^#   [a-z]/p' "$0" >&2
    exit 2
}

ebin=_build/default/lib/ats/ebin
bench=_build/default/lib/ats/bench/erlang
target=${CARGO_TARGET_DIR:-$PWD/target}

measure() {
    [ -n "${BUILD_ONLY:-}" ] || exec "$@"
}

# `erlang MODULE FLAGS ARGUMENT...`
erlang() {
    module=$1
    flags=$2
    shift 2
    # shellcheck disable=SC2086 # A list of words.
    measure erl -noinput $flags -pa "$ebin" "$bench" ${tpcb:+"$tpcb"} \
        -eval "$module:main(init:get_plain_arguments()), halt()." -extra "$@"
}

# `rust NAME CARGO_OPTION`
rust() {
    # shellcheck disable=SC2086 # A word or none.
    (cd bench && cargo build --release --locked -p "ats-bench-$1" ${2:-} \
        --target-dir "$target/bench")
}

[ $# -gt 0 ] || usage
what=$1
shift
case $what in
    memory) erlang ats_bench "+t 4194304" "$@" ;;
    latency) erlang ats_bench_latency "+S 2:2" "$@" ;;
    moments) erlang ats_bench_moments "+S 2:2" --before "${BEFORE:-}" "$@" ;;
    stores)
        rebar3 as bench compile
        ebin=_build/bench/lib/ats/ebin
        bench=_build/bench/lib/ats/bench/erlang
        erlang ats_bench "+t 4194304" --field stores "$@"
        ;;
    maps)
        rust memory
        measure "$target/bench/release/ats-bench-memory" "$@"
        ;;
    disk)
        without=${WITHOUT_ROCKSDB:+--no-default-features}
        [ -n "$without" ] || ./bench/disk/setup.sh
        rust disk "$without"
        measure "$target/bench/release/ats-bench-disk" "$@"
        ;;
    tables) erlang ats_bench_disk "" "$@" ;;
    mnesia)
        tpcb=$(./scripts/others/mnesia.sh tpcb | tail -n 1)
        [ -d "$tpcb" ] || exit 1
        erlang ats_bench_mnesia "" "$@"
        ;;
    scaling)
        RUSTFLAGS="--cfg counted" cargo run --release --locked --manifest-path bench/Cargo.toml \
            -p ats-bench-scaling --target-dir "$target/counted" -- count docs/inside
        rust scaling
        measure "$target/bench/release/ats-bench-scaling" measure docs/inside
        ;;
    curves)
        rust scaling
        measure "$target/bench/release/ats-bench-scaling" curves docs/inside "${1:-}/scaling.jsonl"
        ;;
    steps) erlang ats_bench_steps "" "$@" ;;
    trace) erlang ats_bench_trace "" "$@" ;;
    *) usage ;;
esac
