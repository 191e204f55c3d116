#!/bin/sh
# Runs tests of the project, and prints as its last line how many passed and failed, and how many
# could not be run on this machine, if any: "N passed, N failed, N skipped". The lines before it
# name them.
#
#   scripts/test.sh PART...     PART is quick, usual, deep or check: what `make test-quick`,
#                               `make test`, `make test-deep` and `make check` run
#
# Each stage of a part is one run of a test tool. Its output goes to a log, which is printed when
# the stage is done, and from which the tool's own summary lines are counted. A stage that ends
# badly without naming a failed test (it did not compile, it crashed) counts as one failure, and so
# does a stage in which no test ran at all: silence is not success. A stage that ends with the
# status 77 cannot be run on this machine, and its log says why.
#
# Rows of stages run beside each other, because much of what tests and compilers do keeps one
# processor busy or waits. They begin with stages that need nothing but cargo, and make way for the
# build of the application, which the others wait for. A row that is done takes stages of the others
# that have not begun. Stages that measure time come after the rows, alone. Behind each stage stands
# how long it took, and how much of that a processor has worked for it.
set -u
cd "$(dirname "$0")/.."

logs=$PWD/_build/test-logs
target=${CARGO_TARGET_DIR:-target}
rm -rf "$logs"
mkdir -p "$logs"

# Unoptimised code would make the property tests slow; complete optimisation would make the
# compiler slow. Debug assertions and overflow checks stay on.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0
# A whole run builds in two thirds of the time without data for a build after a change, and without
# optimisation of a crate as a whole; what it builds is as fast. `make test-quick` keeps the data.
case " $* " in
    *" quick "*) ;;
    *) export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_LTO=off ;;
esac

# ----- stages: `NAME_stage` runs what is called NAME -----

# `limited SECONDS COMMAND...` ends a command that takes too long: a test that hangs must not hang
# the caller of this script. The limits are generous, because compiling counts too, and so does the
# other rows. A signal that ends a row also ends the command that runs in it.
limited() {
    if command -v timeout >/dev/null 2>&1; then
        timeout -k 10 "$@" &
    else
        shift
        "$@" &
    fi
    running=$!
    trap 'kill "$running"; exit 143' TERM
    wait "$running"
}

# The tests of crates that stand beside what they test.
units_stage() {
    limited 1800 cargo test --workspace --locked --no-fail-fast --lib --bins
}

# Programs of tests that are quick.
quick_programs="all associative disk maps model store"

# These, the tests of the crates' interfaces, and the examples: programs, and those in the
# documentation. Each call of cargo is for the whole workspace: for some of its crates it would
# build others once more, with fewer features.
rust_stage() {
    # shellcheck disable=SC2046,SC2086 # Lists of words.
    limited 1800 cargo test --workspace --locked --no-fail-fast --lib --bins \
        $(printf -- '--test %s ' $quick_programs)
    tests=$?
    limited 1200 cargo build --workspace --locked --examples &&
        for file in crates/*/examples/*.rs; do
            example=$(basename "$file" .rs)
            try "the example $example" . limited 60 "$target/debug/examples/$example"
        done &&
        limited 1200 cargo test --workspace --locked --no-fail-fast --doc &&
        return "$tests"
}

# All others: long histories in which machines stop, processes are killed and disks fail or are
# full, and programs that look at the memory and the open files of a process of their own.
stops_stage() {
    # shellcheck disable=SC2046 # A list of words.
    limited 1800 cargo test --workspace --locked --no-fail-fast $(
        find crates/*/tests -path '*/tests/*.rs' ! -path '*/tests/*/*' \
            -o -path '*/tests/*/main.rs' |
            sed 's,.*/tests/,,; s,/main.rs$,,; s,\.rs$,,' | sort -u |
            grep -vxE "shuttle|$(echo "$quick_programs" | tr ' ' '|')" | sed 's/^/--test /'
    )
    tests=$?
    limited 1800 env ATS_REMOVED_KEYS=300000 cargo test --workspace --locked --test maps \
        removed_keys &&
        return "$tests"
}

# The lock, the epochs, and the tree where its parts are split and joined, under a model checker
# that tries all interleavings with a few switches, and what weak memory makes of them. It needs a
# build of its own, kept apart so that neither build undoes the other, and an optimised one.
models_stage() {
    limited 2400 nice env RUSTFLAGS="--cfg loom" cargo test -p ats-sync -p ats-mem -p ats-rivals \
        --lib --locked \
        --profile models --target-dir "$target/loom" models
}

# The stores of records under a scheduler that looks for the interleavings that break them. A build
# of its own, too.
schedules_stage() {
    limited 1200 env RUSTFLAGS="--cfg shuttle -D warnings" cargo test --workspace --locked \
        --test shuttle --test linear --target-dir "$target/shuttle"
}

# The build that counts what operations cost other processors, and the model of how tables scale. In
# the end operations that only read must have written no memory that threads share.
counts_stage() {
    limited 1200 env RUSTFLAGS="--cfg counted -D warnings" cargo test -p ats-sync --lib --locked \
        --target-dir "$target/counted" count:: &&
        limited 1200 env RUSTFLAGS="--cfg counted -D warnings" cargo test --locked \
            --manifest-path bench/Cargo.toml -p ats-bench-scaling --target-dir "$target/counted"
}

# `suites SECONDS JOBS CONDITION...` runs the suites that `find` finds with the condition.
suites() {
    seconds=$1
    jobs=$2
    shift 2
    # shellcheck disable=SC2046 # A list of files, whose names have no spaces.
    limited "$seconds" scripts/suites.sh "$jobs" $(find test -name '*_SUITE.erl' "$@" | sort)
}

contract_stage() {
    export ATS_SELECT_SPECS=4000 ATS_ORACLE_COMMANDS=20000 ATS_ORDERED_BAG_COMMANDS=8000
    suites 600 2 -path 'test/contract/*'
}

erlang_stage() {
    export ATS_SELECT_SPECS=12000 ATS_ORACLE_COMMANDS=30000 ATS_ORDERED_BAG_COMMANDS=10000
    export ATS_MOMENT_MS=150
    suites 2400 3 ! -path 'test/timing/*' ! -path 'test/deep/*' ! -path 'test/cluster/*'
}

# Suites that take long. `make soak` runs those with these numbers for as long as anybody likes.
long_stage() {
    export ATS_ORACLE_COMMANDS=60000 ATS_TRAVERSAL_KEYS=10000 ATS_SNAPSHOT_OBJECTS=200000
    suites 2700 3 -path 'test/deep/*'
}

# Nodes that replicate, with faults of machines and networks between them.
cluster_stage() {
    suites 1800 1 -path 'test/cluster/*'
}

# Tables by Raft, with the same faults. The library for that is downloaded the first time (see the
# script).
ra_stage() {
    limited 1800 scripts/others/ra.sh
    status=$?
    [ "$status" -ne 77 ] ||
        find apps/ats_ra/test -name '*_SUITE.erl' -exec printf 'not run: %s\n' {} \;
    return "$status"
}

# Suites that measure the delay of other processes, and the time until tables have adapted. The
# emulator keeps no segments of memory, so nothing waits until it gives them back.
timing_stage() {
    export ATS_LARGE_OBJECTS=300000 ERL_FLAGS="+MMmcs 0"
    suites 1200 1 -path 'test/timing/*'
}

# The report in a browser: drawn, clickable, without an error.
report_stage() {
    if ! command -v chromium >/dev/null 2>&1; then
        echo "NOT RUN: report: chromium is not installed (Debian: chromium)"
        return 77
    fi
    limited 1800 cargo test --manifest-path bench/Cargo.toml -p ats-bench-report --locked \
        --target-dir "$target/bench"
}

# Suites that compare with `ets` run once more on Erlang/OTP 27, where `ets` differs: in fewer
# rounds, as most of it has just been tried. `make test-others WHAT=otp27` runs all suites there.
# That release is downloaded the first time (see the script).
otp27_stage() {
    compared="ats_badarg_SUITE ats_comparisons_SUITE ats_functions_SUITE ats_options_SUITE
        ats_oracle_SUITE ats_select_oracle_SUITE ats_select_SUITE ats_steps_SUITE ats_values_SUITE"
    # shellcheck disable=SC2086 # A list of words.
    limited 1800 env ATS_SELECT_SPECS=5000 ATS_ORACLE_COMMANDS=10000 \
        scripts/others/otp27.sh $compared
    status=$?
    [ "$status" -ne 77 ] || printf 'not run: %s\n' $compared
    return "$status"
}

# Suites of mnesia itself on the storage types of `ats_mnesia`: all cases with external types, and
# suites that are quick with our types in the place of mnesia's own. They are downloaded the first
# time (see the script).
mnesia_stage() {
    limited 1200 scripts/others/mnesia.sh ext
    status=$?
    [ "$status" -ne 77 ] || return 77
    limited 1800 scripts/others/mnesia.sh types mnesia_install_test mnesia_nice_coverage_test \
        mnesia_qlc_test mnesia_registry_test mnesia_majority_test mnesia_index_plugin_test \
        mnesia_index_plugin_disc_test mnesia_evil_coverage_test && return "$status"
}

# Tests of others on our tables: a suite of Erlang/OTP itself, and the tests of a few programs. The
# sources are downloaded the first time (see the scripts).
otp_stage() {
    limited 600 scripts/programs.sh quick
    other=$?
    limited 1200 scripts/others/otp.sh quick
    status=$?
    [ "$status" -ne 77 ] || echo "not run: qlc_SUITE of Erlang/OTP"
    # One of the two may be had without the other.
    [ "$status" -ne 77 ] || status=$other
    [ "$other" -eq 77 ] || [ "$status" -ne 0 ] || status=$other
    return "$status"
}

# Programs of users: a storage of openraft, which is compiled with its tests, and programs beside
# those with other crates. Apart, because they need crates that nothing else of the project does,
# and not optimised, because they need many.
users_stage() (
    export CARGO_PROFILE_DEV_OPT_LEVEL=0
    try "the storage of openraft" . limited 1800 env RUSTFLAGS="-D warnings" cargo check --tests \
        --locked --manifest-path examples/openraft/Cargo.toml --target-dir "$target/openraft"
    limited 1800 cargo test --manifest-path bench/Cargo.toml -p ats-bench-programs --locked \
        --target-dir "$target/bench"
)

# The library for systems with musl.
musl_stage() {
    limited 1800 scripts/others/musl.sh
    status=$?
    [ "$status" -ne 77 ] || echo "not run: the library for musl"
    return "$status"
}

# The application as a user has it: started from elsewhere, with nothing but its code path.
smoke_stage() {
    ebin=$PWD/_build/default/lib/ats/ebin
    try "plain erl -pa" / erl -noinput -pa "$ebin" -eval '
        T = ats:new(smoke, [ordered_set, public]),
        true = ats:insert(T, [{K, K * K} || K <- lists:seq(1, 1000)]),
        [{7, 49}] = ats:lookup(T, 7),
        1000 = length(ats:tab2list(T)),
        true = ats:delete(T),
        halt(0).'
    export ATS_SKIP_NIF_BUILD=1
    if command -v mix >/dev/null 2>&1; then
        try "Elixir" . env MIX_BUILD_PATH="$PWD/_build/mix" mix run -e '
            table = :ats.new(:smoke, [:set])
            true = :ats.insert(table, {"key", %{value: 1}})
            [{"key", %{value: 1}}] = :ats.lookup(table, "key")'
        try "the modules for Elixir" . env MIX_BUILD_PATH="$PWD/_build/mix" \
            mix run test/elixir/run.exs
        try "the example in Elixir" examples/elixir \
            env MIX_BUILD_PATH="$PWD/_build/mix-example" MIX_ENV=test mix test
    else
        printf 'not run: %s: Elixir is not installed\n' "Elixir" "the modules for Elixir" \
            "the example in Elixir"
    fi
}

# `try WHAT FOLDER COMMAND...`
try() {
    what=$1
    folder=$2
    shift 2
    (cd "$folder" && "$@") && echo "ok: $what" || echo "not ok: $what"
}

check_stage() {
    limited 3000 nice scripts/check.sh
}

# ----- counting -----

# Reads a log. Prints a line for each test that failed or was not run, the begin of the cause below
# the failed ones, and in the end "PASSED FAILED". Understood are
# - cargo: "test result: ok. 12 passed; 0 failed; ...";
# - common_test, by `ats_test_report`: "Failed 1 tests. Skipped 2 (0, 2) tests. Passed 5 tests.".
#   Tests that were skipped because their preparation failed (the second number in the brackets)
#   have failed; those that skip themselves have not;
# - our own scripts: "ok: what", "not ok: what" and "not run: what".
read_log() {
    sed -e "s/$(printf '\033')\[[0-9;]*m//g" "$1" | tr '\r' '\n' | awk -v stage="$2" '
        function number(pattern) {
            if (!match($0, pattern)) return 0
            split(substr($0, RSTART, RLENGTH), parts, /[^0-9]+/)
            return parts[1] != "" ? parts[1] : parts[2]
        }
        function not_run(what) { printf "not run: %s: %s\n", stage, what }
        /^[. ]*$/ { cause = head ? cause : 0; head = 0 }
        cause > 0 && !/^[. ]*$/ { cause--; printf "    %s\n", substr($0, 1, 240) }
        /^test result:/ { passed += number("[0-9]+ passed;"); failed += number("[0-9]+ failed;") }
        { passed += number("Passed [0-9]+ tests") }
        { failed += number("Failed [0-9]+ tests") }
        match($0, /Skipped [0-9]+ \([0-9]+, [0-9]+\)/) {
            split(substr($0, RSTART, RLENGTH), parts, /[(,)] */)
            failed += parts[3]
        }
        /^ok: / { passed++ }
        /^not ok: / { failed++ }
        /^test .* FAILED$/ || /^==> .*: FAILED/ || /^not ok: / || /^stopped: / {
            printf "failed: %s: %s\n", stage, $0
        }
        /^==> .*: FAILED/ { cause = 16 }
        /^---- .* stdout ----$/ { cause = 16; head = 1 }
        /^test .* \.\.\. ignored/ { not_run($0) }
        /^not run: / { not_run(substr($0, 10)) }
        END { print passed + 0, failed + 0 }'
}

# Leaves the result of a stage in NAME.counts and NAME.named. Until it is done they say that it was
# ended from outside.
stage() {
    name=$1
    log=$logs/$name.log
    echo "0 1" >"$logs/$name.counts"
    echo "$name was not completed" >"$logs/$name.named"
    echo "$name: running, see $log"
    start=$(date +%s)
    count_work
    before=$worked
    "${name}_stage" >"$log" 2>&1 </dev/null
    status=$?
    case $status in
        124 | 137) echo "stopped: it took too long" >>"$log" ;;
    esac
    # In one piece, also when stages of several rows end at the same time.
    until mkdir "$logs/printing" 2>/dev/null; do
        sleep 1
    done
    printf '\n== %s\n' "$name"
    cat "$log"
    rmdir "$logs/printing"
    read_log "$log" "$name" >"$logs/$name.read"
    sed '$d' "$logs/$name.read" >"$logs/$name.named"
    counts=$(tail -n 1 "$logs/$name.read")
    case "$status $counts" in
        77\ *) counts="0 0" && grep -a '^NOT RUN: ' "$log" | tail -n 1 >>"$logs/$name.named" ;;
        *\ 0\ 0 | [1-9]*\ 0)
            counts="${counts% *} 1"
            echo "failed: $name: it ended with status $status, and names no test" \
                >>"$logs/$name.named"
            ;;
    esac
    echo "$counts" >"$logs/$name.counts"
    count_work
    printf '%-12s %6d passed %4d failed %5d s, worked %5d s\n' \
        "$name" "${counts% *}" "${counts#* }" \
        $(($(date +%s) - start)) $((worked - before)) >>"$logs/reports"
}

# Sets `worked`: the seconds that processors have worked for commands of this shell that are done.
# A command substitution is a shell of its own, which has none.
count_work() {
    times >"$logs/$name.times"
    worked=$(awk 'NR == 2 { split($1 "m" $2, parts, /[ms]+/)
        print int(60 * (parts[1] + parts[3]) + parts[2] + parts[4]) }' "$logs/$name.times")
}

# A row of stages, without those that another row has begun. The word `built` stands before those
# that need what `build` makes.
row() {
    for name in $1; do
        case $name in
            built) await_build ;;
            *) ! mkdir "$logs/$name.begun" 2>/dev/null || stage "$name" ;;
        esac
    done
}

await_build() {
    until [ -e "$logs/built" ]; do
        sleep 1
    done
    [ -z "$release" ] || export ATS_RELEASE="$PWD/_build/default/lib/ats"
    # The tests of crates may have built the command.
    [ ! -x "$target/debug/ats" ] || export ATS_COMMAND="$(realpath "$target/debug/ats")"
}

# `begin LIST`: the stages, each after the other, beside what else has begun.
begin() {
    [ -n "$1" ] || return 0
    row "$1" &
    running_rows="$running_rows $!"
}

# Builds the application that tests force tables of, and the one that users have if a stage needs
# it, before stages that use them: two stages must not build them at the same time.
build() {
    limited 1800 rebar3 as test compile >"$logs/build-test.log" 2>&1 || cat "$logs/build-test.log"
    if [ -n "$release" ]; then
        limited 1800 rebar3 compile >"$logs/build.log" 2>&1 || cat "$logs/build.log"
    fi
    touch "$logs/built"
}

running_rows=""
interrupted() {
    trap - INT TERM HUP
    # shellcheck disable=SC2086 # A list of words.
    [ -z "$running_rows" ] || kill $running_rows
    wait
    exit 130
}
trap interrupted INT TERM HUP
programs="" suites="" nodes="" alone="" release=""
for part; do
    case $part in
        quick) programs="units" suites="built contract" ;;
        usual) programs="$programs rust" suites="$suites built erlang" ;;
        deep)
            release=yes
            programs="models $programs built smoke stops schedules counts"
            suites="$suites built long users"
            nodes="built ra cluster mnesia otp27 otp musl report"
            alone="built timing"
            ;;
        check) suites="check $suites" ;;
        *) echo "scripts/test.sh: there is no part $part" >&2 && exit 2 ;;
    esac
done
case " $programs $suites $nodes " in
    *" built "*)
        build &
        running_rows=" $!"
        ;;
esac
begin "$programs $suites $nodes"
begin "$suites $nodes $programs"
begin "$nodes $suites $programs"
wait
begin "$alone"
wait

printf '\n'
# Failures stand below the many tests that were not run, and their names once more below all, where
# a reader of the end finds them. Logs may hold bytes that are no text.
grep -ahi '^not run: ' "$logs"/*.named
grep -ahiv '^not run: ' "$logs"/*.named
cat "$logs/reports"
grep -ah '^failed: ' "$logs"/*.named
cat "$logs"/*.counts | awk -v skipped="$(cat "$logs"/*.named | grep -ac '^not run: ')" '
    { passed += $1; failed += $2 }
    END {
        printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
        exit failed > 0 || passed == 0
    }'
