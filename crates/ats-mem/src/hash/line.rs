//! One cache line of a bucket: seven slots and the way to the next line.
//!
//! A slot is one word, changed by one store, so a reader sees a record or does not:
//!
//! ```text
//! 63        48 47                                  1   0
//! +-----------+------------------------------------+---+
//! |    tag    |  address of the record             | D |     0 = empty
//! +-----------+------------------------------------+---+
//! ```
//!
//! The tag is the high bits of the hash, so that nearly always only the record searched for is
//! touched. `D` marks a record that was deleted while the table was fixed.

use crate::record::{Record, Release};
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::marker::PhantomData;
use std::ptr;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("slots hold addresses of 48 bits beside 16 bits of hash: 64-bit systems only");

/// Slots in a line.
pub(super) const SLOTS: usize = 7;

const TAG_SHIFT: u32 = 48;
const DELETED: u64 = 1;
const ADDRESS: u64 = (1 << TAG_SHIFT) - 1 - DELETED;

/// The content of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    /// The content of an empty slot.
    pub(super) const EMPTY: Self = Self(0);

    /// The word for a record of this hash.
    ///
    /// # Panics
    /// If the address has more than 48 bits. No supported system hands out such addresses unasked.
    #[inline]
    pub(super) fn new<R: Release>(hash: u64, record: *mut Record<R>) -> Self {
        let address = record.expose_provenance() as u64;
        assert!(
            address & !ADDRESS == 0,
            "a record has an address of 48 bits"
        );
        Self(tag(hash) | address)
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the record may be one of this hash.
    #[inline]
    pub(super) fn may_be(self, hash: u64) -> bool {
        (self.0 ^ hash) >> TAG_SHIFT == 0 && !self.is_empty()
    }

    #[inline]
    pub(super) fn is_deleted(self) -> bool {
        self.0 & DELETED != 0
    }

    /// The same record, marked as deleted.
    pub(super) fn deleted(self) -> Self {
        Self(self.0 | DELETED)
    }

    /// The address of the record; null for an empty slot.
    #[inline]
    pub(super) fn pointer<R: Release>(self) -> *mut Record<R> {
        ptr::with_exposed_provenance_mut((self.0 & ADDRESS) as usize)
    }

    /// The record.
    ///
    /// # Safety
    /// The word was read, under `guard`, from a slot of a table of `R` and is not empty.
    #[inline]
    pub(super) unsafe fn record<R: Release>(self, _guard: &Guard) -> &Record<R> {
        // SAFETY: slots hold addresses of published records, and a record that was in a slot lives
        // as long as every guard under which it can have been read there.
        unsafe { &*self.pointer() }
    }
}

#[inline]
fn tag(hash: u64) -> u64 {
    hash >> TAG_SHIFT << TAG_SHIFT
}

/// A line. All zeros is an empty one.
#[repr(C, align(64))]
pub(super) struct Line<R: Release> {
    slots: [AtomicU64; SLOTS],
    next: AtomicPtr<Line<R>>,
    records: PhantomData<*mut Record<R>>,
}

// SAFETY: a line is atomics; the records behind them may be used and freed by any thread.
unsafe impl<R: Release> Send for Line<R> {}
// SAFETY: as above.
unsafe impl<R: Release> Sync for Line<R> {}

/// One slot.
#[derive(Clone, Copy)]
pub(super) struct Slot<'t>(&'t AtomicU64);

impl Slot<'_> {
    /// Acquire: a reader that finds a record finds its contents, and one that finds a slot emptied
    /// finds what was published before.
    #[inline]
    pub(super) fn load(self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// For the holder of the bucket's lock only.
    #[inline]
    pub(super) fn store(self, word: Word) {
        self.0.store(word.0, Ordering::Release);
    }
}

impl<R: Release> Line<R> {
    fn new() -> Self {
        Self {
            slots: [const { AtomicU64::new(0) }; SLOTS],
            next: AtomicPtr::new(ptr::null_mut()),
            records: PhantomData,
        }
    }

    /// The slots of this line alone.
    #[inline]
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        self.slots.iter().map(Slot)
    }

    /// This line and those behind it.
    #[inline]
    pub(super) fn chain(&self) -> impl Iterator<Item = &Line<R>> {
        std::iter::successors(Some(self), |line| line.next())
    }

    /// The slots of the whole chain.
    #[inline]
    pub(super) fn chain_slots(&self) -> impl Iterator<Item = Slot<'_>> {
        self.chain().flat_map(Line::slots)
    }

    #[inline]
    pub(super) fn next(&self) -> Option<&Line<R>> {
        // SAFETY: a line is retired only after it was unlinked, and whoever walks a chain is pinned
        // or holds its lock.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn is_empty(&self) -> bool {
        self.slots().all(|slot| slot.load().is_empty())
    }

    /// Puts `word` into the first empty slot of the chain, which grows if there is none. Returns how
    /// many lines were added (0 or 1). For the holder of the lock.
    pub(super) fn insert(&self, word: Word) -> usize {
        let mut last = self;
        for line in self.chain() {
            last = line;
            if let Some(slot) = line.slots().find(|slot| slot.load().is_empty()) {
                slot.store(word);
                return 0;
            }
        }
        let line = Box::new(Line::new());
        Slot(&line.slots[0]).store(word);
        // Release: whoever follows the pointer sees the slots.
        last.next.store(Box::into_raw(line), Ordering::Release);
        1
    }

    /// Takes lines without records out of the chain, except the first. Returns how many. For the
    /// holder of the lock.
    ///
    /// A reader that stands on such a line finds nothing in it and goes on along its `next`, which
    /// stays: every line that was behind it and is still in the chain is met.
    pub(super) fn unlink_empty(&self, guard: &Guard) -> usize {
        let mut unlinked = 0;
        let mut previous = self;
        while let Some(line) = previous.next() {
            if line.is_empty() {
                let next = line.next.load(Ordering::Relaxed);
                let gone = previous.next.swap(next, Ordering::Release);
                // SAFETY: just taken out of its chain, and made from a box by `insert`.
                unsafe { guard.retire_box(gone) };
                unlinked += 1;
            } else {
                previous = line;
            }
        }
        unlinked
    }

    /// Moves records from the end of the chain to empty slots nearer to its beginning. `moved` is called after
    /// the copies are published and before the originals are cleared, if there are any. For the
    /// holder of the lock.
    pub(super) fn compact(&self, moved: impl FnOnce()) {
        if self.next().is_none() {
            return;
        }
        let slots = self.chain_slots().collect::<Vec<_>>();
        let mut originals = Vec::new();
        let mut front = 0;
        for back in (0..slots.len()).rev() {
            let word = slots[back].load();
            if word.is_empty() {
                continue;
            }
            while front < back && !slots[front].load().is_empty() {
                front += 1;
            }
            if front >= back {
                break;
            }
            slots[front].store(word);
            originals.push(slots[back]);
        }
        if !originals.is_empty() {
            moved();
            for slot in originals {
                slot.store(Word::EMPTY);
            }
        }
    }

    /// Frees the lines behind this one at once.
    ///
    /// # Safety
    /// Nobody else uses the table.
    pub(super) unsafe fn free_rest(&mut self) {
        let mut next = std::mem::replace(self.next.get_mut(), ptr::null_mut());
        while !next.is_null() {
            // SAFETY: lines behind the first are made from boxes by `insert` and are in one chain
            // only; the caller is alone.
            let mut line = unsafe { Box::from_raw(next) };
            next = *line.next.get_mut();
        }
    }
}
