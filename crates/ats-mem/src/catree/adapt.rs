//! Adaptation: the decision to split and join base nodes.
//!
//! Each writer checks the statistics of its base node before it unlocks it. A thread that adapts
//! holds the lock of the base node and the lock of adaptation. It only tries the latter (CATREE-5).

use super::base::{Base, EMPTY_JOIN_BELOW, IDLE_COST, SPLIT_ABOVE, Spot};
use super::header::FANOUT;
use super::kind::Kind;
use super::locked_leaf::LockedLeaf;
use super::path::PathNode;
use super::routes::Routes;
use super::split_graft::SplitPoint;
use crate::forcing::Forced;
use crate::record::Release;
use ats_sync::{Guard, Held};
use std::ops::ControlFlow;

/// Number of leaves by which writers of one row may be apart at an end of a base node, see
/// `is_one_row`.
const ROW_AT_AN_END: usize = (FANOUT + 1) / 4;

/// Largest number of joins in one visit of `join_idle`: well under a millisecond.
const JOINS_A_VISIT: usize = 256;

impl<R: Release> Routes<R> {
    /// Ends a write: splits or joins its base node if the statistics demand it, and unlocks it.
    /// `before` is the spot of the previous write; `removed` is `true` if this one removed a
    /// record.
    #[inline]
    pub(super) fn adapt_after(
        &self,
        locked: LockedLeaf<'_, R>,
        before: Spot<'_, R>,
        removed: bool,
        key: &[u8],
        guard: &Guard,
    ) {
        let statistics = locked.held.statistics();
        let forced = self.decide_forced();
        let fitting = statistics <= SPLIT_ABOVE && !locked.base.wants_to_join(statistics);
        if !fitting || removed || forced.is_some() {
            self.adapt(locked, before, removed, forced, key, guard);
        }
    }

    #[cold]
    fn adapt(
        &self,
        locked: LockedLeaf<'_, R>,
        before: Spot<'_, R>,
        removed: bool,
        forced: Option<Forced>,
        key: &[u8],
        guard: &Guard,
    ) {
        let LockedLeaf { base, held, .. } = locked;
        let mut first = false;
        if matches!(forced, Some(Forced::Split)) {
            first = self.split(base, &held, SplitPoint::Middle, key, guard);
        } else if matches!(forced, Some(Forced::Join)) {
            self.join(base, &held, key, guard);
        } else if held.statistics() > SPLIT_ABOVE {
            first = self.split_contended(base, &held, before, key, guard);
        } else if removed && held.statistics() < EMPTY_JOIN_BELOW && is_empty(base) {
            self.join(base, &held, key, guard);
        } else if base.wants_to_join(held.statistics()) {
            let spares = |neighbour: &Base<R>| base.puts_off_join_with(neighbour);
            self.join_unless(base, &held, key, spares, guard);
        }
        drop(held);
        if first {
            self.report_first_split();
        }
    }

    /// Splits a base node between the last two writers.
    fn split_contended(
        &self,
        base: &Base<R>,
        held: &Held<'_>,
        before: Spot<'_, R>,
        key: &[u8],
        guard: &Guard,
    ) -> bool {
        let Some(other) = key_at(before, guard) else {
            // The next write will know the spot of this one.
            return false;
        };
        if other == key {
            // A split cannot separate writers that contend for one key.
            held.reset_statistics();
            return false;
        }
        let (low, high) = if other < key {
            (other, key)
        } else {
            (key, other)
        };
        if before.is_new && base.last(held, guard).is_new && self.is_one_row(low, high, guard) {
            held.reset_statistics();
            return false;
        }
        self.split(base, held, SplitPoint::Between(low, high), key, guard)
    }

    /// Returns `true` if two new, ascending keys likely belong to one row: ascending keys that
    /// writers draw before they insert them, so that they arrive slightly out of order. Writers of
    /// a row would contend again after any split.
    ///
    /// The test is that hardly a leaf lies between them. If one is at an end of the base node,
    /// which the caller holds, the other may be farther away: the row may have advanced while a
    /// writer slept.
    fn is_one_row(&self, low: &[u8], high: &[u8], guard: &Guard) -> bool {
        let (first, last) = (self.root().path(low, guard), self.root().path(high, guard));
        let at_an_end =
            first.fences.low == first.base_fences.low || last.fences.high == last.base_fences.high;
        let apart = leaves_apart(&first.steps, &last.steps);
        apart <= if at_an_end { ROW_AT_AN_END } else { 1 }
    }

    /// Lets base nodes without writers since the last visit drift towards a join. Returns `true` if
    /// there is only one base node.
    ///
    /// Ends after [`JOINS_A_VISIT`], so that the epoch can advance. The other nodes get their turn,
    /// because those just joined will not join again before they have been visited a few times.
    pub(super) fn join_idle(&self, guard: &Guard) -> bool {
        let mut left = JOINS_A_VISIT;
        self.root().for_each_base(guard, &mut |base, fences| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            // A locked base node is not idle.
            let Some(held) = base.try_lock() else {
                return ControlFlow::Continue(());
            };
            if !base.header.is_dead() && base.was_idle() {
                held.count(IDLE_COST);
                base.set_join_delay(base.join_delay().saturating_sub(1));
                if base.wants_to_join(held.statistics()) {
                    self.join(base, &held, fences.low.unwrap_or(&[]), guard);
                    left -= 1;
                }
            }
            ControlFlow::Continue(())
        });
        self.base_nodes() == 1
    }
}

/// Returns the number of leaves by which one path's leaf is to the left of another's; a large
/// number if they are not under the same node of the lowest level, or two adjacent ones.
fn leaves_apart<R: Release>(left: &[PathNode<'_, R>], right: &[PathNode<'_, R>]) -> usize {
    const MANY: usize = usize::MAX;
    let mut parted = false;
    for (level, (one, other)) in left.iter().zip(right).enumerate() {
        let is_lowest = level + 1 == left.len().max(right.len());
        let to_its_end = one.inner.len() - one.child_index;
        match (parted, is_lowest) {
            (false, true) => return other.child_index - one.child_index,
            (false, false) if other.child_index == one.child_index => {}
            (false, false) if other.child_index == one.child_index + 1 => parted = true,
            (true, true) => return to_its_end + 1 + other.child_index,
            (true, false) if to_its_end == 0 && other.child_index == 0 => {}
            _ => return MANY,
        }
    }
    // Both paths end at the root, or one is a prefix of the other.
    if left.is_empty() && right.is_empty() {
        0
    } else {
        MANY
    }
}

/// Returns `true` if a base node, which the caller holds, has no record.
fn is_empty<R: Release>(base: &Base<R>) -> bool {
    matches!(base.root().kind(), Kind::Leaf(leaf) if leaf.live() == 0)
}

/// Returns the key written at a spot, or another key of the leaf.
fn key_at<'g, R: Release>(spot: Spot<'g, R>, guard: &'g Guard) -> Option<&'g [u8]> {
    let Kind::Leaf(leaf) = spot.leaf?.kind() else {
        return None;
    };
    let there = leaf.record(spot.at, guard);
    let any = || (0..leaf.len()).find_map(|at| leaf.record(at, guard));
    Some(there.or_else(any)?.key())
}
