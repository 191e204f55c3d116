#!/bin/sh
# Runs the tests that openraft has for a storage on the storage in `examples/openraft`.
set -eu
cd "$(dirname "$0")/../.."
exec cargo test --locked --manifest-path examples/openraft/Cargo.toml \
    --target-dir "${CARGO_TARGET_DIR:-target}/openraft"
