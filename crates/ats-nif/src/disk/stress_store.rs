//! A store on disk for tests, in which a few calls cause the events of days.
//!
//! Memtables and files hold a few records. At changes that depend only on their number, the store
//! is closed and reopened, abandoned as by a killed process, flushed, or compacted into one run. It
//! removes its directory when it is dropped.

use super::table_store::TableStore;
use crate::process;
use ats_disk::{DiskStore, MAX_BYTES, Options};
use ats_store::store::{DecideEnd, Visit};
use ats_store::{
    AddRule, BagValues, Bags, BatchPlan, Direction, End, Error, KeyRange, MayBlock, Store,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, TryLockError};

/// See the [module](self).
pub struct StressStore {
    /// The store; `None` while it is reopened.
    store: RwLock<Option<TableStore>>,
    directory: PathBuf,
    /// The rule by which objects of a bag are equal.
    identity: Option<Arc<dyn BagValues>>,
    changes: AtomicUsize,
    /// Number of the change up to which all events have happened.
    done: AtomicUsize,
}

fn open(
    directory: &Path,
    identity: Option<&Arc<dyn BagValues>>,
) -> Result<TableStore, ats_disk::Error> {
    let options = Options::new()
        .memtable_bytes(3_000)
        .cache_bytes(20_000)
        .block_bytes(100)
        .file_bytes(1_000)
        .fan_in(2)
        .background(false);
    let bag = identity.map(|identity| (Arc::clone(identity), false));
    Ok(TableStore::new(DiskStore::open(directory, options)?, bag))
}

/// Number of changes per event.
const EVERY: usize = 5;

impl StressStore {
    /// Creates an empty store in a new directory. For a bag, `identity` is the rule by which
    /// objects are equal.
    ///
    /// # Errors
    /// Returns the errors of [`DiskStore::open`].
    pub fn new(
        directory: &Path,
        identity: Option<Arc<dyn BagValues>>,
    ) -> Result<Self, ats_disk::Error> {
        Ok(StressStore {
            store: RwLock::new(Some(open(directory, identity.as_ref())?)),
            directory: directory.to_owned(),
            identity,
            changes: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        })
    }

    fn read<R>(
        &self,
        may_block: Option<MayBlock>,
        read: impl FnOnce(&TableStore) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let store = match may_block {
            Some(_) => self.store.read().unwrap_or_else(PoisonError::into_inner),
            None => match self.store.try_read() {
                Ok(store) => store,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Err(Error::WouldBlock),
            },
        };
        read(store.as_ref().expect("it was opened"))
    }

    fn change<R>(
        &self,
        may_block: Option<MayBlock>,
        change: impl FnOnce(&TableStore) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let due = self.changes.load(Ordering::Relaxed) / EVERY;
        if self.done.load(Ordering::Relaxed) < due {
            let may_block = may_block.ok_or(Error::WouldBlock)?;
            if self.done.swap(due, Ordering::Relaxed) < due {
                self.run_event(may_block, due)?;
            }
        }
        let changed = self.read(may_block, change)?;
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(changed)
    }

    /// Causes the event of the change with this number.
    fn run_event(&self, may_block: MayBlock, number: usize) -> Result<(), Error> {
        match number % 7 {
            1 | 4 => self.reopen(number.is_multiple_of(2))?,
            2 => self.read(Some(may_block), |store| Ok(store.files().flush()?))?,
            5 => self.read(Some(may_block), |store| Ok(store.files().compact()?))?,
            _ => {
                let _done = self.read(Some(may_block), |store| Ok(store.files().work()?))?;
            }
        }
        Ok(())
    }

    fn reopen(&self, closes: bool) -> Result<(), Error> {
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = store.take()
            && closes
        {
            store.files().close()?;
        }
        *store = Some(open(&self.directory, self.identity.as_ref())?);
        Ok(())
    }
}

impl Drop for StressStore {
    fn drop(&mut self) {
        self.store = RwLock::default();
        // A directory that cannot be removed shows up in the directory of the tests.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Store for StressStore {
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.read(may_block, |store| store.keys().get(may_block, key, read))
    }

    fn update(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        self.change(may_block, |store| {
            store.keys().update(may_block, keys, plan)
        })
    }

    fn update_end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), Error> {
        self.change(may_block, |store| {
            store.keys().update_end(may_block, end, decide)
        })
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        self.read(may_block, |store| {
            store.keys().scan(may_block, key_range, direction, visit)
        })
    }

    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, Error> {
        self.read(may_block, |store| store.keys().len(may_block))
    }

    fn sum(
        &self,
        may_block: Option<MayBlock>,
        weigh: &dyn Fn(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        self.read(may_block, |store| store.keys().sum(may_block, weigh))
    }

    fn take_all(&self, may_block: Option<MayBlock>) -> Result<Box<dyn Store>, Error> {
        self.change(may_block, |store| store.keys().take_all(may_block))
    }

    fn bytes(&self) -> usize {
        self.read(process::may_block(), |store| Ok(store.keys().bytes()))
            .unwrap_or(0)
    }

    fn most_bytes(&self) -> usize {
        MAX_BYTES
    }

    fn bags(&self) -> Option<&dyn Bags> {
        self.identity.is_some().then_some(self as &dyn Bags)
    }
}

/// Returns the bag operations of the store of a bag.
fn bags_of(store: &TableStore) -> &dyn Bags {
    let bags = store.keys().bags();
    bags.expect("it was opened as the store of a bag")
}

impl Bags for StressStore {
    fn add(
        &self,
        may_block: Option<MayBlock>,
        values: &[(&[u8], &[u8])],
        rule: AddRule,
    ) -> Result<bool, Error> {
        self.change(may_block, |store| {
            bags_of(store).add(may_block, values, rule)
        })
    }

    fn remove(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        value: &[u8],
        most: usize,
    ) -> Result<Option<usize>, Error> {
        self.change(may_block, |store| {
            bags_of(store).remove(may_block, key, value, most)
        })
    }

    fn values(&self, may_block: Option<MayBlock>) -> Result<usize, Error> {
        self.read(may_block, |store| bags_of(store).values(may_block))
    }
}
