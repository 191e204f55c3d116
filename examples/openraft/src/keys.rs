//! The keys of the store.
//!
//! The first byte tells the kind of a key. The order of the keys of entries is that of their
//! indexes, so that a part of the log is a range.

use std::ops::{Bound, Range, RangeBounds};

/// The vote.
pub(crate) const VOTE: &[u8] = b"v";
/// The identity of the last entry known to be committed.
pub(crate) const COMMITTED: &[u8] = b"c";
/// The identity of the last entry that was purged.
pub(crate) const PURGED: &[u8] = b"p";
/// The identity of the last entry that was applied, and the last membership.
pub(crate) const APPLIED: &[u8] = b"a";
/// The description of the current snapshot.
pub(crate) const SNAPSHOT: &[u8] = b"s";

/// The first byte of keys of data.
const DATA: u8 = b'd';
/// The first byte of keys of entries.
const ENTRY: u8 = b'l';

/// All data.
pub(crate) const ALL_DATA: Range<[u8; 1]> = [DATA]..[DATA + 1];

/// Returns the key of data under a key of the user.
pub(crate) fn data(key: &[u8]) -> Vec<u8> {
    [&[DATA], key].concat()
}

/// Returns the data between two keys of the user.
pub(crate) fn data_between(low: Option<&[u8]>, high: Option<&[u8]>) -> Range<Vec<u8>> {
    data(low.unwrap_or_default())..high.map_or_else(|| vec![DATA + 1], data)
}

/// Returns the entries of a range of indexes.
pub(crate) fn entries(indexes: impl RangeBounds<u64>) -> Range<Vec<u8>> {
    let low = match indexes.start_bound() {
        Bound::Included(index) => entry(*index),
        Bound::Excluded(index) => above(*index),
        Bound::Unbounded => vec![ENTRY],
    };
    let high = match indexes.end_bound() {
        Bound::Included(index) => above(*index),
        Bound::Excluded(index) => entry(*index),
        Bound::Unbounded => vec![ENTRY + 1],
    };
    low..high
}

/// Returns the key of an entry.
pub(crate) fn entry(index: u64) -> Vec<u8> {
    [&[ENTRY], &index.to_be_bytes()[..]].concat()
}

/// Returns the first key above that of an entry.
fn above(index: u64) -> Vec<u8> {
    index.checked_add(1).map_or_else(|| vec![ENTRY + 1], entry)
}
