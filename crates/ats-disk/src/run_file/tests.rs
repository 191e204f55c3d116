//! The common ground of the tests of run files: files in memory, and a model of their content.

mod damage;
mod format;
mod io;
mod model;

use super::*;
use crate::blocking::BLOCK;
use crate::coding::Decoder;
use crate::entry::Kind;
use crate::error::Error;
use crate::ids::{FileNumber, Seq};
use crate::operator_id::OperatorId;
use crate::options::{Compression, Options};
use crate::range_deletes::RangeSet;
use crate::run_file::block_cache::BlockCache;
use crate::run_file::cursor::FileCursor;
use crate::{cursor::Cursor, fs};
use ats_store::{Direction, KeyRange};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io as std_io;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A file in memory, which notes its calls.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Content>>);

#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    /// Offset and length of each read.
    reads: Vec<(u64, usize)>,
    /// The length that had been written at each sync.
    syncs: Vec<usize>,
    /// After this many calls, all calls fail.
    fails_after: Option<usize>,
}

impl Memory {
    fn holding(bytes: &[u8]) -> Self {
        let memory = Memory::default();
        memory.0.lock().bytes = bytes.to_vec();
        memory
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().bytes.clone()
    }

    /// Returns the reads since the last call of this.
    fn take_reads(&self) -> Vec<(u64, usize)> {
        std::mem::take(&mut self.0.lock().reads)
    }

    fn call(&self) -> std_io::Result<parking_lot::MutexGuard<'_, Content>> {
        let mut content = self.0.lock();
        match &mut content.fails_after {
            Some(0) => return Err(std_io::ErrorKind::StorageFull.into()),
            Some(calls) => *calls -= 1,
            None => {}
        }
        Ok(content)
    }
}

impl fs::File for Memory {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std_io::Result<usize> {
        let mut content = self.call()?;
        content.reads.push((offset, buffer.len()));
        let there = content.bytes.get(offset as usize..).unwrap_or_default();
        let read = there.len().min(buffer.len());
        buffer[..read].copy_from_slice(&there[..read]);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> std_io::Result<()> {
        let mut content = self.call()?;
        let end = offset as usize + bytes.len();
        let longer = end.max(content.bytes.len());
        content.bytes.resize(longer, 0);
        content.bytes[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> std_io::Result<()> {
        let mut content = self.call()?;
        let bytes = content.bytes.len();
        content.syncs.push(bytes);
        Ok(())
    }

    fn len(&self) -> std_io::Result<u64> {
        Ok(self.call()?.bytes.len() as u64)
    }

    fn set_len(&self, bytes: u64) -> std_io::Result<()> {
        self.call()?.bytes.resize(bytes as usize, 0);
        Ok(())
    }

    fn reserve(&self, _bytes: u64) -> std_io::Result<()> {
        Ok(())
    }
}

const IDENTITY: Identity = Identity {
    store: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
    number: FileNumber::new(42),
};

type Entries = Vec<(Kind, Vec<u8>)>;
/// The entries of each key, from the newest to the oldest.
type Records = BTreeMap<Vec<u8>, Entries>;
type Range = (Option<Vec<u8>>, Option<Vec<u8>>);

fn options(block_bytes: usize) -> Options {
    Options {
        block_bytes,
        compression: Compression::None,
        ..Options::default()
    }
}

fn settings(block_bytes: usize) -> Settings {
    Settings::new(&options(block_bytes))
}

/// Settings with which small files, too, have several parts.
fn with_parts(part_bytes: usize, options: &Options) -> Settings {
    let mut settings = Settings::new(options);
    settings.part_bytes = part_bytes;
    settings
}

fn set_of(ranges: &[Range]) -> RangeSet {
    let ranges = ranges.iter().map(|(low, high)| KeyRange {
        low: low.as_deref(),
        high: high.as_deref(),
    });
    ranges.collect()
}

/// Writes a file.
fn write(
    identity: Identity,
    records: &Records,
    ranges: &[Range],
    settings: &Settings,
) -> (Memory, FileMeta) {
    write_between(identity, records, ranges, settings, (None, None))
}

/// Writes a file whose bounds lie between these.
fn write_between(
    identity: Identity,
    records: &Records,
    ranges: &[Range],
    settings: &Settings,
    between: (Option<&[u8]>, Option<&[u8]>),
) -> (Memory, FileMeta) {
    let memory = Memory::default();
    let mut writer = FileWriter::new(Box::new(memory.clone()), identity, settings);
    for (key, entries) in records {
        for (kind, value) in entries {
            writer.add(key, *kind, value).expect("it may be added");
        }
    }
    let meta = writer.finish(Seq::new(1), Seq::new(1000), &set_of(ranges), between);
    let meta = meta.expect("memory does not fail");
    (memory, meta)
}

fn open_with(memory: &Memory, meta: &FileMeta, cache_bytes: usize) -> Result<Arc<RunFile>, Error> {
    let identity = Identity {
        number: meta.number,
        ..IDENTITY
    };
    let cache = Arc::new(BlockCache::new(cache_bytes));
    let file = Box::new(memory.clone());
    RunFile::open(file, meta.clone(), identity, None, cache).map(Arc::new)
}

fn open(memory: &Memory, meta: &FileMeta) -> Arc<RunFile> {
    open_with(memory, meta, 1 << 20).expect("it was written like that")
}

/// Returns the entries that a lookup shows of a key.
fn get(file: &RunFile, key: &[u8]) -> Result<Entries, Error> {
    let mut entries = Entries::new();
    file.get(BLOCK, key, key_hash(key), &mut |kind, value| {
        entries.push((kind, value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

/// Returns the entries that a cursor shows where it stands.
fn current(cursor: &dyn Cursor) -> Option<(Vec<u8>, Entries)> {
    let key = cursor.key()?.to_vec();
    let entries = (0..cursor.entries()).map(|index| cursor.entry(index));
    let entries = entries.map(|(kind, value)| (kind, value.to_vec()));
    Some((key, entries.collect()))
}

/// Returns the entries that a cursor shows from a bound on: at most this many keys.
fn walk(
    cursor: &mut dyn Cursor,
    direction: Direction,
    bound: Option<&[u8]>,
    keys: usize,
) -> Result<Vec<(Vec<u8>, Entries)>, Error> {
    let mut shown = Vec::new();
    cursor.seek(BLOCK, direction, bound)?;
    while shown.len() < keys
        && let Some(record) = current(cursor)
    {
        shown.push(record);
        cursor.advance(BLOCK)?;
    }
    Ok(shown)
}

/// Returns the entries that it should show.
fn walk_model(
    records: &Records,
    direction: Direction,
    bound: Option<&[u8]>,
    keys: usize,
) -> Vec<(Vec<u8>, Entries)> {
    let allowed = |key: &[u8]| match (direction, bound) {
        (_, None) => true,
        (Direction::Up, Some(bound)) => key >= bound,
        (Direction::Down, Some(bound)) => key < bound,
    };
    let records = records.iter().filter(|(key, _)| allowed(key));
    let records = records.map(|(key, entries)| (key.clone(), entries.clone()));
    match direction {
        Direction::Up => records.take(keys).collect(),
        Direction::Down => records.rev().take(keys).collect(),
    }
}

fn put(value: &[u8]) -> Entries {
    vec![(Kind::Put, value.to_vec())]
}

/// Records with numbers as keys.
fn numbered_records(count: u32, value: usize) -> Records {
    let keys = (0..count).map(|number| format!("key-{number:08}").into_bytes());
    keys.map(|key| {
        let value = [&key[..], &vec![b'.'; value]].concat();
        (key, put(&value))
    })
    .collect()
}
