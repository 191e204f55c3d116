//! Medians: bounds that divide the records of a range in two parts of about the same size.
//!
//! Whoever knows the order of the keys only by a function of the program finds a place with them: the
//! function is asked about the first record from the median on, and the half that is left has another
//! median. A separator of an index is no key, but a bound; so the index alone tells the median, and no
//! block is read for it until the range lies within one.

use crate::error::Error;
use crate::scan::Scan;
use crate::snapshot::Pinned;
use crate::state::State;
use ats_store::{Direction, KeyRange};
use std::ops::Range;
use std::sync::Arc;

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

/// The middle of numbers, of which there is one at least.
pub(crate) fn middle(numbers: &Range<usize>) -> usize {
    numbers.start + numbers.len() / 2
}

/// The median of the memtable or the run that has the most entries in a range, or a key of the first
/// records if all have few; `None` if there is no record. The range is not empty.
pub(crate) fn median(
    pinned: &Arc<Pinned>,
    state: &State,
    key_range: KeyRange<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    let (low, high) = (key_range.low.unwrap_or_default(), key_range.high);
    let mut largest: Option<Median> = None;
    let memtables = state
        .memtables()
        .map(|memtable| Ok(memtable.median(low, high)));
    let runs = state.runs.iter().map(|run| run.run.median(low, high));
    for median in memtables.chain(runs) {
        let Some(median) = median? else { continue };
        if largest
            .as_ref()
            .is_none_or(|largest| largest.entries < median.entries)
        {
            largest = Some(median);
        }
    }
    match largest {
        Some(median) => Ok(Some(median.bound)),
        None => median_of_few(Scan::new(Arc::clone(pinned), key_range, Direction::Up)?),
    }
}

/// The key in the middle of the first records of a walk.
fn median_of_few(mut scan: Scan) -> Result<Option<Vec<u8>>, Error> {
    let mut keys = Vec::new();
    while keys.len() < 2 * FEW {
        match scan.next() {
            Ok(Some((key, _))) => keys.push(key.to_vec()),
            Ok(None) => break,
            // The key is there, and its value is none of the walk's business.
            Err(Error::Merge) => {}
            Err(error) => return Err(error),
        }
    }
    let median = keys.len() / 2;
    Ok(keys.into_iter().nth(median))
}
