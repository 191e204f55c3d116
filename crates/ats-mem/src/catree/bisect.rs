//! Bisection over places, of which a comparison tells where a key is.

use std::cmp::Ordering;
use std::ops::Range;

/// The place of a key among ascending ones, or the first place whose key is above it. `compare`
/// says how the key at a place compares to it.
#[inline(always)]
pub(super) fn bisect(
    places: Range<usize>,
    compare: impl Fn(usize) -> Ordering,
) -> Result<usize, usize> {
    let Range { mut start, mut end } = places;
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
