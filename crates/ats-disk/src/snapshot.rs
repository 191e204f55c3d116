//! Snapshots: the store as it was at a moment.

use crate::core::Core;
use crate::error::Error;
use crate::read::Moment;
use crate::read::median::median;
use crate::scan::Scan;
use crate::state::State;
use ats_store::{Direction, KeyRange};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The store as it was when this was taken.
///
/// It blocks no other thread. It keeps the memtables and the files from being freed that it reads: see
/// [`Info::pinned_bytes`](crate::Info::pinned_bytes). Clones share what they keep.
#[derive(Clone)]
pub struct Snapshot {
    pinned: Arc<Pinned>,
}

/// What a snapshot keeps.
pub(crate) struct Pinned {
    core: Arc<Core>,
    /// The sequence number of the last change that is seen. It is in the registry until this is dropped.
    seq: u64,
    /// Nothing once the snapshot has expired.
    state: Mutex<Option<Arc<State>>>,
    /// `true` if it was read since [`Snapshots::expire`] has looked last. So reading it asks for no time.
    read: AtomicBool,
    /// The time at which that was found last, or the snapshot was taken, in nanoseconds.
    last_read: AtomicU64,
    expired: AtomicBool,
    /// Number of its last use, from 1, if it is one of those whose number is limited.
    last_use: AtomicU64,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !*self.expired.get_mut() {
            self.core.registry.leave(self.seq);
        }
        *self.state.get_mut() = None;
        self.core.background.wake_if(|| self.core.doomed.is_due());
    }
}

impl Pinned {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let seq = core.registry.enter();
        // After that: what is published is in this state or in one of its memtables.
        let state = core.state.load_full();
        let taken = nanos(core.file_system.now());
        Pinned {
            core,
            seq,
            state: Mutex::new(Some(state)),
            read: AtomicBool::new(false),
            last_read: AtomicU64::new(taken),
            expired: AtomicBool::new(false),
            last_use: AtomicU64::new(0),
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn state(&self) -> Result<Arc<State>, Error> {
        self.is_read();
        if self.last_use.load(Ordering::Relaxed) > 0 {
            self.is_used();
        }
        self.state.lock().clone().ok_or(Error::Expired)
    }

    /// Makes it the one that was used last.
    fn is_used(&self) {
        let last = self.core.snapshots.uses.fetch_add(1, Ordering::Relaxed);
        self.last_use.store(last + 1, Ordering::Relaxed);
    }

    /// Enters it among those that are counted and can expire.
    pub(crate) fn watch(self: &Arc<Self>) {
        self.core.snapshots.add(self);
        if self.core.options.snapshot_age.is_some() {
            self.core.background.watch_snapshots();
        }
    }

    fn is_read(&self) {
        if !self.read.load(Ordering::Relaxed) {
            self.read.store(true, Ordering::Relaxed);
        }
    }

    /// Lets it expire if it was not read for longer than this.
    fn expire(&self, now: u64, age: u64) {
        if self.read.swap(false, Ordering::Relaxed) {
            self.last_read.store(now, Ordering::Relaxed);
            return;
        }
        if now.saturating_sub(self.last_read.load(Ordering::Relaxed)) > age {
            self.end();
        }
    }

    /// Has it expire.
    fn end(&self) {
        if !self.expired.swap(true, Ordering::Relaxed) {
            // Nothing is kept for it any more: a walk that is under way finds that out.
            self.core.registry.leave(self.seq);
            *self.state.lock() = None;
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.is_read();
        match self.expired.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::Expired),
        }
    }
}

impl Snapshot {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        let pinned = Arc::new(Pinned::new(Arc::clone(core)));
        pinned.watch();
        Snapshot { pinned }
    }

    /// Makes it one of those that are this many at most: of more, those [end](Self::end) that were not
    /// used for longest.
    pub fn limit(&self, most: usize) {
        self.pinned.is_used();
        let core = &self.pinned.core;
        core.snapshots.limit(most);
        core.background.wake_if(|| core.doomed.is_due());
    }

    /// Ends it and its clones: what reads them has [`Error::Expired`], and they keep nothing.
    pub fn end(&self) {
        self.pinned.end();
        let core = &self.pinned.core;
        core.background.wake_if(|| core.doomed.is_due());
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of [`DiskStore::get`](crate::DiskStore::get), and [`Error::Expired`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = None;
        self.get_with(key, &mut |bytes| value = Some(bytes.to_vec()))?;
        Ok(value)
    }

    /// Lends the value of a key to `read`. Whether there is one.
    ///
    /// # Errors
    /// As those of [`get`](Snapshot::get).
    pub fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let state = self.pinned.state()?;
        let moment = Moment::At(self.pinned.seq);
        self.pinned.core.get_in(&state, key, moment, read)
    }

    /// Sum of what `weigh` says of each value.
    pub(crate) fn sum(&self, weigh: &dyn Fn(&[u8]) -> usize) -> Result<usize, Error> {
        let mut scan = self.scan(KeyRange::default(), Direction::Up)?;
        let mut sum = 0;
        while let Some((_, value)) = scan.next()? {
            sum += weigh(value);
        }
        Ok(sum)
    }

    /// A bound that divides the records of a range in two parts, of about the same size if few of them
    /// were deleted; `None` if there are none. It is above the low end of the range, or the key of the
    /// first record, and below the high end. It need not be a key.
    ///
    /// # Errors
    /// Those of [`get`](Snapshot::get).
    pub fn median(&self, key_range: KeyRange<'_>) -> Result<Option<Vec<u8>>, Error> {
        let state = self.pinned.state()?;
        match key_range.is_empty() {
            true => Ok(None),
            false => median(&self.pinned, &state, key_range),
        }
    }

    /// A walk over the records of a range.
    ///
    /// # Errors
    /// As those of [`get`](Snapshot::get).
    pub fn scan(&self, key_range: KeyRange<'_>, direction: Direction) -> Result<Scan, Error> {
        Scan::new(Arc::clone(&self.pinned), key_range, direction)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The snapshots that there are, so that they can expire and be counted.
#[derive(Default)]
pub(crate) struct Snapshots {
    all: Mutex<Vec<Weak<Pinned>>>,
    /// Number of uses of those whose number is limited.
    uses: AtomicU64,
}

impl Snapshots {
    fn add(&self, pinned: &Arc<Pinned>) {
        let mut all = self.all.lock();
        // Those that are gone are looked for when the list would grow.
        if all.len() == all.capacity() {
            all.retain(|pinned| pinned.strong_count() > 0);
        }
        all.push(Arc::downgrade(pinned));
    }

    /// Calls `visit` with each.
    fn each(&self, mut visit: impl FnMut(&Arc<Pinned>)) {
        let all: Vec<_> = self.all.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(&mut visit);
    }

    /// Number of snapshots that have not expired.
    pub(crate) fn count(&self) -> usize {
        let mut count = 0;
        self.each(|pinned| count += usize::from(!pinned.expired.load(Ordering::Relaxed)));
        count
    }

    /// Lets those expire that were not used for longest, of those whose number is limited.
    fn limit(&self, most: usize) {
        let mut limited = Vec::new();
        self.each(|pinned| {
            let last_use = pinned.last_use.load(Ordering::Relaxed);
            if last_use > 0 && !pinned.expired.load(Ordering::Relaxed) {
                limited.push((last_use, Arc::clone(pinned)));
            }
        });
        limited.sort_unstable_by_key(|(last_use, _)| *last_use);
        let excess = limited.len().saturating_sub(most);
        limited[..excess]
            .iter()
            .for_each(|(_, pinned)| pinned.end());
    }

    /// Lets those expire that were not read for longer than this.
    pub(crate) fn expire(&self, now: Duration, age: Duration) {
        let (now, age) = (nanos(now), nanos(age));
        self.each(|pinned| pinned.expire(now, age));
    }
}
