//! Range deletes: which keys of older runs a run has deleted, whatever they are.

use super::coding::{Damaged, Decoder, put_bytes, put_varint};
use ats_store::KeyRange;

/// A range of keys of which all that is older than the run is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeDelete {
    low: Option<Box<[u8]>>,
    high: Option<Box<[u8]>>,
}

impl RangeDelete {
    /// The range of the keys.
    pub(crate) fn range(&self) -> KeyRange<'_> {
        KeyRange {
            low: self.low.as_deref(),
            high: self.high.as_deref(),
        }
    }
}

/// Range deletes in ascending order, none of them empty, no two with a key in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeDeletes {
    ranges: Vec<RangeDelete>,
}

const LOW: u8 = 1;
const HIGH: u8 = 2;

impl RangeDeletes {
    /// Adds a range above all there are. Whether it is.
    pub(crate) fn push(&mut self, range: KeyRange<'_>) -> bool {
        let above = match (self.ranges.last(), range.low) {
            (None, _) => true,
            (Some(last), Some(low)) => last.high.as_deref().is_some_and(|high| high <= low),
            (Some(_), None) => false,
        };
        if !above || range.is_empty() {
            return false;
        }
        self.ranges.push(RangeDelete {
            low: range.low.map(Box::from),
            high: range.high.map(Box::from),
        });
        true
    }

    /// All of several lists. `None` if two ranges have a key in common.
    pub(crate) fn join<'r>(lists: impl Iterator<Item = &'r RangeDeletes>) -> Option<Self> {
        let mut ranges: Vec<&RangeDelete> = lists.flat_map(|list| &list.ranges).collect();
        ranges.sort_by(|a, b| a.low.cmp(&b.low));
        let mut joined = RangeDeletes::default();
        let pushed = ranges.iter().all(|range| joined.push(range.range()));
        pushed.then_some(joined)
    }

    /// In ascending order.
    pub(crate) fn as_slice(&self) -> &[RangeDelete] {
        &self.ranges
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a key is in one of the ranges. O(log n).
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        let begun = |range: &RangeDelete| range.low.as_deref().is_none_or(|low| low <= key);
        let last = self.ranges.partition_point(begun).checked_sub(1);
        last.is_some_and(|last| self.ranges[last].range().has(key))
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.ranges.len() as u64);
        for range in &self.ranges {
            let low = range.low.as_ref().map_or(0, |_| LOW);
            out.push(low | range.high.as_ref().map_or(0, |_| HIGH));
            let bounds = [&range.low, &range.high];
            bounds
                .into_iter()
                .flatten()
                .for_each(|key| put_bytes(out, key));
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut decoder = Decoder::new(bytes);
        let mut ranges = RangeDeletes::default();
        for _ in 0..decoder.count()? {
            let [bounds] = decoder.array()?;
            if bounds & !(LOW | HIGH) != 0 {
                return Err(Damaged("has a range with unknown bounds"));
            }
            let mut bound = |which| match bounds & which {
                0 => Ok(None),
                _ => decoder.bytes().map(Some),
            };
            let range = KeyRange {
                low: bound(LOW)?,
                high: bound(HIGH)?,
            };
            if !ranges.push(range) {
                return Err(Damaged("has ranges that are empty or do not ascend"));
            }
        }
        decoder.end()?;
        Ok(ranges)
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        let keys = self
            .ranges
            .iter()
            .flat_map(|range| [&range.low, &range.high]);
        let keys: usize = keys.flatten().map(|key| key.len()).sum();
        self.ranges.capacity() * size_of::<RangeDelete>() + keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range<'k>(low: Option<&'k [u8]>, high: Option<&'k [u8]>) -> KeyRange<'k> {
        KeyRange { low, high }
    }

    #[test]
    fn only_ranges_that_ascend_are_taken() {
        let mut ranges = RangeDeletes::default();
        assert!(!ranges.push(range(Some(b"b"), Some(b"b"))));
        assert!(!ranges.push(range(Some(b"b"), Some(b"a"))));
        assert!(ranges.push(range(None, Some(b"b"))));
        assert!(!ranges.push(range(None, Some(b"c"))));
        assert!(!ranges.push(range(Some(b"a"), None)));
        assert!(ranges.push(range(Some(b"b"), Some(b"c"))));
        assert!(ranges.push(range(Some(b"d"), None)));
        assert!(!ranges.push(range(Some(b"e"), None)));
        let covered = [&b""[..], b"b", b"bz", b"c", b"cz", b"d", b"z"];
        let covered = covered.map(|key| ranges.covers(key));
        assert_eq!(covered, [true, true, true, false, false, true, true]);
    }

    #[test]
    fn lists_are_joined_unless_they_overlap() {
        let list = |bounds: &[(&str, &str)]| {
            let mut ranges = RangeDeletes::default();
            for (low, high) in bounds {
                assert!(ranges.push(range(Some(low.as_bytes()), Some(high.as_bytes()))));
            }
            ranges
        };
        let (a, b) = (list(&[("a", "b"), ("e", "f")]), list(&[("b", "c")]));
        let joined = RangeDeletes::join([&a, &b].into_iter());
        assert_eq!(joined, Some(list(&[("a", "b"), ("b", "c"), ("e", "f")])));
        assert_eq!(
            RangeDeletes::join([&a, &list(&[("d", "ea")])].into_iter()),
            None
        );
        assert_eq!(RangeDeletes::join([].into_iter()), Some(list(&[])));
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(
            bounds in prop::collection::btree_set(prop::collection::vec(0..4u8, 0..4), 0..20),
            open in any::<(bool, bool)>(),
            keys in prop::collection::vec(prop::collection::vec(0..4u8, 0..5), 0..20),
        ) {
            let bounds: Vec<_> = bounds.iter().collect();
            let mut ranges = RangeDeletes::default();
            let pairs = bounds.len() / 2;
            for (number, pair) in bounds.chunks_exact(2).enumerate() {
                let low = (number > 0 || !open.0).then_some(&pair[0][..]);
                let high = (number + 1 < pairs || !open.1).then_some(&pair[1][..]);
                prop_assert!(ranges.push(range(low, high)));
            }
            let mut bytes = Vec::new();
            ranges.encode(&mut bytes);
            let decoded = RangeDeletes::decode(&bytes);
            prop_assert_eq!(decoded.as_ref(), Ok(&ranges));
            for len in 0..bytes.len() {
                prop_assert!(RangeDeletes::decode(&bytes[..len]).is_err());
            }
            for key in keys.iter().chain(bounds) {
                let plain = ranges.as_slice().iter().any(|range| range.range().has(key));
                prop_assert_eq!(ranges.covers(key), plain);
            }
        }
    }
}
