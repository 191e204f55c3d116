//! The two halves of an asymmetric fence.
//!
//! Readers pin very often and need a full fence each time; the reclaimer advances rarely. Linux can
//! move the whole cost to the rare side: the system call `membarrier` makes every processor that
//! runs a thread of this process execute a full fence. Readers then only need to keep the
//! *compiler* from reordering, because wherever the call interrupts a processor, all earlier
//! accesses are performed before the fence and all later ones after it.
//!
//! The contract: for each `light` in one thread and each successful `heavy` in another, either
//! everything before `light` is visible to everything after `heavy`, or everything
//! before `heavy` is visible to everything after `light`. Two `light` fences promise nothing to
//! each other.
//!
//! On systems without the call, both halves are ordinary sequentially consistent fences.
//!
//! # Failures of the call
//! The call can fail although the registration succeeded: a filter for system calls may be
//! installed later, and the kernel may be short of memory. Then the barrier changes, once and for
//! ever, to ordinary fences on both sides. The word `mode` is the kind in use, and `light` reads
//! it. `heavy` succeeds again only [`QUARANTINE`] after the change, so nothing is freed in between.
//!
//! # Invariants, and why the change is safe
//! - BARRIER-1. `mode` changes from `ASYMMETRIC` to `SYMMETRIC` and never back. `changed` is set
//!   after that change, and never changes.
//! - BARRIER-2. *A heavy half that is a system call pairs with both kinds of `light`.* It makes
//!   each processor execute a full fence, and both kinds keep the compiler from reordering.
//! - BARRIER-3. *A heavy half that is a fence pairs with a `light` that read `SYMMETRIC`*: two
//!   sequentially consistent fences are ordered.
//! - BARRIER-4. *A heavy half that is a fence pairs with a `light` that read `ASYMMETRIC`.* That
//!   `light` has loaded `mode` before the change was visible to its processor, and its accesses
//!   before `light` precede that load in program order. Every such access has been executed by
//!   then; a store among them may stay in the store buffer, but no longer than a store takes to
//!   become visible, and a context switch does not prolong this, because it includes a full fence.
//!   The heavy half comes [`QUARANTINE`] after the change. So everything before that `light` is
//!   visible to everything after the heavy half, which is the first case of the contract.
//!
//! BARRIER-4 rests on a bound in time that no memory model states: that a store is visible to all
//! processors within `QUARANTINE`, and that a load does not return a value that was replaced so
//! long before. Processors need microseconds at most. Everything else holds in the memory model of
//! the language. Without the call, every algorithm needs such a bound, because a thread that has
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

/// Replaces the fences under ThreadSanitizer, which sees neither fences nor the system call and
/// would report every freeing as a race. It does see read-modify-writes of one atomic, any two of
/// which are ordered; that is the contract above and more.
#[cfg(tsan)]
fn fence(_: Ordering) {
    static ORDER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    ORDER.fetch_add(1, Ordering::SeqCst);
}

/// Mode in which `light` is free and `heavy` is a system call.
const ASYMMETRIC: u32 = 1;
/// Mode in which both are processor fences.
const SYMMETRIC: u32 = 0;

/// The fences of a domain, shared by all its threads.
pub(super) struct Barrier {
    mode: AtomicU32,
    /// The moment at which the system call failed, if it did.
    changed: OnceLock<Instant>,
    /// The system call of the heavy half, which may fail. `None` if both sides use fences anyway.
    call: Option<fn() -> bool>,
}

impl Barrier {
    /// Returns the best barrier of this system.
    pub(super) fn detect() -> Self {
        Self::new(membarrier::register().then_some(membarrier::run))
    }

    /// Creates a barrier with `call` as its heavy half as long as it returns `true`; without a
    /// call, a symmetric one.
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

    /// Executes the half of the frequent side.
    #[inline]
    pub(super) fn light(&self) {
        // The load of `mode` stays after all accesses before this fence (BARRIER-4).
        compiler_fence(Ordering::SeqCst);
        if self.is_asymmetric() {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// Executes the half of the rare side. Returns `false` if later reads prove nothing: the system
    /// has just refused the call, or did so less than [`QUARANTINE`] ago.
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
            // The set fails if another thread has met the same refusal: then the change was that
            // thread's.
            let _ = self.changed.set(Instant::now());
            return false;
        }
        // Acquires the change; all accesses that BARRIER-4 speaks of come before this fence.
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
    /// Registers this process for the call, which makes the call fast.
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
