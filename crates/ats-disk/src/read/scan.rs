//! Iterators over the records of a range.

use super::lending_scan::{LendingScan, Record};
use super::pinned::Pinned;
use crate::error::Error;
use crate::key_bounds::{HalfOpen, KeyBounds};
use crate::state::State;
use ats_store::{Direction, KeyRange};
use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

/// An iterator over the records of a range at one moment, from either end: see
/// [`DiskStore::scan`](crate::DiskStore::scan).
///
/// An item is an error if it cannot be read. After values that cannot be merged, the iterator
/// continues behind their key; any other error is the last item.
///
/// It keeps the memtables and the files that it reads, as a [`Snapshot`](crate::Snapshot) does.
/// Each end that is used has a walk of its own.
#[must_use = "an iterator does nothing unless it is asked for its items"]
pub struct Scan {
    pinned: Arc<Pinned>,
    /// The lower bound of the keys that neither end has returned. Each end updates its bound, since
    /// the other end stops there.
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    ends: [Option<LendingScan>; 2],
    is_done: bool,
}

impl Scan {
    /// Makes an iterator over a range at this moment.
    pub(crate) fn of(state: &Arc<State>, key_bounds: &impl KeyBounds) -> Self {
        Scan::new(Pinned::for_scan(state), key_bounds)
    }

    pub(crate) fn new(pinned: Arc<Pinned>, key_bounds: &impl KeyBounds) -> Self {
        let range = HalfOpen::new(key_bounds);
        let range = range.as_range();
        Scan {
            pinned,
            low: range.low.map(<[u8]>::to_vec),
            high: range.high.map(<[u8]>::to_vec),
            ends: [None, None],
            is_done: range.is_empty(),
        }
    }

    /// Returns the next record in a direction, from the end where the direction begins. The record
    /// is lent until the next call, so it is not copied.
    pub fn next_lent(&mut self, direction: Direction) -> Option<Result<Record<'_>, Error>> {
        if self.is_done {
            return None;
        }
        let Scan {
            pinned,
            low,
            high,
            ends,
            is_done,
        } = self;
        let end = &mut ends[usize::from(direction == Direction::Down)];
        let scan = match end {
            Some(scan) => scan,
            None => {
                let rest = KeyRange {
                    low: low.as_deref(),
                    high: high.as_deref(),
                };
                match LendingScan::new(Arc::clone(pinned), rest, direction) {
                    Ok(scan) => end.insert(scan),
                    Err(error) => {
                        *is_done = true;
                        return Some(Err(error));
                    }
                }
            }
        };
        let record = match scan.next() {
            Ok(record) => record,
            Err(error) => {
                *is_done = error != Error::Merge;
                return Some(Err(error));
            }
        };
        let is_left = |key: &[u8]| match direction {
            Direction::Up => high.as_deref().is_none_or(|high| key < high),
            Direction::Down => low.as_deref().is_none_or(|low| low <= key),
        };
        let Some((key, value)) = record.filter(|(key, _)| is_left(key)) else {
            *is_done = true;
            return None;
        };
        match direction {
            Direction::Up => {
                let low = low.get_or_insert_default();
                key.clone_into(low);
                low.push(0);
            }
            Direction::Down => key.clone_into(high.get_or_insert_default()),
        }
        Some(Ok((key, value)))
    }

    fn next_owned(&mut self, direction: Direction) -> Option<<Self as Iterator>::Item> {
        let record = self.next_lent(direction)?;
        Some(record.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}

impl Iterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_owned(Direction::Up)
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_owned(Direction::Down)
    }
}

impl FusedIterator for Scan {}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").finish_non_exhaustive()
    }
}
