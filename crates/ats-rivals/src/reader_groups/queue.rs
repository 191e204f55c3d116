//! The queue of writers: a mutual exclusion lock that is given away in the order in which it was
//! asked for.
//!
//! It is the MCS lock (Mellor-Crummey and Scott, 1991), in the variant in which the holder needs no
//! node (used in the K42 operating system; Scott, "Shared-Memory Synchronization", 2013). A node is
//! on the stack of a thread that waits, and each thread waits on its own.
//!
//! The invariants (READER_GROUPS-1 and so on) are those of [`reader_groups`](super).

use super::sleep::{sleep, spin, wake_one};
use ats_sync::shim::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::ptr;

const WAITING: u32 = 0;
/// Waiting, and perhaps asleep.
const ASLEEP: u32 = 1;
const GRANTED: u32 = 2;

/// The last in the queue, if that is the holder. No node has this address.
const HOLDER: *mut Node = ptr::without_provenance_mut(1);

pub(super) struct Queue {
    /// Null if the lock is free, `HOLDER` if no thread waits, else the last of those that do.
    tail: AtomicPtr<Node>,
    /// The first that waits. Null if there is none, or if it is about to be written here.
    next: AtomicPtr<Node>,
}

/// A thread that waits.
struct Node {
    state: AtomicU32,
    /// The one that waits behind this.
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

    /// Takes the lock, waiting for it if need be.
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
        // Acquires what the thread before has written into its node, and publishes ours.
        let before = self.tail.swap(own, Ordering::AcqRel);
        if !before.is_null() {
            let link = match before == HOLDER {
                true => &self.next,
                // SAFETY: the last in the queue does not leave before the one behind it has linked
                // itself, which is us (READER_GROUPS-2).
                false => unsafe { &(*before).next },
            };
            link.store(own, Ordering::Release);
            node.wait();
        }
        // The lock is ours, and the node must go: the one behind it is from now on the first that
        // waits.
        let mut behind = node.next.load(Ordering::Acquire);
        if behind.is_null() {
            // If there is none. No other thread stores here before it has seen `HOLDER` at the
            // tail.
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

    /// Returns `true` if a thread waits. To be asked by the holder.
    pub(super) fn has_next(&self) -> bool {
        !self.next.load(Ordering::Relaxed).is_null()
    }

    /// Gives the lock to the first that waits, or frees it. To be called by the holder.
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
        // SAFETY: a node that is linked stays until its thread was granted the lock, which only the
        // holder does, and has not done yet (READER_GROUPS-2).
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

    /// Gives the lock to the thread of a node.
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

/// Waits for the node that another thread, which has put it at the tail, is about to link here. The
/// system may have stopped that thread between the two steps, so a thread that waits for it gives
/// its time slice away.
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
