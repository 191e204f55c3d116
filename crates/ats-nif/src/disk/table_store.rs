//! The store of a table in a directory: one record for each key, or for each object of a bag.

use super::polite::politely;
use super::replace::Replace;
use ats_disk::{AtomicStore, BagStore, DiskStore, Snapshot};
use ats_store::store::Visit;
use ats_store::{BagValues, Error, Merges, Store};
use std::sync::Arc;

/// The store of a table in a directory.
pub enum TableStore {
    /// Each key has one record.
    Keys(AtomicStore),
    /// Each object has one.
    Objects(BagStore),
}

impl TableStore {
    /// The store of a table, on the records in its directory. `bag` tells, for a bag, which objects
    /// are equal, and whether there may be keys of which all objects are one record.
    pub fn new(store: DiskStore, bag: Option<(Arc<dyn BagValues>, bool)>) -> Self {
        match bag {
            None => TableStore::Keys(AtomicStore::new(store)),
            Some((identity, has_shared)) => {
                TableStore::Objects(BagStore::new(store, identity, has_shared))
            }
        }
    }

    /// The store as a table sees it: a record for each key.
    pub fn keys(&self) -> &dyn Store {
        match self {
            TableStore::Keys(store) => store,
            TableStore::Objects(store) => store,
        }
    }

    /// The records themselves. Those of a bag are not changed here.
    fn records(&self) -> &AtomicStore {
        match self {
            TableStore::Keys(store) => store,
            TableStore::Objects(store) => store.records(),
        }
    }

    /// The files.
    pub fn files(&self) -> &DiskStore {
        self.records().store()
    }

    /// The keys of a snapshot of the files, as a store that nothing changes. O(1).
    pub fn freeze(&self, snapshot: Snapshot) -> Box<dyn Store> {
        match self {
            TableStore::Keys(_) => snapshot.into_store(),
            TableStore::Objects(_) => snapshot.into_bag_store(),
        }
    }

    /// Lends the value of a key to `read`, merged or not. Returns `true` if there is one.
    ///
    /// # Errors
    /// Those of the store.
    pub fn read(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        politely(|| self.keys().get(key, read))
    }

    /// Merges an operand with the value of a key, without reading it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn merge(&self, key: &[u8], operand: &[u8]) -> Result<(), Error> {
        politely(|| self.records().merge(key, operand))
    }

    /// Gives a key a value, without reading what is there.
    ///
    /// # Errors
    /// Those of the store.
    pub fn put_unread(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        politely(|| Ok(self.records().put_unread(key, value)?))
    }

    /// Removes a key, without reading what is there.
    ///
    /// # Errors
    /// Those of the store.
    pub fn delete_unread(&self, key: &[u8]) -> Result<(), Error> {
        politely(|| Ok(self.records().delete_unread(key)?))
    }

    /// Replaces the value of a key, or its beginning. Returns `false` if the value is another one
    /// meanwhile.
    ///
    /// # Errors
    /// Those of the store.
    pub fn replace(&self, key: &[u8], mut by: Replace<'_>) -> Result<bool, Error> {
        politely(|| self.keys().update(&[key], &mut by))
    }

    /// Replaces all records by those that `scan` shows; see [`AtomicStore::replace_all`].
    ///
    /// # Errors
    /// Those of `scan` and of the store; nothing has changed then.
    pub fn replace_all(
        &self,
        scan: impl FnOnce(&mut Visit<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        politely(|| match self {
            TableStore::Keys(store) => store.replace_all(scan),
            TableStore::Objects(store) => store.replace_all(scan),
        })
    }
}
