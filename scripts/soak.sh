#!/bin/sh
# Tries for long to break something.
#
#   scripts/soak.sh WHAT SECONDS
#
#   programs    random programs run on `ets` and on `ats`, and are compared
#   memory      work on tables whose memory must not grow
#   moments     money is moved, snapshots are held and checkpoints of 10 GB made beside writers: the
#               types of tables beside each other, snapshots one after the other
#   disk        stores on disk whose machines stop and whose processes are killed
#   cluster     nodes that replicate are killed, stopped and cut off: SOAK_ROUNDS times each, 100 by
#               default
#   mnesia      random programs of changes of a schema beside `disc_copies`
#   models      the models that two switches make long: half an hour, whatever SECONDS is
#
# Ends at the first failure, whose last lines say what was wrong.
set -eu
cd "$(dirname "$0")/.."

usage() {
    sed -n '/^#   [a-z]/p' "$0" >&2
    exit 2
}

# `suites NAME=VALUE... FOLDER/NAME...`
suites() {
    list=""
    for word; do
        case $word in
            *=*) export "${word?}" ;;
            *) list=$list,test/${word}_SUITE ;;
        esac
    done
    rebar3 ct --suite "${list#,}"
}

# Optimised, with all assertions.
disk_test() {
    cargo test -p ats-disk --profile models --locked -q "$@"
}

# `repeat SECONDS COMMAND...` runs a command again and again until the time is over.
repeat() {
    end=$(($(date +%s) + $1))
    shift
    rounds=0
    while [ "$(date +%s)" -lt "$end" ]; do
        "$@"
        rounds=$((rounds + 1))
    done
}

random_programs() {
    disk_test --test model && disk_test --test store atomic::programs
}

# A third of the time goes to each of
# - a simulated machine that stops at every call of random histories, where anything may survive of
#   what was not synced;
# - random programs on a store and on a plain map;
# - a process that writes and is killed, and the next, which goes on with what it has left.
disk() {
    disk_test --test crash --test model --test store --test kill --no-run
    printf '\n== stops\n'
    ATS_DISK_CRASH_SECONDS=$((seconds / 3)) \
        disk_test --test crash stops_lose_nothing_that_was_synced -- --nocapture
    printf '\n== programs\n'
    export PROPTEST_CASES=1000
    repeat $((seconds / 3)) random_programs
    echo "$((rounds * 4 * PROPTEST_CASES)) programs"
    printf '\n== kills\n'
    export ATS_DISK_KILL_ROUNDS=100
    repeat $((seconds / 3)) disk_test --test kill -- --nocapture
    echo "$((rounds * ATS_DISK_KILL_ROUNDS)) processes were killed"
    suites ATS_KILL_ROUNDS=200 ATS_TABLES=10000 deep/ats_disk_kill deep/ats_disk_many
}

[ $# -eq 2 ] || usage
seconds=$2
export ATS_SOAK_SECONDS="$seconds"
case $1 in
    programs)
        suites ATS_LARGE_OBJECTS=10000000 ATS_TRAVERSAL_KEYS=200000 ATS_SELECT_OBJECTS=1000000 \
            contract/ats_oracle deep/ats_oracle_stores deep/ats_traversal timing/ats_responsive \
            timing/ats_latency
        ;;
    memory) suites deep/ats_memory ;;
    moments)
        suites ATS_CHECKPOINT_MB=10000 ATS_FOLLOW_BATCHES=1400 deep/ats_bank \
            deep/ats_many_snapshots deep/ats_moment_memory deep/ats_disk_checkpoint_load \
            features/ats_follow
        ;;
    disk) disk ;;
    cluster)
        export ATS_CLUSTER_ROUNDS="${SOAK_ROUNDS:-100}" ATS_RA_ROUNDS="${SOAK_ROUNDS:-100}"
        rebar3 ct --dir test/cluster
        ./scripts/others/ra.sh
        ;;
    mnesia)
        mnesia_programs() {
            suites "ATS_MNESIA_SEED=$(date +%s)" ATS_MNESIA_PROGRAMS=20 disk/ats_mnesia_program
        }
        repeat "$seconds" mnesia_programs
        ;;
    models)
        RUSTFLAGS="--cfg loom" ATS_LONG_MODELS=1 cargo test -p ats-mem --lib --locked \
            --profile models --target-dir "${CARGO_TARGET_DIR:-target}/loom" models
        ;;
    *) usage ;;
esac
