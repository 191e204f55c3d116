//! Tests of the crate from outside, in one program: what they share is compiled once. Those that
//! look at the memory of the whole process have a program of their own.

mod adaptation;
mod bags;
#[path = "../../../ats-mem/tests/stores/checker.rs"]
mod checker;
mod common;
mod compressed;
mod counters;
mod failing;
mod linear;
mod lists;
mod long;
mod merges;
mod model;
mod operator;
mod operator_on_disk;
mod ownership;
mod places;
mod reclaim;
mod snapshots;
mod take_all;
mod threads;
