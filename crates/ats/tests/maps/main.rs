//! Tests of typed maps.

mod attributes;
#[path = "../../../ats-mem/tests/stores/checker.rs"]
mod checker;
mod derived;
mod disk;
mod disk_transactions;
#[path = "../all/common/histories.rs"]
mod histories;
mod keys;
mod making;
mod model;
mod serialized;
mod threads;
mod transactions;
mod values;
