//! Retired objects that wait until no thread can be looking at them.
//!
//! # Invariants
//! - BG1. The queue is accessed only by the thread that has set `locked`.
//! - BG2. The epochs of the objects in it ascend, because the epoch that a bag's owner reads never goes back.

use crate::shim::UnsafeCell;
use crate::shim::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::shim::thread;
use std::collections::VecDeque;

/// How many epochs must begin after the one in which an object was retired before it is freed. The
/// module [`epoch`](super) proves that three are enough.
pub(super) const GRACE: u64 = 3;

/// One retired object.
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

    /// About how many bytes it keeps from being used.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frees the object.
    ///
    /// # Safety
    /// No thread can be looking at it.
    pub(super) unsafe fn free(self) {
        // SAFETY: the thread that retired the object promised that `free` may be called with it
        // once no thread looks at it. The caller promises that no thread does (E3). `self` is consumed,
        // so it happens once.
        unsafe { (self.free)(self.pointer) };
    }
}

/// Retired objects, oldest first (BG2).
#[derive(Default)]
struct Queue {
    objects: VecDeque<Garbage>,
    bytes: usize,
    /// How many objects have ever been pushed; wraps.
    pushed: usize,
}

impl Queue {
    fn push(&mut self, garbage: Garbage) {
        // Bytes that several objects keep alive count for each, so the sum may be beyond all memory.
        self.bytes = self.bytes.saturating_add(garbage.bytes);
        self.pushed = self.pushed.wrapping_add(1);
        self.objects.push_back(garbage);
    }

    /// The oldest object, if it is ripe in `epoch`.
    fn pop_ripe(&mut self, epoch: u64) -> Option<Garbage> {
        let oldest = self.objects.front()?;
        if oldest.epoch + GRACE > epoch {
            return None;
        }
        self.bytes = self.bytes.saturating_sub(oldest.bytes);
        let oldest = self.objects.pop_front();
        if self.objects.is_empty() {
            self.bytes = 0;
        }
        // A burst of garbage must not cost memory for ever. Asking for this only when the queue has
        // become empty keeps popping O(1).
        if self.objects.is_empty() && self.objects.capacity() > IDLE_CAPACITY {
            self.objects.shrink_to(IDLE_CAPACITY);
        }
        oldest
    }
}

/// Room for this many objects is kept when a bag is empty.
const IDLE_CAPACITY: usize = 1024;

/// A queue of retired objects. Its owner fills it, and any thread may empty it.
///
/// A spin lock keeps these threads apart. It is nearly always free, and held for a few instructions
/// only: objects are freed after it is released.
pub(super) struct Bag {
    locked: AtomicBool,
    queue: UnsafeCell<Queue>,
    /// Copies of what the queue holds, written under the lock and read without it.
    items: AtomicUsize,
    bytes: AtomicUsize,
    pushed: AtomicUsize,
    /// `pushed` at the last survey, and whether that found that the owner cannot be left alone with what
    /// is here. Written by the collector only.
    surveyed: AtomicUsize,
    neglected: AtomicBool,
}

// SAFETY: `queue` is accessed only under the lock (BG1). A retired object may be freed by any thread, as
// the contract of `Guard::retire` says.
unsafe impl Send for Bag {}
// SAFETY: as for `Send` (BG1).
unsafe impl Sync for Bag {}

impl Bag {
    pub(super) fn new() -> Self {
        Self {
            locked: AtomicBool::new(false),
            queue: UnsafeCell::new(Queue::default()),
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            pushed: AtomicUsize::new(0),
            surveyed: AtomicUsize::new(0),
            neglected: AtomicBool::new(false),
        }
    }

    /// Adds one object at the young end. Says whether the bag was empty.
    #[inline]
    pub(super) fn push(&self, garbage: Garbage) -> bool {
        self.with(|queue| {
            let was_empty = queue.objects.is_empty();
            queue.push(garbage);
            was_empty
        })
    }

    /// Takes up to `limit` objects that are ripe in `epoch` off the old end, and adds them to `ripe`.
    pub(super) fn take_ripe(&self, epoch: u64, limit: usize, ripe: &mut Vec<Garbage>) {
        if self.items() == 0 {
            return;
        }
        self.with(|queue| {
            let objects = std::iter::from_fn(|| queue.pop_ripe(epoch));
            ripe.extend(objects.take(limit));
        });
    }

    pub(super) fn items(&self) -> usize {
        self.items.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many objects have been pushed since the last survey. For the collector.
    pub(super) fn survey(&self) -> usize {
        let pushed = self.pushed.load(Ordering::Relaxed);
        let before = self.surveyed.load(Ordering::Relaxed);
        self.surveyed.store(pushed, Ordering::Relaxed);
        pushed.wrapping_sub(before)
    }

    /// Says whether the collector shall free what is ripe here.
    pub(super) fn set_neglected(&self, neglected: bool) {
        self.neglected.store(neglected, Ordering::Relaxed);
    }

    /// Whether the collector shall free what is ripe here.
    pub(super) fn is_neglected(&self) -> bool {
        self.neglected.load(Ordering::Relaxed) && self.items() > 0
    }

    fn with<T>(&self, access: impl FnOnce(&mut Queue) -> T) -> T {
        self.lock();
        // Nothing in `access` panics short of running out of memory, which aborts, so the lock is
        // always released.
        let result = self.queue.with_mut(|queue| {
            // SAFETY: the lock is held, so this is the only reference to the queue (BG1).
            let queue = unsafe { &mut *queue };
            let result = access(queue);
            self.items.store(queue.objects.len(), Ordering::Relaxed);
            self.bytes.store(queue.bytes, Ordering::Relaxed);
            self.pushed.store(queue.pushed, Ordering::Relaxed);
            result
        });
        self.locked.store(false, Ordering::Release);
        result
    }

    fn lock(&self) {
        let mut rounds = 0u32;
        while self
            .locked
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            rounds += 1;
            if rounds.is_multiple_of(YIELD_EVERY) {
                // The holder was probably interrupted by the operating system.
                thread::yield_now();
            } else {
                crate::shim::pause();
            }
        }
    }
}

const YIELD_EVERY: u32 = 64;
