//! What the stamp of a pending record leads to.
//!
//! The invariants (B1 and so on) are those of [`batch`](crate::batch).

use super::{Record, Release};
use ats_sync::shim::atomic::{AtomicU8, Ordering};

/// What has become of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    Open = 0,
    Committed = 1,
    Aborted = 2,
}

/// The part of a batch that readers look at: its state.
pub(crate) struct Shared(AtomicU8);

impl Shared {
    /// That of an open batch.
    pub(crate) fn new() -> Self {
        Shared(AtomicU8::new(State::Open as u8))
    }

    /// The batch ends (B1). Whoever reads the state sees all that was written before.
    pub(crate) fn end(&self, state: State) {
        self.0.store(state as u8, Ordering::Release);
    }

    fn state(&self) -> State {
        match self.0.load(Ordering::Acquire) {
            0 => State::Open,
            1 => State::Committed,
            _ => State::Aborted,
        }
    }
}

/// What the stamp of a pending record points to.
pub(crate) struct Entry<R: Release> {
    shared: *const Shared,
    before: *const Record<R>,
    record: *mut Record<R>,
}

impl<R: Release> Entry<R> {
    /// The entry of a record, which takes the place of the one before, or of nothing (null).
    ///
    /// # Safety
    /// The shared part lives as long as the entry.
    pub(crate) unsafe fn new(
        shared: *const Shared,
        before: *const Record<R>,
        record: *mut Record<R>,
    ) -> Self {
        Entry {
            shared,
            before,
            record,
        }
    }

    pub(crate) fn state(&self) -> State {
        // SAFETY: promised to `new`; the batch frees it together with the entries (B4).
        unsafe { &*self.shared }.state()
    }

    pub(crate) fn before(&self) -> *const Record<R> {
        self.before
    }

    pub(crate) fn record(&self) -> *mut Record<R> {
        self.record
    }
}
