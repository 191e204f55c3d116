//! The slots of threads: what a thread shows to the others, and what it keeps for itself. The
//! module [`epoch`](super) explains and proves the scheme.

use super::advance_rate::AdvanceRate;
use super::bag::{Bag, Garbage};
use super::barrier::Barrier;
use crate::cache_padded::CachePadded;
pub(super) use crate::model::FREE_EVERY;
use crate::shim::atomic::{AtomicBool, AtomicU64, Ordering};
use std::cell::Cell;
use std::ptr;

/// A thread tries to advance the epoch after it has retired so many objects as its [`AdvanceRate`]
/// says, or this many bytes, whichever comes first.
pub(super) const ADVANCE_BYTES: usize = 256 * 1024;
/// For each object that is retired so many ripe ones are freed at most. Two for one: a backlog
/// shrinks. That is done for [`FREE_EVERY`] retirements together; [`AdvanceRate`] keeps to
/// multiples of that.
pub(super) const RIPE_PER_RETIRED: usize = 2;
/// An object that keeps so many bytes from being used does not wait for others. That bounds what
/// the others keep.
pub(super) const LARGE: usize = 4096;
/// Room for this many ripe objects is kept by a thread that has none.
const PUT_ASIDE_CAPACITY: usize = RIPE_PER_RETIRED * FREE_EVERY as usize;
/// The value of [`Slot::local`] when its thread is not pinned. Epochs start above it.
pub(super) const IDLE: u64 = 0;

/// The data that one thread shows to the others, and those that it keeps for itself.
///
/// Slots are never freed while their domain lives: a thread that ends gives its slot to the next
/// one, with what is left in the bag.
pub(super) struct Slot {
    /// The epoch in which the thread is pinned, or [`IDLE`].
    local: CachePadded<AtomicU64>,
    owned: AtomicBool,
    bag: Bag,
    /// Set before the slot is published and never changed.
    pub(super) next: *const Slot,
    /// The number of slots that there were when this one was made. As `next`.
    pub(super) number: u32,
    /// The remaining fields belong to the owner alone.
    own: Own,
}

struct Own {
    /// The number of guards of the thread that are alive.
    depth: Cell<u32>,
    /// Give the slot back as soon as no guard is alive: the thread is ending.
    leaving: Cell<bool>,
    /// Ripe objects that retirements have taken out of the bag, to be freed when no guard is alive;
    /// and whether there are any.
    ripe: Cell<Vec<Garbage>>,
    has_ripe: Cell<bool>,
    /// Objects are being freed; a retirement inside takes nothing out of the bag, or the recursion
    /// could become as deep as the bag is long.
    freeing: Cell<bool>,
    /// Retirements left, and bytes left, until the next attempt to advance.
    items_left: Cell<u32>,
    bytes_left: Cell<usize>,
    /// The epoch at the last attempt to advance.
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

/// The work that is due after a retirement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// To free so many objects.
    pub(super) free: usize,
    /// To advance.
    pub(super) advance: bool,
}

impl Slot {
    /// A slot that the calling thread owns.
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

    /// The epoch in which the owner is pinned. The caller is the owner.
    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.local.load(Ordering::Relaxed)
    }

    /// Says that the owner is pinned in this epoch.
    #[inline]
    pub(super) fn announce(&self, epoch: u64) {
        // Release, although it takes rather than gives: the scan may read this store instead of the
        // unpinning before it, and must then still be ordered after what we did while pinned
        // (EPOCH-4).
        self.local.store(epoch, Ordering::Release);
    }

    /// Returns `true` if the owner is pinned in another epoch than this one, which is the present
    /// one.
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

    /// The number of guards of the owner that are alive.
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
            // Release: what we did while pinned happens before what is freed because of it
            // (EPOCH-4).
            self.local.store(IDLE, Ordering::Release);
            self.free_put_aside();
            if self.own.leaving.get() {
                self.give_back();
            }
        }
    }

    /// Takes up to `most` objects that are ripe in `epoch` out of the bag, and keeps them until the
    /// owner is not pinned. The caller is the owner: now it may hold a lock, and freeing takes as
    /// long as it takes.
    #[inline(never)]
    pub(super) fn put_aside(&self, epoch: u64, most: usize, barrier: &Barrier) {
        let mut ripe = self.own.ripe.take();
        self.bag.open(barrier).take_ripe(epoch, most, &mut ripe);
        self.own.has_ripe.set(!ripe.is_empty());
        self.own.ripe.set(ripe);
    }

    /// Frees what was [put aside](Slot::put_aside). For the owner.
    #[inline]
    pub(super) fn free_put_aside(&self) {
        if self.own.has_ripe.get() {
            self.free_all_put_aside();
        }
    }

    #[cold]
    fn free_all_put_aside(&self) {
        // A `free` function that pins comes here again when it unpins, and finds nothing.
        self.own.has_ripe.set(false);
        let was_freeing = self.own.freeing.replace(true);
        let mut ripe = self.own.ripe.take();
        for garbage in ripe.drain(..) {
            // SAFETY: no thread can see ripe objects (EPOCH-3), and those taken out of a bag are
            // freed here only.
            unsafe { garbage.free() };
        }
        if ripe.capacity() <= PUT_ASIDE_CAPACITY {
            self.own.ripe.set(ripe);
        }
        self.own.freeing.set(was_freeing);
    }

    /// The owner is about to end: gives the slot back now, or when its last guard goes.
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

    /// The rate at which the owner tries to advance.
    pub(super) fn advance_rate(&self) -> &AdvanceRate {
        &self.own.advance_rate
    }

    /// The epoch at the last attempt of the owner to advance.
    pub(super) fn epoch_seen(&self) -> u64 {
        self.own.seen.get()
    }

    /// Begins to count retirements anew, after an attempt to advance that left this epoch.
    pub(super) fn begin_to_spend(&self, seen: u64) {
        self.own.items_left.set(self.advance_rate().items());
        self.own.bytes_left.set(ADVANCE_BYTES);
        self.own.seen.set(seen);
    }

    /// Counts a retirement. Says what it is time for.
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

    /// The objects that the thread has retired.
    #[inline]
    pub(super) fn bag(&self) -> &Bag {
        &self.bag
    }

    /// The rest, of a slot that no other thread has any more.
    pub(super) fn take_rest(&mut self) -> Vec<Garbage> {
        self.bag.take_rest()
    }
}
