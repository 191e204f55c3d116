//! Walks over the records of one block, in both directions.
//!
//! On the way up each key is made from the one before. On the way down that is not possible, so all keys behind a
//! restart point are put together at a time, and then taken from the end.

use super::block::{Block, Entry, RESTART_ENTRIES};
use super::coding::Damaged;
use crate::entry::Kind;
use std::sync::Arc;

/// A place in a block, on a record or beside all of them.
pub(super) struct Walk {
    block: Arc<Block>,
    key: Vec<u8>,
    newest: Entry,
    /// The other entries of the key, from newer to older.
    older: Vec<Entry>,
    /// On the way up: where the next record is.
    next: usize,
    /// On the way down: the restart point whose records `below` has.
    interval: usize,
    /// On the way down: the records behind the restart point, up to the one before this.
    below: Vec<Below>,
    /// Their keys.
    keys: Vec<u8>,
}

struct Below {
    key_start: usize,
    newest: Entry,
}

impl Walk {
    /// A walk that has not been told where to go.
    pub(super) fn new(block: Arc<Block>) -> Self {
        Walk {
            block,
            key: Vec::new(),
            newest: Entry {
                kind: Kind::Delete,
                start: 0,
                end: 0,
                more: false,
            },
            older: Vec::new(),
            next: 0,
            interval: 0,
            below: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Goes to another block, without a place there. The one before.
    pub(super) fn replace(&mut self, block: Arc<Block>) -> Arc<Block> {
        std::mem::replace(&mut self.block, block)
    }

    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn entries(&self) -> usize {
        1 + self.older.len()
    }

    pub(super) fn entry(&self, index: usize) -> (Kind, &[u8]) {
        let entry = index
            .checked_sub(1)
            .map_or(&self.newest, |i| &self.older[i]);
        (entry.kind, self.block.slice(entry.start, entry.end))
    }

    /// Goes to the first record whose key is not below `bound`; without one, to the first. Whether there is one.
    pub(super) fn seek_up(&mut self, bound: Option<&[u8]>) -> Result<bool, Damaged> {
        let restart = match bound {
            Some(bound) => self.block.restart_before(bound, false)?,
            None => 0,
        };
        self.next = self.block.restart(restart);
        self.key.clear();
        while self.up()? {
            if bound.is_none_or(|bound| &self.key[..] >= bound) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes to the next record above. Whether there is one.
    #[inline]
    pub(super) fn up(&mut self) -> Result<bool, Damaged> {
        if self.next >= self.block.records_end() {
            return Ok(false);
        }
        let record = self.block.record(self.next)?;
        if record.shared > self.key.len() {
            return Err(SHARED);
        }
        self.key.truncate(record.shared);
        let suffix = self.block.slice(record.suffix_start, record.suffix_end);
        self.key.extend_from_slice(suffix);
        self.next = self.set_entries(record.newest)?;
        Ok(true)
    }

    /// Takes the entries of a record. Where they end.
    #[inline]
    fn set_entries(&mut self, newest: Entry) -> Result<usize, Damaged> {
        self.newest = newest;
        self.older.clear();
        let mut last = newest;
        while last.more {
            last = self.block.older(last)?;
            self.older.push(last);
        }
        Ok(last.end)
    }

    /// Goes to the last record whose key is below `bound`; without one, to the last. Whether there is one.
    pub(super) fn seek_down(&mut self, bound: Option<&[u8]>) -> Result<bool, Damaged> {
        let interval = match bound {
            Some(bound) => self.block.restart_before(bound, true)?,
            None => self.block.restarts() - 1,
        };
        self.read_interval(interval)?;
        while self.down()? {
            if bound.is_none_or(|bound| &self.key[..] < bound) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes to the next record below. Whether there is one.
    pub(super) fn down(&mut self) -> Result<bool, Damaged> {
        loop {
            if let Some(record) = self.below.pop() {
                self.key.clear();
                self.key.extend_from_slice(&self.keys[record.key_start..]);
                self.keys.truncate(record.key_start);
                self.set_entries(record.newest)?;
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
        let mut at = self.block.restart(interval);
        let end = self
            .block
            .restart(interval + 1)
            .min(self.block.records_end());
        let mut before = 0;
        while at < end {
            let record = self.block.record(at)?;
            let key_start = self.keys.len();
            if record.shared > key_start - before {
                return Err(SHARED);
            }
            if self.below.len() == RESTART_ENTRIES {
                // So no block, whatever its bytes, needs more than 16 times its memory.
                return Err(Damaged("has too few restart points"));
            }
            self.keys.extend_from_within(before..before + record.shared);
            let suffix = self.block.slice(record.suffix_start, record.suffix_end);
            self.keys.extend_from_slice(suffix);
            self.below.push(Below {
                key_start,
                newest: record.newest,
            });
            before = key_start;
            at = self.block.behind(record.newest)?;
        }
        Ok(())
    }
}

const SHARED: Damaged =
    Damaged("has a key with more in common with the one before than that is long");
