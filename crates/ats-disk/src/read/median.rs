//! The median of the records of a snapshot.

use super::lending_scan::LendingScan;
use super::pinned::Pinned;
use crate::error::Error;
use crate::median::{FEW, Median};
use crate::state::Version;
use ats_store::{Direction, KeyRange, MayBlock};
use std::sync::Arc;

/// Returns the median of the memtable or the run that has the most entries in a range, or a key of
/// the first records if all have few; `None` if there is no record. The range is not empty.
pub(crate) fn median(
    may_block: Option<MayBlock>,
    pinned: &Arc<Pinned>,
    version: &Version,
    key_range: KeyRange<'_>,
) -> Result<Option<Vec<u8>>, Error> {
    let (low, high) = (key_range.low.unwrap_or_default(), key_range.high);
    let mut largest: Option<Median> = None;
    let memtables = version
        .memtables()
        .map(|memtable| Ok(memtable.median(low, high)));
    let runs = version
        .runs
        .iter()
        .map(|run| run.run.median(may_block, low, high));
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
        None => median_of_few(
            may_block,
            LendingScan::new(Arc::clone(pinned), key_range, Direction::Up)?,
        ),
    }
}

/// Returns the key in the middle of the first records of a walk.
fn median_of_few(
    may_block: Option<MayBlock>,
    mut scan: LendingScan,
) -> Result<Option<Vec<u8>>, Error> {
    let mut keys = Vec::new();
    while keys.len() < 2 * FEW {
        match scan.advance(may_block) {
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
