//! The end of a program whose memory is not in order.

use std::ptr::NonNull;

/// The bookkeeping contradicts itself, so a block was freed twice or overwritten from outside.
/// Going on would hand one block to two owners.
#[cold]
pub(super) fn abort_corrupted(what: &str, pointer: NonNull<u8>) -> ! {
    eprintln!("ats: memory is corrupted: {what}: {pointer:?}");
    std::process::abort()
}
