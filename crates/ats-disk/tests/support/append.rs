//! A merge operator that shows in which order values were merged.

use ats_store::{Error, MergeOperator, Merged};

/// Operator that puts the later value behind the earlier one. Not commutative; a value shows all of
/// its past.
///
/// A value that begins with `!` is a base. The empty value is neutral, and counts as missing.
pub(crate) struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        if self.is_base(&[], later) {
            return Ok(Merged::Later);
        }
        Ok(Merged::New([earlier, later].concat()))
    }

    fn merge_all(&self, _key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        let is_base = |value: &&[u8]| self.is_base(&[], value);
        let oldest = values.iter().rposition(is_base).unwrap_or(0);
        Ok(Some(values[oldest..].concat()))
    }

    fn is_base(&self, _key: &[u8], value: &[u8]) -> bool {
        value.first() == Some(&b'!')
    }

    fn is_absent(&self, _key: &[u8], value: &[u8]) -> bool {
        value.is_empty()
    }
}
