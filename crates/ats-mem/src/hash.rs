//! The unordered store: linear hashing whose buckets are cache lines and whose readers take no
//! lock.
//!
//! Good for: point reads (one cache miss for the bucket, one for the record; often none for an
//! absent key), point writes, any number of records (it grows and shrinks a few buckets at a time,
//! without long pauses). Bad for: ranges, which need an order; walks, which jump about in memory.
//!
//! # How it works
//! A bucket is a line of seven slots; a slot is one word with 16 bits of the hash and the address
//! of a record (module `line`). Apart from the lines, densely packed, is a word with seven bits of
//! the hash for each slot (module `fingerprints`): a search reads it first, nearly always needs one
//! slot of the line or none, and then compares one key. Buckets that overflow continue in further
//! lines (module `bucket`). The array of buckets grows by linear hashing (Litwin 1980, Larson
//! 1988): one bucket at a time is split in two, in a fixed order, so that two words determine the
//! bucket of every record (module `directory`). The number of writer locks adapts to contention
//! (module `stripes`). Walks follow an order that resizing does not change (module `walk`).
//!
//! Cache-line buckets with resizing in small steps are those of DLHT (HPDC 2024); growth in the
//! order of linear hashing is that of `ets`; fingerprints apart from the entries are those of
//! "Swiss tables" (Abseil, 2017).
//!
//! # Invariants
//! - HASH-1. Only the holder of its bucket's stripe stores to a slot.
//! - HASH-2. A key has at most one slot with a record that is not marked as deleted, except while
//!   the holder of the lock moves it, when both slots hold the same word.
//! - HASH-3. The record of a key stays in its slot until it is removed, except for moves: to the
//!   other bucket of a split or a join, or within a bucket. Every move publishes the copy, then
//!   changes the words that readers compare (the number of buckets, the count of moves, or both),
//!   then clears the original.
//! - HASH-4. Every store to a slot releases and every load acquires.
//! - HASH-5. A record removed from a slot, a line from a chain, and a segment from the directory
//!   are freed by retiring only. References to buckets and records exist under a guard that was
//!   taken before the thread read the directory, or in code that has exclusive access to the table.
//!   So the objects live as long as the references.
//! - HASH-6. Locks are taken in this order: census lock, resize lock, stripes in ascending order. A
//!   writer holds one stripe and takes no other lock under it.
//! - HASH-7. The fingerprint of a slot is stored before the slot is filled and cleared after it was
//!   emptied, and so is the bit for records behind the first line. Lines are linked and unlinked
//!   between the two.
//!
//! # Correctness of a failed lookup
//! A reader that finds a record is right: it was there when the slot was loaded. Assume that it
//! finds nothing, although the key was present all the time. (If it was absent at some moment of
//! the search, then "nothing" is right for that moment.) By HASH-3 its record was in one slot until
//! it moved. If it did not move, the reader loaded that slot and found it. If it moved after the
//! reader had loaded its slot, the same holds. So the reader has loaded, with acquire, a slot that
//! a move had cleared, or by HASH-7 fingerprints from which a move had cleared that of the slot, or
//! it had read the target slot of a move before, which the move then announced.
//!
//! Now the reader confirms. Before its search it has loaded the count of moves, then the number of
//! buckets; after it, it loads the number, then the count (`Directory::confirms`). If the count
//! differs, or the number leads to another bucket, it starts again. Otherwise, let M be the last
//! move whose record it missed because it saw the original cleared.
//! - M was within a bucket. It was counted before it cleared, so the count after the search
//!   includes it, and so does the equal one before the search: the copy was published before the
//!   search began.
//! - M was a join. It was counted a second time after the number had changed and before it cleared.
//!   As before, this count was seen before the search; so the number was that of M or a later one,
//!   and the bucket searched was that of the copy.
//! - M was a split. It changed the number before it cleared, so the number after the search is that
//!   of M or a later one. If the same holds for the number before the search, the reader searched
//!   the bucket of the copy. If that was older, it led to the bucket the record came from, and so
//!   does the later one; then the later one is not older than that of a join after M. This join was
//!   counted a first time before it changed the number, so this count was seen after the search
//!   and, being equal, before it, and then the number before the search was not older than M.
//!
//! So the copy could be found, unless it was moved again: but M was the last move.

mod bucket;
mod bucket_orders;
mod directory;
mod fingerprints;
mod line;
#[cfg(all(test, loom))]
mod models;
mod purge;
mod resize;
mod search;
mod seed;
mod stripes;
mod table;
#[cfg(all(test, not(loom)))]
mod tests;
mod walk;
mod write;

use crate::batch::KeyStep;
use crate::change::{Busy, Change};
use crate::figures::{Buckets, Totals};
use crate::provided::Provided;
use crate::read_points::{ReadPoint, When};
use crate::record::{Record, Release, Weight};
use crate::records::{Beside, NoSuchKey, Records, Upkeep};
use crate::slab;
use crate::walk::Walk;
use ats_store::{Direction, End, SlotAnswer, WalkFrom};
use ats_sync::shim::atomic::Ordering;
use ats_sync::{Guard, pin};
use line::{Line, Word};
pub use seed::Seed;
use std::ops::ControlFlow;
pub use table::HashTable;
use table::Rare;
use walk::{Position, resolve_word};

impl<R: Release> Records<R> for HashTable<R> {
    fn is_ordered(&self) -> bool {
        false
    }

    #[inline]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        let hash = self.seed.hash(key);
        let live = |word: Word, record| (!word.is_deleted()).then_some(record);
        self.search(key, hash, guard, live)?.resolve(guard)
    }

    fn get_at<'g>(&'g self, key: &[u8], when: When, guard: &'g Guard) -> Option<&'g Record<R>> {
        if when.is_now() {
            return self.get(key, guard);
        }
        let hash = self.seed.hash(key);
        self.search(key, hash, guard, |word, record| {
            resolve_word(word, record, when, guard)
        })
    }

    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<ReadPoint>, Busy> {
        self.begin_read_point(prepare).map(Some)
    }

    /// A key that is not there takes no lock.
    fn remove(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy> {
        let hash = self.seed.hash(key);
        let there = |word: Word, _| (!word.is_deleted()).then_some(());
        if self.search(key, hash, guard, there).is_none() {
            return Ok(false);
        }
        let mut was_there = false;
        self.step_hashed((key, hash), None, guard, &mut |current| {
            was_there = current.is_some();
            KeyStep::Remove
        })?;
        Ok(was_there)
    }

    #[inline(always)]
    fn prefetch(&self, key: &[u8]) {
        let bucket = self.directory.view().bucket(self.seed.hash(key));
        self.directory.prefetch(bucket);
    }

    /// Changes any record, for either end.
    fn update_end<'g>(
        &'g self,
        _end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        let start = self.rare().taken.load(Ordering::Relaxed);
        loop {
            let found = self
                .successor(Position::At(start), guard)
                // The position is a hint, so only a search of the whole table can find it empty.
                .or_else(|| self.successor(Position::START, guard));
            let Some(found) = found else {
                decide(None);
                return Ok(());
            };
            let mut gone = false;
            self.update(found.key(), guard, &mut |current| {
                gone = current.is_none();
                current.map_or(Change::Keep, |current| decide(Some(current)))
            })?;
            // Another thread has taken the record; there may be others.
            if gone {
                continue;
            }
            let position = self.reversed_hash(found);
            if position != start {
                self.rare().taken.store(position, Ordering::Relaxed);
            }
            return Ok(());
        }
    }

    #[inline(always)]
    fn beside<'g>(
        &'g self,
        key: Option<&[u8]>,
        _direction: Direction,
        guard: &'g Guard,
    ) -> Beside<'g, R> {
        match key {
            None => Ok(self.successor(Position::START, guard)),
            Some(key) => self.successor_of(key, guard),
        }
    }

    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey> {
        let position = match walk.from {
            WalkFrom::Start => Position::START,
            WalkFrom::Position(reversed) => Position::At(reversed),
            WalkFrom::Known(key) => self.behind(key, guard)?,
            WalkFrom::Key(key) | WalkFrom::Behind(key) => {
                Position::behind(self.seed.hash(key), key)
            }
        };
        Ok(self.walk_until(position, walk.when, guard, visit, pause))
    }

    fn totals(&self) -> Result<Totals, Busy> {
        let guard = pin();
        if let Some(weight) = self.stripes.glance(None, &guard) {
            return Ok(self.totals_of(weight, &guard));
        }
        self.take_census(&guard).map(|(totals, _)| totals)
    }

    fn estimate(&self) -> Totals {
        let guard = pin();
        self.totals_of(self.stripes.weight(&guard), &guard)
    }

    /// The objects of a slot, of which there are as many as buckets, or as there were when the
    /// table became fixed.
    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) -> SlotAnswer {
        let slots = if self.is_fixed() {
            self.rare().slots.load(Ordering::Relaxed)
        } else {
            self.directory.active()
        };
        if index >= slots {
            return if index == slots {
                SlotAnswer::End
            } else {
                SlotAnswer::Beyond
            };
        }
        self.walk_slot(index, slots, guard, visit);
        SlotAnswer::Here
    }

    fn fix(&self) {
        let guard = pin();
        // Keeps the set of stripes unchanged, so that none is missed, and makes a second caller
        // wait until the first has waited.
        let _resizing = self.rare().resizing.lock();
        if !self.is_fixed() {
            let slots = self.directory.active();
            self.rare().slots.store(slots, Ordering::Relaxed);
        }
        if self.rare().fixed.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        // A removal that found the table not fixed must not remove a key that a walk, which does
        // not wait for it, has reached since. It holds a stripe from before its read of `fixed`
        // until it is done; a thread that takes that stripe after us finds the table fixed.
        for stripe in 0..self.stripes.count(&guard) {
            drop(self.stripes.lock(stripe as u64, &guard));
        }
    }

    fn unfix(&self) {
        self.rare().fixed.fetch_sub(1, Ordering::AcqRel);
    }

    fn upkeep(&self, work: Upkeep, budget: usize, guard: &Guard) -> bool {
        match work {
            // A table that was never fixed has kept nothing.
            Upkeep::Walks => {
                self.rare.get().is_none() || self.is_fixed() || self.purge(budget, guard)
            }
            Upkeep::Queries => self.read_points.reclaim(self, budget, guard),
            Upkeep::Parts => true,
        }
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.forcing.set(splits, joins);
    }
}

impl<R: Release> HashTable<R> {
    fn totals_of(&self, weight: Weight, guard: &Guard) -> Totals {
        Totals {
            objects: weight.objects,
            bytes: weight.bytes,
            structure: self.structure(guard) as i64,
        }
    }

    /// Returns the totals, and their read point.
    fn take_census(&self, guard: &Guard) -> Result<(Totals, u64), Busy> {
        let census = self.rare().census.get_or_init(Box::default).share(|turn| {
            let (_resizing, _) = self.rare().resizing.lock_within_limit()?;
            let mut read_point = 0;
            let mut advance = || read_point = self.read_points.advance();
            let weight = self.stripes.census(turn, &mut advance, guard)?;
            Some((self.totals_of(weight, guard), read_point))
        });
        census.ok_or(Busy)
    }

    /// Begins a snapshot query.
    fn begin_read_point(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<ReadPoint, Busy> {
        self.read_points.begin(prepare, || {
            let guard = pin();
            let mut read_point = 0;
            let mut advance = || read_point = self.read_points.advance();
            if let Some(weight) = self.stripes.glance(Some(&mut advance), &guard) {
                return Ok((read_point, weight.objects));
            }
            let (totals, read_point) = self.take_census(&guard)?;
            Ok((read_point, totals.objects))
        })
    }

    /// Returns the bytes of the structure, without records.
    fn structure(&self, guard: &Guard) -> usize {
        let buckets = self.directory.bytes() + self.lines() * size_of::<Line<R>>();
        // Lazily made parts always count: a table does not become larger because it was fixed once.
        let own =
            size_of::<Self>() + slab::block_size(size_of::<Rare>()) + self.read_points.bytes();
        own + self.stripes.bytes(guard) + buckets
    }

    /// Returns the layout of the table, and statistics of its adaptation to contention. Approximate
    /// while it is changing. O(locks).
    pub fn buckets(&self) -> Buckets {
        Buckets {
            buckets: self.directory.active(),
            lines: self.lines(),
            ..self.stripes.statistics(&pin())
        }
    }
}

impl<R: Release> std::fmt::Debug for HashTable<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HashTable")
            .field("len", &self.len())
            .field("buckets", &self.directory.active())
            .finish_non_exhaustive()
    }
}
