//! Tests of the one part of this crate that needs no VM: names of tables.

#[path = "../src/names.rs"]
pub mod names;
