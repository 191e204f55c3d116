//! Checkpoints: the store as it is at a moment, as a store in another directory.
//!
//! A run does not change, nor does a journal that gets no more records. So the moment is made by
//! going on with an empty memtable and the next journal, as when the memtable is full. All earlier
//! writes are in files then, to which a checkpoint gives a second name. Neither store notices the
//! other: both write to new files only, and the opening of a store truncates a journal behind its
//! last record.
//!
//! The manifest and the files beside it, which make a store of the directory, get their names last,
//! when everything that they name is on disk. Without the manifest there is no store. Each sync may
//! wait for the disk, so syncs are shared: first the names of all files are synced at once, and
//! then the names of the manifest and the files beside it.

use crate::directory::{StoreDirectory, copy_file, prepare_file, put_files, read_file};
use crate::error::Error;
use crate::flush::Flusher;
use crate::fs::{Directory, remove_if_there};
use crate::ids::{JournalNumber, Seq};
use crate::journal::{self, ToSync};
use crate::manifest::{self, Manifest};
use crate::run_file::{FileMeta, file_name};
use crate::state::{State, Version};
use crate::write::Writer;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

/// The state of a store at the moment of a checkpoint.
struct Captured {
    version: Arc<Version>,
    /// The sequence number of the last change.
    last_seq: Seq,
    /// The number of the journal that gets the next one.
    next_journal: JournalNumber,
    /// The number of the first journal that this opening of the store has begun.
    first_own: JournalNumber,
    /// The journals that were not durable.
    to_sync: ToSync,
    /// The contents of the files that are kept beside those of the store.
    beside: Vec<Vec<u8>>,
}

/// An earlier checkpoint, of which files are taken.
struct Earlier<'d> {
    directory: &'d dyn Directory,
    files: Vec<FileMeta>,
}

/// Makes a checkpoint in an empty directory, with the files of these names that are kept beside
/// those of the store. Files that cannot be linked are linked from the `earlier` checkpoint, if
/// that has them, or copied.
pub(crate) fn make(
    writer: &Writer,
    flusher: &Flusher,
    target: &StoreDirectory,
    earlier: Option<&StoreDirectory>,
    beside: &[&str],
) -> Result<(), Error> {
    let state = &*writer.state;
    state.status.check_writable()?;
    let _guard = state.directory_lock.acquire()?;
    if !target.names()?.is_empty() {
        let error = io::Error::from(ErrorKind::AlreadyExists);
        return Err(Error::io(&error, "there are files in the directory"));
    }
    let earlier = earlier.map(|earlier| Earlier::read(earlier, state.store));
    let earlier = earlier.transpose()?;
    let made = fill(writer, flusher, target, earlier.as_ref(), beside);
    if made.is_err() {
        empty(target, beside);
    }
    made
}

fn fill(
    writer: &Writer,
    flusher: &Flusher,
    target: &StoreDirectory,
    earlier: Option<&Earlier<'_>>,
    beside: &[&str],
) -> Result<(), Error> {
    let state = &*writer.state;
    let to = &*target.directory;
    let pin = flusher.pin_journals();
    let captured = capture(writer, beside)?;
    let journals = captured.journals();
    for number in journals.clone().map(JournalNumber::new) {
        let name = journal::name(number);
        // The system may show a journal of an earlier process that is not on the disk, and a sync
        // would not tell.
        let done = if number >= captured.first_own {
            link_or_copy(&*state.directory, to, &name)
        } else {
            copy_file(&*state.directory, to, &name)
        };
        done.map_err(|error| Error::io(&error, &name))?;
    }
    drop(pin);
    let runs = &captured.version.runs;
    for file in runs.iter().flat_map(|run| &run.meta.files) {
        let name = file_name(file.number);
        let linked = link(&*state.directory, to, &name).and_then(|is_linked| {
            let is_linked = is_linked
                || earlier.is_some_and(|earlier| earlier.gives(&*state.directory, to, file));
            if is_linked {
                Ok(())
            } else {
                copy_file(&*state.directory, to, &name)
            }
        });
        linked.map_err(|error| Error::io(&error, &name))?;
    }
    let flushed = match captured.version.sealed.last() {
        Some(oldest) => oldest.first_seq - 1,
        None => captured.last_seq,
    };
    let contents = flusher
        .files()
        .contents_of(runs, flushed, JournalNumber::new(journals.start));
    manifest::prepare_first(to, &contents)?;
    for (name, bytes) in beside.iter().zip(&captured.beside) {
        prepare_file(to, name, bytes)?;
    }
    writer.sync_files(&captured.to_sync)?;
    let synced = to.sync();
    synced.map_err(|error| Error::io(&error, "syncing the directory"))?;
    // After a crash any of the files may exist. A store that is described but has no manifest is
    // known to be damaged, and a manifest without the other files has all runs and journals that it
    // names.
    put_files(to, &[&[manifest::NAME], beside].concat())
}

/// Goes on with an empty memtable and another journal. Journals are pinned.
fn capture(writer: &Writer, beside: &[&str]) -> Result<Captured, Error> {
    let state = &*writer.state;
    loop {
        let before = read_beside(state, beside)?;
        // The next journal is begun first, so that no writer waits for that.
        if state.write_state.lock().has_unsealed() {
            writer.next_journal.want();
            writer.prepare_journal()?;
        }
        let captured = {
            let mut write_state = state.write_state.lock();
            writer.seal(&mut write_state);
            Captured {
                version: state.versions.current_arc(),
                last_seq: write_state.last_seq,
                next_journal: write_state.journal.number(),
                first_own: write_state.journal.first_own(),
                to_sync: write_state.journal.to_sync(),
                beside: before,
            }
        };
        // The files beside the store describe the records, so they must be those of the moment.
        if read_beside(state, beside)? == captured.beside {
            return Ok(captured);
        }
    }
}

fn read_beside(state: &State, names: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
    let contents = names.iter().map(|name| {
        let read = read_file(&*state.directory, name)?;
        read.ok_or_else(|| Error::corrupt(format_args!("{name} is missing")))
    });
    contents.collect()
}

impl Captured {
    /// Returns the numbers of the journals of its sealed memtables.
    fn journals(&self) -> Range<u64> {
        let next = self.next_journal.get();
        let oldest = self.version.sealed.last();
        oldest.map_or(next, |oldest| oldest.next_journal.get() - 1)..next
    }
}

impl<'d> Earlier<'d> {
    /// Makes the files of an earlier checkpoint; none if it is of another store.
    fn read(directory: &'d StoreDirectory, store: u128) -> Result<Self, Error> {
        let directory = &*directory.directory;
        let (contents, _) = Manifest::read(directory)?.ok_or(Error::Missing)?;
        let mut files = Vec::new();
        if contents.store == store {
            for run in contents.runs {
                files.extend(run.files);
            }
        }
        Ok(Earlier { directory, files })
    }

    /// Gives the target a file, if it is the same as that of the source. Returns `true` if it has.
    fn gives(&self, source: &dyn Directory, target: &dyn Directory, file: &FileMeta) -> bool {
        let name = file_name(file.number);
        self.files.contains(file)
            && is_same(source, self.directory, &name).unwrap_or(false)
            && link(self.directory, target, &name).unwrap_or(false)
    }
}

/// Returns `true` if a file of two directories was written at the same time and has the same
/// length. In a store that has gone on from a copy by an earlier release, another file may have
/// this number, of another time.
fn is_same(one: &dyn Directory, other: &dyn Directory, name: &str) -> io::Result<bool> {
    let (one, other) = (one.open(name)?, other.open(name)?);
    let modified = one.modified()?;
    Ok(modified.is_some() && modified == other.modified()? && one.len()? == other.len()?)
}

/// Gives a file a name in another directory. Returns `false` if it can have none there.
fn link(from: &dyn Directory, to: &dyn Directory, name: &str) -> io::Result<bool> {
    match from.link(name, to) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            ErrorKind::CrossesDevices
            | ErrorKind::PermissionDenied
            | ErrorKind::TooManyLinks
            | ErrorKind::Unsupported => Ok(false),
            _ => Err(error),
        },
    }
}

fn link_or_copy(from: &dyn Directory, to: &dyn Directory, name: &str) -> io::Result<()> {
    if link(from, to, name)? {
        Ok(())
    } else {
        copy_file(from, to, name)
    }
}

/// Removes the files of a checkpoint that has failed, first those that make a store of the
/// directory. A file that cannot be removed stays.
fn empty(target: &StoreDirectory, beside: &[&str]) {
    for name in beside.iter().rev().copied().chain([manifest::NAME]) {
        let _left = remove_if_there(&*target.directory, name);
    }
    for name in target.names().unwrap_or_default() {
        let _left = target.directory.remove(&name);
    }
}
