//! Slots of threads: their public and private data. The module [`epoch`](super) explains and proves
//! the scheme.

use super::advance_rate::AdvanceRate;
use super::bag::{Bag, Garbage};
use super::barrier::Barrier;
use crate::cache_padded::CachePadded;
pub(super) use crate::model::FREE_EVERY;
use crate::shim::atomic::{AtomicBool, AtomicU64, Ordering};
use std::cell::Cell;
use std::ptr;

/// Number of retired bytes after which a thread tries to advance the epoch, unless the number of
/// objects in its [`AdvanceRate`] is reached first.
pub(super) const ADVANCE_BYTES: usize = 256 * 1024;
/// Largest number of ripe objects freed for each retirement. Two for one lets a backlog shrink.
/// [`FREE_EVERY`] retirements are served together; [`AdvanceRate`] uses multiples of that.
pub(super) const RIPE_PER_RETIRED: usize = 2;
/// Number of bytes from which an object does not wait for further retirements. That bounds the
/// bytes of the waiting ones.
pub(super) const LARGE: usize = 4096;
/// Capacity for ripe objects that a thread without any keeps.
const PUT_ASIDE_CAPACITY: usize = RIPE_PER_RETIRED * FREE_EVERY as usize;
/// The value of [`Slot::local`] when its thread is not pinned. Epochs start above it.
pub(super) const IDLE: u64 = 0;

/// The public and private data of one thread.
///
/// Slots are never freed while their domain lives: an exiting thread leaves its slot to the next
/// one, with the objects still in its bag.
pub(super) struct Slot {
    /// The epoch in which the thread is pinned, or [`IDLE`].
    local: CachePadded<AtomicU64>,
    owned: AtomicBool,
    bag: Bag,
    /// The next slot of the list. Set before the slot is published and never changed.
    pub(super) next: *const Slot,
    /// Number of earlier slots. Set like `next`.
    pub(super) number: u32,
    /// The remaining fields belong to the owner alone.
    own: Own,
}

struct Own {
    /// Number of live guards of the thread.
    depth: Cell<u32>,
    /// `true` if the thread is exiting: the slot is given back with its last guard.
    leaving: Cell<bool>,
    /// Ripe objects that retirements have taken out of the bag, to be freed with the last guard,
    /// and `true` if there are any.
    ripe: Cell<Vec<Garbage>>,
    has_ripe: Cell<bool>,
    /// `true` while objects are being freed; a nested retirement takes nothing out of the bag, or
    /// the recursion could become as deep as the bag is long.
    freeing: Cell<bool>,
    /// Retirements and bytes left until the next attempt to advance.
    items_left: Cell<u32>,
    bytes_left: Cell<usize>,
    /// Epoch at the last attempt to advance.
    seen: Cell<u64>,
    advance_rate: AdvanceRate,
}

impl Own {
    fn new() -> Self {
        let advance_rate = AdvanceRate::new();
        Self {
            depth: Cell::new(0),
            leaving: Cell::new(false),
            ripe: Cell::default(),
            has_ripe: Cell::new(false),
            freeing: Cell::new(false),
            items_left: Cell::new(advance_rate.items()),
            bytes_left: Cell::new(ADVANCE_BYTES),
            seen: Cell::new(0),
            advance_rate,
        }
    }
}

/// Work due after a retirement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// Number of objects to free.
    pub(super) free: usize,
    /// `true` to try to advance.
    pub(super) advance: bool,
}

impl Slot {
    /// Creates a slot owned by the calling thread.
    pub(super) fn new() -> Self {
        Self {
            local: CachePadded(AtomicU64::new(IDLE)),
            owned: AtomicBool::new(true),
            bag: Bag::new(),
            next: ptr::null(),
            number: 0,
            own: Own::new(),
        }
    }

    /// Makes the calling thread the owner, unless there is one.
    pub(super) fn try_own(&self) -> bool {
        // Acquire: `own` and the epochs in the bag are as the last owner left them.
        !self.owned.load(Ordering::Relaxed)
            && self
                .owned
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Returns the epoch in which the owner is pinned. The caller is the owner.
    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.local.load(Ordering::Relaxed)
    }

    /// Announces that the owner is pinned in this epoch.
    #[inline]
    pub(super) fn announce(&self, epoch: u64) {
        // Release, although this store pins: a scan may read it instead of the unpinning before,
        // and must still be ordered after our accesses while we were pinned (EPOCH-4).
        self.local.store(epoch, Ordering::Release);
    }

    /// Returns `true` if the owner is pinned in another epoch than this one, the current one.
    pub(super) fn lags(&self, epoch: u64) -> bool {
        // The fence of the caller acquires for all slots at once; ThreadSanitizer does not see it.
        let order = if cfg!(tsan) {
            Ordering::Acquire
        } else {
            Ordering::Relaxed
        };
        let local = self.local.load(order);
        local != IDLE && local != epoch
    }

    /// Returns the number of live guards of the owner.
    #[inline]
    pub(super) fn guards(&self) -> u32 {
        self.own.depth.get()
    }

    /// Counts a guard, which [`unpin`](Slot::unpin) undoes.
    #[inline]
    pub(super) fn add_guard(&self) {
        self.own.depth.set(self.guards() + 1);
    }

    /// Undoes one [`add_guard`](Slot::add_guard).
    #[inline]
    pub(super) fn unpin(&self) {
        let depth = self.own.depth.get() - 1;
        self.own.depth.set(depth);
        if depth == 0 {
            // Release: our accesses while pinned happen before the freeing that this allows
            // (EPOCH-4).
            self.local.store(IDLE, Ordering::Release);
            self.free_put_aside();
            if self.own.leaving.get() {
                self.give_back();
            }
        }
    }

    /// Takes up to `most` objects that are ripe in `epoch` out of the bag, and keeps them until the
    /// owner unpins: now it may hold a lock, and freeing can take long. The caller is the owner.
    #[inline(never)]
    pub(super) fn put_aside(&self, epoch: u64, most: usize, barrier: &Barrier) {
        let mut ripe = self.own.ripe.take();
        self.bag.open(barrier).take_ripe(epoch, most, &mut ripe);
        self.own.has_ripe.set(!ripe.is_empty());
        self.own.ripe.set(ripe);
    }

    /// Frees the objects that were [put aside](Slot::put_aside). The caller is the owner.
    #[inline]
    pub(super) fn free_put_aside(&self) {
        if self.own.has_ripe.get() {
            self.free_all_put_aside();
        }
    }

    #[cold]
    fn free_all_put_aside(&self) {
        // A `free` function that pins gets here again when it unpins, and finds nothing.
        self.own.has_ripe.set(false);
        let was_freeing = self.own.freeing.replace(true);
        let mut ripe = self.own.ripe.take();
        for garbage in ripe.drain(..) {
            // SAFETY: no thread can see ripe objects (EPOCH-3), and only this function frees those
            // that were put aside.
            unsafe { garbage.free() };
        }
        if ripe.capacity() <= PUT_ASIDE_CAPACITY {
            self.own.ripe.set(ripe);
        }
        self.own.freeing.set(was_freeing);
    }

    /// Gives the slot back, because the owner is exiting: now, or with its last guard.
    pub(super) fn leave(&self) {
        if self.own.depth.get() == 0 {
            self.give_back();
        } else {
            self.own.leaving.set(true);
        }
    }

    fn give_back(&self) {
        self.own.leaving.set(false);
        self.owned.store(false, Ordering::Release);
    }

    /// Returns `true` if the owner is freeing objects.
    #[inline]
    pub(super) fn is_freeing(&self) -> bool {
        self.own.freeing.get()
    }

    /// Returns the rate at which the owner tries to advance.
    pub(super) fn advance_rate(&self) -> &AdvanceRate {
        &self.own.advance_rate
    }

    /// Returns the epoch at the owner's last attempt to advance.
    pub(super) fn epoch_seen(&self) -> u64 {
        self.own.seen.get()
    }

    /// Restarts the count of retirements after an attempt to advance; `seen` is the epoch after it.
    pub(super) fn begin_to_spend(&self, seen: u64) {
        self.own.items_left.set(self.advance_rate().items());
        self.own.bytes_left.set(ADVANCE_BYTES);
        self.own.seen.set(seen);
    }

    /// Counts a retirement. Returns the work that is due.
    #[inline]
    pub(super) fn spend(&self, bytes: usize) -> Due {
        let items = self.own.items_left.get().saturating_sub(1);
        let bytes_left = self.own.bytes_left.get().saturating_sub(bytes);
        self.own.items_left.set(items);
        self.own.bytes_left.set(bytes_left);
        let free = if bytes >= LARGE {
            RIPE_PER_RETIRED
        } else if items.is_multiple_of(FREE_EVERY) {
            RIPE_PER_RETIRED * FREE_EVERY as usize
        } else {
            0
        };
        Due {
            free,
            advance: items == 0 || bytes_left == 0,
        }
    }

    /// Returns the bag of objects that the thread has retired.
    #[inline]
    pub(super) fn bag(&self) -> &Bag {
        &self.bag
    }

    /// Takes all objects out of a slot that no other thread uses any more.
    pub(super) fn take_rest(&mut self) -> Vec<Garbage> {
        self.bag.take_rest()
    }
}
