//! The engine as a subject.

use super::fs::SimFs;
use super::model::{Change, Mixed};
use super::subject::{Content, Setup, Subject};
use ats_disk::{Batch, Compression, DiskStore, Durability, Error, LendingScan, Options, Snapshot};
use ats_store::{Direction, KeyRange};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn options(setup: &Setup, fs: &SimFs) -> Options {
    Options::new()
        .file_system(setup.file_system(fs))
        .operator(Arc::new(Mixed))
        .durability(Durability::System)
        .memtable_bytes(setup.memtable_bytes)
        .cache_bytes(setup.cache_bytes)
        .block_bytes(setup.block_bytes)
        .file_bytes(setup.file_bytes)
        .compression(if setup.compressed {
            Compression::Lz4
        } else {
            Compression::None
        })
        .false_positives(if setup.filtered { 0.01 } else { 1.0 })
        .fan_in(setup.fan_in)
        .background(false)
}

pub(crate) fn collect(mut scan: LendingScan) -> Result<Content, Error> {
    let mut content = Vec::new();
    while let Some((key, value)) = scan.next()? {
        content.push((key.to_vec(), value.to_vec()));
    }
    Ok(content)
}

impl Subject for DiskStore {
    type Snapshot = Snapshot;
    const FLUSH_SYNCS: bool = true;
    const CLOSE_SYNCS: bool = true;
    const MARKS_SYNCS: bool = true;

    const PATH: &str = "/store";

    fn open(setup: &Setup, fs: &SimFs) -> Result<Self, Error> {
        DiskStore::open(Path::new(Self::PATH), options(setup, fs))
    }

    fn open_for_reading(setup: &Setup, fs: &SimFs) -> Result<Option<Self>, Error> {
        let options = options(setup, fs).read_only(true);
        match DiskStore::open(Path::new(Self::PATH), options) {
            // The store was never made.
            Err(Error::Missing) => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn write(&self, changes: &[Change], synced: bool) -> Result<(), Error> {
        let durability = if synced {
            Durability::Always
        } else {
            Durability::System
        };
        let mut batch = Batch::new();
        for change in changes {
            match change {
                Change::Put(key, value) => batch.put(key, value)?,
                Change::Delete(key) => batch.delete(key)?,
                Change::Merge(key, operand) => batch.merge(key, operand)?,
                Change::DeleteRange(low, high) => batch.delete_range(KeyRange {
                    low: low.as_deref(),
                    high: high.as_deref(),
                })?,
            }
        }
        self.write_with(&batch, durability)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        DiskStore::get(self, key)
    }

    fn scan(&self, range: KeyRange<'_>, direction: Direction) -> Result<Content, Error> {
        collect(DiskStore::scan_lending(self, range, direction)?)
    }

    fn snapshot(&self) -> Result<Snapshot, Error> {
        Ok(DiskStore::snapshot(self))
    }

    fn scan_snapshot(snapshot: &Snapshot, direction: Direction) -> Result<Content, Error> {
        collect(snapshot.scan_lending(KeyRange::default(), direction)?)
    }

    fn get_snapshot(snapshot: &Snapshot, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        snapshot.get(key)
    }

    fn sync(&self) -> Result<(), Error> {
        DiskStore::sync(self)
    }

    fn rest(&self) -> Result<(), Error> {
        DiskStore::close_logs(self)
    }

    fn flush(&self) -> Result<(), Error> {
        DiskStore::flush(self)
    }

    fn compact(&self) -> Result<(), Error> {
        DiskStore::compact(self)
    }

    fn work(&self) -> Result<bool, Error> {
        DiskStore::work(self)
    }

    fn close(self) -> Result<(), Error> {
        DiskStore::close(&self)
    }
}
