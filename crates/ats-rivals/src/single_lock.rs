//! The ordered store behind a single lock: a balanced tree, as `ordered_set` of `ets` was before
//! Erlang/OTP 22.
//!
//! Good for: one thread at a time; walks, since neighbours lie side by side. Bad at: counting the
//! records of a range, finding the n-th record, and [slots](ats_mem::Slots), for which the tree
//! keeps no numbers: all take O(n).
//!
//! The tree is a kept one: that of the standard library. The lock is a readers-writer lock of the
//! usual kind, with one counter of readers.

use super::in_range::{PIECE, Pieces, skip_in, visit_in};
use super::record_map::{Kept, RecordMap, Rest, Taking};
use super::store::LockedMap;
use ats_mem::record::{Record, Release};
use ats_mem::{Direction, End, KeyRange, Ordered, ScanPosition, Skipped, SlotAnswer, When};
use ats_sync::Guard;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

/// A balanced tree behind a readers-writer lock.
pub type SingleLock<R> = LockedMap<R, Tree<R>>;

/// About how many bytes of a node fall to one record: nodes of the standard library have room for
/// eleven.
const BYTES_EACH: usize = 16;

/// Records in the order of their keys.
pub struct Tree<R: Release>(BTreeSet<Kept<R>>);

impl<R: Release> Default for Tree<R> {
    fn default() -> Self {
        Tree(BTreeSet::new())
    }
}

impl<R: Release> Tree<R> {
    /// The records between two ends, of which the lower one is not above the other.
    fn between(
        &self,
        low: Bound<&[u8]>,
        high: Option<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = &Kept<R>> {
        let high = high.map_or(Bound::Unbounded, Bound::Excluded);
        self.0.range::<[u8], _>((low, high))
    }

    /// Finds the first records, or the last ones in descending order, of a range that is not empty.
    fn gather_in(&self, range: KeyRange<'_>, direction: Direction, found: &mut Vec<Kept<R>>) {
        let low = range.low.map_or(Bound::Unbounded, Bound::Included);
        let records = self.between(low, range.high).map(Kept::duplicate);
        match direction {
            Direction::Up => found.extend(records.take(PIECE)),
            Direction::Down => found.extend(records.rev().take(PIECE)),
        }
    }
}

impl<R: Release> RecordMap<R> for Tree<R> {
    const READER_GROUPS: Option<usize> = Some(1);

    fn get(&self, key: &[u8]) -> Option<&Kept<R>> {
        self.0.get(key)
    }

    fn put(&mut self, record: Kept<R>) -> Option<Kept<R>> {
        self.0.replace(record)
    }

    fn take(&mut self, key: &[u8], _why: Taking) -> Option<Kept<R>> {
        self.0.take(key)
    }

    fn all(&self) -> impl Iterator<Item = &Kept<R>> {
        self.0.iter()
    }

    fn end(&self, end: End) -> Option<&Kept<R>> {
        match end {
            End::First => self.0.first(),
            End::Last => self.0.last(),
        }
    }

    fn piece(&self) -> usize {
        PIECE
    }

    fn gather(&self, from: ScanPosition<'_>, most: usize, found: &mut Vec<Kept<R>>) -> Rest {
        let low = match from {
            // No walk is paused, since each can go on behind the last key.
            ScanPosition::Start | ScanPosition::At(_) => Bound::Unbounded,
            ScanPosition::Behind(key) => Bound::Excluded(key),
        };
        found.extend(self.between(low, None).take(most).map(Kept::duplicate));
        match found.len() < most {
            true => Rest::Nowhere,
            false => Rest::BehindLast,
        }
    }

    fn gather_down(&self, below: Option<&[u8]>, most: usize, found: &mut Vec<Kept<R>>) -> bool {
        let records = self.between(Bound::Unbounded, below).rev();
        found.extend(records.take(most).map(Kept::duplicate));
        true
    }

    fn knows(&self, _key: &[u8], _guard: &Guard) -> bool {
        true
    }

    /// A slot is the record at that place in the order of the keys.
    fn slot(&self, index: usize, found: &mut Vec<Kept<R>>) -> SlotAnswer {
        match index.cmp(&self.0.len()) {
            std::cmp::Ordering::Less => {
                found.extend(self.0.iter().nth(index).map(Kept::duplicate));
                SlotAnswer::Here
            }
            std::cmp::Ordering::Equal => SlotAnswer::End,
            std::cmp::Ordering::Greater => SlotAnswer::Beyond,
        }
    }

    fn bytes(&self) -> usize {
        self.0.len() * BYTES_EACH
    }
}

impl<R: Release> Ordered<R> for SingleLock<R> {
    fn scan_from<'g>(
        &'g self,
        from: &[u8],
        _when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let range = KeyRange {
            low: Some(from),
            high: None,
        };
        visit_in(self, range, Direction::Up, guard, visit);
    }

    fn scan_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        _when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let range = KeyRange {
            low: None,
            high: below,
        };
        visit_in(self, range, Direction::Down, guard, visit);
    }

    /// O(records passed).
    fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, R> {
        skip_in(self, key_range, direction, most, guard, pause)
    }
}

impl<R: Release> Pieces<R> for SingleLock<R> {
    fn piece<'g>(
        &'g self,
        range: KeyRange<'_>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Vec<&'g Record<R>> {
        let (found, ()) = self.look(guard, |tree, found| tree.gather_in(range, direction, found));
        found
    }
}
