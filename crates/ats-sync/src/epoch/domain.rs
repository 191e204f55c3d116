//! The core of the reclamation: the epoch, and the step from one epoch to the next. The module
//! [`epoch`](super) explains and proves the scheme.

use super::bag::{GRACE, Garbage};
use super::barrier::Barrier;
use super::slot::{IDLE, Slot};
use super::wake_up::WakeUp;
use crate::cache_padded::CachePadded;
use crate::shim::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use std::ptr;

/// The epoch of a new domain.
const FIRST_EPOCH: u64 = IDLE + 1;

/// Number of objects taken out of the bags of other threads at a time: each time all threads
/// execute a fence, and a retiring one may have to wait.
const COLLECT_BATCH: usize = 1024;

/// The number of objects freed, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Freed {
    pub(super) objects: usize,
    /// Bytes as stated by the threads that retired the objects.
    pub(super) bytes: usize,
}

/// A set of threads that reclaim memory together.
pub(super) struct Domain {
    hot: CachePadded<Hot>,
    slots: AtomicPtr<Slot>,
    pub(super) wake_up: WakeUp,
}

/// Data that every thread reads when it pins, on one cache line.
struct Hot {
    epoch: AtomicU64,
    barrier: Barrier,
}

// SAFETY: `own` and `next` are the only parts of a slot that are not atomic or locked. `next` never
// changes after publication (EPOCH-7); only the thread that owns the slot accesses `own` (EPOCH-1).
unsafe impl Send for Domain {}
// SAFETY: of a slot, `next` never changes after publication (EPOCH-7), only the thread that owns
// the slot accesses `own` (EPOCH-1), and all other fields are atomic or locked.
unsafe impl Sync for Domain {}

impl Domain {
    pub(super) fn new() -> Self {
        Self::with_barrier(Barrier::detect())
    }

    pub(super) fn with_barrier(barrier: Barrier) -> Self {
        Self {
            hot: CachePadded(Hot {
                epoch: AtomicU64::new(FIRST_EPOCH),
                barrier,
            }),
            slots: AtomicPtr::new(ptr::null_mut()),
            wake_up: WakeUp::new(),
        }
    }

    /// Returns the current epoch. Acquires all accesses before its begin.
    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.hot.epoch.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn barrier(&self) -> &Barrier {
        &self.hot.barrier
    }

    /// Gives the calling thread a slot: that of an exited thread, or a new one.
    pub(super) fn take_slot(&self) -> &Slot {
        let left = self.slots().find(|slot| slot.try_own());
        left.unwrap_or_else(|| self.push_slot())
    }

    fn push_slot(&self) -> &Slot {
        let slot = Box::into_raw(Box::new(Slot::new()));
        let mut head = self.slots.load(Ordering::Relaxed);
        loop {
            // SAFETY: the slot is not published yet, so this thread has exclusive access; published
            // ones are valid as long as the domain (EPOCH-7).
            unsafe {
                (*slot).next = head;
                (*slot).number = head.as_ref().map_or(0, |head| head.number + 1);
            }
            // Release publishes the contents of the slot. The fences ensure that a scan does not
            // miss the slot of a pinned thread, as for `local` (EPOCH-3).
            match self
                .slots
                .compare_exchange(head, slot, Ordering::Release, Ordering::Relaxed)
            {
                // SAFETY: the slot has just been made from a box, and is never freed while the
                // domain lives (EPOCH-7).
                Ok(_) => return unsafe { &*slot },
                Err(newer) => head = newer,
            }
        }
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        let mut next: *const Slot = self.slots.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: published slots are valid as long as the domain (EPOCH-7).
            let slot = unsafe { next.as_ref() }?;
            next = slot.next;
            Some(slot)
        })
    }

    /// Pins the owner of `slot`. Nests.
    #[inline]
    pub(super) fn pin(&self, slot: &Slot) {
        if slot.guards() == 0 {
            self.announce(slot);
        }
        slot.add_guard();
    }

    /// Moves the owner of `slot` to the current epoch, unless an outer guard prevents it.
    pub(super) fn repin(&self, slot: &Slot) -> bool {
        let alone = slot.guards() == 1;
        if alone {
            self.announce(slot);
            slot.free_put_aside();
        }
        alone
    }

    /// Returns `true` if this is the current epoch. The calling thread is pinned (EPOCH-5).
    #[inline]
    pub(super) fn is_still(&self, epoch: u64) -> bool {
        self.epoch() == epoch
    }

    #[inline]
    fn announce(&self, slot: &Slot) {
        // Acquire: a thread pinned in an epoch sees all that was unlinked long enough before it
        // (EPOCH-3).
        slot.announce(self.epoch());
        self.barrier().light();
    }

    /// Returns the epoch in which objects unlinked before this call can be freed. The caller is
    /// pinned.
    pub(super) fn end_of_grace(&self) -> u64 {
        self.barrier().light();
        self.epoch() + GRACE
    }

    /// Returns `true` if this epoch has begun; advances to it if needed.
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

    /// Retires an object. See [`Guard::retire`](super::Guard::retire).
    ///
    /// # Safety
    /// The same as there; in addition the caller must own `slot` and be pinned.
    pub(super) unsafe fn retire(
        &self,
        slot: &Slot,
        pointer: *mut u8,
        bytes: usize,
        free: unsafe fn(*mut u8),
    ) {
        // The light fence inside orders the unlinking before the read of the epoch, against the
        // heavy fence (EPOCH-2).
        let mut bag = slot.bag().open(self.barrier());
        let epoch = self.epoch();
        let was_empty = bag.push(Garbage::new(pointer, bytes, free, epoch));
        drop(bag);
        if was_empty {
            // Orders the push before the read of the collector's state, against its heavy fence
            // (COLLECTOR-2).
            self.barrier().light();
            self.wake_up.wake_for_garbage();
        }
        let due = slot.spend(bytes);
        if due.free > 0 && !slot.is_freeing() {
            slot.put_aside(epoch, due.free, self.barrier());
        }
        if due.advance {
            self.advance_sometimes(slot, epoch);
        }
    }

    /// Tries to advance, unless another thread did so since this thread's last attempt: the bags
    /// ripen fast enough then, and many threads together make no more system calls than one.
    #[cold]
    fn advance_sometimes(&self, slot: &Slot, epoch: u64) {
        if slot.epoch_seen() == epoch {
            slot.advance_rate().attempt(|| {
                self.try_advance();
            });
        }
        slot.begin_to_spend(self.hot.epoch.load(Ordering::Relaxed));
    }

    /// Begins the next epoch if every pinned thread is in this one. O(number of slots).
    pub(super) fn try_advance(&self) -> bool {
        let epoch = self.epoch();
        // Checked before the system call, which would be in vain if another thread lags behind.
        if self.any_lags(epoch) || !self.barrier().heavy() || self.any_lags(epoch) {
            return false;
        }
        // The scan has read stores with which threads unpinned; this acquires them before our
        // release.
        fence(Ordering::Acquire);
        let next = &self.hot.epoch;
        next.compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns `true` if a thread is pinned in an epoch before this one.
    fn any_lags(&self, epoch: u64) -> bool {
        self.slots().any(|slot| slot.lags(epoch))
    }

    /// Frees the ripe objects of all bags, after advancing as far as needed and possible. Returns
    /// the number of objects freed.
    pub(super) fn collect(&self) -> usize {
        if self.pending().0 == 0 {
            return 0;
        }
        for _ in 0..GRACE {
            if !self.try_advance() {
                break;
            }
        }
        self.free_ripe(usize::MAX, |_| true).objects
    }

    /// Frees up to `most` ripe objects of some slots, which any threads may own; none if the system
    /// refuses the heavy fence.
    pub(super) fn free_ripe(&self, most: usize, of: impl Fn(&Slot) -> bool) -> Freed {
        let mut freed = Freed::default();
        let mut is_more = true;
        while is_more {
            let limit = COLLECT_BATCH.min(most - freed.objects);
            let ripe = self.take_ripe(limit, &of);
            is_more = ripe.len() == limit && freed.objects + limit < most;
            freed.objects += ripe.len();
            for garbage in ripe {
                freed.bytes = freed.bytes.saturating_add(garbage.bytes());
                // SAFETY: no thread can see ripe objects (EPOCH-3), and only this function frees
                // those taken out of a bag.
                unsafe { garbage.free() };
            }
        }
        freed
    }

    /// Takes up to `most` ripe objects out of the bags of some slots.
    fn take_ripe(&self, most: usize, of: impl Fn(&Slot) -> bool) -> Vec<Garbage> {
        let mut ripe = Vec::new();
        let epoch = self.epoch();
        let slots = self
            .slots()
            .filter(|slot| slot.bag().items() > 0 && of(slot));
        // One heavy fence serves all of them. All threads take the locks in the order of the list.
        let announced: Vec<_> = slots.map(|slot| slot.bag().announce()).collect();
        if !announced.is_empty() && self.barrier().heavy() {
            for bag in announced {
                // SAFETY: the heavy fence after the announcement has succeeded.
                unsafe { bag.open() }.take_ripe(epoch, most - ripe.len(), &mut ripe);
            }
        }
        ripe
    }

    /// Returns the objects and bytes that are retired and not freed yet.
    pub(super) fn pending(&self) -> (usize, usize) {
        self.slots().fold((0, 0), |(items, bytes), slot| {
            (items + slot.bag().items(), bytes + slot.bag().bytes())
        })
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let mut next = self.slots.load(Ordering::Relaxed).cast_const();
        while !next.is_null() {
            // SAFETY: every slot was made from a box and is in the list once; `drop` has the last
            // reference to the domain, so no thread refers to its slots (EPOCH-7).
            let mut slot = unsafe { Box::from_raw(next.cast_mut()) };
            for garbage in slot.take_rest() {
                // SAFETY: no thread is pinned, because a guard would refer to the domain, so none
                // accesses the object (EPOCH-3); the bag is empty now.
                unsafe { garbage.free() };
            }
            next = slot.next;
        }
    }
}
