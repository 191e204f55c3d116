#!/bin/sh
# Runs every test of the project and prints, as its last line, how many passed and failed, and how many could not be
# run on this machine, if any: "N passed, N failed, N skipped". The lines before it name them.
#
# Each stage is one run of a test tool. Its output goes to a log, which is printed when the stage is
# done, and the tool's own summary lines are counted from the log. A stage that ends badly without
# naming a failed test (it did not compile, it crashed) counts as one failure, and so does a stage in
# which no test ran at all: silence is not success. A stage that ends with the status 77 cannot be
# run on this machine, and the summary says why.
#
# Two rows of stages run beside each other, because much of what tests and compilers do keeps one
# processor busy or waits. What measures how long something takes comes after them, alone.
set -u
cd "$(dirname "$0")/.."

logs=_build/test-logs
rm -rf "$logs"
mkdir -p "$logs"
# stage NAME COUNTER COMMAND...: COUNTER is a function that prints "PASSED FAILED" of a log. What came
# of it is left in files: "PASSED FAILED" in NAME.counts and a line of the summary in NAME.report.
stage() {
    name=$1
    counter=$2
    shift 2
    log=$logs/$name.log
    echo "$name: running, see $log"
    start=$(date +%s)
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    [ "$status" -ne 124 ] || echo "$name: stopped because it took too long" >>"$log"
    print_log
    if [ "$status" -eq 77 ]; then
        echo "0 0" >"$logs/$name.counts"
        reason=$(grep '^NOT RUN: ' "$log" | tail -n 1)
        for test in $("$counter"_all); do
            echo "not run: $name: $test: ${reason#NOT RUN: }"
        done >"$logs/$name.skipped"
        printf '%-12s %s\n' "$name" "$(grep '^NOT RUN: ' "$log" | tail -n 1)" >"$logs/$name.report"
        return
    fi
    counts=$("$counter" "$log")
    failures "$log" >"$logs/$name.failures"
    skipped "$log" >"$logs/$name.skipped"
    passed=${counts% *}
    failed=${counts#* }
    if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then
        failed=1
    fi
    echo "$passed $failed" >"$logs/$name.counts"
    printf '%-12s %6d passed %4d failed %5d s\n' \
        "$name" "$passed" "$failed" $(($(date +%s) - start)) >"$logs/$name.report"
}

# Prints the log of a stage in one piece, also when stages of both rows end at the same time.
print_log() {
    until mkdir "$logs/printing" 2>/dev/null; do
        sleep 1
    done
    printf '\n== %s\n' "$name"
    cat "$log"
    rmdir "$logs/printing"
}

# Sums what follows the patterns: "test result: ok. 12 passed; 0 failed; ...".
count_cargo() {
    awk '/^test result:/ {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^passed;/) passed += $(i - 1)
                if ($i ~ /^failed;/) failed += $(i - 1)
            }
        }
        END { print passed + 0, failed + 0 }' "$1"
}

# "All 3 tests passed." or "Failed 1 tests. Skipped 2 (0, 2) tests. Passed 5 tests.", maybe in
# colour. Tests that were skipped because their preparation failed (the second number in the
# brackets) have failed; those that skip themselves have not.
count_common_test() {
    sed -e "s/$(printf '\033')\[[0-9;]*m//g" "$1" | tr '\r' '\n' |
        awk 'match($0, /All [0-9]+ tests passed/) { passed += number($0, "All ") }
            match($0, /Passed [0-9]+ tests/) { passed += number($0, "Passed ") }
            match($0, /Failed [0-9]+ tests/) { failed += number($0, "Failed ") }
            match($0, /Skipped [0-9]+ \([0-9]+, [0-9]+\)/) {
                split(substr($0, RSTART, RLENGTH), parts, /[(,)] */)
                failed += parts[3]
            }
            function number(line, before) {
                line = substr(line, index(line, before) + length(before))
                return line + 0
            }
            END { print passed + 0, failed + 0 }'
}

# The tests of a stage that cannot be run at all: those of the only one that says so.
count_common_test_all() {
    echo "$compared"
}

# Lines "ok: what" and "not ok: what", as printed by the smoke test below.
count_lines() {
    awk '/^ok: / { passed++ } /^not ok: / { failed++ } END { print passed + 0, failed + 0 }' "$1"
}

# The names of the tests that failed, which a reader of the last lines would otherwise miss.
failures() {
    sed -e "s/$(printf '\033')\[[0-9;]*m//g" "$1" | tr '\r' '\n' |
        awk '/^test .* FAILED$/ || /==> .*: FAILED/ || /^not ok: / { printf "failed: %s\n", $0 }'
}

# The names of the tests that were not run, with the reason. Those that common_test skips because their preparation
# failed have failed.
skipped() {
    sed -e "s/$(printf '\033')\[[0-9;]*m//g" "$1" | tr '\r' '\n' |
        awk -v stage="$name" '/==> .*: SKIPPED/ {
                test = $0
                sub(/^.*%%% /, "", test)
                sub(/: SKIPPED.*/, "", test)
                next
            }
            /==> \{tc_user_skip,/ {
                if (test !~ /==> (init|end)_per_/) {
                    sub(/^.*\{tc_user_skip,/, "")
                    sub(/\}$/, "")
                    printf "not run: %s: %s: %s\n", stage, test, $0
                }
            }
            /^test .* \.\.\. ignored/ { printf "not run: %s: %s\n", stage, $0 }
            /^not run: / { sub(/^not run: /, ""); printf "not run: %s: %s\n", stage, $0 }'
}

# Unoptimised code would make the property tests slow; complete optimisation would make the
# compiler slow. Debug assertions and overflow checks stay on.
export CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=line-tables-only

# `limited SECONDS COMMAND...` ends a command that takes too long: a test that hangs must not hang
# the caller of this script. The limits are generous, because compiling counts too, and so does the
# other row. A signal that ends a row also ends the command that runs in it.
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

rust_tests() {
    limited 1200 cargo test --workspace --locked --no-fail-fast
}

# The lock, the epochs, and the tree where its parts are split and joined, under a model checker that
# tries all interleavings with a few switches, and what weak memory makes of them. It needs a build of
# its own, kept apart so that neither build undoes the other, and an optimised one.
rust_models() {
    limited 1500 env RUSTFLAGS="--cfg loom" cargo test -p ats-sync -p ats-mem -p ats-rivals --lib --locked \
        --profile models \
        --target-dir "${CARGO_TARGET_DIR:-target}/loom" models
}

# The stores of records under a scheduler that looks for the interleavings that break them. A build
# of its own, too.
rust_schedules() {
    limited 600 env RUSTFLAGS="--cfg shuttle" cargo test -p ats-mem -p ats-rivals --locked \
        --test shuttle --test linear --target-dir "${CARGO_TARGET_DIR:-target}/shuttle"
}

# The build that counts what operations cost other processors, and the model of how tables scale. In the end operations
# that only read must have written no memory that threads share.
rust_counts() {
    limited 600 env RUSTFLAGS="--cfg counted" cargo test -p ats-sync --lib --locked \
        --target-dir "${CARGO_TARGET_DIR:-target}/counted" count:: &&
        limited 600 env RUSTFLAGS="--cfg counted" cargo test --locked \
            --manifest-path bench/scaling/Cargo.toml \
            --target-dir "${CARGO_TARGET_DIR:-target}/counted"
}

# suites CONDITION...: the suites that `find` finds with the condition, as rebar3 wants them.
suites() {
    find test "$@" -name '*_SUITE.erl' | sed 's/\.erl$//' | sort | paste -s -d , -
}

erlang_tests() {
    limited 600 rebar3 compile && limited 600 rebar3 as test compile || return
    : >"$logs/built"
    limited 3000 rebar3 ct --readable=compact --suite "$(suites ! -path 'test/timing/*')"
}

# How long others wait, or how long it takes until tables have adapted to what is done to them.
timing_tests() {
    limited 600 rebar3 ct --readable=compact --suite "$(suites -path 'test/timing/*')"
}

# What compares with `ets` runs once more on Erlang/OTP 27, where `ets` differs: in fewer rounds, as
# most of it has just been tried. That release is downloaded the first time (see the script).
compared=$(find test/contract -name '*_SUITE.erl' -exec basename {} .erl \; | sort)

otp27_tests() {
    # The other row builds it, and is mostly long done with that.
    until [ -e "$logs/built" ] || [ -e "$logs/erlang.counts" ]; do
        sleep 1
    done
    # shellcheck disable=SC2086 # A list of words.
    limited 600 env ATS_SELECT_SPECS=10000 ATS_ORACLE_COMMANDS=49000 scripts/otp27.sh $compared
}

# The application as a user has it: started from elsewhere, with nothing but its code path.
smoke_test() {
    ebin=$PWD/_build/default/lib/ats/ebin
    (cd / && erl -noinput -pa "$ebin" -eval '
        T = ats:new(smoke, [ordered_set, public]),
        true = ats:insert(T, [{K, K * K} || K <- lists:seq(1, 1000)]),
        [{7, 49}] = ats:lookup(T, 7),
        1000 = length(ats:tab2list(T)),
        true = ats:delete(T),
        halt(0).') && echo "ok: plain erl -pa" || echo "not ok: plain erl -pa"
    if command -v mix >/dev/null 2>&1; then
        (MIX_BUILD_PATH=$PWD/_build/mix ATS_SKIP_NIF_BUILD=1 mix run -e '
            table = :ats.new(:smoke, [:set])
            true = :ats.insert(table, {"key", %{value: 1}})
            [{"key", %{value: 1}}] = :ats.lookup(table, "key")') &&
            echo "ok: Elixir" || echo "not ok: Elixir"
        (MIX_BUILD_PATH=$PWD/_build/mix-example && export MIX_BUILD_PATH &&
            cd examples/elixir && MIX_ENV=test ATS_SKIP_NIF_BUILD=1 mix test) &&
            echo "ok: the example in Elixir" || echo "not ok: the example in Elixir"
    else
        echo "not run: Elixir: it is not installed"
        echo "not run: the example in Elixir: Elixir is not installed"
    fi
}

first_row() {
    stage rust count_cargo rust_tests
    stage models count_cargo rust_models
    stage schedules count_cargo rust_schedules
    stage counts count_cargo rust_counts
    stage otp27 count_common_test otp27_tests
}

second_row() {
    stage erlang count_common_test erlang_tests
}

alone() {
    stage timing count_common_test timing_tests
    stage smoke count_lines smoke_test
}

rows=""
# shellcheck disable=SC2086 # A list of words.
trap 'trap - INT TERM HUP; [ -z "$rows" ] || kill $rows; wait; exit 130' INT TERM HUP
first_row &
rows=$!
second_row &
rows="$rows $!"
wait
alone &
rows=$!
wait

# A stage that left nothing was ended from outside.
total_passed=0
total_failed=0
total_skipped=0
echo
for name in rust models schedules counts erlang otp27 timing smoke; do
    cat "$logs/$name.failures" 2>/dev/null
done
for name in rust models schedules counts erlang otp27 timing smoke; do
    if [ -s "$logs/$name.skipped" ]; then
        cat "$logs/$name.skipped"
        total_skipped=$((total_skipped + $(wc -l <"$logs/$name.skipped")))
    fi
done
for name in rust models schedules counts erlang otp27 timing smoke; do
    cat "$logs/$name.report" 2>/dev/null || echo "$name was not completed"
    counts=$(cat "$logs/$name.counts" 2>/dev/null || echo "0 1")
    total_passed=$((total_passed + ${counts% *}))
    total_failed=$((total_failed + ${counts#* }))
done
closing="$total_passed passed, $total_failed failed"
[ "$total_skipped" -eq 0 ] || closing="$closing, $total_skipped skipped"
echo "$closing"
[ "$total_failed" -eq 0 ]
