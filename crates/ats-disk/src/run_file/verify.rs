//! Checking a run file as a whole: all that its writer promises to its readers.

use super::bounds::{is_lower, is_upper};
use super::cursor::FileCursor;
use super::filter::key_hash;
use super::part::Part;
use super::reader::RunFile;
use crate::coding::Damaged;
use crate::cursor::Cursor;
use crate::entry::Kind;
use crate::error::Error;
use ats_store::{Direction, MayBlock};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The number of bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;

#[derive(Default, PartialEq, Eq)]
struct Counts {
    entries: u64,
    operands: u64,
    deletes: u64,
    key_bytes: u64,
    value_bytes: u64,
}

impl RunFile {
    /// Reads the whole file from disk and checks it: all checksums, that every byte belongs to
    /// something, the order of keys, that each key is found by way of index, filter and restart
    /// points, counts and bounds. It does not use the cache.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the first offset at which something is wrong; [`Error::Io`].
    pub(crate) fn verify(self: &Arc<Self>) -> Result<(), Error> {
        self.verify_extents()?;
        let mut counts = Counts::default();
        let mut cursor = FileCursor::new(Arc::clone(self), false, READ_BYTES);
        let mut before: Option<Vec<u8>> = None;
        cursor.seek(Some(MayBlock::here()), Direction::Up, None)?;
        while let Some(key) = cursor.key() {
            let wrong = |why| Err(self.damage(cursor.offset(), Damaged(why)));
            let first = before.is_none();
            let bound = self.meta().first_key.as_deref();
            if first && !bound.is_some_and(|bound| is_lower(bound, key)) {
                return wrong("has another first key than the footer says");
            }
            if before.as_deref().is_some_and(|before| before >= key) {
                return wrong("has keys that do not ascend");
            }
            if let Err(why) = self.verify_key(&cursor, key, &mut counts) {
                return wrong(why);
            }
            let before = before.get_or_insert_default();
            before.clear();
            before.extend_from_slice(key);
            cursor.advance(Some(MayBlock::here()))?;
        }
        let meta = self.meta();
        let counted = Counts {
            entries: meta.entries,
            operands: meta.operands,
            deletes: meta.deletes,
            key_bytes: meta.key_bytes,
            value_bytes: meta.value_bytes,
        };
        let is_last = match (&meta.last_key, &before) {
            (Some(bound), Some(last)) => is_upper(bound, last),
            (bound, last) => bound.is_none() && last.is_none(),
        };
        if counts != counted || !is_last {
            let (footer, _) = self.read_end()?.footer_extent;
            let why = "has other counts, or another last key, than the records";
            return Err(self.damage(footer, Damaged(why)));
        }
        Ok(())
    }

    /// Blocks, parts and the rest follow each other without gaps.
    fn verify_extents(&self) -> Result<(), Error> {
        let end = self.read_end()?;
        if end.range_deletes.len() as u64 != self.meta().range_deletes {
            let why = Damaged("has another number of range deletes than the footer says");
            return Err(self.damage(end.range_deletes_extent.0, why));
        }
        let mut pieces = Vec::new();
        if let Some(top) = &end.top {
            let mut blocks_end = 0;
            for (offset, length) in (0..top.len()).map(|number| top.piece(number)) {
                let part = self.read_part(Some(MayBlock::here()), offset, length)?;
                let (start, end) = part.blocks.extent();
                if start != blocks_end {
                    let why = Damaged("has blocks that do not follow those of the part before");
                    return Err(self.damage(offset, why));
                }
                blocks_end = end;
            }
            let (start, end) = top.extent();
            pieces.extend([(0, blocks_end), (start, end - start)]);
        }
        let rest = [end.range_deletes_extent, end.top_extent, end.footer_extent];
        pieces.extend(rest.into_iter().filter(|(_, length)| *length > 0));
        let mut offset = 0;
        for (start, length) in pieces {
            if start != offset {
                let why = Damaged("has bytes that belong to nothing, or to two things");
                return Err(self.damage(offset, why));
            }
            offset = start.saturating_add(length);
        }
        Ok(())
    }

    /// Checks and counts the record on which a cursor stands. Returns its fault.
    fn verify_key(
        &self,
        cursor: &FileCursor,
        key: &[u8],
        counts: &mut Counts,
    ) -> Result<(), &'static str> {
        let ((part_number, part), block_number) = cursor.block_number().ok_or("has no part")?;
        let part: &Part = part;
        if self.top().map(|top| top.find(key)) != Some(part_number)
            || part.blocks.find(key) != block_number
        {
            return Err("has a key that the index does not find");
        }
        if !part.filter.may_contain(key_hash(key)) {
            return Err("has a key that the filter does not pass");
        }
        let mut found = 0;
        let mut same = true;
        let visited = cursor.get_in_block(key, &mut |kind, value| {
            same &= found < cursor.entries() && cursor.entry(found) == (kind, value);
            found += 1;
            ControlFlow::Continue(())
        });
        if visited.is_err() || !same || found != cursor.entries() {
            return Err("has a key that its restart points do not find");
        }
        for (kind, value) in (0..found).map(|index| cursor.entry(index)) {
            if kind == Kind::Delete && !value.is_empty() {
                return Err("has a delete with a value");
            }
            counts.entries += 1;
            counts.operands += u64::from(kind == Kind::Operand);
            counts.deletes += u64::from(kind == Kind::Delete);
            counts.key_bytes += key.len() as u64;
            counts.value_bytes += value.len() as u64;
        }
        Ok(())
    }
}
