//! The snapshots of a store, so that they can expire and be counted.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The resources that keep a moment readable until it expires. Times are nanoseconds.
pub(crate) trait Pin: Send + Sync {
    /// Returns `true` if it has expired.
    fn is_expired(&self) -> bool;

    /// Number of its last use, from 1, if it is one of those whose number is limited.
    fn last_use(&self) -> u64;

    /// Lets it expire if it was not read for longer than `age`.
    fn expire(&self, now: u64, age: u64);

    /// Has it expire.
    fn end(&self);
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The snapshots that there are, so that they can expire and be counted.
#[derive(Default)]
pub(crate) struct SnapshotExpiry {
    all: Mutex<Vec<Weak<dyn Pin>>>,
    /// Number of uses of those whose number is limited.
    uses: AtomicU64,
}

impl SnapshotExpiry {
    /// Adds one.
    pub(crate) fn add(&self, pinned: Weak<dyn Pin>) {
        let mut all = self.all.lock();
        // Those that are gone are looked for when the list would grow.
        if all.len() == all.capacity() {
            all.retain(|pinned| pinned.strong_count() > 0);
        }
        all.push(pinned);
    }

    /// The number of another use, from 1.
    pub(crate) fn next_use(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Calls `visit` with each.
    fn each(&self, mut visit: impl FnMut(&Arc<dyn Pin>)) {
        let all: Vec<_> = self.all.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(&mut visit);
    }

    /// Number of snapshots that have not expired.
    pub(crate) fn count(&self) -> usize {
        let mut count = 0;
        self.each(|pinned| count += usize::from(!pinned.is_expired()));
        count
    }

    /// Lets those expire that were not used for longest, of those whose number is limited.
    pub(crate) fn limit(&self, most: usize) {
        let mut limited = Vec::new();
        self.each(|pinned| {
            let last_use = pinned.last_use();
            if last_use > 0 && !pinned.is_expired() {
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
