//! Integration tests of the crate. They form one program, so that common code is compiled once.
//! Tests that measure the memory of the whole process are separate programs.

mod adaptation;
mod bags;
#[path = "../../../ats-mem/tests/stores/checker.rs"]
mod checker;
mod common;
mod compressed;
mod counters;
mod expiring_on_disk;
mod failing;
mod linear;
mod lists;
mod long;
mod merges;
mod model;
mod moments;
mod operator;
mod operator_on_disk;
mod order_statistics;
mod ownership;
mod reclaim;
mod snapshots;
mod take_all;
mod threads;
mod transactions;
mod transactions_together;
