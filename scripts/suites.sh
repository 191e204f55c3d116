#!/bin/sh
# Runs common_test suites, several beside each other, each in a virtual machine of its own.
#
#   scripts/suites.sh JOBS SUITE...    for example: scripts/suites.sh 2 test/disk/ats_disk_SUITE.erl
#
# They have to be compiled before: rebar3 as test compile. The first suites begin first, so those
# that take long belong at the begin of the list. When a suite is done, a line tells how many of its
# cases passed, and lines before it tell why the others did not. Its log and those of common_test
# are in _build/test-logs/ct.
set -u
cd "$(dirname "$0")/.."

# A call for one suite, by xargs below.
if [ "$1" = --one ]; then
    suite=$(basename "$2" .erl)
    library=$PWD/_build/test/lib/ats
    logs=$PWD/_build/test-logs/ct/$suite
    rm -rf "$logs" && mkdir -p "$logs" || exit 1
    # common_test looks for the data of a suite beside its module.
    [ ! -d "${2%.erl}_data" ] || ln -sfn "$PWD/${2%.erl}_data" "$library/test/"
    cd "$logs" || exit 1
    erl -noinput -pa "$library/ebin" "$library/test" \
        -run ats_test_report main "$library/test" "$logs" "$suite" >log 2>&1
    status=$?
    grep -q '^Failed .* Passed ' log || echo "==> $suite: FAILED: see $logs/log" >>log
    sed -n '/^==> .*: FAILED$/,/^$/p; /^not run: /p; /^long: /p
        s/^Failed .* Passed /'"$suite: &/p" log >printed
    # One call, because several suites may end at the same time.
    cat printed
    exit "$status"
fi

jobs=$1
shift
printf '%s\0' "$@" | xargs -0 -P "$jobs" -n 1 scripts/suites.sh --one
