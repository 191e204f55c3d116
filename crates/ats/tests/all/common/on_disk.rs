//! Tables on disk.

#[path = "../../../../ats-disk/tests/support/directory.rs"]
mod directory;

use super::{TermTable, on_store};
use ats::terms::{Direction, End, KeyRange, ObjectIdentity, Store, TableType, TermCodec, Zeros};
use ats_disk::{AtomicStore, BagStore, DiskStore, Options};
use ats_store::store::{DecideEnd, Visit};
use ats_store::{AddRule, Bags, BatchPlan, Error, Expires, Lifetime, MayBlock};
pub(crate) use directory::Directory;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// A store that is so small that it writes memtables and compacts runs all the time. It is reopened
/// now and then.
struct OnDisk {
    /// The open store; `None` while it is reopened.
    store: RwLock<Option<Open>>,
    directory: Directory,
    /// `true` if each object of a bag is a record.
    is_bag: bool,
    /// `true` if records may expire.
    expires: bool,
    changes: AtomicUsize,
}

struct Open {
    files: DiskStore,
    records: Box<dyn Store>,
}

fn open(directory: &Directory, is_bag: bool, expires: bool) -> Open {
    let mut options = Options::new()
        .memtable_bytes(3_000)
        .cache_bytes(20_000)
        .block_bytes(100)
        .file_bytes(1_000)
        .fan_in(2)
        .background(false);
    options.lifetime = expires.then_some(Lifetime::Forever);
    let files = DiskStore::open(directory.path(), options).expect("opened");
    let store = files.clone();
    let zeros = Zeros::Distinct;
    let identity = || ObjectIdentity::new(Arc::new(TermCodec { zeros }), zeros);
    let records: Box<dyn Store> = if is_bag {
        Box::new(BagStore::new(store, Arc::new(identity()), false))
    } else {
        Box::new(AtomicStore::new(store))
    };
    Open { files, records }
}

impl OnDisk {
    fn new(is_bag: bool, expires: bool) -> Self {
        let directory = Directory::new();
        OnDisk {
            store: RwLock::new(Some(open(&directory, is_bag, expires))),
            directory,
            is_bag,
            expires,
            changes: AtomicUsize::new(0),
        }
    }

    fn open<R>(&self, read: impl FnOnce(&Open) -> R) -> R {
        let store: RwLockReadGuard<'_, _> =
            self.store.read().unwrap_or_else(PoisonError::into_inner);
        read(store.as_ref().expect("it was opened"))
    }

    fn read<R>(&self, read: impl FnOnce(&dyn Store) -> R) -> R {
        self.open(|open| read(&*open.records))
    }

    fn read_bags<R>(&self, read: impl FnOnce(&dyn Bags) -> R) -> R {
        self.read(|store| read(store.bags().expect("it is that of a bag")))
    }

    /// Does the work of the background threads, so that it happens at the same points of each run.
    fn work(&self) {
        let changes = self.changes.fetch_add(1, Ordering::Relaxed);
        let flushed = self.open(|open| match changes % 20 {
            7 => open.files.flush(),
            13 => open.files.compact(),
            _ => open.files.work().map(drop),
        });
        flushed.expect("there is room");
        if changes % 50 == 49 {
            let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
            *store = None;
            *store = Some(open(&self.directory, self.is_bag, self.expires));
        }
    }
}

impl Store for OnDisk {
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.read(|store| store.get(may_block, key, read))
    }

    fn update(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        let updated = self.read(|store| store.update(may_block, keys, plan));
        self.work();
        updated
    }

    fn update_end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), Error> {
        let updated = self.read(|store| store.update_end(may_block, end, decide));
        self.work();
        updated
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        self.read(|store| store.scan(may_block, key_range, direction, visit))
    }

    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, Error> {
        self.read(|store| store.len(may_block))
    }

    fn bytes(&self) -> usize {
        self.read(|store| store.bytes())
    }

    fn most_bytes(&self) -> usize {
        self.read(|store| store.most_bytes())
    }

    fn take_all(&self, may_block: Option<MayBlock>) -> Result<Box<dyn Store>, Error> {
        self.read(|store| store.take_all(may_block))
    }

    fn expires(&self) -> Option<&dyn Expires> {
        self.expires.then_some(self as &dyn Expires)
    }

    fn bags(&self) -> Option<&dyn Bags> {
        self.is_bag.then_some(self as &dyn Bags)
    }
}

impl Expires for OnDisk {
    fn time_left(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
    ) -> Result<Option<Lifetime>, Error> {
        self.read(|store| store.expires().expect("it does").time_left(may_block, key))
    }

    fn set_lifetime(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        lifetime: Lifetime,
    ) -> Result<bool, Error> {
        self.read(|store| {
            let expires = store.expires().expect("it does");
            expires.set_lifetime(may_block, key, lifetime)
        })
    }

    fn expired(&self) -> u64 {
        self.read(|store| store.expires().expect("it does").expired())
    }
}

impl Bags for OnDisk {
    fn add(
        &self,
        may_block: Option<MayBlock>,
        values: &[(&[u8], &[u8])],
        rule: AddRule,
    ) -> Result<bool, Error> {
        let added = self.read_bags(|bags| bags.add(may_block, values, rule));
        self.work();
        added
    }

    fn remove(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        value: &[u8],
        most: usize,
    ) -> Result<Option<usize>, Error> {
        let removed = self.read_bags(|bags| bags.remove(may_block, key, value, most));
        self.work();
        removed
    }

    fn values(&self, may_block: Option<MayBlock>) -> Result<usize, Error> {
        self.read_bags(|bags| bags.values(may_block))
    }
}

/// Returns a table on disk.
pub(crate) fn on_disk(kind: TableType, key_position: usize) -> TermTable {
    on_store(OnDisk::new(kind.is_bag(), false), kind, key_position)
}

/// Returns a table on disk whose objects may expire.
pub(crate) fn expiring_on_disk(kind: TableType, key_position: usize) -> TermTable {
    on_store(OnDisk::new(false, true), kind, key_position)
}
