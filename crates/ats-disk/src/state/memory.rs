//! Memory that the stores of a process share.
//!
//! A store that is not given memory of its own takes it from one budget: two thirds are for the
//! [cache of blocks](crate::run_file::block_cache), and a third is for memtables. Each memtable may
//! become as large as half of that third; while all together are larger than the third, the largest
//! are sealed, and then written to runs, and writes to stores that share are [slowed
//! down](BackPressure), the more the larger the excess is.
//!
//! Memtables that only snapshots read are not counted: to write them would make them no fewer.

use crate::fs::RealFs;
use crate::pool::Membership;
use crate::run_file::block_cache;
use crate::state::back_pressure::BackPressure;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, Weak};

/// The budget, until another one is set: that of one store that is given memory of its own.
const DEFAULT_BYTES: usize = 384 << 20;
/// The smallest budget.
const LEAST_BYTES: usize = 64 << 10;
/// Divisor of the budget that gives the memory of memtables.
const MEMTABLE_SHARE: usize = 3;
/// A store tells of changes of its memtables by so many bytes at least, or by this part of them.
const LEAST_CHANGE: usize = 4 << 10;
const CHANGE_PART: usize = 8;
/// Memtables are sealed until their sum is below the limit by this part, as far as they are larger
/// than an equal share of the part: a store that cannot write its own must not make the others
/// write very small ones.
const RELIEF_PART: usize = 8;
/// Each such part of the limit by which the sum exceeds it slows down writes by a step.
const EXCESS_PART: usize = 8;

static BUDGET: AtomicUsize = AtomicUsize::new(DEFAULT_BYTES);
/// Bytes of the memtables of all stores that share.
static USED: AtomicUsize = AtomicUsize::new(0);
static SHARES: Mutex<Vec<Weak<Share>>> = Mutex::new(Vec::new());
static BACK_PRESSURE: LazyLock<BackPressure> =
    LazyLock::new(|| BackPressure::new(Arc::new(RealFs)));

/// The memory that stores share, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedMemory {
    /// The most that all stores together are to use.
    pub budget: usize,
    /// The memory of memtables.
    pub memtables: usize,
    /// The memory of blocks, filters and indexes that were read, and of the buffers of compactions.
    pub cache: usize,
}

/// Sets the memory in bytes that all stores together use that are not given memory of their own:
/// two thirds for the cache, a third for writes that are not in a run yet. It is 384 MiB until this
/// is called; less than 64 KiB is as good as 64 KiB. If it becomes less, the cache shrinks at once,
/// and memtables are written to runs with the next writes.
pub fn set_shared_memory(bytes: usize) {
    BUDGET.store(bytes.max(LEAST_BYTES), Ordering::Relaxed);
    block_cache::set_shared_budget(cache_bytes());
}

/// Returns the memory that stores share.
#[must_use]
pub fn shared_memory() -> SharedMemory {
    SharedMemory {
        budget: BUDGET.load(Ordering::Relaxed),
        memtables: USED.load(Ordering::Relaxed),
        cache: usize::try_from(block_cache::shared_bytes()).unwrap_or(usize::MAX),
    }
}

/// Returns the budget of the cache.
pub(crate) fn cache_bytes() -> usize {
    BUDGET.load(Ordering::Relaxed) / MEMTABLE_SHARE * (MEMTABLE_SHARE - 1)
}

/// Returns the budget of all memtables.
fn memtables_bytes() -> usize {
    BUDGET.load(Ordering::Relaxed) / MEMTABLE_SHARE
}

/// Returns the bytes of memory with which a memtable of a store that shares is full.
pub(crate) fn memtable_bytes() -> usize {
    memtables_bytes() / 2
}

/// Returns the back-pressure on writes to stores that share.
pub(crate) fn back_pressure() -> &'static BackPressure {
    &BACK_PRESSURE
}

/// The share of a store in the budget of memtables.
#[derive(Default)]
pub(crate) struct Share {
    /// Bytes of its memtables, as far as it has told.
    bytes: AtomicUsize,
    /// `true` if its memtable is to be sealed.
    is_wanted: AtomicBool,
    /// Whom to wake for that; nobody in a store without background work.
    membership: OnceLock<Arc<Membership>>,
}

impl Share {
    /// Returns the share of another store.
    pub(crate) fn join() -> Arc<Self> {
        let share = Arc::new(Share::default());
        let mut shares = SHARES.lock();
        // Dropped stores are looked for when the list would grow.
        if shares.len() == shares.capacity() {
            shares.retain(|share| share.strong_count() > 0);
        }
        shares.push(Arc::downgrade(&share));
        share
    }

    pub(crate) fn set_membership(&self, membership: Arc<Membership>) {
        let _first = self.membership.set(membership);
    }

    /// Tells how large the memtables of the store are, unless that has changed little.
    #[inline]
    pub(crate) fn tell(&self, bytes: usize) {
        let known = self.bytes.load(Ordering::Relaxed);
        if bytes.abs_diff(known) >= (known / CHANGE_PART).max(LEAST_CHANGE) {
            self.change(bytes);
        }
    }

    #[cold]
    fn change(&self, bytes: usize) {
        let known = self.bytes.swap(bytes, Ordering::Relaxed);
        // Wraps where it becomes less.
        let more = bytes.wrapping_sub(known);
        let used = USED.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
        let excess = used.saturating_sub(memtables_bytes());
        BACK_PRESSURE.set(0, excess / (memtables_bytes() / EXCESS_PART).max(1));
        if excess > 0
            && let Some(membership) = self.membership.get()
        {
            membership.wake();
        }
    }

    /// Returns `true` once if the memtable of the store is to be sealed.
    pub(crate) fn take_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed) && self.is_wanted.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.change(0);
    }
}

/// Has the largest memtables sealed if all together are too large. O(n log n) for n stores that
/// share.
pub(crate) fn relieve() {
    let limit = memtables_bytes();
    let excess = |used: usize| used.saturating_sub(limit);
    if excess(USED.load(Ordering::Relaxed)) == 0 {
        return;
    }
    let Some(all) = SHARES.try_lock() else {
        return;
    };
    let shares: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
    // The reference that is dropped below may be the last one, which tells of it.
    drop(all);
    let least = (limit / RELIEF_PART / shares.len().max(1)).max(LEAST_CHANGE);
    let mut to_free = excess(USED.load(Ordering::Relaxed)) + limit / RELIEF_PART;
    let mut others = Vec::with_capacity(shares.len());
    for share in &shares {
        let bytes = share.bytes.load(Ordering::Relaxed);
        if share.is_wanted.load(Ordering::Relaxed) {
            to_free = to_free.saturating_sub(bytes);
        } else if share.membership.get().is_some() {
            others.push((bytes, share));
        }
    }
    others.sort_unstable_by_key(|(bytes, _)| usize::MAX - bytes);
    for (bytes, share) in others {
        if to_free == 0 || bytes < least {
            break;
        }
        to_free = to_free.saturating_sub(bytes);
        share.is_wanted.store(true, Ordering::Relaxed);
        if let Some(membership) = share.membership.get() {
            membership.wake();
        }
    }
}
