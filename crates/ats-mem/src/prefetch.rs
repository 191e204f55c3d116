//! Asking for memory before it is needed.

/// Asks the processor to fetch the first `LINES` cache lines at an address, which need not be one.
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

/// Does what [`prefetch`] does, of a cache line that will be written: fetches it from the processor
/// that has it, so that the store does not have to.
#[inline(always)]
pub(crate) fn prefetch_to_write<T>(start: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: prefetching is a hint; it touches no memory and cannot fault. Processors that do
        // not know this hint take it for no operation.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(start.cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = start;
}
