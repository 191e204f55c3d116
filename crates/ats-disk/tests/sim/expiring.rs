//! A store whose records expire as a subject: a key is deleted by a record that has expired when it
//! is written.
//!
//! Each opening begins with the time of day at 0, so only the time that the files tell keeps such
//! records from coming back.

use super::bag_store::keys_of;
use super::disk_store;
use super::fs::SimFs;
use super::model::Change;
use super::subject::{Content, Setup, Subject};
use super::transaction::Transaction;
use ats_disk::{AtomicStore, DiskStore, Error, Lifetime, MayBlock, Options, Snapshot};
use ats_store::{Change as Becomes, Direction, KeyRange};
use std::path::Path;
use std::time::Duration;

/// The time of day of writes.
const NOW: Duration = Duration::from_secs(1000);
/// The deadline of records that stand for none.
const PAST: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(crate) struct Expiring {
    store: AtomicStore,
    fs: SimFs,
}

fn options(setup: &Setup, fs: &SimFs) -> Options {
    fs.set_wall_clock(Duration::ZERO);
    let mut options = disk_store::options(setup, fs);
    options.operator = None;
    options.lifetime(Lifetime::For(Duration::from_secs(60)))
}

impl Subject for Expiring {
    type Snapshot = Snapshot;
    const FLUSH_SYNCS: bool = true;
    const CLOSE_SYNCS: bool = true;
    const MARKS_SYNCS: bool = true;

    const PATH: &str = DiskStore::PATH;

    fn open(setup: &Setup, fs: &SimFs) -> Result<Self, Error> {
        let store = DiskStore::open(Path::new(Self::PATH), options(setup, fs))?;
        Ok(Expiring {
            store: AtomicStore::new(store),
            fs: fs.clone(),
        })
    }

    fn open_for_reading(setup: &Setup, fs: &SimFs) -> Result<Option<Self>, Error> {
        let options = options(setup, fs).read_only(true);
        match DiskStore::open(Path::new(Self::PATH), options) {
            // The store was never made.
            Err(Error::Missing) => Ok(None),
            opened => Ok(Some(Expiring {
                store: AtomicStore::new(opened?),
                fs: fs.clone(),
            })),
        }
    }

    fn write(&self, changes: &[Change], synced: bool) -> Result<(), Error> {
        self.fs.set_wall_clock(NOW);
        let keys: Vec<_> = keys_of(changes).into_iter().collect();
        let borrowed: Vec<_> = keys.iter().map(Vec::as_slice).collect();
        let becomes = |value: Option<&[u8]>| {
            Becomes::Put(match value {
                Some(value) if value.len() % 2 == 0 => Lifetime::OfStore.before(value),
                Some(value) => Lifetime::Forever.before(value),
                None => Lifetime::Until(PAST).before(b"it has expired"),
            })
        };
        let mut plan = Transaction::new(&keys, changes, <[u8]>::to_vec, becomes);
        let may_block = Some(MayBlock::here());
        self.store.update_keys(may_block, &borrowed, &mut plan)?;
        if synced {
            self.store.store().sync()
        } else {
            Ok(())
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.store.store().get(key)
    }

    fn scan(&self, range: KeyRange<'_>, direction: Direction) -> Result<Content, Error> {
        disk_store::collect(self.store.store().scan_lending(range, direction)?)
    }

    fn snapshot(&self) -> Result<Snapshot, Error> {
        Ok(self.store.store().snapshot())
    }

    fn scan_snapshot(snapshot: &Snapshot, direction: Direction) -> Result<Content, Error> {
        disk_store::collect(snapshot.scan_lending(.., direction)?)
    }

    fn get_snapshot(snapshot: &Snapshot, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        snapshot.get(key)
    }

    fn sync(&self) -> Result<(), Error> {
        self.store.store().sync()
    }

    fn rest(&self) -> Result<(), Error> {
        self.store.store().close_logs()
    }

    fn flush(&self) -> Result<(), Error> {
        self.store.store().flush()
    }

    fn compact(&self) -> Result<(), Error> {
        self.store.store().compact()
    }

    fn work(&self) -> Result<bool, Error> {
        self.store.store().work()
    }

    fn close(self) -> Result<(), Error> {
        self.store.store().close()
    }
}
