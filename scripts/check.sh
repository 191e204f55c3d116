#!/bin/sh
# Looks at the code without running it: formatting, lints, documentation, layers, cross references,
# types. Goes through all checks even if one fails, and fails at the end. Each check says "ok: NAME"
# or "not ok: NAME".
set -u
cd "$(dirname "$0")/.."

# Little of what is built here runs.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0

failed=""
target=${CARGO_TARGET_DIR:-$PWD/target}

check() {
    name=$1
    shift
    printf '\n== %s\n' "$name"
    if "$@"; then
        echo "ok: $name"
    else
        echo "not ok: $name"
        failed="$failed $name,"
    fi
}

check "formatting" cargo fmt --all --check
check "clippy" cargo clippy --workspace --all-targets --features ats-nif/forcing,ats-nif/rivals \
    --locked -- -D warnings
check "clippy of the release" cargo clippy -p ats-nif --locked -- -D warnings
check "clippy of the functions for tests of terms" \
    cargo clippy -p ats-nif --features test-nifs --locked -- -D warnings
# The oldest Rust that Cargo.toml promises, which rustup installs if it can.
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if command -v rustup >/dev/null 2>&1 && {
    rustup run "$oldest" cargo --version ||
        rustup toolchain install "$oldest" --profile minimal --no-self-update
} >/dev/null 2>&1; then
    check "Rust $oldest" cargo "+$oldest" check -p ats -p ats-nif -p ats-cli --locked \
        --features ats/derive,ats/disk,ats/serde,ats/uuid,ats/chrono --target-dir "$target/oldest"
else
    echo "not run: Rust $oldest, which rustup cannot install here"
fi
# Stores for comparison, and what they need, are in no release.
release_has_no_rivals() {
    depended=$(cargo tree -p ats-nif -e normal --prefix none --locked) || return
    ! echo "$depended" | grep -E "^(ats-rivals|crossbeam-skiplist) "
}
check "dependencies of the release" release_has_no_rivals
check "packages of the crates" ./scripts/release.sh --crates --no-verify --allow-dirty --quiet
check "clippy of the models" env RUSTFLAGS="--cfg loom" \
    cargo clippy -p ats-sync -p ats-mem -p ats-rivals --all-targets --locked \
    --target-dir "$target/loom" -- -D warnings
# Without RocksDB, which takes a quarter of an hour to build.
check "clippy of the benchmarks" cargo clippy --manifest-path bench/Cargo.toml --workspace \
    --no-default-features --all-targets --locked --target-dir "$target/bench" -- -D warnings
check "formatting of the benchmarks" cargo fmt --manifest-path bench/Cargo.toml --all --check
check "formatting of the storage of openraft" \
    cargo fmt --manifest-path examples/openraft/Cargo.toml --check
check "documentation" env RUSTDOCFLAGS="-D warnings -A rustdoc::redundant_explicit_links" \
    cargo doc --workspace --no-deps --document-private-items --locked
# As users of the crate build it; above, other crates choose its features.
check "documentation of the crate ats" \
    env RUSTDOCFLAGS="-D warnings -A rustdoc::redundant_explicit_links" \
    cargo doc -p ats --no-deps --features derive,disk,serde,uuid,chrono --locked
layers() {
    cargo fmt --manifest-path tools/layers/Cargo.toml --check &&
        cargo clippy --manifest-path tools/layers/Cargo.toml --all-targets --locked \
            --target-dir "$target/layers" -- -D warnings &&
        cargo test --manifest-path tools/layers/Cargo.toml --locked --target-dir "$target/layers" &&
        cargo run --manifest-path tools/layers/Cargo.toml --locked --target-dir "$target/layers"
}
check "layers" layers
# Of two modules with one name only one is loaded, and its tests run twice.
test_modules() {
    twice=$(find test -name '*.erl' -exec basename {} .erl \; | sort | uniq -d)
    [ -z "$twice" ] || { echo "several modules are called $twice" && return 1; }
}
check "names of test modules" test_modules
check "prose" ./scripts/text.sh prose
check "labels of invariants" ./scripts/text.sh labels
check "length of lines" ./scripts/text.sh lines
check "links" ./scripts/text.sh links
# A check links nothing, so libFuzzer, which is C++, need not be there.
check "fuzz targets" env CUSTOM_LIBFUZZER_PATH=/none/libfuzzer.a \
    cargo check --manifest-path fuzz/Cargo.toml --locked --target-dir "$target/fuzz"
# Not in the folders that tests run from meanwhile: a module is missing while it is compiled.
export REBAR_BASE_DIR="$PWD/_build/check"
check "warnings" rebar3 as strict compile
check "xref" rebar3 xref
compiled=$REBAR_BASE_DIR/strict/lib/ats
check "dialyzer" scripts/dialyze.escript "$compiled/ebin" "$compiled/demo" "$compiled/bench/erlang"

if [ -n "$failed" ]; then
    printf '\nnot in order:%s see above\n' "$failed"
    exit 1
fi
printf '\nall in order\n'
