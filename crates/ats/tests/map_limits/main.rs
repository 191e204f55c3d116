//! Tests of maps whose pairs expire, and of maps with a bound. They put the clock of the process
//! ahead, so they are a program of their own, and run one at a time.
#![cfg(not(any(miri, fuzzing, watched, tsan)))]

mod bounds;
#[path = "../../../ats-mem/tests/stores/checker.rs"]
mod checker;
mod expiry;
#[path = "../all/common/histories.rs"]
mod histories;
mod linear;
mod model;
mod transactions;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The unit of times: so long that a test does not take as long.
const UNIT: Duration = Duration::from_secs(1000);

/// Returns a time of some units and a half.
fn units(number: u64) -> Duration {
    UNIT * number as u32 + UNIT / 2
}

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
