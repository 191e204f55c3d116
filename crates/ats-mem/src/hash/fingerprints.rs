//! Fingerprints: one word that shows which of seven slots may hold a key.
//!
//! ```text
//! byte     7          6   5   4   3   2   1   0
//!      +---------+---+---+---+---+---+---+---+
//!      | behind  | fingerprint of each slot  |     a fingerprint: 1 and 7 bits of the hash
//!      +---------+---------------------------+                    0: the slot is empty
//! ```
//!
//! The last byte is for the lines behind the first: three bits of a hash select one of its bits,
//! which is set if they may have a record of such a hash. Without such lines it is zero.
//!
//! The words of all buckets are contiguous, an eighth of the memory of the lines. So they stay in
//! caches that the lines are too large for, and a search for an absent key reads nothing else.
//! Seven comparisons become one, without a branch per slot to predict.
//!
//! Comparing the bytes of a word at once is an old trick (L. Lamport, *Multiple byte processing
//! with full-word instructions*, CACM 1975); fingerprints apart from their entries are known from
//! "Swiss tables".

use super::line::SLOTS;
use ats_sync::shim::atomic::{AtomicU64, Ordering};

/// A one in each byte that belongs to a slot.
const ONES: u64 = 0x0001_0101_0101_0101 & ((1 << (8 * SLOTS)) - 1);
/// The bits that are set in the bytes of occupied slots.
const OCCUPIED: u64 = ONES << 7;
/// The byte for the lines behind the first.
const BEHIND: u64 = 0xff << BEHIND_SHIFT;
const BEHIND_SHIFT: u32 = 56;
/// Position in a hash of the fingerprint's bits. They are part of the tag in the slot, so the word
/// of a slot determines its fingerprint.
const FINGERPRINT_SHIFT: u32 = super::line::TAG_SHIFT;
/// Position of the three bits that select a bit of the last byte: next to those of the fingerprint.
const CHOICE_SHIFT: u32 = FINGERPRINT_SHIFT + 7;

/// The fingerprints of a bucket at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fingerprints(u64);

impl Fingerprints {
    /// The fingerprints of an empty bucket.
    pub(super) const NONE: Self = Self(0);

    /// Returns the slots with the fingerprint of `hash`. Rarely, another slot is among them.
    #[inline]
    pub(super) fn candidates(self, hash: u64) -> Indices {
        // Zero in the bytes that are equal.
        let different = self.0 ^ (ONES * fingerprint(hash));
        // The first borrow of the subtraction comes from such a byte.
        Indices(different.wrapping_sub(ONES) & !different & OCCUPIED)
    }

    /// Returns the occupied slots.
    #[inline]
    pub(super) fn occupied_slots(self) -> Indices {
        Indices(self.0 & OCCUPIED)
    }

    /// Returns the first empty slot.
    #[inline]
    pub(super) fn vacancy(self) -> Option<usize> {
        Indices(!self.0 & OCCUPIED).next()
    }

    /// Returns `true` if the bucket has lines behind the first.
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

/// Returns the fingerprint of a hash, or of any word with its upper bits.
#[inline]
fn fingerprint(hash: u64) -> u64 {
    (hash >> FINGERPRINT_SHIFT & 0x7f) | 0x80
}

/// Returns the bit of the last byte that a hash selects, or any word with its upper bits.
#[inline]
fn behind(hash: u64) -> u64 {
    1 << (u64::from(BEHIND_SHIFT) + (hash >> CHOICE_SHIFT & 7))
}

/// Numbers of slots, in ascending order.
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

/// The fingerprints of a bucket. All zeros are those of an empty one.
pub(super) struct FingerprintsCell(AtomicU64);

impl FingerprintsCell {
    /// Creates the fingerprints of an empty bucket, if zeroed memory is not a valid value.
    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Loads with acquire: a thread that finds a fingerprint cleared sees all that was published
    /// before.
    #[inline]
    pub(super) fn load(&self) -> Fingerprints {
        Fingerprints(self.0.load(Ordering::Acquire))
    }

    /// Sets the fingerprint of a slot that is about to be filled; `hash` has the upper bits of the
    /// record's hash. This and all following functions are for the holder of the lock.
    #[inline]
    pub(super) fn set(&self, index: usize, hash: u64) {
        let others = self.load().0 & !(0xff << (8 * index));
        self.store(others | fingerprint(hash) << (8 * index));
    }

    /// Clears the fingerprint of a slot that was emptied.
    #[inline]
    pub(super) fn clear(&self, index: usize) {
        self.store(self.load().0 & !(0xff << (8 * index)));
    }

    /// Sets the bit of a record's hash, because a slot behind the first line is about to be filled
    /// with the record.
    pub(super) fn add_behind(&self, hash: u64) {
        self.store(self.load().0 | behind(hash));
    }

    /// Resets the bits to those of the hashes that are left behind the first line.
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
