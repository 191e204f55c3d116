//! Work that no caller waits for: memtables are written to runs, runs compacted, journals synced at
//! intervals, and snapshots expire. The threads are those of the [pools](crate::pool).

mod idle;

use crate::batch::Batch;
use crate::blocking;
use crate::compaction::Compactor;
use crate::error::Error;
use crate::files::Files;
use crate::flush::Flusher;
use crate::fs;
use crate::options::Durability;
use crate::pool::{Member, Pool, Turn};
use crate::state::Core;
use crate::write::Writer;
use ats_store::MayBlock;
use idle::{CLOSE_AFTER, IDLE_AFTER, IdleTimer};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// After an error the work is tried again after this long: there may be room on the disk then.
const RETRY: Duration = Duration::from_millis(200);
/// Snapshots are asked so often at most if they have expired.
const TICK: Duration = Duration::from_millis(500);
/// Time after which a store looks again for what nobody tells it of.
const UNTOLD: Duration = Duration::from_secs(30);
/// While the store is short, memtables that are not full are sealed after this long: then all files
/// are looked at again.
const SEAL_PAUSE: Duration = Duration::from_secs(1);
/// While the store is short, what is compacted has at most this part of the reserve.
const SHORT_COMPACTION_PART: u64 = 2;
/// Time after which it is looked again if a memtable is still read, by a reader without a snapshot,
/// or a journal synced.
const PINNED_RETRY: Duration = Duration::from_millis(50);

/// The member that syncs a store at intervals.
struct Syncing(Arc<Writer>);

impl Member for Syncing {
    fn urgent_turn(&self) -> Turn {
        self.0.core.write_state.lock().is_sync_due = false;
        // After an error the store is read-only, which writers are told.
        let _failed = self.0.sync();
        Turn::Idle
    }
}

impl Member for Worker {
    fn urgent_turn(&self) -> Turn {
        self.core.background.begin_turn();
        self.turn(|| {
            self.writer.prepare();
            self.release_unneeded();
            self.writer.relieve_memory();
            Ok(
                match !self.files.reserve.is_short() && self.flusher.try_flush_one()? {
                    true => Turn::Again,
                    false => Turn::Long,
                },
            )
        })
    }

    fn long_turn(&self) -> Turn {
        self.turn(|| {
            let worked = self.work_long()? || self.is_idle() && self.work_when_idle()?;
            Ok(match worked {
                true => Turn::Again,
                false => self.rest()?,
            })
        })
    }
}

/// The part of a store that works in the background, and makes room.
pub(crate) struct Worker {
    pub(crate) core: Arc<Core>,
    pub(crate) files: Arc<Files>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) flusher: Arc<Flusher>,
    pub(crate) compactor: Compactor,
    idle_timer: IdleTimer,
}

impl Worker {
    /// A store of these parts, and of those that are made here.
    pub(crate) fn new(files: Files) -> Self {
        let files = Arc::new(files);
        let writer = Arc::new(Writer::new(Arc::clone(&files)));
        let flusher = Arc::new(Flusher::new(Arc::clone(&files), Arc::clone(&writer)));
        Worker {
            core: Arc::clone(&files.core),
            compactor: Compactor::new(Arc::clone(&files), Arc::clone(&flusher)),
            files,
            writer,
            flusher,
            idle_timer: IdleTimer::default(),
        }
    }

    /// Does one piece of work. Returns `true` if there was any.
    pub(crate) fn work(&self) -> Result<bool, Error> {
        self.release_unneeded();
        Ok(!self.files.reserve.is_short() && self.flusher.try_flush_one()? || self.work_long()?)
    }

    /// Does one piece of work that nobody waits for. Returns `true` if there was any.
    fn work_long(&self) -> Result<bool, Error> {
        match self.files.reserve.is_short() {
            true => self.work_when_short(),
            false => Ok(self.compactor.compact_one(false)? || self.core.remove_obsolete()),
        }
    }

    /// Lets go of what is not needed any more: expired snapshots, and what they have read.
    fn release_unneeded(&self) {
        let now = self.core.file_system.now();
        if let Some(age) = self.core.options.snapshot_age {
            self.core.expiry.expire(now, age);
        }
        self.core.expiry.end_old(now);
        self.core.obsolete.free();
    }

    /// Takes a turn, unless the store is being closed.
    fn turn(&self, work: impl FnOnce() -> Result<Turn, Error>) -> Turn {
        if self.core.status.is_closing() {
            return Turn::Idle;
        }
        // A panic is a fault of the engine: what it was about is as it was, but is not tried again
        // and again.
        let worked = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Err(self
                .core
                .status
                .make_read_only(Error::corrupt("a fault of the engine")))
        });
        worked.unwrap_or_else(|error| {
            self.core.stats.on_background_error();
            self.core.status.note_background_error(error);
            Turn::After(RETRY)
        })
    }

    /// The time until there may be something to do, when there is nothing now.
    fn rest(&self) -> Result<Turn, Error> {
        let until_deadline = self.core.expiry.until_deadline(self.core.file_system.now());
        let until_deadline = until_deadline.map(|time| time.max(PINNED_RETRY));
        if self.core.obsolete.has_pinned() {
            return Ok(Turn::After(PINNED_RETRY));
        }
        // A store that is short may have room again.
        if self.files.reserve.is_short() || !self.is_idle() {
            return Ok(Turn::After(IDLE_AFTER));
        }
        let lasted = self.idle_time();
        let is_due = lasted >= CLOSE_AFTER || fs::is_scarce();
        let has_logs = self.has_open_logs() && !(is_due && self.close_logs()?);
        // The next write wakes the store if there was none until now.
        let Some(mut write_state) = self.core.write_state.try_lock() else {
            return Ok(Turn::After(IDLE_AFTER));
        };
        write_state.is_watched = !self.is_idle();
        if write_state.is_watched {
            return Ok(Turn::After(IDLE_AFTER));
        }
        drop(write_state);
        let is_untold = self.core.obsolete.has_files() || self.files.reserve.has_full_compaction();
        let has_snapshots = || self.core.expiry.count() > 0;
        let age = self.core.options.snapshot_age;
        let age = age.filter(|_| self.core.background.continue_watching(has_snapshots));
        let times = [
            has_logs.then_some(IDLE_AFTER),
            is_untold.then_some(UNTOLD),
            age.map(|age| (age / 4).clamp(TICK, UNTOLD)),
            until_deadline,
        ];
        let first = times.into_iter().flatten().min();
        Ok(first.map_or(Turn::Idle, Turn::After))
    }

    /// Returns `true` if there were no writes for long.
    fn is_idle(&self) -> bool {
        self.idle_time() >= IDLE_AFTER
    }

    fn idle_time(&self) -> Duration {
        let groups = self.core.stats.groups.load(Ordering::Relaxed);
        self.idle_timer.measure(groups, self.core.file_system.now())
    }

    /// Returns `true` if files are open to be written.
    fn has_open_logs(&self) -> bool {
        let journal = self.core.write_state.try_lock();
        journal.is_none_or(|write_state| write_state.journal.is_open())
            || self.writer.next_journal.is_begun()
    }

    /// Closes the file of the journal, which the next change opens again. Writes are synced before,
    /// because nobody would be told of an error that comes later. Returns `true` if it is closed,
    /// `false` if it is in use.
    pub(crate) fn close_logs(&self) -> Result<bool, Error> {
        self.writer.sync()?;
        let is_closed =
            (self.core.write_state.try_lock()).is_some_and(|mut all| all.journal.close());
        if is_closed {
            self.writer.next_journal.give_up();
        }
        Ok(is_closed)
    }

    /// Does one piece of what is left for times without writes. Returns `true` if there was any.
    fn work_when_idle(&self) -> Result<bool, Error> {
        self.writer.memtable_pool.release();
        self.compactor.compact_one(true)
    }

    /// Begins the background work that the options ask for. After an error there may be some.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let core = &self.core;
        if core.status.is_opened_read_only() || !core.options.background {
            return Ok(());
        }
        if let Durability::Interval(_) = core.options.durability {
            let membership = Pool::of_syncs().join(Arc::new(Syncing(Arc::clone(&self.writer))))?;
            core.background.set_sync_membership(Arc::new(membership));
        }
        let member = Arc::clone(self) as Arc<dyn Member>;
        let membership = Arc::new(Pool::of_work().join(member)?);
        if let Some(share) = &core.share {
            share.set_membership(Arc::clone(&membership));
        }
        core.background.set_membership(membership);
        Ok(())
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
                Err(error) if error.is_full() && self.core.status.check_writable().is_ok() => error,
                done => return done,
            };
            // To make room takes long.
            blocking::check(may_block)?;
            let gives_back = self.files.reserve.give_back(&*self.core.directory);
            self.core.background.wake();
            let tries = batch.only_deletes() || !self.core.options.background;
            if !tries || gives_back && gave_back {
                return Err(error);
            }
            gave_back |= gives_back;
            if !gives_back && !matches!(self.work_when_short(), Ok(true)) {
                return Err(error);
            }
        }
    }

    /// Does one piece of what makes room while the store is short of it. Returns `true` if there
    /// was any.
    pub(crate) fn work_when_short(&self) -> Result<bool, Error> {
        if self.make_room()? {
            return Ok(true);
        }
        let _making = self.files.reserve.making.lock();
        let bytes = self.files.reserve.needed_bytes(0);
        let is_clear = self.core.versions.current().sealed.is_empty();
        Ok(is_clear && self.files.reserve.take_again(&*self.core.directory, bytes))
    }

    /// Does one piece of what makes room. Returns `true` if there was any.
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
            || self.core.remove_obsolete();
        Ok(done || self.seal_deletes())
    }

    /// Lets the active memtable be written to a run, for the sake of deletes in it, unless that was
    /// done just now. Returns `true` if there was something in it.
    fn seal_deletes(&self) -> bool {
        let now = self.core.file_system.now();
        let mut next_seal = self.files.reserve.next_seal.lock();
        let mut write_state = self.core.write_state.lock();
        if write_state.last_seq == write_state.sealed_seq || now < *next_seal {
            return false;
        }
        *next_seal = now + SEAL_PAUSE;
        self.writer.seal(&mut write_state);
        true
    }
}
