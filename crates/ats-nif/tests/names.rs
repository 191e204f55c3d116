//! Tests of the only module that needs no VM: names of tables.

#[path = "../src/names.rs"]
pub mod names;
