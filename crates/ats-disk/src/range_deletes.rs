//! Ranges of keys that were deleted as wholes.
//!
//! A run has a [`RangeSet`]: a range in it deletes everything older than the run. A memtable has
//! [`RangeDeletes`], in which each range has a sequence number.

mod deleted;
mod history;
mod set;
#[cfg(test)]
mod tests;

pub(crate) use deleted::Deleted;
pub(crate) use history::RangeDeletes;
pub(crate) use set::RangeSet;
