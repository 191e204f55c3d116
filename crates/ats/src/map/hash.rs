//! The map without order.

mod walk;

use super::builder::MapBuilder;
use super::key::{AsKey, Key};
use super::kind::{Limited, MapKind, Stores, Unlimited};
use super::limited::{LimitedStore, dating_for};
use super::records::{Records, decode_key, decode_value};
use super::store::MapStore;
use super::store_of_map::StoreOfMap;
use super::transaction::{MapView, TransactError};
use super::value::{AsValue, Value};
use crate::terms::TimeLeft;
use crate::terms::note::Dating;
use ats_mem::{End, HashTable, ReadPoint, When};
use std::convert::Infallible;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::time::Duration;
use walk::Walk;

/// A concurrent map without order.
///
/// The map is faster than an [`OrderedMap`](crate::OrderedMap), and otherwise works like it: all
/// functions take `&self`, readers take no lock and wait for no other thread, returned values are
/// copies.
///
/// ```
/// use ats::HashMap;
/// use std::thread;
///
/// let words: HashMap<String, u64> = HashMap::new();
/// thread::scope(|scope| {
///     for text in ["the cat and the hat", "the hat"] {
///         let words = &words;
///         scope.spawn(move || {
///             for word in text.split(' ') {
///                 words.merge(word, 1, |count, more| count + more);
///             }
///         });
///     }
/// });
/// assert_eq!(words.get("the"), Some(3));
/// assert_eq!(words.len(), 4);
/// ```
///
/// There is no `entry`: the crate has a list of functions [instead of
/// it](crate#instead-of-entry).
///
/// `L` is [`Limited`] if pairs of the map expire, or the map has a bound: see
/// [`builder`](HashMap::builder).
pub struct HashMap<K, V, L: MapKind = Unlimited> {
    records: RecordsOfMap<K, V, L>,
}

type RecordsOfMap<K, V, L> = Records<<L as Stores>::Hash, K, V>;

impl<K: Key, V: Value> HashMap<K, V> {
    unlimited_functions!("HashMap", HashTable::new(), HashMap<K, V, Limited>);
}

impl<K: Key, V: Value> HashMap<K, V, Limited> {
    limited_functions!("HashMap");
}

impl<K: Key, V: Value> MapBuilder<HashMap<K, V, Limited>> {
    /// Builds the map, which is empty.
    #[must_use]
    pub fn build(self) -> HashMap<K, V, Limited> {
        HashMap {
            records: Records::new(LimitedStore::new(self.limits)),
        }
    }
}

impl<K: Key, V: Value, L: MapKind> HashMap<K, V, L> {
    shared_functions!("HashMap");

    /// Iterates over all pairs, in no order.
    ///
    /// The iterator reads a piece of at most 256 pairs at a time. It sees each key as of a moment
    /// after it was made and before the pair is returned: a key that is present throughout is
    /// returned exactly once, a key that is absent throughout is not returned. A
    /// [`snapshot`](Self::snapshot) shows all keys as of one moment. The iterator keeps no lock,
    /// and does not keep removed pairs in memory, so it can live for any time.
    pub fn iter(&self) -> Iter<'_, K, V, L> {
        Iter::new(&self.records, When::NOW)
    }

    /// Removes any key, and returns its pair. Returns `None` only if no key was present throughout
    /// the call. Concurrent calls return different pairs.
    ///
    /// ```
    /// # use ats::HashMap;
    /// let map = HashMap::from([(1, true)]);
    /// assert_eq!(map.pop(), Some((1, true)));
    /// assert_eq!(map.pop(), None);
    /// ```
    pub fn pop(&self) -> Option<(K, V)> {
        self.records.remove_end(End::First)
    }
}

shared_traits!(HashMap);

impl<K: Key, V: Value, L: MapKind> Snapshot<'_, K, V, L> {
    /// Iterates over all pairs at the moment, in no order.
    pub fn iter(&self) -> Iter<'_, K, V, L> {
        Iter::new(&self.records, self.when)
    }
}

/// An iterator over all pairs of a map: see [`HashMap::iter`].
#[must_use = "an iterator does nothing unless it is asked for its items"]
pub struct Iter<'m, K, V, L: MapKind = Unlimited> {
    store: &'m StoreOfMap<L::Hash>,
    when: When,
    walk: Walk,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'m, K: Key, V: Value, L: MapKind> Iter<'m, K, V, L> {
    fn new(records: &'m RecordsOfMap<K, V, L>, when: When) -> Self {
        Iter {
            store: records.store(),
            when,
            walk: Walk::new(V::LEN),
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

impl<K: Key, V: Value, L: MapKind> FusedIterator for Iter<'_, K, V, L> {}

impl<K, V, L: MapKind> fmt::Debug for Iter<'_, K, V, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}
