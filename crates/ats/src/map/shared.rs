//! The functions of both kinds of maps in memory.

/// Defines the functions of a map whose field `records` is [`Records`](super::records::Records).
/// `$map` is the name of its type, for examples.
macro_rules! shared_functions {
    ($map:literal) => {
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
            self.records.insert(&key, &value, Dating::OfTable)
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

        /// Returns the value of a key. If it has none, inserts the result of `make`.
        ///
        /// One thread at a time makes the value of a key; other threads that call this function for
        /// the key wait for its value, and return it. They do not wait for calls for other keys.
        /// No lock is held while `make` runs. If it panics, another call for the key runs its own
        /// function. If another function has inserted a value meanwhile, that counts, and the
        /// result is dropped.
        #[doc = example!($map, "assert_eq!(map.get_or_insert_with(\"pear\", || 40), 40);
assert_eq!(map.get_or_insert_with(\"pear\", || unreachable!()), 40);")]
        ///
        /// # Panics
        /// If `make` calls this function, or
        /// [`try_get_or_insert_with`](Self::try_get_or_insert_with), for the same key; or if it
        /// calls it for a key whose value another thread makes, which waits for this one.
        #[inline]
        pub fn get_or_insert_with(&self, key: impl AsKey<K>, make: impl FnOnce() -> V) -> V {
            let made: Result<V, Infallible> =
                self.records.try_get_or_insert_with(&key, || Ok(make()));
            match made {
                Ok(value) => value,
            }
        }

        /// Returns the value of a key like [`get_or_insert_with`](Self::get_or_insert_with), by a
        /// function that can fail. If it fails, nothing is inserted, and another call that waits
        /// for the value runs its own function.
        #[doc = example!($map, "let make = || \"4o\".parse();
assert!(map.try_get_or_insert_with(\"pear\", make).is_err());
let made = map.try_get_or_insert_with(\"pear\", || \"40\".parse())?;
assert_eq!(made, 40);
# Ok::<(), std::num::ParseIntError>(())")]
        ///
        /// # Errors
        /// The error of `make`.
        ///
        /// # Panics
        /// Panics like `get_or_insert_with`.
        #[inline]
        pub fn try_get_or_insert_with<E>(
            &self,
            key: impl AsKey<K>,
            make: impl FnOnce() -> Result<V, E>,
        ) -> Result<V, E> {
            self.records.try_get_or_insert_with(&key, make)
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

        /// Runs a function that reads and changes several keys, and makes this one step: no other
        /// thread sees a part of the changes, and nobody has changed a key that was read between
        /// its reading and the step. Returns the result of the function.
        ///
        /// The function works on a view of the map. If other threads have changed a value that it
        /// has read, it runs again on a new view, up to 64 times; after some attempts, the thread
        /// sleeps in between, for at most 10 milliseconds. If the function returns an error, or
        /// panics, nothing changes. A result, or an error, is returned only if all values that were
        /// read are those of one moment, also if nothing is changed.
        #[doc = example!($map, "map.insert_many([(\"anna\", 50), (\"ben\", 0)]);
let pay = |euros: u32| {
    map.transact(|view| {
        let anna = view.get(\"anna\").ok_or(\"anna has no account\")?;
        let left = anna.checked_sub(euros).ok_or(\"anna has too little\")?;
        view.insert(\"anna\", left);
        view.update(\"ben\", |ben| ben + euros).ok_or(\"ben has no account\")?;
        Ok(left)
    })
};
assert_eq!(pay(30), Ok(20));
assert_eq!(pay(30), Err(ats::TransactError::Abandoned(\"anna has too little\")));
assert_eq!((map.get(\"anna\"), map.get(\"ben\")), (Some(20), Some(30)));")]
        ///
        /// The function runs with no lock and no guard, so it may take any time, and use this map
        /// and any other. Its reads and writes without the view are no part of the step, and are
        /// made once in each attempt. It should have no other effects, since it may run several
        /// times. In an attempt that fails, the values that it reads may be those of different
        /// moments. So where they do not fit together it should return an error, which leads to
        /// another attempt then, and not panic.
        ///
        /// O(m log m) for m keys, besides the time of reading each key twice, and writing those
        /// that are changed. Ranges cannot be read: a [`snapshot`](Self::snapshot) shows all keys
        /// of one moment. Keys that are changed, and those read beside them, are held while the
        /// changes are made, as in [`insert_many`](Self::insert_many). New values get the time of
        /// the map, and bounds hold when the call returns.
        ///
        /// The scheme is that of Kung and Robinson, "On optimistic methods for concurrency
        /// control", 1981.
        ///
        /// # Errors
        /// [`TransactError::Abandoned`] with an error of the function; [`TransactError::Conflict`]
        /// if values that were read have changed during all attempts.
        pub fn transact<T, E>(
            &self,
            run: impl FnMut(&mut MapView<'_, K, V>) -> Result<T, E>,
        ) -> Result<T, TransactError<E>> {
            self.records.transact(run)
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
        pub fn snapshot(&self) -> Snapshot<'_, K, V, L> {
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

/// Defines the functions of a map without limits. `$store` is an empty store.
macro_rules! unlimited_functions {
    ($map:literal, $store:expr, $limited:ty) => {
        /// Returns an empty map.
        #[must_use]
        pub fn new() -> Self {
            Self {
                records: Records::new($store),
            }
        }

        /// Returns a builder of an empty map whose pairs expire, or which has a bound.
        ///
        /// Such a map is of the kind [`Limited`]. Past its deadline a pair is gone for all
        /// functions. A snapshot has the pairs that had not expired at its moment.
        #[doc = limited_example!($map, ".max_len(1_000)", "map.insert(\"pear\", 40);
assert_eq!(map.get(\"pear\"), Some(40));
assert!(map.time_left(\"pear\").is_some());")]
        pub fn builder() -> MapBuilder<$limited> {
            MapBuilder::new()
        }
    };
}

/// Defines the functions of a map with limits.
macro_rules! limited_functions {
    ($map:literal) => {
        /// Sets the value of a key for a time, at least a millisecond, and returns the old value.
        /// Reading the pair does not put its deadline off. A time of 34 years or more has no end.
        #[doc = limited_example!($map, "", "map.insert_for(\"pear\", 40, Duration::from_secs(1));
assert!(map.time_left(\"pear\") <= Some(TimeLeft::Time(Duration::from_secs(1))));")]
        pub fn insert_for(
            &self,
            key: impl AsKey<K>,
            value: impl AsValue<V>,
            time: Duration,
        ) -> Option<V> {
            self.records.insert(&key, &value, dating_for(time))
        }

        /// Returns the time that is left to a pair; `None` if the map does not have the key. Does
        /// not count as a read.
        pub fn time_left(&self, key: impl AsKey<K>) -> Option<TimeLeft> {
            self.records.time_left(&key)
        }

        /// Gives a pair the time of the map, from now on. Returns `true` if the map has the key.
        #[doc = limited_example!($map, "", "map.insert_for(\"pear\", 40, Duration::from_secs(1));
assert!(map.touch(\"pear\"));
assert!(map.time_left(\"pear\") > Some(TimeLeft::Time(Duration::from_secs(1))));
assert!(!map.touch(\"fig\"));")]
        pub fn touch(&self, key: impl AsKey<K>) -> bool {
            self.records.touch(&key, Dating::OfTable)
        }

        /// Gives a pair a time, from now on, as [`insert_for`](Self::insert_for) does. Returns
        /// `true` if the map has the key.
        pub fn touch_for(&self, key: impl AsKey<K>, time: Duration) -> bool {
            self.records.touch(&key, dating_for(time))
        }

        /// Returns the number of pairs that have expired and were removed, since the map was made
        /// or cleared.
        #[must_use]
        pub fn expired(&self) -> u64 {
            self.records.expired()
        }

        /// Returns the number of pairs that were removed because there were too many, or that were
        /// too large to be kept, since the map was made or cleared.
        #[must_use]
        pub fn evicted(&self) -> u64 {
            self.records.evicted()
        }
    };
}

/// Returns the text of an example, with a map with limits.
macro_rules! limited_example {
    ($map:literal, $more:literal, $text:literal) => {
        concat!(
            "\n```\nuse ats::{",
            $map,
            ", Limited, TimeLeft};\nuse std::time::Duration;\n\nlet map: ",
            $map,
            "<String, u32, Limited> =\n    ",
            $map,
            "::builder().ttl(Duration::from_secs(60))",
            $more,
            ".build();\n",
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

        impl<K: Key + fmt::Debug, V: Value + fmt::Debug, L: MapKind> fmt::Debug for $map<K, V, L> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self).finish()
            }
        }

        /// Inserts each pair at its own moment.
        impl<K: Key, V: Value, L: MapKind, Q: AsKey<K>, W: AsValue<V>> Extend<(Q, W)>
            for $map<K, V, L>
        {
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

        impl<'m, K: Key, V: Value, L: MapKind> IntoIterator for &'m $map<K, V, L> {
            type Item = (K, V);
            type IntoIter = Iter<'m, K, V, L>;

            fn into_iter(self) -> Iter<'m, K, V, L> {
                self.iter()
            }
        }

        /// A map as it was at one moment, for reading: see [`snapshot`](
        #[doc = concat!(stringify!($map), "::snapshot).")]
        pub struct Snapshot<'m, K: Key, V: Value, L: MapKind = Unlimited> {
            records: RecordsOfMap<K, V, L>,
            when: When,
            /// The moment, until it is ended.
            read_point: Option<ReadPoint>,
            map: PhantomData<&'m $map<K, V, L>>,
        }

        impl<K: Key, V: Value, L: MapKind> Snapshot<'_, K, V, L> {
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

        impl<K: Key, V: Value, L: MapKind> Drop for Snapshot<'_, K, V, L> {
            fn drop(&mut self) {
                if let Some(read_point) = self.read_point.take() {
                    self.records.end(read_point);
                }
            }
        }

        impl<'s, K: Key, V: Value, L: MapKind> IntoIterator for &'s Snapshot<'_, K, V, L> {
            type Item = (K, V);
            type IntoIter = Iter<'s, K, V, L>;

            fn into_iter(self) -> Iter<'s, K, V, L> {
                self.iter()
            }
        }

        impl<K: Key + fmt::Debug, V: Value + fmt::Debug, L: MapKind> fmt::Debug
            for Snapshot<'_, K, V, L>
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self).finish()
            }
        }
    };
}
