//! Merge operators over bytes, after `merge`, `short_circuit` and `delete` of osmos (Radford,
//! 2009).
//!
//! A store that merges takes an *operand* as a write, without reading what is there. The value of a
//! key is all that was written to it, merged from the oldest to the newest. Only neighbours in time
//! are merged, so the operator must be associative. It need not be commutative.

use crate::error::Error;

/// The result of merging two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The earlier one.
    Earlier,
    /// The later one.
    Later,
    /// Another one.
    New(Vec<u8>),
}

/// A way of merging the values of a key.
///
/// Equal arguments must give equal results, on every machine and at every time: stores merge the
/// same values again when they read, and when they rewrite what they have.
pub trait MergeOperator: Send + Sync {
    /// The name with which a store on disk is marked, so that it is not opened with another
    /// operator.
    fn name(&self) -> &str;

    /// The version of the operator under its name, which changes with its meaning. A store on disk
    /// is marked with it, too.
    fn version(&self) -> u32;

    /// Merges two values of a key, of which `earlier` was written before `later`. Associative.
    ///
    /// # Errors
    /// [`Error::Merge`] if these values cannot be merged.
    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error>;

    /// Merges any number of values, of which each was written before the next: what merging two of
    /// them after each other gives. `None` leaves that to the store.
    ///
    /// For operators that make long values of many short ones: two at a time, each byte is copied
    /// several times.
    ///
    /// # Errors
    /// Those of [`merge`](MergeOperator::merge).
    fn merge_all(&self, key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        let _ = (key, values);
        Ok(None)
    }

    /// Returns `true` if nothing that was written before this value can matter, so that a reader
    /// need not look for it.
    fn is_base(&self, key: &[u8], value: &[u8]) -> bool {
        let _ = (key, value);
        false
    }

    /// Returns `true` if a key with this value, merged of all that was written, counts as missing.
    fn is_absent(&self, key: &[u8], value: &[u8]) -> bool {
        let _ = (key, value);
        false
    }
}
