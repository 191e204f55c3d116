//! The clock by which objects expire: milliseconds since the process looked first. It does not go
//! back, and does not follow the time of day.

use std::sync::OnceLock;
use std::time::Instant;

/// Returns the time, in milliseconds, from 1.
pub(super) fn now() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(Instant::now);
    let since = begin.elapsed().as_millis() as u64 + 1;
    #[cfg(feature = "forcing")]
    let since = since + super::AHEAD.load(std::sync::atomic::Ordering::Relaxed);
    since
}
