//! redb: a copy-on-write B+ tree in Rust, one file, transactions, without merge operators.
//!
//! A commit of redb either syncs or stays in the memory of the process. So that a write that is not
//! durable is handed to the system as it is in the other engines, commits are complete ones on a
//! file whose syncs do nothing.

use super::{BUFFER_BYTES, CACHE_BYTES, Engine, Merging, Outcome, Profile, read_and_write};
use crate::data::Record;
use redb::backends::FileBackend;
use redb::{
    BackendError, Database, ReadOnlyTable, ReadableDatabase, ReadableTable, StorageBackend, Table,
    TableDefinition,
};
use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const PROFILE: Profile = Profile {
    name: "redb",
    package: "redb",
    keeps_writes: true,
    merges: false,
    in_osmos: false,
    open,
};

const ROWS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("rows");

type Rows = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// The file of redb, whose syncs are done only if the commit is to be durable.
#[derive(Debug)]
struct SyncAtWill {
    file: FileBackend,
    syncs: Arc<AtomicBool>,
}

impl StorageBackend for SyncAtWill {
    fn len(&self) -> Result<u64, io::Error> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        if self.syncs.load(Ordering::Relaxed) {
            self.file.sync_data()
        } else {
            Ok(())
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.file.write(offset, data)
    }

    fn close(&self) -> Result<(), io::Error> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

struct Redb {
    database: Database,
    syncs: Arc<AtomicBool>,
    /// The view that reads share as long as nothing is written.
    view: Mutex<Option<Arc<Rows>>>,
    merging: Merging,
}

fn open(folder: &Path, merging: Merging) -> Outcome<Box<dyn Engine>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let syncs = Arc::new(AtomicBool::new(true));
    let backend = SyncAtWill {
        file: FileBackend::new(options.open(folder.join("rows.redb"))?)?,
        syncs: Arc::clone(&syncs),
    };
    // One cache serves reads and writes.
    let database = Database::builder()
        .set_cache_size(CACHE_BYTES + BUFFER_BYTES)
        .create_with_backend(backend)?;
    let engine = Redb {
        database,
        syncs,
        view: Mutex::default(),
        merging,
    };
    engine.write(true, |_| Ok(()))?;
    Ok(Box::new(engine))
}

impl Redb {
    fn write(
        &self,
        durable: bool,
        work: impl FnOnce(&mut Table<'_, &'static [u8], &'static [u8]>) -> Outcome<()>,
    ) -> Outcome<()> {
        // A view keeps pages from being used again.
        self.forget_view();
        self.syncs.store(durable, Ordering::Relaxed);
        let transaction = self.database.begin_write()?;
        work(&mut transaction.open_table(ROWS)?)?;
        transaction.commit()?;
        // Another thread may have taken one meanwhile, which does not see this write.
        self.forget_view();
        Ok(())
    }

    fn forget_view(&self) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn view(&self) -> Outcome<Arc<Rows>> {
        let mut view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = &*view {
            return Ok(Arc::clone(rows));
        }
        let rows = Arc::new(self.database.begin_read()?.open_table(ROWS)?);
        Ok(Arc::clone(view.insert(rows)))
    }
}

impl Engine for Redb {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Outcome<()> {
        self.write(durable, |rows| {
            rows.insert(key, value)?;
            Ok(())
        })
    }

    fn put_all(&self, records: &[Record], durable: bool) -> Outcome<()> {
        self.write(durable, |rows| {
            for record in records {
                rows.insert(record.key.as_slice(), record.value.as_slice())?;
            }
            Ok(())
        })
    }

    fn remove(&self, key: &[u8]) -> Outcome<()> {
        self.write(false, |rows| {
            rows.remove(key)?;
            Ok(())
        })
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Outcome<()> {
        read_and_write(self, self.merging, key, operand)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Outcome<bool> {
        let view = self.view()?;
        let found = view.get(key)?;
        if let Some(value) = &found {
            see(value.value());
        }
        Ok(found.is_some())
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        let view = self.view()?;
        for row in ReadableTable::range::<&[u8]>(&*view, from..)?.take(count) {
            let (key, value) = row?;
            see(key.value(), value.value());
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.write(true, |_| Ok(()))
    }
}
