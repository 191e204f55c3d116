//! Blocks too large for the slabs, from the system allocator.
//!
//! # Addresses
//! All blocks are below [`ADDRESS_LIMIT`](super::ADDRESS_LIMIT). For mappings that is the default
//! of all systems: with four levels of page tables there is no memory above, and with more (x86-64
//! with five levels, AArch64 with 52 bits) a program has to request it from `mmap`. An allocator,
//! however, may return pointers with tags in their upper bits. Such a block is freed, and replaced
//! by a mapping of its own; a set of these few tells [`free`] about them.

use super::memory::{self, is_low};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Addresses of the blocks that have mappings of their own.
static MAPPED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
/// Number of these blocks: if there are none, [`free`] does not lock the set. A thread that frees a
/// block has received it from the thread that allocated it, and so sees it counted.
static MAPPED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Allocates a block for [`allocate`](super::allocate).
#[cold]
pub(super) fn allocate(bytes: usize) -> NonNull<u8> {
    let layout = layout(bytes);
    // SAFETY: the layout is never empty.
    let pointer = unsafe { alloc(layout) };
    let Some(block) = NonNull::new(pointer) else {
        handle_alloc_error(layout)
    };
    if is_low(block, bytes) && !is_far_in_tests(bytes) {
        return block;
    }
    // SAFETY: the block has just been allocated with this layout.
    unsafe { dealloc(pointer, layout) };
    map(bytes).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Frees a block.
///
/// # Safety
/// The block must come from [`allocate`] with the same `bytes` and must not be used afterwards.
pub(super) unsafe fn free(block: NonNull<u8>, bytes: usize) {
    if MAPPED_COUNT.load(Ordering::Relaxed) > 0 && lock_mapped().remove(&block.addr().get()) {
        MAPPED_COUNT.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the block was in the set, so `map` made it.
        unsafe { memory::unmap_block(block, bytes) };
    } else {
        // SAFETY: the caller promises that the block comes from `allocate` with the same `bytes`,
        // which used the same layout. It was not mapped, or it would be in the set.
        unsafe { dealloc(block.as_ptr(), layout(bytes)) };
    }
}

fn map(bytes: usize) -> Option<NonNull<u8>> {
    let block = memory::map_block(bytes)?;
    lock_mapped().insert(block.addr().get());
    MAPPED_COUNT.fetch_add(1, Ordering::Relaxed);
    Some(block)
}

fn lock_mapped() -> MutexGuard<'static, BTreeSet<usize>> {
    // A panic cannot leave the set half changed, so a poisoned lock is harmless.
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout(bytes: usize) -> Layout {
    let align = if bytes.is_multiple_of(64) { 64 } else { 16 };
    Layout::from_size_align(bytes.max(16), align).expect("a block fits the address space")
}

/// Tests must meet mapped blocks, so some sizes count as too far there.
fn is_far_in_tests(bytes: usize) -> bool {
    let can_map = cfg!(all(target_os = "linux", not(miri)));
    cfg!(test) && can_map && (bytes / 8).is_multiple_of(5)
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn far_blocks_are_mapped_until_freed() {
        let bytes = 5 * 8 * 1000;
        assert!(is_far_in_tests(bytes) && !is_far_in_tests(bytes + 8));
        let block = allocate(bytes);
        let beside = allocate(bytes + 8);
        assert!(lock_mapped().contains(&block.addr().get()));
        assert!(!lock_mapped().contains(&beside.addr().get()));
        // SAFETY: the test owns the blocks until it frees them with their sizes.
        unsafe {
            block.write_bytes(1, bytes);
            beside.write_bytes(2, bytes + 8);
            assert_eq!((block.add(bytes - 1).read(), beside.read()), (1, 2));
            free(block, bytes);
            free(beside, bytes + 8);
        }
        assert!(!lock_mapped().contains(&block.addr().get()));
    }
}
