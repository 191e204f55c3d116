//! The files of a store: the manifest, the runs, and the [reserve] of room.
//!
//! A change of the runs is made durable, and then visible.

mod reserve;
mod run_writer;

pub(crate) use reserve::{NAME as RESERVE_NAME, Reserve};
pub(crate) use run_writer::{RunWriter, file_bytes};

use crate::error::Error;
use crate::fault_injection::{InjectedFault, is_injected};
use crate::fs::File;
use crate::ids::{FileNumber, JournalNumber, RunId, Seq};
use crate::lifetime::Lifetimes;
use crate::manifest::{Contents, Edit, Manifest, NewFile, RunMeta, WriteError};
use crate::operator_id::OperatorId;
use crate::run_file::{
    BlockCache, FileMeta, FileWriter, Identity, Run, RunFile, Settings, file_name,
};
use crate::state::{Sealed, State, StoredRun, Version};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of files of a run that are opened before the first of them is read, so that the
/// device reads the ends of all of them at the same time.
const OPENED_AT_ONCE: usize = 16;

/// A file of a run that is being opened.
enum Opening<'a> {
    /// A file that another version of the run has open.
    Open(Arc<RunFile>),
    /// A file that is open, and not read yet.
    Begun(&'a FileMeta, Box<dyn File>),
}

/// The part of a store that knows its files.
pub(crate) struct Files {
    pub(crate) state: Arc<State>,
    pub(crate) manifest: Mutex<Manifest>,
    /// `true` if the contents of the manifest are known to be durable.
    is_manifest_durable: AtomicBool,
    /// The operator by which the values of the files are merged.
    operator_id: Option<OperatorId>,
    /// The next number for a file or a run.
    next_number: AtomicU64,
    /// The form in which files of runs are written.
    settings: Settings,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) reserve: Reserve,
    /// Files that were not needed when the store was opened, and that were not removed yet.
    unneeded: Mutex<Vec<String>>,
}

impl Files {
    pub(crate) fn new(state: Arc<State>, manifest: Manifest, cache: BlockCache) -> Self {
        let contents = manifest.contents();
        Files {
            operator_id: contents.operator.clone(),
            next_number: AtomicU64::new(contents.next_number),
            settings: Settings::new(&state.options),
            cache: Arc::new(cache),
            reserve: Reserve::new(Arc::clone(&state)),
            state,
            manifest: Mutex::new(manifest),
            is_manifest_durable: AtomicBool::new(false),
            unneeded: Mutex::default(),
        }
    }

    /// Sets the files that are not needed.
    pub(crate) fn set_unneeded(&self, names: Vec<String>) {
        *self.unneeded.lock() = names;
    }

    /// Opens the files of a run; those that are open already are given.
    pub(crate) fn open_run(
        &self,
        meta: &RunMeta,
        open: &[Arc<RunFile>],
    ) -> Result<Arc<StoredRun>, Error> {
        let mut files = Vec::with_capacity(meta.files.len());
        for metas in meta.files.chunks(OPENED_AT_ONCE) {
            let mut begun = Vec::with_capacity(metas.len());
            for meta in metas {
                let same = |other: &&Arc<RunFile>| other.meta().number == meta.number;
                begun.push(match open.iter().find(same) {
                    Some(file) => Opening::Open(Arc::clone(file)),
                    None => Opening::Begun(meta, self.begin_opening(meta)?),
                });
            }
            for file in begun {
                files.push(match file {
                    Opening::Open(file) => file,
                    Opening::Begun(meta, file) => Arc::new(self.finish_opening(meta, file)?),
                });
            }
        }
        let run = Arc::new(Run::new(files)?);
        Ok(Arc::new(StoredRun {
            run,
            meta: meta.clone(),
        }))
    }

    /// Opens a file by its name, and asks the system for the part of it that is read first.
    fn begin_opening(&self, meta: &FileMeta) -> Result<Box<dyn File>, Error> {
        let name = file_name(meta.number);
        let file = self
            .state
            .directory
            .open_to_read(&name)
            .map_err(|error| Error::io(&error, format_args!("open of {name}")))?;
        RunFile::will_open(&*file, meta);
        Ok(file)
    }

    fn finish_opening(&self, meta: &FileMeta, file: Box<dyn File>) -> Result<RunFile, Error> {
        RunFile::open(
            file,
            meta.clone(),
            self.identity(meta.number),
            self.operator_id.as_ref(),
            Arc::clone(&self.cache),
        )
    }

    /// Makes the manifest durable, which an earlier process may have left unsynced. Nothing may be
    /// added to the store before: a journal could survive a stop of the machine without the
    /// manifest that it belongs to.
    pub(crate) fn renew_manifest(&self) -> Result<(), Error> {
        self.make_manifest(&[])
    }

    /// Like [`renew_manifest`](Files::renew_manifest), for a store that is made with files beside
    /// it.
    pub(crate) fn make_manifest(&self, beside: &[NewFile<'_>]) -> Result<(), Error> {
        if self.is_manifest_durable.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut manifest = self.manifest.lock();
        if !self.is_manifest_durable.load(Ordering::Relaxed) {
            manifest
                .renew(beside)
                .map_err(|error| self.manifest_error(error))?;
            self.is_manifest_durable.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the error of a manifest that was not written. If it is unknown whether it was,
    /// nothing may be written any more.
    fn manifest_error(&self, error: WriteError) -> Error {
        match error {
            WriteError::Refused(error) => error,
            WriteError::Broken(error) => self.state.status.make_read_only(error),
        }
    }

    /// Makes the names of new files durable, and writes an edit that names them.
    pub(crate) fn write_edit(
        &self,
        manifest: &mut MutexGuard<'_, Manifest>,
        edit: Edit,
    ) -> Result<(), Error> {
        self.state.status.check_writable()?;
        if !is_injected(InjectedFault::EarlyEdit) {
            let synced = self.state.directory.sync();
            // After a failed sync it is unknown which names are durable.
            synced.map_err(|error| {
                self.state
                    .status
                    .make_read_only(Error::io(&error, "sync of the directory"))
            })?;
        }
        let edit = Edit {
            next_number: Some(self.next_number.load(Ordering::Relaxed)),
            clock: self.state.lifetimes.as_ref().map(Lifetimes::now),
            ..edit
        };
        manifest
            .write(edit)
            .map_err(|error| self.manifest_error(error))
    }

    /// Removes files that an edit should have named, which was not written. If it is unknown
    /// whether it was, they stay.
    pub(crate) fn remove_unnamed<'f>(&self, files: impl IntoIterator<Item = &'f FileMeta>) {
        if self.state.status.check_writable().is_ok() {
            for file in files {
                let _ = self.state.directory.remove(&file_name(file.number));
            }
        }
    }

    /// Replaces other runs, or a memtable, by a run, for readers that come from now on. The
    /// manifest says so already.
    pub(crate) fn exchange(
        &self,
        flushed: Option<&Arc<Sealed>>,
        removed: &[RunId],
        added: Option<Arc<StoredRun>>,
    ) {
        let old = self.state.versions.exchange(|version| {
            let is_removed = |run: &StoredRun| removed.contains(&run.meta.id);
            let mut runs: Vec<_> = version
                .runs
                .iter()
                .filter(|run| !is_removed(run))
                .cloned()
                .collect();
            if let Some(added) = &added {
                let older = |run: &Arc<StoredRun>| run.meta.last_seq < added.meta.first_seq;
                let index = runs.iter().position(older).unwrap_or(runs.len());
                runs.insert(index, Arc::clone(added));
            }
            let is_flushed =
                |sealed: &&Arc<Sealed>| flushed.is_some_and(|flushed| Arc::ptr_eq(sealed, flushed));
            let sealed = version
                .sealed
                .iter()
                .filter(|sealed| !is_flushed(sealed))
                .cloned()
                .collect();
            Version {
                active: Arc::clone(&version.active),
                sealed,
                runs,
            }
        });
        for run in old.runs.iter().filter(|run| removed.contains(&run.meta.id)) {
            for file in run.run.files() {
                let number = file.meta().number;
                let kept = added
                    .as_ref()
                    .is_some_and(|run| run.meta.files.iter().any(|file| file.number == number));
                if !kept {
                    self.state.obsolete.add(file);
                }
            }
        }
        if let Some(flushed) = flushed {
            self.state.obsolete.add_memtable(&flushed.memtable);
        }
        drop(old);
        self.reserve.note_largest_file();
        self.state.update_back_pressure();
        self.state.remove_obsolete();
    }

    /// Removes the files that were not needed when the store was opened. Returns `true` if there
    /// were any.
    ///
    /// Removal waits until all files that the manifest names were found. The manifest may be an
    /// earlier one, put back by mistake, and then the files that it does not name are the store. A
    /// file that cannot be removed only takes space.
    pub(crate) fn remove_unneeded(&self) -> Result<bool, Error> {
        if self.unneeded.lock().is_empty() {
            return Ok(false);
        }
        self.renew_manifest()?;
        for name in std::mem::take(&mut *self.unneeded.lock()) {
            let _ = self.state.directory.remove(&name);
        }
        Ok(true)
    }

    /// Returns the id of a new run. Runs and files draw from the same numbers.
    pub(crate) fn new_run_id(&self) -> RunId {
        RunId::new(self.next_number.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number of a new file.
    pub(crate) fn new_file_number(&self) -> FileNumber {
        FileNumber::new(self.next_number.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns a new file for a run.
    pub(crate) fn begin_file(&self, number: FileNumber) -> Result<FileWriter, Error> {
        let name = file_name(number);
        let file = self
            .state
            .directory
            .create(&name)
            .map_err(|error| Error::io(&error, format_args!("making {name}")))?;
        Ok(FileWriter::new(file, self.identity(number), &self.settings))
    }

    /// Returns the contents of a manifest that has these runs, of which all changes up to `flushed`
    /// are.
    pub(crate) fn contents_of(
        &self,
        runs: &[Arc<StoredRun>],
        flushed: Seq,
        first_journal: JournalNumber,
    ) -> Contents {
        Contents {
            runs: runs.iter().map(|run| run.meta.clone()).collect(),
            flushed,
            first_journal,
            next_number: self.next_number.load(Ordering::Relaxed),
            clock: self.state.moment(),
            ..Contents::empty(self.state.store, self.operator_id.clone())
        }
    }

    fn identity(&self, number: FileNumber) -> Identity {
        Identity {
            store: self.state.store,
            number,
        }
    }
}
