//! A biased lock: one thread takes it nearly always, others seldom.
//!
//! The usual thread, its *owner*, takes it without an atomic read-modify-write: it stores a flag,
//! and checks for a visitor. The other threads, *visitors*, pay for that by executing the fences of
//! all threads ([`barrier`](super::barrier)).
//!
//! # Invariants
//! - BIASED-1. A visitor has set `locked`, which excludes other visitors, then `visited`; has
//!   executed the heavy fence successfully; and has seen, with acquire, that the owner is not
//!   `busy`. On leaving it clears both, with release.
//! - BIASED-2. The owner has set `busy`, executed the light fence, and seen, with acquire, that
//!   there is no visitor; or it has set `locked` itself. On leaving it clears its flags, with
//!   release.
//! - BIASED-3. *The owner and a visitor never hold the lock at the same time, and each sees all
//!   writes of the other.* Consider the light fence of the owner and the heavy fence of the
//!   visitor. By the contract of the fences, either the visitor sees `busy` set, and waits until
//!   the owner has left; or the owner sees `visited` as that visitor, or a later one, has stored
//!   it. If it is set, the owner retreats and waits for `locked`. If it is clear, that visitor has
//!   left.
//!
//! Lock reservation is by K. Kawachiya, A. Koseki, T. Onodera, *Lock reservation: Java locks can
//! mostly do without atomic operations*, OOPSLA 2002; fences executed by the rare side for both are
//! by D. Dice, M. Moir, W. Scherer, *Quickly reacquirable locks*, 2003. Here the owner never
//! changes while the lock is in use. Bad for locks that threads take alternately.

use super::barrier::Barrier;
use crate::shim::atomic::{AtomicBool, Ordering};
use crate::shim::thread;

/// A biased lock; see the [module](self).
pub(super) struct BiasedLock {
    /// `true` if the owner holds the lock, or is about to check for visitors.
    busy: AtomicBool,
    /// `true` if a visitor holds the lock, or waits for the owner to leave.
    visited: AtomicBool,
    locked: AtomicBool,
}

/// A held lock; dropping this releases it.
#[must_use = "the lock is given back as soon as this is dropped"]
pub(super) struct Held<'a> {
    lock: &'a BiasedLock,
    by: By,
}

/// A lock that no other visitor can take, and that the owner holds only if it does so already.
/// Dropping this gives it up.
pub(super) struct Announced<'a>(Held<'a>);

impl<'a> Announced<'a> {
    /// Returns the lock once its owner has left.
    ///
    /// # Safety
    /// Since the announcement, the thread must have executed the heavy fence successfully.
    pub(super) unsafe fn arrive(self) -> Held<'a> {
        wait_until(|| !self.0.lock.busy.load(Ordering::Acquire));
        self.0
    }
}

/// The ways in which the lock is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Owner,
    /// The owner, after it has met a visitor.
    OwnerAfterVisitor,
    Visitor,
}

impl BiasedLock {
    pub(super) fn new() -> Self {
        Self {
            busy: AtomicBool::new(false),
            visited: AtomicBool::new(false),
            locked: AtomicBool::new(false),
        }
    }

    /// Takes the lock for its owner. A light fence orders the owner's accesses before and after
    /// this call.
    #[inline]
    pub(super) fn enter(&self, barrier: &Barrier) -> Held<'_> {
        self.busy.store(true, Ordering::Relaxed);
        barrier.light();
        if self.visited.load(Ordering::Acquire) {
            return self.enter_after_visitor();
        }
        Held {
            lock: self,
            by: By::Owner,
        }
    }

    #[cold]
    fn enter_after_visitor(&self) -> Held<'_> {
        self.busy.store(false, Ordering::Release);
        self.lock();
        Held {
            lock: self,
            by: By::OwnerAfterVisitor,
        }
    }

    /// Announces that the calling thread, which may be any, will take the lock. Several locks can
    /// be announced, in the same order by all threads, before one heavy fence for all of them.
    pub(super) fn announce(&self) -> Announced<'_> {
        self.lock();
        self.visited.store(true, Ordering::Relaxed);
        Announced(Held {
            lock: self,
            by: By::Visitor,
        })
    }

    fn lock(&self) {
        let (new, order) = (true, Ordering::Acquire);
        wait_until(|| {
            self.locked
                .compare_exchange_weak(false, new, order, Ordering::Relaxed)
                .is_ok()
        });
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.by == By::Owner {
            return self.lock.busy.store(false, Ordering::Release);
        }
        if self.by == By::Visitor {
            self.lock.visited.store(false, Ordering::Release);
        }
        self.lock.locked.store(false, Ordering::Release);
    }
}

const YIELD_EVERY: u32 = 64;

/// Waits for a condition that takes a few instructions, unless the operating system has interrupted
/// the holder.
fn wait_until(is_so: impl Fn() -> bool) {
    let mut rounds = 0u32;
    while !is_so() {
        rounds += 1;
        if rounds.is_multiple_of(YIELD_EVERY) {
            thread::yield_now();
        } else {
            crate::shim::pause();
        }
    }
}
