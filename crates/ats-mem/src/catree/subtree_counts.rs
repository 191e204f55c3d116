//! How many records are below each child of an inner node.
//!
//! A thread that [counts records](super::order_statistics) stores what it has counted in the inner nodes
//! it passed. From then on writers keep these numbers right: a writer that puts a new key or removes one
//! goes down the way of the key once more and adds to them. Where no thread ever counts there is nothing
//! to keep right, and a flag of the base node says so.
//!
//! # Invariants
//! - SC1. Subtree counts are read and written only by the holder of the lock of the base node they are
//!   below. They move to another base node only together with their inner node, and only the thread that
//!   holds the locks of both moves them; so they need no order of their own.
//! - SC2. A subtree count is the number of records in the leaves below its child, pending ones included, as
//!   [`Base::account_records`] counts them. It is changed before the leaf is, under the same lock.
//! - SC3. A change of structure moves no record into a node that stays, or out of it. So a new inner node
//!   can have the subtree counts that the old one had of the children that both share.
//! - SC4. If an inner node below a base node has subtree counts, the base node is marked.

use super::base::Base;
use super::kind::Kind;
use super::node::{FANOUT, Inner};
use super::search::Portable;
use crate::record::Release;
use ats_sync::shim::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// No number of records.
const UNKNOWN: u64 = u64::MAX;

type Numbers = [AtomicU64; FANOUT + 1];

/// The subtree counts of one inner node. Takes memory of its own when the first is set.
// A cell that is set once would do, since all of this happens under a lock (SC1); this one needs no
// proof of that.
pub(super) struct SubtreeCounts(OnceLock<Box<Numbers>>);

impl SubtreeCounts {
    pub(super) fn unknown() -> Self {
        SubtreeCounts(OnceLock::new())
    }

    /// Number of records below the child at a place, if it is known.
    pub(super) fn get(&self, place: usize) -> Option<u64> {
        let count = self.0.get()?[place].load(Ordering::Relaxed);
        (count != UNKNOWN).then_some(count)
    }

    /// Remembers a number. Returns how many bytes of memory that has taken.
    pub(super) fn set(&self, place: usize, count: u64) -> usize {
        let before = self.bytes();
        let unknown = || Box::new(std::array::from_fn(|_| AtomicU64::new(UNKNOWN)));
        self.0.get_or_init(unknown)[place].store(count, Ordering::Relaxed);
        self.bytes() - before
    }

    /// Adds to a number, if it is known.
    fn add(&self, place: usize, more: i64) {
        if let Some(count) = self.get(place) {
            self.set(place, count.wrapping_add_signed(more));
        }
    }

    /// Takes over what the old node `from` knew of children that this one, of `to`, has as well.
    pub(super) fn inherit<R: Release>(to: &Inner<R>, from: &Inner<R>) {
        if from.subtree_counts.0.get().is_none() {
            return;
        }
        let mut rest = 0..from.len() + 1;
        for place in 0..to.len() + 1 {
            let child = to.child(place);
            let Some(at) = rest.clone().find(|at| from.child(*at) == child) else {
                continue;
            };
            rest.start = at + 1;
            if let Some(count) = from.subtree_counts.get(at) {
                to.subtree_counts.set(place, count);
            }
        }
    }

    /// Bytes of memory beside the node.
    pub(super) fn bytes(&self) -> usize {
        self.0.get().map_or(0, |_| size_of::<Numbers>())
    }
}

/// Counts what a writer is about to do with a key: in the base node, of which it holds the lock, and in
/// the subtree counts on the way to the key.
#[inline]
pub(super) fn account<R: Release>(base: &Base<R>, key: &[u8], records: i64, bytes: i64) {
    base.account_bytes(bytes);
    if records != 0 {
        base.account_records(records);
        if base.counts_subtrees() {
            keep_subtree_counts(base, key, records);
        }
    }
}

#[cold]
fn keep_subtree_counts<R: Release>(base: &Base<R>, key: &[u8], records: i64) {
    let mut node = base.root();
    while let Kind::Inner(inner) = node.kind() {
        let place = inner.child_for::<Portable>(key);
        inner.subtree_counts.add(place, records);
        node = inner.child(place);
    }
}
