//! The version of a record that was written while queries ran: its time, and the way to the record
//! before.
//!
//! The invariants (MOMENTS-1 and so on) are those of [`moments`](crate::moments).

use super::history::{History, PAGE};
use crate::slab;
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// The moment that a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct When(pub(crate) u64);

impl When {
    /// Each record as of the moment at which it is come to.
    pub const NOW: Self = When(u64::MAX);

    /// Returns `true` if what has this time is seen.
    #[inline(always)]
    pub(crate) fn sees(self, time: u64) -> bool {
        time <= self.0
    }

    /// Returns `true` if this is no moment of a query.
    #[inline(always)]
    pub fn is_now(self) -> bool {
        self == Self::NOW
    }
}

/// The time at which a record was written while queries ran, and the record before it.
pub(crate) struct Version<T> {
    /// The time of the clock.
    pub(crate) time: u64,
    /// The record before; marked as moved if another version leads to it now.
    pub(crate) before: AtomicPtr<T>,
    pub(crate) record: AtomicPtr<T>,
    /// The next one in the list. Used by the thread that puts it there, then by that which takes it
    /// out: from then on the number of bytes that it is counted with, marked as [`COUNTED`].
    pub(crate) next: AtomicPtr<Version<T>>,
    /// The history of the records before, or the [`Distance`] to the next version with one, as an
    /// address.
    history: AtomicPtr<History<T>>,
}

/// The number of versions from one down to the next with a history: up to [`PAGE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Distance(pub(crate) usize);

impl<T> Version<T> {
    /// A version of a record.
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

    /// Puts it into a block. Versions end together, and records that were made between them stay.
    pub(crate) fn into_block(self) -> NonNull<Self> {
        let block = slab::allocate_passing(size_of::<Self>()).cast::<Self>();
        // SAFETY: the block is new, large enough and aligned.
        unsafe { block.write(self) };
        block
    }

    /// Frees its block.
    ///
    /// # Safety
    /// `version` comes from [`into_block`](Version::into_block), and no other code has it.
    pub(crate) unsafe fn free(version: NonNull<Self>) {
        // SAFETY: the block was allocated with this size, and the caller says that no other code
        // has it. The version has a count of its history.
        unsafe {
            let history = version.as_ref().history.load(Ordering::Acquire);
            if history.addr() > PAGE {
                drop(Arc::from_raw(history));
            }
            version.drop_in_place();
            slab::free_passing(version.cast(), size_of::<Self>());
        }
    }

    /// The record before, if there was one.
    pub(crate) fn before<'g>(&'g self, _guard: &'g Guard) -> Option<&'g T> {
        let before = self.before.load(Ordering::Acquire);
        // SAFETY: what a version leads to is retired when the version is cut, which is so when no
        // query is left that looks for it (MOMENTS-2); a version is reached under a guard that is
        // older than that.
        unsafe { before.map_addr(|address| address & !MOVED).as_ref() }
    }

    /// The record that queries of this moment see, which do not see the record of this version; or
    /// one on the way there.
    #[inline]
    pub(crate) fn before_at<'g>(&'g self, when: When, guard: &'g Guard) -> Option<&'g T> {
        match self.history(guard) {
            // SAFETY: a history tells the record that a query of the moment sees, which is not
            // retired while the query runs; or, if the query has ended, one that was not retired
            // when this thread was pinned (MOMENTS-6).
            Ok(history) => unsafe { history.find(when.0, guard).as_ref() },
            Err(_) => self.before(guard),
        }
    }

    /// The history of the records before.
    #[inline]
    pub(crate) fn history<'g>(&'g self, _guard: &'g Guard) -> Result<&'g History<T>, Distance> {
        let history = self.history.load(Ordering::Acquire);
        match history.addr() {
            distance @ 0..=PAGE => Err(Distance(distance)),
            // SAFETY: the version has a count of its history, and lives as long as the guard.
            _ => Ok(unsafe { &*history }),
        }
    }

    /// Another count of its history.
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

    /// Takes the history of the version that this one passes over, if it has none. For the thread
    /// that cuts.
    pub(crate) fn take_over_history(&self, of: &Self, guard: &Guard) {
        if self.history(guard).is_err()
            && let Ok(history) = of.share_history(guard)
        {
            let history = Arc::into_raw(history).cast_mut();
            self.history.store(history, Ordering::Release);
        }
    }

    /// Bytes of the version, and of its part of a history. The same all its life.
    pub(crate) fn bytes(&self) -> usize {
        // Histories have at most about twice as many records as queries read.
        let part = match self.history.load(Ordering::Relaxed).is_null() {
            true => 0,
            false => 2 * size_of::<(u64, *mut T)>(),
        };
        size_of::<Self>() + part
    }

    /// The bytes that it was counted with since it was taken out of the list; `None` if it is still
    /// there.
    pub(crate) fn counted(&self) -> Option<usize> {
        let word = self.next.load(Ordering::Relaxed).addr();
        (word & COUNTED != 0).then_some(word >> 1)
    }

    /// Notes the bytes that it is counted with. For the thread that cuts, when it has been taken
    /// out of the list.
    pub(crate) fn set_counted(&self, bytes: usize) {
        let word = ptr::without_provenance_mut(bytes << 1 | COUNTED);
        self.next.store(word, Ordering::Relaxed);
    }

    /// The record before, if this version is the one to free it.
    pub(crate) fn owned_before(&self) -> *mut T {
        match self.is_passed_over() {
            true => ptr::null_mut(),
            false => self.before.load(Ordering::Acquire),
        }
    }

    /// Returns `true` if its record was taken out of the middle of a chain.
    pub(crate) fn is_passed_over(&self) -> bool {
        self.before.load(Ordering::Acquire).addr() & MOVED != 0
    }

    /// The record that bears it, or is about to.
    pub(crate) fn borne_by<'g>(&self, _guard: &'g Guard) -> Option<&'g T> {
        let record = self.record.load(Ordering::Acquire);
        // SAFETY: a record is detached before it is retired, and this thread was pinned before it
        // read that it is not (MOMENTS-5).
        unsafe { record.map_addr(|bits| bits & !HEIR).as_ref() }
    }

    /// Says that the record, which has this version, is about to be retired.
    pub(crate) fn detach(&self, record: *mut T) {
        let null = ptr::null_mut();
        // In this order, since an heir comes to bear it. It may have been given to the successor.
        let _ = self.exchange(as_heir(record), null) || self.exchange(record, null);
    }

    /// Gives it to the successor of its record, which `stamp` gives it as its stamp. Fails if it is
    /// being cut.
    pub(crate) fn give(&self, record: &T, successor: &T, stamp: impl FnOnce()) -> bool {
        let (from, to) = (ptr::from_ref(record), ptr::from_ref(successor));
        let (from, to) = (from.cast_mut(), to.cast_mut());
        let is_given = self.exchange(from, as_heir(to));
        if is_given {
            stamp();
            // From the stamp on, another writer may replace the successor, and detach it.
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

/// The bit of the address of a record that is given a version, and does not bear it yet
/// (MOMENTS-5). Records are aligned to words.
pub(crate) const HEIR: usize = 1;

/// The bit of the address of a record before to which the version above leads now.
pub(crate) const MOVED: usize = 1;

/// The bit of a number of bytes, in the place of the next version. Versions are aligned to words.
const COUNTED: usize = 1;

fn as_heir<T>(record: *mut T) -> *mut T {
    record.map_addr(|address| address | HEIR)
}
