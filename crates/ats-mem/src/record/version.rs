//! The version of a record that was written while queries ran: its time, and the way to the record
//! before.
//!
//! The invariants (MOMENTS-1 and so on) are those of [`moments`](crate::moments).

use crate::slab;
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::ptr::{self, NonNull};

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
    /// out.
    pub(crate) next: AtomicPtr<Version<T>>,
}

impl<T> Version<T> {
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
        // has it.
        unsafe {
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

fn as_heir<T>(record: *mut T) -> *mut T {
    record.map_addr(|address| address | HEIR)
}
