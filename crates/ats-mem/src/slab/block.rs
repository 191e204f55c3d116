//! Blocks: from the slabs, or from the system allocator.

use super::class::{Class, PASSING, PASSING_BYTES};
use super::{cache, system};
use ats_sync::count;
use std::ptr::NonNull;

/// `true` if every block comes from the system allocator.
const WATCHED: bool = cfg!(any(miri, fuzzing, watched));

/// Allocates an uninitialised block of at least `bytes` bytes. It is aligned to 8 bytes, to 16 if
/// `bytes` is a positive multiple of 16, and to 64 if it is one of 64; its address is below
/// [`ADDRESS_LIMIT`](super::ADDRESS_LIMIT).
///
/// Amortised O(1), a few nanoseconds; may lock for a moment. Can be called on any thread, even
/// while it exits. Calls [`handle_alloc_error`](std::alloc::handle_alloc_error) if the system has
/// no memory. A block above [`LARGEST`](super::LARGEST) comes from the system allocator.
#[inline]
pub fn allocate(bytes: usize) -> NonNull<u8> {
    count::note_allocation(bytes);
    match Class::of(bytes) {
        Some(class) if !WATCHED => cache::take(class),
        _ => system::allocate(bytes),
    }
}

/// Frees a block. Amortised O(1); may lock for a moment. Can be called on any thread, even while it
/// exits.
///
/// # Safety
/// `pointer` must come from [`allocate`] with the same `bytes`, and must neither have been freed
/// nor be used afterwards.
#[inline]
pub unsafe fn free(pointer: NonNull<u8>, bytes: usize) {
    match Class::of(bytes) {
        // SAFETY: the caller promises that the block comes from `allocate` with the same `bytes`,
        // hence of this class, and is not used afterwards (SLAB-1).
        Some(class) if !WATCHED => unsafe { cache::put(class, pointer) },
        // SAFETY: the caller promises that the block comes from `allocate` with the same `bytes`,
        // which took it from the system, and is not used afterwards.
        _ => unsafe { system::free(pointer, bytes) },
    }
}

/// Allocates a block like [`allocate`] for short-lived data. It does not lie between long-lived
/// blocks, so its memory can return to the system.
#[inline]
pub(crate) fn allocate_passing(bytes: usize) -> NonNull<u8> {
    if WATCHED || bytes > PASSING_BYTES {
        return allocate(bytes);
    }
    count::note_allocation(bytes);
    cache::take(PASSING)
}

/// Frees a block for short-lived data.
///
/// # Safety
/// The same as for [`free`], with a block from [`allocate_passing`].
#[inline]
pub(crate) unsafe fn free_passing(pointer: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller promises that the block comes from `allocate_passing` with the same
    // `bytes`, which took it from this class or from `allocate`, and is not used afterwards
    // (SLAB-1).
    unsafe {
        if WATCHED || bytes > PASSING_BYTES {
            free(pointer, bytes);
        } else {
            cache::put(PASSING, pointer);
        }
    }
}

/// Returns a function that frees a block of `bytes` bytes by its pointer alone, for the usual sizes
/// of records.
///
/// A block is mostly cached when a thread retires it, and cold when it is freed, much later. A
/// function that knows the size need not read it from the block.
#[inline]
pub(crate) fn free_function(bytes: usize) -> Option<unsafe fn(*mut u8)> {
    unsafe fn free_sized<const BYTES: usize>(raw: *mut u8) {
        // SAFETY: the caller promises the same as for `free`, with a block of this size.
        unsafe { free(NonNull::new_unchecked(raw), BYTES) }
    }
    // Functions for 16 bytes, 24, 32 and so on.
    const FUNCTIONS: [unsafe fn(*mut u8); 15] = [
        free_sized::<16>,
        free_sized::<24>,
        free_sized::<32>,
        free_sized::<40>,
        free_sized::<48>,
        free_sized::<56>,
        free_sized::<64>,
        free_sized::<72>,
        free_sized::<80>,
        free_sized::<88>,
        free_sized::<96>,
        free_sized::<104>,
        free_sized::<112>,
        free_sized::<120>,
        free_sized::<128>,
    ];
    // The system allocator needs the requested size, not the rounded one.
    if WATCHED {
        return None;
    }
    let units = bytes.div_ceil(8);
    FUNCTIONS.get(units.saturating_sub(2)).copied()
}

/// Returns the number of bytes that a block for `bytes` bytes takes, for accounting. O(1).
#[inline]
pub fn block_size(bytes: usize) -> usize {
    Class::of(bytes).map_or_else(|| bytes.saturating_add(15) & !15, Class::size)
}
