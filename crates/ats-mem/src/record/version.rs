//! Versions of records written while queries ran: their times, and the records before.
//!
//! The invariants (READ_POINTS-1 and so on) are those of [`read_points`](crate::read_points).

use super::history::{History, PAGE};
use crate::slab;
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The read point of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct When(pub(crate) u64);

impl When {
    /// The read point of readers that see each record as it is when they reach it.
    pub const NOW: Self = When(u64::MAX);

    /// Returns `true` if writes of this time are visible.
    #[inline(always)]
    pub(crate) fn sees(self, time: u64) -> bool {
        time <= self.0
    }

    /// Returns `true` if this is not the read point of a query.
    #[inline(always)]
    pub fn is_now(self) -> bool {
        self == Self::NOW
    }
}

/// The time of a record written while queries ran, and the record before it.
pub(crate) struct Version<T> {
    /// The time of the clock.
    pub(crate) time: u64,
    /// The record before; marked as moved if another version now leads to it.
    pub(crate) before: AtomicPtr<T>,
    pub(crate) record: AtomicPtr<T>,
    /// The next version in the list. Used by the thread that lists the version, then by the one
    /// that takes it out: from then on it is the number of bytes counted for it, marked as
    /// [`COUNTED`].
    pub(crate) next: AtomicPtr<Version<T>>,
    /// The history of the records before, or the [`Distance`] to the next version with a history,
    /// as an address.
    history: AtomicPtr<History<T>>,
}

/// The number of versions from this one down to the next with a history: up to [`PAGE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distance(pub(crate) usize);

impl<T> Version<T> {
    /// Creates the version of a record.
    pub(crate) fn new(
        time: u64,
        before: *mut T,
        record: &T,
        history: Result<Arc<History<T>>, Distance>,
    ) -> Self {
        let history = match history {
            Ok(history) => Arc::into_raw(history).cast_mut(),
            Err(Distance(distance)) => ptr::without_provenance_mut(distance),
        };
        Version {
            time,
            before: AtomicPtr::new(before),
            record: AtomicPtr::new(ptr::from_ref(record).cast_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            history: AtomicPtr::new(history),
        }
    }

    /// Moves the version to a block for short-lived data: versions end together, while records made
    /// in between stay.
    pub(crate) fn into_block(self) -> NonNull<Self> {
        let block = slab::allocate_passing(size_of::<Self>()).cast::<Self>();
        // SAFETY: the block is new, large enough and aligned.
        unsafe { block.write(self) };
        block
    }

    /// Frees the block of a version.
    ///
    /// # Safety
    /// `version` must come from [`into_block`](Version::into_block), and no other code may have it.
    pub(crate) unsafe fn free(version: NonNull<Self>) {
        // SAFETY: the block was allocated with this size, and the caller promises that no other
        // code has it. The version has a count of its history.
        unsafe {
            let history = version.as_ref().history.load(Ordering::Acquire);
            if history.addr() > PAGE {
                drop(Arc::from_raw(history));
            }
            version.drop_in_place();
            slab::free_passing(version.cast(), size_of::<Self>());
        }
    }

    /// Returns the record before, if there was one.
    pub(crate) fn before<'g>(&'g self, _guard: &'g Guard) -> Option<&'g T> {
        let before = self.before.load(Ordering::Acquire);
        // SAFETY: the record before is retired when its version is reclaimed, after the last query
        // that could need it (READ_POINTS-2); the guard under which the version was reached is
        // older than that.
        unsafe { before.map_addr(|address| address & !MOVED).as_ref() }
    }

    /// Returns the record that queries at this read point see, which do not see the record of this
    /// version; or a record on the way there.
    #[inline]
    pub(crate) fn before_at<'g>(&'g self, when: When, guard: &'g Guard) -> Option<&'g T> {
        match self.history(guard) {
            // SAFETY: a history returns the record that a query at the read point sees, which is
            // not retired while the query runs; or, if the query has ended, one that was not
            // retired when this thread was pinned (READ_POINTS-6).
            Ok(history) => unsafe { history.find(when.0, guard).as_ref() },
            Err(_) => self.before(guard),
        }
    }

    /// Returns the history of the records before.
    #[inline]
    pub(crate) fn history<'g>(&'g self, _guard: &'g Guard) -> Result<&'g History<T>, Distance> {
        let history = self.history.load(Ordering::Acquire);
        match history.addr() {
            distance @ 0..=PAGE => Err(Distance(distance)),
            // SAFETY: the version has a count of its history, and lives as long as the guard.
            _ => Ok(unsafe { &*history }),
        }
    }

    /// Takes another count of the history.
    pub(crate) fn share_history(&self, guard: &Guard) -> Result<Arc<History<T>>, Distance> {
        self.history(guard).map(|history| {
            // SAFETY: the history is in an `Arc`, of which the version has a count as long as the
            // guard.
            unsafe {
                Arc::increment_strong_count(history);
                Arc::from_raw(history)
            }
        })
    }

    /// Takes over the history of the version that this one passes over, if it has none itself.
    /// Called by the reclaiming thread.
    pub(crate) fn take_over_history(&self, of: &Self, guard: &Guard) {
        if self.history(guard).is_err()
            && let Ok(history) = of.share_history(guard)
        {
            let history = Arc::into_raw(history).cast_mut();
            self.history.store(history, Ordering::Release);
        }
    }

    /// Returns the bytes of the version, and of its part of a history. They never change.
    pub(crate) fn bytes(&self) -> usize {
        // Histories have at most about twice as many records as queries read.
        let part = if self.history.load(Ordering::Relaxed).is_null() {
            0
        } else {
            2 * size_of::<(u64, *mut T)>()
        };
        size_of::<Self>() + part
    }

    /// Returns the bytes counted for the version since it was taken out of the list; `None` if it
    /// is still there.
    pub(crate) fn counted(&self) -> Option<usize> {
        let word = self.next.load(Ordering::Relaxed).addr();
        (word & COUNTED != 0).then_some(word >> 1)
    }

    /// Records the bytes counted for the version. Called by the reclaiming thread, after it has
    /// taken the version out of the list.
    pub(crate) fn set_counted(&self, bytes: usize) {
        let word = ptr::without_provenance_mut(bytes << 1 | COUNTED);
        self.next.store(word, Ordering::Relaxed);
    }

    /// Returns the record before, if this version has to free it.
    pub(crate) fn owned_before(&self) -> *mut T {
        if self.is_passed_over() {
            ptr::null_mut()
        } else {
            self.before.load(Ordering::Acquire)
        }
    }

    /// Returns `true` if the record was taken out of the middle of a chain.
    pub(crate) fn is_passed_over(&self) -> bool {
        self.before.load(Ordering::Acquire).addr() & MOVED != 0
    }

    /// Returns the record that has this version, or is about to get it.
    pub(crate) fn borne_by<'g>(&self, _guard: &'g Guard) -> Option<&'g T> {
        let record = self.record.load(Ordering::Acquire);
        // SAFETY: a record is detached before it is retired, and this thread was pinned before it
        // read that it is not (READ_POINTS-5).
        unsafe { record.map_addr(|bits| bits & !HEIR).as_ref() }
    }

    /// Detaches the record, which has this version, because it is about to be retired.
    pub(crate) fn detach(&self, record: *mut T) {
        let null = ptr::null_mut();
        // The heir is tried first, because an heir becomes an ordinary record. The version may have
        // been given to the successor.
        let _ = self.exchange(as_heir(record), null) || self.exchange(record, null);
    }

    /// Gives the version to the successor of its record; `stamp` sets it as the stamp there. Fails
    /// if the version is being reclaimed.
    pub(crate) fn give(&self, record: &T, successor: &T, stamp: impl FnOnce()) -> bool {
        let (from, to) = (ptr::from_ref(record), ptr::from_ref(successor));
        let (from, to) = (from.cast_mut(), to.cast_mut());
        let is_given = self.exchange(from, as_heir(to));
        if is_given {
            stamp();
            // Once stamped, another writer may replace the successor, and detach it.
            self.exchange(as_heir(to), to);
        }
        is_given
    }

    fn exchange(&self, from: *mut T, to: *mut T) -> bool {
        let (record, order) = (&self.record, Ordering::Acquire);
        record
            .compare_exchange(from, to, Ordering::AcqRel, order)
            .is_ok()
    }
}

/// Flag of the address of a record that is about to get a version (READ_POINTS-5). Records are
/// aligned to words.
pub(crate) const HEIR: usize = 1;

/// Flag of the address of a record before to which the version above leads now.
pub(crate) const MOVED: usize = 1;

/// Flag of a number of bytes, stored in the field of the next version. Versions are aligned to
/// words.
const COUNTED: usize = 1;

fn as_heir<T>(record: *mut T) -> *mut T {
    record.map_addr(|address| address | HEIR)
}
