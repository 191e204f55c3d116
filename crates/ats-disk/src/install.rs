//! Making a change of the runs durable, and then visible.

use crate::core::{Core, file_name};
use crate::error::Error;
use crate::file::{FileMeta, Run, RunFile};
use crate::manifest::{Edit, Manifest, RunMeta, WriteError};
use crate::planted::{Fault, is_planted};
use crate::state::{Sealed, State, StoredRun};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// Opens the files of a run; those that are open already are given.
    pub(crate) fn open_run(
        &self,
        meta: &RunMeta,
        open: &[Arc<RunFile>],
    ) -> Result<Arc<StoredRun>, Error> {
        let files = meta.files.iter().map(|file| {
            let same = |other: &&Arc<RunFile>| other.meta().number == file.number;
            match open.iter().find(same) {
                Some(file) => Ok(Arc::clone(file)),
                None => self.open_file(file).map(Arc::new),
            }
        });
        let run = Arc::new(Run::new(files.collect::<Result<_, _>>()?)?);
        Ok(Arc::new(StoredRun {
            run,
            meta: meta.clone(),
        }))
    }

    fn open_file(&self, meta: &FileMeta) -> Result<RunFile, Error> {
        let name = file_name(meta.number);
        let file = self
            .directory
            .open_to_read(&name)
            .map_err(|error| Error::io(&error, format_args!("open of {name}")))?;
        RunFile::open(
            file,
            meta.clone(),
            self.identity(meta.number),
            self.operator_id(),
            Arc::clone(&self.cache),
        )
    }

    /// Makes durable what the manifest says, which may be what an earlier process has left. Nothing may be added to the
    /// store before: a journal could survive a stop of the machine, and the manifest that it belongs to not.
    pub(crate) fn renew_manifest(&self) -> Result<(), Error> {
        if self.is_manifest_durable.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut manifest = self.manifest.lock();
        if !self.is_manifest_durable.load(Ordering::Relaxed) {
            manifest.renew().map_err(|error| self.not_written(error))?;
            self.is_manifest_durable.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The error of a manifest that was not written. If it is unknown whether it was, nothing may be written any more.
    fn not_written(&self, error: WriteError) -> Error {
        match error {
            WriteError::Refused(error) => error,
            WriteError::Broken(error) => self.broken(error),
        }
    }

    /// Makes the names of new files durable, and writes an edit that names them.
    pub(crate) fn write_edit(
        &self,
        manifest: &mut MutexGuard<'_, Manifest>,
        edit: Edit,
    ) -> Result<(), Error> {
        self.check_writable()?;
        if !is_planted(Fault::EarlyEdit) {
            let synced = self.directory.sync();
            // It is unknown which names are durable.
            synced.map_err(|error| self.broken(Error::io(&error, "sync of the directory")))?;
        }
        let edit = Edit {
            next_number: Some(self.next_number.load(Ordering::Relaxed)),
            ..edit
        };
        manifest
            .write(edit)
            .map_err(|error| self.not_written(error))
    }

    /// Removes files that an edit should have named, which was not written. If it is unknown whether it was, they stay.
    pub(crate) fn remove_unnamed<'f>(&self, files: impl IntoIterator<Item = &'f FileMeta>) {
        if self.check_writable().is_ok() {
            for file in files {
                let _ = self.directory.remove(&file_name(file.number));
            }
        }
    }

    /// Puts a run in the place of others, or of a memtable, for readers that come from now on. The manifest says
    /// so already.
    pub(crate) fn exchange(
        &self,
        flushed: Option<&Arc<Sealed>>,
        removed: &[u64],
        added: Option<Arc<StoredRun>>,
    ) {
        let old = {
            let _swapping = self.swapping.lock();
            let state = self.state.load_full();
            let is_removed = |run: &StoredRun| removed.contains(&run.meta.id);
            let mut runs: Vec<_> = state
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
            let sealed = state
                .sealed
                .iter()
                .filter(|sealed| !is_flushed(sealed))
                .cloned()
                .collect();
            self.state.store(Arc::new(State {
                active: Arc::clone(&state.active),
                sealed,
                runs,
            }));
            state
        };
        for run in old.runs.iter().filter(|run| removed.contains(&run.meta.id)) {
            for file in run.run.files() {
                let number = file.meta().number;
                let kept = added
                    .as_ref()
                    .is_some_and(|run| run.meta.files.iter().any(|file| file.number == number));
                if !kept {
                    self.doomed.add(file);
                }
            }
        }
        if let Some(flushed) = flushed {
            self.doomed.add_memtable(&flushed.memtable);
        }
        drop(old);
        self.note_largest_file();
        self.update_pressure();
        self.remove_doomed();
    }
}
