//! Walking several sources as one.

use crate::cursor::Cursor;
use crate::entry::Kind;
use crate::error::Error;
use crate::fold::{Chain, is_base};
use crate::planted::{Fault, is_planted};
use crate::range_deletes::RangeSet;
use ats_store::{Direction, MergeOperator};
use std::cmp::Ordering;
use std::sync::Arc;

/// A source of a merge: a walk, and the range deletes of all sources that are newer.
pub(crate) struct Source {
    pub(crate) cursor: Box<dyn Cursor>,
    /// What it deletes in older sources.
    pub(crate) range_deletes: Option<Arc<RangeSet>>,
}

/// Walks over the keys of several sources, each key once, with what all of them say of it.
///
/// The sources are few, at most some dozens; so the least of their keys is found by comparing them all with the
/// least so far, and no heap is kept.
pub(crate) struct MergingCursor {
    /// From the newest to the oldest.
    sources: Vec<Source>,
    direction: Direction,
    /// Which sources stand on the present key, in the order of `sources`.
    here: Vec<usize>,
    has_range_deletes: bool,
}

impl MergingCursor {
    /// Of sources from the newest to the oldest.
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        MergingCursor {
            has_range_deletes: sources.iter().any(|source| source.range_deletes.is_some()),
            sources,
            direction: Direction::Up,
            here: Vec::new(),
        }
    }

    /// As [`Cursor::seek`].
    pub(crate) fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<(), Error> {
        self.direction = direction;
        self.here.clear();
        for source in &mut self.sources {
            source.cursor.seek(direction, bound)?;
        }
        self.find();
        Ok(())
    }

    /// Goes on to the next key. Not at the end.
    pub(crate) fn advance(&mut self) -> Result<(), Error> {
        for index in &self.here {
            self.sources[*index].cursor.advance()?;
        }
        self.find();
        Ok(())
    }

    /// The key on which it stands; `None` at the end.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        let first = *self.here.first()?;
        self.sources[first].cursor.key()
    }

    /// Finds the sources that stand on the next key.
    fn find(&mut self) {
        self.here.clear();
        let mut least: Option<&[u8]> = None;
        for (index, source) in self.sources.iter().enumerate() {
            let Some(key) = source.cursor.key() else {
                continue;
            };
            let order = match (least, self.direction) {
                (None, _) => Ordering::Less,
                (Some(least), Direction::Up) => key.cmp(least),
                (Some(least), Direction::Down) => least.cmp(key),
            };
            if order.is_lt() {
                self.here.clear();
                least = Some(key);
            }
            if order.is_le() {
                self.here.push(index);
            }
        }
    }

    /// Bytes of the keys and values on which it stands.
    pub(crate) fn content_bytes(&self) -> u64 {
        let bytes = self.here.iter().map(|index| {
            let cursor = &self.sources[*index].cursor;
            let key = cursor.key().map_or(0, <[u8]>::len);
            let values = (0..cursor.entries()).map(|entry| cursor.entry(entry).1.len());
            (key * cursor.entries() + values.sum::<usize>()) as u64
        });
        bytes.sum()
    }

    /// What the only source says of the key, if only one says something, that is all, and nothing deletes it.
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

    /// Gathers what the sources say of the key, until what is older does not matter.
    pub(crate) fn gather(&self, operator: Option<&dyn MergeOperator>, chain: &mut Chain) {
        chain.clear();
        let Some(key) = self.key() else {
            return;
        };
        for index in 0..self.sources.len() {
            let index = match is_planted(Fault::Order) {
                true => self.sources.len() - 1 - index,
                false => index,
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
            let covers = |deletes: &Arc<RangeSet>| deletes.covers(key);
            if source.range_deletes.as_ref().is_some_and(covers) {
                chain.push(Kind::Delete, &[]);
                return;
            }
        }
    }
}
