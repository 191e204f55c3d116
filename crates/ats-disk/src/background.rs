//! Work that no caller waits for: memtables are written to runs, runs merged, journals synced at
//! intervals, and snapshots expire. The threads are those of the [pools](crate::pool).

use crate::core::Core;
use crate::error::Error;
use crate::fs;
use crate::lull::{LULL, REST};
use crate::memory;
use crate::options::Durability;
use crate::pool::{Member, Pool, Seat, Turn};
use crate::waiting;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// After an error the work is tried again after this long: there may be room on the disk then.
const RETRY: Duration = Duration::from_millis(200);
/// Snapshots are asked so often at most if they have expired.
const TICK: Duration = Duration::from_millis(500);
/// Time after which a store looks again for what nobody tells it of.
const UNTOLD: Duration = Duration::from_secs(30);
/// The journal is not synced more often than this, other than for writes that wait for it.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// Time after which it is looked again if a memtable is still read, by a reader without a snapshot,
/// or a journal synced.
const HELD: Duration = Duration::from_millis(50);

/// The seats of a store in the pools; none if it has no background work.
#[derive(Default)]
pub(crate) struct Background {
    seat: OnceLock<Arc<Seat>>,
    sync_seat: OnceLock<Arc<Seat>>,
    /// `true` while turns ask the snapshots if they have expired.
    watches_snapshots: AtomicBool,
}

impl Background {
    /// Has a turn taken soon: there is something to do.
    #[inline]
    pub(crate) fn wake(&self) {
        if let Some(seat) = self.seat.get() {
            seat.wake();
        }
    }

    /// As [`wake`](Background::wake), if there is.
    pub(crate) fn wake_if(&self, is_due: impl FnOnce() -> bool) {
        if self.seat.get().is_some() && is_due() {
            self.wake();
        }
    }

    /// Has turns ask the snapshots if they have expired.
    #[inline]
    pub(crate) fn watch_snapshots(&self) {
        if !self.watches_snapshots.load(Ordering::Relaxed)
            && !self.watches_snapshots.swap(true, Ordering::Relaxed)
        {
            self.wake();
        }
    }

    /// Ends the watch of snapshots, unless there are some. Whether it goes on.
    fn goes_on_watching(&self, has_snapshots: impl FnOnce() -> bool) -> bool {
        self.watches_snapshots.store(false, Ordering::Relaxed);
        let goes_on = has_snapshots();
        self.watches_snapshots.fetch_or(goes_on, Ordering::Relaxed);
        goes_on
    }

    /// Has the journal synced after an interval.
    pub(crate) fn sync_after(&self, interval: Duration) {
        if let Some(seat) = self.sync_seat.get() {
            seat.wake_after(interval.max(SHORTEST_INTERVAL));
        }
    }

    /// Returns `true` if other stores wait for a thread that merges.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.seat.get().is_some_and(|seat| seat.is_waited_for())
    }

    /// Ends the background work, of which one piece may be under way, which is waited for.
    pub(crate) fn end(&self) {
        for seat in [&self.seat, &self.sync_seat] {
            if let Some(seat) = seat.get() {
                seat.leave();
            }
        }
    }
}

/// The member that syncs a store at intervals.
struct Syncing(Arc<Core>);

impl Member for Syncing {
    fn urgent_turn(&self) -> Turn {
        self.0.writing.lock().is_sync_due = false;
        // After an error the store is read-only, which writers are told.
        let _failed = self.0.sync();
        Turn::Idle
    }
}

impl Member for Core {
    fn urgent_turn(&self) -> Turn {
        if let Some(seat) = self.background.seat.get() {
            seat.begin_turn();
        }
        self.turn(|| {
            self.prepare();
            self.let_go();
            self.relieve_memory();
            Ok(match !self.reserve.is_short() && self.try_flush_one()? {
                true => Turn::Again,
                false => Turn::Long,
            })
        })
    }

    fn long_turn(&self) -> Turn {
        self.turn(|| {
            let worked = self.work_long()? || self.is_lull() && self.work_in_lull()?;
            Ok(match worked {
                true => Turn::Again,
                false => self.rest()?,
            })
        })
    }
}

impl Core {
    /// Does one piece of work. Whether there was any.
    pub(crate) fn work(&self) -> Result<bool, Error> {
        self.let_go();
        Ok(!self.reserve.is_short() && self.try_flush_one()? || self.work_long()?)
    }

    /// Does one piece of work that nobody waits for. Whether there was any.
    fn work_long(&self) -> Result<bool, Error> {
        match self.reserve.is_short() {
            true => self.work_when_short(),
            false => Ok(self.compact_one(false)? || self.remove_doomed()),
        }
    }

    /// Lets go of what is not needed any more: expired snapshots, and what they have read.
    fn let_go(&self) {
        if let Some(age) = self.options.snapshot_age {
            self.snapshots.expire(self.file_system.now(), age);
        }
        self.doomed.free();
    }

    /// Takes a turn, unless the store is being closed.
    fn turn(&self, work: impl FnOnce() -> Result<Turn, Error>) -> Turn {
        if self.closing.load(Ordering::Relaxed) {
            return Turn::Idle;
        }
        // A panic is a fault of the engine: what it was about is as it was, but is not tried again and again.
        let worked = panic::catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(self.broken(Error::corrupt("a fault of the engine"))));
        worked.unwrap_or_else(|error| {
            self.stats.on_background_error();
            *self.last_error.lock() = Some(error);
            Turn::After(RETRY)
        })
    }

    /// The time until there may be something to do, when there is nothing now.
    fn rest(&self) -> Result<Turn, Error> {
        if self.doomed.is_held() {
            return Ok(Turn::After(HELD));
        }
        // A store that is short may have room again.
        if self.reserve.is_short() || !self.is_lull() {
            return Ok(Turn::After(LULL));
        }
        let lasted = self.lull_lasted();
        let is_due = lasted >= REST || fs::is_scarce();
        let has_logs = self.has_open_logs() && !(is_due && self.close_logs()?);
        // The next write wakes the store if there was none until now.
        let Some(mut writing) = self.writing.try_lock() else {
            return Ok(Turn::After(LULL));
        };
        writing.is_watched = !self.is_lull();
        if writing.is_watched {
            return Ok(Turn::After(LULL));
        }
        drop(writing);
        let is_untold = self.doomed.has_files() || self.reserve.has_full_merge();
        let has_snapshots = || self.snapshots.count() > 0;
        let age = self.options.snapshot_age;
        let age = age.filter(|_| self.background.goes_on_watching(has_snapshots));
        let times = [
            has_logs.then_some(LULL),
            is_untold.then_some(UNTOLD),
            age.map(|age| (age / 4).clamp(TICK, UNTOLD)),
        ];
        let first = times.into_iter().flatten().min();
        Ok(first.map_or(Turn::Idle, Turn::After))
    }

    /// Returns `true` if there were no writes for long.
    fn is_lull(&self) -> bool {
        self.lull_lasted() >= LULL
    }

    fn lull_lasted(&self) -> Duration {
        let groups = self.stats.groups.load(Ordering::Relaxed);
        self.lull.lasted(groups, self.file_system.now())
    }

    /// Returns `true` if files are open to be written.
    fn has_open_logs(&self) -> bool {
        let journal = self.writing.try_lock();
        let manifest = self.manifest.try_lock();
        journal.is_none_or(|writing| writing.journal.is_open())
            || manifest.is_none_or(|manifest| manifest.is_open())
            || self.next_journal.is_begun()
    }

    /// Closes the files of the journal and the manifest. The next change opens the one again and
    /// begins the other anew. What was written is synced before, because nobody would be told of an
    /// error that comes later. Returns `true` if they are closed, `false` if they are in use.
    pub(crate) fn close_logs(&self) -> Result<bool, Error> {
        self.sync()?;
        let mut is_closed = (self.writing.try_lock()).is_some_and(|mut all| all.journal.close());
        if is_closed {
            self.next_journal.give_up();
            is_closed &= self.manifest.try_lock().map(|mut it| it.close()).is_some();
        }
        Ok(is_closed)
    }

    /// Does one piece of what is left for times without writes. Whether there was any.
    fn work_in_lull(&self) -> Result<bool, Error> {
        self.spare.release();
        self.compact_one(true)
    }

    /// Begins the next journal ahead, if it will be needed soon, so that no writer waits for that. Whether it was not
    /// begun yet.
    pub(crate) fn prepare_journal(&self) -> Result<bool, Error> {
        self.check_writable()?;
        if !self.options.background || self.reserve.is_short() {
            return Ok(false);
        }
        self.next_journal.prepare(&*self.directory, self.store)
    }

    /// Makes ready what writers will need soon. Without it, the writer that needs it makes it.
    fn prepare(&self) {
        let _begun = self.prepare_journal();
        self.spare.prepare(self.full_memtable_bytes());
    }

    /// Seals the memtable, if all that share memory have too much and this one is among the largest.
    fn relieve_memory(&self) {
        if let Some(share) = &self.share {
            memory::relieve();
            if share.take_wanted() {
                self.seal(&mut self.writing.lock());
            }
        }
    }

    /// Does what writers may soon wait for, in the midst of other work.
    pub(crate) fn do_urgent(&self) -> Result<(), Error> {
        if self.options.background {
            self.prepare();
            self.doomed.free();
            if !self.state.load().sealed.is_empty() {
                self.try_flush_one()?;
            }
        }
        Ok(())
    }

    /// Syncs the journal without keeping writers from it.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        waiting::check()?;
        if self.is_read_only {
            return Ok(());
        }
        self.check_writable()?;
        let to_sync = self.writing.lock().journal.to_sync();
        if !to_sync.is_empty() {
            to_sync.sync().map_err(|error| self.broken(error))?;
            self.stats.on_sync();
            let mut writing = self.writing.lock();
            let next_seq = writing.last_seq + 1;
            writing.journal.synced(&to_sync, next_seq);
        }
        Ok(())
    }

    /// Begins the background work that the options ask for. After an error there may be some.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        if self.is_read_only || !self.options.background {
            return Ok(());
        }
        if let Durability::Interval(_) = self.options.durability {
            let seat = Pool::of_syncs().join(Arc::new(Syncing(Arc::clone(self))))?;
            let _first = self.background.sync_seat.set(Arc::new(seat));
        }
        let member = Arc::clone(self) as Arc<dyn Member>;
        let seat = Arc::new(Pool::of_work().join(member)?);
        if let Some(share) = &self.share {
            share.set_seat(Arc::clone(&seat));
        }
        let _first = self.background.seat.set(seat);
        self.background.wake();
        Ok(())
    }
}
