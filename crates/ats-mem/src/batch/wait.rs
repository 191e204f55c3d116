//! The wait of a writer for a key that is held.

use crate::change::Busy;
use ats_sync::shim::thread;
#[cfg(not(any(loom, shuttle)))]
use std::time::Duration;
use std::time::Instant;

/// The time for which a writer waits for a batch before it reports [`Busy`].
#[cfg(not(any(loom, shuttle)))]
const WAIT_LIMIT: Duration = Duration::from_micros(200);

/// The waiting of one writer for batches in its way.
#[derive(Default)]
pub struct HeldKeyWait(Option<Instant>);

impl HeldKeyWait {
    /// A waiting that has not begun.
    pub fn new() -> Self {
        HeldKeyWait(None)
    }

    /// Waits a moment; [`Busy`] if that has been going on for too long.
    #[cfg(not(any(loom, shuttle)))]
    pub fn wait(&mut self) -> Result<(), Busy> {
        let start = *self.0.get_or_insert_with(Instant::now);
        if start.elapsed() > WAIT_LIMIT {
            return Err(Busy);
        }
        thread::yield_now();
        Ok(())
    }

    /// Waits without time: interleavings that are explored could not be repeated if time counted.
    #[cfg(any(loom, shuttle))]
    pub fn wait(&mut self) -> Result<(), Busy> {
        thread::yield_now();
        match self.0.replace(Instant::now()) {
            None => Ok(()),
            Some(_) => Err(Busy),
        }
    }
}
