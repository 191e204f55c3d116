//! Threads that write memtables to runs, merge runs, sync at intervals, and let snapshots expire.

use crate::core::Core;
use crate::error::Error;
use crate::options::Durability;
use crate::{lull, waiting};
use ats_sync::thread;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// After an error the work is tried again after this long: there may be room on the disk then.
const RETRY: Duration = Duration::from_millis(200);
/// How often it is looked whether snapshots have expired.
const TICK: Duration = Duration::from_millis(500);
/// How often a thread looks for work of which it was not told: there should be none.
const IDLE: Duration = Duration::from_secs(30);
/// The journal is not synced more often than this, other than for writes that wait for it.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
/// What is added to the nice value of threads that write memtables and merge runs.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;
/// How often it is looked whether a memtable is still read, by a reader without a snapshot, or a journal synced.
const HELD: Duration = Duration::from_millis(50);

/// Where processors are scarce, lets this thread wait for those that read and write, not them for it. It still gets a
/// quarter of a processor, so that what it does is done.
fn let_others_go_first() {
    // Elsewhere the whole process would be meant.
    #[cfg(target_os = "linux")]
    let _denied = rustix::process::nice(NICE);
}

/// How threads are told that there is something to do.
#[derive(Default)]
pub(crate) struct Background {
    /// Counts what there was to do.
    calls: Mutex<u64>,
    called: Condvar,
}

impl Background {
    /// Says that there is something to do.
    pub(crate) fn wake(&self) {
        *self.calls.lock() += 1;
        self.called.notify_all();
    }

    /// As [`wake`](Background::wake), if there is.
    pub(crate) fn wake_if(&self, is_due: impl FnOnce() -> bool) {
        if is_due() {
            self.wake();
        }
    }

    /// Waits for a call after those that were seen, but not for longer than `time`.
    fn wait(&self, seen: &mut u64, time: Duration) {
        let mut calls = self.calls.lock();
        if *calls == *seen {
            let _timed_out = self.called.wait_for(&mut calls, time);
        }
        *seen = *calls;
    }
}

impl Core {
    /// Does one piece of work. Whether there was any.
    pub(crate) fn work(&self) -> Result<bool, Error> {
        if let Some(age) = self.options.snapshot_age {
            self.snapshots.expire(self.file_system.now(), age);
        }
        self.doomed.free();
        if self.reserve.is_short() {
            return self.work_when_short();
        }
        Ok(self.try_flush_one()? || self.compact_one(false)? || self.remove_doomed())
    }

    /// Whether there were no writes for long.
    fn is_lull(&self) -> bool {
        let groups = self.stats.groups.load(Ordering::Relaxed);
        self.lull.is_on(groups, self.file_system.now())
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
        if self.options.threads == 0 || self.reserve.is_short() {
            return Ok(false);
        }
        self.next_journal.prepare(&*self.directory, self.store)
    }

    /// Does what writers may soon wait for, in the midst of other work.
    pub(crate) fn do_urgent(&self) -> Result<(), Error> {
        if self.options.threads > 0 {
            // Without it, the writer that needs it begins it.
            let _begun = self.prepare_journal();
            self.spare.prepare(self.options.memtable_bytes);
            self.doomed.free();
            if !self.state.load().sealed.is_empty() {
                self.try_flush_one()?;
            }
        }
        Ok(())
    }

    fn work_until_closed(&self) {
        let mut seen = 0;
        let idle = (self.options.snapshot_age).map_or(IDLE, |age| (age / 4).clamp(TICK, IDLE));
        while !self.closing.load(Ordering::Relaxed) {
            // A panic is a fault of the engine: what it was about is as it was, but is not tried again and again.
            let worked = panic::catch_unwind(AssertUnwindSafe(|| {
                let _begun = self.prepare_journal();
                self.spare.prepare(self.options.memtable_bytes);
                Ok(self.work()? || self.is_lull() && self.work_in_lull()?)
            }));
            match worked
                .unwrap_or_else(|_| Err(self.broken(Error::corrupt("a fault of the engine"))))
            {
                Ok(true) => {}
                // There may be room again.
                Ok(false) if self.reserve.is_short() => {
                    self.background.wait(&mut seen, lull::LULL);
                }
                Ok(false) if self.doomed.is_held() => self.background.wait(&mut seen, HELD),
                Ok(false) if !self.is_lull() => self.background.wait(&mut seen, lull::LULL),
                Ok(false) => self.background.wait(&mut seen, idle),
                Err(error) => {
                    self.stats.on_background_error();
                    *self.last_error.lock() = Some(error);
                    self.background.wait(&mut seen, RETRY);
                }
            }
        }
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

    fn sync_until_closed(&self, interval: Duration) {
        let interval = interval.max(SHORTEST_INTERVAL);
        let mut seen = 0;
        while !self.closing.load(Ordering::Relaxed) {
            let started = self.file_system.now();
            if self.sync().is_err() {
                // The store is read-only now, which writers are told.
                return;
            }
            loop {
                let passed = self.file_system.now().saturating_sub(started);
                if passed >= interval || self.closing.load(Ordering::Relaxed) {
                    break;
                }
                self.background.wait(&mut seen, interval - passed);
            }
        }
    }

    /// Starts the threads that the options ask for. After an error, `threads` are those that were started.
    pub(crate) fn start(self: &Arc<Self>, threads: &mut Vec<JoinHandle<()>>) -> io::Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        for _ in 0..self.options.threads {
            let core = Arc::clone(self);
            threads.push(thread::spawn("ats-disk", move || {
                let_others_go_first();
                core.work_until_closed();
            })?);
        }
        if let Durability::Interval(interval) = self.options.durability
            && self.options.threads > 0
        {
            let core = Arc::clone(self);
            let syncing = move || core.sync_until_closed(interval);
            threads.push(thread::spawn("ats-disk-sync", syncing)?);
        }
        Ok(())
    }
}
