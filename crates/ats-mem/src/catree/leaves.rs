//! Changes within a base node: records put into leaves and taken out, leaves split and merged.
//!
//! The caller holds the lock of the base node throughout.

use super::base::Spot;
use super::node::{LEAF, Leaf, node_ptr, separator_between};
use super::nodes::{Nodes, Replacement, retire};
use super::trail::{Fences, Step, Trail, build, replace};
use super::{CaTree, Kind, Seat, kind, narrow};
use crate::record::{Record, RecordBox, Release};
use crate::slab::SlabBox;
use ats_sync::Guard;
use ats_sync::shim::atomic::Ordering;

/// A leaf with at most this many records is merged with a neighbour if both fit together.
const MERGE_BELOW: usize = LEAF / 4;
/// Two leaves are merged only if this many records suffice for both, so that the next inserts do not
/// split them again. An empty leaf always goes.
pub(super) const MERGED_MOST: usize = LEAF * 3 / 4;
/// A full leaf whose tombstones leave at most this many records is copied instead of split.
const COPIED_MOST: usize = LEAF * 7 / 8;
/// A leaf is copied without its tombstones when it has more than two for each record, and these: often
/// enough that a leaf whose keys go shrinks and is merged, and seldom enough that a leaf whose keys
/// come and go, half of them absent at any time, is not.
const TOMBSTONES_SPARED: usize = 4;

impl<R: Release> CaTree<R> {
    /// Puts a record where `found` says, in the place of `current`, which the caller retires.
    pub(super) fn put(
        &self,
        seat: &Seat<'_, R>,
        found: Result<usize, usize>,
        current: Option<&Record<R>>,
        record: RecordBox<R>,
        guard: &Guard,
    ) {
        let bytes = record.bytes() as i64 - current.map_or(0, |old| old.bytes() as i64);
        seat.base.account(i64::from(current.is_none()), bytes);
        let record = record.into_raw();
        let spot = match found {
            Ok(at) => {
                seat.leaf.put(at, record);
                spot(seat.leaf, at)
            }
            Err(at) => self.insert(seat, at, record, guard),
        };
        seat.base.set_last(spot);
    }

    /// Puts the record of a new key into a leaf. Says where it is.
    fn insert(&self, seat: &Seat<'_, R>, at: usize, record: *mut Record<R>, guard: &Guard) -> Spot {
        let leaf = seat.leaf;
        if at == leaf.len() && leaf.append(record) {
            return Spot {
                grew: true,
                ..spot(leaf, at)
            };
        }
        if let Some(copy) = leaf.with_inserted(at, record) {
            let copy = SlabBox::into_raw(copy);
            leaf.header.set_dead();
            seat.link.store(copy.cast(), Ordering::Release);
            retire::<R>(node_ptr(leaf), guard);
            return Spot {
                leaf: copy.cast(),
                at,
                grew: at == 0,
            };
        }
        // SAFETY: the caller owns the record until it is published below.
        let key = unsafe { &*record }.key();
        let trail = self.trail(key, guard);
        let mut nodes = Nodes::new(guard);
        let mut records = leaf.records();
        // SAFETY: records of a leaf whose lock we hold are alive.
        let at = records.partition_point(|other| unsafe { &**other }.key() < key);
        records.insert(at, record);
        nodes.bury(node_ptr(leaf));
        let with = if records.len() <= COPIED_MOST {
            Replacement::One(nodes.leaf(trail.fences, &records, None))
        } else {
            // A key at the end is likely one of an ascending row, of which more will follow: they get a
            // leaf of their own, and this one stays full. The same for descending rows.
            let middle = match at {
                0 => 1,
                _ if at + 1 == records.len() => at,
                _ => records.len() / 2,
            };
            two_leaves(&mut nodes, trail.fences, &records, middle)
        };
        publish(&trail, with, &mut nodes);
        seat.base.account(0, nodes.finish());
        Spot {
            grew: at == 0 || at + 1 == records.len(),
            ..Spot::UNKNOWN
        }
    }

    /// Takes the record at a place out of its leaf; the record itself is not retired.
    pub(super) fn take_out(&self, seat: &Seat<'_, R>, at: usize, key: &[u8], guard: &Guard) {
        let leaf = seat.leaf;
        if leaf.bury(at, key) {
            let live = leaf.live();
            let tombstones = leaf.len() - live;
            if live > 0 && tombstones <= 2 * live + TOMBSTONES_SPARED {
                return seat.base.set_last(spot(leaf, at));
            }
            self.shrink(seat, leaf.records(), key, guard);
        } else {
            let mut records = leaf.records();
            // Counted among the records, the place is another one if there are tombstones before it.
            let tombstones = (0..at)
                .filter(|at| leaf.record(*at, guard).is_none())
                .count();
            records.remove(at - tombstones);
            self.shrink(seat, records, key, guard);
        }
        seat.base.set_last(Spot::UNKNOWN);
    }

    /// Replaces a leaf by one with these records, or merges them into a neighbour if they are few.
    fn shrink(&self, seat: &Seat<'_, R>, records: Vec<*mut Record<R>>, key: &[u8], guard: &Guard) {
        let trail = self.trail(key, guard);
        let mut nodes = Nodes::new(guard);
        let merged = records.len() <= MERGE_BELOW && merge(&trail, &records, &mut nodes);
        if !merged {
            nodes.bury(node_ptr(seat.leaf));
            let leaf = nodes.leaf(trail.fences, &records, None);
            publish(&trail, Replacement::One(leaf), &mut nodes);
        }
        seat.base.account(0, nodes.finish());
    }
}

fn spot<R: Release>(leaf: &Leaf<R>, at: usize) -> Spot {
    Spot {
        leaf: node_ptr(leaf),
        at,
        grew: false,
    }
}

/// Puts `with` in the place of the leaf of a trail, which has been buried.
fn publish<R: Release>(trail: &Trail<'_, R>, with: Replacement, nodes: &mut Nodes<'_, R>) {
    let root = &trail.base.root;
    replace(root, trail.base_fences, &trail.steps, with, nodes);
}

/// Tries to move the records of the leaf of a trail into one of its neighbours under the same parent.
fn merge<R: Release>(
    trail: &Trail<'_, R>,
    records: &[*mut Record<R>],
    nodes: &mut Nodes<'_, R>,
) -> bool {
    let Some((parent, above)) = trail.steps.split_last() else {
        return false;
    };
    let (inner, at) = (parent.inner, parent.place);
    // The right neighbour first. Where keys are removed in ascending order it is still full, and
    // the left one has been thinned out.
    let right = (at < inner.len()).then_some(at);
    let lefts = right.into_iter().chain(at.checked_sub(1));
    let partner = lefts
        .map(|left| (left, inner.child(if left == at { at + 1 } else { left })))
        .find_map(|(left, other)| match kind::<R>(other, nodes.guard) {
            Kind::Leaf(leaf) => {
                let others = leaf.records();
                fit_together(records.len(), others.len()).then_some((left, other, others))
            }
            _ => None,
        });
    let Some((left, other, others)) = partner else {
        return false;
    };
    let merged = match left == at {
        true => [records, &others].concat(),
        false => [&others, records].concat(),
    };
    nodes.bury(node_ptr(trail.leaf));
    nodes.bury(other);
    let fences = Fences {
        low: narrow(inner, left, parent.fences).low,
        high: narrow(inner, left + 1, parent.fences).high,
    };
    let merged = nodes.leaf(fences, &merged, None);
    nodes.bury(node_ptr(inner));
    let with = without_pair(nodes, parent, left, merged);
    replace(&trail.base.root, trail.base_fences, above, with, nodes);
    true
}

/// Whether two leaves with this many records each should be one.
pub(super) fn fit_together(one: usize, other: usize) -> bool {
    one == 0 || other == 0 || one + other <= MERGED_MOST
}

/// What comes in the place of a node of which the children at `left` and behind it become one. An inner
/// node with one child is superfluous; the child takes its place.
pub(super) fn without_pair<R: Release>(
    nodes: &mut Nodes<'_, R>,
    step: &Step<'_>,
    left: usize,
    child: super::NodePtr,
) -> Replacement {
    let mut separators = step.inner.separators();
    let mut children = step.inner.children();
    separators.remove(left);
    children.remove(left + 1);
    children[left] = child;
    match separators.is_empty() {
        true => Replacement::One(child),
        false => build(nodes, step, &separators, &children),
    }
}

/// The records as two leaves, of which the second begins at `middle`.
pub(super) fn two_leaves<R: Release>(
    nodes: &mut Nodes<'_, R>,
    fences: Fences<'_>,
    records: &[*mut Record<R>],
    middle: usize,
) -> Replacement {
    // SAFETY: records of a leaf whose lock we hold are alive, and so is the one being inserted.
    let key = |at: usize| unsafe { &*records[at] }.key();
    let fence = separator_between(key(middle - 1), key(middle));
    let left = nodes.leaf(fences.below(fence), &records[..middle], Some(key(middle)));
    let right = nodes.leaf(
        fences.from(fence),
        &records[middle..],
        Some(key(middle - 1)),
    );
    Replacement::Two(left, fence.to_vec(), right)
}
