//! The queue of writers: a lock for mutual exclusion that is granted in order of arrival.
//!
//! It is the MCS lock (Mellor-Crummey and Scott, 1991), in the variant in which the holder needs no
//! node (used in the K42 operating system; Scott, "Shared-Memory Synchronization", 2013). A thread
//! that waits has a node on its stack, and waits on a word of this node.
//!
//! The invariants (READER_GROUPS-1 and so on) are those of [`reader_groups`](super).

use super::sleep::{sleep, spin, wake_one};
use ats_sync::shim::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::ptr;

const WAITING: u32 = 0;
/// The thread waits, and may be asleep.
const ASLEEP: u32 = 1;
const GRANTED: u32 = 2;

/// The value of `tail` if the lock is held and no thread waits. No node has this address.
const HOLDER: *mut Node = ptr::without_provenance_mut(1);

pub(super) struct Queue {
    /// Null if the lock is free, `HOLDER` if it is held and no thread waits, else the last waiting
    /// node.
    tail: AtomicPtr<Node>,
    /// The first waiting node. Null if no thread waits, or if the first one has not linked itself
    /// yet.
    next: AtomicPtr<Node>,
}

/// The node of a waiting thread.
struct Node {
    state: AtomicU32,
    /// The node that waits behind this one.
    next: AtomicPtr<Node>,
}

impl Queue {
    pub(super) fn new() -> Self {
        Queue {
            tail: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub(super) fn try_lock(&self) -> bool {
        self.tail
            .compare_exchange(
                ptr::null_mut(),
                HOLDER,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Takes the lock, and waits for it if necessary.
    #[inline]
    pub(super) fn lock(&self) {
        if !self.try_lock() {
            self.wait_in_queue();
        }
    }

    #[cold]
    fn wait_in_queue(&self) {
        let node = Node {
            state: AtomicU32::new(WAITING),
            next: AtomicPtr::new(ptr::null_mut()),
        };
        let own = ptr::from_ref(&node).cast_mut();
        // Acquires the predecessor's writes to its node, and publishes ours.
        let before = self.tail.swap(own, Ordering::AcqRel);
        if !before.is_null() {
            let link = if before == HOLDER {
                &self.next
            } else {
                // SAFETY: the last node in the queue does not leave before its successor, which is
                // ours, has linked itself (READER_GROUPS-2).
                unsafe { &(*before).next }
            };
            link.store(own, Ordering::Release);
            node.wait();
        }
        // The lock is ours now, and the node must leave the queue: its successor becomes the first
        // that waits.
        let mut behind = node.next.load(Ordering::Acquire);
        if behind.is_null() {
            // `next` is cleared in case there is no successor. No other thread stores here before
            // it has seen `HOLDER` at the tail.
            self.next.store(ptr::null_mut(), Ordering::Relaxed);
            let alone =
                self.tail
                    .compare_exchange(own, HOLDER, Ordering::AcqRel, Ordering::Relaxed);
            if alone.is_ok() {
                return;
            }
            behind = wait_for_link(&node.next);
        }
        self.next.store(behind, Ordering::Relaxed);
    }

    /// Returns `true` if a thread waits. The caller is the holder.
    pub(super) fn has_next(&self) -> bool {
        !self.next.load(Ordering::Relaxed).is_null()
    }

    /// Hands the lock to the first waiting thread, or frees it. The caller is the holder.
    #[inline]
    pub(super) fn unlock(&self) {
        let mut next = self.next.load(Ordering::Acquire);
        if next.is_null() {
            let freed = self.tail.compare_exchange(
                HOLDER,
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if freed.is_ok() {
                return;
            }
            next = wait_for_link(&self.next);
        }
        // SAFETY: a linked node stays until its thread was granted the lock. Only the holder grants
        // it, and has not done so yet (READER_GROUPS-2).
        unsafe { Node::grant(next) };
    }
}

impl Node {
    /// Waits until the lock is granted.
    fn wait(&self) {
        if spin(|| self.state.load(Ordering::Acquire) == GRANTED) {
            return;
        }
        let sleeps =
            self.state
                .compare_exchange(WAITING, ASLEEP, Ordering::Acquire, Ordering::Acquire);
        if sleeps.is_err() {
            return;
        }
        while self.state.load(Ordering::Acquire) != GRANTED {
            sleep(&self.state, ASLEEP);
        }
    }

    /// Grants the lock to the thread of a node.
    ///
    /// # Safety
    /// The node is linked, and was not granted the lock before.
    unsafe fn grant(node: *mut Node) {
        // SAFETY: the caller says that the node is linked and was not granted the lock before, so
        // its thread keeps it until the swap (READER_GROUPS-2). The reference is not used after
        // that.
        let word = unsafe { &raw const (*node).state };
        // SAFETY: the node stays until it is granted the lock (READER_GROUPS-2). It may be gone
        // directly after the swap, so only its address is used from here on.
        if unsafe { &*word }.swap(GRANTED, Ordering::Release) == ASLEEP {
            wake_one(word);
        }
    }
}

/// Waits until the thread that has just put itself at the tail has linked its node here. The system
/// may have suspended that thread between the two steps, so this yields the time slice.
#[cold]
fn wait_for_link(link: &AtomicPtr<Node>) -> *mut Node {
    loop {
        spin(|| !link.load(Ordering::Relaxed).is_null());
        let node = link.load(Ordering::Acquire);
        if !node.is_null() {
            return node;
        }
        ats_sync::shim::thread::yield_now();
    }
}
