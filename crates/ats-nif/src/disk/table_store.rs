//! The store of a table in a directory: one record for each key, or for each object of a bag.

use super::replace::Replace;
use ats_disk::{AtomicStore, BagStore, DiskStore, Snapshot};
use ats_store::store::Visit;
use ats_store::{BagValues, Error, Lifetime, MayBlock, Merges, Store};
use std::sync::Arc;

/// The store of a table in a directory.
pub enum TableStore {
    /// A record for each key. That of a bag whose objects expire has all objects of the key.
    Keys(AtomicStore),
    /// A record for each object.
    Objects(BagStore),
}

impl TableStore {
    /// Creates the store of a table on the records of its directory. `bag` is, for a bag, the rule
    /// by which objects are equal, and whether keys may exist whose objects share one record.
    pub fn new(store: DiskStore, bag: Option<(Arc<dyn BagValues>, bool)>) -> Self {
        match bag {
            None => TableStore::Keys(AtomicStore::new(store)),
            Some((identity, has_shared)) => {
                TableStore::Objects(BagStore::new(store, identity, has_shared))
            }
        }
    }

    /// Returns the store as tables use it: a record for each key.
    pub fn keys(&self) -> &dyn Store {
        match self {
            TableStore::Keys(store) => store,
            TableStore::Objects(store) => store,
        }
    }

    /// Returns the raw records. Those of a bag are not changed through this.
    fn records(&self) -> &AtomicStore {
        match self {
            TableStore::Keys(store) => store,
            TableStore::Objects(store) => store.records(),
        }
    }

    /// Returns the store's file layer.
    pub fn files(&self) -> &DiskStore {
        self.records().store()
    }

    /// Returns the keys of a snapshot as an immutable store. O(1).
    pub fn freeze(&self, snapshot: Snapshot) -> Box<dyn Store> {
        match self {
            TableStore::Keys(_) => snapshot.into_store(),
            TableStore::Objects(_) => snapshot.into_bag_store(),
        }
    }

    /// Lends the value of a key to `read`, merged or not. Returns `true` if the key exists.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn read(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.keys().get(may_block, key, read)
    }

    /// Writes an operand to a key, without reading the key unless its object may have expired. The
    /// object keeps its deadline.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn merge(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        operand: &[u8],
    ) -> Result<(), Error> {
        match self.keys().expires() {
            None => self.records().merge(may_block, key, operand),
            Some(_) => {
                let operand = Lifetime::Kept.before(operand);
                self.records().merge(may_block, key, &operand)
            }
        }
    }

    /// Writes the value of a key without reading the key.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn put_unread(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        Ok(self.records().put_unread(may_block, key, value)?)
    }

    /// Removes a key without reading it.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn delete_unread(&self, may_block: Option<MayBlock>, key: &[u8]) -> Result<(), Error> {
        Ok(self.records().delete_unread(may_block, key)?)
    }

    /// Replaces the value of a key, or its beginning. Returns `false` if the value has changed
    /// meanwhile.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn replace(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        mut by: Replace<'_>,
    ) -> Result<bool, Error> {
        self.keys().update(may_block, &[key], &mut by)
    }

    /// Replaces all records by those that `scan` shows; see [`AtomicStore::replace_all`].
    ///
    /// # Errors
    /// Returns the errors of `scan` and of the store; nothing has changed then.
    pub fn replace_all(
        &self,
        may_block: Option<MayBlock>,
        scan: impl FnOnce(&mut Visit<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            TableStore::Keys(store) => store.replace_all(may_block, scan),
            TableStore::Objects(store) => store.replace_all(may_block, scan),
        }
    }
}
