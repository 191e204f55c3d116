//! The map in the order of its keys.

mod walk;

use super::bounds::{ByteBounds, KeyBounds, KeyPrefix, of_prefix};
use super::builder::MapBuilder;
use super::key::{AsKey, Key};
use super::kind::{Limited, MapKind, Stores, Unlimited};
use super::limited::{LimitedStore, dating_for};
use super::records::{Records, decode_key, decode_value, value_bytes};
use super::store::{MapStore, OrderedStore};
use super::store_of_map::StoreOfMap;
use super::transaction::{MapView, TransactError};
use super::value::{AsValue, Value};
use crate::terms::TimeLeft;
use crate::terms::note::Dating;
use ats_mem::{CaTree, Direction, End, ReadPoint, Record, When};
use std::convert::Infallible;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::time::Duration;
use walk::{Passed, Walk, pass};

/// A concurrent map in the order of its keys.
///
/// All functions take `&self`. Readers take no lock and wait for no other thread. Keys and values
/// are stored as bytes, see [`Key`] and [`Value`]; so returned values are copies, and no function
/// returns a guard. The [crate] describes the consistency and the cost of all functions.
///
/// ```
/// use ats::OrderedMap;
/// use std::thread;
///
/// let prices: OrderedMap<String, u32> = OrderedMap::new();
/// thread::scope(|scope| {
///     scope.spawn(|| prices.insert("pear", 40));
///     scope.spawn(|| prices.insert("apple", 30));
/// });
/// assert_eq!(prices.get("pear"), Some(40));
/// assert_eq!(prices.first(), Some((String::from("apple"), 30)));
/// let dear: Vec<_> = prices.range("b"..).map(|(name, _)| name).collect();
/// assert_eq!(dear, ["pear"]);
/// ```
///
/// There is no `entry`: the crate has a list of functions [instead of
/// it](crate#instead-of-entry).
///
/// `L` is [`Limited`] if pairs of the map expire, or the map has a bound: see
/// [`builder`](OrderedMap::builder).
pub struct OrderedMap<K, V, L: MapKind = Unlimited> {
    records: RecordsOfMap<K, V, L>,
}

type RecordsOfMap<K, V, L> = Records<<L as Stores>::Tree, K, V>;

impl<K: Key, V: Value> OrderedMap<K, V> {
    unlimited_functions!("OrderedMap", CaTree::new(), OrderedMap<K, V, Limited>);
}

impl<K: Key, V: Value> OrderedMap<K, V, Limited> {
    limited_functions!("OrderedMap");
}

impl<K: Key, V: Value> MapBuilder<OrderedMap<K, V, Limited>> {
    /// Builds the map, which is empty.
    #[must_use]
    pub fn build(self) -> OrderedMap<K, V, Limited> {
        OrderedMap {
            records: Records::new(LimitedStore::new(self.limits)),
        }
    }
}

impl<K: Key, V: Value, L: MapKind> OrderedMap<K, V, L> {
    shared_functions!("OrderedMap");

    /// Iterates over all pairs in key order: see [`range`](OrderedMap::range).
    pub fn iter(&self) -> Iter<'_, K, V, L> {
        self.range(..)
    }

    /// Iterates over the pairs of the keys in a range, from either end.
    ///
    /// The iterator reads a piece of at most 256 pairs at a time. It sees each key as of a moment
    /// after it was made and before the pair is returned: a key that is present throughout is
    /// returned exactly once, a key that is absent throughout is not returned. A
    /// [`snapshot`](Self::snapshot) shows all keys as of one moment. The iterator keeps no lock,
    /// and does not keep removed pairs in memory, so it can live for any time.
    ///
    /// ```
    /// # use ats::OrderedMap;
    /// let squares: OrderedMap<i32, i32> = (-9..10).map(|n| (n, n * n)).collect();
    /// let mut some = squares.range(-2..=3);
    /// assert_eq!(some.next(), Some((-2, 4)));
    /// assert_eq!(some.next_back(), Some((3, 9)));
    /// assert_eq!(some.count(), 4);
    /// assert_eq!(squares.range(..0).next_back(), Some((-1, 1)));
    /// ```
    pub fn range(&self, keys: impl KeyBounds<K>) -> Iter<'_, K, V, L> {
        Iter::new(&self.records, &keys.to_bytes(), When::NOW)
    }

    /// Iterates over the pairs of the keys with a [prefix](KeyPrefix): see
    /// [`range`](OrderedMap::range).
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> Iter<'_, K, V, L> {
        Iter::new(&self.records, &of_prefix(&prefix), When::NOW)
    }

    /// Returns the first pair.
    ///
    /// ```
    /// # use ats::OrderedMap;
    /// let map = OrderedMap::from([(1, true), (2, false)]);
    /// assert_eq!(map.first(), Some((1, true)));
    /// assert_eq!(map.last(), Some((2, false)));
    /// ```
    pub fn first(&self) -> Option<(K, V)> {
        let guard = ats_sync::pin();
        self.records
            .store()
            .get(&guard)
            .at_end(Direction::Up, &guard)
            .map(pair::<L::Tree, K, V>)
    }

    /// Returns the last pair.
    pub fn last(&self) -> Option<(K, V)> {
        let guard = ats_sync::pin();
        self.records
            .store()
            .get(&guard)
            .at_end(Direction::Down, &guard)
            .map(pair::<L::Tree, K, V>)
    }

    /// Removes the first key, and returns its pair. Concurrent calls return different pairs, so a
    /// map can serve as a priority queue.
    ///
    /// ```
    /// # use ats::OrderedMap;
    /// let jobs: OrderedMap<(u8, String), u32> = OrderedMap::new();
    /// jobs.insert((2, "later"), 7);
    /// jobs.insert((1, "soon"), 8);
    /// assert_eq!(jobs.pop_first(), Some(((1, "soon".into()), 8)));
    /// assert_eq!(jobs.len(), 1);
    /// ```
    pub fn pop_first(&self) -> Option<(K, V)> {
        self.records.remove_end(End::First)
    }

    /// Removes the last key, and returns its pair.
    pub fn pop_last(&self) -> Option<(K, V)> {
        self.records.remove_end(End::Last)
    }

    /// Removes the keys in a range, each at its own moment, and returns their number. A key that
    /// another thread inserts meanwhile may stay. O(log n) for each.
    ///
    /// ```
    /// # use ats::OrderedMap;
    /// let map: OrderedMap<u64, u64> = (0..100).map(|n| (n, n)).collect();
    /// assert_eq!(map.remove_range(..90), 90);
    /// assert_eq!(map.len(), 10);
    /// ```
    pub fn remove_range(&self, keys: impl KeyBounds<K>) -> usize {
        let (mut keys, mut removed) = (self.range(keys), 0);
        while let Some((key, _)) = keys.next_bytes() {
            removed += usize::from(self.records.remove_bytes(key));
        }
        removed
    }

    /// Returns the number of keys in a range, at one moment. O(log n) for each part with its own
    /// lock, once the keys were counted; O(keys in the range) while batches are written all the
    /// time.
    ///
    /// ```
    /// # use ats::OrderedMap;
    /// let map: OrderedMap<u64, u64> = (0..100).map(|n| (n * 2, n)).collect();
    /// assert_eq!(map.count(10..20), 5);
    /// assert_eq!(map.rank(11), 6);
    /// assert_eq!(map.nth(6), Some((12, 6)));
    /// assert_eq!(map.nth(100), None);
    /// ```
    pub fn count(&self, keys: impl KeyBounds<K>) -> usize {
        count(&self.records, &keys.to_bytes(), When::NOW)
    }

    /// Returns the number of keys below a key: see [`count`](OrderedMap::count).
    pub fn rank(&self, key: impl AsKey<K>) -> usize {
        count(&self.records, &below::<K>(&key), When::NOW)
    }

    /// Returns the pair of the key with `rank` keys below it: see [`count`](OrderedMap::count).
    pub fn nth(&self, rank: usize) -> Option<(K, V)> {
        self.nth_in(.., rank)
    }

    /// Returns the pair of the key in a range with `rank` keys of the range below it.
    pub fn nth_in(&self, keys: impl KeyBounds<K>, rank: usize) -> Option<(K, V)> {
        nth(&self.records, &keys.to_bytes(), When::NOW, rank)
    }
}

fn count<S: OrderedStore, K: Key, V: Value>(
    records: &Records<S, K, V>,
    bounds: &ByteBounds,
    when: When,
) -> usize {
    match pass(records.store(), bounds, when, usize::MAX, |_| ()) {
        Passed::All(count) => count,
        Passed::At(()) => usize::MAX,
    }
}

fn nth<S: OrderedStore, K: Key, V: Value>(
    records: &Records<S, K, V>,
    bounds: &ByteBounds,
    when: When,
    rank: usize,
) -> Option<(K, V)> {
    let copy = |record: &Record<S::Of>| {
        let value = value_bytes::<S, V>(record);
        (record.key().to_vec(), value.to_vec())
    };
    match pass(records.store(), bounds, when, rank, copy) {
        Passed::At((key, value)) => Some((decode_key(&key), decode_value(&value))),
        Passed::All(_) => None,
    }
}

/// Returns the range of the keys below a key.
fn below<K>(key: &impl AsKey<K>) -> ByteBounds {
    KeyBounds::<K>::to_bytes(&(..key))
}

fn pair<S: MapStore, K: Key, V: Value>(record: &Record<S::Of>) -> (K, V) {
    (
        decode_key(record.key()),
        decode_value(value_bytes::<S, V>(record)),
    )
}

shared_traits!(OrderedMap);

impl<K: Key, V: Value, L: MapKind> Snapshot<'_, K, V, L> {
    /// Iterates over all pairs at the moment, in key order.
    pub fn iter(&self) -> Iter<'_, K, V, L> {
        self.range(..)
    }

    /// Iterates over the pairs of the keys in a range at the moment, from either end.
    ///
    /// ```
    /// # use ats::OrderedMap;
    /// let map: OrderedMap<u64, u64> = (0..100).map(|n| (n, n)).collect();
    /// let before = map.snapshot();
    /// map.remove_range(..);
    /// assert_eq!(before.range(10..20).rev().next(), Some((19, 19)));
    /// assert_eq!(before.range(10..20).count(), 10);
    /// ```
    pub fn range(&self, keys: impl KeyBounds<K>) -> Iter<'_, K, V, L> {
        Iter::new(&self.records, &keys.to_bytes(), self.when)
    }

    /// Iterates over the pairs of the keys with a [prefix](KeyPrefix) at the moment.
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> Iter<'_, K, V, L> {
        Iter::new(&self.records, &of_prefix(&prefix), self.when)
    }

    /// Returns the first pair at the moment.
    pub fn first(&self) -> Option<(K, V)> {
        self.iter().next()
    }

    /// Returns the last pair at the moment.
    pub fn last(&self) -> Option<(K, V)> {
        self.iter().next_back()
    }

    /// Returns the number of keys in a range at the moment. O(n) for n such keys, since the counts
    /// in the map are current.
    ///
    /// ```
    /// # use ats::OrderedMap;
    /// let map: OrderedMap<u64, u64> = (0..100).map(|n| (n * 2, n)).collect();
    /// let before = map.snapshot();
    /// map.remove_range(..50);
    /// assert_eq!(before.count(10..20), 5);
    /// assert_eq!(before.rank(11), 6);
    /// assert_eq!(before.nth(6), Some((12, 6)));
    /// assert_eq!(before.nth(100), None);
    /// ```
    pub fn count(&self, keys: impl KeyBounds<K>) -> usize {
        count(&self.records, &keys.to_bytes(), self.when)
    }

    /// Returns the number of keys below a key at the moment: see [`count`](Snapshot::count).
    pub fn rank(&self, key: impl AsKey<K>) -> usize {
        count(&self.records, &below::<K>(&key), self.when)
    }

    /// Returns the pair of the key with `rank` keys below it at the moment: see
    /// [`count`](Snapshot::count).
    pub fn nth(&self, rank: usize) -> Option<(K, V)> {
        self.nth_in(.., rank)
    }

    /// Returns the pair of the key in a range with `rank` keys of the range below it at the moment.
    pub fn nth_in(&self, keys: impl KeyBounds<K>, rank: usize) -> Option<(K, V)> {
        nth(&self.records, &keys.to_bytes(), self.when, rank)
    }
}

/// An iterator over the pairs of a range of keys, from either end: see [`OrderedMap::range`].
#[must_use = "an iterator does nothing unless it is asked for its items"]
pub struct Iter<'m, K, V, L: MapKind = Unlimited> {
    store: &'m StoreOfMap<L::Tree>,
    when: When,
    walk: Walk,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'m, K: Key, V: Value, L: MapKind> Iter<'m, K, V, L> {
    fn new(records: &'m RecordsOfMap<K, V, L>, bounds: &ByteBounds, when: When) -> Self {
        Iter {
            store: records.store(),
            when,
            walk: Walk::new(bounds, V::LEN),
            types: PhantomData,
        }
    }

    fn next_bytes(&mut self) -> Option<(&[u8], &[u8])> {
        self.walk.next(self.store, self.when)
    }
}

impl<K: Key, V: Value, L: MapKind> Iterator for Iter<'_, K, V, L> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let (key, value) = self.next_bytes()?;
        Some((decode_key(key), decode_value(value)))
    }
}

impl<K: Key, V: Value, L: MapKind> DoubleEndedIterator for Iter<'_, K, V, L> {
    fn next_back(&mut self) -> Option<(K, V)> {
        let (key, value) = self.walk.next_back(self.store, self.when)?;
        Some((decode_key(key), decode_value(value)))
    }
}

impl<K: Key, V: Value, L: MapKind> FusedIterator for Iter<'_, K, V, L> {}

impl<K, V, L: MapKind> fmt::Debug for Iter<'_, K, V, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
