//! The functions of both kinds of maps in memory.

/// Defines the functions of a map whose field `records` is [`Records`](super::records::Records).
/// `$map` is the name of its type, for examples.
macro_rules! shared_functions {
    ($map:literal) => {
        /// Returns an empty map.
        #[must_use]
        pub fn new() -> Self {
            Self {
                records: Records::new(),
            }
        }

        /// Returns the value of a key.
        #[doc = example!($map, "map.insert(\"pear\", 40);
assert_eq!(map.get(\"pear\"), Some(40));
assert_eq!(map.get(\"fig\"), None);")]
        #[inline]
        pub fn get(&self, key: impl AsKey<K>) -> Option<V> {
            self.records.get_at(&key, When::NOW)
        }

        /// Returns `true` if the map has a key.
        #[inline]
        pub fn contains_key(&self, key: impl AsKey<K>) -> bool {
            self.records.contains(&key)
        }

        /// Sets the value of a key, and returns the old value.
        #[doc = example!($map, "assert_eq!(map.insert(\"pear\", 40), None);
assert_eq!(map.insert(\"pear\", 41), Some(40));")]
        pub fn insert(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Option<V> {
            self.records.insert(&key, &value)
        }

        /// Sets the value of a key, without reading the old value. Returns `true` if the key was
        /// present. Faster than [`insert`](Self::insert).
        pub fn put(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> bool {
            self.records.put(&key, &value)
        }

        /// Sets the value of a key if it has none. Returns `true` if it had none.
        #[doc = example!($map, "assert!(map.insert_new(\"pear\", 40));
assert!(!map.insert_new(\"pear\", 50));
assert_eq!(map.get(\"pear\"), Some(40));")]
        pub fn insert_new(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> bool {
            self.records.insert_new(&key, &value)
        }

        /// Sets the values of several keys at one moment: every reader of a key sees all of the
        /// pairs or none. Of several values of a key the last one counts. O(m log m) for m pairs,
        /// plus the time of inserting each of them.
        #[doc = example!($map, "map.insert_many([(\"apple\", 30), (\"pear\", 40)]);
assert_eq!(map.len(), 2);")]
        pub fn insert_many<Q: AsKey<K>, W: AsValue<V>>(
            &self,
            pairs: impl IntoIterator<Item = (Q, W)>,
        ) {
            self.records.insert_many(pairs, true);
        }

        /// Inserts pairs like [`insert_many`](Self::insert_many) if none of the keys is present.
        /// Returns `true` if it did.
        #[doc = example!($map, "assert!(map.insert_many_new([(\"apple\", 30), (\"pear\", 40)]));
assert!(!map.insert_many_new([(\"fig\", 20), (\"pear\", 50)]));
assert_eq!(map.get(\"fig\"), None);")]
        pub fn insert_many_new<Q: AsKey<K>, W: AsValue<V>>(
            &self,
            pairs: impl IntoIterator<Item = (Q, W)>,
        ) -> bool {
            self.records.insert_many(pairs, false)
        }

        /// Removes a key, and returns its value. Of several threads that remove the same key
        /// exactly one gets the value.
        #[doc = example!($map, "map.insert(\"pear\", 40);
assert_eq!(map.remove(\"pear\"), Some(40));
assert_eq!(map.remove(\"pear\"), None);")]
        pub fn remove(&self, key: impl AsKey<K>) -> Option<V> {
            self.records.remove(&key)
        }

        /// Returns the value of a key. If it has none, inserts the result of `make`. `make` is
        /// called at most once; its result is dropped if another thread was faster.
        #[doc = example!($map, "assert_eq!(map.get_or_insert_with(\"pear\", || 40), 40);
assert_eq!(map.get_or_insert_with(\"pear\", || unreachable!()), 40);")]
        pub fn get_or_insert_with(&self, key: impl AsKey<K>, make: impl FnOnce() -> V) -> V {
            self.records.get_or_insert_with(&key, make)
        }

        /// Replaces the value of a key, or its absence, by the result of a function, atomically.
        /// Returns that result.
        ///
        /// The function is called again if another thread has changed the value meanwhile. No lock
        /// is held while it runs, so it may use this map and any other.
        #[doc = example!($map, "let add = |price: Option<u32>| Some(price.unwrap_or(0) + 1);
assert_eq!(map.compute(\"pear\", add), Some(1));
assert_eq!(map.compute(\"pear\", add), Some(2));
assert_eq!(map.compute(\"pear\", |_| None), None);
assert!(!map.contains_key(\"pear\"));")]
        pub fn compute(
            &self,
            key: impl AsKey<K>,
            change: impl FnMut(Option<V>) -> Option<V>,
        ) -> Option<V> {
            self.records.compute(&key, change)
        }

        /// Changes the value of a key, if it has one, to the result of a function: see
        /// [`compute`](Self::compute).
        #[doc = example!($map, "map.insert(\"pear\", 40);
assert_eq!(map.update(\"pear\", |price| price + 2), Some(42));
assert_eq!(map.update(\"fig\", |price| price + 2), None);")]
        pub fn update(&self, key: impl AsKey<K>, mut change: impl FnMut(V) -> V) -> Option<V> {
            self.records.compute(&key, |value| value.map(&mut change))
        }

        /// Merges a value into the value of a key, or sets it if the key has none: see
        /// [`compute`](Self::compute). The function gets the earlier value first.
        #[doc = example!($map, "for _ in 0..3 {
    map.merge(\"pear\", 1, |count, more| count + more);
}
assert_eq!(map.get(\"pear\"), Some(3));")]
        pub fn merge(&self, key: impl AsKey<K>, value: V, mut merge: impl FnMut(V, &V) -> V) -> V
        where
            V: Clone,
        {
            let mut change = |earlier: Option<V>| match earlier {
                Some(earlier) => Some(merge(earlier, &value)),
                None => Some(value.clone()),
            };
            let merged = self.records.compute(&key, &mut change);
            merged.expect("the function makes a value")
        }

        /// Removes the keys for which a function does not return `true`. Goes through the map like
        /// [`iter`](Self::iter). A key whose value changes after the function has seen it stays.
        #[doc = example!($map, "map.insert_many([(\"apple\", 30), (\"pear\", 40)]);
map.retain(|_, price| *price > 35);
assert_eq!(map.len(), 1);")]
        pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
            let mut all = self.iter();
            while let Some((key, value)) = all.next_bytes() {
                if !keep(&decode_key(key), &decode_value(value)) {
                    self.records.remove_if_same(key, value);
                }
            }
        }

        /// Removes all keys, at one moment. O(1): an empty store replaces the old one, which is
        /// freed in the background. Snapshots keep their pairs.
        #[doc = example!($map, "map.insert(\"pear\", 40);
let before = map.snapshot();
map.clear();
assert!(map.is_empty());
assert_eq!(before.len(), 1);")]
        pub fn clear(&self) {
            self.records.store().clear();
        }

        /// Returns the number of keys, exact at a moment between the begin and the end of the call.
        /// O(locks); a map has few locks unless many threads write.
        #[must_use]
        pub fn len(&self) -> usize {
            self.records.len()
        }

        /// Returns `true` if the map has no key.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// Returns the approximate bytes of memory of the map: keys, values and the structure that
        /// finds them. Removed pairs that are not freed yet do not count.
        #[must_use]
        pub fn memory(&self) -> usize {
            self.records.store().get(&ats_sync::pin()).bytes()
        }

        /// Returns a snapshot of the map at this moment. O(locks).
        ///
        /// Writers go on. Replaced and removed pairs stay in memory until the snapshot is dropped.
        #[doc = example!($map, "map.insert(\"pear\", 40);
let before = map.snapshot();
map.insert(\"pear\", 41);
map.insert(\"fig\", 20);
assert_eq!(before.get(\"pear\"), Some(40));
assert_eq!(before.iter().count(), 1);")]
        #[must_use]
        pub fn snapshot(&self) -> Snapshot<'_, K, V> {
            let records = self.records.share();
            let read_point = records.begin();
            Snapshot {
                records,
                when: read_point.when(),
                read_point: Some(read_point),
                map: PhantomData,
            }
        }
    };
}

/// Returns the text of an example, with a map of the type of that name.
macro_rules! example {
    ($map:literal, $text:literal) => {
        concat!(
            "\n```\n# let map: ats::",
            $map,
            "<String, u32> = ats::",
            $map,
            "::new();\n",
            $text,
            "\n```"
        )
    };
}

/// Implements the traits of collections for a map, and its snapshot.
macro_rules! shared_traits {
    ($map:ident) => {
        impl<K: Key, V: Value> Default for $map<K, V> {
            fn default() -> Self {
                Self::new()
            }
        }

        /// Copies the map as of one moment.
        impl<K: Key, V: Value> Clone for $map<K, V> {
            fn clone(&self) -> Self {
                self.snapshot().iter().collect()
            }
        }

        impl<K: Key + fmt::Debug, V: Value + fmt::Debug> fmt::Debug for $map<K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self).finish()
            }
        }

        /// Inserts each pair at its own moment.
        impl<K: Key, V: Value, Q: AsKey<K>, W: AsValue<V>> Extend<(Q, W)> for $map<K, V> {
            fn extend<I: IntoIterator<Item = (Q, W)>>(&mut self, pairs: I) {
                for (key, value) in pairs {
                    self.put(key, value);
                }
            }
        }

        impl<K: Key, V: Value> FromIterator<(K, V)> for $map<K, V> {
            fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
                let mut map = Self::new();
                map.extend(pairs);
                map
            }
        }

        impl<K: Key, V: Value, const N: usize> From<[(K, V); N]> for $map<K, V> {
            fn from(pairs: [(K, V); N]) -> Self {
                pairs.into_iter().collect()
            }
        }

        impl<'m, K: Key, V: Value> IntoIterator for &'m $map<K, V> {
            type Item = (K, V);
            type IntoIter = Iter<'m, K, V>;

            fn into_iter(self) -> Iter<'m, K, V> {
                self.iter()
            }
        }

        /// A map as it was at one moment, for reading: see [`snapshot`](
        #[doc = concat!(stringify!($map), "::snapshot).")]
        pub struct Snapshot<'m, K: Key, V: Value> {
            records: RecordsOfMap<K, V>,
            when: When,
            /// The moment, until it is ended.
            read_point: Option<ReadPoint>,
            map: PhantomData<&'m $map<K, V>>,
        }

        impl<K: Key, V: Value> Snapshot<'_, K, V> {
            /// Returns the value of a key at the moment.
            pub fn get(&self, key: impl AsKey<K>) -> Option<V> {
                self.records.get_at(&key, self.when)
            }

            /// Returns the number of keys at the moment. O(1).
            #[must_use]
            pub fn len(&self) -> usize {
                let objects = self
                    .read_point
                    .as_ref()
                    .map_or(0, |read_point| read_point.objects);
                usize::try_from(objects).unwrap_or(0)
            }

            /// Returns `true` if the map had no key at the moment.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl<K: Key, V: Value> Drop for Snapshot<'_, K, V> {
            fn drop(&mut self) {
                if let Some(read_point) = self.read_point.take() {
                    self.records.end(read_point);
                }
            }
        }

        impl<'s, K: Key, V: Value> IntoIterator for &'s Snapshot<'_, K, V> {
            type Item = (K, V);
            type IntoIter = Iter<'s, K, V>;

            fn into_iter(self) -> Iter<'s, K, V> {
                self.iter()
            }
        }

        impl<K: Key + fmt::Debug, V: Value + fmt::Debug> fmt::Debug for Snapshot<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self).finish()
            }
        }
    };
}
