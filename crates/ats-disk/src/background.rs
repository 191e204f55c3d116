//! Work that no caller waits for: memtables are written to runs, runs compacted, journals synced at
//! intervals, and snapshots expire. The threads are those of the [pools](crate::pool).

mod idle;

use crate::engine::Engine;
use crate::error::Error;
use crate::fs;
use crate::options::Durability;
use crate::pool::{Member, Pool, Turn};
use crate::state::State;
use crate::write::Writer;
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
/// Interval at which a store looks for work that nobody signals.
const UNTOLD: Duration = Duration::from_secs(30);
/// Time after which it is looked again if a memtable is still read, by a reader without a snapshot,
/// or a journal synced.
const PINNED_RETRY: Duration = Duration::from_millis(50);

/// The member that syncs a store at intervals.
struct Syncing(Arc<Writer>);

impl Member for Syncing {
    fn urgent_turn(&self) -> Turn {
        self.0.state.write_state.lock().is_sync_due = false;
        // After an error the store is read-only, which writers are told.
        let _failed = self.0.sync();
        Turn::Idle
    }
}

impl Member for Worker {
    fn urgent_turn(&self) -> Turn {
        self.state().background.begin_turn();
        self.turn(|| {
            self.engine.writer.prepare();
            self.reclaim_unneeded();
            self.engine.writer.relieve_memory();
            Ok(
                if !self.engine.files.reserve.is_short() && self.engine.flusher.try_flush_one()? {
                    Turn::Again
                } else {
                    Turn::Long
                },
            )
        })
    }

    fn long_turn(&self) -> Turn {
        self.turn(|| {
            let worked = self.work_long()? || self.is_idle() && self.work_when_idle()?;
            Ok(if worked { Turn::Again } else { self.rest()? })
        })
    }
}

/// The background work of a store.
pub(crate) struct Worker {
    engine: Arc<Engine>,
    idle_timer: IdleTimer,
}

impl Worker {
    /// Makes the worker of a store, which [`start`](Worker::start) gives threads.
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Worker {
            engine,
            idle_timer: IdleTimer::default(),
        }
    }

    fn state(&self) -> &State {
        &self.engine.state
    }

    /// Does one piece of work. Returns `true` if there was any.
    pub(crate) fn work(&self) -> Result<bool, Error> {
        self.reclaim_unneeded();
        Ok(
            !self.engine.files.reserve.is_short() && self.engine.flusher.try_flush_one()?
                || self.work_long()?,
        )
    }

    /// Does one piece of work that nobody waits for. Returns `true` if there was any.
    fn work_long(&self) -> Result<bool, Error> {
        if self.engine.files.reserve.is_short() {
            self.engine.work_when_short()
        } else {
            Ok(self.engine.compactor.compact_one(false)? || self.state().remove_obsolete())
        }
    }

    /// Lets go of expired snapshots, and of the memtables, files and journals that only they have
    /// read.
    fn reclaim_unneeded(&self) {
        let now = self.state().file_system.now();
        if let Some(age) = self.state().options.snapshot_age {
            self.state().expiry.expire(now, age);
        }
        self.state().expiry.end_old(now);
        self.state().obsolete.reclaim();
    }

    /// Takes a turn, unless the store is being closed.
    fn turn(&self, work: impl FnOnce() -> Result<Turn, Error>) -> Turn {
        if self.state().status.is_closing() {
            return Turn::Idle;
        }
        // A panic is a fault of the engine. The interrupted work has changed nothing, but is not
        // tried again and again.
        let worked = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Err(self
                .state()
                .status
                .make_read_only(Error::corrupt("a fault of the engine")))
        });
        worked.unwrap_or_else(|error| {
            self.state().stats.on_background_error();
            self.state().status.note_background_error(error);
            Turn::After(RETRY)
        })
    }

    /// Returns the time until there may be something to do, when there is nothing now.
    fn rest(&self) -> Result<Turn, Error> {
        let until_deadline = self
            .state()
            .expiry
            .until_deadline(self.state().file_system.now());
        let until_deadline = until_deadline.map(|time| time.max(PINNED_RETRY));
        if self.state().obsolete.has_pinned() {
            return Ok(Turn::After(PINNED_RETRY));
        }
        // A store that is short may have room again.
        if self.engine.files.reserve.is_short() || !self.is_idle() {
            return Ok(Turn::After(IDLE_AFTER));
        }
        let lasted = self.idle_time();
        let is_due = lasted >= CLOSE_AFTER || fs::is_scarce();
        let has_logs = self.has_open_logs() && !(is_due && self.engine.writer.close_logs()?);
        // The next write wakes the store if there was none until now.
        let Some(mut write_state) = self.state().write_state.try_lock() else {
            return Ok(Turn::After(IDLE_AFTER));
        };
        write_state.is_watched = !self.is_idle();
        if write_state.is_watched {
            return Ok(Turn::After(IDLE_AFTER));
        }
        drop(write_state);
        let is_untold =
            self.state().obsolete.has_files() || self.engine.files.reserve.has_full_compaction();
        let has_snapshots = || self.state().expiry.count() > 0;
        let age = self.state().options.snapshot_age;
        let age = age.filter(|_| self.state().background.continue_watching(has_snapshots));
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
        let groups = self.state().stats.groups.load(Ordering::Relaxed);
        self.idle_timer
            .measure(groups, self.state().file_system.now())
    }

    /// Returns `true` if files are open to be written.
    fn has_open_logs(&self) -> bool {
        let journal = self.state().write_state.try_lock();
        journal.is_none_or(|write_state| write_state.journal.is_open())
            || self.engine.writer.next_journal.is_begun()
    }

    /// Does one piece of the work for times without writes. Returns `true` if there was any.
    fn work_when_idle(&self) -> Result<bool, Error> {
        self.engine.writer.memtable_pool.release();
        self.engine.compactor.compact_one(true)
    }

    /// Begins the background work that the options ask for. After an error there may be some.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        let state = self.state();
        if state.status.is_opened_read_only() || !state.options.background {
            return Ok(());
        }
        if let Durability::Interval(_) = state.options.durability {
            let membership =
                Pool::of_syncs().join(Arc::new(Syncing(Arc::clone(&self.engine.writer))))?;
            state.background.set_sync_membership(Arc::new(membership));
        }
        let member = Arc::clone(self) as Arc<dyn Member>;
        let membership = Arc::new(Pool::of_work().join(member)?);
        if let Some(share) = &state.share {
            share.set_membership(Arc::clone(&membership));
        }
        state.background.set_membership(membership);
        Ok(())
    }
}
