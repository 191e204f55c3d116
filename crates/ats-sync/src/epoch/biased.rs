//! A lock for what one thread uses nearly always, and others seldom.
//!
//! The thread that has it nearly always, its *owner*, takes it without an instruction that reads
//! and writes at once: it stores that it is there, and looks whether another thread wants to be.
//! The others, *visitors*, pay for that by executing the fences of all threads
//! ([`barrier`](super::barrier)).
//!
//! # Invariants
//! - BIASED-1. A visitor has set `locked`, which keeps visitors apart, then `visited`; has executed
//!   the heavy fence with success; and has seen, with acquire, that the owner is not `busy`. When
//!   it goes it clears both, with release.
//! - BIASED-2. The owner has set `busy`, executed the light fence, and seen, with acquire, that
//!   there is no visitor; or it has set `locked` itself. When it goes it clears what it has set,
//!   with release.
//! - BIASED-3. *The owner and a visitor are never there at the same time, and each sees what the
//!   other has done.* Take the light fence of the one and the heavy fence of the other. By the
//!   contract of the fences, either the visitor sees `busy` set, and waits until the owner has
//!   gone; or the owner sees `visited` as that visitor, or a later one, has stored it. If it is
//!   set, the owner goes back and waits for `locked`. If it is clear, that visitor has gone.
//!
//! Reserved locks are of K. Kawachiya, A. Koseki, T. Onodera, *Lock reservation: Java locks can
//! mostly do without atomic operations*, OOPSLA 2002; that the rare side executes the fences of
//! both, of D. Dice, M. Moir, W. Scherer, *Quickly reacquirable locks*, 2003. Here the owner never
//! changes while the lock is in use. Bad for locks that threads take in turns.

use super::barrier::Barrier;
use crate::shim::atomic::{AtomicBool, Ordering};
use crate::shim::thread;

/// See the [module](self).
pub(super) struct BiasedLock {
    /// The owner is there, or about to look whether it may.
    busy: AtomicBool,
    /// A visitor is there, or waits for the owner to go.
    visited: AtomicBool,
    locked: AtomicBool,
}

/// The lock that is held; dropping this gives it back.
#[must_use = "the lock is given back as soon as this is dropped"]
pub(super) struct Held<'a> {
    lock: &'a BiasedLock,
    by: By,
}

/// A lock to which no other visitor comes, and the owner only if it is there already. Dropping this
/// lets it go.
pub(super) struct Announced<'a>(Held<'a>);

impl<'a> Announced<'a> {
    /// The lock, when its owner has gone.
    ///
    /// # Safety
    /// Since it was announced, the thread has executed the heavy fence with success.
    pub(super) unsafe fn arrive(self) -> Held<'a> {
        wait_until(|| !self.0.lock.busy.load(Ordering::Acquire));
        self.0
    }
}

/// The ways in which a lock is held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Owner,
    /// By the owner, which has met a visitor.
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

    /// Takes the lock, for the owner. A light fence orders what the owner does before this call and
    /// after it.
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

    /// Says that the calling thread wants to be there, for any thread. Several locks can be
    /// announced, in an order that all threads keep to, before one heavy fence for all of them.
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

/// Waits for what lasts a few instructions, unless the operating system has interrupted the thread
/// that is there.
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
