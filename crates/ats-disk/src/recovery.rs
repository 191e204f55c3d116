//! Opening a store, after it was closed or after a crash.
//!
//! What was found must be durable before anything relies on it: a process that was killed leaves writes that the
//! system has and the disk has not. So the manifest is written anew and synced before a file is removed that it does
//! not name, and journals are synced before a new one is begun.

use crate::cache::Cache;
use crate::commit::Writing;
use crate::core::{Core, Opened, file_number};
use crate::error::Error;
use crate::file::Settings;
use crate::fs::FileSystem;
use crate::journal::{self, Journal};
use crate::log::{LogIdentity, LogKind, LogReader, Next, Position};
use crate::manifest::{self, Contents, Edit, Manifest};
use crate::memtable::{Keep, Memtable};
use crate::operator_id::{self, OperatorId};
use crate::options::Options;
use crate::state::{Sealed, State};
use crate::{batch::BatchItems, commit};
use std::any::Any;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::Path;
use std::sync::Arc;

pub(crate) const LOCK_NAME: &str = "lock";

/// Opens the store in a directory.
pub(crate) fn open(directory: &Path, options: Options) -> Result<Arc<Core>, Error> {
    options.check()?;
    // The first guard of a process makes a call of the system that is quick only while there is one thread.
    drop(ats_sync::pin());
    let file_system = Arc::clone(&options.file_system);
    if options.create {
        file_system
            .create_dir(directory)
            .map_err(|error| Error::io(&error, "making the directory"))?;
    }
    let lock = lock(&*file_system, directory)?;
    let operator = options.operator.as_deref().map(operator_id::of);
    let names = file_system
        .list(directory)
        .map_err(|error| Error::io(&error, "listing the directory"))?;
    let (contents, number) = match Manifest::read(&*file_system, directory)? {
        Some(found) => found,
        None => (new_contents(&options, &names, operator.clone())?, 0),
    };
    if contents.operator != operator {
        return Err(Error::OtherOperator {
            stored: contents.operator,
            given: operator,
        });
    }
    let store = contents.store;
    let manifest = Manifest::create(Arc::clone(&file_system), directory, number + 1, contents)?;
    let mut replay = Replay {
        file_system: &*file_system,
        directory,
        options: &options,
        store,
        seq: manifest.contents().flushed,
        sealed: Vec::new(),
    };
    let next_journal = replay.all(&names, manifest.contents().first_journal)?;
    let (last_seq, sealed) = (replay.seq, replay.sealed);
    let journal = Journal::create(&*file_system, directory, store, next_journal)?;
    let cache = Arc::new(Cache::new(options.cache_bytes));
    let settings = Settings::new(&options);
    let core = Core::new(Opened {
        directory: directory.to_owned(),
        store,
        cache,
        settings,
        state: State {
            active: Arc::new(Memtable::new()),
            sealed,
            runs: Vec::new(),
        },
        writing: Writing::new(journal, last_seq),
        manifest,
        lock,
        options,
    });
    let metas = core.manifest.lock().contents().runs.clone();
    let runs = metas.iter().map(|meta| core.open_run(meta, &[]));
    let runs = runs.collect::<Result<_, _>>().inspect_err(|_| {
        // Otherwise each attempt to open the store would leave one.
        let unused = core.directory.join(journal::name(next_journal));
        let _ = core.file_system.remove(&unused);
    })?;
    let state = core.state.load().with_runs(runs);
    core.state.store(Arc::new(state));
    // Not before all is there that the manifest names: it may be one of an earlier time, put back by mistake, and then
    // what it does not name is the store.
    remove_others(
        &*core.file_system,
        &core.directory,
        &names,
        core.manifest.lock().contents(),
    );
    match core.leave_journals() {
        // They can still be read, and there may be room later.
        Err(Error::Io {
            kind: io::ErrorKind::StorageFull,
            ..
        }) => {}
        left => left?,
    }
    Ok(Arc::new(core))
}

impl Core {
    /// Writes to runs what was read from journals, and removes these. They may be shown by the system, but not be on
    /// the disk: a sync that has failed in an earlier process is not tried again, and the next one succeeds.
    fn leave_journals(&self) -> Result<(), Error> {
        while self.flush_one()? {}
        let (last_seq, journal) = {
            let writing = self.writing.lock();
            (writing.last_seq, writing.journal.number())
        };
        let mut manifest = self.manifest.lock();
        if manifest.contents().first_journal != journal {
            let edit = Edit {
                flushed: Some((last_seq, journal)),
                ..Edit::default()
            };
            self.write_edit(&mut manifest, edit)?;
        }
        drop(manifest);
        self.remove_journals(journal);
        Ok(())
    }
}

fn lock(
    file_system: &dyn FileSystem,
    directory: &Path,
) -> Result<Box<dyn Any + Send + Sync>, Error> {
    file_system
        .lock(&directory.join(LOCK_NAME))
        .map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Error::Locked,
            io::ErrorKind::NotFound => Error::Missing,
            _ => Error::io(&error, "locking the directory"),
        })
}

/// What a new store has in its manifest.
fn new_contents(
    options: &Options,
    names: &[String],
    operator: Option<OperatorId>,
) -> Result<Contents, Error> {
    let is_ours = |name: &String| {
        journal::number(name)
            .or_else(|| file_number(name))
            .is_some()
    };
    if names.iter().any(is_ours) {
        return Err(Error::corrupt(
            "there are files of a store, but no manifest",
        ));
    }
    if !options.create {
        return Err(Error::Missing);
    }
    // Two random numbers of the standard library; they only have to differ from those of other stores.
    let random = || RandomState::new().build_hasher().finish();
    let store = u128::from(random()) << 64 | u128::from(random());
    Ok(Contents::empty(store, operator))
}

/// Removes files that were begun, or not needed any more, when the store was left. Those that cannot be removed
/// only take space.
fn remove_others(
    file_system: &dyn FileSystem,
    directory: &Path,
    names: &[String],
    contents: &Contents,
) {
    let is_needed = |name: &str| match (file_number(name), journal::number(name)) {
        (Some(number), _) => contents.files().any(|needed| needed == number),
        (_, Some(number)) => number >= contents.first_journal,
        _ => name != manifest::NEW_NAME,
    };
    for name in names.iter().filter(|name| !is_needed(name)) {
        let _ = file_system.remove(&directory.join(name));
    }
}

/// Making memtables of journals.
///
/// What is replayed is the longest part without a gap, from the first journal that is needed on. It ends at the end of
/// the last journal, or where something is missing. If something behind that says that what is missing was
/// durable, the journal was spoilt, and the store is not opened. Otherwise what is behind it is removed, so that what
/// is written from now on follows what was replayed.
struct Replay<'a> {
    file_system: &'a dyn FileSystem,
    directory: &'a Path,
    options: &'a Options,
    store: u128,
    /// The last sequence number that was found.
    seq: u64,
    /// From the newest to the oldest.
    sealed: Vec<Arc<Sealed>>,
}

impl Replay<'_> {
    /// Replays all journals. The number for the next one.
    fn all(&mut self, names: &[String], first: u64) -> Result<u64, Error> {
        let mut numbers: Vec<_> = names
            .iter()
            .filter_map(|name| journal::number(name))
            .filter(|number| *number >= first)
            .collect();
        numbers.sort_unstable();
        let mut replayed = Vec::new();
        for (number, next) in numbers.iter().zip(first..) {
            let reader = match *number == next {
                true => self.open(*number)?,
                false => None,
            };
            let Some(mut reader) = reader else {
                break;
            };
            if !self.one(&mut reader)? {
                break;
            }
            replayed.push(reader);
        }
        let rest = &numbers[replayed.len()..];
        let end = match replayed.last() {
            Some(reader) => reader.position(),
            None => Position {
                number: first,
                offset: 0,
            },
        };
        let mut durable = None;
        if let Some(reader) = replayed.last_mut() {
            durable = reader.later_durable()?;
        }
        for number in rest {
            if let Some(mut reader) = self.open(*number)? {
                durable = durable.max(reader.later_durable()?);
            }
        }
        if durable.is_some_and(|durable| durable > end) {
            return Err(Error::corrupt(format_args!(
                "{}: what was durable is missing at {}",
                journal::name(end.number),
                end.offset
            )));
        }
        if numbers.is_empty() {
            return Ok(first);
        }
        self.repair(&replayed, rest)
            .map_err(|error| Error::io(&error, "repairing the journal"))?;
        // The numbers of those that were removed are used again: journals are replayed as far as there is no gap.
        Ok(first + replayed.len() as u64)
    }

    fn open(&self, number: u64) -> Result<Option<LogReader>, Error> {
        let name = journal::name(number);
        let file = self.file_system.open(&self.directory.join(&name));
        let file = file.map_err(|error| Error::io(&error, format_args!("open of {name}")))?;
        let file = Arc::from(file);
        let expected = LogIdentity {
            store: self.store,
            kind: LogKind::Journal,
            number,
        };
        let Some(reader) = LogReader::open(Arc::clone(&file), &name, LogKind::Journal)? else {
            // It was durable before the first record was written.
            let mut reader = LogReader::without_header(file, &name, expected)?;
            return match reader.later_durable()? {
                None => Ok(None),
                Some(_) => Err(Error::corrupt(format_args!(
                    "{name}: the header was spoilt"
                ))),
            };
        };
        if reader.identity() != expected {
            return Err(Error::corrupt(format_args!(
                "{name} belongs to another store"
            )));
        }
        Ok(Some(reader))
    }

    /// Makes a memtable of a journal. Whether the journal follows what was replayed.
    fn one(&mut self, reader: &mut LogReader) -> Result<bool, Error> {
        let first_seq = self.seq + 1;
        let number = reader.identity().number;
        let state = State {
            active: Arc::new(Memtable::new()),
            sealed: Vec::new(),
            runs: Vec::new(),
        };
        let operator = self.options.operator.as_deref();
        // Nothing reads yet.
        let keep = Keep {
            visible: u64::MAX,
            snapshots: &[],
            alone: true,
        };
        while let Next::Record(payload) = reader.next()? {
            let (first, changes, encoded) = journal::parts(payload)?;
            if first != self.seq + 1 {
                let is_first = self.seq + 1 == first_seq;
                return match is_first && first > first_seq {
                    true => Ok(false),
                    false => Err(Error::corrupt("the journal has a gap")),
                };
            }
            let mut seq = self.seq;
            for item in BatchItems::new(encoded) {
                seq += 1;
                commit::apply_item(&state, seq, item?, &keep, operator);
            }
            if seq != self.seq + u64::from(changes) {
                return Err(Error::corrupt("a batch in the journal has another length"));
            }
            self.seq = seq;
        }
        if self.seq >= first_seq {
            let sealed = Sealed {
                memtable: state.active,
                first_seq,
                last_seq: self.seq,
                next_journal: number + 1,
            };
            self.sealed.insert(0, Arc::new(sealed));
        }
        Ok(true)
    }

    /// Makes durable what was replayed, and removes what is behind it.
    fn repair(&self, replayed: &[LogReader], rest: &[u64]) -> io::Result<()> {
        for number in rest {
            self.file_system
                .remove(&self.directory.join(journal::name(*number)))?;
        }
        for reader in replayed {
            let is_last = std::ptr::eq(reader, &raw const replayed[replayed.len() - 1]);
            let end = reader.position().offset;
            if is_last && reader.file().len()? != end {
                reader.file().set_len(end)?;
            }
            reader.file().sync()?;
        }
        self.file_system.sync_dir(self.directory)
    }
}
