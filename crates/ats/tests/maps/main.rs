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
// The tests call the compiler with the library of this program, which a sanitizer has changed.
#[cfg(not(any(miri, fuzzing, watched, tsan)))]
mod mistakes;
mod model;
mod serialized;
mod threads;
mod transactions;
mod values;
