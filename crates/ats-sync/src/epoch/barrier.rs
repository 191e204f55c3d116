//! The two halves of an asymmetric fence.
//!
//! Readers pin very often and need a full fence each time; the reclaimer advances rarely. Linux can
//! move the whole cost to the rare side: the system call `membarrier` makes every processor that
//! runs a thread of this process execute a full fence. Readers then only need to keep the *compiler*
//! from reordering, because whatever instruction the processor is at when the call strikes, all
//! accesses before it are performed before the fence and all after it, after.
//!
//! The contract of the pair: for each `light` in one thread and each `heavy` in another, either
//! everything before `light` is visible to everything after `heavy`, or everything before `heavy` is
//! visible to everything after `light`. Two `light` fences promise nothing to each other.
//!
//! Where the call does not exist, both halves are ordinary sequentially consistent fences.

use crate::shim::atomic::Ordering;
#[cfg(not(tsan))]
use crate::shim::atomic::fence;

/// ThreadSanitizer sees neither fences nor the system call, and would take every freeing for a race.
/// It does see changes of one atomic number, of which any two are ordered, which is the contract
/// above and more.
#[cfg(tsan)]
fn fence(_: Ordering) {
    static ORDER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    ORDER.fetch_add(1, Ordering::SeqCst);
}

/// Which fences a domain uses. Decided once, because all its threads must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    /// `light` is free, `heavy` is a system call.
    Asymmetric,
    /// Both are fences of the processor.
    Symmetric,
}

impl Barrier {
    /// The best this system can do.
    pub(super) fn detect() -> Self {
        if membarrier::register() {
            Self::Asymmetric
        } else {
            Self::Symmetric
        }
    }

    /// The half of the frequent side.
    #[inline]
    pub(super) fn light(self) {
        match self {
            Self::Asymmetric => std::sync::atomic::compiler_fence(Ordering::SeqCst),
            Self::Symmetric => fence(Ordering::SeqCst),
        }
    }

    /// The half of the rare side. `false` if the system refused, in which case nothing may be
    /// concluded from what is read afterwards.
    #[must_use]
    pub(super) fn heavy(self) -> bool {
        fence(Ordering::SeqCst);
        match self {
            Self::Asymmetric => {
                let done = membarrier::run();
                fence(Ordering::SeqCst);
                done
            }
            Self::Symmetric => true,
        }
    }
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
