//! The storage alone, with the tests that openraft has for storages, and in clusters.

mod cluster;
#[path = "../../../../crates/ats-disk/tests/support/directory.rs"]
mod directory;
mod durability;
#[path = "../../../../crates/ats-disk/tests/store/hooked.rs"]
#[allow(dead_code, reason = "other tests use what these do not")]
mod hooked;
mod reopened;
mod suite;
