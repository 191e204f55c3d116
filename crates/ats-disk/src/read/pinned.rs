//! The resources that a snapshot or a walk keeps from being freed.

use crate::error::Error;
use crate::ids::Seq;
use crate::state::expiry::{Ending, Held, Pin, nanos};
use crate::state::{State, Version};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The resources that a snapshot keeps.
pub(crate) struct Pinned {
    state: Arc<State>,
    /// The read point: the sequence number of the last change that is seen. It is in the list of
    /// snapshots until this is dropped.
    read_point: Seq,
    /// The [moment](State::moment).
    moment: u64,
    /// Nothing once the snapshot has ended.
    version: Mutex<Option<Arc<Version>>>,
    /// The time at which the snapshot was taken, in nanoseconds.
    taken: u64,
    /// `true` if it was read since [`expire`](Pin::expire) has looked last. So reading it asks for
    /// no time.
    read: AtomicBool,
    /// The time at which that was found last, or the snapshot was taken, in nanoseconds.
    last_read: AtomicU64,
    /// [`ALIVE`], or the number of an [`Ending`].
    ending: AtomicU8,
    /// Number of its last use, from 1, if it is one of those whose number is limited.
    last_use: AtomicU64,
    /// The time at which it ends, if it is kept; 0 if that is never.
    kept_until: OnceLock<u64>,
    /// The number of the program that holds it; 0 if it was not set.
    holder: AtomicU64,
    /// Number of records, once it is known.
    records: OnceLock<usize>,
}

/// The snapshot can be read.
const ALIVE: u8 = 0;
/// The endings, of which each is known by its number, from 1.
const ENDINGS: [Ending; 4] = [Ending::Unread, Ending::Age, Ending::Memory, Ending::Ended];
/// Number of attempts to read the number of records while others write.
const COUNT_TRIES: usize = 3;

impl Drop for Pinned {
    fn drop(&mut self) {
        if *self.ending.get_mut() == ALIVE {
            self.state.snapshots.remove(self.read_point);
        }
        *self.version.get_mut() = None;
        self.state
            .background
            .wake_if(|| self.state.obsolete.is_due());
    }
}

impl Pinned {
    pub(crate) fn new(state: Arc<State>) -> Self {
        let read_point = state.snapshots.add();
        // Loaded after the number was entered: all published writes are in this version or in one
        // of its memtables.
        let version = state.versions.current_arc();
        // Asked for after that: see LIFETIME-2.
        let moment = state.moment();
        let taken = nanos(state.file_system.now());
        Pinned {
            moment,
            state,
            read_point,
            version: Mutex::new(Some(version)),
            taken,
            read: AtomicBool::new(false),
            last_read: AtomicU64::new(taken),
            ending: AtomicU8::new(ALIVE),
            last_use: AtomicU64::new(0),
            kept_until: OnceLock::new(),
            holder: AtomicU64::new(0),
            records: OnceLock::new(),
        }
    }

    /// Pins this moment for a scan, which expires as a snapshot does.
    pub(crate) fn for_scan(state: &Arc<State>) -> Arc<Self> {
        let pinned = Arc::new(Pinned::new(Arc::clone(state)));
        if state.options.snapshot_age.is_some() {
            pinned.watch();
        }
        pinned
    }

    /// Sets the number of the program that holds it.
    pub(super) fn set_holder(&self, holder: u64) {
        self.holder.store(holder, Ordering::Relaxed);
    }

    /// Makes the same, with the number of records if the store knows it at this moment.
    pub(crate) fn with_count(state: &Arc<State>) -> Self {
        let mut pinned = Pinned::new(Arc::clone(state));
        for _ in 0..COUNT_TRIES {
            let count = state.snapshots.count();
            // The number changes with each write, so it is the number then if no write was
            // published meanwhile.
            if pinned.read_point == state.snapshots.visible() {
                if let Ok(Some(records)) = count {
                    pinned.records = OnceLock::from(records);
                }
                break;
            }
            pinned = Pinned::new(Arc::clone(state));
        }
        pinned
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    pub(crate) fn read_point(&self) -> Seq {
        self.read_point
    }

    pub(crate) fn moment(&self) -> u64 {
        self.moment
    }

    /// Returns the number of records, once it is known.
    pub(crate) fn records(&self) -> &OnceLock<usize> {
        &self.records
    }

    pub(crate) fn version(&self) -> Result<Arc<Version>, Error> {
        self.note_read();
        if self.last_use.load(Ordering::Relaxed) > 0 {
            self.note_use();
        }
        if let Some(deadline) = self.deadline()
            && deadline <= nanos(self.state.file_system.now())
        {
            self.state.expiry.evict(self, Ending::Age);
        }
        self.version.lock().clone().ok_or(Error::Expired)
    }

    /// Makes it the one that was used last.
    pub(crate) fn note_use(&self) {
        let this = self.state.expiry.next_use();
        self.last_use.store(this, Ordering::Relaxed);
    }

    /// Keeps it for so long, whether it is read or not, or until it ends otherwise; and enters it
    /// among those that are counted and can end.
    pub(crate) fn keep(self: &Arc<Self>, age: Option<Duration>) {
        let deadline = age.map_or(0, |age| self.taken.saturating_add(nanos(age)).max(1));
        if self.kept_until.set(deadline).is_err() {
            return;
        }
        self.watch();
        if deadline > 0 {
            // After it was entered: who looks for those that end finds it, or has looked before.
            self.state.expiry.note_deadline(deadline);
            self.state.background.wake();
        }
    }

    /// Its age.
    pub(crate) fn age(&self) -> Duration {
        let now = nanos(self.state.file_system.now());
        Duration::from_nanos(now.saturating_sub(self.taken))
    }

    /// Returns the reason why it has ended, if it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        let index = usize::from(self.ending.load(Ordering::Acquire)).checked_sub(1)?;
        ENDINGS.get(index).copied()
    }

    /// Enters it among those that are counted and can end.
    pub(crate) fn watch(self: &Arc<Self>) {
        self.state.expiry.add(Arc::downgrade(self) as Weak<dyn Pin>);
        if self.state.options.snapshot_age.is_some() {
            self.state.background.watch_snapshots();
        }
    }

    fn note_read(&self) {
        if !self.read.load(Ordering::Relaxed) {
            self.read.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.note_read();
        if self.has_ended() {
            Err(Error::Expired)
        } else {
            Ok(())
        }
    }
}

impl Pin for Pinned {
    fn has_ended(&self) -> bool {
        self.ending.load(Ordering::Relaxed) != ALIVE
    }

    fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    fn kept_since(&self) -> Option<u64> {
        self.kept_until.get().map(|_| self.taken)
    }

    fn deadline(&self) -> Option<u64> {
        self.kept_until.get().copied().filter(|until| *until > 0)
    }

    fn holder(&self) -> Option<u64> {
        Some(self.holder.load(Ordering::Relaxed)).filter(|holder| *holder != 0)
    }

    fn expire(&self, now: u64, age: u64) {
        if self.read.swap(false, Ordering::Relaxed) {
            self.last_read.store(now, Ordering::Relaxed);
            return;
        }
        let unread = now.saturating_sub(self.last_read.load(Ordering::Relaxed));
        if unread > age && self.kept_until.get().is_none() {
            self.end(Ending::Unread);
        }
    }

    fn end(&self, why: Ending) -> bool {
        let index = ENDINGS.iter().position(|ending| *ending == why);
        let ended = index.map_or(ALIVE, |index| index as u8 + 1);
        let was_alive = self
            .ending
            .compare_exchange(ALIVE, ended, Ordering::Release, Ordering::Relaxed)
            .is_ok();
        if was_alive {
            // Nothing is kept for it any more: a walk that is under way finds that out.
            self.state.snapshots.remove(self.read_point);
            *self.version.lock() = None;
        }
        was_alive
    }

    fn add_held(&self, held: &mut Held) {
        let Some(version) = self.version.lock().clone() else {
            return;
        };
        let current = self.state.versions.current_arc();
        if Arc::ptr_eq(&version, &current) || !held.is_new(&version) {
            return;
        }
        for memtable in version.memtables() {
            let is_current = || {
                current
                    .memtables()
                    .any(|other| Arc::ptr_eq(memtable, other))
            };
            if held.is_new(memtable) && !is_current() {
                held.memory += memtable.bytes();
            }
        }
        for run in &version.runs {
            for file in run.run.files() {
                let mut others = current.runs.iter().flat_map(|run| run.run.files());
                if held.is_new(file) && !others.any(|other| Arc::ptr_eq(file, other)) {
                    held.file_bytes += file.meta().bytes;
                }
            }
        }
    }
}
