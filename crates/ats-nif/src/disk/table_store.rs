//! The store of a table in a directory: one record for each key, or for each object of a bag.

use ats_disk::{AtomicStore, BagStore, DiskStore, Error, Snapshot};
use ats_store::store::Visit;
use ats_store::{BagValues, Store};
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
    pub fn records(&self) -> &AtomicStore {
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
            TableStore::Keys(_) => snapshot.frozen(),
            TableStore::Objects(_) => snapshot.frozen_bags(),
        }
    }

    /// See [`AtomicStore::replace_all`].
    ///
    /// # Errors
    /// Those of [`AtomicStore::replace_all`].
    pub fn replace_all<E: From<Error>>(
        &self,
        scan: impl FnOnce(&mut Visit<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            TableStore::Keys(store) => store.replace_all(scan),
            TableStore::Objects(store) => store.replace_all(scan),
        }
    }
}
