//! Blocks: the records of a short range of keys, which are read from disk and kept in the cache together.
//!
//! A record is a key with its entries, one or more, from the newest to the oldest; all but the last are operands. Its
//! key is stored without what it has in common with the key before. At a *restart point* a key is stored whole: at the
//! first record, and at the first after each 16 entries. A lookup is a binary search over restart points, and then
//! goes through the records behind one of them. It does not put their keys together: how far the key before agrees
//! with the one wanted is enough to know how the next one compares, unless both numbers are equal. (The layout is that
//! of LevelDB, but that a record has all entries of its key.)
//!
//! Nothing here trusts the bytes. They have passed a checksum, so what is wrong with them was wrong when they were
//! written; lookups then fail, or miss, but do not panic.

use super::coding::{Damaged, common_prefix, put_varint, varint_at};
use crate::entry::Kind;
use std::ops::ControlFlow;

/// At most so many records are between two restart points.
pub(crate) const RESTART_ENTRIES: usize = 16;

/// In the place of a [`Kind`]: an operand, behind which the next older entry of its key follows.
const OPERAND_AND_OLDER: u64 = 0;
const KIND_BITS: u32 = 2;

/// Bytes of a record besides its key and its value, about.
const RECORD_BYTES: usize = 6;

/// Writes one block after the other behind each other.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    /// Where the block begins.
    start: usize,
    restarts: Vec<u32>,
    since_restart: usize,
    /// Where the tag of the last entry is.
    tag_at: usize,
}

impl BlockBuilder {
    /// Begins a block at the end of `out`.
    pub(crate) fn begin(&mut self, out: &[u8]) {
        self.start = out.len();
        self.restarts.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    /// Whether a record with this key and value makes the block longer than so many bytes.
    pub(crate) fn is_full(&self, out: &[u8], limit: usize, key: usize, value: usize) -> bool {
        let trailer = 4 * self.restarts.len();
        out.len() - self.start + trailer + RECORD_BYTES + key + value > limit
    }

    /// Adds a record, with its newest entry. The key is above that of the record before, with which it has `shared`
    /// bytes in common.
    pub(crate) fn add(
        &mut self,
        out: &mut Vec<u8>,
        mut shared: usize,
        key: &[u8],
        kind: Kind,
        value: &[u8],
    ) {
        if self.restarts.is_empty() || self.since_restart >= RESTART_ENTRIES {
            // No block that has a record gets longer than its limit, which is less than 4 GiB.
            self.restarts.push((out.len() - self.start) as u32);
            self.since_restart = 0;
            shared = 0;
        }
        put_varint(out, shared as u64);
        put_varint(out, (key.len() - shared) as u64);
        self.put_tag(out, kind, value);
        out.extend_from_slice(&key[shared..]);
        out.extend_from_slice(value);
    }

    /// Adds an entry to the last record, the next older one. The last entry there is an operand.
    pub(crate) fn add_older(&mut self, out: &mut Vec<u8>, kind: Kind, value: &[u8]) {
        out[self.tag_at] &= !((1 << KIND_BITS) - 1);
        self.put_tag(out, kind, value);
        out.extend_from_slice(value);
    }

    fn put_tag(&mut self, out: &mut Vec<u8>, kind: Kind, value: &[u8]) {
        self.since_restart += 1;
        self.tag_at = out.len();
        put_varint(out, (value.len() as u64) << KIND_BITS | kind as u64);
    }

    /// Ends the block. Where it begins.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> usize {
        for &restart in &self.restarts {
            out.extend_from_slice(&restart.to_le_bytes());
        }
        out.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.restarts.clear();
        self.start
    }
}

/// An entry of a block: its kind, and where its value is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether the next older entry of the key follows.
    pub(super) more: bool,
}

/// A record of a block: its key, and its newest entry.
pub(super) struct Record {
    /// Bytes that the key has in common with the key before.
    pub(super) shared: usize,
    /// Where the rest of the key is.
    pub(super) suffix_start: usize,
    pub(super) suffix_end: usize,
    pub(super) newest: Entry,
}

/// A block in memory.
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// Where the records end and the restart points begin.
    records_end: usize,
    /// How many restart points there are: one at least.
    restarts: usize,
}

impl Block {
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self, Damaged> {
        let damaged = Damaged("has no restart points");
        let (before, count) = bytes.split_last_chunk::<4>().ok_or(damaged)?;
        let restarts = u32::from_le_bytes(*count) as usize;
        let records_end = restarts
            .checked_mul(4)
            .and_then(|room| before.len().checked_sub(room));
        match records_end {
            Some(records_end) if restarts > 0 => Ok(Block {
                bytes,
                records_end,
                restarts,
            }),
            _ => Err(damaged),
        }
    }

    /// The memory, to be used again.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &[u8] {
        // Entries and records have been checked when they were read.
        self.bytes.get(start..end).unwrap_or_default()
    }

    pub(super) fn records_end(&self) -> usize {
        self.records_end
    }

    pub(super) fn restarts(&self) -> usize {
        self.restarts
    }

    /// Where the record of a restart point is. The end, if there is no such point.
    #[inline]
    pub(super) fn restart(&self, number: usize) -> usize {
        let bytes = self.bytes.get(self.records_end + 4 * number..);
        match bytes.and_then(|bytes| bytes.first_chunk()) {
            Some(offset) if number < self.restarts => u32::from_le_bytes(*offset) as usize,
            _ => self.records_end,
        }
    }

    /// The record at `at`.
    #[inline(always)]
    pub(super) fn record(&self, mut at: usize) -> Result<Record, Damaged> {
        let bytes = &self.bytes[..self.records_end];
        let shared = varint_at(bytes, &mut at)? as usize;
        let suffix = varint_at(bytes, &mut at)?;
        let tag = varint_at(bytes, &mut at)?;
        if suffix > (self.records_end - at) as u64 {
            return Err(Damaged("has a key that is too long"));
        }
        let suffix_end = at + suffix as usize;
        Ok(Record {
            shared,
            suffix_start: at,
            suffix_end,
            newest: self.entry(tag, suffix_end)?,
        })
    }

    /// The entry with this tag, and with the value at `start`.
    #[inline(always)]
    fn entry(&self, tag: u64, start: usize) -> Result<Entry, Damaged> {
        let len = tag >> KIND_BITS;
        if len > (self.records_end - start) as u64 {
            return Err(Damaged("has a value that is too long"));
        }
        let kind = tag & ((1 << KIND_BITS) - 1);
        Ok(Entry {
            kind: match kind {
                1 => Kind::Put,
                2 => Kind::Delete,
                _ => Kind::Operand,
            },
            start,
            end: start + len as usize,
            more: kind == OPERAND_AND_OLDER,
        })
    }

    /// The entry that follows another one of the same key.
    pub(super) fn older(&self, entry: Entry) -> Result<Entry, Damaged> {
        let mut at = entry.end;
        let tag = varint_at(&self.bytes[..self.records_end], &mut at)?;
        self.entry(tag, at)
    }

    /// Where the record behind that one is whose newest entry this is.
    #[inline(always)]
    pub(super) fn behind(&self, mut entry: Entry) -> Result<usize, Damaged> {
        while entry.more {
            entry = self.older(entry)?;
        }
        Ok(entry.end)
    }

    /// The number of the last restart point whose key is not above `key`; with `below`, whose key is below it. The
    /// first one if there is none. O(log n).
    #[inline]
    pub(super) fn restart_before(&self, key: &[u8], below: bool) -> Result<usize, Damaged> {
        let (mut low, mut high) = (0, self.restarts);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let record = self.record(self.restart(middle))?;
            let restart_key = self.slice(record.suffix_start, record.suffix_end);
            match restart_key < key || (!below && restart_key == key) {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// Shows the entries of a key, from the newest, until `visit` breaks.
    pub(crate) fn get(
        &self,
        key: &[u8],
        visit: &mut dyn FnMut(Kind, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Damaged> {
        let mut at = self.restart(self.restart_before(key, false)?);
        // How much the key of the record before, which is below the one wanted, has in common with it.
        let mut matched = 0;
        while at < self.records_end {
            let record = self.record(at)?;
            // With more in common with the key before than that has with the one wanted, a key is below that, too.
            // With less it is above, since it is above the key before.
            if record.shared < matched {
                return Ok(());
            }
            if record.shared == matched {
                let suffix = self.slice(record.suffix_start, record.suffix_end);
                let wanted = &key[matched..];
                let common = common_prefix(suffix, wanted);
                match (suffix.get(common), wanted.get(common)) {
                    (None, None) => return self.visit(record.newest, visit),
                    (Some(_), None) => return Ok(()),
                    (Some(byte), Some(wanted)) if byte > wanted => return Ok(()),
                    _ => matched += common,
                }
            }
            at = self.behind(record.newest)?;
        }
        Ok(())
    }

    fn visit(
        &self,
        mut entry: Entry,
        visit: &mut dyn FnMut(Kind, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Damaged> {
        loop {
            let shown = visit(entry.kind, self.slice(entry.start, entry.end));
            if shown.is_break() || !entry.more {
                return Ok(());
            }
            entry = self.older(entry)?;
        }
    }
}
