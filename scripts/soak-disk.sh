#!/bin/sh
# Tries to make a store on disk lose or confuse something, for as long as wanted:
#
#   scripts/soak-disk.sh SECONDS
#
# A third of the time goes to each of these, with other random numbers each time:
#
# stops      a simulated machine stops at every call of random histories, and anything may survive
#            of what was not synced (tests/crash.rs)
# programs   random programs run on a store and on a plain map (tests/model, and `atomic` of
#            tests/store)
# kills      a process that writes is killed, and the next goes on with what it has left
#            (tests/kill)
#
# Ends at the first failure, whose last lines say what was wrong.
set -u
cd "$(dirname "$0")/.."

[ $# -eq 1 ] || {
    echo "usage: scripts/soak-disk.sh SECONDS" >&2
    exit 2
}
each=$(($1 / 3))

# Optimised, with all assertions.
disk_test() {
    cargo test -p ats-disk --profile models --locked -q "$@"
}

# for_a_third COMMAND...: again and again until the time is over.
for_a_third() {
    end=$(($(date +%s) + each))
    rounds=0
    while [ "$(date +%s)" -lt "$end" ]; do
        "$@" || exit 1
        rounds=$((rounds + 1))
    done
}

disk_test --test crash --test model --test store --test kill --no-run || exit 1

printf '\n== stops\n'
ATS_DISK_CRASH_SECONDS=$each \
    disk_test --test crash stops_lose_nothing_that_was_synced -- --nocapture || exit 1

printf '\n== programs\n'
export PROPTEST_CASES=1000
programs() {
    disk_test --test model && disk_test --test store atomic::programs
}
for_a_third programs
echo "$((rounds * 4 * PROPTEST_CASES)) programs"

printf '\n== kills\n'
export ATS_DISK_KILL_ROUNDS=100
for_a_third disk_test --test kill -- --nocapture
echo "$((rounds * ATS_DISK_KILL_ROUNDS)) processes were killed"
