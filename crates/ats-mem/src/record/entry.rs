//! The batch entry that the stamp of a pending record refers to.
//!
//! The invariants (BATCH-1 and so on) are those of [`batch`](crate::batch).

use super::version::When;
use ats_sync::shim::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::ptr;

/// The state of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// Committed at this time of the [clock](crate::read_points).
    Committed(u64),
    Aborted,
}

const OPEN: u64 = u64::MAX;
const ABORTED: u64 = u64::MAX - 1;

/// The part of a batch that readers load.
pub(crate) struct BatchState {
    /// The time of the commit, or another state.
    word: AtomicU64,
    /// The state of the batch that leads the group of this one, or null.
    leader: *const BatchState,
}

impl BatchState {
    /// Creates the state of an open batch.
    pub(crate) fn new() -> Self {
        BatchState {
            word: AtomicU64::new(OPEN),
            leader: ptr::null(),
        }
    }

    /// Makes the batch, which has no entries yet, one of a group that another batch leads. That one
    /// has no leader, and is freed later than the entries of this one (BATCH-7).
    pub(crate) fn follow(&mut self, leader: &BatchState) {
        self.leader = leader;
    }

    /// Ends the batch (BATCH-1). A thread that reads this state sees all earlier writes. The commit
    /// of a batch that has a leader takes effect when the leader commits (BATCH-7).
    pub(crate) fn end(&self, state: State) {
        let word = match state {
            State::Open => OPEN,
            State::Committed(time) => time,
            State::Aborted => ABORTED,
        };
        self.word.store(word, Ordering::Release);
    }

    fn state(&self) -> State {
        // SAFETY: `leader` is null, or the state of a batch that is freed later than the entries of
        // this one, of which the caller has one (BATCH-7).
        let leader = unsafe { self.leader.as_ref() }.map(BatchState::own_state);
        match leader {
            // The time of this batch was set before.
            None | Some(State::Committed(_)) => self.own_state(),
            Some(state) => state,
        }
    }

    fn own_state(&self) -> State {
        match self.word.load(Ordering::Acquire) {
            OPEN => State::Open,
            ABORTED => State::Aborted,
            time => State::Committed(time),
        }
    }
}

/// The batch entry that the stamp of a pending record of type `T` points to.
pub(crate) struct Entry<T> {
    shared: *const BatchState,
    before: *const T,
    /// The stamped record in the store. Flag bits of its address mark a record that only holds its
    /// key, or is kept: a commit does not make these visible. Both bits mark a removal.
    installed: AtomicPtr<T>,
}

/// Flag of the address of a record that only holds its key. Records are aligned to words.
const HOLDS: usize = 1;
/// Flag of a record that was in the store before, and stays.
const KEPT: usize = 2;

/// The record that a batch has in the store for a key.
pub(crate) enum Installed<T> {
    /// Nothing: the record was taken out.
    Nothing,
    /// A record that only holds the key.
    Hold(*mut T),
    /// The record before, which stays.
    Kept(*mut T),
    /// The record that the commit makes visible.
    Put(*mut T),
    /// A record that holds the key, and by which the commit removes it: it has no value.
    Removal(*mut T),
}

impl<T> Entry<T> {
    /// Creates the entry of a record that replaces the record before, or none (null), but is not
    /// [installed](Entry::install) yet.
    ///
    /// # Safety
    /// The shared part must live as long as the entry.
    pub(crate) unsafe fn new(shared: *const BatchState, before: *const T) -> Self {
        Entry {
            shared,
            before,
            installed: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Records the stamped record, before it is published.
    pub(crate) fn install(&self, installed: &Installed<T>) {
        let word = match installed {
            Installed::Nothing => ptr::null_mut(),
            Installed::Hold(record) => record.map_addr(|address| address | HOLDS),
            Installed::Kept(record) => record.map_addr(|address| address | KEPT),
            Installed::Put(record) => *record,
            Installed::Removal(record) => record.map_addr(|address| address | HOLDS | KEPT),
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
            KEPT => Installed::Kept(record),
            _ => Installed::Removal(record),
        }
    }

    /// Returns `true` if a query at this read point sees the stamped record, and not the one
    /// before.
    pub(crate) fn shows(&self, stamped: &T, when: When) -> bool {
        match self.load_installed() {
            Installed::Kept(record) => ptr::eq(record, stamped),
            Installed::Put(record) | Installed::Removal(record) => {
                ptr::eq(record, stamped) && self.has_committed(when)
            }
            Installed::Nothing | Installed::Hold(_) => false,
        }
    }

    fn has_committed(&self, when: When) -> bool {
        // SAFETY: the creator of the entry has promised that the shared part of the batch outlives
        // it: the batch frees both together (BATCH-4).
        match unsafe { &*self.shared }.state() {
            State::Committed(time) => when.sees(time),
            State::Open | State::Aborted => false,
        }
    }

    /// Returns the record before, if there was one.
    ///
    /// # Safety
    /// During `'r` it must not be retired, or only under a guard that the caller has (BATCH-3).
    pub(crate) unsafe fn before<'r>(&self) -> Option<&'r T> {
        // SAFETY: `before` is null or comes from a reference, and never changes (BATCH-2). The
        // caller promises that the record is not retired during `'r`, or only under the caller's
        // guard (BATCH-3).
        unsafe { self.before.as_ref() }
    }
}
