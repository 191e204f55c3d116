//! Interleavings of few threads in the places where the structure of a store for comparison
//! changes, chosen by a scheduler that looks for trouble. Runs under `RUSTFLAGS="--cfg shuttle"`.
#![cfg(shuttle)]

// Before the module that uses its macro.
#[macro_use]
#[path = "../../../ats-mem/tests/stores/exploring.rs"]
mod exploring;

mod paper_tree;
