//! Integration tests of the stores in one program, so that shared code is compiled once. Tests that
//! read the statistics of the slab have a program of their own.
#![cfg(not(loom))]

mod adapting;
mod batches;
mod catree;
mod claims;
mod freeing;
mod hash;
mod order_statistics;
mod pop;
mod read_points;
#[path = "../stores/mod.rs"]
mod stores;
mod waits;
