//! Medians: bounds that divide the records of a range in two parts of about the same size.
//!
//! They let a caller that knows the order of the keys only by a function of the program find a
//! position: the function is asked about the first record from the median on, and the half that is
//! left has another median. A separator of an index is no key, but a bound; so the index alone
//! tells the median, and no block is read for it until the range lies within one.

use std::ops::Range;

/// A bound within a range, neither of its ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Median {
    pub(crate) bound: Vec<u8>,
    /// Number of entries in the range, about.
    pub(crate) entries: u64,
}

/// A memtable with so few keys in a range tells no median: about as many as a block has between two
/// restart points, and beside them.
pub(crate) const FEW: usize = 32;

/// Returns the middle of numbers, of which there is one at least.
pub(crate) fn middle(numbers: &Range<usize>) -> usize {
    numbers.start + numbers.len() / 2
}
