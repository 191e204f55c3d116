//! Abort of a program whose memory is corrupted.

use std::ptr::NonNull;

/// Aborts because the bookkeeping contradicts itself: a block was freed twice or overwritten from
/// outside. Otherwise one block could get two owners.
#[cold]
pub(super) fn abort_corrupted(what: &str, pointer: NonNull<u8>) -> ! {
    eprintln!("ats: memory is corrupted: {what}: {pointer:?}");
    std::process::abort()
}
