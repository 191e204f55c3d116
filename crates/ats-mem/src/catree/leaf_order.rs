//! The slots of a leaf in the order of their keys.
//!
//! The first keys of a leaf ascend, and the few keys of its tail are somewhere between them. The
//! ranks of these determine the order.

use super::bisect::bisect;
use super::sizes::LEAF;
use std::cmp::Ordering;

/// Largest number of keys in a tail.
pub(super) const TAIL_MOST: usize = 8;

/// Capacity for the slots of a leaf: whole vectors.
const SLOTS: usize = LEAF.next_multiple_of(16);

/// The slots of a leaf in the order of their keys, for the number of keys at the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafOrder {
    len: u8,
    /// `true` if all keys ascend; `slots` is then unused.
    as_they_are: bool,
    slots: [u8; SLOTS],
}

impl LeafOrder {
    /// The order of no slots.
    pub(super) const NONE: Self = Self::as_they_are(0);

    /// Returns the order of `len` slots whose keys ascend.
    #[inline(always)]
    pub(super) const fn as_they_are(len: usize) -> Self {
        LeafOrder {
            len: len as u8,
            as_they_are: true,
            slots: [0; SLOTS],
        }
    }

    /// Returns the order of a leaf with `len` keys. All but the last ascend, and each of the last,
    /// as many as there are `ranks`, has a rank: the index of its key in the order. Returns `None`
    /// if two have the same rank.
    #[inline(always)]
    pub(super) fn of_ranks(len: usize, ranks: &[usize]) -> Option<Self> {
        let sorted = len - ranks.len();
        let bits = ranks.iter().fold(0_u64, |bits, rank| bits | 1 << rank);
        if bits.count_ones() as usize != ranks.len() {
            return None;
        }
        // The slot of a sorted key is its index minus the number of tail keys before it. The
        // compiler vectorizes the loop over all slots.
        let mut slots: [u8; SLOTS] = std::array::from_fn(|index| index as u8);
        for rank in ranks {
            let rank = *rank as u8;
            for (index, slot) in slots.iter_mut().enumerate() {
                *slot = slot.wrapping_sub(u8::from(index as u8 > rank));
            }
        }
        for (rank, slot) in ranks.iter().zip(sorted..) {
            slots[*rank] = slot as u8;
        }
        Some(LeafOrder {
            len: len as u8,
            as_they_are: false,
            slots,
        })
    }

    /// Returns the number of slots.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns the slot of the key with this index in the order.
    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> usize {
        if self.as_they_are {
            index
        } else {
            usize::from(self.slots[index])
        }
    }

    /// Returns the index of the key in a slot.
    pub(super) fn index_of(&self, slot: usize) -> usize {
        let mut indices = 0..self.len();
        let index = indices.find(|index| self.slot(*index) == slot);
        index.expect("each slot is in the order")
    }

    /// Returns the index of a key, or of the first one above it. `compare` compares the key of a
    /// slot with it.
    #[inline]
    pub(super) fn search(&self, compare: impl Fn(usize) -> Ordering) -> Result<usize, usize> {
        bisect(0..self.len(), |index| compare(self.slot(index)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_met_in_order(
            numbers in proptest::collection::btree_set(0u32..1000, 0..34),
            late in proptest::collection::vec(any::<prop::sample::Index>(), 0..=TAIL_MOST),
            probe in 0u32..1000,
        ) {
            let expected: Vec<u32> = numbers.into_iter().collect();
            let (mut keys, mut tail) = (expected.clone(), Vec::new());
            for index in late {
                if !keys.is_empty() {
                    tail.push(keys.remove(index.index(keys.len())));
                }
            }
            let sorted = keys.len();
            keys.extend(tail);
            let rank = |late: &u32| keys.iter().filter(|key| *key < late).count();
            let ranks: Vec<usize> = keys[sorted..].iter().map(rank).collect();
            let order = LeafOrder::of_ranks(keys.len(), &ranks).expect("all differ");
            let met: Vec<u32> = (0..order.len()).map(|index| keys[order.slot(index)]).collect();
            prop_assert_eq!(&met, &expected);
            for index in 0..order.len() {
                prop_assert_eq!(order.index_of(order.slot(index)), index);
            }
            let found = order.search(|slot| keys[slot].cmp(&probe));
            prop_assert_eq!(found, expected.binary_search(&probe));
        }
    }

    #[test]
    fn equal_ranks_are_no_order() {
        assert_eq!(LeafOrder::of_ranks(4, &[1, 1]), None);
    }
}
