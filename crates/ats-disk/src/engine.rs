//! The parts of an open store together, which write and make room for writes.

use crate::batch::Batch;
use crate::blocking;
use crate::compaction::Compactor;
use crate::error::Error;
use crate::files::Files;
use crate::flush::Flusher;
use crate::options::Durability;
use crate::state::State;
use crate::write::Writer;
use ats_store::MayBlock;
use std::sync::Arc;
use std::time::Duration;

/// Minimum age of a memtable that is sealed before it is full, while the store is short. After its
/// flush all files are looked at again.
const SEAL_PAUSE: Duration = Duration::from_secs(1);
/// Divisor of the reserve that gives the most bytes of a compaction while the store is short.
const SHORT_COMPACTION_PART: u64 = 2;

/// The parts of an open store.
pub(crate) struct Engine {
    pub(crate) state: Arc<State>,
    pub(crate) files: Arc<Files>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) flusher: Arc<Flusher>,
    pub(crate) compactor: Compactor,
}

impl Engine {
    /// Makes the parts that stand on these files.
    pub(crate) fn new(files: Files) -> Self {
        let files = Arc::new(files);
        let writer = Arc::new(Writer::new(Arc::clone(&files)));
        let flusher = Arc::new(Flusher::new(Arc::clone(&files), Arc::clone(&writer)));
        Engine {
            state: Arc::clone(&files.state),
            compactor: Compactor::new(Arc::clone(&files), Arc::clone(&flusher)),
            files,
            writer,
            flusher,
        }
    }

    /// Makes the changes of a batch. If there is no room the reserve is given back, and a batch
    /// that only deletes is tried again; so are others in a store without threads, where nobody
    /// else makes room.
    pub(crate) fn commit(
        &self,
        may_block: Option<MayBlock>,
        batch: &Batch,
        durability: Durability,
    ) -> Result<(), Error> {
        let mut gave_back = false;
        loop {
            let error = match self.writer.commit_once(may_block, batch, durability) {
                // After a sync that has failed it is unknown whether the batch is there.
                Err(error) if error.is_full() && self.state.status.check_writable().is_ok() => {
                    error
                }
                done => return done,
            };
            // Making room is slow.
            blocking::check(may_block)?;
            let gives_back = self.files.reserve.give_back(&*self.state.directory);
            self.state.background.wake();
            let tries = batch.only_deletes() || !self.state.options.background;
            if !tries || gives_back && gave_back {
                return Err(error);
            }
            gave_back |= gives_back;
            if !gives_back && !matches!(self.work_when_short(), Ok(true)) {
                return Err(error);
            }
        }
    }

    /// Does one piece of work that makes room while the store is short of it. Returns `true` if
    /// there was any.
    pub(crate) fn work_when_short(&self) -> Result<bool, Error> {
        if self.make_room()? {
            return Ok(true);
        }
        let _making = self.files.reserve.making.lock();
        let bytes = self.files.reserve.needed_bytes(0);
        let is_clear = self.state.versions.current().sealed.is_empty();
        Ok(is_clear && self.files.reserve.take_again(&*self.state.directory, bytes))
    }

    /// Does one piece of work that makes room. Returns `true` if there was any.
    ///
    /// One thread does that at a time: each piece needs the room that there is.
    pub(crate) fn make_room(&self) -> Result<bool, Error> {
        let _making = self.files.reserve.making.lock();
        if self.files.remove_unneeded()? || self.compactor.give_up_compactions()? {
            return Ok(true);
        }
        if self.flusher.flush_one()? {
            self.files.reserve.forget_purged();
            return Ok(true);
        }
        let bytes = self.files.reserve.needed_bytes(0) / SHORT_COMPACTION_PART;
        let done = self.compactor.purge_some(bytes)?
            || self.compactor.compact_small(bytes)?
            || self.state.remove_obsolete();
        Ok(done || self.seal_deletes())
    }

    /// Lets the active memtable be written to a run, for the sake of deletes in it, unless that was
    /// done just now. Returns `true` if there was something in it.
    fn seal_deletes(&self) -> bool {
        let now = self.state.file_system.now();
        let mut next_seal = self.files.reserve.next_seal.lock();
        let mut write_state = self.state.write_state.lock();
        if write_state.last_seq == write_state.sealed_seq || now < *next_seal {
            return false;
        }
        *next_seal = now + SEAL_PAUSE;
        self.writer.seal(&mut write_state);
        true
    }
}
