//! Blocks: the records of a short range of keys, which are read from disk and kept in the cache
//! together.
//!
//! A record is a key with its entries, one or more, from the newest to the oldest; all but the last
//! are operands. Its key is stored without the prefix that it shares with the key before. At a
//! *restart point* a key is stored whole: at the first record, and at the first after each 16
//! entries. (That is from LevelDB.) A lookup is a binary search over restart points, and then goes
//! through the records behind one of them. It does not put their keys together: how far the key
//! before agrees with the one wanted is enough to know how the next one compares, unless both
//! numbers are equal.
//!
//! The values have a region of their own, in the order of their records, whose lengths say where
//! each begins. So a lookup goes through keys that lie beside each other, some cache lines, and
//! touches one value. The lines that it may touch are prefetched as a whole when the block comes
//! from the cache.
//!
//! Nothing here trusts the bytes. They have passed a checksum, so wrong bytes were written wrong;
//! lookups then fail, or miss, but do not panic.

use crate::coding::{Damaged, varint_at};
use crate::entry::Kind;
use crate::keys::{common_prefix, compare};
use crate::median::{Median, middle};
use ats_mem::slab::SharedSlice;
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// A restart point follows after this many entries, so there are never more records between two of
/// them.
pub(super) const RESTART_ENTRIES: usize = 16;

/// The lowest bits of a tag are the [`Kind`], the rest is the length of the value.
pub(super) const KIND_BITS: u32 = 2;
/// The tag of an operand that the next older entry of its key follows; other entries have a
/// [`Kind`] here.
const OPERAND_AND_OLDER: u64 = 0;

/// Bytes of a restart point: the offset of its record, and the offset of its value.
pub(super) const RESTART_BYTES: usize = 8;
/// Bytes behind the restart points: the length of the region of the records, and the number of
/// restart points.
pub(super) const COUNTS_BYTES: usize = 8;

/// An entry of a block: its kind, and where its value is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// `true` if the next older entry of the key follows.
    more: bool,
    start: usize,
    end: usize,
}

/// The offsets of a record, and of its first value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    record: usize,
    value: usize,
}

/// A record: its key, and its newest entry.
pub(super) struct Record {
    /// Bytes that the key has in common with the key before.
    pub(super) shared: usize,
    suffix_start: usize,
    suffix_end: usize,
    newest: Entry,
}

/// Goes through the entries of a record, from the newest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries {
    /// The newest of those that are left.
    pub(super) first: Entry,
    /// The offset of the tag of the next one, if there is one; or of the next record.
    next: usize,
}

/// A block in memory. It is shared: a clone costs a count.
pub(crate) struct Block {
    bytes: SharedSlice<u8>,
    /// The length of the region of the records.
    records: u32,
    /// The number of restart points: one at least.
    restarts: u32,
}

impl Clone for Block {
    #[inline]
    fn clone(&self) -> Self {
        // The count is written, for which the processor waits. The lines that will be read come at
        // the same time.
        prefetch_end(&self.bytes, self.records_end() - self.records_start());
        Block {
            bytes: self.bytes.clone(),
            records: self.records,
            restarts: self.restarts,
        }
    }
}

/// Asks the processor to fetch the end of a block, whose records have this many bytes; 1 KiB at
/// most.
#[inline(always)]
fn prefetch_end(bytes: &[u8], records: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let lines = (records / 64 + 2).min(16);
        let end = bytes.as_ptr_range().end;
        for line in 0..lines {
            // SAFETY: prefetching is a hint; it touches no memory and cannot fault.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(end.wrapping_sub(64 * line + 1).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, records);
}

impl Block {
    /// Makes the block with this content.
    pub(crate) fn new(content: &[u8]) -> Result<Self, Damaged> {
        let damaged = Damaged("has no restart points");
        let (before, counts) = content.split_last_chunk::<COUNTS_BYTES>().ok_or(damaged)?;
        let [records, restarts] = numbers(counts);
        let room = (restarts as usize)
            .checked_mul(RESTART_BYTES)
            .and_then(|bytes| bytes.checked_add(records as usize));
        match room {
            Some(room) if restarts > 0 && room <= before.len() => Ok(Block {
                bytes: content.into(),
                records,
                restarts,
            }),
            _ => Err(damaged),
        }
    }

    /// Returns `true` if this may be the content of a block, by its last bytes: its first record is
    /// the first restart point.
    pub(crate) fn may_end(content: &[u8]) -> bool {
        let Some((before, counts)) = content.split_last_chunk::<COUNTS_BYTES>() else {
            return false;
        };
        let [records, restarts] = numbers(counts).map(|number| number as usize);
        let points = restarts.checked_mul(RESTART_BYTES);
        let points = points.and_then(|points| before.len().checked_sub(points));
        let first = points.and_then(|points| before.get(points..points + RESTART_BYTES));
        restarts > 0
            && points.is_some_and(|points| records <= points)
            && first == Some(&[0; RESTART_BYTES])
    }

    /// Returns the bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.bytes()
    }

    pub(super) fn restarts(&self) -> usize {
        self.restarts as usize
    }

    /// Returns the end of the records, which is the beginning of the restart points.
    #[inline]
    fn records_end(&self) -> usize {
        self.bytes.len() - COUNTS_BYTES - RESTART_BYTES * self.restarts as usize
    }

    /// Returns the end of the values, which is the beginning of the records.
    #[inline]
    fn records_start(&self) -> usize {
        self.records_end() - self.records as usize
    }

    /// Returns the region of the records. [`Offsets`] are relative to it.
    #[inline]
    fn records(&self) -> &[u8] {
        &self.bytes[self.records_start()..self.records_end()]
    }

    /// Returns the offsets of the record of a restart point. The end, if there is no such point.
    #[inline]
    pub(super) fn restart(&self, number: usize) -> Offsets {
        let points = &self.bytes[self.records_end()..];
        let point = points.get(RESTART_BYTES * number..);
        match point.and_then(|point| point.first_chunk()) {
            Some(point) if number < self.restarts as usize => {
                let [record, value] = numbers(point);
                Offsets {
                    record: record as usize,
                    value: value as usize,
                }
            }
            _ => Offsets {
                record: self.records as usize,
                value: self.records_start(),
            },
        }
    }

    /// Returns `true` if there is a record at these offsets, and not the end.
    #[inline]
    pub(super) fn has(&self, offsets: Offsets) -> bool {
        offsets.record < self.records as usize
    }

    /// Returns `true` if offsets are before others.
    pub(super) fn is_before(offsets: Offsets, other: Offsets) -> bool {
        offsets.record < other.record
    }

    /// Returns the record at these offsets.
    #[inline(always)]
    pub(super) fn record(&self, offsets: Offsets) -> Result<Record, Damaged> {
        let bytes = self.records();
        let mut at = offsets.record;
        let shared = varint_at(bytes, &mut at)? as usize;
        let suffix = varint_at(bytes, &mut at)?;
        let tag = varint_at(bytes, &mut at)?;
        if suffix > (bytes.len() - at) as u64 {
            return Err(Damaged("has a key that is too long"));
        }
        Ok(Record {
            shared,
            suffix_start: at,
            suffix_end: at + suffix as usize,
            newest: self.entry(tag, offsets.value)?,
        })
    }

    /// Returns the bytes of the key of a record behind those that it has in common with the key
    /// before.
    #[inline(always)]
    pub(super) fn suffix(&self, record: &Record) -> &[u8] {
        // The bounds were checked when the record was read.
        let suffix = self.records().get(record.suffix_start..record.suffix_end);
        suffix.unwrap_or_default()
    }

    /// Returns the entry with this tag, and with the value at `start`.
    #[inline(always)]
    fn entry(&self, tag: u64, start: usize) -> Result<Entry, Damaged> {
        let len = tag >> KIND_BITS;
        let room = self.records_start().checked_sub(start);
        if room.is_none_or(|room| len > room as u64) {
            return Err(Damaged("has a value that is too long"));
        }
        let kind = tag & ((1 << KIND_BITS) - 1);
        Ok(Entry {
            kind: match kind {
                1 => Kind::Put,
                2 => Kind::Delete,
                _ => Kind::Operand,
            },
            more: kind == OPERAND_AND_OLDER,
            start,
            end: start + len as usize,
        })
    }

    /// Returns the value of an entry.
    #[inline]
    pub(super) fn value(&self, entry: Entry) -> &[u8] {
        // The bounds were checked when the entry was read.
        self.bytes.get(entry.start..entry.end).unwrap_or_default()
    }

    /// Returns the entries of a record.
    #[inline(always)]
    pub(super) fn entries(&self, record: &Record) -> Entries {
        Entries {
            first: record.newest,
            next: record.suffix_end,
        }
    }

    /// Returns the entries without the newest of them. `None` if it was the last.
    #[inline(always)]
    pub(super) fn older(&self, entries: Entries) -> Result<Option<Entries>, Damaged> {
        if !entries.first.more {
            return Ok(None);
        }
        let mut next = entries.next;
        let tag = varint_at(self.records(), &mut next)?;
        Ok(Some(Entries {
            first: self.entry(tag, entries.first.end)?,
            next,
        }))
    }

    /// Returns the offsets of the record behind these entries.
    #[inline(always)]
    pub(super) fn offsets_behind(&self, mut entries: Entries) -> Result<Offsets, Damaged> {
        while let Some(older) = self.older(entries)? {
            entries = older;
        }
        Ok(entries.end())
    }

    /// Returns the number of the last restart point whose key is not above `key`; with `below`,
    /// whose key is below it. The first one if there is none. O(log n).
    #[inline]
    pub(super) fn restart_before(&self, key: &[u8], below: bool) -> Result<usize, Damaged> {
        let (mut low, mut high) = (0, self.restarts());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let record = self.record(self.restart(middle))?;
            match compare(self.suffix(&record), key) {
                Ordering::Less => low = middle,
                Ordering::Equal if !below => return Ok(middle),
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns the median of a range, which is the key of a restart point; `None` if no restart
    /// point lies within the range. O(log n).
    pub(crate) fn median(
        &self,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<Option<Median>, Damaged> {
        let start = self.restart_before(low, false)? + 1;
        let end = match high {
            Some(high) => self.restart_before(high, true)? + 1,
            None => self.restarts(),
        };
        if start >= end {
            return Ok(None);
        }
        let restarts = start..end;
        let record = self.record(self.restart(middle(&restarts)))?;
        Ok(Some(Median {
            bound: self.suffix(&record).to_vec(),
            entries: ((restarts.len() + 1) * RESTART_ENTRIES) as u64,
        }))
    }

    /// Shows the entries of a key, from the newest, until `visit` breaks.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        visit: &mut dyn FnMut(Kind, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Damaged> {
        let mut offsets = self.restart(self.restart_before(key, false)?);
        // The number of bytes that the wanted key has in common with the key of the record before,
        // which is below it.
        let mut matched = 0;
        while self.has(offsets) {
            let record = self.record(offsets)?;
            // A key that shares more with the key before than that shares with the wanted key is
            // below the wanted one, too. One that shares less is above it, since it is above the
            // key before.
            if record.shared < matched {
                return Ok(());
            }
            let entries = self.entries(&record);
            if record.shared == matched {
                let (suffix, wanted) = (self.suffix(&record), &key[matched..]);
                let common = common_prefix(suffix, wanted);
                match (suffix.get(common), wanted.get(common)) {
                    (None, None) => return self.visit(entries, visit),
                    (Some(_), None) => return Ok(()),
                    (Some(byte), Some(wanted)) if byte > wanted => return Ok(()),
                    _ => matched += common,
                }
            }
            offsets = self.offsets_behind(entries)?;
        }
        Ok(())
    }

    fn visit(
        &self,
        mut entries: Entries,
        visit: &mut dyn FnMut(Kind, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Damaged> {
        loop {
            if visit(entries.first.kind, self.value(entries.first)).is_break() {
                return Ok(());
            }
            match self.older(entries)? {
                Some(older) => entries = older,
                None => return Ok(()),
            }
        }
    }
}

impl Entries {
    /// Returns the offsets of the record behind them, if the first is the last.
    #[inline(always)]
    pub(super) fn end(self) -> Offsets {
        Offsets {
            record: self.next,
            value: self.first.end,
        }
    }
}

/// Two numbers of 32 bits.
#[inline]
fn numbers(bytes: &[u8; 8]) -> [u32; 2] {
    let both = u64::from_le_bytes(*bytes);
    [both as u32, (both >> 32) as u32]
}
