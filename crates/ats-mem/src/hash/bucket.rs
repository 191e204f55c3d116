//! Buckets: fingerprints, a first line, and further lines.
//!
//! Only the holder of a bucket's lock may call functions that change it. Any thread may read it.

use super::fingerprints::{Fingerprints, FingerprintsCell};
use super::line::{Full, Line, SLOTS, Word};
use crate::prefetch::prefetch;
use crate::record::Release;
use crate::slab::SlabBox;
use ats_sync::Guard;
use ats_sync::shim::atomic::AtomicU64;
use std::cell::Cell;
use std::ptr;

/// A bucket of the table, which a thread has reached under a guard of `'t`, or uses alone (HASH-5).
pub(super) struct Bucket<'t, R: Release> {
    fingerprints: &'t FingerprintsCell,
    first: &'t Line<R>,
}

impl<R: Release> Clone for Bucket<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Release> Copy for Bucket<'_, R> {}

/// Largest number of slots of buckets whose contents are compared: those of two lines, which all
/// but a few buckets have at most.
pub(super) const FEW_SLOTS: usize = 2 * SLOTS;

/// The fingerprints and the words of a bucket of up to two lines, each as of some moment.
pub(super) struct Contents {
    pub(super) fingerprints: Fingerprints,
    /// The words of the slots; those of a second line that is not there are empty.
    pub(super) words: [Word; FEW_SLOTS],
}

/// A slot of a bucket.
#[derive(Clone, Copy)]
pub(super) struct Slot<'t>(&'t AtomicU64);

impl Slot<'_> {
    /// Loads the word with acquire: a reader that finds a record sees its contents, and one that
    /// finds a slot emptied sees all that was published before.
    #[inline]
    pub(super) fn load(self) -> Word {
        Word::load(self.0)
    }

    /// Replaces the record in the slot by another one of the same key, or marks it.
    #[inline]
    pub(super) fn replace(self, word: Word) {
        word.store(self.0);
    }
}

impl<'t, R: Release> Bucket<'t, R> {
    #[inline]
    pub(super) fn new(fingerprints: &'t FingerprintsCell, first: &'t Line<R>) -> Self {
        Self {
            fingerprints,
            first,
        }
    }

    /// Returns the number of a slot of this bucket, if it is in the first line.
    #[inline]
    fn index(self, slot: Slot<'t>) -> Option<usize> {
        let first = ptr::from_ref(&self.first.words[0]).addr();
        let index = ptr::from_ref(slot.0).addr().wrapping_sub(first) / size_of::<AtomicU64>();
        (index < SLOTS).then_some(index)
    }

    /// Puts a record into an empty slot.
    #[inline]
    fn fill(self, slot: Slot<'t>, word: Word) {
        if let Some(index) = self.index(slot) {
            self.fingerprints.set(index, word.bits());
        }
        slot.replace(word);
    }

    /// Empties a slot.
    #[inline]
    pub(super) fn clear(self, slot: Slot<'t>) {
        slot.replace(Word::EMPTY);
        if let Some(index) = self.index(slot) {
            self.fingerprints.clear(index);
        }
    }

    /// Calls `wanted` with the slots that may hold a record of this hash, until it returns a
    /// result.
    #[inline(always)]
    pub(super) fn find<T>(
        self,
        hash: u64,
        mut wanted: impl FnMut(Slot<'t>, Full<'t, R>) -> Option<T>,
    ) -> Option<T> {
        let fingerprints = self.fingerprints.load();
        for index in fingerprints.candidates(hash) {
            let slot = self.slot(index);
            let word = slot.load();
            if word.may_be(hash) {
                // SAFETY: the word matches this hash, so it is not empty. The record lives as
                // long as the guard of the bucket (HASH-5).
                let full = unsafe { Full::new(word) };
                if let Some(found) = wanted(slot, full) {
                    return Some(found);
                }
            }
        }
        if fingerprints.may_be_behind(hash) {
            self.find_in_chain(hash, wanted)
        } else {
            None
        }
    }

    #[cold]
    fn find_in_chain<T>(
        self,
        hash: u64,
        mut wanted: impl FnMut(Slot<'t>, Full<'t, R>) -> Option<T>,
    ) -> Option<T> {
        let mut slots = self.chain().flat_map(slots_behind);
        slots.find_map(|slot| {
            let word = slot.load();
            if word.may_be(hash) {
                // SAFETY: the word matches this hash, so it is not empty. The record lives as
                // long as the guard of the bucket (HASH-5).
                wanted(slot, unsafe { Full::new(word) })
            } else {
                None
            }
        })
    }

    /// Returns `true` if the bucket holds no record, and has only its first line.
    pub(super) fn is_bare(self) -> bool {
        let fingerprints = self.fingerprints.load();
        fingerprints.occupied_slots().next().is_none() && !fingerprints.are_chained()
    }

    /// Loads the contents of the bucket, unless it has more than two lines.
    #[inline]
    pub(super) fn contents(self) -> Option<Contents> {
        let fingerprints = self.fingerprints.load();
        let mut words = [Word::EMPTY; FEW_SLOTS];
        for (word, slot) in words.iter_mut().zip(&self.first.words) {
            *word = Word::load(slot);
        }
        if fingerprints.are_chained() {
            let second = self.first.next()?;
            for (word, slot) in words[SLOTS..].iter_mut().zip(&second.words) {
                *word = Word::load(slot);
            }
            if second.next().is_some() {
                return None;
            }
        }
        Some(Contents {
            fingerprints,
            words,
        })
    }

    /// Returns `true` if the bucket has these contents.
    #[inline]
    pub(super) fn has(self, fingerprints: Fingerprints, words: &[Cell<Word>; FEW_SLOTS]) -> bool {
        let is_same = |line: &Line<R>, words: &[Cell<Word>]| {
            let pairs = line.words.iter().zip(words);
            pairs.fold(true, |same, (slot, word)| {
                same & (Word::load(slot) == word.get())
            })
        };
        if self.fingerprints.load() != fingerprints {
            return false;
        }
        let second = || {
            let second = self.first.next();
            second.is_some_and(|line| is_same(line, &words[SLOTS..]) && line.next().is_none())
        };
        is_same(self.first, &words[..SLOTS]) && (!fingerprints.are_chained() || second())
    }

    /// Returns the content of a slot, unless it is empty.
    ///
    /// # Safety
    /// The word must have been loaded from this bucket, under its guard.
    #[inline]
    pub(super) unsafe fn full(self, word: Word) -> Option<Full<'t, R>> {
        // SAFETY: the word is not empty, and its record lives as long as the guard of the bucket,
        // because it was loaded under that guard (HASH-5).
        (!word.is_empty()).then(|| unsafe { Full::new(word) })
    }

    /// Visits the slots that are not empty.
    #[inline]
    pub(super) fn for_each(self, mut visit: impl FnMut(Slot<'t>, Full<'t, R>)) {
        let fingerprints = self.fingerprints.load();
        let mut visit = |slot: Slot<'t>| {
            let word = slot.load();
            // The slot may have been emptied, or not be filled yet.
            if !word.is_empty() {
                // SAFETY: the word is not empty, and its record lives as long as the guard of the
                // bucket (HASH-5).
                visit(slot, unsafe { Full::new(word) });
            }
        };
        for index in fingerprints.occupied_slots() {
            visit(self.slot(index));
        }
        if fingerprints.are_chained() {
            self.chain().flat_map(slots_behind).for_each(visit);
        }
    }

    /// Puts a record into an empty slot, and extends the chain if there is none. Returns the number
    /// of lines added (0 or 1).
    #[inline]
    pub(super) fn insert(self, word: Word) -> usize {
        match self.fingerprints.load().vacancy() {
            Some(index) => {
                self.fill(self.slot(index), word);
                0
            }
            None => self.insert_behind(word),
        }
    }

    #[cold]
    fn insert_behind(self, word: Word) -> usize {
        self.fingerprints.add_behind(word.bits());
        let mut last = self.first;
        for line in self.chain() {
            let vacancy = slots_behind(line).find(|slot| slot.load().is_empty());
            if let Some(slot) = vacancy {
                self.fill(slot, word);
                return 0;
            }
            last = line;
        }
        let line = SlabBox::new(Line::new());
        word.store(&line.words[0]);
        last.link(line);
        1
    }

    /// Unlinks lines without records from the chain, except the first. Returns their number.
    ///
    /// A reader on such a line finds no record in it and continues along its `next`, which does not
    /// change: it meets every later line that is still in the chain.
    #[inline]
    pub(super) fn unlink_empty(self, guard: &Guard) -> usize {
        if self.fingerprints.load().are_chained() {
            self.unlink_empty_lines(guard)
        } else {
            0
        }
    }

    #[cold]
    fn unlink_empty_lines(self, guard: &Guard) -> usize {
        let mut unlinked = 0;
        let mut previous = self.first;
        while let Some(line) = previous.next() {
            if line.is_empty() {
                previous.unlink_next(guard);
                unlinked += 1;
            } else {
                previous = line;
            }
        }
        let words = self.chain().flat_map(slots_behind).map(Slot::load);
        let words = words.filter(|word| !word.is_empty());
        self.fingerprints.set_behind(words.map(Word::bits));
        unlinked
    }

    /// Moves records from the end of the chain to empty slots nearer to its start. `moved` is
    /// called after the copies are published and before the originals are cleared, if there are
    /// any.
    #[inline]
    pub(super) fn compact(self, moved: impl FnOnce()) {
        if self.fingerprints.load().are_chained() {
            self.compact_chain(moved);
        }
    }

    #[cold]
    fn compact_chain(self, moved: impl FnOnce()) {
        let here = (0..SLOTS).map(|index| self.slot(index));
        let slots: Vec<Slot<'_>> = here.chain(self.chain().flat_map(slots_behind)).collect();
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
            self.fill(slots[front], word);
            originals.push(slots[back]);
        }
        if !originals.is_empty() {
            moved();
            for slot in originals {
                self.clear(slot);
            }
        }
    }

    /// Returns the number of lines behind the first.
    pub(super) fn lines_behind(self) -> usize {
        self.chain().count()
    }

    /// Frees the lines behind the first, which are empty. Returns their number.
    ///
    /// # Safety
    /// No other thread may use the table.
    pub(super) unsafe fn free_lines(self) -> usize {
        let lines = self.lines_behind();
        if lines > 0 {
            // SAFETY: the caller promises that no other thread uses the table, so none is in the
            // lines that are freed (HASH-5).
            unsafe { self.first.free_rest() };
            self.fingerprints.set_behind(std::iter::empty());
        }
        lines
    }

    /// Prefetches the first line, for a caller that is about to read the fingerprints: if these
    /// miss the cache as well, the two misses overlap.
    #[inline]
    pub(super) fn prefetch_line(self) {
        prefetch::<1, _>(self.first);
    }

    /// Prefetches the first cache lines of the records that may have this hash.
    #[inline]
    pub(super) fn prefetch_records<const LINES: usize>(self, hash: u64) {
        let none: Option<()> = self.find(hash, |_, word| {
            prefetch::<LINES, _>(word.pointer::<R>());
            None
        });
        debug_assert!(none.is_none());
    }

    /// Prefetches the first cache lines of all records.
    #[inline]
    pub(super) fn prefetch_all_records<const LINES: usize>(self) {
        self.for_each(|_, word| prefetch::<LINES, _>(word.pointer::<R>()));
    }

    #[inline]
    fn slot(self, index: usize) -> Slot<'t> {
        Slot(&self.first.words[index])
    }

    /// Returns the lines behind the first.
    fn chain(self) -> impl Iterator<Item = &'t Line<R>> {
        std::iter::successors(self.first.next(), |line| line.next())
    }
}

/// Returns the slots of a line that is not the first.
fn slots_behind<R: Release>(line: &Line<R>) -> impl Iterator<Item = Slot<'_>> {
    line.words.iter().map(Slot)
}

#[cfg(all(test, not(loom)))]
impl<R: Release> Bucket<'_, R> {
    /// Checks that fingerprints, slots and lines are consistent, while no thread writes.
    pub(super) fn check(self) {
        let fingerprints = self.fingerprints.load();
        let candidates = |word: Word| fingerprints.candidates(word.bits()).collect::<Vec<_>>();
        let occupied: Vec<usize> = fingerprints.occupied_slots().collect();
        for index in 0..SLOTS {
            let word = self.slot(index).load();
            assert_eq!(occupied.contains(&index), !word.is_empty());
            assert!(word.is_empty() || candidates(word).contains(&index));
        }
        assert_eq!(fingerprints.are_chained(), self.first.next().is_some());
        assert!(self.chain().all(|line| !line.is_empty()), "an empty line");
        let words = self.chain().flat_map(slots_behind).map(Slot::load);
        let mut words = words.filter(|word| !word.is_empty());
        assert!(words.all(|word| fingerprints.may_be_behind(word.bits())));
    }
}
