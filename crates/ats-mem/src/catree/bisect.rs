//! Binary search over indices by a comparison function.

use std::cmp::Ordering;
use std::ops::Range;

/// Returns the index of a key among ascending ones, or the first index whose key is above it.
/// `compare` compares the key at an index with the wanted one.
#[inline(always)]
pub(super) fn bisect(
    indices: Range<usize>,
    compare: impl Fn(usize) -> Ordering,
) -> Result<usize, usize> {
    let Range { mut start, mut end } = indices;
    while start < end {
        let middle = start + (end - start) / 2;
        match compare(middle) {
            Ordering::Less => start = middle + 1,
            Ordering::Greater => end = middle,
            Ordering::Equal => return Ok(middle),
        }
    }
    Err(start)
}
