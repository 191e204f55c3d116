//! Prefetch hints.

/// Prefetches the first `LINES` cache lines at an address, which need not be valid.
#[inline(always)]
pub(crate) fn prefetch<const LINES: usize, T>(start: *const T) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..LINES {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching is a hint; it touches no memory and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.cast::<i8>().wrapping_add(line * 64)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = start;
}

/// Prefetches a cache line that will be written: takes it from the processor that owns it, so that
/// the store need not wait.
#[inline(always)]
pub(crate) fn prefetch_to_write<T>(start: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: prefetching is a hint; it touches no memory and cannot fault. Processors without
        // this hint ignore it.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(start.cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = start;
}
