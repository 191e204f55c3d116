//! Walking several sources as one.
//!
//! A compaction only sees keys that are not deleted with a range: [`seek`](MergeCursor::seek)
//! and [`advance`](MergeCursor::advance). A walk of a reader passes those that are itself, since
//! it also passes other keys without a value: [`start`](MergeCursor::start),
//! [`step`](MergeCursor::step) and [`pass`](MergeCursor::pass).

use crate::cursor::Cursor;
use crate::entry::Kind;
use crate::entry::collapse::{Chain, is_base};
use crate::error::Error;
use crate::fault_injection::{InjectedFault, is_injected};
use crate::keys::head;
use crate::range_deletes::Deleted;
use ats_store::{Direction, KeyRange, MayBlock, MergeOperator};
use std::cmp::Ordering;

/// The number of deleted keys that are passed one by one; the rest of the deleted range is then
/// passed at once. A search in an index costs about as much as so many steps.
const STEPS: u32 = 16;

/// A source of a merge cursor: a walk, and the range deletes of all sources that are newer.
pub(crate) struct Source {
    pub(crate) cursor: Box<dyn Cursor>,
    /// The ranges that it deletes in older sources.
    pub(crate) range_deletes: Option<Deleted>,
}

/// A walk over the keys of several sources, each key once, with the entries of all sources. Keys
/// that a deleted range hides are left out, and are not read where the range is long.
///
/// The sources are few, at most some dozens; so the least of their keys is found by looking at all
/// of them, and no heap is kept. The cursor compares *heads*, the first eight bytes of each key as
/// a number, which lie side by side. Keys themselves are compared only where heads are the same.
pub(crate) struct MergeCursor {
    /// The sources, from the newest to the oldest.
    sources: Vec<Source>,
    /// The head of the key of each source; at its end the greatest head in the direction of the
    /// walk.
    heads: Vec<u64>,
    direction: Direction,
    /// The sources that stand on the present key, in the order of `sources`.
    here: Vec<usize>,
    has_range_deletes: bool,
    /// `true` for each source whose remaining keys in this direction are all deleted.
    is_over: Vec<bool>,
    /// The number of deleted keys that were passed since one that is not.
    passed: u32,
    /// End of the range that is passed.
    end: Vec<u8>,
}

impl MergeCursor {
    /// Makes a cursor over sources, from the newest to the oldest.
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        MergeCursor {
            has_range_deletes: sources.iter().any(|source| source.range_deletes.is_some()),
            is_over: vec![false; sources.len()],
            heads: vec![0; sources.len()],
            sources,
            direction: Direction::Up,
            here: Vec::new(),
            passed: 0,
            end: Vec::new(),
        }
    }

    /// Like [`Cursor::seek`], over all sources.
    pub(crate) fn seek(
        &mut self,
        may_block: Option<MayBlock>,
        direction: Direction,
        bound: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.start(may_block, direction, bound)?;
        self.settle(may_block)
    }

    /// Goes on to the next key. Not at the end.
    pub(crate) fn advance(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        self.step(may_block)?;
        self.settle(may_block)
    }

    /// Like [`seek`](MergeCursor::seek), also to a key that is deleted with a range.
    pub(crate) fn start(
        &mut self,
        may_block: Option<MayBlock>,
        direction: Direction,
        bound: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.direction = direction;
        self.here.clear();
        self.passed = 0;
        self.is_over.fill(false);
        for index in 0..self.sources.len() {
            self.sources[index]
                .cursor
                .seek(may_block, direction, bound)?;
            self.on_moved(index);
        }
        self.find();
        Ok(())
    }

    /// Like [`advance`](MergeCursor::advance), also to a key that is deleted with a range.
    #[inline]
    pub(crate) fn step(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        self.passed = 0;
        for at in 0..self.here.len() {
            let index = self.here[at];
            self.sources[index].cursor.advance(may_block)?;
            self.on_moved(index);
        }
        self.find();
        Ok(())
    }

    /// Returns the key on which it stands; `None` at the end.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        let first = *self.here.first()?;
        self.sources[first].cursor.key()
    }

    /// Goes to the next key of which something is not deleted with a range.
    fn settle(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        while let Some(source) = self.deleting_source() {
            self.pass(may_block, source)?;
        }
        Ok(())
    }

    /// Returns the source with a range that deletes the entries of all sources that stand on the
    /// present key.
    #[inline]
    pub(crate) fn deleting_source(&self) -> Option<usize> {
        if self.has_range_deletes {
            self.find_deleting()
        } else {
            None
        }
    }

    fn find_deleting(&self) -> Option<usize> {
        let newest = *self.here.first()?;
        let key = self.key()?;
        let covers = |source: &Source| {
            let deletes = source.range_deletes.as_ref();
            deletes.is_some_and(|deletes| deletes.covers(key))
        };
        self.sources[..newest].iter().position(covers)
    }

    /// Passes the present key, which a range of this source has, and mostly all that is left of the
    /// range.
    pub(crate) fn pass(&mut self, may_block: Option<MayBlock>, source: usize) -> Result<(), Error> {
        let deletes = self.sources[source].range_deletes.as_ref();
        let range = match (self.key(), deletes) {
            (Some(key), Some(deletes)) if self.passed >= STEPS => deletes.find_covering(key),
            _ => None,
        };
        let end = range.map(|KeyRange { low, high }| match self.direction {
            Direction::Up => high,
            Direction::Down => low,
        });
        self.end.clear();
        self.end
            .extend_from_slice(end.flatten().unwrap_or_default());
        let end = end.map(|end| end.is_some());
        self.passed += 1;
        for at in 0..self.here.len() {
            let index = self.here[at];
            let cursor = &mut self.sources[index].cursor;
            match end {
                None => cursor.advance(may_block)?,
                Some(true) => cursor.seek(may_block, self.direction, Some(&self.end))?,
                Some(false) => self.is_over[index] = true,
            }
            self.on_moved(index);
        }
        self.find();
        Ok(())
    }

    /// Returns the key of a source; `None` at its end.
    #[inline]
    fn key_of(&self, index: usize) -> Option<&[u8]> {
        self.sources[index]
            .cursor
            .key()
            .filter(|_| !self.is_over[index])
    }

    /// Notes the head of a source that has moved.
    #[inline]
    fn on_moved(&mut self, index: usize) {
        self.heads[index] = match (self.key_of(index), self.direction) {
            (Some(key), _) => head(key),
            (None, Direction::Up) => u64::MAX,
            (None, Direction::Down) => 0,
        };
    }

    /// Finds the sources that stand on the next key.
    fn find(&mut self) {
        self.here.clear();
        if self.heads.len() == 1 {
            self.here.extend(self.key_of(0).map(|_| 0));
            return;
        }
        let heads = self.heads.iter().copied();
        let next = match self.direction {
            Direction::Up => heads.min(),
            Direction::Down => heads.max(),
        };
        let Some(next) = next else {
            return;
        };
        for index in 0..self.heads.len() {
            if self.heads[index] != next {
                continue;
            }
            // A source at its end may have the same head as a key.
            let Some(key) = self.key_of(index) else {
                continue;
            };
            let first = self.here.first().and_then(|first| self.key_of(*first));
            let order = match (first, self.direction) {
                (None, _) => Ordering::Less,
                (Some(first), Direction::Up) => key.cmp(first),
                (Some(first), Direction::Down) => first.cmp(key),
            };
            if order.is_lt() {
                self.here.clear();
            }
            if order.is_le() {
                self.here.push(index);
            }
        }
    }

    /// Returns the bytes of the keys and values on which it stands.
    pub(crate) fn content_bytes(&self) -> u64 {
        let bytes = self.here.iter().map(|index| {
            let cursor = &self.sources[*index].cursor;
            let key = cursor.key().map_or(0, <[u8]>::len);
            let values = (0..cursor.entries()).map(|entry| cursor.entry(entry).1.len());
            (key * cursor.entries() + values.sum::<usize>()) as u64
        });
        bytes.sum()
    }

    /// Returns the entry that the only source has of the key, if only one has something, that is
    /// all, and nothing deletes it.
    #[inline]
    pub(crate) fn only_entry(&self) -> Option<(Kind, &[u8])> {
        match self.here[..] {
            [index] if !self.has_range_deletes => {
                let cursor = &self.sources[index].cursor;
                (cursor.entries() == 1).then(|| cursor.entry(0))
            }
            _ => None,
        }
    }

    /// Returns the oldest source, if it stands on the key and no newer value, delete or deleted
    /// range hides its entries.
    pub(crate) fn visible_source(&self) -> Option<&dyn Cursor> {
        let key = self.key()?;
        let (oldest, newer) = self.sources.split_last()?;
        if self.here.last() != Some(&newer.len()) {
            return None;
        }
        let hides = |(index, source): (usize, &Source)| {
            let is_here = self.here.contains(&index);
            let has_base =
                || (0..source.cursor.entries()).any(|at| source.cursor.entry(at).0.is_base());
            let covers = |deletes: &Deleted| deletes.covers(key);
            is_here && has_base() || source.range_deletes.as_ref().is_some_and(covers)
        };
        if newer.iter().enumerate().any(hides) {
            None
        } else {
            Some(&*oldest.cursor)
        }
    }

    /// Gathers the entries of the key from the sources, until older ones do not matter.
    pub(crate) fn gather(&self, operator: Option<&dyn MergeOperator>, chain: &mut Chain) {
        chain.clear();
        let Some(key) = self.key() else {
            return;
        };
        for index in 0..self.sources.len() {
            let index = if is_injected(InjectedFault::Order) {
                self.sources.len() - 1 - index
            } else {
                index
            };
            let source = &self.sources[index];
            if self.here.contains(&index) {
                for entry in 0..source.cursor.entries() {
                    let (kind, value) = source.cursor.entry(entry);
                    chain.push(kind, value);
                    let is_enough = kind == Kind::Operand
                        && operator
                            .is_some_and(|operator| is_base(operator, key, value).unwrap_or(false));
                    if kind.is_base() || is_enough {
                        return;
                    }
                }
            }
            let covers = |deletes: &Deleted| deletes.covers(key);
            if source.range_deletes.as_ref().is_some_and(covers) {
                chain.push(Kind::Delete, &[]);
                return;
            }
        }
    }
}
