//! Sources that can be walked in the order of keys: a memtable, a file, a run, or several of them
//! merged.

mod merge_cursor;

pub(crate) use merge_cursor::{MergeCursor, Source};

use crate::entry::Kind;
use crate::error::Error;
use ats_store::{Direction, MayBlock};

/// A walk over keys in one direction, each with the entries that a source has of it.
///
/// A cursor stands on a key, or at the end, where it also stands before it is sought. Of a key it
/// has one or more entries, from the newest to the oldest: all but the last of them are operands,
/// since a base ends the list. A source whose reads may fail fails in `seek` and `advance`; after
/// that the cursor stands at the end.
pub(crate) trait Cursor: Send {
    /// Goes to the first key in the direction that is not before the bound, or to the end. On the
    /// way up the bound is the lowest key allowed, or there is none; on the way down it is the
    /// lowest key above those allowed, or there is none. It may be called again, in either
    /// direction.
    fn seek(
        &mut self,
        may_block: Option<MayBlock>,
        direction: Direction,
        bound: Option<&[u8]>,
    ) -> Result<(), Error>;

    /// Goes on to the next key in the direction of the last `seek`. Not at the end.
    fn advance(&mut self, may_block: Option<MayBlock>) -> Result<(), Error>;

    /// Returns the key on which it stands; `None` at the end.
    fn key(&self) -> Option<&[u8]>;

    /// Returns the number of entries of the key: at least 1. Not at the end.
    fn entries(&self) -> usize;

    /// Returns the entry with this number, from the newest, 0, to the oldest.
    fn entry(&self, index: usize) -> (Kind, &[u8]);
}
