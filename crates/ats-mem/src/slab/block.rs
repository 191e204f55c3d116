//! Blocks: from the slabs, or from the allocator of the system.

use super::class::{Class, PASSING, PASSING_BYTES};
use super::{cache, system};
use ats_sync::count;
use std::ptr::NonNull;

/// `true` if everything comes from the allocator of the system.
const WATCHED: bool = cfg!(any(miri, fuzzing, watched));

/// A block of at least `bytes` bytes, not initialised. Aligned to 8 bytes, to 16 if `bytes` is a
/// positive multiple of 16, and to 64 if it is one of 64; below
/// [`ADDRESS_LIMIT`](super::ADDRESS_LIMIT).
///
/// Amortised O(1), a few nanoseconds; may lock for a moment. Can be called from any thread, also
/// while it ends. Calls [`handle_alloc_error`](std::alloc::handle_alloc_error) if the system has no
/// memory. A block above [`LARGEST`](super::LARGEST) is one from the allocator of the system.
#[inline]
pub fn allocate(bytes: usize) -> NonNull<u8> {
    count::note_allocation(bytes);
    match Class::of(bytes) {
        Some(class) if !WATCHED => cache::take(class),
        _ => system::allocate(bytes),
    }
}

/// Gives a block back. Amortised O(1); may lock for a moment. Can be called from any thread, also
/// while it ends.
///
/// # Safety
/// `pointer` comes from [`allocate`] with the same `bytes`, was not freed since, and is not used
/// afterwards.
#[inline]
pub unsafe fn free(pointer: NonNull<u8>, bytes: usize) {
    match Class::of(bytes) {
        // SAFETY: the caller says that the block comes from `allocate` with the same `bytes`, hence
        // of this class, and is not used afterwards (SLAB-1).
        Some(class) if !WATCHED => unsafe { cache::put(class, pointer) },
        // SAFETY: the caller says that the block comes from `allocate` with the same `bytes`, which
        // took it from the system, and is not used afterwards.
        _ => unsafe { system::free(pointer, bytes) },
    }
}

/// A block as [`allocate`] gives it, for what is there for a while only. It does not lie between
/// blocks that stay longer, so its memory can go back to the system.
#[inline]
pub(crate) fn allocate_passing(bytes: usize) -> NonNull<u8> {
    if WATCHED || bytes > PASSING_BYTES {
        return allocate(bytes);
    }
    count::note_allocation(bytes);
    cache::take(PASSING)
}

/// Gives a block for what passes back.
///
/// # Safety
/// The same as for [`free`], of a block from [`allocate_passing`].
#[inline]
pub(crate) unsafe fn free_passing(pointer: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller says that the block comes from `allocate_passing` with the same `bytes`,
    // which took it from this class or from `allocate`, and is not used afterwards (SLAB-1).
    unsafe {
        match WATCHED || bytes > PASSING_BYTES {
            true => free(pointer, bytes),
            false => cache::put(PASSING, pointer),
        }
    }
}

/// A function that frees a block of `bytes` bytes by its pointer alone, for the usual sizes of
/// records.
///
/// A block that a thread retires is mostly in the cache of its processor. When the block is freed,
/// much later, it is cold. A function that knows the size need not look into the block for it.
#[inline]
pub(crate) fn free_function(bytes: usize) -> Option<unsafe fn(*mut u8)> {
    unsafe fn free_sized<const BYTES: usize>(raw: *mut u8) {
        // SAFETY: the caller hands over a block of this size, as with `free`.
        unsafe { free(NonNull::new_unchecked(raw), BYTES) }
    }
    // For 16 bytes, 24, 32 and so on.
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
    // The allocator of the system wants to be told the size it was asked for, not the rounded one.
    if WATCHED {
        return None;
    }
    let units = bytes.div_ceil(8);
    FUNCTIONS.get(units.saturating_sub(2)).copied()
}

/// The bytes that a block for `bytes` bytes takes, for accounting. O(1).
#[inline]
pub fn block_size(bytes: usize) -> usize {
    Class::of(bytes).map_or_else(|| bytes.saturating_add(15) & !15, Class::size)
}
