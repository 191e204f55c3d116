//! Fingerprints: one word that tells of seven slots which of them may hold a key.
//!
//! ```text
//! byte     7          6   5   4   3   2   1   0
//!      +---------+---+---+---+---+---+---+---+
//!      | behind  | fingerprint of each slot  |     a fingerprint: 1 and 7 bits of the hash
//!      +---------+---------------------------+                    0: the slot is empty
//! ```
//!
//! The last byte is for the lines behind the first: three bits of a hash choose one of its bits,
//! which is set if there may be a record of such a hash. While there are no such lines it is zero.
//!
//! The words of all buckets lie side by side, an eighth of the memory of the lines. So they stay in
//! caches that the lines are too large for, and they are all that a search for a key that is not
//! there touches. Seven comparisons become one, without a branch for each slot that the processor
//! would have to guess.
//!
//! Comparing the bytes of a word at once is an old trick (L. Lamport, *Multiple byte processing
//! with full-word instructions*, CACM 1975); fingerprints apart from what they stand for are known
//! from "Swiss tables".

use super::line::SLOTS;
use ats_sync::shim::atomic::{AtomicU64, Ordering};

/// One in each byte that belongs to a slot.
const ONES: u64 = 0x0001_0101_0101_0101 & ((1 << (8 * SLOTS)) - 1);
/// The bit that is set in the bytes of slots that are not empty.
const OCCUPIED: u64 = ONES << 7;
/// The byte for the lines behind the first.
const BEHIND: u64 = 0xff << BEHIND_SHIFT;
const BEHIND_SHIFT: u32 = 56;
/// The place in a hash at which the bits of the fingerprint begin. They are part of the tag that
/// stands in the slot, so what is in a slot tells its fingerprint.
const FINGERPRINT_SHIFT: u32 = super::line::TAG_SHIFT;
/// The place at which the three bits begin that choose one of the last byte: next to those of the
/// fingerprint.
const CHOICE_SHIFT: u32 = FINGERPRINT_SHIFT + 7;

/// The fingerprints of a bucket at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fingerprints(u64);

impl Fingerprints {
    /// The slots whose fingerprint is that of `hash`. One that is not may be among them, though
    /// rarely.
    #[inline]
    pub(super) fn candidates(self, hash: u64) -> Indices {
        // Zero in the bytes that are equal.
        let different = self.0 ^ (ONES * fingerprint(hash));
        // The first borrow of the subtraction comes from such a byte.
        Indices(different.wrapping_sub(ONES) & !different & OCCUPIED)
    }

    /// The slots that are not empty.
    #[inline]
    pub(super) fn occupied_slots(self) -> Indices {
        Indices(self.0 & OCCUPIED)
    }

    /// The first slot that is empty.
    #[inline]
    pub(super) fn vacancy(self) -> Option<usize> {
        Indices(!self.0 & OCCUPIED).next()
    }

    /// Returns `true` if there are lines behind the first.
    #[inline]
    pub(super) fn are_chained(self) -> bool {
        self.0 & BEHIND != 0
    }

    /// Returns `true` if a record of this hash may be in a line behind the first.
    #[inline]
    pub(super) fn may_be_behind(self, hash: u64) -> bool {
        self.0 & behind(hash) != 0
    }
}

/// The fingerprint of a hash, or of anything that has its upper bits.
#[inline]
fn fingerprint(hash: u64) -> u64 {
    (hash >> FINGERPRINT_SHIFT & 0x7f) | 0x80
}

/// The bit of the last byte that a hash chooses, or anything that has its upper bits.
#[inline]
fn behind(hash: u64) -> u64 {
    1 << (BEHIND_SHIFT as u64 + (hash >> CHOICE_SHIFT & 7))
}

/// Numbers of slots, in ascending order.
#[derive(Clone, Copy)]
pub(super) struct Indices(u64);

impl Iterator for Indices {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let index = self.0.trailing_zeros() as usize / 8;
        self.0 &= self.0 - 1;
        Some(index)
    }
}

/// The fingerprints of a bucket. All zeros is those of an empty one.
pub(super) struct FingerprintsCell(AtomicU64);

impl FingerprintsCell {
    /// Those of an empty bucket, where zeroed memory is not.
    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Acquire: a thread that finds a fingerprint gone finds what was published before it went.
    #[inline]
    pub(super) fn load(&self) -> Fingerprints {
        Fingerprints(self.0.load(Ordering::Acquire))
    }

    /// Notes that a slot is about to be filled with a record of a hash that has the same upper
    /// bits. For the holder of the lock, as all that follows.
    #[inline]
    pub(super) fn set(&self, index: usize, hash: u64) {
        let others = self.load().0 & !(0xff << (8 * index));
        self.store(others | fingerprint(hash) << (8 * index));
    }

    /// Notes that a slot was emptied.
    #[inline]
    pub(super) fn clear(&self, index: usize) {
        self.store(self.load().0 & !(0xff << (8 * index)));
    }

    /// Notes that a slot behind the first line is about to be filled with a record of such a hash.
    pub(super) fn add_behind(&self, hash: u64) {
        self.store(self.load().0 | behind(hash));
    }

    /// Notes that behind the first line there are only records of these hashes any more.
    pub(super) fn set_behind(&self, hashes: impl Iterator<Item = u64>) {
        let bits = hashes.map(behind).fold(0, |all, bit| all | bit);
        self.store(self.load().0 & !BEHIND | bits);
    }

    #[inline]
    fn store(&self, fingerprints: u64) {
        self.0.store(fingerprints, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn hash_of(fingerprint: u64) -> u64 {
        fingerprint << FINGERPRINT_SHIFT
    }

    #[test]
    fn finds_all_slots_of_a_fingerprint() {
        let cell = FingerprintsCell(AtomicU64::new(0));
        cell.add_behind(3 << CHOICE_SHIFT);
        for first in 0..128 {
            for second in 0..128 {
                for (index, fingerprint) in [first, second, first, 0, 127, second, first]
                    .into_iter()
                    .enumerate()
                {
                    cell.set(index, hash_of(fingerprint));
                }
                let found: Vec<usize> = cell.load().candidates(hash_of(first)).collect();
                for index in [0, 2, 6] {
                    assert!(found.contains(&index), "{first} {second} {found:?}");
                }
                let exact = cell.load().candidates(hash_of(127)).next();
                assert!(exact.is_some());
            }
        }
        for choice in 0..8 {
            let found = cell.load().may_be_behind(choice << CHOICE_SHIFT);
            assert_eq!(found, choice == 3);
        }
        assert!(cell.load().are_chained());
        cell.set_behind([0, 7 << CHOICE_SHIFT].into_iter());
        let choices = (0..8).filter(|choice| cell.load().may_be_behind(choice << CHOICE_SHIFT));
        assert!(choices.eq([0, 7]));
        cell.set_behind(std::iter::empty());
        assert!(!cell.load().are_chained());
        assert_eq!(cell.load().occupied_slots().count(), SLOTS);
    }

    #[test]
    fn an_empty_slot_is_no_candidate_and_is_vacant() {
        let cell = FingerprintsCell(AtomicU64::new(0));
        for fingerprint in 0..128 {
            assert_eq!(cell.load().candidates(hash_of(fingerprint)).next(), None);
        }
        for index in 0..SLOTS {
            assert_eq!(cell.load().vacancy(), Some(index));
            cell.set(index, hash_of(5));
        }
        assert_eq!(cell.load().vacancy(), None);
        assert_eq!(cell.load().occupied_slots().count(), SLOTS);
        cell.clear(3);
        assert_eq!(cell.load().vacancy(), Some(3));
        assert_eq!(
            cell.load().candidates(hash_of(5)).collect::<Vec<_>>(),
            [0, 1, 2, 4, 5, 6]
        );
        assert!(!cell.load().are_chained());
    }
}
