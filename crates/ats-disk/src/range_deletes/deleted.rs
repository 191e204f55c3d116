//! The keys that a source of a walk deletes in those that are older.

use super::history::AsOf;
use super::set::RangeSet;
use ats_store::KeyRange;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;

/// A set is made after so many lookups for each range there is, of 1024: together they cost as
/// much.
const LOOKUPS: usize = 64;

/// The keys that a source of a walk deletes in those that are older.
pub(crate) enum Deleted {
    /// A set that is there.
    Set(Arc<RangeSet>),
    /// The ranges of a memtable as of a time. A walk that looks up few keys searches them as they
    /// are; the set is only made when that has cost as much.
    AsOf {
        ranges: AsOf,
        lookups: Cell<usize>,
        set: OnceCell<Arc<RangeSet>>,
    },
}

impl Deleted {
    pub(crate) fn as_of(ranges: AsOf) -> Self {
        match ranges.existing_set() {
            Some(set) => Deleted::Set(Arc::clone(set)),
            None => Deleted::AsOf {
                ranges,
                lookups: Cell::new(0),
                set: OnceCell::new(),
            },
        }
    }

    /// Returns `true` if a key is deleted.
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.find_covering(key).is_some()
    }

    /// Returns a range of deleted keys that a key is in. It may be a piece of a larger deleted
    /// range.
    pub(crate) fn find_covering(&self, key: &[u8]) -> Option<KeyRange<'_>> {
        match self {
            Deleted::Set(set) => set.find_covering(key),
            Deleted::AsOf {
                ranges,
                lookups,
                set,
            } => {
                lookups.set(lookups.get() + 1);
                if set.get().is_none() && lookups.get() * 1024 < ranges.len() * LOOKUPS {
                    return ranges.find_covering(key);
                }
                set.get_or_init(|| ranges.set()).find_covering(key)
            }
        }
    }
}
