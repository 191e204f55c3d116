//! Growing and shrinking, a few buckets at a time.
//!
//! One thread at a time changes the layout; others that think it should change leave it to that one
//! and go on. Each step locks the one stripe that guards the bucket and its partner.

use super::HashTable;
use super::directory::{MIN_BUCKETS, parent_of};
use super::line::{Line, Word};
use super::stripes::{Advice, Locked, MIN_BUCKETS_PER_STRIPE};
use crate::record::Release;
use ats_sync::Guard;
use std::mem::size_of;

/// The table grows when there are more records per bucket than this. A line has seven slots, and
/// buckets not yet split have up to twice the records of those that are: at four, most of them still
/// fit one line.
const MAX_LOAD: usize = 4;
/// The table shrinks when there are fewer. Half of the other, so that a table of stable size rests.
const MIN_LOAD: usize = 2;
/// Steps per update. Each update changes the number of records by one, so one step in four would
/// keep up; the rest is for catching up when the resize lock was taken.
const STEPS: usize = 4;

/// In which direction the number of buckets should change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Stay,
    Grow,
    Shrink,
}

/// What an update leaves to be done after it has released its lock.
#[derive(Clone, Copy)]
pub(super) struct Chores {
    locks: Advice,
    records: usize,
}

impl Chores {
    pub(super) fn of(locked: &Locked<'_>, active: usize) -> Self {
        Self {
            locks: locked.advice(active),
            records: locked.estimate(),
        }
    }

    fn direction(self, active: usize) -> Direction {
        if self.records > active * MAX_LOAD {
            Direction::Grow
        } else if self.records < active * MIN_LOAD && active > MIN_BUCKETS {
            Direction::Shrink
        } else {
            Direction::Stay
        }
    }
}

impl<R: Release> HashTable<R> {
    /// Does a little of what is to be done, unless somebody else is at it. Holds no stripe.
    #[inline]
    pub(super) fn do_chores(&self, chores: Chores, guard: &Guard) {
        let direction = chores.direction(self.directory.active());
        if direction != Direction::Stay || chores.locks != Advice::Keep {
            self.adapt(chores, guard);
        }
    }

    #[cold]
    fn adapt(&self, chores: Chores, guard: &Guard) {
        let Some(_resizing) = self.rare.resizing.try_lock() else {
            return;
        };
        self.stripes
            .adapt(chores.locks, self.directory.active(), guard);
        for _ in 0..STEPS {
            match chores.direction(self.directory.active()) {
                Direction::Stay => return,
                Direction::Grow => self.split(guard),
                Direction::Shrink => self.join(guard),
            }
        }
    }

    /// Makes one more bucket active. The caller holds the resize lock.
    ///
    /// A reader finds each record at any moment: first the copy is published, then the number of
    /// buckets changes, then the original is cleared. A reader that missed the original, because it
    /// was cleared, finds the new number when it confirms its miss, and looks in the other bucket.
    fn split(&self, guard: &Guard) {
        let partner = self.directory.active();
        let bucket = parent_of(partner);
        self.add_structure(self.directory.provide(partner) as i64);
        let _locked = self.stripes.lock(bucket as u64, guard);
        let (from, to) = (self.active_line(bucket), self.active_line(partner));
        // The two buckets are told apart by the highest bit of the new one's number.
        let bit = (partner - bucket) as u64;
        let mut originals = Vec::with_capacity(super::line::SLOTS);
        let mut lines = 0;
        for slot in from.chain_slots() {
            let word = slot.load();
            if !word.is_empty() && self.hash_of(word, guard) & bit != 0 {
                lines += to.insert(word) as i64;
                originals.push(slot);
            }
        }
        self.directory.set_active(partner + 1);
        for slot in originals {
            slot.store(Word::EMPTY);
        }
        from.compact(|| self.directory.moved());
        lines -= from.unlink_empty(guard) as i64;
        self.add_lines(lines);
    }

    /// Makes one bucket less active. The caller holds the resize lock.
    ///
    /// In the same order as [`split`](Self::split). In addition the move is announced, because the
    /// bucket that gets the records covers more than it did, and a reader that has already passed
    /// the slot a record is put into would not notice by the number of buckets alone if another
    /// split followed at once.
    fn join(&self, guard: &Guard) {
        let partner = self.directory.active() - 1;
        let bucket = parent_of(partner);
        if self.stripes.count(guard) * MIN_BUCKETS_PER_STRIPE > partner {
            self.stripes.adapt(Advice::Halve, partner, guard);
        }
        let locked = self.stripes.lock(bucket as u64, guard);
        let (from, to) = (self.active_line(partner), self.active_line(bucket));
        let mut lines = 0;
        for slot in from.chain_slots() {
            let word = slot.load();
            if !word.is_empty() {
                lines += to.insert(word) as i64;
            }
        }
        self.directory.moved();
        self.directory.set_active(partner);
        for slot in from.chain_slots() {
            slot.store(Word::EMPTY);
        }
        lines -= from.unlink_empty(guard) as i64;
        self.add_lines(lines);
        drop(locked);
        self.add_structure(-(self.directory.trim(guard) as i64));
    }

    /// The first line of a bucket that cannot become inactive: its lock or the resize lock is held.
    pub(super) fn active_line(&self, bucket: usize) -> &Line<R> {
        let line = self.directory.line(bucket);
        line.expect("an active bucket has memory")
    }

    /// The hash of the record in an occupied slot whose lock is held.
    fn hash_of(&self, word: Word, guard: &Guard) -> u64 {
        // SAFETY: the word was just read from a slot, under the guard, and is not empty.
        self.seed.hash(unsafe { word.record::<R>(guard) }.key())
    }

    pub(super) fn add_lines(&self, lines: i64) {
        if lines != 0 {
            self.add_structure(lines * size_of::<Line<R>>() as i64);
        }
    }
}
