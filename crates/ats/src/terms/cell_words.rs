//! The words of elements that change in place. [`cells`](crate::terms::cells) describes the
//! protocol of their changes, and the invariants CELLS-1 to CELLS-5.

use ats_sync::count::atomic::{AtomicU64, Ordering};
use ats_sync::latch::Latch;
use ats_term::image::Span;

/// The bit of a single cell that is set unless the cell is stopped. The words of all immediate
/// terms have it; a stopped cell looks like the slot of a box.
pub(crate) const RUNNING: u64 = 0b01;

/// Returns the number of words of a value before the image: the form, and the turn of a latch.
pub(crate) const fn words_before(span: Span) -> usize {
    if span.count == 1 { 1 } else { 2 }
}

/// Returns the number of words of a value behind the image: the other copy of several cells.
pub(crate) const fn words_behind(span: Span) -> usize {
    if span.count == 1 { 0 } else { span.count }
}

/// Returns the word of the only cell of a value.
///
/// # Safety
/// `words` points to a value that is an object with this one cell, which lives for `'a`.
#[inline]
pub(crate) unsafe fn single<'a>(words: *const u64, index: usize) -> &'a AtomicU64 {
    // SAFETY: the image follows the first word and has the element, whose word is accessed
    // atomically only (CELLS-1).
    unsafe { AtomicU64::from_ptr(words.add(1 + index).cast_mut()) }
}

/// Returns the latch of the cells of a value.
///
/// # Safety
/// `words` points to `len` words: a value that is an object with these cells, of which there are
/// several, and which lives for `'a`.
#[inline]
pub(crate) unsafe fn latch<'a>(words: *const u64, len: usize, span: Span) -> Latch<'a> {
    // SAFETY: the turn follows the first word, then comes the image with these elements, and the
    // other copy of them is at the end. All of these are accessed atomically only (CELLS-1).
    unsafe {
        let turn = AtomicU64::from_ptr(words.add(1).cast_mut());
        let copy = |at: usize| {
            let cells = words.add(at).cast_mut().cast::<AtomicU64>();
            std::slice::from_raw_parts(cells.cast_const(), span.count)
        };
        Latch::new(turn, [copy(2 + span.first), copy(len - span.count)])
    }
}

/// Copies the image of a value whose elements in `span` are cells, as of one moment.
///
/// # Safety
/// `words` points to `len` words: a value that is an object with these cells.
#[inline]
pub(crate) unsafe fn copy_image(words: *const u64, len: usize, span: Span, into: &mut Vec<u64>) {
    let image_len = len - words_before(span) - words_behind(span);
    into.clear();
    into.reserve(image_len);
    // SAFETY: the caller promises that the value has `len` words, of which the image is a part, and
    // the cells are a part of that. The cells are accessed atomically (CELLS-1), and the others,
    // which the slices hold, never change (CELLS-5).
    unsafe {
        let image = words.add(words_before(span));
        into.extend_from_slice(std::slice::from_raw_parts(image, span.first));
        if span.count == 1 {
            let word = single(words, span.first).load(Ordering::Acquire);
            into.push(word | RUNNING);
        } else {
            latch(words, len, span).read(into);
        }
        let rest = image.add(span.end());
        into.extend_from_slice(std::slice::from_raw_parts(rest, image_len - span.end()));
    }
}
