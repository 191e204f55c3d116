//! The word of an element that changes in place. [`cell`](crate::terms::cell) describes the
//! protocol of its changes, and the invariants CELL-1 to CELL-5.

use ats_sync::count::atomic::{AtomicU64, Ordering};

/// The bit of a cell that is set unless the cell is stopped. The words of all immediate terms have
/// it; a stopped cell looks like the slot of a box.
pub(crate) const RUNNING: u64 = 0b01;

/// Copies the image that follows the first word of a value whose element `index` is the cell.
///
/// # Safety
/// `words` points to `len` words: a value that is an object with this cell.
#[inline]
pub(crate) unsafe fn copy_words(words: *const u64, len: usize, index: usize, into: &mut Vec<u64>) {
    into.clear();
    into.reserve(len - 1);
    let cell = 1 + index;
    // SAFETY: the caller promises that the value has `len` words, of which the cell is one. The
    // cell is accessed atomically (CELL-1), and the others, which the slices hold, never change
    // (CELL-5).
    unsafe {
        into.extend_from_slice(std::slice::from_raw_parts(words.add(1), index));
        let word = AtomicU64::from_ptr(words.add(cell).cast_mut());
        into.push(word.load(Ordering::Acquire) | RUNNING);
        let rest = words.add(cell + 1);
        into.extend_from_slice(std::slice::from_raw_parts(rest, len - cell - 1));
    }
}
