//! The list of a table's snapshots, which ends and counts them.

use crate::idle_joiner::{self, JoinIdle, Listed};
use crate::terms::held_read_point::{Ending, HeldReadPoint, Reader};
use crate::terms::store::SLICE;
use crate::terms::store::store_ref::StoreRef;
use ats_term::image::Host;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The figures of the snapshots of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptSnapshots {
    /// The number of snapshots that have not ended.
    pub count: usize,
    /// The number of queries of several calls that have not ended.
    pub queries: usize,
    /// The age of the oldest snapshot or query.
    pub oldest: Duration,
    /// The approximate number of bytes of memory that are held back for snapshots and running
    /// queries, including binaries that records share with others. At most a tenth of a second old.
    pub bytes: usize,
    /// The number of snapshots of programs that have ended because they were too old, or held back
    /// too much memory.
    pub evicted: u64,
}

/// Capacity that an empty list keeps.
const MOST_FREE: usize = 64;
/// Initial limit of the bytes that snapshots may hold back.
const MOST_BYTES: usize = 256 << 20;

/// The snapshots of a table.
pub(crate) struct SnapshotList<H: Host> {
    all: Mutex<Vec<Weak<HeldReadPoint<H>>>>,
    most_bytes: AtomicUsize,
    evicted: AtomicU64,
    listed: Listed,
}

impl<H: Host> SnapshotList<H> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(SnapshotList {
            all: Mutex::default(),
            most_bytes: AtomicUsize::new(MOST_BYTES),
            evicted: AtomicU64::new(0),
            listed: Listed::new(),
        })
    }

    /// Sets the limit of the bytes that may be held back.
    pub(crate) fn set_most_bytes(&self, bytes: usize) {
        self.most_bytes.store(bytes, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<HeldReadPoint<H>>>> {
        // The list is valid at every moment, so a panic elsewhere does not spoil it.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(self: &Arc<Self>, read_point: &Arc<HeldReadPoint<H>>) {
        let mut all = self.lock();
        // Dropped moments are removed from the list only when it would grow.
        if all.len() == all.capacity() {
            all.retain(|read_point| read_point.strong_count() > 0);
        }
        all.push(Arc::downgrade(read_point));
        drop(all);
        idle_joiner::notice(self);
    }

    /// Returns the moments that have not ended, oldest first.
    pub(crate) fn live(&self) -> Vec<Arc<HeldReadPoint<H>>> {
        let live: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        let live = live.into_iter();
        live.filter(|read_point| read_point.ending().is_none())
            .collect()
    }

    /// Returns the figures of the moments whose holders live.
    pub(crate) fn figures(&self, lives: &dyn Fn(u64) -> bool) -> KeptSnapshots {
        let mut live = self.live();
        live.retain(|read_point| read_point.holder().is_none_or(lives));
        let stores = stores(&live);
        let held = |store: &StoreRef<H>| {
            let _all = store.reclaim(SLICE);
            store.held_bytes()
        };
        let is_snapshot =
            |read_point: &&Arc<HeldReadPoint<H>>| read_point.reader() == Reader::Program;
        let count = live.iter().filter(is_snapshot).count();
        KeptSnapshots {
            count,
            queries: live.len() - count,
            oldest: live
                .first()
                .map_or(Duration::ZERO, |read_point| read_point.age()),
            bytes: stores.iter().map(held).sum(),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    /// Ends a moment that is too old, or holds back too much memory.
    fn evict(&self, read_point: &HeldReadPoint<H>, why: Ending) {
        if read_point.end(why) && read_point.reader() == Reader::Program {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the oldest moments until the others are within the limit of memory.
    fn bound_memory(&self, live: &[Arc<HeldReadPoint<H>>]) {
        let most = self.most_bytes.load(Ordering::Relaxed);
        let stores = stores(live);
        let held = || {
            stores.iter().map(|store| {
                let _all = store.reclaim_idle();
                store.held_bytes()
            })
        };
        let mut oldest = live
            .iter()
            .filter(|read_point| read_point.reader() != Reader::Query);
        while held().sum::<usize>() > most {
            let Some(oldest) = oldest.next() else {
                return;
            };
            self.evict(oldest, Ending::Memory);
        }
    }
}

/// Returns the stores of these moments without duplicates.
fn stores<H: Host>(read_points: &[Arc<HeldReadPoint<H>>]) -> Vec<StoreRef<H>> {
    let guard = ats_sync::pin();
    let mut stores = BTreeMap::new();
    for read_point in read_points
        .iter()
        .filter_map(|kept| kept.read_point(&guard).ok())
    {
        let address = std::ptr::from_ref(read_point.store()).addr();
        stores
            .entry(address)
            .or_insert_with(|| read_point.reference());
    }
    stores.into_values().collect()
}

impl<H: Host> JoinIdle for SnapshotList<H> {
    fn list_flag(&self) -> &Listed {
        &self.listed
    }

    /// Ends moments that are too old, or hold back too much memory.
    fn join_idle(&self) -> bool {
        let (now, mut live) = (Instant::now(), self.live());
        live.retain(|read_point| {
            let is_over = read_point.is_over(now);
            if is_over {
                self.evict(read_point, Ending::Age);
            }
            !is_over
        });
        self.bound_memory(&live);
        drop(live);
        let mut all = self.lock();
        all.retain(|read_point| read_point.strong_count() > 0);
        all.shrink_to(MOST_FREE);
        all.is_empty()
    }

    fn release(self: Arc<Self>) {}
}
