//! Flush: a memtable becomes a run.

use crate::cursor::{MergeCursor, Source};
use crate::entry::collapse::Chain;
use crate::error::Error;
use crate::files::{Files, RunWriter};
use crate::ids::{JournalNumber, Seq};
use crate::journal;
use crate::manifest::{Edit, RunMeta};
use crate::memtable::MemtableCursor;
use crate::state::{Sealed, State, Version};
use crate::write::Writer;
use ats_store::{Direction, MayBlock};
use parking_lot::Mutex;
use std::mem;
use std::sync::Arc;

/// The part of a store that writes memtables to runs.
pub(crate) struct Flusher {
    state: Arc<State>,
    files: Arc<Files>,
    writer: Arc<Writer>,
    /// Held by the thread that writes memtables to runs.
    flushing: Mutex<()>,
    pins: Mutex<Pins>,
}

/// The journals that stay although they are not needed any more.
#[derive(Default)]
struct Pins {
    /// The number of those for whom they stay.
    count: usize,
    /// Journals with lower numbers should have been removed meanwhile.
    first_needed: JournalNumber,
}

/// Guard that keeps the journals of each version that is loaded after it.
pub(crate) struct JournalPin<'f>(&'f Flusher);

impl Drop for JournalPin<'_> {
    fn drop(&mut self) {
        let first_needed = {
            let mut pins = self.0.pins.lock();
            pins.count -= 1;
            match pins.count {
                0 => mem::take(&mut pins.first_needed),
                _ => JournalNumber::default(),
            }
        };
        if first_needed > JournalNumber::default() {
            self.0.unlink_journals(first_needed);
        }
    }
}

impl Flusher {
    pub(crate) fn new(files: Arc<Files>, writer: Arc<Writer>) -> Self {
        Flusher {
            state: Arc::clone(&files.state),
            files,
            writer,
            flushing: Mutex::default(),
            pins: Mutex::default(),
        }
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// Keeps journals from being removed.
    pub(crate) fn pin_journals(&self) -> JournalPin<'_> {
        self.pins.lock().count += 1;
        JournalPin(self)
    }

    /// Writes the oldest sealed memtable to a run. Returns `true` if there was one.
    pub(crate) fn flush_one(&self) -> Result<bool, Error> {
        let _flushing = self.flushing.lock();
        self.flush_and_free()
    }

    /// Writes to runs the sealed memtables that have changes up to this sequence number.
    pub(crate) fn flush_up_to(&self, last_seq: Seq) -> Result<(), Error> {
        let is_wanted = |sealed: &Arc<Sealed>| sealed.first_seq <= last_seq;
        while self
            .state
            .versions
            .current()
            .sealed
            .last()
            .is_some_and(is_wanted)
        {
            self.flush_one()?;
        }
        Ok(())
    }

    /// Like [`flush_one`](Flusher::flush_one), but does nothing while another thread flushes.
    pub(crate) fn try_flush_one(&self) -> Result<bool, Error> {
        match self.flushing.try_lock() {
            Some(_flushing) => self.flush_and_free(),
            None => Ok(false),
        }
    }

    fn flush_and_free(&self) -> Result<bool, Error> {
        let flushed = self.files.reserve.with_reserve(|| self.flush_oldest());
        let most = self.state.options.snapshot_memory;
        self.state.expiry.bound_memory(most);
        // The flush has released the memtable.
        self.state.obsolete.reclaim();
        self.state.tell_memory(&self.state.versions.current());
        flushed
    }

    /// The caller holds `flushing`.
    fn flush_oldest(&self) -> Result<bool, Error> {
        let version = self.state.versions.current_arc();
        let Some(sealed) = version.sealed.last() else {
            return Ok(false);
        };
        self.state.status.check_writable()?;
        let started = self.state.file_system.now();
        let meta = self.write_memtable(&version, sealed)?;
        let run = if meta.files.is_empty() {
            None
        } else {
            Some(self.files.open_run(&meta, &[])?)
        };
        let bytes = meta.bytes();
        let files = meta.files.clone();
        let first_journal = sealed.next_journal;
        {
            let mut manifest = self.files.manifest.lock();
            let edit = Edit {
                added: run.is_some().then_some(meta).into_iter().collect(),
                flushed: Some((sealed.last_seq, first_journal)),
                ..Edit::default()
            };
            if let Err(error) = self.files.write_edit(&mut manifest, edit) {
                self.files.remove_unnamed(&files);
                return Err(error);
            }
            self.files.exchange(Some(sealed), &[], run);
        }
        self.remove_journals(first_journal);
        let took = self.state.file_system.now().saturating_sub(started);
        self.state.stats.on_flush(bytes);
        for back_pressure in self.state.back_pressures() {
            back_pressure.on_flush(sealed.memtable.bytes(), took);
        }
        Ok(true)
    }

    /// Writes the files of a run of a memtable.
    fn write_memtable(&self, version: &Version, sealed: &Sealed) -> Result<RunMeta, Error> {
        // Nothing that is older can be there when there is no run: this is the oldest memtable.
        let is_bottom = version.runs.is_empty();
        let deletes = if is_bottom {
            Arc::default()
        } else {
            sealed.memtable.range_deletes(Seq::MAX)
        };
        let memtable = Arc::clone(&sealed.memtable);
        let source = Source {
            cursor: Box::new(MemtableCursor::new(memtable, Seq::MAX, true)),
            range_deletes: None,
        };
        let mut cursor = MergeCursor::new(vec![source]);
        cursor.seek(Some(MayBlock::here()), Direction::Up, None)?;
        let seqs = (sealed.first_seq, sealed.last_seq);
        let bytes = sealed.memtable.bytes() as u64;
        let mut writer = RunWriter::new(&self.files, seqs, deletes, None, bytes);
        let mut chain = Chain::new();
        let (expires, moment) = (self.state.lifetimes.is_some(), self.state.moment());
        let operator = self.state.options.operator.as_deref();
        while let Some(key) = cursor.key() {
            cursor.gather(operator, &mut chain);
            if chain.collapse(key, operator, is_bottom).is_err() {
                self.state.stats.on_refused_merges(1);
            }
            if expires && chain.expire(moment, is_bottom) {
                self.state.stats.on_expired();
            }
            if !chain.is_empty() {
                writer.add(key, &chain)?;
            }
            cursor.advance(Some(MayBlock::here()))?;
        }
        writer.finish_file(None)?;
        Ok(RunMeta {
            id: self.files.new_run_id(),
            first_seq: sealed.first_seq,
            last_seq: sealed.last_seq,
            files: writer.take_complete(),
        })
    }

    /// Lets nothing be written any more. If it was flushed, and all changes are in runs since
    /// nothing was written meanwhile, all journals are removed; the next opening need not look at
    /// them then.
    pub(crate) fn end_writing(&self, is_flushed: bool) {
        let write_state = self.state.write_state.lock();
        // Before the journals are removed, and while writers are kept away: one that is waiting
        // would write to a journal without a name.
        self.state
            .status
            .make_read_only(Error::ReadOnly("it was closed".into()));
        if is_flushed
            && !self.state.status.is_opened_read_only()
            && write_state.last_seq == self.files.manifest.lock().contents().flushed
        {
            self.unlink_journals(JournalNumber::new(u64::MAX));
            self.files.reserve.shrink_to_runs();
        }
    }

    /// Removes the journals before this one, whose changes are in runs.
    pub(crate) fn remove_journals(&self, first_needed: JournalNumber) {
        let forgotten = self.state.write_state.lock().journal.forget(first_needed);
        self.unlink_journals(first_needed);
        self.state.obsolete.add_journals(forgotten);
    }

    /// Removes the files of journals before this one. A journal that cannot be removed stays until
    /// the next opening. The version that needs none of them is current already, so a version that
    /// is loaded under a pin that this does not see yet is that one or a later one.
    fn unlink_journals(&self, first_needed: JournalNumber) {
        {
            let mut pins = self.pins.lock();
            if pins.count > 0 {
                pins.first_needed = pins.first_needed.max(first_needed);
                return;
            }
        }
        let Ok(names) = self.state.directory.list() else {
            return;
        };
        for name in names {
            if journal::number(&name).is_some_and(|number| number < first_needed) {
                let _ = self.state.directory.remove(&name);
            }
        }
    }

    /// Does the work that writers may soon wait for, in the midst of other work.
    pub(crate) fn do_urgent(&self) -> Result<(), Error> {
        if self.state.options.background {
            self.writer.prepare();
            self.state.obsolete.reclaim();
            if !self.state.versions.current().sealed.is_empty() {
                self.try_flush_one()?;
            }
        }
        Ok(())
    }
}
