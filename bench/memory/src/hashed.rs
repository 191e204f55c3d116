//! Unordered maps of other crates, each with two kinds of keys: byte strings, and numbers.

use crate::keys::{Bytes, Key};
use crate::maps::Map;
use dashmap::DashMap;
use foldhash::fast::RandomState;
use papaya::HashMap as Papaya;
use scc::HashMap as Scc;

/// The names of the peers with keys of a type in the table of results, in the order of this file.
pub trait Names: Key {
    /// The names.
    const NAMES: [&'static str; 3];
}

impl Names for Bytes<8> {
    const NAMES: [&'static str; 3] = ["dashmap", "scc", "papaya"];
}

impl Names for u64 {
    const NAMES: [&'static str; 3] = ["dashmap u64", "scc u64", "papaya u64"];
}

/// `dashmap`: shards, each behind a lock for readers and writers.
pub struct Dash<K: Key>(DashMap<K, u64, RandomState>);

impl<K: Key> Default for Dash<K> {
    fn default() -> Self {
        Self(DashMap::default())
    }
}

impl<K: Names> Map for Dash<K> {
    const NAME: &'static str = K::NAMES[0];

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        K::lend(key, |key| self.0.get(key).map(|entry| *entry))
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.insert(K::new(key), value);
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        K::lend(key, |key| self.0.remove(key).is_some())
    }

    /// The map has no guard for several lookups.
    fn lookups(&self, keys: &[u32]) -> u64 {
        let values = keys.iter().filter_map(|key| self.lookup(u64::from(*key)));
        values.fold(0, u64::wrapping_add)
    }
}

/// `scc`: buckets, each with a lock for readers and writers.
pub struct SccMap<K: Key>(Scc<K, u64, RandomState>);

impl<K: Key> Default for SccMap<K> {
    fn default() -> Self {
        Self(Scc::default())
    }
}

impl<K: Names> Map for SccMap<K> {
    const NAME: &'static str = K::NAMES[1];

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        K::lend(key, |key| self.0.read_sync(key, |_, value| *value))
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.upsert_sync(K::new(key), value);
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        K::lend(key, |key| self.0.remove_sync(key).is_some())
    }

    fn lookups(&self, keys: &[u32]) -> u64 {
        // The map pins for itself; inside of this guard that only counts.
        let _guard = scc::Guard::new();
        let values = keys.iter().filter_map(|key| self.lookup(u64::from(*key)));
        values.fold(0, u64::wrapping_add)
    }
}

/// `papaya`: open addressing without locks.
pub struct PapayaMap<K: Key>(Papaya<K, u64, RandomState>);

impl<K: Key> Default for PapayaMap<K> {
    fn default() -> Self {
        Self(Papaya::default())
    }
}

impl<K: Names> Map for PapayaMap<K> {
    const NAME: &'static str = K::NAMES[2];

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        K::lend(key, |key| self.0.pin().get(key).copied())
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.pin().insert(K::new(key), value);
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        K::lend(key, |key| self.0.pin().remove(key).is_some())
    }

    fn lookups(&self, keys: &[u32]) -> u64 {
        let map = self.0.pin();
        let values = keys
            .iter()
            .filter_map(|key| K::lend(u64::from(*key), |key| map.get(key).copied()));
        values.fold(0, u64::wrapping_add)
    }
}
