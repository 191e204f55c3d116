//! The entry to which the stamp of a pending record leads.
//!
//! The invariants (BATCH-1 and so on) are those of [`batch`](crate::batch).

use super::version::When;
use ats_sync::shim::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::ptr;

/// The state of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// At this time of the [clock](crate::moments).
    Committed(u64),
    Aborted,
}

const OPEN: u64 = u64::MAX;
const ABORTED: u64 = u64::MAX - 1;

/// The part of a batch that readers look at: the time at which it committed, or another state.
pub(crate) struct BatchState(AtomicU64);

impl BatchState {
    /// That of an open batch.
    pub(crate) fn new() -> Self {
        BatchState(AtomicU64::new(OPEN))
    }

    /// Ends the batch (BATCH-1). A thread that reads this state sees everything that was written
    /// before.
    pub(crate) fn end(&self, state: State) {
        let word = match state {
            State::Open => OPEN,
            State::Committed(time) => time,
            State::Aborted => ABORTED,
        };
        self.0.store(word, Ordering::Release);
    }

    fn state(&self) -> State {
        match self.0.load(Ordering::Acquire) {
            OPEN => State::Open,
            ABORTED => State::Aborted,
            time => State::Committed(time),
        }
    }
}

/// The entry to which the stamp of a pending record of type `T` points.
pub(crate) struct Entry<T> {
    shared: *const BatchState,
    before: *const T,
    /// The record in the store that bears the stamp. Bits of its address say if it only holds its
    /// key, or is kept: so it is not the record that a commit makes visible.
    installed: AtomicPtr<T>,
}

/// The bit of an address that says that the record only holds its key. Records are aligned to
/// words.
const HOLDS: usize = 1;
/// The bit that says that the record was there before, and stays.
const KEPT: usize = 2;

/// The record that a batch has in the store for one of its keys.
pub(crate) enum Installed<T> {
    /// Nothing any more.
    Nothing,
    /// A record that only holds the key.
    Hold(*mut T),
    /// The record that was there before.
    Kept(*mut T),
    /// The record that the commit makes visible.
    Put(*mut T),
}

impl<T> Entry<T> {
    /// The entry of a record that takes the place of the one before, or of nothing (null), but is
    /// not [installed](Entry::install) yet.
    ///
    /// # Safety
    /// The shared part lives as long as the entry.
    pub(crate) unsafe fn new(shared: *const BatchState, before: *const T) -> Self {
        Entry {
            shared,
            before,
            installed: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Says what has the stamp, before it is published.
    pub(crate) fn install(&self, installed: &Installed<T>) {
        let word = match installed {
            Installed::Nothing => ptr::null_mut(),
            Installed::Hold(record) => record.map_addr(|address| address | HOLDS),
            Installed::Kept(record) => record.map_addr(|address| address | KEPT),
            Installed::Put(record) => *record,
        };
        self.installed.store(word, Ordering::Release);
    }

    pub(crate) fn load_installed(&self) -> Installed<T> {
        let word = self.installed.load(Ordering::Acquire);
        let record = word.map_addr(|address| address & !(HOLDS | KEPT));
        match word.addr() & (HOLDS | KEPT) {
            _ if word.is_null() => Installed::Nothing,
            0 => Installed::Put(record),
            HOLDS => Installed::Hold(record),
            _ => Installed::Kept(record),
        }
    }

    /// Returns `true` if a query of this moment sees this record, which is stamped with the entry,
    /// and not the one before.
    pub(crate) fn shows(&self, stamped: &T, when: When) -> bool {
        match self.load_installed() {
            Installed::Kept(record) => ptr::eq(record, stamped),
            Installed::Put(record) => ptr::eq(record, stamped) && self.has_committed(when),
            Installed::Nothing | Installed::Hold(_) => false,
        }
    }

    fn has_committed(&self, when: When) -> bool {
        // SAFETY: who made the entry has promised to `new` that the shared part of the batch
        // outlives it: the batch frees both together (BATCH-4).
        match unsafe { &*self.shared }.state() {
            State::Committed(time) => when.sees(time),
            State::Open | State::Aborted => false,
        }
    }

    /// The record that was there before, if there was one.
    ///
    /// # Safety
    /// As long as `'r` it is not retired, or is so under a guard that the caller has (BATCH-3).
    pub(crate) unsafe fn before<'r>(&self) -> Option<&'r T> {
        // SAFETY: `before` is null or comes from a reference, and never changes (BATCH-2). The
        // caller says that the record is not retired as long as `'r`, or is so under the caller's
        // guard (BATCH-3).
        unsafe { self.before.as_ref() }
    }
}
