//! The maps that are compared, behind one small trait.
//!
//! Each is used as its documentation shows: an operation pins, or locks, for itself, as a caller
//! does that has one thing to do. [`Map::lookups`] is the other way round: many lookups under one
//! guard, or one lock, which is the best each can do.

use crate::keys::{Key, bytes_of};
use ats_mem::{CaTree, Change, HashTable, Plain, Provided, Record, RecordBox, Records, When};
use crossbeam_skiplist::SkipMap;
use scc::{Guard, TreeIndex};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::{ControlFlow, Deref, DerefMut};

/// A map from numbers to numbers that threads share.
pub trait Map: Default + Send + Sync + 'static {
    /// The name in the table of results.
    const NAME: &'static str;

    /// Returns the value of a key.
    fn lookup(&self, key: u64) -> Option<u64>;

    /// Gives a key a value, in place of the one it may have.
    fn insert(&self, key: u64, value: u64);

    /// Removes a key. Returns `true` if it was there; `true` of a map that does not say.
    fn remove(&self, key: u64) -> bool;

    /// Returns the sum of the values of these keys, under one guard or lock.
    fn lookups(&self, keys: &[u32]) -> u64;

    /// Returns the sum of the values of up to `count` keys above `key`, and how many there were;
    /// `None` of a map without order.
    fn sum_above(&self, key: u64, count: usize) -> Option<(u64, usize)> {
        let _ = (key, count);
        None
    }
}

/// One of the stores of ats.
pub trait Store: Records<Plain> + Default + 'static {
    /// `true` if its keys have an order.
    const ORDERED: bool;
}

impl Store for CaTree<Plain> {
    const ORDERED: bool = true;
}

impl Store for HashTable<Plain> {
    const ORDERED: bool = false;
}

/// A store of ats. Keys have `LENGTH` bytes; the value is one word.
#[derive(Default)]
pub struct Ats<S, const LENGTH: usize>(S);

/// The ordered one.
pub type AtsOrdered<const LENGTH: usize> = Ats<CaTree<Plain>, LENGTH>;

/// The unordered one.
pub type AtsHash = Ats<HashTable<Plain>, 8>;

impl<S: Store, const LENGTH: usize> Ats<S, LENGTH> {
    /// Adds 1 to the value of a key, which counts as 0 if it is not there. Replaces the record.
    pub fn increment(&self, key: u64) {
        let key = bytes_of::<LENGTH>(key);
        self.update(&key, |old| {
            Change::Put(RecordBox::new(&key, &[old.unwrap_or(0) + 1], false))
        });
    }

    /// Changes one key, however long a batch holds it.
    #[inline]
    fn update(&self, key: &[u8], mut decide: impl FnMut(Option<u64>) -> Change<Plain>) {
        let guard = ats_sync::pin();
        let mut decide = |old: Option<&Record<Plain>>| decide(old.map(|record| record.value()[0]));
        while self.0.update(key, &guard, &mut decide).is_err() {}
    }
}

impl<S: Store, const LENGTH: usize> Map for Ats<S, LENGTH> {
    const NAME: &'static str = "ats";

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        let guard = ats_sync::pin();
        let record = self.0.get(&bytes_of::<LENGTH>(key), &guard)?;
        Some(record.value()[0])
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        let key = bytes_of::<LENGTH>(key);
        let guard = ats_sync::pin();
        let record = || RecordBox::new(&key, &[value], false);
        while self.0.put(&key, record(), &guard).is_err() {}
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        let guard = ats_sync::pin();
        loop {
            // Busy if a batch holds the key for long.
            if let Ok(was_there) = self.0.remove(&bytes_of::<LENGTH>(key), &guard) {
                return was_there;
            }
        }
    }

    fn lookups(&self, keys: &[u32]) -> u64 {
        let guard = ats_sync::pin();
        let values = keys.iter().filter_map(|key| {
            let record = self.0.get(&bytes_of::<LENGTH>(u64::from(*key)), &guard)?;
            Some(record.value()[0])
        });
        values.fold(0, u64::wrapping_add)
    }

    fn sum_above(&self, key: u64, count: usize) -> Option<(u64, usize)> {
        if !S::ORDERED {
            return None;
        }
        let guard = ats_sync::pin();
        let (mut sum, mut seen) = (0_u64, 0);
        let walk = self.0.scan(
            Some(&bytes_of::<LENGTH>(key)),
            When::NOW,
            &guard,
            &mut |record| {
                sum = sum.wrapping_add(record.value()[0]);
                seen += 1;
                if seen < count {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            },
        );
        walk.expect("an ordered store walks from any key");
        Some((sum, seen))
    }
}

/// The typed hash map of ats, with numbers as keys.
#[derive(Default)]
pub struct Typed(ats::HashMap<u64, u64>);

impl Map for Typed {
    const NAME: &'static str = "ats";

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        self.0.get(key)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.put(key, value);
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.0.remove(key).is_some()
    }

    /// The map has no guard for several lookups.
    fn lookups(&self, keys: &[u32]) -> u64 {
        let values = keys.iter().filter_map(|key| self.lookup(u64::from(*key)));
        values.fold(0, u64::wrapping_add)
    }
}

impl<K: Key> Map for TreeIndex<K, u64> {
    const NAME: &'static str = "TreeIndex";

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        K::lend(key, |key| self.peek(key, &Guard::new()).copied())
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.upsert_sync(K::new(key), value);
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        K::lend(key, |key| self.remove_sync(key))
    }

    fn lookups(&self, keys: &[u32]) -> u64 {
        let guard = Guard::new();
        let values = keys
            .iter()
            .filter_map(|key| K::lend(u64::from(*key), |key| self.peek(key, &guard).copied()));
        values.fold(0, u64::wrapping_add)
    }

    fn sum_above(&self, key: u64, count: usize) -> Option<(u64, usize)> {
        let guard = Guard::new();
        let range = self.range::<K, _>((Excluded(K::new(key)), Unbounded), &guard);
        Some(sum(range.map(|(_, value)| *value).take(count)))
    }
}

impl<K: Key> Map for SkipMap<K, u64> {
    const NAME: &'static str = "SkipMap";

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        K::lend(key, |key| self.get(key).map(|entry| *entry.value()))
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        SkipMap::insert(self, K::new(key), value);
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        K::lend(key, |key| SkipMap::remove(self, key).is_some())
    }

    fn lookups(&self, keys: &[u32]) -> u64 {
        // The map pins for itself; inside of this guard that only counts.
        let _guard = crossbeam_epoch::pin();
        let values = keys.iter().filter_map(|key| self.lookup(u64::from(*key)));
        values.fold(0, u64::wrapping_add)
    }

    fn sum_above(&self, key: u64, count: usize) -> Option<(u64, usize)> {
        let _guard = crossbeam_epoch::pin();
        let range = self.range::<K, _>((Excluded(K::new(key)), Unbounded));
        Some(sum(range.map(|entry| *entry.value()).take(count)))
    }
}

/// A lock for readers and writers around a `BTreeMap`.
pub trait MapLock: Default + Send + Sync + 'static {
    /// The keys of the map.
    type Key: Key;

    /// The name in the table of results.
    const NAME: &'static str;

    /// Locks for reading.
    fn read_map(&self) -> impl Deref<Target = BTreeMap<Self::Key, u64>>;

    /// Locks for writing.
    fn write_map(&self) -> impl DerefMut<Target = BTreeMap<Self::Key, u64>>;
}

impl<K: Key> MapLock for parking_lot::RwLock<BTreeMap<K, u64>> {
    type Key = K;

    const NAME: &'static str = "RwLock (p_l)";

    #[inline]
    fn read_map(&self) -> impl Deref<Target = BTreeMap<K, u64>> {
        self.read()
    }

    #[inline]
    fn write_map(&self) -> impl DerefMut<Target = BTreeMap<K, u64>> {
        self.write()
    }
}

impl<K: Key> MapLock for std::sync::RwLock<BTreeMap<K, u64>> {
    type Key = K;

    const NAME: &'static str = "RwLock (std)";

    #[inline]
    fn read_map(&self) -> impl Deref<Target = BTreeMap<K, u64>> {
        self.read().expect("nobody panics with the lock")
    }

    #[inline]
    fn write_map(&self) -> impl DerefMut<Target = BTreeMap<K, u64>> {
        self.write().expect("nobody panics with the lock")
    }
}

/// A `BTreeMap` behind a lock.
#[derive(Default)]
pub struct Locked<L>(pub L);

/// ... of the crate `parking_lot`.
pub type LockedByParkingLot<K> = Locked<parking_lot::RwLock<BTreeMap<K, u64>>>;

/// ... of the standard library.
pub type LockedByStd<K> = Locked<std::sync::RwLock<BTreeMap<K, u64>>>;

impl<L: MapLock> Map for Locked<L> {
    const NAME: &'static str = L::NAME;

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        let map = self.0.read_map();
        L::Key::lend(key, |key| map.get(key).copied())
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        self.0.write_map().insert(L::Key::new(key), value);
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        L::Key::lend(key, |key| self.0.write_map().remove(key).is_some())
    }

    fn lookups(&self, keys: &[u32]) -> u64 {
        let map = self.0.read_map();
        let values = keys
            .iter()
            .filter_map(|key| L::Key::lend(u64::from(*key), |key| map.get(key).copied()));
        values.fold(0, u64::wrapping_add)
    }

    fn sum_above(&self, key: u64, count: usize) -> Option<(u64, usize)> {
        Some(sum_of_btree(&self.0.read_map(), key, count))
    }
}

/// [`Map::sum_above`] of a `BTreeMap` alone.
pub fn sum_of_btree<K: Key>(map: &BTreeMap<K, u64>, key: u64, count: usize) -> (u64, usize) {
    let range = map.range::<K, _>((Excluded(K::new(key)), Unbounded));
    sum(range.map(|(_, value)| *value).take(count))
}

#[inline(always)]
fn sum(values: impl Iterator<Item = u64>) -> (u64, usize) {
    values.fold((0, 0), |(sum, seen), value| {
        (sum.wrapping_add(value), seen + 1)
    })
}
