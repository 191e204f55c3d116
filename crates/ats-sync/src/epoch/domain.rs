//! The kernel of the reclamation: the epoch, the slots of the threads, and the step from one epoch
//! to the next. The module [`epoch`](super) explains and proves the scheme.

use super::bag::{Bag, GRACE, Garbage};
use super::barrier::Barrier;
use super::bell::Bell;
use crate::Padded;
use crate::shim::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence};
use std::cell::Cell;
use std::ptr;

/// A thread tries to advance the epoch after it has retired this many objects ...
pub(super) const ADVANCE_ITEMS: u32 = 128;
/// ... or this many bytes, whichever comes first, so that a few huge objects are not hoarded.
pub(super) const ADVANCE_BYTES: usize = 256 * 1024;
/// How many ripe objects a retirement takes out of the bag at most. Two for one: a backlog shrinks.
const RIPE_PER_RETIRE: usize = 2;
/// Room for this many ripe objects is kept by a thread that has none.
const PUT_ASIDE_CAPACITY: usize = 64;
/// How many objects a collector takes out of a bag per visit to its lock.
const COLLECT_BATCH: usize = 64;

/// The value of [`Slot::local`] when its thread is not pinned. Epochs start above it.
const IDLE: u64 = 0;
const FIRST_EPOCH: u64 = 1;

/// What one thread shows to the others, and what it keeps for itself.
///
/// Slots are never freed while their domain lives: a thread that ends gives its slot to the next
/// one, with what is left in the bag.
pub(super) struct Slot {
    /// The epoch in which the thread is pinned, or [`IDLE`].
    local: Padded<AtomicU64>,
    owned: AtomicBool,
    bag: Bag,
    /// Set before the slot is published and never changed.
    next: *const Slot,
    /// The remaining fields belong to the owner alone.
    own: Own,
}

struct Own {
    /// How many guards of the thread are alive.
    depth: Cell<u32>,
    /// Give the slot back as soon as no guard is alive: the thread is ending.
    leaving: Cell<bool>,
    /// Ripe objects that retirements have taken out of the bag, to be freed when no guard is alive; and
    /// whether there are any.
    ripe: Cell<Vec<Garbage>>,
    has_ripe: Cell<bool>,
    /// Objects are being freed; a retirement inside takes nothing out of the bag, or the recursion could
    /// become as deep as the bag is long.
    freeing: Cell<bool>,
    /// Retirements left, and bytes left, until the next attempt to advance.
    items_left: Cell<u32>,
    bytes_left: Cell<usize>,
    /// The epoch at the last attempt to advance.
    seen: Cell<u64>,
}

impl Own {
    fn new() -> Self {
        Self {
            depth: Cell::new(0),
            leaving: Cell::new(false),
            ripe: Cell::default(),
            has_ripe: Cell::new(false),
            freeing: Cell::new(false),
            items_left: Cell::new(ADVANCE_ITEMS),
            bytes_left: Cell::new(ADVANCE_BYTES),
            seen: Cell::new(0),
        }
    }
}

/// What was freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Freed {
    pub(super) objects: usize,
    /// By the word of the threads that retired them.
    pub(super) bytes: usize,
}

/// A set of threads that protect objects from each other.
pub(super) struct Domain {
    hot: Padded<Hot>,
    slots: AtomicPtr<Slot>,
    pub(super) bell: Bell,
}

/// What every thread reads each time it pins: on one cache line.
struct Hot {
    epoch: AtomicU64,
    barrier: Barrier,
}

// SAFETY: `own` and `next` are the only parts of a slot that are not atomic or locked. `next` never
// changes after publication; `own` is touched only by the thread that owns the slot (E1).
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    pub(super) fn new() -> Self {
        Self::with_barrier(Barrier::detect())
    }

    pub(super) fn with_barrier(barrier: Barrier) -> Self {
        Self {
            hot: Padded(Hot {
                epoch: AtomicU64::new(FIRST_EPOCH),
                barrier,
            }),
            slots: AtomicPtr::new(ptr::null_mut()),
            bell: Bell::new(),
        }
    }

    /// The present epoch. Acquires what was done before it began.
    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.hot.epoch.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn barrier(&self) -> &Barrier {
        &self.hot.barrier
    }

    /// Gives the calling thread a slot: one that a dead thread left, or a new one.
    pub(super) fn take_slot(&self) -> &Slot {
        let left = self.slots().find(|slot| slot.try_own());
        left.unwrap_or_else(|| self.push_slot())
    }

    fn push_slot(&self) -> &Slot {
        let slot = Box::into_raw(Box::new(Slot {
            local: Padded(AtomicU64::new(IDLE)),
            owned: AtomicBool::new(true),
            bag: Bag::new(),
            next: ptr::null(),
            own: Own::new(),
        }));
        let mut head = self.slots.load(Ordering::Relaxed);
        loop {
            // SAFETY: the slot is not published yet, so this thread has it alone.
            unsafe { (*slot).next = head };
            // Release publishes the contents of the slot. That a scan does not miss the slot of a
            // pinned thread follows from the fences, as for `local` (E3).
            match self
                .slots
                .compare_exchange(head, slot, Ordering::Release, Ordering::Relaxed)
            {
                // SAFETY: just made from a box, and never freed while the domain lives.
                Ok(_) => return unsafe { &*slot },
                Err(newer) => head = newer,
            }
        }
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        let mut next: *const Slot = self.slots.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: published slots are valid as long as the domain.
            let slot = unsafe { next.as_ref() }?;
            next = slot.next;
            Some(slot)
        })
    }

    /// Pins the owner of `slot`. Nests.
    #[inline]
    pub(super) fn pin(&self, slot: &Slot) {
        let depth = slot.own.depth.get();
        if depth == 0 {
            self.announce(slot);
        }
        slot.own.depth.set(depth + 1);
    }

    /// Moves the owner of `slot` to the present epoch, unless an outer guard forbids it.
    pub(super) fn repin(&self, slot: &Slot) -> bool {
        let alone = slot.own.depth.get() == 1;
        if alone {
            self.announce(slot);
            slot.free_put_aside();
        }
        alone
    }

    /// Whether this is the present epoch. The calling thread is pinned (E5).
    #[inline]
    pub(super) fn is_still(&self, epoch: u64) -> bool {
        self.epoch() == epoch
    }

    #[inline]
    fn announce(&self, slot: &Slot) {
        // Acquire: a thread pinned in an epoch sees what was unlinked long enough before it (E3).
        let epoch = self.epoch();
        // Release, although it takes rather than gives: the scan may read this store instead of the
        // unpinning before it, and must then still be ordered after what we did while pinned (E4).
        slot.local.store(epoch, Ordering::Release);
        self.barrier().light();
    }

    /// The epoch in which what was unlinked before can be freed. The caller is pinned.
    pub(super) fn end_of_grace(&self) -> u64 {
        self.barrier().light();
        self.epoch() + GRACE
    }

    /// Whether this epoch has come, if need be by advancing to it.
    pub(super) fn has_come(&self, epoch: u64) -> bool {
        for _ in 0..GRACE {
            if self.epoch() >= epoch {
                return true;
            }
            if !self.try_advance() {
                break;
            }
        }
        self.epoch() >= epoch
    }

    /// Hands an object over. See [`Guard::retire`](super::Guard::retire).
    ///
    /// # Safety
    /// As there; the caller owns `slot` and is pinned.
    pub(super) unsafe fn retire(
        &self,
        slot: &Slot,
        pointer: *mut u8,
        bytes: usize,
        free: unsafe fn(*mut u8),
    ) {
        // Orders the unlinking before reading the epoch, against the heavy fence (E2).
        self.barrier().light();
        let epoch = self.epoch();
        let garbage = Garbage::new(pointer, bytes, free, epoch);
        let was_empty;
        if slot.own.freeing.get() {
            (was_empty, _) = slot.bag.push_and_pop::<0>(garbage, epoch);
        } else {
            let ripe: [_; RIPE_PER_RETIRE];
            (was_empty, ripe) = slot.bag.push_and_pop(garbage, epoch);
            slot.put_aside(ripe);
        }
        if was_empty {
            // Orders the push before the look at the bell, against the collector's heavy fence (K2).
            self.barrier().light();
            self.bell.ring_for_garbage();
        }
        if slot.spend(bytes) {
            self.advance_sometimes(slot, epoch);
        }
    }

    /// Tries to advance, unless another thread did since this thread tried last: then the bags
    /// ripen fast enough without, and many threads together cause no more system calls than one.
    #[cold]
    fn advance_sometimes(&self, slot: &Slot, epoch: u64) {
        slot.own.items_left.set(ADVANCE_ITEMS);
        slot.own.bytes_left.set(ADVANCE_BYTES);
        if slot.own.seen.get() == epoch {
            self.try_advance();
        }
        slot.own.seen.set(self.hot.epoch.load(Ordering::Relaxed));
    }

    /// Begins the next epoch if every pinned thread has arrived in this one. O(number of slots).
    pub(super) fn try_advance(&self) -> bool {
        let epoch = self.epoch();
        // A look before the system call: it would be in vain if another thread lags behind.
        if self.someone_lags(epoch) || !self.barrier().heavy() || self.someone_lags(epoch) {
            return false;
        }
        // The scan read what unpinning threads released; this makes it happen before our release.
        fence(Ordering::Acquire);
        let next = &self.hot.epoch;
        next.compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    fn someone_lags(&self, epoch: u64) -> bool {
        // The fence in `try_advance` acquires for all slots at once; ThreadSanitizer does not see it.
        let order = if cfg!(tsan) {
            Ordering::Acquire
        } else {
            Ordering::Relaxed
        };
        self.slots().any(|slot| {
            let local = slot.local.load(order);
            local != IDLE && local != epoch
        })
    }

    /// Frees what is ripe in all bags, after advancing as far as needed and possible. Returns how
    /// many objects were freed.
    pub(super) fn collect(&self) -> usize {
        if self.pending().0 == 0 {
            return 0;
        }
        for _ in 0..GRACE {
            if !self.try_advance() {
                break;
            }
        }
        let epoch = self.epoch();
        let freed = self.slots().map(|slot| slot.free_ripe(epoch, usize::MAX));
        freed.map(|freed| freed.objects).sum()
    }

    /// Objects and bytes that are retired and not freed yet.
    pub(super) fn pending(&self) -> (usize, usize) {
        self.slots().fold((0, 0), |(items, bytes), slot| {
            (items + slot.bag.items(), bytes + slot.bag.bytes())
        })
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let mut next = self.slots.load(Ordering::Relaxed).cast_const();
        while !next.is_null() {
            // SAFETY: every slot was made from a box and is in the list once; no thread refers to
            // the domain any more, so none refers to its slots.
            let slot = unsafe { Box::from_raw(next.cast_mut()) };
            for garbage in slot.bag.take_ripe(u64::MAX, usize::MAX) {
                // SAFETY: no thread is pinned, since a guard refers to the domain.
                unsafe { garbage.free() };
            }
            next = slot.next;
        }
    }
}

impl Slot {
    fn try_own(&self) -> bool {
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

    /// Undoes one [`Domain::pin`].
    #[inline]
    pub(super) fn unpin(&self) {
        let depth = self.own.depth.get() - 1;
        self.own.depth.set(depth);
        if depth == 0 {
            // Release: what we did while pinned happens before what is freed because of it (E4).
            self.local.store(IDLE, Ordering::Release);
            self.free_put_aside();
            if self.own.leaving.get() {
                self.give_back();
            }
        }
    }

    /// Keeps ripe objects until the owner is not pinned. The caller is the owner: now it may hold a
    /// lock, and freeing takes as long as it takes.
    #[inline]
    fn put_aside<const N: usize>(&self, objects: [Option<Garbage>; N]) {
        // They come in order, so if the first is missing, all are.
        if objects.first().is_some_and(Option::is_some) {
            let mut ripe = self.own.ripe.take();
            ripe.extend(objects.into_iter().flatten());
            self.own.ripe.set(ripe);
            self.own.has_ripe.set(true);
        }
    }

    /// Frees what was [put aside](Slot::put_aside). For the owner.
    #[inline]
    fn free_put_aside(&self) {
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
            // SAFETY: no thread can see ripe objects (E3).
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

    /// Counts a retirement; `true` when it is time to advance.
    #[inline]
    fn spend(&self, bytes: usize) -> bool {
        let items = self.own.items_left.get().saturating_sub(1);
        let bytes = self.own.bytes_left.get().saturating_sub(bytes);
        self.own.items_left.set(items);
        self.own.bytes_left.set(bytes);
        items == 0 || bytes == 0
    }

    /// What the thread has retired.
    pub(super) fn bag(&self) -> &Bag {
        &self.bag
    }

    /// Frees up to `most` objects that are ripe in `epoch`.
    pub(super) fn free_ripe(&self, epoch: u64, most: usize) -> Freed {
        let mut freed = Freed::default();
        while freed.objects < most {
            let limit = COLLECT_BATCH.min(most - freed.objects);
            let ripe = self.bag.take_ripe(epoch, limit);
            if ripe.is_empty() {
                break;
            }
            freed.objects += ripe.len();
            for garbage in ripe {
                freed.bytes = freed.bytes.saturating_add(garbage.bytes());
                // SAFETY: no thread can see ripe objects (E3).
                unsafe { garbage.free() };
            }
        }
        freed
    }
}
