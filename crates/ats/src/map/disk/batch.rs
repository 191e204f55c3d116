//! Batches of changes that are made atomically.

use super::decode::{encode_key, encode_value};
use crate::map::bounds::KeyBounds;
use crate::map::key::{self, AsKey, Key};
use crate::map::value::{AsValue, Value};
use ats_disk::{Batch, Error};
use std::fmt;
use std::marker::PhantomData;

/// Changes of a `DiskMap` that are made [atomically](super::DiskMap::write), in the order of their
/// calls.
pub struct DiskBatch<K, V> {
    bytes: Batch,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> DiskBatch<K, V> {
    /// Returns an empty batch.
    #[must_use]
    pub fn new() -> Self {
        DiskBatch {
            bytes: Batch::new(),
            types: PhantomData,
        }
    }

    pub(super) fn as_bytes(&self) -> &Batch {
        &self.bytes
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Refused`].
    pub fn put(&mut self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<(), Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        self.bytes.put(key.as_slice(), value.as_slice())
    }

    /// Removes a key.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn remove(&mut self, key: impl AsKey<K>) -> Result<(), Error> {
        self.bytes.delete(key::bytes_of(&key).as_slice())
    }

    /// Removes all keys in a range.
    ///
    /// # Errors
    /// [`Error::TooLong`].
    pub fn remove_range(&mut self, keys: impl KeyBounds<K>) -> Result<(), Error> {
        self.bytes.delete_range(keys.to_bytes().as_range())
    }

    /// Merges a value into the value of a key. A map that cannot merge refuses the batch.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Refused`].
    pub fn merge(&mut self, key: impl AsKey<K>, value: impl AsValue<V>) -> Result<(), Error> {
        let (key, value) = (encode_key(&key)?, encode_value(&value)?);
        self.bytes.merge(key.as_slice(), value.as_slice())
    }

    /// Returns the number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns `true` if the batch is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Removes all changes from the batch.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

impl<K: Key, V: Value> Default for DiskBatch<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> fmt::Debug for DiskBatch<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes = self.bytes.len();
        f.debug_struct("DiskBatch")
            .field("changes", &changes)
            .finish_non_exhaustive()
    }
}
