//! Snapshots of a map on disk.

use super::decode::{decode_pair, decode_value};
use super::iter::DiskIter;
use crate::map::bounds::{KeyBounds, KeyPrefix, of_prefix};
use crate::map::key::{self, AsKey, Key};
use crate::map::value::Value;
use ats_disk::{Error, Snapshot};
use ats_store::Direction;
use std::fmt;
use std::marker::PhantomData;

/// A map on disk as it was at one moment, for reading: see
/// [`snapshot`](super::DiskMap::snapshot).
pub struct DiskSnapshot<K, V> {
    snapshot: Snapshot,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> DiskSnapshot<K, V> {
    pub(super) fn new(snapshot: Snapshot) -> Self {
        DiskSnapshot {
            snapshot,
            types: PhantomData,
        }
    }

    /// Returns the value of a key at the moment.
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn get(&self, key: impl AsKey<K>) -> Result<Option<V>, Error> {
        let key = key::bytes_of(&key);
        let value = self.snapshot.get(key.as_slice())?;
        let value = value.as_deref();
        value
            .map(|value| decode_value(key.as_slice(), value))
            .transpose()
    }

    /// Iterates over all pairs at the moment, in key order.
    pub fn iter(&self) -> DiskIter<K, V> {
        self.range(..)
    }

    /// Iterates over the pairs of the keys in a range at the moment, from either end.
    pub fn range(&self, keys: impl KeyBounds<K>) -> DiskIter<K, V> {
        DiskIter::new(self.snapshot.scan(keys.to_bytes().as_range()))
    }

    /// Iterates over the pairs of the keys with a [prefix](KeyPrefix) at the moment.
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> DiskIter<K, V> {
        DiskIter::new(self.snapshot.scan(of_prefix(&prefix).as_range()))
    }

    /// Returns the first pair at the moment.
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        self.iter().next().transpose()
    }

    /// Returns the last pair at the moment.
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        self.iter().next_back().transpose()
    }

    /// Returns the number of keys at the moment. O(1) or O(n), like
    /// [`DiskMap::len`](super::DiskMap::len).
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn len(&self) -> Result<usize, Error> {
        match self.snapshot.known_len() {
            Some(len) => Ok(len),
            None => self.count(..),
        }
    }

    /// Returns `true` if the map had no key at the moment.
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.first()?.is_none())
    }

    /// Returns the number of keys in a range at the moment. O(n) for n such keys, which are read.
    ///
    /// ```
    /// # use ats::DiskMap;
    /// # let folder = std::env::temp_dir().join(format!("ats-count-map-{}", std::process::id()));
    /// let map: DiskMap<u64, u64> = DiskMap::open(&folder)?;
    /// for n in 0..100 {
    ///     map.put(n * 2, n)?;
    /// }
    /// let before = map.snapshot();
    /// map.remove_range(..50)?;
    /// assert_eq!(before.count(10..20)?, 5);
    /// assert_eq!(before.rank(11)?, 6);
    /// assert_eq!(before.nth(6)?, Some((12, 6)));
    /// assert_eq!(before.nth(100)?, None);
    /// # drop((map, before));
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # Ok::<(), ats::disk::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn count(&self, keys: impl KeyBounds<K>) -> Result<usize, Error> {
        let bounds = keys.to_bytes();
        let mut scan = self
            .snapshot
            .scan_lending(bounds.as_range(), Direction::Up)?;
        let mut count = 0;
        while scan.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Returns the number of keys below a key at the moment: see [`count`](DiskSnapshot::count).
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn rank(&self, key: impl AsKey<K>) -> Result<usize, Error> {
        self.count(..key)
    }

    /// Returns the pair of the key with `rank` keys below it at the moment: see
    /// [`count`](DiskSnapshot::count).
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn nth(&self, rank: usize) -> Result<Option<(K, V)>, Error> {
        self.nth_in(.., rank)
    }

    /// Returns the pair of the key in a range with `rank` keys of the range below it at the moment.
    ///
    /// # Errors
    /// The errors of [`Snapshot::get`].
    pub fn nth_in(&self, keys: impl KeyBounds<K>, rank: usize) -> Result<Option<(K, V)>, Error> {
        let bounds = keys.to_bytes();
        let mut scan = self
            .snapshot
            .scan_lending(bounds.as_range(), Direction::Up)?;
        for _ in 0..rank {
            if scan.next()?.is_none() {
                return Ok(None);
            }
        }
        let pair = scan.next()?;
        pair.map(|(key, value)| decode_pair(key, value)).transpose()
    }
}

impl<K: Key, V: Value> IntoIterator for &DiskSnapshot<K, V> {
    type Item = Result<(K, V), Error>;
    type IntoIter = DiskIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K, V> fmt::Debug for DiskSnapshot<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskSnapshot").finish_non_exhaustive()
    }
}
