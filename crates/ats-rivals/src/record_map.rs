//! The interface that a store behind one lock needs of its map.
//!
//! The invariants (RIVALS-1 and so on) are those of [the crate](crate).

use ats_mem::record::{Record, RecordBox, Release};
use ats_mem::{SlotAnswer, WalkFrom};
use ats_sync::Guard;
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ptr::NonNull;

/// A record in a map, compared and hashed by its key.
pub struct Kept<R: Release>(NonNull<Record<R>>);

// SAFETY: it stands for a record, which any thread may read, and which any thread may free
// (RECORD-3).
unsafe impl<R: Release> Send for Kept<R> {}
// SAFETY: a shared `Kept` only lends its record to read, which any thread may do (RECORD-1).
unsafe impl<R: Release> Sync for Kept<R> {}

impl<R: Release> Kept<R> {
    /// Wraps a record that is in a map, or is about to be put there.
    pub(super) fn new(record: &Record<R>) -> Self {
        Kept(NonNull::from(record))
    }

    /// Wraps a new record, which belongs to the map from now on.
    pub(super) fn of_box(record: RecordBox<R>) -> Self {
        Kept(NonNull::new(record.into_raw()).expect("no box is null"))
    }

    /// Returns the record. The caller holds the lock, and the record is in the map or was just
    /// taken out by the caller.
    pub(super) fn get(&self) -> &Record<R> {
        // SAFETY: a record in the map lives (RIVALS-1), and one that was taken out is not retired
        // by another thread (RIVALS-2).
        unsafe { self.0.as_ref() }
    }

    /// Returns the record for as long as the guard lives, which may be longer than the lock is
    /// held.
    ///
    /// # Safety
    /// The record was in the map, or put there, after the guard was made.
    pub(super) unsafe fn get_under<'g>(&self, guard: &'g Guard) -> &'g Record<R> {
        let _ = guard;
        // SAFETY: the caller says that the record was in the map, or put there, after the guard was
        // made, so it is retired only under the guard, if at all (RIVALS-2).
        unsafe { &*self.0.as_ptr() }
    }

    pub(super) fn pointer(&self) -> *mut Record<R> {
        self.0.as_ptr()
    }

    /// Returns a second reference to the same record.
    pub(super) fn duplicate(&self) -> Self {
        Kept(self.0)
    }
}

impl<R: Release> Borrow<[u8]> for Kept<R> {
    fn borrow(&self) -> &[u8] {
        self.get().key()
    }
}

impl<R: Release> PartialEq for Kept<R> {
    fn eq(&self, other: &Self) -> bool {
        self.get().has_key(other.get().key())
    }
}

impl<R: Release> Eq for Kept<R> {}

impl<R: Release> PartialOrd for Kept<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Release> Ord for Kept<R> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.get().key().cmp(other.get().key())
    }
}

impl<R: Release> Hash for Kept<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().key().hash(state);
    }
}

/// The reason why a record is taken out of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// The removal of a key that readers could see.
    Removal,
    /// The undoing of a batch's insertion, which readers have not seen.
    Undoing,
}

/// A map of records in some order, used by one thread that writes or by several that read.
///
/// Methods that find records append them to `found`, also those of open batches.
pub trait RecordMap<R: Release>: Default + Send + Sync {
    /// Returns the record of a key.
    fn get(&self, key: &[u8]) -> Option<&Kept<R>>;

    /// Puts a record, and returns the previous one of the same key.
    fn put(&mut self, record: Kept<R>) -> Option<Kept<R>>;

    /// Takes out the record of a key.
    fn take(&mut self, key: &[u8], why: Taking) -> Option<Kept<R>>;

    /// Returns all records, in any order.
    fn all(&self) -> impl Iterator<Item = &Kept<R>>;

    /// Returns any record, preferably one that no batch holds.
    fn any(&self) -> Option<&Kept<R>>;

    /// Returns the number of records that a walk should find at a time.
    fn piece(&self) -> usize;

    /// Finds the next records from a position on: `most` or a few more, or all that are left.
    /// Returns the position at which a walk goes on, if any record follows.
    fn gather(&self, from: WalkFrom<'_>, most: usize, found: &mut Vec<Kept<R>>) -> Option<u64>;

    /// Returns `true` if a walk can go on behind a key.
    fn knows(&self, key: &[u8], guard: &Guard) -> bool;

    /// Finds the records of a slot.
    fn slot(&self, index: usize, found: &mut Vec<Kept<R>>) -> SlotAnswer;

    /// Like [`Records::fix`](ats_mem::Records::fix).
    fn fix(&mut self) {}

    /// Like [`Records::unfix`](ats_mem::Records::unfix).
    fn unfix(&mut self) {}

    /// Drops the index for walks, unless the map is fixed.
    fn tidy(&mut self) {}

    /// Returns the approximate memory use of the map in bytes, without the records and `self`.
    fn bytes(&self) -> usize;
}
