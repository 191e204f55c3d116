//! The word of an object that changes in place: the value of a counter.
//! [`counter_cell`](crate::terms::counter_cell) describes the protocol of its changes, and the
//! invariants COUNTER_CELL-1 to COUNTER_CELL-4.

use ats_sync::count::atomic::{AtomicU64, Ordering};

/// The bit of a cell that is set unless the cell is stopped. All small integers have it.
pub(crate) const RUNNING: u64 = 0b1000;

/// Copies the image that follows the first word of a value whose element `index` is a counter.
///
/// # Safety
/// `words` points to `len` words: a value that is an object with this counter.
pub(crate) unsafe fn copy_words(words: *const u64, len: usize, index: usize, into: &mut Vec<u64>) {
    into.clear();
    into.reserve(len - 1);
    for at in 1..len {
        // SAFETY: the caller promises that the value has `len` words, and this is one of them. The
        // counter is accessed atomically (COUNTER_CELL-1), and the others never change.
        into.push(unsafe {
            if at == 1 + index {
                AtomicU64::from_ptr(words.add(at).cast_mut()).load(Ordering::Acquire) | RUNNING
            } else {
                *words.add(at)
            }
        });
    }
}
