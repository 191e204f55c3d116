#!/bin/sh
# Runs the Rust tests under tools that watch every access to memory.
#
#   scripts/sanitize.sh [thread] [address] [memcheck] [-- ARGUMENTS FOR THE TESTS]
#
# thread    ThreadSanitizer: data races
# address   AddressSanitizer: use after free, overruns
# memcheck  Valgrind, also for uninitialised memory; slow, and asked for by name only
#
# Without a tool named, the first two run. The crates are those that hold unsafe code shared by
# threads; CRATES="ats-mem" restricts that. The sanitizers need flags that the stable compiler
# takes only with RUSTC_BOOTSTRAP=1; the same compiler builds everything else.
set -u
cd "$(dirname "$0")/.."

crates=${CRATES:-ats-sync ats-mem ats-rivals ats}
target=${CARGO_TARGET_DIR:-$PWD/target}
triple=$(rustc -vV | sed -n 's/^host: //p')
failed=""

# A sanitized program is many times slower, and the interesting part of a property test is in its
# first cases.
export PROPTEST_CASES="${PROPTEST_CASES:-16}"

tools=""
while [ $# -gt 0 ]; do
    case $1 in
        --) shift; break ;;
        thread | address | memcheck) tools="$tools $1"; shift ;;
        *) echo "sanitize: unknown tool $1" >&2; exit 2 ;;
    esac
done

# The explicit --target keeps build scripts and procedural macros out of it.
cargo_test() {
    tool=$1
    shift
    for crate in $crates; do
        printf '\n== %s: %s\n' "$tool" "$crate"
        cargo test -p "$crate" --lib --tests --locked --no-fail-fast \
            --target "$triple" --target-dir "$target/sanitize-$tool" "$@" ||
            failed="$failed $tool:$crate"
    done
}

# The standard library is built with instrumentation, too, for which its sources are needed. As it
# is shipped, the sanitizer does not see how a Mutex, a channel or the end of a thread orders what
# it guards, and takes correct programs for racy ones.
thread() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] || {
        echo "sanitize: please run: rustup component add rust-src" >&2
        exit 2
    }
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread --cfg tsan" cargo_test thread -Zbuild-std "$@"
}

# With `--cfg watched` every record and node comes from the allocator that the tool watches, instead
# of from our slabs. Leaks are not looked for unless asked (ASAN_OPTIONS=detect_leaks=1): what waits
# for its epoch when a test ends may be reached only by the tagged pointers of a hash table.
address() {
    ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}" \
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address --cfg watched" cargo_test address "$@"
}

memcheck() {
    command -v valgrind >/dev/null 2>&1 || {
        echo "sanitize: please install valgrind" >&2
        exit 2
    }
    runner=$(echo "CARGO_TARGET_${triple}_RUNNER" | tr 'a-z-' 'A-Z_')
    export "$runner=valgrind --quiet --error-exitcode=1 --leak-check=no"
    RUSTFLAGS="--cfg watched" cargo_test memcheck "$@"
}

[ $# -eq 0 ] || set -- -- "$@"
for tool in ${tools:-thread address}; do
    "$tool" "$@"
done

if [ -n "$failed" ]; then
    printf '\nnot in order:%s, see above\n' "$failed"
    exit 1
fi
printf '\nall in order\n'
