//! Indexes: which of several neighbouring pieces of a file has a key.
//!
//! Between two neighbouring pieces lies a *separator*, the shortest byte string that is above all
//! keys of the first and not above those of the second. A key belongs to the piece whose number is
//! the number of separators that are not above the key.
//!
//! In memory, the common prefix of all separators is taken away, and the next eight bytes of each
//! are a number, its *head*. A lookup is a binary search over heads, which lie beside each other.
//! The search looks at the separators themselves only where a head is equal to that of the key.
//!
//! A file has two levels of them: the top has its parts, and each part has its blocks, about a
//! hundred. One level would need 16,000 entries for 64 MiB of blocks of 4 KiB, with the filter
//! about 1 MiB, which the first lookup after the cache has let it go would read again. A part is 4
//! KiB with its filter, as much as a block, and costs no additional lookup in the cache: the top,
//! some KiB, stays in memory as long as the file is open.

use crate::coding::{Damaged, Decoder, put_bytes, put_varint};
use crate::keys::{common_prefix, compare, head};
use ats_mem::slab::SharedSlice;
use std::cmp::Ordering;
use std::ops::Range;

/// Byte strings in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Separators {
    /// The bytes with which all begin.
    prefix: SharedSlice<u8>,
    /// Up to eight bytes of each string behind the prefix.
    heads: SharedSlice<u64>,
    /// The end of each string in `suffixes`.
    ends: SharedSlice<usize>,
    /// The bytes of each string behind the prefix.
    suffixes: SharedSlice<u8>,
}

impl Separators {
    /// Reads as many byte strings, which follow each other without a prefix of their own.
    fn decode(decoder: &mut Decoder<'_>, count: usize) -> Result<Self, Damaged> {
        let prefix = decoder.bytes()?;
        if count > decoder.rest().len() {
            return Err(Damaged("has too few separators"));
        }
        let mut heads = Vec::with_capacity(count);
        let mut ends = Vec::with_capacity(count);
        let mut suffixes = Vec::new();
        for _ in 0..count {
            let suffix = decoder.bytes()?;
            heads.push(head(suffix));
            suffixes.extend_from_slice(suffix);
            ends.push(suffixes.len());
        }
        Ok(Separators {
            prefix: prefix.into(),
            heads: heads.as_slice().into(),
            ends: ends.as_slice().into(),
            suffixes: suffixes.as_slice().into(),
        })
    }

    /// Makes separators between neighbours. `bounds` gives the first and the last key of each
    /// piece.
    pub(crate) fn from_bounds<'k>(mut bounds: impl Iterator<Item = (&'k [u8], &'k [u8])>) -> Self {
        let mut separators = Vec::new();
        let mut last = bounds.next().map(|(_, last)| last);
        for (next_first, next_last) in bounds {
            if let Some(last) = last {
                separators.push(separator(last, next_first));
            }
            last = Some(next_last);
        }
        let heads = separators.iter().map(|separator| head(separator));
        let ends = separators.iter().scan(0, |end, separator| {
            *end += separator.len();
            Some(*end)
        });
        Separators {
            prefix: SharedSlice::default(),
            heads: heads.collect(),
            ends: ends.collect(),
            suffixes: separators.concat().as_slice().into(),
        }
    }

    fn suffix(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.suffixes[start..self.ends[number]]
    }

    /// Returns the number of separators that are not above the key. O(log n).
    #[inline]
    pub(crate) fn rank(&self, key: &[u8]) -> usize {
        let key = if self.prefix.is_empty() {
            key
        } else {
            let prefix = self.prefix.len().min(key.len());
            match compare(&key[..prefix], &self.prefix) {
                Ordering::Less => return 0,
                Ordering::Equal => &key[prefix..],
                Ordering::Greater => return self.heads.len(),
            }
        };
        let key_head = head(key);
        let low = self.heads.partition_point(|&head| head < key_head);
        match self.heads.get(low) {
            Some(&head) if head == key_head => self.rank_of_equal(low, key, key_head),
            _ => low,
        }
    }

    /// Returns the rank of a key whose head occurs, from `low` on.
    fn rank_of_equal(&self, mut low: usize, key: &[u8], key_head: u64) -> usize {
        let equal = &self.heads[low..];
        let mut high = low + equal.partition_point(|&head| head == key_head);
        while low < high {
            let middle = low + (high - low) / 2;
            if compare(self.suffix(middle), key) == Ordering::Greater {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Returns the numbers of those that are above `low` and below `high`. O(log n).
    pub(crate) fn find_within(&self, low: &[u8], high: Option<&[u8]>) -> Range<usize> {
        let start = self.rank(low);
        let end = high.map_or(self.heads.len(), |high| {
            let rank = self.rank(high);
            let has_high = rank > start && self.get(rank - 1) == high;
            rank - usize::from(has_high)
        });
        start..end
    }

    /// Returns the separator with this number.
    pub(crate) fn get(&self, number: usize) -> Vec<u8> {
        [&self.prefix, self.suffix(number)].concat()
    }

    fn memory(&self) -> usize {
        self.prefix.bytes() + self.heads.bytes() + self.ends.bytes() + self.suffixes.bytes()
    }
}

/// Returns the shortest byte string above `last` and not above `first`, which is above `last`.
pub(crate) fn separator<'k>(last: &[u8], first: &'k [u8]) -> &'k [u8] {
    let shared = common_prefix(last, first);
    first.get(..=shared).unwrap_or(first)
}

/// The extents of neighbouring pieces of a file, and the separators that tell which of them has a
/// key.
#[derive(Debug)]
pub(crate) struct Index {
    separators: Separators,
    /// The beginnings of all pieces, and the end of the last one. Ascending, two at least.
    offsets: SharedSlice<u64>,
}

impl Index {
    /// Reads the output of [`IndexBuilder::encode`].
    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let count = decoder.count()?;
        if count == 0 {
            return Err(Damaged("is an empty index"));
        }
        let mut offset = decoder.varint()?;
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(offset);
        for _ in 0..count {
            let end = offset.checked_add(decoder.varint()?);
            offset = end.ok_or(Damaged("has offsets of more than 64 bits"))?;
            offsets.push(offset);
        }
        Ok(Index {
            separators: Separators::decode(decoder, count - 1)?,
            offsets: offsets.as_slice().into(),
        })
    }

    /// Returns the number of pieces: one at least.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the number of the piece to which a key belongs. O(log n).
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        self.separators.rank(key)
    }

    /// Returns the numbers of the separators that are above `low` and below `high`; the first one
    /// is the number of the piece to which `low` belongs. O(log n).
    pub(crate) fn find_within(&self, low: &[u8], high: Option<&[u8]>) -> Range<usize> {
        self.separators.find_within(low, high)
    }

    /// Returns the separator behind the piece with this number, which is not the last.
    pub(crate) fn separator(&self, number: usize) -> Vec<u8> {
        self.separators.get(number)
    }

    /// Returns the offset and the length of the piece with this number.
    #[inline]
    pub(crate) fn piece(&self, number: usize) -> (u64, u64) {
        let (start, end) = (self.offsets[number], self.offsets[number + 1]);
        (start, end - start)
    }

    /// Returns the beginning of the first piece, and the end of the last one.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.offsets[0], self.offsets[self.len()])
    }

    /// Returns the bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.separators.memory() + self.offsets.bytes()
    }
}

/// Collects an index.
#[derive(Default)]
pub(crate) struct IndexBuilder {
    lengths: Vec<u64>,
    separators: Vec<u8>,
    /// The end of each separator.
    ends: Vec<usize>,
}

impl IndexBuilder {
    /// Adds a piece of this length, behind those there are.
    pub(crate) fn add(&mut self, length: u64) {
        self.lengths.push(length);
    }

    /// The separator between the last piece and the one that is added next.
    pub(crate) fn separate(&mut self, separator: &[u8]) {
        self.separators.extend_from_slice(separator);
        self.ends.push(self.separators.len());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns the bytes that it takes when it is encoded, about.
    pub(crate) fn bytes(&self) -> usize {
        self.separators.len() + 3 * self.lengths.len()
    }

    /// Appends the index of the pieces, of which the first begins at `offset`.
    pub(crate) fn encode(&self, offset: u64, out: &mut Vec<u8>) {
        debug_assert_eq!(self.lengths.len(), self.ends.len() + 1);
        put_varint(out, self.lengths.len() as u64);
        put_varint(out, offset);
        for &length in &self.lengths {
            put_varint(out, length);
        }
        let separator = |number: usize| {
            let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.separators[start..self.ends[number]]
        };
        // The strings ascend, so all have the common prefix of the first and the last.
        let count = self.ends.len();
        let prefix = match count {
            0 => &[],
            _ => &separator(0)[..common_prefix(separator(0), separator(count - 1))],
        };
        put_bytes(out, prefix);
        for number in 0..count {
            put_bytes(out, &separator(number)[prefix.len()..]);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.lengths.clear();
        self.separators.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn index(separators: &[Vec<u8>], offset: u64) -> Index {
        let mut builder = IndexBuilder::default();
        builder.add(10);
        for (number, separator) in (11..).zip(separators) {
            builder.separate(separator);
            builder.add(number);
        }
        let mut bytes = Vec::new();
        builder.encode(offset, &mut bytes);
        for len in 0..bytes.len() {
            assert!(Index::decode(&mut Decoder::new(&bytes[..len])).is_err());
        }
        let mut decoder = Decoder::new(&bytes);
        let index = Index::decode(&mut decoder).expect("it was encoded like that");
        assert_eq!(decoder.end(), Ok(()));
        index
    }

    #[test]
    fn pieces_follow_each_other() {
        let index = index(&[b"b".to_vec(), b"c".to_vec()], 1000);
        assert_eq!(index.len(), 3);
        let pieces: Vec<_> = (0..3).map(|number| index.piece(number)).collect();
        assert_eq!(pieces, [(1000, 10), (1010, 11), (1021, 12)]);
        assert_eq!(index.extent(), (1000, 1033));
        let found = [&b""[..], b"az", b"b", b"bz", b"c", b"d"].map(|key| index.find(key));
        assert_eq!(found, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn separators_are_as_short_as_they_can_be() {
        for (last, first, between) in [
            (&b""[..], &b"\0"[..], &b"\0"[..]),
            (b"abc", b"abd", b"abd"),
            (b"abc", b"b", b"b"),
            (b"ab", b"abcd", b"abc"),
            (b"apple", b"banana", b"b"),
        ] {
            assert_eq!(separator(last, first), between);
        }
        let bounds: [(&[u8], &[u8]); 3] = [(b"", b"apple"), (b"banana", b"bay"), (b"bay ", b"z")];
        let separators = Separators::from_bounds(bounds.into_iter());
        let ranks = [&b"apple"[..], b"b", b"bay", b"bay ", b"z"].map(|key| separators.rank(key));
        assert_eq!(ranks, [0, 1, 1, 2, 2]);
        assert_eq!(Separators::from_bounds([].into_iter()).rank(b"x"), 0);
    }

    #[test]
    fn separators_within_a_range_are_neither_of_its_ends() {
        let separators = [&b"ab"[..], b"abc", b"abd", b"ac"].map(<[u8]>::to_vec);
        let index = index(&separators, 0);
        let within = |low: &[u8], high: Option<&[u8]>| -> Vec<_> {
            let numbers = index.find_within(low, high);
            numbers.map(|number| index.separator(number)).collect()
        };
        assert_eq!(within(b"", None), separators);
        assert_eq!(within(b"ab", Some(b"ac")), separators[1..3]);
        assert_eq!(within(b"aa", Some(b"ab")), [b""; 0]);
        assert_eq!(within(b"abcd", Some(b"abce")), [b""; 0]);
        assert_eq!(index.find_within(b"abc", Some(b"abc")), 2..2);
        assert_eq!(within(b"b", None), [b""; 0]);
    }

    #[test]
    fn offsets_beyond_all_files_are_refused() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, 1);
        put_varint(&mut bytes, u64::MAX);
        put_varint(&mut bytes, 1);
        put_bytes(&mut bytes, b"");
        assert!(Index::decode(&mut Decoder::new(&bytes)).is_err());
        assert!(Index::decode(&mut Decoder::new(&[0; 10])).is_err());
    }

    /// Short strings of few letters, and such with eight bytes and more in common.
    fn strings() -> impl Strategy<Value = Vec<u8>> {
        let short = prop::collection::vec(0..3u8, 0..12);
        prop_oneof![
            short.clone(),
            short
                .clone()
                .prop_map(|end| [b"prefix".to_vec(), end].concat()),
            short.prop_map(|end| [vec![1; 20], end].concat()),
        ]
    }

    proptest! {
        #[test]
        fn keys_are_found_by_plain_comparison_of_all(
            separators in prop::collection::btree_set(strings(), 0..40),
            prefix in strings(),
            keys in prop::collection::vec(strings(), 1..40),
        ) {
            for prefix in [Vec::new(), prefix] {
                let separators: BTreeSet<Vec<u8>> =
                    separators.iter().map(|end| [&prefix[..], end].concat()).collect();
                let separators: Vec<_> = separators.into_iter().collect();
                let index = index(&separators, 0);
                let longer = keys.iter().map(|end| [&prefix[..], end].concat());
                for key in longer.chain(keys.iter().cloned()).chain(separators.iter().cloned()) {
                    let rank = separators.iter().filter(|separator| **separator <= key).count();
                    prop_assert_eq!(index.find(&key), rank);
                }
            }
        }
    }
}
