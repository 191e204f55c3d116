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

/// One retired object. Whatever copies there are, it is freed once.
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

    /// About how many bytes it keeps from being used.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frees the object.
    ///
    /// # Safety
    /// No thread can be looking at it. It is freed once.
    pub(super) unsafe fn free(self) {
        // SAFETY: the thread that retired the object promised that `free` may be called with it
        // once no thread looks at it. The caller promises that no thread does (E3), and that it happens once.
        unsafe { (self.free)(self.pointer) };
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
    /// Retired objects, oldest first (BG2).
    queue: UnsafeCell<VecDeque<Garbage>>,
    /// How many objects are in the queue, and how many bytes they keep. Written under the lock and read without it.
    items: AtomicUsize,
    bytes: AtomicUsize,
    /// How many objects have ever been pushed; wraps. Written by the owner.
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
            queue: UnsafeCell::new(VecDeque::new()),
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            pushed: AtomicUsize::new(0),
            surveyed: AtomicUsize::new(0),
            neglected: AtomicBool::new(false),
        }
    }

    /// Adds one object at the young end. Says whether the bag was empty. For the owner.
    #[inline]
    pub(super) fn push(&self, garbage: Garbage) -> bool {
        let pushed = self.pushed.load(Ordering::Relaxed);
        self.pushed.store(pushed.wrapping_add(1), Ordering::Relaxed);
        self.with(|queue| {
            // Bytes that several objects keep alive count for each, so the sum may be beyond all memory.
            let bytes = self.bytes().saturating_add(garbage.bytes);
            self.bytes.store(bytes, Ordering::Relaxed);
            let items = queue.len();
            self.items.store(items + 1, Ordering::Relaxed);
            queue.push_back(garbage);
            items == 0
        })
    }

    /// Takes up to `limit` objects that are ripe in `epoch` off the old end, and adds them to `ripe`.
    pub(super) fn take_ripe(&self, epoch: u64, limit: usize, ripe: &mut Vec<Garbage>) {
        if self.items() == 0 {
            return;
        }
        self.with(|queue| {
            let (older, younger) = queue.as_slices();
            let (mut items, mut bytes) = (0, self.bytes());
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
                // A burst of garbage must not cost memory for ever. Asking for this only when the queue has
                // become empty keeps taking O(1) for each object.
                if queue.capacity() > IDLE_CAPACITY {
                    queue.shrink_to(IDLE_CAPACITY);
                }
            }
            self.items.store(queue.len(), Ordering::Relaxed);
            self.bytes.store(bytes, Ordering::Relaxed);
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

    #[inline]
    fn with<T>(&self, access: impl FnOnce(&mut VecDeque<Garbage>) -> T) -> T {
        self.lock();
        // Nothing in `access` panics short of running out of memory, which aborts, so the lock is
        // always released.
        let result = self.queue.with_mut(|queue| {
            // SAFETY: the lock is held, so this is the only reference to the queue (BG1).
            access(unsafe { &mut *queue })
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
