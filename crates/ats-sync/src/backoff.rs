//! Backoff: spinning, then yielding, until another thread is done.

use crate::lock;
use crate::model::WAIT_SPINS;
use std::time::Instant;

/// A bounded wait for other threads that need a moment, unless the system has stopped them.
pub struct Backoff {
    spins: u32,
    #[expect(clippy::option_option, reason = "a wait may be begun and have no end")]
    end: Option<Option<Instant>>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// Creates a wait that has not begun.
    pub fn new() -> Self {
        Backoff {
            spins: 0,
            end: None,
        }
    }

    /// Waits a moment. Returns `false` if the waiting takes too long for a thread that [must not
    /// wait](lock::set_may_wait).
    pub fn wait(&mut self) -> bool {
        self.spins += 1;
        if self.spins < WAIT_SPINS {
            crate::shim::pause();
            return true;
        }
        // The other thread may need this processor.
        crate::shim::thread::yield_now();
        let end = self
            .end
            .get_or_insert_with(|| lock::limit_of_thread().map(|limit| Instant::now() + limit));
        end.is_none_or(|end| Instant::now() < end)
    }
}
