//! The command `ats disk` on real stores: its output, and its exit codes.

mod common;
mod stores;
mod tables;
