//! The places of a leaf in the order of their keys.

use super::leaf::LEAF;
use std::cmp::Ordering;

/// The places of a leaf in the order of their keys, as of a moment when the leaf had so many.
#[derive(Clone, Copy, Debug)]
pub(super) struct InOrder {
    len: u8,
    /// The places are in order as they are, and `places` is not filled.
    as_they_are: bool,
    places: [u8; LEAF],
}

impl InOrder {
    /// That of no places.
    pub(super) const NONE: Self = InOrder {
        len: 0,
        as_they_are: true,
        places: [0; LEAF],
    };

    /// Those of a leaf with `len` keys, of which the first `sorted` ascend. `compare` orders the keys at two places.
    ///
    /// O(1) if all ascend, else O(len) for each of those that follow, of which there are few.
    #[inline]
    pub(super) fn new(
        len: usize,
        sorted: usize,
        compare: impl Fn(usize, usize) -> Ordering,
    ) -> Self {
        let mut order = InOrder {
            len: len as u8,
            as_they_are: sorted == len,
            places: [0; LEAF],
        };
        if !order.as_they_are {
            order.sort(sorted, compare);
        }
        order
    }

    fn sort(&mut self, sorted: usize, compare: impl Fn(usize, usize) -> Ordering) {
        let places = &mut self.places[..usize::from(self.len)];
        for (place, at) in places.iter_mut().enumerate() {
            *at = place as u8;
        }
        for place in sorted..places.len() {
            let index = places[..place]
                .partition_point(|other| compare(usize::from(*other), place).is_lt());
            places[index..=place].rotate_right(1);
        }
    }

    /// How many there are.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// The place of the key with this index in the order.
    #[inline(always)]
    pub(super) fn place(&self, index: usize) -> usize {
        match self.as_they_are {
            true => index,
            false => usize::from(self.places[index]),
        }
    }

    /// The index of the key at a place.
    #[inline]
    pub(super) fn index_of(&self, place: usize) -> usize {
        match self.as_they_are {
            true => place,
            false => {
                let mut indices = 0..self.len();
                let index = indices.find(|index| self.place(*index) == place);
                index.expect("each place is in the order")
            }
        }
    }

    /// The index of a key, or of the first one above it. `compare` orders the key at a place and that one.
    #[inline]
    pub(super) fn search(&self, compare: impl Fn(usize) -> Ordering) -> Result<usize, usize> {
        let (mut start, mut end) = (0, self.len());
        while start < end {
            let middle = start + (end - start) / 2;
            match compare(self.place(middle)) {
                Ordering::Less => start = middle + 1,
                Ordering::Greater => end = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(start)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_met_in_order(
            numbers in proptest::collection::btree_set(0u32..1000, 0..LEAF),
            late in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
            probe in 0u32..1000,
        ) {
            let (mut keys, mut tail): (Vec<u32>, Vec<u32>) = (numbers.iter().copied().collect(), Vec::new());
            for index in late {
                if !keys.is_empty() {
                    tail.push(keys.remove(index.index(keys.len())));
                }
            }
            let sorted = keys.len();
            keys.extend(tail);
            let order = InOrder::new(keys.len(), sorted, |a, b| keys[a].cmp(&keys[b]));
            let met: Vec<u32> = (0..order.len()).map(|index| keys[order.place(index)]).collect();
            let expected: Vec<u32> = numbers.iter().copied().collect();
            prop_assert_eq!(&met, &expected);
            for index in 0..order.len() {
                prop_assert_eq!(order.index_of(order.place(index)), index);
            }
            let found = order.search(|place| keys[place].cmp(&probe));
            prop_assert_eq!(found, expected.binary_search(&probe));
        }
    }
}
