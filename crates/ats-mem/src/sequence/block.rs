//! The blocks of a sequence: [nodes](super::node) and [values](super::value), and references to
//! them.
//!
//! ```text
//!           63              32 31              0
//! node     +------------------+-----------------+---------------------------+
//!          | bitmap of slots  | references      | link of each slot that is |
//!          +------------------+-----------------+---------------------------+
//! value    | length in words  | references      | words                     |
//!          | (31 bits) | owns |                 |                           |
//!          +------------------+-----------------+---------------------------+
//! ```
//!
//! The block does not record its kind: the height of the link implies it.

use ats_sync::shim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use ats_sync::shim::peek;
use std::ptr::NonNull;

const COUNT: u64 = u32::MAX as u64;
const SHAPE_SHIFT: u32 = 32;
/// Number of references that only a faulty program reaches; beyond it the count could overflow.
const COUNT_MAX: u64 = 1 << 31;

/// The first word of a block.
#[repr(C)]
pub(super) struct BlockHeader {
    word: AtomicU64,
}

/// Size of the first word in bytes.
pub(super) const HEAD: usize = size_of::<BlockHeader>();

impl BlockHeader {
    /// Creates the header of a block with one reference.
    pub(super) fn new(shape: u32) -> Self {
        BlockHeader {
            word: AtomicU64::new(u64::from(shape) << SHAPE_SHIFT | 1),
        }
    }

    #[inline(always)]
    pub(super) fn shape(&self) -> u32 {
        (peek(&self.word) >> SHAPE_SHIFT) as u32
    }
}

/// A pointer to a block, with the mark of a draft in its lowest bit: blocks are aligned to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Link(NonNull<u8>);

const DRAFT: usize = 1;

impl Link {
    /// Returns `true` if the current edit made the block; it then has the only link to it.
    #[inline]
    pub(super) fn is_draft(self) -> bool {
        self.0.addr().get() & DRAFT != 0
    }

    /// Returns the link without the mark.
    #[inline]
    pub(super) fn without_mark(self) -> Link {
        Link(self.block())
    }

    /// Returns the block.
    #[inline]
    pub(super) fn block(self) -> NonNull<u8> {
        // SAFETY: no block is at address 0.
        unsafe { NonNull::new_unchecked(self.pointer()) }
    }

    /// Returns the address of the block.
    #[inline]
    pub(super) fn pointer(self) -> *mut u8 {
        self.0.as_ptr().map_addr(|address| address & !DRAFT)
    }

    /// Recovers the link from a [`pointer`](Link::pointer).
    ///
    /// # Safety
    /// The pointer must come from there.
    pub(super) unsafe fn of_pointer(pointer: *mut u8) -> Link {
        // SAFETY: no block is at address 0.
        Link(unsafe { NonNull::new_unchecked(pointer) })
    }

    /// Returns the marked link to a new block.
    pub(super) fn draft(block: NonNull<u8>) -> Link {
        Link(block.map_addr(|address| address | DRAFT))
    }

    /// # Safety
    /// The block must live during `'a` (SEQUENCE-1).
    #[inline(always)]
    unsafe fn head<'a>(self) -> &'a BlockHeader {
        // SAFETY: every block begins with a head, and this one lives (SEQUENCE-1).
        unsafe { &*self.pointer().cast() }
    }

    /// Returns `true` if the holder of a reference has the only one.
    ///
    /// # Safety
    /// The block must be alive (SEQUENCE-1).
    #[inline]
    pub(super) unsafe fn is_only(self) -> bool {
        // Acquire: all accesses of others before they gave up their references are over. SAFETY:
        // the caller promises that the block is alive, so its head can be read (SEQUENCE-1).
        unsafe { self.head() }.word.load(Acquire) & COUNT == 1
    }

    /// Returns the number of references.
    ///
    /// # Safety
    /// The block must be alive (SEQUENCE-1).
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) unsafe fn count(self) -> u32 {
        // SAFETY: the caller promises that the block is alive, so its head can be read
        // (SEQUENCE-1).
        (unsafe { self.head() }.word.load(Acquire) & COUNT) as u32
    }

    /// Takes another reference.
    ///
    /// # Safety
    /// The caller must have a reference, or keep the owner of one from giving it up.
    pub(super) unsafe fn share(self) {
        // Relaxed, because a thread with a reference already sees the block. SAFETY: the reference
        // of the caller keeps the block alive (SEQUENCE-1).
        let before = unsafe { self.head() }.word.fetch_add(1, Relaxed);
        if before & COUNT > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Takes another reference, if there is any. Returns `true` if it did.
    ///
    /// # Safety
    /// The block must be alive (SEQUENCE-1).
    pub(super) unsafe fn share_if_any(self) -> bool {
        // SAFETY: the caller promises that the block is alive, so its head can be read
        // (SEQUENCE-1).
        let word = unsafe { &self.head().word };
        let mut before = word.load(Relaxed);
        while before & COUNT != 0 {
            if before & COUNT > COUNT_MAX {
                std::process::abort();
            }
            match word.compare_exchange_weak(before, before + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => before = now,
            }
        }
        false
    }

    /// Takes the last reference away, if there is only one, so that no thread can
    /// [share](Self::share_if_any) the block any more. Returns `true` if it did.
    ///
    /// # Safety
    /// The block must be alive (SEQUENCE-1).
    pub(super) unsafe fn take_only(self) -> bool {
        // SAFETY: the caller promises that the block is alive, so its head can be read
        // (SEQUENCE-1).
        let head = unsafe { self.head() };
        let alone = u64::from(head.shape()) << SHAPE_SHIFT | 1;
        // Acquire as in `is_only`.
        let taken = head
            .word
            .compare_exchange(alone, alone - 1, Acquire, Relaxed);
        taken.is_ok()
    }

    /// Gives up a reference. Returns `true` if it was the last, so that the caller has to free the
    /// block.
    ///
    /// # Safety
    /// The caller must have a reference, and must not use it afterwards.
    pub(super) unsafe fn give_up(self) -> bool {
        // SAFETY: the reference of the caller keeps the block alive (SEQUENCE-1).
        unsafe {
            // A load instead of a write for blocks with a single reference, as most have.
            if self.is_only() {
                return true;
            }
            let last = self.head().word.fetch_sub(1, Release) & COUNT == 1;
            if last {
                // Accesses by others, before they gave up their references, come before the
                // freeing.
                fence(Acquire);
            }
            last
        }
    }
}
