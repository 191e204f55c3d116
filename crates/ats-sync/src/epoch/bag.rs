//! Retired objects that wait until no thread can access them.
//!
//! # Invariants
//! - BAG-1. The queue is accessed only by the thread that holds the lock.
//! - BAG-2. The epochs of the objects in a bag ascend, because the epoch that its owner reads never
//!   decreases.

use super::barrier::Barrier;
use super::biased::{Announced, BiasedLock, Held};
use crate::shim::UnsafeCell;
use crate::shim::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::VecDeque;

/// Number of epochs that must begin between the retirement of an object and its freeing. The module
/// [`epoch`](super) proves that three are enough.
pub(super) const GRACE: u64 = 3;

/// A retired object. It is freed once, even if this struct is copied.
#[derive(Clone, Copy)]
pub(super) struct Garbage {
    pointer: *mut u8,
    bytes: usize,
    free: unsafe fn(*mut u8),
    epoch: u64,
}

impl Garbage {
    pub(super) fn new(
        pointer: *mut u8,
        bytes: usize,
        free: unsafe fn(*mut u8),
        epoch: u64,
    ) -> Self {
        Self {
            pointer,
            bytes,
            free,
            epoch,
        }
    }

    /// Returns the approximate number of bytes that the object holds.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frees the object.
    ///
    /// # Safety
    /// No thread may still access the object, and it must be freed only once.
    pub(super) unsafe fn free(self) {
        // SAFETY: the thread that retired the object promised that `free` may be called with it
        // once no thread accesses it. The caller promises that no thread does (EPOCH-3), and that
        // it is freed once.
        unsafe { (self.free)(self.pointer) };
    }
}

/// Capacity that an empty bag keeps.
const IDLE_CAPACITY: usize = 1024;

/// A queue of retired objects. Its owner fills it, and any thread may empty it.
///
/// The lock is held for a few instructions only: objects are freed after its release.
pub(super) struct Bag {
    lock: BiasedLock,
    /// Retired objects, oldest first (BAG-2).
    queue: UnsafeCell<VecDeque<Garbage>>,
    /// Number of objects in the queue, and the bytes that they hold. Written under the lock and
    /// read without it.
    items: AtomicUsize,
    bytes: AtomicUsize,
    /// Number of objects ever pushed; wraps. Written by the owner.
    pushed: AtomicUsize,
    /// The value of `pushed` at the last survey, and `true` if that survey left this bag to the
    /// collector. Written by the collector only.
    surveyed: AtomicUsize,
    neglected: AtomicBool,
}

// SAFETY: `queue` is accessed only under the lock (BAG-1). Any thread may free a retired object, by
// the contract of `Guard::retire`.
unsafe impl Send for Bag {}
// SAFETY: `queue` is accessed only under the lock (BAG-1); all other fields are atomic.
unsafe impl Sync for Bag {}

impl Bag {
    pub(super) fn new() -> Self {
        Self {
            lock: BiasedLock::new(),
            queue: UnsafeCell::new(VecDeque::new()),
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            pushed: AtomicUsize::new(0),
            surveyed: AtomicUsize::new(0),
            neglected: AtomicBool::new(false),
        }
    }

    /// Opens the bag for its owner. A light fence orders the owner's accesses before and after this
    /// call.
    #[inline]
    pub(super) fn open(&self, barrier: &Barrier) -> OpenBag<'_> {
        OpenBag {
            bag: self,
            _held: self.lock.enter(barrier),
        }
    }

    /// Announces that the calling thread, which may be any, will open the bag:
    /// [`BiasedLock::announce`].
    pub(super) fn announce(&self) -> AnnouncedBag<'_> {
        AnnouncedBag {
            bag: self,
            announced: self.lock.announce(),
        }
    }

    pub(super) fn items(&self) -> usize {
        self.items.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of objects pushed since the last survey. Called by the collector.
    pub(super) fn survey(&self) -> usize {
        let pushed = self.pushed.load(Ordering::Relaxed);
        let before = self.surveyed.load(Ordering::Relaxed);
        self.surveyed.store(pushed, Ordering::Relaxed);
        pushed.wrapping_sub(before)
    }

    /// Records whether the collector should free the ripe objects of this bag.
    pub(super) fn set_neglected(&self, neglected: bool) {
        self.neglected.store(neglected, Ordering::Relaxed);
    }

    /// Returns `true` if the collector should free the ripe objects of this bag.
    pub(super) fn is_neglected(&self) -> bool {
        self.neglected.load(Ordering::Relaxed) && self.items() > 0
    }

    /// Takes all objects out of the bag, which no other thread uses any more.
    pub(super) fn take_rest(&mut self) -> Vec<Garbage> {
        // SAFETY: `&mut self` makes the access exclusive.
        let queue = self
            .queue
            .with_mut(|queue| std::mem::take(unsafe { &mut *queue }));
        queue.into()
    }
}

/// A bag that the thread has announced to open.
pub(super) struct AnnouncedBag<'a> {
    bag: &'a Bag,
    announced: Announced<'a>,
}

impl<'a> AnnouncedBag<'a> {
    /// Opens the bag.
    ///
    /// # Safety
    /// Since the announcement, the thread must have executed the heavy fence successfully.
    pub(super) unsafe fn open(self) -> OpenBag<'a> {
        OpenBag {
            bag: self.bag,
            // SAFETY: the caller promises that the thread has executed the heavy fence successfully
            // since the announcement, as `arrive` demands (BIASED-1).
            _held: unsafe { self.announced.arrive() },
        }
    }
}

/// A bag that the thread has opened.
pub(super) struct OpenBag<'a> {
    bag: &'a Bag,
    _held: Held<'a>,
}

impl OpenBag<'_> {
    /// Adds an object at the young end. Returns `true` if the bag was empty. Called by the owner.
    #[inline]
    pub(super) fn push(&mut self, garbage: Garbage) -> bool {
        let bag = self.bag;
        let pushed = bag.pushed.load(Ordering::Relaxed);
        bag.pushed.store(pushed.wrapping_add(1), Ordering::Relaxed);
        // Bytes held by several objects count for each, so the sum may exceed all memory.
        let bytes = bag.bytes().saturating_add(garbage.bytes);
        bag.bytes.store(bytes, Ordering::Relaxed);
        self.with(|queue| {
            let items = queue.len();
            bag.items.store(items + 1, Ordering::Relaxed);
            queue.push_back(garbage);
            items == 0
        })
    }

    /// Moves up to `limit` objects that are ripe in `epoch` from the old end to `ripe`.
    pub(super) fn take_ripe(&mut self, epoch: u64, limit: usize, ripe: &mut Vec<Garbage>) {
        let bag = self.bag;
        self.with(|queue| {
            let (older, younger) = queue.as_slices();
            let (mut items, mut bytes) = (0, bag.bytes());
            for part in [older, younger] {
                let most = part.len().min(limit - items);
                let is_ripe = |garbage: &&Garbage| garbage.epoch + GRACE <= epoch;
                let oldest = part[..most].iter().take_while(is_ripe);
                let kept = oldest.map(|garbage| garbage.bytes);
                let (taken, sum) = kept.fold((0, 0_usize), |(taken, sum), bytes| {
                    (taken + 1, sum.saturating_add(bytes))
                });
                ripe.extend_from_slice(&part[..taken]);
                items += taken;
                bytes = bytes.saturating_sub(sum);
            }
            queue.drain(..items);
            if queue.is_empty() {
                bytes = 0;
                // A burst of garbage must not occupy memory for ever. Checking this only when the
                // queue is empty keeps the cost O(1) for each object.
                if queue.capacity() > IDLE_CAPACITY {
                    queue.shrink_to(IDLE_CAPACITY);
                }
            }
            bag.items.store(queue.len(), Ordering::Relaxed);
            bag.bytes.store(bytes, Ordering::Relaxed);
        });
    }

    #[inline]
    fn with<T>(&mut self, access: impl FnOnce(&mut VecDeque<Garbage>) -> T) -> T {
        self.bag.queue.with_mut(|queue| {
            // SAFETY: the lock is held, and the borrow of `self` shows that this is its holder's
            // only reference to the queue (BAG-1).
            access(unsafe { &mut *queue })
        })
    }
}
