//! Tests of the stores from outside, in one program, so that shared code is compiled once.
#![cfg(not(loom))]

mod batches;
mod claims;
mod freeing;
mod ordered;
mod pop;
mod rivals;
#[path = "../../../ats-mem/tests/stores/mod.rs"]
mod stores;
mod unordered;
