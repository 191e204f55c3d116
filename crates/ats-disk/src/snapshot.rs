//! Snapshots: the store as it was at a moment.

use crate::core::Core;
use crate::error::Error;
use crate::read::Moment;
use crate::scan::Scan;
use crate::state::State;
use ats_store::{Direction, KeyRange};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
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
    taken: Duration,
    expired: AtomicBool,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.core.registry.leave(self.seq);
        *self.state.get_mut() = None;
        self.core.background.wake_if(|| self.core.doomed.is_due());
    }
}

impl Pinned {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let seq = core.registry.enter();
        // After that: what is published is in this state or in one of its memtables.
        let state = core.state.load_full();
        let taken = core.file_system.now();
        Pinned {
            core,
            seq,
            state: Mutex::new(Some(state)),
            taken,
            expired: AtomicBool::new(false),
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn state(&self) -> Result<Arc<State>, Error> {
        self.state.lock().clone().ok_or(Error::Expired)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.expired.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::Expired),
        }
    }
}

impl Snapshot {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        let pinned = Arc::new(Pinned::new(Arc::clone(core)));
        core.snapshots.add(&pinned);
        Snapshot { pinned }
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

    /// A walk over the records of a range.
    ///
    /// # Errors
    /// As those of [`get`](Snapshot::get).
    pub fn scan(&self, key_range: KeyRange<'_>, direction: Direction) -> Result<Scan, Error> {
        Scan::new(Arc::clone(&self.pinned), key_range, direction)
    }
}

/// The snapshots that there are, so that they can expire and be counted.
#[derive(Default)]
pub(crate) struct Snapshots(Mutex<Vec<Weak<Pinned>>>);

impl Snapshots {
    pub(crate) fn add(&self, pinned: &Arc<Pinned>) {
        let mut all = self.0.lock();
        // Those that are gone are looked for when the list would grow.
        if all.len() == all.capacity() {
            all.retain(|pinned| pinned.strong_count() > 0);
        }
        all.push(Arc::downgrade(pinned));
    }

    /// Calls `visit` with each.
    fn each(&self, mut visit: impl FnMut(&Arc<Pinned>)) {
        let all: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(&mut visit);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let mut count = 0;
        self.each(|_| count += 1);
        count
    }

    /// Lets those expire that were taken longer ago than this.
    pub(crate) fn expire(&self, now: Duration, age: Duration) {
        self.each(|pinned| {
            if now.saturating_sub(pinned.taken) > age {
                pinned.expired.store(true, Ordering::Relaxed);
                *pinned.state.lock() = None;
            }
        });
    }
}
