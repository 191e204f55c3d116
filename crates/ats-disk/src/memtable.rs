//! The newest writes, in memory, until they go to a run.
//!
//! A [`Memtable`] is a [`CaTree`] with one record per key. The record never goes as long as the
//! memtable lives; versions after the first hang behind it, as a list of *nodes*, the newest first.
//! Most keys of most memtables have one version only, which lies within the record.
//!
//! ```text
//!   record   header, key | newest | stamp | length | bytes of the first version
//!                            |
//!                            v
//!   node                   older | stamp | length, stripes | bytes
//!                            |
//!                            v
//!   node                   older | ...      the last one leads to the version within the record, or to the end
//! ```
//!
//! # Which versions there are
//! A version is one record of a batch, or several merged. It has the sequence number of the newest
//! of them. Only versions are kept that readers may ask for. The *points* are the sequence numbers
//! at which may be read: those of the snapshots, and, unless a write is alone in its batch group,
//! the last one published. Two versions with no point between them (from the older one on, and
//! before the newer one) belong to one *stripe*, as RocksDB calls it. Of a stripe only the newest
//! version can be seen. So if it is a base, the others are dropped. If it is an operand, they are
//! merged with it, except
//!
//! - if the older version is much the longer one: then the operand waits until as much has come
//!   (see [`collapse`]). So a stripe of `n` bytes has O(log n) versions, and each appended byte is
//!   copied O(log n) times;
//! - if the operator refuses.
//!
//! The link from the newer version to the older one says which of these it was, *apart* or
//! *refused*. A merge that was refused is not tried again. A node also has the number of stripes
//! from there on, about: a write need not go further down a long list if there are no more of them
//! than points.
//!
//! An operand becomes a [`Kind::Put`] at once if nothing is below it: on a [`Kind::Delete`], and if
//! a range was deleted since the version below, or since there was none.
//!
//! # Readers without a snapshot
//! They take the last published sequence number, and look for the newest version up to it. If the
//! writer was faster, that version may be gone. Each link tells whether versions between the two
//! are *lost*. A reader that passes such a link without having found a version is [too
//! old](Lookup::TooOld). It tries again with the number that has been published meanwhile.
//!
//! A group of one write is published by applying it: its version is *alone*, and readers without a
//! snapshot may read it before its number is published. So a hot key has one version, and its
//! readers are never too old.
//!
//! # Invariants
//! - MEMTABLE-1. A record of the tree has been made by `versions::new_record`, and is never taken
//!   out. The first word of its value is a link and is accessed atomically. The others never
//!   change.
//! - MEMTABLE-2. Stamp, length and bytes of a node never change. A link leads to a node, to the
//!   version within the record, or to the end.
//! - MEMTABLE-3. Links are stored to by the holder of the lock of writers only.
//! - MEMTABLE-4. A node is in the list of one record. When it is taken out, no link of the list
//!   leads to it any more, its own link does not change from then on, and it is retired. So each
//!   node that a reader comes to, by way of nodes that were taken out, too, was in the list at some
//!   time since its guard was made, and lives as long as the guard.
//! - MEMTABLE-5. A link that is stored to leads to versions that say the same at each point as
//!   those it led to before. Where they say less at other sequence numbers, it is marked as lost.
//!   So the answer of a reader does not depend on the nodes that are exchanged while it goes down
//!   the list.
//!
//! # Why this structure
//! LevelDB, and the engines that come from it, have a skip list of keys with sequence numbers: each
//! write is a new entry, and a read of a hot key passes as many as there are. The tree here is 4 to
//! 6 times as fast as a skip list (`SkipMap` of crossbeam; `make bench-native`), because it
//! compares neighbours in memory. It has one record per key however often that is written, so a
//! counter costs the same after a million increments as after one (`tests/figures.rs`), and 50,000
//! operands of one key are read as a handful of versions.
//!
//! Bad at: keys that are written once and deleted. The record of a deleted key stays until the
//! memtable is freed.

mod cursor;
mod insertion;
mod recent;
mod retention;
#[cfg(test)]
mod tests;
mod versions;

pub(crate) use cursor::MemtableCursor;
pub(crate) use retention::Retention;

use crate::entry::Kind;
use crate::entry::collapse::{self, Chain};
use crate::ids::Seq;
use crate::median::{FEW, Median};
use crate::range_deletes::{Deleted, RangeDeletes, RangeSet};
use ats_mem::{CaTree, Change, Provided, Records, Skipped};
use ats_store::{Direction, KeyRange, MergeOperator};
use insertion::{Insertion, Outcome};
use parking_lot::Mutex;
use recent::RecentKeys;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use versions::{History, Node, Stamp, Versions};

/// One record of a batch, with its sequence number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    /// The kind of the version.
    pub kind: Kind,
    /// The key.
    pub key: &'a [u8],
    /// The value; of a [`Kind::Delete`] it is empty.
    pub value: &'a [u8],
    /// The sequence number, greater than those of all writes before. Less than 2^56.
    pub seq: Seq,
}

/// The answer of a memtable about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// All that can matter.
    Complete,
    /// Older entries matter, too.
    GoesOn,
    /// The version that the reader asks for was there, but is not kept any more. Only readers
    /// without a snapshot meet that.
    TooOld,
}

/// The newest writes, in memory.
///
/// Any number of threads may read at any time, without locks. Threads that write take turns.
pub(crate) struct Memtable {
    tree: CaTree<Versions>,
    range_deletes: RangeDeletes,
    /// Bytes of the nodes in the lists, and of the log of recent keys. Only the holder of the lock
    /// changes this number.
    node_bytes: AtomicUsize,
    /// The lock of writers (MEMTABLE-3), and the keys that they have written last.
    writing: Mutex<RecentKeys>,
}

/// The outcome of reading the versions of a key.
enum Reading {
    /// The last version read is a base.
    Base,
    /// All versions up to the sequence number were visited, and none is a base.
    End,
    /// The versions were not visited, because a newer deletion of a range has removed the key.
    Covered,
    /// The versions were not visited, because the one to be read has been dropped.
    TooOld,
}

impl Memtable {
    /// Makes an empty memtable.
    pub(crate) fn new() -> Self {
        Memtable {
            tree: CaTree::new(),
            range_deletes: RangeDeletes::default(),
            node_bytes: AtomicUsize::new(0),
            writing: Mutex::default(),
        }
    }

    /// Takes a write, and drops or merges the versions behind it that need not be kept. Returns the
    /// number of merges that the operator has refused; their operands are kept as they were. O(log
    /// n) for n keys, and the time of merging, besides the few versions of the key; see the
    /// documentation of [`memtable`](self).
    pub(crate) fn apply(
        &self,
        write: Write<'_>,
        retention: &Retention<'_>,
        operator: Option<&dyn MergeOperator>,
    ) -> usize {
        let mut writing = self.writing.lock();
        let guard = ats_sync::pin();
        let Write {
            key, value, seq, ..
        } = write;
        let (added, removed) = writing.note(key, seq, &|| self.bytes());
        if added != removed {
            self.account(added, removed);
        }
        let is_base = |operator| collapse::is_base(operator, key, value).unwrap_or(false);
        let kind = match write.kind {
            Kind::Operand if operator.is_some_and(is_base) => Kind::Put,
            kind => kind,
        };
        let covering = match kind {
            Kind::Operand => self.range_deletes.newest_covering(key, seq),
            _ => None,
        };
        // An operand on nothing, if a deleted range covers the key.
        let on_nothing = if covering.is_some() { Kind::Put } else { kind };
        let stamp = Stamp::new(kind, seq, retention.alone);

        let mut found = None;
        let mut insert = |current| match current {
            Some(record) => {
                found = Some(History::of(record, &guard));
                Change::Keep
            }
            None => Change::Put(versions::new_record(
                key,
                stamp.with_kind(on_nothing),
                value,
            )),
        };
        // The key is busy only if a thread that must not wait long has waited. Nothing has changed
        // then.
        while self.tree.update(key, &guard, &mut insert).is_err() {}
        let Some(history) = found else {
            if value.len() > versions::INLINE_MAX {
                self.account(Node::bytes(value.len()), 0);
            }
            return 0;
        };
        let newest = history.newest_stamp().map_or(Seq::ZERO, Stamp::seq);
        debug_assert!(newest < seq, "writes have ascending numbers");
        let is_covered = covering.is_some_and(|covering| newest < covering);
        let insertion = Insertion {
            history,
            key,
            retention,
            operator,
            guard: &guard,
        };
        let kind = if is_covered { Kind::Put } else { kind };
        // SAFETY: this thread has the lock of writers.
        let outcome = unsafe { insertion.run(stamp.with_kind(kind), value) };
        let Outcome { added, removed, .. } = outcome;
        self.account(added, removed);
        outcome.refusals
    }

    /// Counts the bytes of nodes and of the log. For the holder of the lock of writers.
    fn account(&self, added: usize, removed: usize) {
        let before = self.node_bytes.load(Ordering::Relaxed);
        let now = before.wrapping_add(added).wrapping_sub(removed);
        self.node_bytes.store(now, Ordering::Relaxed);
    }

    /// Deletes all keys of a range, here and in older memtables and runs. Amortised O(log n) for n
    /// ranges.
    pub(crate) fn delete_range(&self, range: KeyRange<'_>, seq: Seq) {
        let _writing = self.writing.lock();
        self.range_deletes.insert(range, seq);
    }

    /// Pushes the versions of a key up to `seq`, from the newest to the oldest, up to a base.
    /// Ranges that are deleted up to `seq` count.
    ///
    /// Without a snapshot, `seq` is a sequence number that was published, and a write that is alone
    /// in its group is read also if it is newer. If it is [too old](Lookup::TooOld), nothing is
    /// pushed.
    pub(crate) fn get(&self, key: &[u8], seq: Seq, is_snapshot: bool, chain: &mut Chain) -> Lookup {
        let guard = ats_sync::pin();
        let reading = match self.tree.get(key, &guard) {
            Some(record) => {
                let history = History::of(record, &guard);
                self.read(history, seq, is_snapshot, &mut |kind, value| {
                    chain.push(kind, value);
                })
            }
            None if self.range_deletes.newest_covering(key, seq).is_some() => Reading::Covered,
            None => Reading::End,
        };
        match reading {
            Reading::Base => Lookup::Complete,
            Reading::Covered => {
                chain.push(Kind::Delete, &[]);
                Lookup::Complete
            }
            Reading::End => Lookup::GoesOn,
            Reading::TooOld => Lookup::TooOld,
        }
    }

    /// Visits the versions of a key up to `seq`, from the newest to the oldest, up to a base.
    fn read<'g>(
        &self,
        history: History<'g>,
        seq: Seq,
        is_snapshot: bool,
        visit: &mut dyn FnMut(Kind, &'g [u8]),
    ) -> Reading {
        let covering = self.range_deletes.newest_covering(history.key(), seq);
        // SAFETY: the newest link is one of the list of this key, whose nodes live as long as the
        // guard of `history` (MEMTABLE-4).
        let mut next = unsafe { history.at(history.newest()) };
        while let Some(version) = next {
            let is_alone = !is_snapshot && version.stamp.is_alone();
            if version.stamp.seq() <= seq || is_alone {
                break;
            }
            let link = version.older();
            if !is_snapshot && link.is_lost() {
                return Reading::TooOld;
            }
            // SAFETY: the link was loaded from a version of this list, whose nodes live as long as
            // the guard of `history` (MEMTABLE-4).
            next = unsafe { history.at(link) };
        }
        // Older range deletes need not be looked for below this version: a base lies above the
        // entries that they cover.
        let newest = next.map_or(Seq::ZERO, |version| version.stamp.seq());
        if covering.is_some_and(|covering| newest < covering) {
            return Reading::Covered;
        }
        while let Some(version) = next {
            let kind = version.stamp.kind();
            visit(kind, version.bytes);
            if kind.is_base() {
                return Reading::Base;
            }
            // SAFETY: the link was loaded from a version of this list, whose nodes live as long as
            // the guard of `history` (MEMTABLE-4).
            next = unsafe { history.at(version.older()) };
        }
        Reading::End
    }

    /// Returns the keys of ranges that were deleted up to `seq`: all that is older than the
    /// memtable is deleted there. O(n log n); for all ranges, only the first time after one was
    /// deleted.
    pub(crate) fn range_deletes(&self, seq: Seq) -> Arc<RangeSet> {
        self.range_deletes.set(seq)
    }

    /// Returns the keys of ranges that were deleted after `after` and up to `seq`. O(n log n).
    pub(crate) fn range_deletes_between(&self, after: Seq, seq: Seq) -> RangeSet {
        self.range_deletes.set_between(after, seq)
    }

    /// Returns the keys within a range that were written after the first number and up to the
    /// second, in any order, maybe several times; `None` if that was not logged. Keys are logged
    /// from the first call on, as long as such calls are made, and the writes between two of them
    /// are few. O(n) for n writes.
    pub(crate) fn recent_keys(
        &self,
        seqs: [Seq; 2],
        key_range: KeyRange<'_>,
    ) -> Option<Vec<Vec<u8>>> {
        self.writing.lock().between(seqs, key_range)
    }

    /// Returns the sequence number of the newest version of a key up to `seq`; 0 if there is none.
    fn newest_seq(history: History<'_>, seq: Seq) -> Seq {
        // SAFETY: the newest link is one of the list of this key, whose nodes live as long as the
        // guard of `history` (MEMTABLE-4).
        let mut next = unsafe { history.at(history.newest()) };
        while let Some(version) = next {
            if version.stamp.seq() <= seq {
                return version.stamp.seq();
            }
            // SAFETY: the link was loaded from a version of this list, whose nodes live as long as
            // the guard of `history` (MEMTABLE-4).
            next = unsafe { history.at(version.older()) };
        }
        Seq::ZERO
    }

    /// Ranges that a walk at `seq` finds deleted in all that is older than the memtable; `None` if
    /// there is nothing. O(1).
    pub(crate) fn deletes_in_older(&self, seq: Seq) -> Option<Deleted> {
        self.range_deletes.as_of(seq).map(Deleted::as_of)
    }

    /// Returns the median of a range, which is a key; `None` if it has few keys. O(log n) if the
    /// keys of the range have been counted since they were written, else O(those that were written
    /// since).
    pub(crate) fn median(&self, low: &[u8], high: Option<&[u8]>) -> Option<Median> {
        let guard = ats_sync::pin();
        let low = Some(low);
        let skip = |most| {
            let go_on = &mut || ControlFlow::Continue(());
            let range = KeyRange { low, high };
            self.tree.skip(range, Direction::Up, most, &guard, go_on)
        };
        let entries = match skip(usize::MAX) {
            Skipped::All(count) if count > FEW => count,
            _ => return None,
        };
        match skip(entries / 2) {
            Skipped::At(record, _) => Some(Median {
                bound: History::of(record, &guard).key().to_vec(),
                entries: entries as u64,
            }),
            // Keys of a memtable do not go away, and it is not told to pause.
            Skipped::All(_) | Skipped::Paused { .. } => None,
        }
    }

    /// Returns `true` if there is nothing in it.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.range_deletes.is_empty() && self.tree.is_empty()
    }

    /// Returns the number of keys. O(1), unless many threads write.
    pub(crate) fn len(&self) -> usize {
        self.tree.len()
    }

    /// Returns the bytes of memory. O(1), unless many threads write.
    pub(crate) fn bytes(&self) -> usize {
        self.tree.bytes() + self.node_bytes.load(Ordering::Relaxed) + self.range_deletes.bytes()
    }

    /// Returns the versions of a key, the newest first.
    #[cfg(test)]
    fn versions(&self, key: &[u8]) -> Vec<tests::KeptVersion> {
        let guard = ats_sync::pin();
        let Some(record) = self.tree.get(key, &guard) else {
            return Vec::new();
        };
        let history = History::of(record, &guard);
        let mut versions = Vec::new();
        let mut link = history.newest();
        // SAFETY: the links are those of this list.
        while let Some(version) = unsafe { history.at(link) } {
            versions.push(tests::KeptVersion::of(version));
            link = version.older();
        }
        versions
    }
}
