//! The views on which the functions of transactions run.

use crate::map::key::{self, AsKey, Key};
use crate::map::records::{decode_value, with_kept_key, with_kept_pair, words_of};
use crate::map::value::{AsValue, Value};
use crate::map::words::unpack;
use crate::terms::note::Dating;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The words of a value.
type BoxedWords = Box<[u64]>;

/// The words of the value that a key had in the map, if it had one.
pub(super) struct Seen(pub(super) Option<BoxedWords>);

/// The change of a key.
pub(super) enum New {
    Value(BoxedWords, Dating),
    Removal,
}

/// A key of a view.
#[derive(Default)]
pub(super) struct Part {
    /// The value that was read in the map, if the key was read there.
    pub(super) seen: Option<Seen>,
    pub(super) new: Option<New>,
}

impl Part {
    /// Returns the words of the value of the key, as the view sees it.
    fn words(&self) -> Option<&[u64]> {
        match &self.new {
            Some(New::Value(words, _)) => Some(words),
            Some(New::Removal) => None,
            None => self.seen.as_ref()?.0.as_deref(),
        }
    }
}

/// The keys of a view.
pub(super) type Parts = BTreeMap<Box<[u8]>, Part>;

/// The view of a map on which the function of a transaction runs: see
/// [`HashMap::transact`](crate::HashMap::transact).
///
/// The view reads a key in the map the first time that it is asked for it, and notes the value. Its
/// changes are visible to itself only, until the transaction commits. Each function takes O(log m),
/// for m keys of the view, besides the time of reading a key in the map.
pub struct MapView<'m, K, V> {
    read: &'m dyn Fn(&[u8]) -> Option<BoxedWords>,
    parts: Parts,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'m, K: Key, V: Value> MapView<'m, K, V> {
    pub(super) fn new(read: &'m dyn Fn(&[u8]) -> Option<BoxedWords>) -> Self {
        MapView {
            read,
            parts: Parts::new(),
            types: PhantomData,
        }
    }

    pub(super) fn into_parts(self) -> Parts {
        self.parts
    }

    /// Returns a key of the view, with a value that was read or is new.
    fn part(&mut self, key: &[u8]) -> &mut Part {
        let read = self.read;
        let part = part_of(&mut self.parts, key);
        if part.new.is_none() {
            part.seen.get_or_insert_with(|| Seen(read(key)));
        }
        part
    }

    /// Returns the value of a key.
    pub fn get(&mut self, key: impl AsKey<K>) -> Option<V> {
        key::with_bytes(&key, |key| self.part(key).words().map(decode::<V>))
    }

    /// Returns `true` if there is a key. Counts as a read of its value.
    pub fn contains_key(&mut self, key: impl AsKey<K>) -> bool {
        key::with_bytes(&key, |key| self.part(key).words().is_some())
    }

    /// Sets the value of a key, and returns the old value.
    pub fn insert(&mut self, key: impl AsKey<K>, value: impl AsValue<V>) -> Option<V> {
        with_kept_pair(&key, &value, |key, words| {
            let part = self.part(key);
            let old = part.words().map(decode::<V>);
            part.new = Some(New::Value(words.into(), Dating::OfTable));
            old
        })
    }

    /// Sets the value of a key, without reading the old value: other threads that change the key
    /// are no reason for another attempt.
    pub fn put(&mut self, key: impl AsKey<K>, value: impl AsValue<V>) {
        with_kept_pair(&key, &value, |key, words| {
            let new = New::Value(words.into(), Dating::OfTable);
            part_of(&mut self.parts, key).new = Some(new);
        });
    }

    /// Removes a key, and returns its value.
    pub fn remove(&mut self, key: impl AsKey<K>) -> Option<V> {
        key::with_bytes(&key, |key| {
            let part = self.part(key);
            let old = part.words().map(decode::<V>);
            part.new = Some(New::Removal);
            old
        })
    }

    /// Changes the value of a key, if it has one, to the result of a function, and returns that
    /// result. The pair keeps its deadline, if it has one.
    pub fn update(&mut self, key: impl AsKey<K>, change: impl FnOnce(V) -> V) -> Option<V> {
        with_kept_key(&key, |key| {
            let part = self.part(key);
            let new = change(decode(part.words()?));
            let dating = match part.new {
                Some(New::Value(_, dating)) => dating,
                _ => Dating::Kept,
            };
            let words = words_of::<V>(&new).as_slice().into();
            part.new = Some(New::Value(words, dating));
            Some(new)
        })
    }
}

fn part_of<'p>(parts: &'p mut Parts, key: &[u8]) -> &'p mut Part {
    if !parts.contains_key(key) {
        parts.insert(key.into(), Part::default());
    }
    parts.get_mut(key).expect("the key is there")
}

fn decode<V: Value>(words: &[u64]) -> V {
    decode_value(unpack(words, V::LEN))
}

impl<K, V> fmt::Debug for MapView<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapView")
            .field("keys", &self.parts.len())
            .finish_non_exhaustive()
    }
}
