//! Opening a store, after it was closed or after a crash.
//!
//! All is read first. The replayed records must be durable before anything relies on them: a
//! process that was killed leaves writes that the system has and the disk has not. So, unless the
//! store was closed and nothing is to be repaired, journals are truncated to their replayed part
//! and synced, and the manifest is written anew and synced before a file is removed that it does
//! not name. A store that was closed is opened without a write; then the first change of it writes
//! the manifest anew.
//!
//! A store that is opened for reading is left as it is.

use crate::batch::BatchItems;
use crate::directory::{StoreDirectory, write_new};
use crate::engine::Engine;
use crate::error::Error;
use crate::fault_injection::{InjectedFault, is_injected};
use crate::files::Files;
use crate::fs::{Directory, Sharing};
use crate::ids::{JournalNumber, Seq};
use crate::journal::{self, Journal};
use crate::lifetime::{self, Deadlines, Lifetimes};
use crate::log::{self, LogIdentity, LogKind, LogReader, Next, Position};
use crate::manifest::{self, Contents, Edit, Manifest, NewFile};
use crate::memtable::{Memtable, Retention};
use crate::operator_id::{self, OperatorId};
use crate::options::Options;
use crate::run_file::{BlockCache, file_number};
use crate::state::memory;
use crate::state::write_state::WriteState;
use crate::state::{Sealed, State, Version};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::Arc;

/// Opens the store in a directory. One that is made gets files with these names and bytes beside
/// its own.
pub(crate) fn open(
    directory: StoreDirectory,
    mut options: Options,
    beside: &[(&str, &[u8])],
) -> Result<Engine, Error> {
    options.check()?;
    let of_contents = options.operator.clone();
    if options.lifetime.is_some() {
        options.operator = Some(Arc::new(Deadlines::new(options.operator.take())));
    }
    // The first guard of a process makes a call of the system that is quick only while there is one
    // thread.
    drop(ats_sync::pin());
    let is_read_only = directory.sharing == Sharing::Shared;
    let operator = options.operator.as_deref().map(operator_id::of);
    let names = directory.names()?;
    let found = Manifest::read(&*directory.directory)?;
    let is_new = found.is_none();
    let (contents, number) = match found {
        Some((mut contents, number)) => {
            contents.next_number = contents.next_number.saturating_add(random_gap());
            (contents, number)
        }
        None => {
            let creates = options.create && !is_read_only;
            (new_contents(creates, &names, operator.clone())?, 0)
        }
    };
    if let Some(why) = find_other_lifetime(&contents, operator.as_ref()) {
        return Err(Error::Option {
            name: "lifetime",
            why,
        });
    }
    if contents.operator != operator {
        return Err(Error::OtherOperator {
            stored: contents.operator,
            given: operator,
        });
    }
    let store = contents.store;
    let mut replay = Replay {
        directory: &*directory.directory,
        options: &options,
        store,
        seq: contents.flushed,
        sealed: Vec::new(),
        first: contents.first_journal,
        replayed: Vec::new(),
        rest: Vec::new(),
        clock: contents.clock,
    };
    replay.replay_all(&names)?;
    let (last_seq, sealed) = (replay.seq, std::mem::take(&mut replay.sealed));
    let (next_journal, clock) = (replay.next_journal(), replay.clock);
    let unneeded = find_unneeded(&names, &contents);
    let manifest = Manifest::new(Arc::clone(&directory.directory), contents, number);
    let is_left_whole = !is_new && replay.is_empty() && unneeded.is_empty();
    if !is_read_only || is_injected(InjectedFault::RepairedForReading) {
        replay.repair()?;
    }
    let cache = match options.cache_bytes {
        Some(bytes) => BlockCache::new(bytes),
        None => BlockCache::new_shared(memory::cache_bytes()),
    };
    let version = Version {
        active: Arc::new(Memtable::new()),
        sealed,
        runs: Vec::new(),
    };
    let file_system = Arc::clone(&directory.file_system);
    let lifetimes = options
        .lifetime
        .map(|of_store| Lifetimes::new(of_store, of_contents, file_system, clock));
    let write_state = WriteState::new(Journal::new(next_journal), last_seq);
    let state = State::new(store, directory, options, version, write_state, lifetimes);
    let state = Arc::new(state);
    let files = Files::new(Arc::clone(&state), manifest, cache);
    let metas = files.manifest.lock().contents().runs.clone();
    let runs = metas.iter().map(|meta| files.open_run(meta, &[]));
    let runs = runs.collect::<Result<_, _>>()?;
    state.versions.exchange(|version| version.with_runs(runs));
    files.reserve.note_largest_file();
    let engine = Engine::new(files);
    let mut new_files = Vec::new();
    if is_new {
        for (name, bytes) in beside {
            new_files.push((*name, write_new(&*engine.state.directory, name, bytes)?));
        }
    }
    if !is_read_only && !is_left_whole {
        engine.files.set_unneeded(unneeded);
        match engine
            .files
            .reserve
            .with_reserve(|| take_over(&engine, &new_files))
        {
            // The store can still be read, and there may be room later.
            Err(error) if error.is_full() && !is_new => {}
            done => done?,
        }
    }
    Ok(engine)
}

/// Returns the reason why a store is not opened with these records: they expire and should not, or
/// the other way round.
fn find_other_lifetime(contents: &Contents, given: Option<&OperatorId>) -> Option<&'static str> {
    let stored = lifetime::is_marked(contents.operator.as_ref());
    match (stored, lifetime::is_marked(given)) {
        (true, false) => Some("the records of the store expire"),
        (false, true) => Some("the store was made without it"),
        _ => None,
    }
}

/// Makes the manifest durable, removes files that are not needed, and writes the replayed records
/// to runs.
fn take_over(engine: &Engine, new_files: &[NewFile<'_>]) -> Result<(), Error> {
    engine.files.make_manifest(new_files)?;
    engine.files.remove_unneeded()?;
    leave_journals(engine)
}

/// Writes the replayed records to runs, and removes the journals. They may be shown by the system,
/// but not be on the disk: a sync that has failed in an earlier process is not tried again, and the
/// next one succeeds.
fn leave_journals(engine: &Engine) -> Result<(), Error> {
    while engine.flusher.flush_one()? {}
    let (last_seq, journal) = {
        let write_state = engine.state.write_state.lock();
        (write_state.last_seq, write_state.journal.number())
    };
    let mut manifest = engine.files.manifest.lock();
    if manifest.contents().first_journal != journal {
        let edit = Edit {
            flushed: Some((last_seq, journal)),
            ..Edit::default()
        };
        engine.files.write_edit(&mut manifest, edit)?;
    }
    drop(manifest);
    engine.flusher.remove_journals(journal);
    Ok(())
}

/// Returns the contents of the manifest of a new store.
fn new_contents(
    creates: bool,
    names: &[String],
    operator: Option<OperatorId>,
) -> Result<Contents, Error> {
    let is_ours = |name: &String| journal::number(name).is_some() || file_number(name).is_some();
    if names.iter().any(is_ours) {
        return Err(Error::corrupt(
            "there are files of a store, but no manifest",
        ));
    }
    if !creates {
        return Err(Error::Missing);
    }
    let store = u128::from(random()) << 64 | u128::from(random());
    Ok(Contents::empty(store, operator))
}

/// Returns a random number of the standard library.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the numbers of files that an opening leaves out. Of a directory that was copied, or put
/// back as it was at an earlier time, each copy goes on from the same number; so no number that one
/// of them uses is likely to be used by another one for another content.
fn random_gap() -> u64 {
    random() >> 32
}

/// Files that were begun, or not needed any more, when the store was left.
fn find_unneeded(names: &[String], contents: &Contents) -> Vec<String> {
    let is_needed = |name: &str| match (file_number(name), journal::number(name)) {
        (Some(number), _) => contents.files().any(|needed| needed == number),
        (_, Some(number)) => number >= contents.first_journal,
        _ => name != manifest::NEW_NAME,
    };
    let unneeded = names.iter().filter(|name| !is_needed(name));
    unneeded.cloned().collect()
}

/// Replay of journals into memtables.
///
/// It replays the longest part without a gap, from the first journal that is needed on. It ends at
/// the end of the last journal, or where something is missing. If something behind that says that
/// the missing part was durable, the journal was spoilt, and the store is not opened. Otherwise the
/// rest is removed, so that later writes follow the replayed ones.
struct Replay<'a> {
    directory: &'a dyn Directory,
    options: &'a Options,
    store: u128,
    /// The last sequence number that was found.
    seq: Seq,
    /// The memtables, from the newest to the oldest.
    sealed: Vec<Arc<Sealed>>,
    /// The number of the first journal that is needed.
    first: JournalNumber,
    /// The journals that were replayed.
    replayed: Vec<LogReader>,
    /// The numbers of those behind them.
    rest: Vec<JournalNumber>,
    /// The latest time that was found.
    clock: u64,
}

impl Replay<'_> {
    /// Replays all journals.
    fn replay_all(&mut self, names: &[String]) -> Result<(), Error> {
        let mut numbers: Vec<_> = names
            .iter()
            .filter_map(|name| journal::number(name))
            .filter(|number| *number >= self.first)
            .collect();
        numbers.sort_unstable();
        let mut next = self.first;
        for number in &numbers {
            let reader = if *number == next {
                self.open(*number)?
            } else {
                None
            };
            let Some(mut reader) = reader else {
                break;
            };
            if !self.one(&mut reader)? {
                break;
            }
            self.replayed.push(reader);
            next = next.next();
        }
        self.rest = numbers.split_off(self.replayed.len());
        let end = match self.replayed.last() {
            Some(reader) => reader.position(),
            None => Position {
                number: self.first.get(),
                offset: 0,
            },
        };
        let mut durable = None;
        if let Some(reader) = self.replayed.last_mut() {
            durable = reader.later_durable()?;
        }
        for number in &self.rest {
            if let Some(mut reader) = self.open(*number)? {
                durable = durable.max(reader.later_durable()?);
            }
        }
        if durable.is_some_and(|durable| durable > end) {
            return Err(Error::corrupt(format_args!(
                "{}: what was durable is missing at {}",
                journal::name(JournalNumber::new(end.number)),
                end.offset
            )));
        }
        Ok(())
    }

    /// Returns `true` if there are no journals.
    fn is_empty(&self) -> bool {
        self.replayed.is_empty() && self.rest.is_empty()
    }

    /// Returns the number for the next journal. The numbers of journals behind the replayed ones
    /// are used again: journals are replayed as far as there is no gap.
    fn next_journal(&self) -> JournalNumber {
        JournalNumber::new(self.first.get() + self.replayed.len() as u64)
    }

    fn open(&self, number: JournalNumber) -> Result<Option<LogReader>, Error> {
        let name = journal::name(number);
        let file = self.directory.open(&name);
        let file = file.map_err(|error| Error::io(&error, format_args!("open of {name}")))?;
        let file = Arc::from(file);
        let expected = LogIdentity {
            store: self.store,
            kind: LogKind::Journal,
            format: log::PLAIN_FORMAT,
            number: number.get(),
        };
        let Some(reader) = LogReader::open(Arc::clone(&file), &name, LogKind::Journal)? else {
            // The header was durable before the first record was written.
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

    /// Makes a memtable of a journal. Returns `true` if the journal follows the replayed ones.
    fn one(&mut self, reader: &mut LogReader) -> Result<bool, Error> {
        let first_seq = self.seq.next();
        let number = JournalNumber::new(reader.identity().number);
        let version = Version {
            active: Arc::new(Memtable::new()),
            sealed: Vec::new(),
            runs: Vec::new(),
        };
        let operator = self.options.operator.as_deref();
        // Nothing reads yet.
        let retention = Retention {
            visible: Seq::MAX,
            snapshots: &[],
            alone: true,
        };
        while let Next::Record(payload) = reader.next()? {
            let (first, changes, encoded) = journal::parts(payload)?;
            if first != self.seq.next() {
                let is_first = self.seq.next() == first_seq;
                return if is_first && first > first_seq {
                    Ok(false)
                } else {
                    Err(Error::corrupt("the journal has a gap"))
                };
            }
            if let Some(clock) = journal::clock(changes, encoded) {
                self.clock = self.clock.max(clock);
                continue;
            }
            let mut seq = self.seq;
            for item in BatchItems::new(encoded) {
                seq.increment();
                version.apply_item(seq, item?, &retention, operator);
            }
            if seq != self.seq + u64::from(changes) {
                return Err(Error::corrupt("a batch in the journal has another length"));
            }
            self.seq = seq;
        }
        if self.seq >= first_seq {
            let sealed = Sealed {
                memtable: version.active,
                first_seq,
                last_seq: self.seq,
                next_journal: number.next(),
            };
            self.sealed.insert(0, Arc::new(sealed));
        }
        Ok(true)
    }

    /// Makes the replayed records durable, and removes the rest of the journals. That needs no room
    /// on the disk.
    fn repair(&self) -> Result<(), Error> {
        let repair = || -> io::Result<()> {
            for number in &self.rest {
                self.directory.remove(&journal::name(*number))?;
            }
            for (index, reader) in self.replayed.iter().enumerate() {
                let is_last = index + 1 == self.replayed.len();
                let end = reader.position().offset;
                if is_last && reader.file().len()? != end {
                    reader.file().set_len(end)?;
                }
                reader.file().sync()?;
            }
            if self.is_empty() {
                Ok(())
            } else {
                self.directory.sync()
            }
        };
        repair().map_err(|error| Error::io(&error, "repairing the journal"))
    }
}
