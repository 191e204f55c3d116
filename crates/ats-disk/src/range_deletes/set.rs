//! Ranges of keys without an order in time.

use crate::coding::{Damaged, Decoder, put_bytes, put_varint};
use ats_store::KeyRange;

/// The bits of a range in a file: whether there is a lower bound, and an upper one.
const LOW: u8 = 1;
const HIGH: u8 = 2;

/// A set of keys: ranges that ascend and neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: Vec<OwnedRange>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedRange {
    /// The first key. Without a lower bound it is empty, the lowest key of all.
    low: Box<[u8]>,
    /// The first key above; `None` is above all.
    high: Option<Box<[u8]>>,
}

impl OwnedRange {
    /// Returns `true` if a range that begins at `low` neither overlaps nor touches this one, being
    /// above it.
    fn is_apart_below(&self, low: &[u8]) -> bool {
        self.high.as_deref().is_some_and(|high| high < low)
    }

    fn as_range(&self) -> KeyRange<'_> {
        KeyRange {
            low: (!self.low.is_empty()).then_some(&*self.low),
            high: self.high.as_deref(),
        }
    }
}

impl RangeSet {
    /// No keys.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns `true` if there are no keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Adds the keys of a range. O(log n) if it is above all others, or replaces no other; else
    /// O(n).
    pub(crate) fn insert(&mut self, range: KeyRange<'_>) {
        let low = range.low.unwrap_or_default();
        if range.high.is_some_and(|high| high <= low) {
            return;
        }
        let start = self
            .ranges
            .partition_point(|other| other.is_apart_below(low));
        let end = match range.high {
            Some(high) => self.ranges.partition_point(|other| &*other.low <= high),
            None => self.ranges.len(),
        };
        let Some(last) = self.ranges[start..end].last_mut() else {
            let range = OwnedRange {
                low: low.into(),
                high: range.high.map(Into::into),
            };
            self.ranges.insert(start, range);
            return;
        };
        // The union replaces the first of those that it is made of.
        let last_high = last.high.take();
        let first = &mut self.ranges[start];
        if low < &*first.low {
            first.low = low.into();
        }
        first.high = match (last_high, range.high) {
            (Some(last), Some(high)) if &*last < high => Some(high.into()),
            (Some(last), Some(_)) => Some(last),
            _ => None,
        };
        self.ranges.drain(start + 1..end);
    }

    /// Returns `true` if the set has a key. O(log n).
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.find_covering(key).is_some()
    }

    /// Returns the range in which a key is, so that a walk can go past all of it. O(log n).
    pub(crate) fn find_covering(&self, key: &[u8]) -> Option<KeyRange<'_>> {
        let above = self.ranges.partition_point(|range| &*range.low <= key);
        let range = self.ranges[..above].last()?.as_range();
        range.has(key).then_some(range)
    }

    /// Returns the ranges, ascending.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = KeyRange<'_>> + ExactSizeIterator {
        self.ranges.iter().map(OwnedRange::as_range)
    }

    /// Returns the keys that are also in `bounds`. O(log n) and the size of the result.
    pub(crate) fn clip(&self, bounds: KeyRange<'_>) -> RangeSet {
        let low = bounds.low.unwrap_or_default();
        let start = self.ranges.partition_point(|range| {
            let high = range.high.as_deref();
            high.is_some_and(|high| high <= low)
        });
        let mut clipped = RangeSet::new();
        for range in &self.ranges[start..] {
            if bounds.high.is_some_and(|high| high <= &*range.low) {
                break;
            }
            let high = match (range.high.as_deref(), bounds.high) {
                (Some(own), Some(other)) => Some(own.min(other)),
                (own, other) => own.or(other),
            };
            clipped.insert(KeyRange {
                low: Some(low.max(&range.low)),
                high,
            });
        }
        clipped
    }

    /// Appends the ranges, for a file.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        for KeyRange { low, high } in self.iter() {
            out.push(low.map_or(0, |_| LOW) | high.map_or(0, |_| HIGH));
            let bounds = [low, high].into_iter().flatten();
            bounds.for_each(|key| put_bytes(out, key));
        }
    }

    /// Reads the output of [`encode`](RangeSet::encode), and nothing behind it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut decoder = Decoder::new(bytes);
        let mut set = RangeSet::new();
        for ranges in 0..decoder.count()? {
            let bounds = decoder.byte()?;
            if bounds & !(LOW | HIGH) != 0 {
                return Err(Damaged("has a range with unknown bounds"));
            }
            let mut bound = |which| match bounds & which {
                0 => Ok(None),
                _ => decoder.bytes().map(Some),
            };
            let (low, high) = (bound(LOW)?, bound(HIGH)?);
            let last = set.ranges.last();
            let ascends = last.is_none_or(|last| last.is_apart_below(low.unwrap_or_default()));
            set.insert(KeyRange { low, high });
            if !ascends || set.len() == ranges {
                return Err(Damaged("has ranges that are empty or do not ascend"));
            }
        }
        decoder.end()?;
        Ok(set)
    }
}

/// The union of ranges. O(n log n).
impl<'k> FromIterator<KeyRange<'k>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = KeyRange<'k>>>(ranges: I) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().collect();
        ranges.sort_unstable_by_key(|range| range.low.unwrap_or_default());
        let mut set = RangeSet::new();
        for range in ranges {
            // Each is at the end, or overlaps the last.
            set.insert(range);
        }
        set
    }
}
