//! Walks over a map on disk, from both ends.

use super::decode::decode_pair;
use crate::map::key::Key;
use crate::map::value::Value;
use ats_disk::{Error, Scan};
use ats_store::Direction;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// An iterator over the pairs of a range of keys, from either end: see
/// [`range`](super::DiskMap::range).
#[must_use = "an iterator does nothing unless it is asked for its items"]
pub struct DiskIter<K, V> {
    scan: Scan,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> DiskIter<K, V> {
    pub(super) fn new(scan: Scan) -> Self {
        DiskIter {
            scan,
            types: PhantomData,
        }
    }

    fn item(&mut self, direction: Direction) -> Option<Result<(K, V), Error>> {
        let record = self.scan.next_lent(direction)?;
        Some(record.and_then(|(key, value)| decode_pair(key, value)))
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
