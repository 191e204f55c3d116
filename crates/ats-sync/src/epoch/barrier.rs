//! The two halves of an asymmetric fence.
//!
//! Readers pin very often and need a full fence each time; the reclaimer advances rarely. Linux can
//! move the whole cost to the rare side: the system call `membarrier` makes every processor that
//! runs a thread of this process execute a full fence. Readers then only need to keep the
//! *compiler* from reordering, because whatever instruction the processor is at when the call
//! strikes, all accesses before it are performed before the fence and all after it, after.
//!
//! The contract of the pair: for each `light` in one thread and each `heavy` in another that
//! succeeds, either everything before `light` is visible to everything after `heavy`, or everything
//! before `heavy` is visible to everything after `light`. Two `light` fences promise nothing to
//! each other.
//!
//! Where the call does not exist, both halves are ordinary sequentially consistent fences.
//!
//! # When the call begins to fail
//! The call can fail although registering succeeded: a filter for system calls may be installed
//! later, and the kernel may be short of memory. Then the barrier changes, once and for ever, to
//! ordinary fences on both sides. The word `mode` says which kind is in use, and `light` reads it.
//! `heavy` succeeds again only [`QUARANTINE`] after the change. No heavy half succeeds in between,
//! so nothing is freed in that time.
//!
//! # Invariants and why the change is safe
//! - BARRIER-1. `mode` changes from `ASYMMETRIC` to `SYMMETRIC` and never back. `changed` is set
//!   after that change, and never changes.
//! - BARRIER-2. *A heavy half that is a system call pairs with both kinds of `light`.* It makes
//!   each processor execute a full fence, and both kinds keep the compiler from reordering.
//! - BARRIER-3. *A heavy half that is a fence pairs with a `light` that read `SYMMETRIC`*: two
//!   sequentially consistent fences are ordered.
//! - BARRIER-4. *A heavy half that is a fence pairs with a `light` that read `ASYMMETRIC`.* That
//!   `light` has loaded `mode` before the change was visible to its processor, and its accesses
//!   before `light` come before that load in the order of the program. Every such access has been
//!   executed at that time; a store among them may wait in the processor for some time, but no
//!   longer than a store takes to become visible, and a switch to another thread does not prolong
//!   this, since the kernel executes a full fence in it. The heavy half comes [`QUARANTINE`] after
//!   the change. So everything before that `light` is visible to everything after the heavy half,
//!   which is the first case of the contract.
//!
//! BARRIER-4 rests on a bound in time that no memory model states: that a store is visible to all
//! processors within `QUARANTINE`, and that a load does not return a value that was replaced so
//! long before. Processors need microseconds at most. All else holds in the memory model of the
//! language. Without the call, no algorithm can do without such a bound, because a thread that has
//! executed no fence cannot be made to execute one. A. Morrison, Y. Afek, *Temporally bounding TSO
//! for fence-free asymmetric synchronization*, ASPLOS 2015, use the same bound for each step; here
//! it is needed once.

pub(super) use crate::model::QUARANTINE;
#[cfg(not(tsan))]
use crate::shim::atomic::fence;
use crate::shim::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::sync::atomic::compiler_fence;
use std::time::Instant;

/// ThreadSanitizer sees neither fences nor the system call, and would take every freeing for a
/// race. It does see changes of one atomic number, of which any two are ordered, which is the
/// contract above and more.
#[cfg(tsan)]
fn fence(_: Ordering) {
    static ORDER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    ORDER.fetch_add(1, Ordering::SeqCst);
}

/// `light` is free, `heavy` is a system call.
const ASYMMETRIC: u32 = 1;
/// Both are fences of the processor.
const SYMMETRIC: u32 = 0;

/// The fences of a domain. All its threads use the same.
pub(super) struct Barrier {
    mode: AtomicU32,
    /// The moment at which the system call failed, if it did.
    changed: OnceLock<Instant>,
    /// Asks the system for the heavy half, which may refuse. None if both sides use fences anyway.
    call: Option<fn() -> bool>,
}

impl Barrier {
    /// The best this system can do.
    pub(super) fn detect() -> Self {
        Self::new(membarrier::register().then_some(membarrier::run))
    }

    /// A barrier of which `call` is the heavy half as long as it returns true; without one, a
    /// symmetric one.
    pub(super) fn new(call: Option<fn() -> bool>) -> Self {
        let mode = if call.is_some() {
            ASYMMETRIC
        } else {
            SYMMETRIC
        };
        Self {
            mode: AtomicU32::new(mode),
            changed: OnceLock::new(),
            call,
        }
    }

    /// Returns `true` if `light` is free.
    #[inline]
    pub(super) fn is_asymmetric(&self) -> bool {
        self.mode.load(Ordering::Relaxed) == ASYMMETRIC
    }

    /// The half of the frequent side.
    #[inline]
    pub(super) fn light(&self) {
        // The load of `mode` stays behind what comes before this fence (BARRIER-4).
        compiler_fence(Ordering::SeqCst);
        match self.is_asymmetric() {
            true => compiler_fence(Ordering::SeqCst),
            false => fence(Ordering::SeqCst),
        }
    }

    /// The half of the rare side. `false` if nothing may be concluded from what is read afterwards:
    /// the system has just refused, or did so less than [`QUARANTINE`] ago.
    #[must_use]
    pub(super) fn heavy(&self) -> bool {
        fence(Ordering::SeqCst);
        let Some(call) = self.call else {
            return true;
        };
        if self.is_asymmetric() {
            if call() {
                fence(Ordering::SeqCst);
                return true;
            }
            self.mode.store(SYMMETRIC, Ordering::SeqCst);
            // Not if another thread has met the same: then the change was that thread's.
            let _ = self.changed.set(Instant::now());
            return false;
        }
        // Acquires the change; before this fence comes whatever BARRIER-4 says is visible.
        let is_over = self.changed.get().is_some_and(quarantine_is_over);
        fence(Ordering::SeqCst);
        is_over
    }
}

fn quarantine_is_over(changed: &Instant) -> bool {
    changed.elapsed() >= QUARANTINE
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, miri, tsan))))]
mod membarrier {
    /// Tells the kernel that this process will use the call, which makes the call fast.
    pub(super) fn register() -> bool {
        call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    pub(super) fn run() -> bool {
        call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }

    fn call(command: libc::c_int) -> bool {
        crate::count::note_barrier();
        // SAFETY: `membarrier` takes a command and flags by value and accesses no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}

#[cfg(not(all(target_os = "linux", not(any(loom, shuttle, miri, tsan)))))]
mod membarrier {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn run() -> bool {
        false
    }
}
