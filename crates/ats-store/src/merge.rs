//! Merge operators over bytes, after `merge`, `short_circuit` and `delete` of osmos (Radford,
//! 2009).
//!
//! A store that merges accepts an *operand* as a write, and need not read the current value. The
//! value of a key is the merge of all that was written to it, from the oldest to the newest. Only
//! neighbours in this sequence are merged, so the operator must be associative. It need not be
//! commutative.

use crate::error::Error;

/// The result of merging two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The result is the earlier value.
    Earlier,
    /// The result is the later value.
    Later,
    /// The result is this value.
    New(Vec<u8>),
}

/// A rule that merges the values of a key.
///
/// Equal arguments must give equal results, on every machine and at every time: a store merges the
/// same values again in each read, and in compactions.
pub trait MergeOperator: Send + Sync {
    /// Returns the name of the operator. A store on disk records it, so that it is not opened with
    /// another operator.
    fn name(&self) -> &str;

    /// Returns the version of the operator, which changes with its meaning. A store on disk records
    /// it, too.
    fn version(&self) -> u32;

    /// Merges two values of a key. `earlier` was written before `later`. Associative.
    ///
    /// # Errors
    /// [`Error::Merge`] if these values cannot be merged.
    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error>;

    /// Merges several values of a key, given from the oldest to the newest. The result equals that
    /// of [`merge`](MergeOperator::merge), applied to them one after the other. `None` tells the
    /// store to do that itself.
    ///
    /// An operator that makes a long value of many short ones should have this function: `merge`
    /// would copy each byte several times.
    ///
    /// # Errors
    /// Those of [`merge`](MergeOperator::merge).
    fn merge_all(&self, key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        let _ = (key, values);
        Ok(None)
    }

    /// Returns `true` if earlier values of the key have no influence on a merge with this value, so
    /// that a reader need not look for them.
    fn is_base(&self, key: &[u8], value: &[u8]) -> bool {
        let _ = (key, value);
        false
    }

    /// Returns `true` if a key counts as absent when all its values merge to this one.
    fn is_absent(&self, key: &[u8], value: &[u8]) -> bool {
        let _ = (key, value);
        false
    }
}
