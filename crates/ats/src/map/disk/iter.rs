//! Walks over a map on disk, from both ends.

use super::decode::decode_pair;
use crate::map::bounds::ByteBounds;
use crate::map::key::Key;
use crate::map::value::Value;
use ats_disk::{Error, Scan, Snapshot};
use ats_store::{Direction, KeyRange};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::sync::Arc;

/// An iterator over the pairs of a range of keys, from either end: see
/// [`range`](super::DiskMap::range).
///
/// Each end that is used has its own walk, over the same moment.
#[must_use = "an iterator does nothing unless it is asked for its items"]
pub struct DiskIter<K, V> {
    snapshot: Arc<Snapshot>,
    /// The lower bound of the keys that neither end has returned. Each end updates its bound, since
    /// the other end stops there.
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    scans: [Option<Scan>; 2],
    is_done: bool,
    types: PhantomData<fn() -> (K, V)>,
}

type Item<K, V> = Result<(K, V), Error>;

impl<K: Key, V: Value> DiskIter<K, V> {
    pub(super) fn new(snapshot: impl Into<Arc<Snapshot>>, bounds: ByteBounds) -> Self {
        let range = bounds.as_range();
        DiskIter {
            snapshot: snapshot.into(),
            low: range.low.map(<[u8]>::to_vec),
            high: range.high.map(<[u8]>::to_vec),
            scans: [None, None],
            is_done: range.is_empty(),
            types: PhantomData,
        }
    }

    /// Returns the next pair in a direction, from the end where the direction begins, or an error
    /// in place of the pair.
    fn step(&mut self, direction: Direction) -> Result<Option<Item<K, V>>, Error> {
        let DiskIter {
            snapshot,
            low,
            high,
            scans,
            is_done,
            ..
        } = self;
        let own = &mut scans[usize::from(direction == Direction::Down)];
        let scan = match own {
            Some(scan) => scan,
            None => {
                let rest = KeyRange {
                    low: low.as_deref(),
                    high: high.as_deref(),
                };
                own.insert(snapshot.scan(rest, direction)?)
            }
        };
        let rest = |key: &[u8]| match direction {
            Direction::Up => high.as_deref().is_none_or(|high| key < high),
            Direction::Down => low.as_deref().is_none_or(|low| low <= key),
        };
        let Some((key, value)) = scan.next()?.filter(|(key, _)| rest(key)) else {
            *is_done = true;
            return Ok(None);
        };
        match direction {
            Direction::Up => {
                let low = low.get_or_insert_default();
                key.clone_into(low);
                low.push(0);
            }
            Direction::Down => key.clone_into(high.get_or_insert_default()),
        }
        Ok(Some(decode_pair(key, value)))
    }

    fn item(&mut self, direction: Direction) -> Option<Item<K, V>> {
        if self.is_done {
            return None;
        }
        match self.step(direction) {
            Ok(item) => item,
            Err(error) => {
                // A walk continues after values that cannot be merged, and ends at any other error.
                self.is_done |= error != Error::Merge;
                Some(Err(error))
            }
        }
    }
}

impl<K: Key, V: Value> Iterator for DiskIter<K, V> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.item(Direction::Up)
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for DiskIter<K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.item(Direction::Down)
    }
}

impl<K: Key, V: Value> FusedIterator for DiskIter<K, V> {}

impl<K, V> fmt::Debug for DiskIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskIter").finish_non_exhaustive()
    }
}
