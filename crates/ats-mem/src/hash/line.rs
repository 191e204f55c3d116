//! Lines of buckets: seven slots and the link to the next line, in one cache line.
//!
//! A slot is one word, changed by one store, so a reader sees a record completely or not at all:
//!
//! ```text
//! 63        48 47                                  1   0
//! +-----------+------------------------------------+---+
//! |    tag    |  address of the record         | U | D |     0 = empty
//! +-----------+------------------------------------+---+
//! ```
//!
//! The tag is the high bits of the hash, so that a search nearly always reads only the record it
//! wants. `D` marks a record deleted while the table was fixed, and a
//! [removal](crate::read_points), which earlier queries look through; `U` is also set if the table
//! was not fixed then: ordinary walks do not know the key.

use crate::record::{Record, Release, Weight};
use crate::slab::{self, SlabBox};
use ats_sync::Guard;
pub(super) use ats_sync::model::LINE_SLOTS as SLOTS;
use ats_sync::shim::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::marker::PhantomData;
use std::ptr;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("slots hold addresses of 48 bits beside 16 bits of hash: 64-bit systems only");

/// Position of the tag, in a slot as in a hash.
pub(super) const TAG_SHIFT: u32 = 48;
const DELETED: u64 = 1;
const UNKNOWN: u64 = 2;
const ADDRESS: u64 = (1 << TAG_SHIFT) - 1 - DELETED - UNKNOWN;
const _: () = assert!(slab::ADDRESS_LIMIT <= 1 << TAG_SHIFT);

/// The content of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    /// The content of an empty slot.
    pub(super) const EMPTY: Self = Self(0);

    /// Returns the word for a record of this hash.
    #[inline]
    pub(super) fn new<R: Release>(hash: u64, record: *const Record<R>) -> Self {
        let address = record.expose_provenance() as u64;
        debug_assert!(address & !ADDRESS == 0, "the slab keeps to 48 bits");
        Self(tag(hash) | address)
    }

    /// Loads a word with acquire, for readers: see [`Slot::load`](super::bucket::Slot::load).
    #[inline]
    pub(super) fn load(from: &AtomicU64) -> Self {
        Self(from.load(Ordering::Acquire))
    }

    /// Stores the word. The caller holds the lock.
    #[inline]
    pub(super) fn store(self, to: &AtomicU64) {
        to.store(self.0, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns `true` if the record may have this hash.
    #[inline]
    pub(super) fn may_be(self, hash: u64) -> bool {
        (self.0 ^ hash) >> TAG_SHIFT == 0 && !self.is_empty()
    }

    #[inline]
    pub(super) fn is_deleted(self) -> bool {
        self.0 & DELETED != 0
    }

    /// Returns the whole word; its upper bits are those of the hash.
    #[inline]
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Returns the word of the same record, marked as deleted.
    pub(super) fn as_deleted(self) -> Self {
        Self(self.0 | DELETED)
    }

    /// Returns the word of the same removal, marked as made while the table was not fixed.
    pub(super) fn as_unknown(self) -> Self {
        Self(self.0 | DELETED | UNKNOWN)
    }

    /// Returns `true` if the record was removed while the table was not fixed.
    pub(super) fn is_unknown(self) -> bool {
        self.0 & UNKNOWN != 0
    }

    /// Returns the address of the record; null for an empty slot.
    #[inline]
    pub(super) fn pointer<R: Release>(self) -> *mut Record<R> {
        ptr::with_exposed_provenance_mut((self.0 & ADDRESS) as usize)
    }
}

/// The content of an occupied slot at some moment of `'g`.
pub(super) struct Full<'g, R: Release>(Word, PhantomData<&'g Record<R>>);

impl<R: Release> Clone for Full<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Release> Copy for Full<'_, R> {}

impl<'g, R: Release> Full<'g, R> {
    /// # Safety
    /// The word must not be empty, and its record must live during `'g`.
    #[inline]
    pub(super) unsafe fn new(word: Word) -> Self {
        debug_assert!(!word.is_empty());
        Self(word, PhantomData)
    }

    /// Returns the weight of the record: only the bytes, if it was deleted while the table was
    /// fixed.
    pub(super) fn weight(self) -> Weight {
        let weight = self.record().weight();
        Weight {
            objects: if self.is_deleted() { 0 } else { weight.objects },
            ..weight
        }
    }

    /// Returns `true` if the record counts for the number of buckets: readers can find it, or it is
    /// a removal, which occupies a slot until no query needs it.
    #[inline]
    pub(super) fn is_counted(self) -> bool {
        !self.is_deleted() || self.record().is_removal()
    }

    /// Returns the content of the slot of a record with this hash.
    pub(super) fn of(hash: u64, record: &'g Record<R>) -> Self {
        Self(Word::new(hash, record), PhantomData)
    }

    /// Returns the record.
    #[inline]
    pub(super) fn record(self) -> &'g Record<R> {
        // SAFETY: the word is not empty, and its record lives as long as `'g`: the creator has
        // promised both to `new` (HASH-5).
        unsafe { &*self.0.pointer() }
    }
}

impl<R: Release> std::ops::Deref for Full<'_, R> {
    type Target = Word;

    #[inline]
    fn deref(&self) -> &Word {
        &self.0
    }
}

#[inline]
fn tag(hash: u64) -> u64 {
    hash >> TAG_SHIFT << TAG_SHIFT
}

/// A line. All zeros are an empty one.
#[repr(C, align(64))]
pub(super) struct Line<R: Release> {
    pub(super) words: [AtomicU64; SLOTS],
    next: AtomicPtr<Line<R>>,
    records: PhantomData<*mut Record<R>>,
}

// SAFETY: a line is atomics (HASH-1, HASH-4); any thread may use and free the records behind them.
unsafe impl<R: Release> Send for Line<R> {}
// SAFETY: a line is atomics (HASH-1, HASH-4), and any thread may read the records behind them.
unsafe impl<R: Release> Sync for Line<R> {}

impl<R: Release> Line<R> {
    pub(super) fn new() -> Self {
        Self {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            next: AtomicPtr::new(ptr::null_mut()),
            records: PhantomData,
        }
    }

    /// Returns the next line.
    #[inline]
    pub(super) fn next(&self) -> Option<&Line<R>> {
        // SAFETY: a line is retired only after it was unlinked, and this one was reached under a
        // guard (HASH-5).
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| Word::load(word).is_empty())
    }

    /// Links a line behind this one, which is the last. The caller holds the lock.
    pub(super) fn link(&self, line: SlabBox<Line<R>>) {
        // Release: a thread that follows the pointer sees the slots.
        self.next.store(SlabBox::into_raw(line), Ordering::Release);
    }

    /// Unlinks the line behind this one, which must exist. The caller holds the lock.
    pub(super) fn unlink_next(&self, guard: &Guard) {
        unsafe fn free<R: Release>(raw: *mut u8) {
            // SAFETY: only `unlink_next` retires with this function. The line came from a box in
            // `link`, is in no chain any more, and its grace period is over (HASH-5).
            drop(unsafe { SlabBox::from_raw(raw.cast::<Line<R>>()) });
        }
        let Some(line) = self.next() else { return };
        let behind = line.next.load(Ordering::Relaxed);
        let gone = self.next.swap(behind, Ordering::Release);
        // SAFETY: the holder of the lock has just taken the line out of its chain, so no thread
        // that pins from now on finds it (HASH-5).
        unsafe { guard.retire(gone.cast(), size_of::<Line<R>>(), free::<R>) };
    }

    /// Frees the lines behind this one at once.
    ///
    /// # Safety
    /// No other thread may use the table.
    pub(super) unsafe fn free_rest(&self) {
        let mut next = self.next.swap(ptr::null_mut(), Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: lines behind the first come from `link` and are in one chain only; the caller
            // promises that no other thread uses the table.
            let line = unsafe { SlabBox::from_raw(next) };
            next = line.next.load(Ordering::Relaxed);
        }
    }
}
