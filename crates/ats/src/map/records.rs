//! The records of a map in memory: operations of both kinds of maps on single keys, and on batches.
//!
//! No function of a caller runs under a lock, or while the thread is pinned, except the decoding of
//! keys and values. So it cannot block the map. A change that depends on the current value reads
//! it, lets the caller decide, and is made if the value is still the same.

use super::key::{self, AsKey, Key, KeyBytes};
use super::making::{self, Part};
use super::store::MapStore;
use super::store_of_map::StoreOfMap;
use super::value::{self, AsValue, Value};
use super::words::{Words, pack, unpack};
use crate::terms::note::Dating;
use ats_mem::{Busy, Change, End, ReadPoint, Record, When};
use ats_sync::pin;
use std::any::type_name;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// The records of a map in a store.
pub(super) struct Records<S: MapStore, K, V> {
    store: StoreOfMap<S>,
    types: PhantomData<fn() -> (K, V)>,
}

/// Repeats a call while a batch of another thread holds the key.
pub(super) fn retry<T>(mut call: impl FnMut() -> Result<T, Busy>) -> T {
    loop {
        match call() {
            Ok(done) => return done,
            Err(Busy) => std::thread::yield_now(),
        }
    }
}

/// Returns the key with these bytes, which were checked when the map got them.
pub(super) fn decode_key<K: Key>(bytes: &[u8]) -> K {
    key::from_bytes(bytes).unwrap_or_else(|| unreadable::<K>(bytes))
}

/// Returns the value with these bytes, which were checked when the map got them.
pub(super) fn decode_value<V: Value>(bytes: &[u8]) -> V {
    V::decode(bytes).unwrap_or_else(|| unreadable::<V>(bytes))
}

#[cold]
fn unreadable<T>(bytes: &[u8]) -> ! {
    let (bytes, name) = (key::shown(bytes), type_name::<T>());
    panic!("the type `{name}` has read {bytes} before, and does not read it now")
}

#[cold]
fn refuse(why: String) -> ! {
    panic!("the map does not take this: {why}")
}

/// Returns the words of a value to store.
#[inline]
pub(super) fn words_of<V: Value>(value: &impl AsValue<V>) -> Words {
    let bytes = value::bytes_of(value).unwrap_or_else(|why| refuse(why));
    pack(bytes.as_slice(), V::LEN)
}

fn kept_bytes_of<K: Key>(key: &impl AsKey<K>) -> KeyBytes {
    key::kept_bytes_of(key).unwrap_or_else(|why| refuse(why))
}

/// Calls a function with the bytes of a key to store.
#[inline]
pub(super) fn with_kept_key<K: Key, T>(key: &impl AsKey<K>, then: impl FnOnce(&[u8]) -> T) -> T {
    key::with_kept_bytes(key, then).unwrap_or_else(|why| refuse(why))
}

/// Calls a function with the bytes of a key and the words of a value to store.
#[inline]
pub(super) fn with_kept_pair<K: Key, V: Value, T>(
    key: &impl AsKey<K>,
    value: &impl AsValue<V>,
    then: impl FnOnce(&[u8], &[u64]) -> T,
) -> T {
    with_kept_key(key, |key| match value.as_word() {
        Some(word) => then(key, &[word]),
        None => then(key, &words_of(value)),
    })
}

/// Returns the bytes of the value of a record.
pub(super) fn value_bytes<S: MapStore, V: Value>(record: &Record<S::Of>) -> &[u8] {
    unpack(S::words(record), V::LEN)
}

fn value_of<S: MapStore, V: Value>(record: &Record<S::Of>) -> V {
    decode_value(value_bytes::<S, V>(record))
}

impl<S: MapStore, K: Key, V: Value> Records<S, K, V> {
    /// Returns the records of this store, which is empty.
    pub(super) fn new(store: S) -> Self {
        Records {
            store: StoreOfMap::new(store),
            types: PhantomData,
        }
    }

    /// Returns a reference to the same records, which stays with them when the map is cleared.
    pub(super) fn share(&self) -> Self {
        Records {
            store: self.store.share(),
            types: PhantomData,
        }
    }

    pub(super) fn store(&self) -> &StoreOfMap<S> {
        &self.store
    }

    pub(super) fn get_at(&self, key: &impl AsKey<K>, when: When) -> Option<V> {
        key::with_bytes(key, |key| {
            let guard = pin();
            let store = self.store.get(&guard);
            let record = if when.is_now() {
                store.get(key, &guard)
            } else {
                store.get_at(key, when, &guard)
            };
            record.map(value_of::<S, V>)
        })
    }

    pub(super) fn contains(&self, key: &impl AsKey<K>) -> bool {
        key::with_bytes(key, |key| {
            let guard = pin();
            self.store.get(&guard).has_key(key, &guard)
        })
    }

    pub(super) fn put(&self, key: &impl AsKey<K>, value: &impl AsValue<V>) -> bool {
        with_kept_pair(key, value, |key, value| {
            retry(|| {
                let record = S::record(key, value, Dating::OfTable);
                let guard = pin();
                self.store.get(&guard).put(key, record, &guard)
            })
        })
    }

    pub(super) fn insert(
        &self,
        key: &impl AsKey<K>,
        value: &impl AsValue<V>,
        dating: Dating,
    ) -> Option<V> {
        with_kept_pair(key, value, |key, value| {
            retry(|| {
                let mut record = Some(S::record(key, value, dating));
                let (guard, mut old) = (pin(), None);
                let store = self.store.get(&guard);
                store.update(key, &guard, &mut |current| {
                    old = current;
                    record.take().map_or(Change::Keep, Change::Put)
                })?;
                Ok(old.map(value_of::<S, V>))
            })
        })
    }

    pub(super) fn remove(&self, key: &impl AsKey<K>) -> Option<V> {
        key::with_bytes(key, |key| {
            retry(|| {
                let (guard, mut old) = (pin(), None);
                let store = self.store.get(&guard);
                store.update(key, &guard, &mut |current| {
                    old = current;
                    current.map_or(Change::Keep, |_| Change::Remove)
                })?;
                Ok(old.map(value_of::<S, V>))
            })
        })
    }

    pub(super) fn remove_end(&self, end: End) -> Option<(K, V)> {
        retry(|| {
            let (guard, mut old) = (pin(), None);
            let store = self.store.get(&guard);
            store.update_end(end, &guard, &mut |current| {
                old = current;
                current.map_or(Change::Keep, |_| Change::Remove)
            })?;
            Ok(old.map(|record| (decode_key(record.key()), value_of::<S, V>(record))))
        })
    }

    /// Returns the words of the value of a key.
    pub(super) fn words_at(&self, key: &[u8]) -> Option<Words> {
        let guard = pin();
        let record = self.store.get(&guard).get(key, &guard)?;
        Some(Words::from_slice(S::words(record)))
    }

    /// Changes a key if its value has these words. Returns `true` if it had.
    fn exchange(
        &self,
        key: &[u8],
        old: Option<&[u64]>,
        new: Option<&[u64]>,
        dating: Dating,
    ) -> bool {
        retry(|| {
            let mut record = new.map(|words| S::record(key, words, dating));
            let (guard, mut is_same) = (pin(), false);
            let store = self.store.get(&guard);
            store.update(key, &guard, &mut |current| {
                is_same = current.map(S::words) == old;
                match (is_same, record.take()) {
                    (true, Some(record)) => Change::Put(record),
                    (true, None) if current.is_some() => Change::Remove,
                    _ => Change::Keep,
                }
            })?;
            Ok(is_same)
        })
    }

    /// Inserts a key with a value if the key is absent. Returns `true` if it was.
    pub(super) fn insert_new(&self, key: &impl AsKey<K>, value: &impl AsValue<V>) -> bool {
        with_kept_pair(key, value, |key, value| {
            self.exchange(key, None, Some(value), Dating::OfTable)
        })
    }

    pub(super) fn compute(
        &self,
        key: &impl AsKey<K>,
        mut change: impl FnMut(Option<V>) -> Option<V>,
    ) -> Option<V> {
        with_kept_key(key, |key| {
            loop {
                let old = self.words_at(key);
                let new = change(old.as_ref().map(|old| decode_value(unpack(old, V::LEN))));
                let words = new.as_ref().map(words_of::<V>);
                // An unchanged value was the result at the moment of the read.
                if words == old
                    || self.exchange(key, old.as_deref(), words.as_deref(), Dating::Kept)
                {
                    return new;
                }
            }
        })
    }

    /// Returns the value of a key, which `make` makes if there is none.
    #[inline]
    pub(super) fn try_get_or_insert_with<E>(
        &self,
        key: &impl AsKey<K>,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        match self.get_at(key, When::NOW) {
            Some(value) => Ok(value),
            None => with_kept_key(key, |key| self.make(key, make)),
        }
    }

    fn make<E>(&self, key: &[u8], make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let decode = |words: &[u64]| decode_value(unpack(words, V::LEN));
        let making = loop {
            match making::enter(&raw const self.store as usize, key) {
                Part::Maker(making) => break making,
                Part::Waiter(waiter) => {
                    if let Some(words) = waiter.wait(key) {
                        return Ok(decode(&words));
                    }
                }
            }
        };
        // Another thread may have made it before this one has entered.
        if let Some(old) = self.words_at(key) {
            return Ok(decode(&old));
        }
        let value = make()?;
        let words = words_of(&value);
        making.begin_insert();
        loop {
            if self.exchange(key, None, Some(&words), Dating::OfTable) {
                making.end(&words);
                return Ok(value);
            }
            // Another function has inserted a value meanwhile.
            if let Some(old) = self.words_at(key) {
                making.end(&old);
                return Ok(decode(&old));
            }
        }
    }

    /// Removes a key if its value has these bytes. Returns `true` if it did.
    pub(super) fn remove_if_same(&self, key: &[u8], value: &[u8]) -> bool {
        self.exchange(key, Some(&pack(value, V::LEN)), None, Dating::Kept)
    }

    /// Removes a key. Returns `true` if it was present.
    pub(super) fn remove_bytes(&self, key: &[u8]) -> bool {
        retry(|| {
            let guard = pin();
            self.store.get(&guard).remove(key, &guard)
        })
    }

    /// Inserts pairs atomically. If one of the keys is present, inserts them only if `replace`.
    pub(super) fn insert_many<Q: AsKey<K>, W: AsValue<V>>(
        &self,
        pairs: impl IntoIterator<Item = (Q, W)>,
        replace: bool,
    ) -> bool {
        let pairs = pairs.into_iter();
        let mut pairs: Vec<_> = pairs
            .map(|(key, value)| (kept_bytes_of(&key), words_of(&value)))
            .collect();
        // The last pair of a key must stay, and the stable sort keeps the order of equal keys.
        pairs.reverse();
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        pairs.dedup_by(|(later, _), (first, _)| later == first);
        let keys: Vec<&[u8]> = pairs.iter().map(|(key, _)| key.as_slice()).collect();
        if keys.is_empty() {
            return true;
        }
        let mut decide = |index: usize, current: Option<&Record<S::Of>>| {
            let (key, value) = &pairs[index];
            if current.is_none() || replace {
                Change::Put(S::record(key.as_slice(), value, Dating::OfTable))
            } else {
                Change::Abort
            }
        };
        retry(|| {
            let kept = self.store.keep();
            kept.store().update_long_batch(&keys, &mut decide)
        })
    }

    pub(super) fn len(&self) -> usize {
        retry(|| self.store.get(&pin()).count())
    }

    /// Begins a moment, at which the records can be read until it is ended. The store must not be
    /// exchanged meanwhile.
    pub(super) fn begin(&self) -> ReadPoint {
        begin(self.store.keep().store())
    }

    pub(super) fn end(&self, read_point: ReadPoint) {
        self.store.keep().store().end(read_point);
        self.store.reclaim();
    }
}

/// Begins a moment of a store.
pub(super) fn begin(store: &impl MapStore) -> ReadPoint {
    retry(|| store.begin())
}

/// Breaks if the condition is `true`.
pub(super) fn break_if(is_so: bool) -> ControlFlow<()> {
    if is_so {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}
