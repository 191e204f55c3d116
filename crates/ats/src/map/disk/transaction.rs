//! Transactions of a map: a function reads and writes several keys as one step.
//!
//! The function reads a snapshot, and its writes are kept until it returns. Then all keys that it
//! has used are locked and read again. If those that the function has read still have the same
//! values, the writes are made as one batch. Otherwise the function runs again.

use super::decode::{decode_value, encode_key, encode_value};
use super::{BLOCK, DiskMap};
use crate::map::key::{self, AsKey, Key};
use crate::map::value::{AsValue, Value};
use ats_disk::{Error, Snapshot};
use ats_store::Change;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::thread;

/// Number of times that the function of a transaction runs at most. Each attempt fails only if
/// another thread has written one of its keys meanwhile.
const ATTEMPTS: usize = 1000;

/// The view that the function of a [transaction](DiskMap::transact) has of its map: the pairs of
/// one moment, and its own changes.
pub struct DiskTransaction<K, V> {
    snapshot: Snapshot,
    /// The keys that were used until now.
    keys: BTreeMap<Vec<u8>, Used>,
    types: PhantomData<fn() -> (K, V)>,
}

/// The use of a key.
#[derive(Default)]
struct Used {
    /// The content at the moment of the view, once it was read.
    read: Option<Content>,
    /// The new content, if it was written.
    written: Option<Content>,
}

/// The content of a key: the bytes of its value, if it has one.
struct Content(Option<Vec<u8>>);

impl Used {
    /// Returns the change of the key, whose value is `current` now.
    fn change(&self, current: Option<&[u8]>) -> Change<Vec<u8>> {
        match (&self.read, &self.written) {
            (Some(Content(read)), _) if read.as_deref() != current => Change::Abort,
            (_, Some(Content(Some(value)))) => Change::Put(value.clone()),
            (_, Some(Content(None))) => Change::Remove,
            (_, None) => Change::Keep,
        }
    }
}

impl<K: Key, V: Value> DiskTransaction<K, V> {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// The errors of [`DiskMap::get`]; [`Error::Expired`] if the function has not read for longer
    /// than [`Options::snapshot_age`](crate::disk::Options::snapshot_age).
    pub fn get(&mut self, key: impl AsKey<K>) -> Result<Option<V>, Error> {
        let key = key::bytes_of(&key);
        let key = key.as_slice();
        let value = self.read(key)?;
        value.map(|value| decode_value(key, value)).transpose()
    }

    /// Returns `true` if the map has a key.
    ///
    /// # Errors
    /// The errors of [`get`](DiskTransaction::get).
    pub fn contains_key(&mut self, key: impl AsKey<K>) -> Result<bool, Error> {
        Ok(self.read(key::bytes_of(&key).as_slice())?.is_some())
    }

    /// Sets the value of a key, without reading the old value.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Refused`].
    pub fn put(&mut self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<(), Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        self.used(key.as_slice()).written = Some(Content(Some(value.as_slice().to_vec())));
        Ok(())
    }

    /// Sets the value of a key, and returns the old value.
    ///
    /// # Errors
    /// The errors of [`get`](DiskTransaction::get) and [`put`](DiskTransaction::put).
    pub fn insert(
        &mut self,
        key: impl AsKey<K>,
        value: impl AsValue<V>,
    ) -> Result<Option<V>, Error> {
        let old = self.get(&key)?;
        self.put(key, value)?;
        Ok(old)
    }

    /// Removes a key, without reading it.
    pub fn delete(&mut self, key: impl AsKey<K>) {
        self.used(key::bytes_of(&key).as_slice()).written = Some(Content(None));
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    /// The errors of [`get`](DiskTransaction::get).
    pub fn remove(&mut self, key: impl AsKey<K>) -> Result<Option<V>, Error> {
        let old = self.get(&key)?;
        self.delete(key);
        Ok(old)
    }

    fn used(&mut self, key: &[u8]) -> &mut Used {
        if !self.keys.contains_key(key) {
            self.keys.insert(key.to_vec(), Used::default());
        }
        self.keys.get_mut(key).expect("it was just there")
    }

    /// Returns the bytes of the value of a key.
    fn read(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        let is_known = |used: &Used| used.written.is_some() || used.read.is_some();
        if !self.keys.get(key).is_some_and(is_known) {
            let value = self.snapshot.get(key)?;
            self.used(key).read = Some(Content(value));
        }
        let used = &self.keys[key];
        let content = used.written.as_ref().or(used.read.as_ref());
        Ok(content.and_then(|Content(value)| value.as_deref()))
    }
}

impl<K: Key, V: Value> DiskMap<K, V> {
    /// Calls a function that reads and writes several keys as one step, and returns its result:
    /// every reader, and a crash, sees all of its changes or none, and no other thread has changed
    /// a key that the function has read when they are made.
    ///
    /// The function sees the map as it is at one moment, with its own changes. No lock is held
    /// while it runs, so it may use this map and any other. It is called again if another thread
    /// has changed a key that it has read meanwhile, so it should change nothing else. If it
    /// returns an error, nothing has changed. A function that changes nothing runs once.
    ///
    /// O(log n) for each key that it uses, twice, and the bytes of their values, which are in
    /// memory meanwhile.
    ///
    /// ```
    /// # use ats::DiskMap;
    /// # let folder = std::env::temp_dir().join(format!("ats-transact-{}", std::process::id()));
    /// let accounts: DiskMap<String, u64> = DiskMap::open(&folder)?;
    /// accounts.put("ann", 100)?;
    /// let moved = accounts.transact(|view| {
    ///     let Some(amount) = view.get("ann")?.filter(|amount| *amount >= 30) else {
    ///         return Ok(false);
    ///     };
    ///     let other = view.get("bob")?.unwrap_or(0);
    ///     view.put("ann", amount - 30)?;
    ///     view.put("bob", other + 30)?;
    ///     Ok::<_, ats::disk::Error>(true)
    /// })?;
    /// assert!(moved);
    /// assert_eq!(accounts.get("ann")?, Some(70));
    /// assert_eq!(accounts.get("bob")?, Some(30));
    /// # drop(accounts);
    /// # std::fs::remove_dir_all(&folder).ok();
    /// # Ok::<(), ats::disk::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the function; [`Error::Contended`] if other threads were faster a thousand
    /// times; the errors of [`get`](DiskMap::get) and [`write`](DiskMap::write). Nothing has
    /// changed then.
    pub fn transact<R, E: From<Error>>(
        &self,
        mut run: impl FnMut(&mut DiskTransaction<K, V>) -> Result<R, E>,
    ) -> Result<R, E> {
        for _ in 0..ATTEMPTS {
            let mut view = DiskTransaction {
                snapshot: self.store().snapshot(),
                keys: BTreeMap::new(),
                types: PhantomData,
            };
            let result = run(&mut view)?;
            if self.commit(&view.keys)? {
                return Ok(result);
            }
            thread::yield_now();
        }
        Err(Error::Contended.into())
    }

    /// Makes the changes of a transaction, unless a key that it has read has another value now.
    /// Returns `true` if they were made.
    fn commit(&self, used: &BTreeMap<Vec<u8>, Used>) -> Result<bool, Error> {
        if used.values().all(|used| used.written.is_none()) {
            return Ok(true);
        }
        let keys: Vec<&[u8]> = used.keys().map(Vec::as_slice).collect();
        let used: Vec<&Used> = used.values().collect();
        let mut plan = |index: usize, current: Option<&[u8]>| used[index].change(current);
        self.store.update_keys(BLOCK, &keys, &mut plan)
    }
}

impl<K, V> fmt::Debug for DiskTransaction<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.len();
        f.debug_struct("DiskTransaction")
            .field("keys", &keys)
            .finish_non_exhaustive()
    }
}
