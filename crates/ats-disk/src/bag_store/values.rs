//! The values of one key, gathered from its records, and walks from key to key.

use super::identity::{push_value, split_values};
use super::layout::{Record, end_of};
use crate::blocking;
use crate::error::Error;
use crate::read::{LendingScan, Snapshot};
use ats_store::store::Visit;
use ats_store::{Direction, KeyRange, MayBlock};
use std::ops::ControlFlow;
use std::ops::Range;

/// A caller that may not block leaves a key with more values to one that may.
const MOST_AT_ONCE: usize = 512;

/// The values of one key. Keeps its memory.
#[derive(Default)]
pub(super) struct KeyValues {
    key: Vec<u8>,
    bytes: Vec<u8>,
    /// The values in the order in which they were read, until they are sorted.
    values: Vec<OneValue>,
    /// `true` if they are one record.
    is_shared: bool,
    /// Keys of the records, one behind the other, if they are wanted.
    record_keys: Option<Vec<u8>>,
}

/// One of the values.
struct OneValue {
    rank: u64,
    bytes: Range<usize>,
    record_key: Range<usize>,
}

impl KeyValues {
    /// Begins without values. Keeps the keys of records, so that single values can be removed.
    pub(super) fn to_change() -> Self {
        KeyValues {
            record_keys: Some(Vec::new()),
            ..KeyValues::default()
        }
    }

    fn begin(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.bytes.clear();
        self.values.clear();
        self.is_shared = false;
        if let Some(keys) = &mut self.record_keys {
            keys.clear();
        }
    }

    fn add(
        &mut self,
        may_block: Option<MayBlock>,
        record_key: &[u8],
        record: &Record<'_>,
    ) -> Result<(), Error> {
        if self.values.len() >= MOST_AT_ONCE {
            blocking::check(may_block)?;
        }
        match record {
            Record::Alone { rank, value, .. } => self.push(*rank, value, record_key),
            Record::Shared { values, .. } => {
                self.is_shared = true;
                for value in split_values(values) {
                    self.push(0, value?, record_key);
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, rank: u64, value: &[u8], record_key: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let record_key = match &mut self.record_keys {
            None => 0..0,
            Some(keys) => {
                let start = keys.len();
                keys.extend_from_slice(record_key);
                start..keys.len()
            }
        };
        self.values.push(OneValue {
            rank,
            bytes: start..self.bytes.len(),
            record_key,
        });
    }

    /// Puts the values in their order.
    fn sort(&mut self) {
        // The sort is stable: values that share a record stay in their order.
        self.values.sort_by_key(|value| value.rank);
    }

    /// Returns `true` if the key has no values.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns `true` if all values are one record.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns the values in their order.
    pub(super) fn values(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = |value: &OneValue| &self.bytes[value.bytes.clone()];
        self.values.iter().map(bytes)
    }

    /// Returns the key of the record of a value. All have the same if they share one.
    pub(super) fn record_key(&self, index: usize) -> &[u8] {
        let keys = self
            .record_keys
            .as_ref()
            .expect("they are kept to change the group");
        &keys[self.values[index].record_key.clone()]
    }

    /// The values as those see them to whom a key is one record.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        out.clear();
        for value in self.values() {
            push_value(out, value)?;
        }
        Ok(())
    }

    /// Reads the values of a key, by a walk over its records.
    pub(super) fn read(
        mut self,
        may_block: Option<MayBlock>,
        key: &[u8],
        scan: impl FnOnce(KeyRange<'_>) -> Result<LendingScan, Error>,
    ) -> Result<Self, Error> {
        self.begin(key);
        let mut scan = with_records_of(key, scan)?;
        while let Some((record_key, bytes)) = scan.advance(may_block)? {
            self.add(may_block, record_key, &Record::read(record_key, bytes)?)?;
        }
        self.sort();
        Ok(self)
    }
}

/// Returns the range in which all records of a key are, and no others.
pub(super) fn with_records_of<R>(key: &[u8], read: impl FnOnce(KeyRange<'_>) -> R) -> R {
    let end = end_of(key);
    read(KeyRange {
        low: Some(key),
        high: Some(&end),
    })
}

/// Visits the keys of a range, each with all its values, until `visit` breaks.
pub(super) fn scan(
    may_block: Option<MayBlock>,
    snapshot: &Snapshot,
    key_range: KeyRange<'_>,
    direction: Direction,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let low = key_range
        .low
        .map(|low| bound_of_records(may_block, snapshot, low));
    let high = key_range
        .high
        .map(|high| bound_of_records(may_block, snapshot, high));
    let (low, high) = (low.transpose()?, high.transpose()?);
    let range = KeyRange {
        low: low.as_deref(),
        high: high.as_deref(),
    };
    let mut scan = snapshot.scan_lending(range, direction)?;
    let (mut group, mut values) = (KeyValues::default(), Vec::new());
    while let Some((record_key, bytes)) = scan.advance(may_block)? {
        let record = Record::read(record_key, bytes)?;
        if group.is_empty() || group.key != record.key() {
            if show(&mut group, &mut values, visit)?.is_break() {
                return Ok(());
            }
            group.begin(record.key());
        }
        group.add(may_block, record_key, &record)?;
    }
    show(&mut group, &mut values, visit).map(drop)
}

fn show(
    group: &mut KeyValues,
    values: &mut Vec<u8>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, Error> {
    if group.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    group.sort();
    group.write(values)?;
    Ok(visit(&group.key, values))
}

/// Returns the bound of records that separates those of keys below a bound from the others. It is
/// the bound itself, unless it lies among the records of a key below it. O(log n).
fn bound_of_records(
    may_block: Option<MayBlock>,
    snapshot: &Snapshot,
    bound: &[u8],
) -> Result<Vec<u8>, Error> {
    let above = KeyRange {
        low: Some(bound),
        high: None,
    };
    let mut scan = snapshot.scan_lending(above, Direction::Up)?;
    if let Some((record_key, bytes)) = scan.advance(may_block)? {
        let key = Record::read(record_key, bytes)?.key();
        if key < bound {
            return Ok(end_of(key));
        }
    }
    Ok(bound.to_vec())
}
