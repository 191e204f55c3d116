//! The map on disk.

mod batch;
mod decode;
mod iter;
mod operator;
mod snapshot;
mod transaction;

use super::bounds::{KeyBounds, KeyPrefix, of_prefix};
use super::key::{self, AsKey, Key};
use super::value::{AsValue, Value, ValueBytes};
use ats_disk::{AtomicStore, DiskStore, Error, MayBlock, Options};
use ats_store::{Change, End};
pub use batch::DiskBatch;
use decode::{decode_pair, decode_value, encode_key, encode_value};
pub use iter::DiskIter;
use operator::Operator;
pub use snapshot::DiskSnapshot;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
pub use transaction::DiskTransaction;

/// A concurrent map on disk, in the order of its keys.
///
/// It has the functions of an [`OrderedMap`](crate::OrderedMap), each of which can fail. A
/// directory holds one map, which one process can open at a time. Its keys and values have the
/// types with which it was made. Bytes that are not a key or a value of these types cause
/// [`Error::Corrupt`], which names the key; the call changes nothing then. A key or a value that
/// cannot be read back causes [`Error::Refused`].
///
/// ```
/// use ats::DiskMap;
///
/// # let folder = std::env::temp_dir().join(format!("ats-disk-map-{}", std::process::id()));
/// let prices: DiskMap<String, u32> = DiskMap::open(&folder)?;
/// prices.put("pear", 40)?;
/// prices.put("apple", 30)?;
/// prices.close()?;
///
/// let prices: DiskMap<String, u32> = DiskMap::open(&folder)?;
/// assert_eq!(prices.get("pear")?, Some(40));
/// assert_eq!(prices.first()?, Some((String::from("apple"), 30)));
/// for pair in prices.range("b"..) {
///     let (name, price) = pair?;
///     assert_eq!((&name[..], price), ("pear", 40));
/// }
/// # drop(prices);
/// # std::fs::remove_dir_all(&folder).ok();
/// # Ok::<(), ats::disk::Error>(())
/// ```
///
/// There is no `entry`: the crate has a list of functions [instead of
/// it](crate#instead-of-entry).
///
/// # Durability
/// [`Options::durability`] selects when a write is on disk. With every setting, a crash loses only
/// the newest writes, and never a part of a batch. Later versions of this crate read the files of
/// earlier versions, or convert them when they open them.
///
/// # Blocking
/// Every function may wait for the disk, and a writer also for writers of the same keys. So
/// asynchronous programs must call them from threads that may block. The map calls no function of
/// the program under a lock, except the decoding of keys and values.
pub struct DiskMap<K, V> {
    store: AtomicStore,
    types: PhantomData<fn() -> (K, V)>,
}

/// The capability with which a map calls its store: all its functions may block.
const BLOCK: Option<MayBlock> = Some(MayBlock::here());

impl<K: Key, V: Value> DiskMap<K, V> {
    /// Opens the map in a directory, or creates one there.
    ///
    /// # Errors
    /// The errors of [`DiskStore::open`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(directory, Options::new())
    }

    /// Opens the map in a directory with options.
    ///
    /// # Errors
    /// The errors of [`DiskStore::open`]; [`Error::Option`] with [`Options::lifetime`], as pairs do
    /// not expire.
    pub fn open_with(directory: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        if options.lifetime.is_some() {
            return Err(Error::Option {
                name: "lifetime",
                why: "the pairs of a map do not expire",
            });
        }
        let store = DiskStore::open(directory.as_ref(), options)?;
        Ok(DiskMap {
            store: AtomicStore::new(store),
            types: PhantomData,
        })
    }

    /// Opens a map whose values can be [merged](DiskMap::merge): `merge` combines an earlier and a
    /// later value into one. It must be associative and deterministic. The map stores its name and
    /// version, and can only be opened with the same: a `merge` that combines values differently
    /// needs another version.
    ///
    /// # Errors
    /// The errors of [`DiskStore::open`].
    pub fn open_merging(
        directory: impl AsRef<Path>,
        options: Options,
        name: &str,
        version: u32,
        merge: impl Fn(V, V) -> V + Send + Sync + 'static,
    ) -> Result<Self, Error>
    where
        V: 'static,
    {
        let operator = Operator::new(name, version, merge);
        Self::open_with(directory, options.operator(Arc::new(operator)))
    }

    /// Returns the store of the map, for statistics, syncs and other functions that do not depend
    /// on types. The program must not write through it: such writes would not exclude changes of
    /// the map.
    #[must_use]
    pub fn store(&self) -> &DiskStore {
        self.store.store()
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`].
    pub fn get(&self, key: impl AsKey<K>) -> Result<Option<V>, Error> {
        let key = key::bytes_of(&key);
        let mut value = None;
        self.store().get_with(key.as_slice(), &mut |bytes| {
            value = Some(decode_value(key.as_slice(), bytes));
        })?;
        value.transpose()
    }

    /// Returns `true` if the map has a key.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`].
    pub fn contains_key(&self, key: impl AsKey<K>) -> Result<bool, Error> {
        let key = key::bytes_of(&key);
        self.store().get_with(key.as_slice(), &mut |_| ())
    }

    /// Sets the value of a key, without reading the old value.
    ///
    /// # Errors
    /// The errors of [`DiskStore::put`].
    pub fn put(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<(), Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        self.store
            .put_unread(BLOCK, key.as_slice(), value.as_slice())
    }

    /// Sets the value of a key, and returns the old value, which must be read.
    ///
    /// # Errors
    /// The errors of [`get`](DiskMap::get) and [`put`](DiskMap::put).
    pub fn insert(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<Option<V>, Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        let put = || Change::Put(value.as_slice().to_vec());
        self.exchange(key.as_slice(), put)
    }

    /// Sets the value of a key if it has none. Returns `true` if it had none.
    ///
    /// # Errors
    /// The errors of [`get`](DiskMap::get) and [`put`](DiskMap::put).
    pub fn insert_new(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<bool, Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        self.change_if(key.as_slice(), None, Some(value.as_slice()))
    }

    /// Removes a key, without reading it. O(log n), in memory.
    ///
    /// # Errors
    /// The errors of [`DiskStore::delete`].
    pub fn delete(&self, key: impl AsKey<K>) -> Result<(), Error> {
        let key = key::bytes_of(&key);
        self.store.delete_unread(BLOCK, key.as_slice())
    }

    /// Removes a key, and returns its value. Of several threads that remove the same key exactly
    /// one gets the value.
    ///
    /// # Errors
    /// The errors of [`get`](DiskMap::get) and [`delete`](DiskMap::delete).
    pub fn remove(&self, key: impl AsKey<K>) -> Result<Option<V>, Error> {
        self.exchange(key::bytes_of(&key).as_slice(), || Change::Remove)
    }

    /// Merges a value into the value of a key, without reading that: they are merged when the key
    /// is read. The map must be [opened](DiskMap::open_merging) with a function that merges.
    ///
    /// ```
    /// # use ats::DiskMap;
    /// # use ats::disk::Options;
    /// # let folder = std::env::temp_dir().join(format!("ats-merge-map-{}", std::process::id()));
    /// let words: DiskMap<String, u64> =
    ///     DiskMap::open_merging(&folder, Options::new(), "sum", 1, |a, b| a + b)?;
    /// for word in "the cat and the hat".split(' ') {
    ///     words.merge(word, 1)?;
    /// }
    /// assert_eq!(words.get("the")?, Some(2));
    /// # drop(words);
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # Ok::<(), ats::disk::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`DiskStore::merge`].
    pub fn merge(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<(), Error> {
        let mut batch = DiskBatch::new();
        batch.merge(key, value)?;
        self.write(&batch)
    }

    /// Makes all changes of a batch atomically: every reader sees all of them or none, and so does
    /// a reader after a crash.
    ///
    /// ```
    /// # use ats::{DiskBatch, DiskMap};
    /// # let folder = std::env::temp_dir().join(format!("ats-batch-map-{}", std::process::id()));
    /// # let map: DiskMap<String, u32> = DiskMap::open(&folder)?;
    /// map.put("pear", 40)?;
    /// let mut batch = DiskBatch::new();
    /// batch.remove("pear")?;
    /// batch.put("plum", 40)?;
    /// map.write(&batch)?;
    /// assert_eq!(map.len()?, 1);
    /// # drop(map);
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # Ok::<(), ats::disk::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`DiskStore::write`].
    pub fn write(&self, batch: &DiskBatch<K, V>) -> Result<(), Error> {
        self.store.write_unread(BLOCK, batch.as_bytes())
    }

    /// Replaces the value of a key, or its absence, by the result of a function, atomically.
    /// Returns that result.
    ///
    /// The function is called again if another thread has changed the value meanwhile. No lock is
    /// held while it runs, so it may use this map and any other.
    ///
    /// # Errors
    /// The errors of [`get`](DiskMap::get) and [`put`](DiskMap::put).
    pub fn compute(
        &self,
        key: impl AsKey<K>,
        mut change: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>, Error> {
        let key = encode_key(&key)?;
        let key = key.as_slice();
        loop {
            let old = self.store().get(key)?;
            let decoded = old.as_deref().map(|old| decode_value(key, old));
            let new = change(decoded.transpose()?);
            let bytes = new.as_ref().map(encode_value::<V>).transpose()?;
            let bytes = bytes.as_ref().map(ValueBytes::as_slice);
            if bytes == old.as_deref() || self.change_if(key, old.as_deref(), bytes)? {
                return Ok(new);
            }
        }
    }

    /// Changes the value of a key, if it has one: see [`compute`](DiskMap::compute).
    ///
    /// # Errors
    /// The errors of [`compute`](DiskMap::compute).
    pub fn update(
        &self,
        key: impl AsKey<K>,
        mut change: impl FnMut(V) -> V,
    ) -> Result<Option<V>, Error> {
        self.compute(key, |value| value.map(&mut change))
    }

    /// Returns the value of a key. If it has none, inserts the result of `make`: see
    /// [`compute`](DiskMap::compute).
    ///
    /// # Errors
    /// The errors of [`compute`](DiskMap::compute).
    pub fn get_or_insert_with(
        &self,
        key: impl AsKey<K>,
        mut make: impl FnMut() -> V,
    ) -> Result<V, Error> {
        let made = self.compute(key, |value| Some(value.unwrap_or_else(&mut make)))?;
        Ok(made.expect("the function makes a value"))
    }

    /// Iterates over all pairs in key order: see [`range`](DiskMap::range).
    pub fn iter(&self) -> DiskIter<K, V> {
        self.range(..)
    }

    /// Iterates over the pairs of the keys in a range, from either end, as of the moment of the
    /// call. An item is an error if it cannot be read. If the disk cannot be read, the error is the
    /// last item of that end. After bytes that do not have the types of the map, and after values
    /// that cannot be merged, the iterator continues.
    pub fn range(&self, keys: impl KeyBounds<K>) -> DiskIter<K, V> {
        DiskIter::new(self.store().scan(keys.to_bytes().as_range()))
    }

    /// Iterates over the pairs of the keys with a [prefix](KeyPrefix): see
    /// [`range`](DiskMap::range).
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> DiskIter<K, V> {
        DiskIter::new(self.store().scan(of_prefix(&prefix).as_range()))
    }

    /// Returns the first pair.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`].
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        self.iter().next().transpose()
    }

    /// Returns the last pair.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`].
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        self.iter().next_back().transpose()
    }

    /// Removes the first key, and returns its pair. Concurrent calls return different pairs.
    ///
    /// # Errors
    /// The errors of [`get`](DiskMap::get) and [`delete`](DiskMap::delete).
    pub fn pop_first(&self) -> Result<Option<(K, V)>, Error> {
        self.remove_end(End::First)
    }

    /// Removes the last key, and returns its pair.
    ///
    /// # Errors
    /// The errors of [`get`](DiskMap::get) and [`delete`](DiskMap::delete).
    pub fn pop_last(&self) -> Result<Option<(K, V)>, Error> {
        self.remove_end(End::Last)
    }

    /// Removes all keys in a range, at one moment. O(1) for any number of keys.
    ///
    /// # Errors
    /// The errors of [`DiskStore::delete_range`].
    pub fn remove_range(&self, keys: impl KeyBounds<K>) -> Result<(), Error> {
        let mut batch = DiskBatch::new();
        batch.remove_range(keys)?;
        self.write(&batch)
    }

    /// Removes all keys, at one moment. O(1).
    ///
    /// # Errors
    /// The errors of [`DiskStore::delete_range`].
    pub fn clear(&self) -> Result<(), Error> {
        self.remove_range(..)
    }

    /// Returns the number of keys at one moment. O(1) if all writes since the last call have read
    /// the old values: `insert`, `insert_new`, `remove`, `compute` and functions like it. O(n)
    /// otherwise.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`].
    pub fn len(&self) -> Result<usize, Error> {
        self.store().len()
    }

    /// Returns `true` if the map has no key.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.first()?.is_none())
    }

    /// Returns a snapshot of the map at this moment. O(1). The snapshot keeps the files that it
    /// reads until it is dropped.
    #[must_use]
    pub fn snapshot(&self) -> DiskSnapshot<K, V> {
        DiskSnapshot::new(self.store().snapshot())
    }

    /// Copies the map as of this moment to another directory, which can be opened as a map. Files
    /// are linked if the file system supports that.
    ///
    /// # Errors
    /// The errors of [`DiskStore::checkpoint`].
    pub fn checkpoint(&self, to: impl AsRef<Path>) -> Result<(), Error> {
        self.store().checkpoint(to.as_ref())
    }

    /// Waits until all earlier writes are on disk.
    ///
    /// # Errors
    /// The errors of [`DiskStore::sync`].
    pub fn sync(&self) -> Result<(), Error> {
        self.store().sync()
    }

    /// Writes the data in memory to disk, and closes the map. Later writes fail. A map that is
    /// dropped without this loses no data, but takes longer to open.
    ///
    /// # Errors
    /// The errors of [`DiskStore::close`].
    pub fn close(&self) -> Result<(), Error> {
        self.store().close()
    }

    /// Changes a key, and returns its old value. Changes nothing if the old value cannot be read.
    fn exchange(
        &self,
        key: &[u8],
        change: impl Fn() -> Change<Vec<u8>>,
    ) -> Result<Option<V>, Error> {
        let mut old = Ok(None);
        let mut plan = |_: usize, value: Option<&[u8]>| {
            old = value.map(|value| decode_value(key, value)).transpose();
            match old {
                Ok(_) => change(),
                Err(_) => Change::Abort,
            }
        };
        self.store.update_keys(BLOCK, &[key], &mut plan)?;
        old
    }

    /// Changes a key if its value has these bytes. Returns `true` if it had.
    fn change_if(&self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Error> {
        let mut plan = |_: usize, value: Option<&[u8]>| match new {
            _ if value != old => Change::Abort,
            Some(new) => Change::Put(new.to_vec()),
            None => Change::Remove,
        };
        self.store.update_keys(BLOCK, &[key], &mut plan)
    }

    fn remove_end(&self, end: End) -> Result<Option<(K, V)>, Error> {
        let mut removed = Ok(None);
        let mut decide = |record: Option<(&[u8], &[u8])>| {
            let pair = record.map(|(key, value)| decode_pair(key, value));
            removed = pair.transpose();
            match removed {
                Ok(Some(_)) => Change::Remove,
                Ok(None) | Err(_) => Change::Keep,
            }
        };
        self.store.update_end_key(BLOCK, end, &mut decide)?;
        removed
    }
}

impl<K: Key, V: Value> IntoIterator for &DiskMap<K, V> {
    type Item = Result<(K, V), Error>;
    type IntoIter = DiskIter<K, V>;

    fn into_iter(self) -> DiskIter<K, V> {
        self.iter()
    }
}

impl<K, V> fmt::Debug for DiskMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskMap").finish_non_exhaustive()
    }
}
