//! Unordered maps of other crates, each with two kinds of keys.
//!
//! Eight bytes in a box of their own are what such a map needs for keys that are byte strings of
//! any length, as all keys of ats are. Numbers, which lie in the map itself, are for orientation:
//! what can be gained where all keys are of one small type.

use crate::maps::Map;
use dashmap::DashMap;
use foldhash::fast::RandomState;
use papaya::HashMap as Papaya;
use scc::HashMap as Scc;
use std::borrow::Borrow;
use std::hash::Hash;

/// The type that a peer has for a key.
pub trait Key: Borrow<Self::Lent> + Eq + Hash + Send + Sync + 'static {
    /// The type by which a key is looked up.
    type Lent: Eq + Hash + ?Sized;

    /// The names of the peers with such keys in the table of results, in the order of this file.
    const NAMES: [&'static str; 3];

    /// The key of a number.
    fn new(number: u64) -> Self;

    /// Lends what the key of a number is looked up by.
    fn lend<R>(number: u64, to: impl FnOnce(&Self::Lent) -> R) -> R;
}

/// Keys of ats, as a peer has them.
pub type Bytes = Box<[u8]>;

impl Key for Bytes {
    type Lent = [u8];

    const NAMES: [&'static str; 3] = ["dashmap", "scc", "papaya"];

    #[inline(always)]
    fn new(number: u64) -> Self {
        Box::new(number.to_be_bytes())
    }

    #[inline(always)]
    fn lend<R>(number: u64, to: impl FnOnce(&[u8]) -> R) -> R {
        to(&number.to_be_bytes())
    }
}

impl Key for u64 {
    type Lent = u64;

    const NAMES: [&'static str; 3] = ["dashmap u64", "scc u64", "papaya u64"];

    #[inline(always)]
    fn new(number: u64) -> Self {
        number
    }

    #[inline(always)]
    fn lend<R>(number: u64, to: impl FnOnce(&u64) -> R) -> R {
        to(&number)
    }
}

/// `dashmap`: shards, each behind a lock for readers and writers.
pub struct Dash<K: Key>(DashMap<K, u64, RandomState>);

impl<K: Key> Default for Dash<K> {
    fn default() -> Self {
        Self(DashMap::default())
    }
}

impl<K: Key> Map for Dash<K> {
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

    /// It has no guard for several.
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

impl<K: Key> Map for SccMap<K> {
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

impl<K: Key> Map for PapayaMap<K> {
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
