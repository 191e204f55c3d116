//! The wait of a writer for a held key.

use crate::change::Busy;
use ats_sync::model::IS_EXPLORED;
use ats_sync::shim::thread;
use std::time::{Duration, Instant};

/// Time for which a writer waits for a batch before it reports [`Busy`].
const WAIT_LIMIT: Duration = Duration::from_micros(200);

/// A bounded wait of a writer for batches in its way.
#[derive(Default)]
pub struct HeldKeyWait(Option<Instant>);

impl HeldKeyWait {
    /// Creates a wait that has not begun.
    pub fn new() -> Self {
        HeldKeyWait(None)
    }

    /// Waits a moment. Returns [`Busy`] if the waiting takes too long: in explored runs, the second
    /// time.
    pub fn wait(&mut self) -> Result<(), Busy> {
        let is_over = |start: Instant| IS_EXPLORED || start.elapsed() > WAIT_LIMIT;
        if self.0.is_some_and(is_over) {
            return Err(Busy);
        }
        self.0.get_or_insert_with(Instant::now);
        thread::yield_now();
        Ok(())
    }
}
