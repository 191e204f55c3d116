//! The command `ats disk` on real stores: what it prints, and what it tells the shell.

mod common;
mod stores;
mod tables;
