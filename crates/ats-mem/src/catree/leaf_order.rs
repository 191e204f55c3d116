//! The slots of a leaf in the order of their keys.
//!
//! The first keys of a leaf ascend, and the few keys of its tail are somewhere between them. The
//! ranks of these determine the order.

use super::bisect::bisect;
use super::sizes::LEAF;
use std::cmp::Ordering;

/// Largest number of keys in a tail.
pub(super) const TAIL_MOST: usize = 8;

/// Bytes of an order: its slots, and then some, as whole vectors.
const BYTES: usize = (LEAF + 2).next_multiple_of(16);
/// The index of the number of slots.
const LEN: usize = BYTES - 2;
/// The index of a byte that is 1 if all keys ascend; the slots are then unused.
const AS_THEY_ARE: usize = BYTES - 1;

/// The slots of a leaf in the order of their keys, for the number of keys at the time.
///
/// One array of aligned vectors, so that an order is copied as it was stored: a processor forwards
/// a store only to a load of the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub(super) struct LeafOrder([u8; BYTES]);

impl LeafOrder {
    /// The order of no slots.
    pub(super) const NONE: Self = Self::as_they_are(0);

    /// Returns the order of `len` slots whose keys ascend.
    #[inline(always)]
    pub(super) const fn as_they_are(len: usize) -> Self {
        let mut bytes = [0; BYTES];
        bytes[LEN] = len as u8;
        bytes[AS_THEY_ARE] = 1;
        LeafOrder(bytes)
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
        let mut bytes: [u8; BYTES] = std::array::from_fn(|index| index as u8);
        for rank in ranks {
            let rank = *rank as u8;
            for (index, slot) in bytes.iter_mut().enumerate() {
                *slot = slot.wrapping_sub(u8::from(index as u8 > rank));
            }
        }
        for (rank, slot) in ranks.iter().zip(sorted..) {
            bytes[*rank] = slot as u8;
        }
        bytes[LEN] = len as u8;
        bytes[AS_THEY_ARE] = 0;
        Some(LeafOrder(bytes))
    }

    /// Returns the number of slots.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.0[LEN])
    }

    /// Returns the slot of the key with this index in the order.
    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> usize {
        if self.0[AS_THEY_ARE] == 1 {
            index
        } else {
            usize::from(self.0[index])
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
