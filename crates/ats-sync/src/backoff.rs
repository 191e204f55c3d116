//! Waiting for a thread that is about to be done.

use crate::lock;
use crate::model::WAIT_SPINS;
use std::time::Instant;

/// The waiting of one thread for others that need a moment, unless the system has stopped them.
pub struct Backoff {
    spins: u32,
    end: Option<Option<Instant>>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// A waiting that has not begun.
    pub fn new() -> Self {
        Backoff {
            spins: 0,
            end: None,
        }
    }

    /// Waits a moment; false if that has been going on for too long for a thread that
    /// [must not wait](lock::set_may_wait).
    pub fn wait(&mut self) -> bool {
        self.spins += 1;
        if self.spins < WAIT_SPINS {
            crate::shim::pause();
            return true;
        }
        // A thread that the system has stopped may need this processor.
        crate::shim::thread::yield_now();
        let end = self
            .end
            .get_or_insert_with(|| lock::limit_of_thread().map(|limit| Instant::now() + limit));
        end.is_none_or(|end| Instant::now() < end)
    }
}
