//! The map on disk.

mod batch;
mod decode;
mod iter;
mod operator;
mod snapshot;

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

/// A map on disk, in the order of its keys, which threads share.
///
/// It has the functions of an [`OrderedMap`](crate::OrderedMap), each of which can fail. A
/// directory holds one map, which one process has open. Its keys and values are of the types with
/// which it was made; bytes that are not those of a key or a value are [`Error::Corrupt`],
/// which names the key; a call that returns it changes nothing. A key or a value that would not be
/// read as it is written is [`Error::Refused`].
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
/// # Ok::<(), ats_disk::Error>(())
/// ```
///
/// # What is kept
/// [`Options::durability`] says when a write is on disk. Whatever it is, a crash loses only the
/// newest writes, and no batch in part. Later versions of this crate read the files of earlier
/// ones, or bring them into their own format when they open them.
///
/// # What may wait
/// Every function may wait for the disk, and a writer also for writers of the same keys. So
/// asynchronous programs call them where they may block. Functions of the program are not called
/// under a lock, but for the decoding of keys and values.
pub struct DiskMap<K, V> {
    store: AtomicStore,
    types: PhantomData<fn() -> (K, V)>,
}

/// The capability with which a map calls its store: its functions may block.
fn may_block() -> Option<MayBlock> {
    Some(MayBlock::here())
}

impl<K: Key, V: Value> DiskMap<K, V> {
    /// Opens the map in a directory, or makes one there.
    ///
    /// # Errors
    /// Those of [`DiskStore::open`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(directory, Options::default())
    }

    /// Opens the map in a directory with options.
    ///
    /// # Errors
    /// Those of [`DiskStore::open`].
    pub fn open_with(directory: impl AsRef<Path>, options: Options) -> Result<Self, Error> {
        let store = DiskStore::open(directory.as_ref(), options)?;
        Ok(DiskMap {
            store: AtomicStore::new(store),
            types: PhantomData,
        })
    }

    /// Opens a map whose values can be [merged](DiskMap::merge): `merge` makes one of an earlier
    /// and a later value. It must be associative, and give the same result for the same values at
    /// any time. Its name and version are written down, and a map is opened only with the same
    /// ones: another version is one that merges in another way.
    ///
    /// # Errors
    /// Those of [`DiskStore::open`].
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
        let operator = Arc::new(Operator::new(name, version, merge));
        let operator: Option<Arc<dyn ats_store::MergeOperator>> = Some(operator);
        let options = Options {
            operator,
            ..options
        };
        Self::open_with(directory, options)
    }

    /// The store of the map, for statistics, syncs and whatever else concerns no single type. Not
    /// for writes: those of the map would not be kept from keys that are being changed.
    #[must_use]
    pub fn store(&self) -> &DiskStore {
        self.store.store()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of [`DiskStore::get`].
    pub fn get(&self, key: impl AsKey<K>) -> Result<Option<V>, Error> {
        let key = key::bytes_of(&key);
        let mut value = None;
        self.store().get_with(key.as_slice(), &mut |bytes| {
            value = Some(decode_value(key.as_slice(), bytes));
        })?;
        value.transpose()
    }

    /// Returns `true` if a key is there.
    ///
    /// # Errors
    /// Those of [`DiskStore::get`].
    pub fn contains_key(&self, key: impl AsKey<K>) -> Result<bool, Error> {
        let key = key::bytes_of(&key);
        self.store().get_with(key.as_slice(), &mut |_| ())
    }

    /// Gives a key a value, without reading the one that it had.
    ///
    /// # Errors
    /// Those of [`DiskStore::put`].
    pub fn put(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<(), Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        self.store
            .put_unread(may_block(), key.as_slice(), value.as_slice())
    }

    /// Gives a key a value, and returns the one that it had, which takes a read.
    ///
    /// # Errors
    /// Those of [`get`](DiskMap::get) and [`put`](DiskMap::put).
    pub fn insert(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<Option<V>, Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        let put = || Change::Put(value.as_slice().to_vec());
        self.exchange(key.as_slice(), put)
    }

    /// Gives a key a value if it has none. Returns `true` if it had none.
    ///
    /// # Errors
    /// Those of [`get`](DiskMap::get) and [`put`](DiskMap::put).
    pub fn insert_new(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<bool, Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        self.change_if(key.as_slice(), None, Some(value.as_slice()))
    }

    /// Removes a key, without reading it. O(log n), in memory.
    ///
    /// # Errors
    /// Those of [`DiskStore::delete`].
    pub fn delete(&self, key: impl AsKey<K>) -> Result<(), Error> {
        let key = key::bytes_of(&key);
        self.store.delete_unread(may_block(), key.as_slice())
    }

    /// Removes a key, and returns the value that it had. Of several threads that remove the same
    /// key one gets the value.
    ///
    /// # Errors
    /// Those of [`get`](DiskMap::get) and [`delete`](DiskMap::delete).
    pub fn remove(&self, key: impl AsKey<K>) -> Result<Option<V>, Error> {
        self.exchange(key::bytes_of(&key).as_slice(), || Change::Remove)
    }

    /// Merges a value with the one of a key, without reading it: it is merged when the key is read.
    /// The map was [opened](DiskMap::open_merging) with a function that merges.
    ///
    /// ```
    /// # use ats::DiskMap;
    /// # use ats_disk::Options;
    /// # let folder = std::env::temp_dir().join(format!("ats-merge-map-{}", std::process::id()));
    /// let words: DiskMap<String, u64> =
    ///     DiskMap::open_merging(&folder, Options::default(), "sum", 1, |a, b| a + b)?;
    /// for word in "the cat and the hat".split(' ') {
    ///     words.merge(word, 1)?;
    /// }
    /// assert_eq!(words.get("the")?, Some(2));
    /// # drop(words);
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # Ok::<(), ats_disk::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`DiskStore::merge`].
    pub fn merge(&self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<(), Error> {
        let mut batch = DiskBatch::new();
        batch.merge(key, value)?;
        self.write(&batch)
    }

    /// Makes all changes of a batch at one moment: every reader sees all of them or none, and so
    /// does the next opening after a crash.
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
    /// # Ok::<(), ats_disk::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`DiskStore::write`].
    pub fn write(&self, batch: &DiskBatch<K, V>) -> Result<(), Error> {
        self.store.write_unread(may_block(), batch.as_bytes())
    }

    /// Changes the value of a key, or its absence, to what a function makes of it, in one step.
    /// Returns what it has made.
    ///
    /// The function is called again if another thread has changed the value meanwhile. No lock is
    /// held while it runs, so it may use this map and any other.
    ///
    /// # Errors
    /// Those of [`get`](DiskMap::get) and [`put`](DiskMap::put).
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
    /// Those of [`compute`](DiskMap::compute).
    pub fn update(
        &self,
        key: impl AsKey<K>,
        mut change: impl FnMut(V) -> V,
    ) -> Result<Option<V>, Error> {
        self.compute(key, |value| value.map(&mut change))
    }

    /// The value of a key, which is `make`'s if it has none: see [`compute`](DiskMap::compute).
    ///
    /// # Errors
    /// Those of [`compute`](DiskMap::compute).
    pub fn get_or_insert_with(
        &self,
        key: impl AsKey<K>,
        mut make: impl FnMut() -> V,
    ) -> Result<V, Error> {
        let made = self.compute(key, |value| Some(value.unwrap_or_else(&mut make)))?;
        Ok(made.expect("the function makes a value"))
    }

    /// The pairs of all keys, in their order: see [`range`](DiskMap::range).
    pub fn iter(&self) -> DiskIter<K, V> {
        self.range(..)
    }

    /// The pairs of the keys in a range, from either end, as of one moment: that of the call. An
    /// item is an error if it cannot be read. It is the last one of that end if the disk cannot be
    /// read; behind bytes that are not of the types of the map, and values that cannot be merged,
    /// the iterator goes on.
    pub fn range(&self, keys: impl KeyBounds<K>) -> DiskIter<K, V> {
        DiskIter::new(self.store().snapshot(), keys.to_bytes())
    }

    /// The pairs of the keys with a [prefix](KeyPrefix): see [`range`](DiskMap::range).
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> DiskIter<K, V> {
        DiskIter::new(self.store().snapshot(), of_prefix(&prefix))
    }

    /// The pair of the first key.
    ///
    /// # Errors
    /// Those of [`DiskStore::get`].
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        self.iter().next().transpose()
    }

    /// The pair of the last key.
    ///
    /// # Errors
    /// Those of [`DiskStore::get`].
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        self.iter().next_back().transpose()
    }

    /// Removes the first key, and returns its pair. Of several threads that do so each gets another
    /// one.
    ///
    /// # Errors
    /// Those of [`get`](DiskMap::get) and [`delete`](DiskMap::delete).
    pub fn pop_first(&self) -> Result<Option<(K, V)>, Error> {
        self.remove_end(End::First)
    }

    /// Removes the last key, and returns its pair.
    ///
    /// # Errors
    /// Those of [`get`](DiskMap::get) and [`delete`](DiskMap::delete).
    pub fn pop_last(&self) -> Result<Option<(K, V)>, Error> {
        self.remove_end(End::Last)
    }

    /// Removes all keys in a range, at one moment. O(1), however many there are.
    ///
    /// # Errors
    /// Those of [`DiskStore::delete_range`].
    pub fn remove_range(&self, keys: impl KeyBounds<K>) -> Result<(), Error> {
        let mut batch = DiskBatch::new();
        batch.remove_range(keys)?;
        self.write(&batch)
    }

    /// Removes all keys, at one moment. O(1).
    ///
    /// # Errors
    /// Those of [`DiskStore::delete_range`].
    pub fn clear(&self) -> Result<(), Error> {
        self.remove_range(..)
    }

    /// The number of keys at one moment. O(1) if it is known, since all writes since the last call
    /// have read what they change: `insert`, `insert_new`, `remove`, `compute` and its like. O(n)
    /// otherwise.
    ///
    /// # Errors
    /// Those of [`DiskStore::scan`].
    pub fn len(&self) -> Result<usize, Error> {
        self.store().len()
    }

    /// Returns `true` if there is no key.
    ///
    /// # Errors
    /// Those of [`DiskStore::get`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.first()?.is_none())
    }

    /// The map as it is at this moment, for reading. O(1). It keeps the files that it reads until
    /// it is dropped.
    #[must_use]
    pub fn snapshot(&self) -> DiskSnapshot<K, V> {
        DiskSnapshot::new(self.store().snapshot())
    }

    /// Copies the map as it is at this moment to a directory of its own, which can be opened as
    /// this one. Files are linked where the file system can do that.
    ///
    /// # Errors
    /// Those of [`DiskStore::checkpoint`].
    pub fn checkpoint(&self, to: impl AsRef<Path>) -> Result<(), Error> {
        self.store().checkpoint(to.as_ref())
    }

    /// Waits until all that was written is on disk.
    ///
    /// # Errors
    /// Those of [`DiskStore::sync`].
    pub fn sync(&self) -> Result<(), Error> {
        self.store().sync()
    }

    /// Writes what is in memory to disk, and closes the map. Later writes fail. A map that is
    /// dropped without this loses nothing, but takes longer to open.
    ///
    /// # Errors
    /// Those of [`DiskStore::close`].
    pub fn close(&self) -> Result<(), Error> {
        self.store().close()
    }

    /// Makes a change of a key, and returns the value that it had. Changes nothing if that cannot
    /// be read.
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
        self.store.update_keys(may_block(), &[key], &mut plan)?;
        old
    }

    /// Makes a change of a key if its value has these bytes. Returns `true` if it had.
    fn change_if(&self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Error> {
        let mut plan = |_: usize, value: Option<&[u8]>| match new {
            _ if value != old => Change::Abort,
            Some(new) => Change::Put(new.to_vec()),
            None => Change::Remove,
        };
        self.store.update_keys(may_block(), &[key], &mut plan)
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
        self.store.update_end_key(may_block(), end, &mut decide)?;
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
