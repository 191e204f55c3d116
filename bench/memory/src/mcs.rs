//! A number behind a queueing lock, for comparison with one hot record.
//!
//! The lock is the one of Mellor-Crummey and Scott (1991): a thread that has to wait appends a node
//! of its own to a queue and looks at nothing but that node until its predecessor hands the lock
//! over. So waiting threads do not contend for one cache line, and no thread overtakes another.
//!
//! Invariants:
//! - MCS-1. A node is in the queue from the swap of `tail` until its thread has handed the lock
//!   over, or has taken the node out as the only one. It lives on the stack of its thread, which
//!   does not return before.
//! - MCS-2. The thread at the head of the queue holds the lock. It alone accesses `value`.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread;

/// The number of times that a waiting thread looks at its node before it offers its processor to
/// others, which it must do where there are more threads than processors: the next in the queue may
/// not be running.
const SPINS: u32 = 200;

#[repr(align(128))]
struct Node {
    next: AtomicPtr<Node>,
    waiting: AtomicBool,
}

/// A number that threads change one after the other, in the order in which they came.
#[derive(Default)]
pub struct McsWord {
    tail: AtomicPtr<Node>,
    value: UnsafeCell<u64>,
}

// SAFETY: `value` is accessed only by the thread that holds the lock (MCS-2).
unsafe impl Sync for McsWord {}

impl McsWord {
    /// Adds 1 and returns the sum.
    #[inline]
    pub fn increment(&self) -> u64 {
        let node = Node {
            next: AtomicPtr::new(ptr::null_mut()),
            waiting: AtomicBool::new(true),
        };
        let me = ptr::from_ref(&node).cast_mut();
        let before = self.tail.swap(me, Ordering::AcqRel);
        if !before.is_null() {
            // SAFETY: the node before is in the queue until it has handed the lock to this one
            // (MCS-1).
            unsafe { (*before).next.store(me, Ordering::Release) };
            wait_until(|| !node.waiting.load(Ordering::Acquire));
        }
        // SAFETY: this thread holds the lock (MCS-2).
        let sum = unsafe {
            *self.value.get() += 1;
            *self.value.get()
        };
        self.hand_over(&node);
        sum
    }

    fn hand_over(&self, node: &Node) {
        let me = ptr::from_ref(node).cast_mut();
        if node.next.load(Ordering::Acquire).is_null() {
            let alone = self.tail.compare_exchange(
                me,
                ptr::null_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            );
            if alone.is_ok() {
                return;
            }
            // Another thread has entered the queue, but has not linked its node yet.
            wait_until(|| !node.next.load(Ordering::Acquire).is_null());
        }
        let next = node.next.load(Ordering::Acquire);
        // SAFETY: the next thread waits in `increment`, with its node, until it is told this
        // (MCS-1).
        unsafe { (*next).waiting.store(false, Ordering::Release) };
    }
}

fn wait_until(done: impl Fn() -> bool) {
    let mut spins = 0;
    while !done() {
        spins += 1;
        match spins % SPINS {
            0 => thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loses_no_increment() {
        let word = McsWord::default();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        word.increment();
                    }
                });
            }
        });
        assert_eq!(word.increment(), 40_001);
    }
}
