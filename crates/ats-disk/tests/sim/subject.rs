//! The stores that are tested.

use super::fs::SimFs;
use super::liar::{Liar, Lie};
use super::model::Change;
use super::random::Random;
use ats_disk::Error;
use ats_disk::fs::FileSystem;
use ats_store::{Direction, KeyRange};
use std::sync::Arc;

/// All records of a store, or of a part of it.
pub(crate) type Content = Vec<(Vec<u8>, Vec<u8>)>;

/// The options of a store. The sizes are small, so that short histories take every path.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) memtable_bytes: usize,
    pub(crate) cache_bytes: usize,
    pub(crate) block_bytes: usize,
    pub(crate) file_bytes: u64,
    pub(crate) fan_in: usize,
    pub(crate) compressed: bool,
    pub(crate) filtered: bool,
    /// `true` if the file system makes room ahead of writes. Some do nothing.
    pub(crate) reserves: bool,
    /// A duty that the file system neglects.
    pub(crate) lie: Option<Lie>,
}

impl Setup {
    pub(crate) fn random(random: &mut Random) -> Self {
        Setup {
            memtable_bytes: random.pick(&[400, 1000, 2000, 1 << 20]),
            cache_bytes: random.pick(&[0, 2000, 1 << 20]),
            block_bytes: random.pick(&[64, 200, 1000]),
            file_bytes: random.pick(&[300, 1000, 1 << 20]),
            fan_in: random.pick(&[2, 2, 3, 4]),
            compressed: random.one_in(2),
            filtered: random.one_in(2),
            reserves: random.one_in(6),
            lie: None,
        }
    }

    /// Makes the same with other sizes, as the next opening may have them.
    pub(crate) fn with_other_sizes(&self, random: &mut Random) -> Self {
        let sizes = Setup::random(random);
        Setup {
            reserves: self.reserves,
            lie: self.lie,
            ..sizes
        }
    }

    /// Returns `true` if memtables are so small that a history fills them.
    pub(crate) fn is_small(&self) -> bool {
        self.memtable_bytes < 1 << 20
    }

    /// Returns the file system that a store gets.
    pub(crate) fn file_system(&self, fs: &SimFs) -> Arc<dyn FileSystem> {
        fs.set_reserves(self.reserves);
        match self.lie {
            Some(lie) => Arc::new(Liar::new(fs.clone(), lie)),
            None => Arc::new(fs.clone()),
        }
    }
}

/// A store whose writes survive.
pub(crate) trait Subject: Sized {
    type Snapshot;

    /// `true` if all that was written survives a stop of the machine after `flush`, and after
    /// `close`.
    const FLUSH_SYNCS: bool;
    const CLOSE_SYNCS: bool;

    /// `true` if a store notices the loss of writes that were synced, even if no write that says so
    /// follows them.
    const MARKS_SYNCS: bool;

    /// Path of its directory.
    const PATH: &str;

    fn open(setup: &Setup, fs: &SimFs) -> Result<Self, Error>;

    /// Opens it for reading only; nothing if it cannot.
    fn open_for_reading(setup: &Setup, fs: &SimFs) -> Result<Option<Self>, Error>;

    /// Changes that are all done or none of them; if they are synced, they and all before survive a
    /// stop.
    fn write(&self, changes: &[Change], synced: bool) -> Result<(), Error>;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    fn scan(&self, range: KeyRange<'_>, direction: Direction) -> Result<Content, Error>;

    fn snapshot(&self) -> Result<Self::Snapshot, Error>;

    /// Returns all records of a snapshot.
    fn scan_snapshot(snapshot: &Self::Snapshot, direction: Direction) -> Result<Content, Error>;

    fn get_snapshot(snapshot: &Self::Snapshot, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    fn sync(&self) -> Result<(), Error>;

    /// Syncs the store, and closes the files that it can open again.
    fn rest(&self) -> Result<(), Error> {
        self.sync()
    }

    fn flush(&self) -> Result<(), Error>;

    fn compact(&self) -> Result<(), Error>;

    fn work(&self) -> Result<bool, Error>;

    fn close(self) -> Result<(), Error>;
}
