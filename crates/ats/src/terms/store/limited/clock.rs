//! The clock by which objects expire, in milliseconds. It does not go back, and does not follow the
//! time of day. Tests put it ahead.

use ats_sync::clock;
#[cfg(feature = "forcing")]
use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds by which the clock of all tables is ahead.
#[cfg(feature = "forcing")]
pub(super) static AHEAD: AtomicU64 = AtomicU64::new(0);

fn ahead() -> u64 {
    #[cfg(feature = "forcing")]
    return AHEAD.load(Ordering::Relaxed);
    #[cfg(not(feature = "forcing"))]
    0
}

/// Returns the time.
pub(super) fn now() -> u64 {
    clock::now() + ahead()
}

/// Returns a time that is [late](clock::LATE).
#[inline]
pub(super) fn recent() -> u64 {
    clock::recent() + ahead()
}

/// Returns the time if a deadline may have passed by then; `None` if it is far away.
#[inline]
pub(super) fn now_if_near(deadline: u64) -> Option<u64> {
    let is_far = deadline > recent() + clock::LATE;
    (!is_far).then(now)
}
