//! Walks over the records of one block, in both directions.
//!
//! On the way up each key is made from the one before. On the way down that is not possible, so all
//! keys behind a restart point are put together at a time, and then taken from the end.

use super::block::{Block, Entries, Entry, Offsets, RESTART_ENTRIES};
use crate::coding::Damaged;
use crate::entry::Kind;
use crate::keys::compare;
use std::cmp::Ordering;

/// A cursor of a block, on a record or beside all of them.
pub(crate) struct BlockCursor {
    block: Block,
    key: Vec<u8>,
    newest: Option<Entry>,
    /// The other entries of the key, from newer to older.
    older: Vec<Entry>,
    /// The next record, on the way up.
    next: Offsets,
    /// The restart point whose records `below` has, on the way down.
    interval: usize,
    /// The records behind the restart point, up to the one before this, on the way down.
    below: Vec<Below>,
    /// Their keys.
    keys: Vec<u8>,
}

struct Below {
    key_start: usize,
    entries: Entries,
}

impl BlockCursor {
    /// Makes a walk that has not been told where to go.
    pub(crate) fn new(block: Block) -> Self {
        BlockCursor {
            next: block.restart(0),
            block,
            key: Vec::new(),
            newest: None,
            older: Vec::new(),
            interval: 0,
            below: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Goes to another block, without a record there.
    pub(crate) fn enter(&mut self, block: Block) {
        self.block = block;
    }

    pub(crate) fn block(&self) -> &Block {
        &self.block
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    pub(crate) fn entries(&self) -> usize {
        1 + self.older.len()
    }

    #[inline]
    pub(crate) fn entry(&self, index: usize) -> (Kind, &[u8]) {
        let entry = match index.checked_sub(1) {
            None => self.newest,
            Some(index) => self.older.get(index).copied(),
        };
        let shown = entry.map(|entry| (entry.kind, self.block.value(entry)));
        shown.unwrap_or((Kind::Delete, &[]))
    }

    /// Goes to the first record whose key is not below `bound`; without one, to the first. Returns
    /// `true` if there is one.
    pub(crate) fn seek_up(&mut self, bound: Option<&[u8]>) -> Result<bool, Damaged> {
        let restart = match bound {
            Some(bound) => self.block.restart_before(bound, false)?,
            None => 0,
        };
        self.next = self.block.restart(restart);
        self.key.clear();
        while self.step_up()? {
            if bound.is_none_or(|bound| compare(&self.key, bound) != Ordering::Less) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes to the next record above. Returns `true` if there is one.
    #[inline]
    pub(crate) fn step_up(&mut self) -> Result<bool, Damaged> {
        if !self.block.has(self.next) {
            return Ok(false);
        }
        let record = self.block.record(self.next)?;
        if record.shared > self.key.len() {
            return Err(SHARED);
        }
        self.key.truncate(record.shared);
        self.key.extend_from_slice(self.block.suffix(&record));
        self.next = self.set_entries(self.block.entries(&record))?;
        Ok(true)
    }

    /// Takes the entries of a record. Returns the offsets of the next record.
    #[inline]
    fn set_entries(&mut self, mut entries: Entries) -> Result<Offsets, Damaged> {
        self.newest = Some(entries.first);
        self.older.clear();
        while let Some(older) = self.block.older(entries)? {
            self.older.push(older.first);
            entries = older;
        }
        Ok(entries.end())
    }

    /// Goes to the last record whose key is below `bound`; without one, to the last. Returns `true`
    /// if there is one.
    pub(crate) fn seek_down(&mut self, bound: Option<&[u8]>) -> Result<bool, Damaged> {
        let interval = match bound {
            Some(bound) => self.block.restart_before(bound, true)?,
            None => self.block.restarts() - 1,
        };
        self.read_interval(interval)?;
        while self.step_down()? {
            if bound.is_none_or(|bound| compare(&self.key, bound) == Ordering::Less) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes to the next record below. Returns `true` if there is one.
    #[inline]
    pub(crate) fn step_down(&mut self) -> Result<bool, Damaged> {
        loop {
            if let Some(record) = self.below.pop() {
                self.key.clear();
                self.key.extend_from_slice(&self.keys[record.key_start..]);
                self.keys.truncate(record.key_start);
                self.set_entries(record.entries)?;
                return Ok(true);
            }
            match self.interval.checked_sub(1) {
                Some(interval) => self.read_interval(interval)?,
                None => return Ok(false),
            }
        }
    }

    /// Puts together the keys behind a restart point, up to the next one.
    fn read_interval(&mut self, interval: usize) -> Result<(), Damaged> {
        self.interval = interval;
        self.below.clear();
        self.keys.clear();
        let mut offsets = self.block.restart(interval);
        let end = self.block.restart(interval + 1);
        let mut before = 0;
        while self.block.has(offsets) && Block::is_before(offsets, end) {
            let record = self.block.record(offsets)?;
            let key_start = self.keys.len();
            if record.shared > key_start - before {
                return Err(SHARED);
            }
            if self.below.len() == RESTART_ENTRIES {
                // The limit keeps a block of any bytes within 16 times its memory.
                return Err(Damaged("has too few restart points"));
            }
            self.keys.extend_from_within(before..before + record.shared);
            self.keys.extend_from_slice(self.block.suffix(&record));
            let entries = self.block.entries(&record);
            self.below.push(Below { key_start, entries });
            before = key_start;
            offsets = self.block.offsets_behind(entries)?;
        }
        Ok(())
    }
}

const SHARED: Damaged =
    Damaged("has a key with more in common with the one before than that is long");
