//! Processes that are copies of the one that opened a store, by `fork`.
//!
//! Such a copy has the files of the store, and the lock of its directory, but none of its threads.
//! The copy may read. If it wrote, it would write to the offsets in the journal to which the other
//! process writes, too. So a store remembers how often the process was copied until it was opened,
//! which is a load for those that ask whether that has changed.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of forks that lead from the process that asked first to this one.
pub(crate) fn fork_count() -> u64 {
    static REGISTERED: Once = Once::new();
    // Forks go unnoticed in a process that has too little memory for the handler.
    REGISTERED.call_once(|| {
        // SAFETY: the function may be called in any process at any time: it only adds to a static
        // number.
        let _noticed = unsafe { libc::pthread_atfork(None, None, Some(on_fork)) };
    });
    FORKS.load(Ordering::Relaxed)
}

/// Returns `true` if this process is a copy of the one in which [`fork_count`] had this value.
#[inline]
pub(crate) fn is_forked_since(fork_count: u64) -> bool {
    FORKS.load(Ordering::Relaxed) != fork_count
}
