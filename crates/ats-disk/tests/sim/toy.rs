//! A store that proves the enumeration: a log in one file, right or with an injected fault.
//!
//! A record has a header and a payload, which is the changes of a write. The header has the length
//! of the payload, the checksum of the record before it, the offset up to which the log was synced
//! before, and a checksum over all of that and the payload. A log ends at the first bad record,
//! where the machine has stopped; if a later record says that the log was synced beyond that, it is
//! corrupt instead. When the store is opened or compacted, the log is replaced by one with a single
//! record, which must be good. So nothing depends on whether an earlier process has synced the
//! records that this one has read.

use super::fs::SimFs;
use super::model::{Change, State, apply};
use super::subject::{Content, Setup, Subject};
use ats_disk::Error;
use ats_disk::fs::{Directory, File, Sharing};
use ats_store::SystemError;
use ats_store::{Direction, KeyRange};
use parking_lot::Mutex;
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The fault of a toy.
pub(crate) mod injected {
    pub(crate) const NOTHING: u8 = 0;
    /// Checksums are not compared, so a torn record is taken as data.
    pub(crate) const UNCHECKED: u8 = 1;
    /// The log is appended to behind a torn record.
    pub(crate) const BEHIND: u8 = 2;
    /// The new log gets its name before it is synced.
    pub(crate) const RENAMED_EARLY: u8 = 3;
    /// The name of the new log is not synced.
    pub(crate) const NAME_UNSYNCED: u8 = 4;
    /// Each change is a record of its own.
    pub(crate) const IN_PARTS: u8 = 5;
    /// Writes return without a sync.
    pub(crate) const UNSYNCED: u8 = 6;
    /// A sync that fails is tried again.
    pub(crate) const TRIED_AGAIN: u8 = 7;
    /// Records that were read at the start are taken as durable.
    pub(crate) const TRUSTING: u8 = 8;
    /// The offset of a record is not used again when its write fails.
    pub(crate) const LEFT: u8 = 9;
    /// A log with a bad record is read up to it, even if it has records behind.
    pub(crate) const LENIENT: u8 = 10;
}

const DIRECTORY: &str = "/toy";
const LOG: &str = "log";
const NEW_LOG: &str = "log.new";
const HEADER: usize = 28;

/// A store with the injected fault `F`.
pub(crate) struct Toy<const F: u8> {
    directory: Arc<dyn Directory>,
    inner: Mutex<Inner>,
    _lock: Box<dyn Any + Send + Sync>,
}

struct Inner {
    state: State,
    log: Log,
    /// The reason why nothing is written any more.
    failed: Option<String>,
}

struct Log {
    file: Box<dyn File>,
    end: u64,
    synced: u64,
    chain: u64,
}

fn error(error: &io::Error) -> Error {
    Error::Io {
        error: SystemError::of(error),
        what: error.to_string(),
    }
}

fn put_bytes(payload: &mut Vec<u8>, bytes: &[u8]) {
    payload.extend((bytes.len() as u32).to_le_bytes());
    payload.extend(bytes);
}

fn encode(changes: &[Change]) -> Vec<u8> {
    let mut payload = vec![0];
    for change in changes {
        let (tag, parts) = match change {
            Change::Put(key, value) => (0, [Some(key), Some(value)]),
            Change::Delete(key) => (1, [Some(key), None]),
            Change::Merge(key, value) => (2, [Some(key), Some(value)]),
            Change::DeleteRange(low, high) => (3, [low.as_ref(), high.as_ref()]),
        };
        payload.push(tag);
        for part in parts {
            payload.push(u8::from(part.is_some()));
            put_bytes(&mut payload, part.map_or(&[], |part| part));
        }
    }
    payload
}

fn take<'p>(payload: &mut &'p [u8], bytes: usize) -> Option<&'p [u8]> {
    let (taken, rest) = payload.split_at_checked(bytes)?;
    *payload = rest;
    Some(taken)
}

#[expect(
    clippy::option_option,
    reason = "the payload ends early, or has no part"
)]
fn take_part(payload: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    let is_there = take(payload, 1)?[0] == 1;
    let len = u32::from_le_bytes(take(payload, 4)?.try_into().ok()?);
    let part = take(payload, len as usize)?.to_vec();
    Some(is_there.then_some(part))
}

fn decode(mut payload: &[u8]) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    take(&mut payload, 1)?;
    while let Some(tag) = take(&mut payload, 1) {
        let parts = (take_part(&mut payload)?, take_part(&mut payload)?);
        changes.push(match (tag[0], parts) {
            (0, (Some(key), Some(value))) => Change::Put(key, value),
            (1, (Some(key), None)) => Change::Delete(key),
            (2, (Some(key), Some(value))) => Change::Merge(key, value),
            (3, (low, high)) => Change::DeleteRange(low, high),
            _ => return None,
        });
    }
    Some(changes)
}

/// A record that was read.
struct Record<'b> {
    payload: &'b [u8],
    before: u64,
    checksum: u64,
    synced: u64,
    is_good: bool,
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

impl<'b> Record<'b> {
    fn read(bytes: &'b [u8]) -> Option<Self> {
        let len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let (before, synced, checksum) =
            (number(bytes, 4)?, number(bytes, 12)?, number(bytes, 20)?);
        let payload = bytes.get(HEADER..HEADER + len)?;
        Some(Record {
            payload,
            before,
            checksum,
            synced,
            is_good: len > 0 && sum(&bytes[..20], payload) == checksum,
        })
    }
}

fn sum(header: &[u8], payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, xxh3_64_with_seed(header, 1))
}

impl Log {
    /// Appends a record. If this fails, the next one overwrites the bytes that were written.
    fn append<const F: u8>(&mut self, changes: &[Change]) -> io::Result<()> {
        let payload = encode(changes);
        let mut record = (payload.len() as u32).to_le_bytes().to_vec();
        record.extend(self.chain.to_le_bytes());
        record.extend(self.synced.to_le_bytes());
        let checksum = sum(&record, &payload);
        record.extend(checksum.to_le_bytes());
        record.extend(payload);
        let written = self.file.write_at(&record, self.end);
        if written.is_ok() || F == injected::LEFT {
            self.end += record.len() as u64;
            self.chain = checksum;
        }
        written
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        self.synced = self.end;
        Ok(())
    }
}

impl<const F: u8> Toy<F> {
    /// Returns the content of a log, its end, and its last checksum.
    fn read(file: &dyn File) -> Result<(State, u64, u64), Error> {
        let mut bytes = vec![0; file.len().map_err(|e| error(&e))? as usize];
        let read = file.read_at(&mut bytes, 0).map_err(|e| error(&e))?;
        bytes.truncate(read);
        let (mut state, mut end, mut chain) = (State::default(), 0, 0);
        while let Some((next, len, checksum)) = Self::next(&state, &bytes[end..], chain) {
            (state, end, chain) = (next, end + len, checksum);
        }
        let says_more = |at| {
            let record = Record::read(&bytes[at..]);
            record.is_some_and(|record| record.is_good && record.synced > end as u64)
        };
        if F != injected::LENIENT && (end == 0 || (end..bytes.len()).any(says_more)) {
            return Err(Error::Corrupt(String::from(
                "a record that was synced is bad",
            )));
        }
        Ok((state, end as u64, chain))
    }

    /// Returns the state after the next record, its length, and its checksum.
    fn next(state: &State, rest: &[u8], chain: u64) -> Option<(State, usize, u64)> {
        let record = Record::read(rest)?;
        let is_good = record.is_good && record.before == chain;
        if !is_good && F != injected::UNCHECKED {
            return None;
        }
        let state = apply(state, &decode(record.payload)?)?;
        Some((state, HEADER + record.payload.len(), record.checksum))
    }

    /// Writes a log that has only the state.
    fn write_new(directory: &dyn Directory, state: &State) -> io::Result<Log> {
        match directory.remove(NEW_LOG) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = directory.create(NEW_LOG)?;
        let mut log = Log {
            file,
            end: 0,
            synced: 0,
            chain: 0,
        };
        let put = |(key, value): (&Vec<u8>, &Vec<u8>)| Change::Put(key.clone(), value.clone());
        let changes: Vec<Change> = state.iter().map(put).collect();
        log.append::<F>(&changes)?;
        if F != injected::RENAMED_EARLY {
            log.sync()?;
        }
        Ok(log)
    }

    /// Replaces the old log by the new one.
    fn replace(directory: &dyn Directory) -> io::Result<()> {
        directory.rename(NEW_LOG, LOG)?;
        match F {
            injected::NAME_UNSYNCED => Ok(()),
            _ => directory.sync(),
        }
    }

    fn change<T>(&self, run: impl FnOnce(&mut Inner) -> Result<T, Error>) -> Result<T, Error> {
        let mut inner = self.inner.lock();
        match &inner.failed {
            Some(why) => Err(Error::ReadOnly(why.clone())),
            None => run(&mut inner),
        }
    }
}

impl Inner {
    fn sync<const F: u8>(&mut self) -> Result<(), Error> {
        if F == injected::UNSYNCED {
            return Ok(());
        }
        let synced = match self.log.sync() {
            Err(_) if F == injected::TRIED_AGAIN => self.log.sync(),
            synced => synced,
        };
        synced.map_err(|e| {
            self.failed = Some(e.to_string());
            error(&e)
        })
    }
}

impl<const F: u8> Subject for Toy<F> {
    type Snapshot = State;
    const FLUSH_SYNCS: bool = true;
    const CLOSE_SYNCS: bool = true;
    const MARKS_SYNCS: bool = false;

    const PATH: &str = DIRECTORY;

    fn open_for_reading(_setup: &Setup, _fs: &SimFs) -> Result<Option<Self>, Error> {
        Ok(None)
    }

    fn open(setup: &Setup, fs: &SimFs) -> Result<Self, Error> {
        let fs = setup.file_system(fs);
        let open = || -> io::Result<_> {
            fs.create_dir(Path::new(DIRECTORY))?;
            let directory = fs.open_dir(Path::new(DIRECTORY))?;
            let lock = directory.lock(Sharing::Exclusive)?;
            let names = directory.list()?;
            let is_there = names.iter().any(|name| name == "log");
            let file = is_there.then(|| directory.open(LOG)).transpose()?;
            Ok((directory, lock, file))
        };
        let (directory, lock, file) = open().map_err(|e| error(&e))?;
        let read = file.as_deref().map(Self::read).transpose()?;
        let (state, end, chain) = read.unwrap_or_default();
        let log = match file {
            Some(file) if F == injected::BEHIND => Log {
                end: file.len().map_err(|e| error(&e))?,
                file,
                synced: 0,
                chain,
            },
            Some(file) if F == injected::TRUSTING => Log {
                file,
                end,
                synced: 0,
                chain,
            },
            _ => {
                let log = Self::write_new(&*directory, &state);
                let log = log.and_then(|log| Self::replace(&*directory).map(|()| log));
                log.map_err(|e| error(&e))?
            }
        };
        let inner = Inner {
            state,
            log,
            failed: None,
        };
        Ok(Toy {
            directory,
            inner: Mutex::new(inner),
            _lock: lock,
        })
    }

    fn write(&self, changes: &[Change], synced: bool) -> Result<(), Error> {
        self.change(|inner| {
            let state = apply(&inner.state, changes).ok_or(Error::Merge)?;
            match F {
                injected::IN_PARTS => changes
                    .chunks(1)
                    .try_for_each(|change| inner.log.append::<F>(change)),
                _ => inner.log.append::<F>(changes),
            }
            .map_err(|e| error(&e))?;
            if synced {
                inner.sync::<F>()?;
            }
            inner.state = state;
            Ok(())
        })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.inner.lock().state.get(key).cloned())
    }

    fn scan(&self, range: KeyRange<'_>, direction: Direction) -> Result<Content, Error> {
        let state = self.snapshot()?;
        let records = state.iter().filter(|(key, _)| range.has(key));
        let records = records.map(|(key, value)| (key.clone(), value.clone()));
        Ok(match direction {
            Direction::Up => records.collect(),
            Direction::Down => records.rev().collect(),
        })
    }

    fn snapshot(&self) -> Result<State, Error> {
        Ok(self.inner.lock().state.clone())
    }

    fn scan_snapshot(snapshot: &State, direction: Direction) -> Result<Content, Error> {
        let records = snapshot
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()));
        Ok(match direction {
            Direction::Up => records.collect(),
            Direction::Down => records.rev().collect(),
        })
    }

    fn get_snapshot(snapshot: &State, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(snapshot.get(key).cloned())
    }

    fn sync(&self) -> Result<(), Error> {
        self.change(Inner::sync::<F>)
    }

    fn flush(&self) -> Result<(), Error> {
        self.sync()
    }

    fn compact(&self) -> Result<(), Error> {
        self.change(|inner| {
            let log = Self::write_new(&*self.directory, &inner.state).map_err(|e| error(&e))?;
            inner.log = log;
            Self::replace(&*self.directory).map_err(|e| {
                // The new log may have its name or not.
                inner.failed = Some(e.to_string());
                error(&e)
            })
        })
    }

    fn work(&self) -> Result<bool, Error> {
        Ok(false)
    }

    fn close(self) -> Result<(), Error> {
        self.sync()
    }
}
