//! The snapshots of a store, so that they can end and be counted.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The reason why a snapshot has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The snapshot was not read for longer than
    /// [`Options::snapshot_age`](crate::Options::snapshot_age).
    Unread,
    /// The snapshot was older than it was [kept](crate::DiskStore::keep_snapshot) for.
    Age,
    /// The kept snapshots held more memory than
    /// [`Options::snapshot_memory`](crate::Options::snapshot_memory), and it was the oldest.
    Memory,
    /// The snapshot was [ended](crate::Snapshot::end), or was one too many of those whose number is
    /// [limited](crate::Snapshot::limit).
    Ended,
}

/// The resources that keep a moment readable until it ends. Times are nanoseconds.
pub(crate) trait Pin: Send + Sync {
    /// Returns `true` if it has ended.
    fn has_ended(&self) -> bool;

    /// Returns the number of its last use, from 1, if it is one of those whose number is limited.
    fn last_use(&self) -> u64;

    /// Returns the time at which it was taken, if it is kept.
    fn kept_since(&self) -> Option<u64>;

    /// Returns the time at which it ends, if it is kept for so long only.
    fn deadline(&self) -> Option<u64>;

    /// Returns the number of the program that holds it, if it was set.
    fn holder(&self) -> Option<u64>;

    /// Lets it end if it was not read for longer than `age`, unless it is kept.
    fn expire(&self, now: u64, age: u64);

    /// Has it end. Returns `true` if it had not.
    fn end(&self, why: Ending) -> bool;

    /// Adds the resources of this snapshot that only snapshots read.
    fn add_held(&self, held: &mut Held);
}

/// The resources that kept snapshots read, and nothing else does.
#[derive(Default)]
pub(crate) struct Held {
    /// Addresses of those that were added.
    seen: HashSet<usize>,
    /// Bytes of memtables.
    pub(crate) memory: usize,
    /// Bytes of files.
    pub(crate) file_bytes: u64,
}

impl Held {
    /// Returns `true` if the resource was not added before.
    pub(crate) fn is_new<T>(&mut self, resource: &Arc<T>) -> bool {
        self.seen.insert(Arc::as_ptr(resource).addr())
    }
}

/// The figures of the kept snapshots of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptSnapshots {
    /// Number of those that have not ended.
    pub count: usize,
    /// The age of the oldest.
    pub oldest: Duration,
    /// Bytes of memtables that are in runs, but that these snapshots read.
    pub memory: usize,
    /// Bytes of files that no run has any more, but that these snapshots read.
    pub file_bytes: u64,
    /// Number of those that have ended because they were too old, or held too much memory, since
    /// the store was opened.
    pub evicted: u64,
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The snapshots that there are, so that they can end and be counted.
#[derive(Default)]
pub(crate) struct SnapshotExpiry {
    all: Mutex<Vec<Weak<dyn Pin>>>,
    /// Number of uses of those whose number is limited.
    uses: AtomicU64,
    /// The first time at which a kept snapshot may end by its age; 0 if none does.
    next_deadline: AtomicU64,
    /// Number of kept snapshots that a bound has ended.
    evicted: AtomicU64,
}

impl SnapshotExpiry {
    /// Adds one.
    pub(crate) fn add(&self, pinned: Weak<dyn Pin>) {
        let mut all = self.all.lock();
        // Dropped snapshots are looked for when the list would grow.
        if all.len() == all.capacity() {
            all.retain(|pinned| pinned.strong_count() > 0);
        }
        all.push(pinned);
    }

    /// Returns the number of another use, from 1.
    pub(crate) fn next_use(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns all of them, the oldest first.
    fn pins(&self) -> Vec<Arc<dyn Pin>> {
        self.all.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the kept snapshots, the oldest first, with the times at which they were taken.
    fn kept(&self) -> Vec<(u64, Arc<dyn Pin>)> {
        let pins = self.pins().into_iter();
        let alive = pins.filter(|pinned| !pinned.has_ended());
        alive
            .filter_map(|pinned| Some((pinned.kept_since()?, pinned)))
            .collect()
    }

    /// Returns the number of snapshots that have not ended.
    pub(crate) fn count(&self) -> usize {
        let pins = self.pins();
        pins.iter().filter(|pinned| !pinned.has_ended()).count()
    }

    /// The figures of kept snapshots whose holders live.
    pub(crate) fn figures(&self, now: Duration, lives: &dyn Fn(u64) -> bool) -> KeptSnapshots {
        let (mut kept, mut held) = (self.kept(), Held::default());
        kept.retain(|(_, pinned)| pinned.holder().is_none_or(lives));
        for (_, pinned) in &kept {
            pinned.add_held(&mut held);
        }
        let taken = kept.iter().map(|(taken, _)| *taken).min();
        let age = taken.map_or(0, |taken| nanos(now).saturating_sub(taken));
        KeptSnapshots {
            count: kept.len(),
            oldest: Duration::from_nanos(age),
            memory: held.memory,
            file_bytes: held.file_bytes,
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    /// Has one end that is too old, or holds too much memory.
    pub(crate) fn evict(&self, pinned: &dyn Pin, why: Ending) {
        let is_evicted = pinned.end(why);
        self.evicted
            .fetch_add(u64::from(is_evicted), Ordering::Relaxed);
    }

    /// Lets those end that were not used for longest, of those whose number is limited.
    pub(crate) fn limit(&self, most: usize) {
        let pins = self.pins().into_iter();
        let used = pins.map(|pinned| (pinned.last_use(), pinned));
        let mut limited: Vec<_> = used
            .filter(|(last_use, pinned)| *last_use > 0 && !pinned.has_ended())
            .collect();
        limited.sort_unstable_by_key(|(last_use, _)| *last_use);
        let excess = limited.len().saturating_sub(most);
        for (_, pinned) in &limited[..excess] {
            pinned.end(Ending::Ended);
        }
    }

    /// Lets those end that were not read for longer than this.
    pub(crate) fn expire(&self, now: Duration, age: Duration) {
        let (now, age) = (nanos(now), nanos(age));
        self.pins()
            .iter()
            .for_each(|pinned| pinned.expire(now, age));
    }

    /// Lets the oldest kept ones end, as many as it takes until the others hold no more memory than
    /// this.
    pub(crate) fn bound_memory(&self, most: usize) {
        let (kept, mut held) = (self.kept(), Held::default());
        let mut is_over = false;
        for (_, pinned) in kept.iter().rev() {
            pinned.add_held(&mut held);
            is_over |= held.memory > most;
            if is_over {
                self.evict(&**pinned, Ending::Memory);
            }
        }
    }

    /// Notes that a kept snapshot ends at this time.
    pub(crate) fn note_deadline(&self, deadline: u64) {
        let update = |next| (next == 0 || deadline < next).then_some(deadline);
        let _unchanged =
            self.next_deadline
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
    }

    /// Lets those kept ones end whose time is over.
    pub(crate) fn end_old(&self, now: Duration) {
        let (now, next) = (nanos(now), self.next_deadline.load(Ordering::Relaxed));
        if next == 0 || now < next {
            return;
        }
        // A snapshot that is entered too late to be found here notes its time after this.
        self.next_deadline.store(0, Ordering::Relaxed);
        for pinned in self.pins() {
            match pinned.deadline() {
                Some(deadline) if deadline <= now => self.evict(&*pinned, Ending::Age),
                Some(deadline) if !pinned.has_ended() => self.note_deadline(deadline),
                _ => {}
            }
        }
    }

    /// Returns the time until a kept snapshot ends by its age, if one does.
    pub(crate) fn until_deadline(&self, now: Duration) -> Option<Duration> {
        let next = self.next_deadline.load(Ordering::Relaxed);
        (next > 0).then(|| Duration::from_nanos(next.saturating_sub(nanos(now))))
    }
}
