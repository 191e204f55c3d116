//! The journal: writes that are not in a run yet.
//!
//! Each memtable has a journal of its own, a [log](crate::log) of batches, which is removed when
//! the memtable is in a run. A record is the sequence number of the first change of a batch and the
//! changes.
//!
//! **JOURNAL-1** The sequence numbers of records are contiguous, within a journal and from one to
//! the next. **JOURNAL-2** When a position is called durable, all journals before it are durable up
//! to their ends, or their changes are in runs.

use crate::coding::{Damaged, Decoder};
use crate::error::Error;
use crate::fs::{Directory, File, remove_if_there};
use crate::ids::{JournalNumber, Seq};
use crate::log::{self, Ahead, HEADER_BYTES, LogIdentity, LogKind, LogWriter, Position};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Returns the name of the journal with this number.
pub(crate) fn name(number: JournalNumber) -> String {
    format!("journal-{number:08}")
}

/// Returns the number of the journal with this name.
pub(crate) fn number(name: &str) -> Option<JournalNumber> {
    let digits = name.strip_prefix("journal-")?;
    let number = JournalNumber::new(digits.parse().ok()?);
    (self::name(number) == name).then_some(number)
}

/// Bytes of a record before the changes: the sequence number of the first, and how many there are.
pub(crate) const PREFIX_BYTES: usize = 12;

/// Returns the beginning of a record.
pub(crate) fn prefix(first_seq: Seq, changes: u32) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..8].copy_from_slice(&first_seq.get().to_le_bytes());
    prefix[8..].copy_from_slice(&changes.to_le_bytes());
    prefix
}

/// Bytes of the time in a record without changes.
const CLOCK_BYTES: usize = size_of::<u64>();

/// Returns the time that a record without changes tells, in milliseconds since 1970. Only those of
/// stores whose records expire tell one.
pub(crate) fn clock(changes: u32, encoded: &[u8]) -> Option<u64> {
    let clock: [u8; CLOCK_BYTES] = encoded.try_into().ok()?;
    (changes == 0).then(|| u64::from_le_bytes(clock))
}

/// Takes a record apart: its first sequence number, how many changes there are, and the changes.
pub(crate) fn parts(payload: &[u8]) -> Result<(Seq, u32, &[u8]), Error> {
    let mut decoder = Decoder::new(payload);
    let mut parts = || {
        let first_seq = Seq::new(u64::from_le_bytes(decoder.array()?));
        let changes = u32::from_le_bytes(decoder.array()?);
        Ok((first_seq, changes, decoder.rest()))
    };
    parts().map_err(|why: Damaged| Error::corrupt(format_args!("a record of the journal {why}")))
}

/// The log of writes: a file that is begun with the first write, so that a store that is not
/// written to has none.
pub(crate) struct Journal {
    /// Nothing before the first write.
    log: Option<LogWriter>,
    number: JournalNumber,
    /// The number of the first journal of this opening. Those before were read.
    first_own: JournalNumber,
    /// Journals before this one that are not known to be durable, with their numbers, from the
    /// oldest to the newest.
    unsynced: Vec<(JournalNumber, Arc<dyn File>)>,
    /// All before this is durable.
    durable: Position,
    /// The end of the log if nothing was written since it became durable.
    marked: Position,
}

/// Returns the end of the journal with this number, before the first write.
fn start(number: JournalNumber) -> Position {
    Position {
        number: number.get(),
        offset: HEADER_BYTES as u64,
    }
}

impl Journal {
    /// Makes the journal with this number, before the first write.
    pub(crate) fn new(number: JournalNumber) -> Self {
        Journal {
            log: None,
            number,
            first_own: number,
            unsynced: Vec::new(),
            durable: start(number),
            marked: start(number),
        }
    }

    /// Begins the file, unless that is done, or opens it again. Its name is durable then.
    fn begin(
        &mut self,
        next: &NextJournal,
        directory: &dyn Directory,
        store: u128,
    ) -> Result<&mut LogWriter, Error> {
        match &mut self.log {
            Some(log) => {
                if !log.is_open() {
                    let name = name(self.number);
                    let opened = directory.open(&name);
                    let opened = opened.and_then(|file| log.reopen(Arc::from(file)));
                    opened.map_err(|error| Error::io(&error, format_args!("open of {name}")))?;
                }
                Ok(log)
            }
            log => Ok(log.insert(next.take(directory, store, self.number)?)),
        }
    }

    /// Returns `true` if there is a file.
    pub(crate) fn is_begun(&self) -> bool {
        self.log.is_some()
    }

    /// Returns `true` if the file is open.
    pub(crate) fn is_open(&self) -> bool {
        self.log.as_ref().is_some_and(LogWriter::is_open)
    }

    /// Closes the file, which the next write opens again, if all that was written is durable.
    /// Returns `true` if it is closed.
    pub(crate) fn close(&mut self) -> bool {
        let is_durable = self.unsynced.is_empty() && self.marked == self.position();
        if is_durable && let Some(log) = &mut self.log {
            log.close();
        }
        !self.is_open()
    }

    /// Goes on with the next journal.
    pub(crate) fn rotate(&mut self, next: &NextJournal) {
        let end = self.position();
        if let Some(log) = self.log.take() {
            next.expect_bytes(end.offset);
            // An open file; a closed one is durable.
            if self.marked != end
                && let Ok(file) = log.file()
            {
                self.unsynced.push((self.number, Arc::clone(file)));
            }
        }
        self.number = self.number.next();
        self.marked = start(self.number);
    }

    /// Returns the end of the journal.
    fn position(&self) -> Position {
        let log = self.log.as_ref();
        log.map_or_else(|| start(self.number), LogWriter::position)
    }

    pub(crate) fn number(&self) -> JournalNumber {
        self.number
    }

    /// Returns the number of the first journal that was begun since the store was opened.
    pub(crate) fn first_own(&self) -> JournalNumber {
        self.first_own
    }

    /// Writes batches, each with the sequence number of its first change and the number of its
    /// changes, and before them the time, if one is given with the sequence number of the next
    /// change. `ahead` is the preparation of the file for more. Returns the number of bytes that
    /// the records take.
    ///
    /// # Errors
    /// [`Error::Io`]; then any part of them may be there, until it is
    /// [truncated](Journal::truncate). If the file could not be begun, nothing is there.
    pub(crate) fn write<'b>(
        &mut self,
        next: &NextJournal,
        directory: &dyn Directory,
        store: u128,
        ahead: Ahead,
        clock: Option<(Seq, u64)>,
        batches: impl Iterator<Item = (Seq, u32, &'b [u8])>,
    ) -> Result<u64, Error> {
        let durable = self.durable;
        let number = self.number;
        let log = self.begin(next, directory, store)?;
        log.set_ahead(ahead);
        if let Some((next_seq, time)) = clock {
            log.append(&[&prefix(next_seq, 0), &time.to_le_bytes()], durable);
        }
        for (first_seq, changes, encoded) in batches {
            log.append(&[&prefix(first_seq, changes), encoded], durable);
        }
        let before = log.position();
        log.write()
            .map_err(|error| Error::io(&error, format_args!("write of {}", name(number))))?;
        Ok(log.position().offset - before.offset)
    }

    /// Removes the remains of a failed write. After an error it is unknown which of them are there.
    pub(crate) fn truncate(&mut self) -> Result<(), Error> {
        let Some(log) = self.log.as_mut().filter(|log| log.is_open()) else {
            return Ok(());
        };
        log.truncate()
            .map_err(|error| Error::io(&error, format_args!("truncating {}", name(self.number))))
    }

    /// Lets go of the journals before this one, whose changes are in runs: they need not be
    /// durable. The caller should close their files outside of all locks: if they were removed, the
    /// system frees them then.
    pub(crate) fn forget(&mut self, first_needed: JournalNumber) -> Vec<Arc<dyn File>> {
        let forgotten = |(number, _): &mut (JournalNumber, _)| *number < first_needed;
        let forgotten = self.unsynced.extract_if(.., forgotten);
        forgotten.map(|(_, file)| file).collect()
    }

    /// Returns the files that must be synced to make all durable that was written so far.
    pub(crate) fn to_sync(&self) -> ToSync {
        let unsynced = self.unsynced.iter().map(|(_, file)| Arc::clone(file));
        let mut files: Vec<_> = unsynced.collect();
        let log = self.log.as_ref();
        let written = log.filter(|log| self.marked != log.position());
        // The file is open; a closed one is durable.
        let written = written.and_then(|log| log.file().ok());
        files.extend(written.cloned());
        ToSync {
            older: self.unsynced.len(),
            files,
            position: self.position(),
        }
    }

    /// Notes that these files were synced. The journal that was current then may have got more
    /// records since; so it stays among those that are not known to be durable, if it was left
    /// meanwhile. `next_seq` is the sequence number of the next change.
    pub(crate) fn note_synced(&mut self, done: &ToSync, next_seq: Seq) {
        let complete = &done.files[..done.older];
        self.unsynced
            .retain(|(_, file)| !complete.iter().any(|synced| Arc::ptr_eq(synced, file)));
        self.durable = self.durable.max(done.position);
        if self.position() == done.position {
            self.mark(next_seq);
        }
    }

    /// Writes a record without changes, which is not synced. It says that all records before it are
    /// durable: otherwise, one that is spoilt later would be taken for a record that was never
    /// finished.
    fn mark(&mut self, next_seq: Seq) {
        if let Some(log) = &mut self.log {
            log.append(&[&prefix(next_seq, 0)], self.durable);
            // Without it, all is as well as before.
            let _unwritten = log.write();
            self.marked = log.position();
        }
    }
}

/// The journal after the present one, which a background thread begins ahead: that takes syncs, for
/// which no writer should wait. It also gets the room that it is going to need, as much as the last
/// one has taken: a file system that has to look for room may have to read its own data, and that
/// waits for all else that a disk has to do.
pub(crate) struct NextJournal {
    /// `true` if it will be needed soon.
    is_wanted: AtomicBool,
    /// The size that it is going to have.
    bytes: AtomicU64,
    /// Held while it is begun.
    begun: Mutex<Option<LogWriter>>,
    /// The number of the next journal.
    number: AtomicU64,
}

impl NextJournal {
    /// Makes the successor of the present journal, which has this number before its first write.
    pub(crate) fn new(number: JournalNumber) -> Self {
        NextJournal {
            is_wanted: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            begun: Mutex::default(),
            number: AtomicU64::new(number.get()),
        }
    }

    /// Says that it will be needed soon. Returns `true` if nobody had said so before.
    #[inline]
    pub(crate) fn want(&self) -> bool {
        !self.is_wanted.load(Ordering::Relaxed) && !self.is_wanted.swap(true, Ordering::Relaxed)
    }

    /// Begins it if it is wanted, unless that is done. Returns `true` if it was not.
    pub(crate) fn prepare(&self, directory: &dyn Directory, store: u128) -> Result<bool, Error> {
        let mut begun = self.begun.lock();
        if begun.is_some() || !self.is_wanted.load(Ordering::Relaxed) {
            return Ok(false);
        }
        // The number changes under the lock only.
        let number = JournalNumber::new(self.number.load(Ordering::Relaxed));
        let mut log = begin(directory, store, number)?;
        // Without it, the journal gets room as it is written.
        let _room = log.reserve_ahead(self.bytes.load(Ordering::Relaxed));
        *begun = Some(log);
        Ok(true)
    }

    /// Gives up the begun journal and the wish for one. The file is left to the next opening, or to
    /// the next journal, which has its name.
    pub(crate) fn give_up(&self) {
        let begun = self.begun.lock().take();
        self.is_wanted.store(false, Ordering::Relaxed);
        drop(begun);
    }

    /// Says how large the last journal has become.
    fn expect_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns `true` if it can be taken without waiting.
    pub(crate) fn is_begun(&self) -> bool {
        self.begun.try_lock().is_some_and(|begun| begun.is_some())
    }

    fn take(
        &self,
        directory: &dyn Directory,
        store: u128,
        number: JournalNumber,
    ) -> Result<LogWriter, Error> {
        let mut begun = self.begun.lock();
        let log = match begun.take() {
            Some(log) => log,
            None => begin(directory, store, number)?,
        };
        self.number.store(number.next().get(), Ordering::Relaxed);
        self.is_wanted.store(false, Ordering::Relaxed);
        Ok(log)
    }
}

/// Files to be synced, the oldest first.
pub(crate) struct ToSync {
    files: Vec<Arc<dyn File>>,
    /// The number of them that are journals which get no more records.
    older: usize,
    position: Position,
}

impl ToSync {
    /// Returns `true` if there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Syncs the files. After an error it is unknown which bytes are durable, and stays so.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        for file in &self.files {
            file.sync()
                .map_err(|error| Error::io(&error, "sync of the journal"))?;
        }
        Ok(())
    }
}

fn begin(
    directory: &dyn Directory,
    store: u128,
    number: JournalNumber,
) -> Result<LogWriter, Error> {
    let name = name(number);
    let identity = LogIdentity {
        store,
        kind: LogKind::Journal,
        format: log::PLAIN_FORMAT,
        number: number.get(),
    };
    let begin = || {
        // One that an earlier attempt has left.
        remove_if_there(directory, &name)?;
        let file = Arc::from(directory.create(&name)?);
        let log = LogWriter::create(file, identity)?;
        // A header that is not there is a spoilt one, not one that was never written.
        log.file()?.sync()?;
        directory.sync()?;
        Ok(log)
    };
    begin().map_err(|error| Error::io(&error, format_args!("beginning {name}")))
}
