//! Tables on disk.

#[path = "../../../../ats-disk/tests/support/directory.rs"]
mod directory;

use super::{TermTable, on_store};
use ats::{Direction, End, KeyRange, Store, TableType};
use ats_disk::{AtomicStore, DiskStore, Options};
use ats_store::store::{DecideEnd, Visit};
use ats_store::{BatchPlan, Error};
pub(crate) use directory::Directory;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// A store so small that memtables are written and runs merged all the time. It is opened anew now and then.
struct OnDisk {
    /// Nothing while it is opened anew.
    store: RwLock<Option<AtomicStore>>,
    directory: Directory,
    changes: AtomicUsize,
}

fn open(directory: &Directory) -> AtomicStore {
    let options = Options {
        memtable_bytes: Some(3_000),
        cache_bytes: Some(20_000),
        block_bytes: 100,
        file_bytes: 1_000,
        fan_in: 2,
        background: false,
        ..Options::default()
    };
    AtomicStore::new(DiskStore::open(directory.path(), options).expect("opened"))
}

impl OnDisk {
    fn new() -> Self {
        let directory = Directory::new();
        OnDisk {
            store: RwLock::new(Some(open(&directory))),
            directory,
            changes: AtomicUsize::new(0),
        }
    }

    fn read<R>(&self, read: impl FnOnce(&AtomicStore) -> R) -> R {
        let store: RwLockReadGuard<'_, _> =
            self.store.read().unwrap_or_else(PoisonError::into_inner);
        read(store.as_ref().expect("it was opened"))
    }

    /// Does what threads in the background would do, so that it happens at the same places each time.
    fn work(&self) {
        let changes = self.changes.fetch_add(1, Ordering::Relaxed);
        let flushed = self.read(|store| match changes % 20 {
            7 => store.store().flush(),
            13 => store.store().compact(),
            _ => store.store().work().map(drop),
        });
        flushed.expect("there is room");
        if changes % 50 == 49 {
            let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
            *store = None;
            *store = Some(open(&self.directory));
        }
    }
}

impl Store for OnDisk {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        self.read(|store| store.get(key, read))
    }

    fn update(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        let updated = self.read(|store| store.update(keys, plan));
        self.work();
        updated
    }

    fn update_end(&self, end: End, decide: &mut DecideEnd<'_>) -> Result<(), Error> {
        let updated = self.read(|store| store.update_end(end, decide));
        self.work();
        updated
    }

    fn scan(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        self.read(|store| store.scan(key_range, direction, visit))
    }

    fn len(&self) -> Result<usize, Error> {
        self.read(Store::len)
    }

    fn bytes(&self) -> usize {
        self.read(Store::bytes)
    }

    fn most_bytes(&self) -> usize {
        self.read(Store::most_bytes)
    }

    fn take_all(&self) -> Result<Box<dyn Store>, Error> {
        self.read(Store::take_all)
    }
}

/// A table on disk.
pub(crate) fn on_disk(kind: TableType, key_position: usize) -> TermTable {
    on_store(OnDisk::new(), kind, key_position)
}
