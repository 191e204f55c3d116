//! Changes within a base node: records put into leaves and taken out, leaves split and merged.
//!
//! The caller holds the lock of the base node throughout.

use super::base::Spot;
use super::fences::Fences;
use super::header::{NodePtr, node_ptr};
use super::node::{Item, LEAF, Leaf, separator_between};
use super::nodes::{Nodes, Parts, Replacement, retire};
use super::path::{Path, PathNode, build, replace};
use super::subtree_counts::account;
use super::{CaTree, Kind, LockedLeaf, kind};
use crate::record::{Record, RecordBox, Release};
use crate::slab::SlabBox;
use ats_sync::Guard;
use ats_sync::shim::atomic::Ordering;

/// A leaf with at most this many records is merged with a neighbour if both fit together.
const MERGE_BELOW: usize = LEAF / 4;
/// Two leaves are merged only if this many records suffice for both, so that the next inserts do not
/// split them again. An empty leaf always goes.
const MERGED_MOST: usize = LEAF * 3 / 4;
/// A full leaf whose tombstones leave at most this many records is copied instead of split.
const COPIED_MOST: usize = LEAF * 7 / 8;
/// A leaf that is too full gives to a neighbour that has at most this many records. More would make
/// leaves fuller and inserts dearer: with two thirds, random inserts fill leaves by 78 % instead of 70 %,
/// and build twice as many.
const SHARED_MOST: usize = LEAF * 2 / 3;
/// A leaf is copied without its tombstones when it has more than two for each record, and these: often
/// enough that a leaf whose keys go shrinks and is merged, and seldom enough that a leaf whose keys
/// come and go, half of them absent at any time, is not.
const TOMBSTONES_SPARED: usize = 4;

impl<R: Release> CaTree<R> {
    /// Puts a record where its key was found, in the place of `current`, which the caller retires.
    pub(super) fn put(
        &self,
        locked: &mut LockedLeaf<'_, R>,
        current: Option<&Record<R>>,
        record: RecordBox<R>,
        guard: &Guard,
    ) {
        let bytes = record.bytes() as i64 - current.map_or(0, |old| old.bytes() as i64);
        let more = i64::from(current.is_none());
        account::<R>(locked.base, record.key(), more, bytes, guard);
        let record = record.into_raw();
        let spot = match locked.found {
            Ok(at) => {
                locked.leaf.put(at, record);
                spot(locked.leaf, at)
            }
            Err(at) => self.insert(locked, at, record, guard),
        };
        locked.base.set_last(spot);
    }

    /// Puts the record of a new key into a leaf. Says where it is.
    fn insert(
        &self,
        locked: &mut LockedLeaf<'_, R>,
        at: usize,
        record: *mut Record<R>,
        guard: &Guard,
    ) -> Spot {
        let leaf = locked.leaf;
        if at == leaf.len() && leaf.append(record) {
            self.point_finger(locked, record, guard);
            return Spot {
                grew: true,
                is_new: true,
                ..spot(leaf, at)
            };
        }
        if let Some(copy) = leaf.with_inserted(at, record) {
            let copy = SlabBox::into_raw(copy);
            leaf.header().set_dead();
            let link = locked.link.expect("the finger leads to leaves that append");
            link.store(copy.cast(), Ordering::Release);
            locked
                .base
                .finger(&mut locked.held)
                .follow(node_ptr(leaf), copy.cast());
            retire::<R>(node_ptr(leaf), guard);
            return Spot {
                leaf: copy.cast(),
                at,
                grew: at == 0,
                is_new: true,
            };
        }
        locked.base.finger(&mut locked.held).lift();
        let last = locked.base.last();
        // Behind the record that was put last: a row that grows between other keys.
        let is_row_inside = last.leaf == node_ptr(leaf) && last.at + 1 == at;
        // SAFETY: the caller owns the record until it is published below.
        let key = unsafe { &*record }.key();
        let path = self.path(key, guard);
        let mut nodes = Nodes::new(guard);
        let mut items = leaf.items();
        let at = among_records(leaf, at, guard);
        items.insert(at, Item::new(record));
        nodes.mark_dead(node_ptr(leaf));
        let is_end = at == 0 || at + 1 == items.len();
        if items.len() <= COPIED_MOST {
            let copy = nodes.leaf(path.fences, &items, None);
            publish(&path, Replacement::One(copy), &mut nodes);
        } else if is_end || is_row_inside || !share(&path, &items, &mut nodes) {
            // A key at the end is likely one of an ascending row, of which more will follow: they get a
            // leaf of their own, and this one stays full. The same for descending rows. A row that grows
            // inside gets to the end of its leaf.
            let middle = match at {
                0 => 1,
                _ if is_end => at,
                _ if is_row_inside => at + 1,
                _ => items.len() / 2,
            };
            let two = two_leaves(&mut nodes, path.fences, &items, middle);
            if at + 1 == items.len() {
                let finger = locked.base.finger(&mut locked.held);
                finger.point(two.right, path.fences.high);
            }
            publish(&path, two.into(), &mut nodes);
        }
        locked.base.account_nodes(nodes.finish());
        Spot {
            grew: is_end,
            is_new: true,
            ..Spot::UNKNOWN
        }
    }

    /// Lets the finger point at a leaf to which two writes in a row have added at the end.
    fn point_finger(&self, locked: &mut LockedLeaf<'_, R>, record: *mut Record<R>, guard: &Guard) {
        let leaf = node_ptr(locked.leaf);
        let last = locked.base.last();
        let is_row = last.grew && last.leaf == leaf;
        if is_row && !locked.base.finger(&mut locked.held).points_at(leaf) {
            // SAFETY: the record has just been put into a leaf of a base node that we hold.
            let path = self.path(unsafe { &*record }.key(), guard);
            let finger = locked.base.finger(&mut locked.held);
            finger.point(leaf, path.fences.high);
        }
    }

    /// Takes the record at a place out of its leaf; the record itself is not retired.
    pub(super) fn take_out(
        &self,
        locked: &mut LockedLeaf<'_, R>,
        at: usize,
        key: &[u8],
        guard: &Guard,
    ) {
        let leaf = locked.leaf;
        if leaf.put_tombstone(at, key) {
            let live = leaf.live();
            let tombstones = leaf.len() - live;
            if live > 0 && tombstones <= 2 * live + TOMBSTONES_SPARED {
                return locked.base.set_last(spot(leaf, at));
            }
            self.shrink(locked, leaf.items(), key, guard);
        } else {
            let mut items = leaf.items();
            items.remove(among_records(leaf, at, guard));
            self.shrink(locked, items, key, guard);
        }
        locked.base.set_last(Spot::UNKNOWN);
    }

    /// Replaces a leaf by one with these records, or merges them into a neighbour if they are few.
    fn shrink(
        &self,
        locked: &mut LockedLeaf<'_, R>,
        items: Vec<Item<R>>,
        key: &[u8],
        guard: &Guard,
    ) {
        locked.base.finger(&mut locked.held).lift();
        let path = self.path(key, guard);
        let mut nodes = Nodes::new(guard);
        let merged = items.len() <= MERGE_BELOW && merge(&path, &items, &mut nodes);
        if !merged {
            nodes.mark_dead(node_ptr(locked.leaf));
            let leaf = nodes.leaf(path.fences, &items, None);
            publish(&path, Replacement::One(leaf), &mut nodes);
        }
        locked.base.account_nodes(nodes.finish());
    }
}

fn spot<R: Release>(leaf: &Leaf<R>, at: usize) -> Spot {
    Spot {
        leaf: node_ptr(leaf),
        at,
        grew: false,
        is_new: false,
    }
}

/// Puts `with` in the place of the leaf of a path, which has been marked dead.
fn publish<R: Release>(path: &Path<'_, R>, with: Replacement, nodes: &mut Nodes<'_, R>) {
    let root = &path.base.root;
    replace(root, path.base_fences, &path.steps, with, nodes);
}

/// The place of a record of a leaf if tombstones are left out.
fn among_records<R: Release>(leaf: &Leaf<R>, at: usize, guard: &Guard) -> usize {
    (0..at)
        .filter(|at| leaf.record(*at, guard).is_some())
        .count()
}

/// Two leaves side by side under one parent: that of a path, and a neighbour.
struct Pair<'g, R: Release> {
    /// The place of the left one.
    left: usize,
    /// The items of both.
    items: Vec<Item<R>>,
    /// The range of both.
    fences: Fences<'g>,
    neighbour: NodePtr,
}

impl<'g, R: Release> Pair<'g, R> {
    /// Looks for a neighbour whose number of records suits, and combines it with `items`.
    fn find(
        step: &PathNode<'g>,
        items: &[Item<R>],
        suits: impl Fn(usize) -> bool,
        guard: &'g Guard,
    ) -> Option<Self> {
        let (inner, at) = (step.inner, step.place);
        // The right neighbour first. Where keys are removed in ascending order it is still full, and
        // the left one has been thinned out.
        let right = (at < inner.len()).then_some(at);
        let mut lefts = right.into_iter().chain(at.checked_sub(1));
        lefts.find_map(|left| {
            let is_right = left == at;
            let neighbour = inner.child(if is_right { at + 1 } else { left });
            let Kind::Leaf(leaf) = kind::<R>(neighbour, guard) else {
                return None;
            };
            let others = leaf.items();
            suits(others.len()).then(|| Pair {
                left,
                items: match is_right {
                    true => [items, &others].concat(),
                    false => [&others, items].concat(),
                },
                fences: step
                    .fences
                    .of_child(inner, left)
                    .to(step.fences.of_child(inner, left + 1)),
                neighbour,
            })
        })
    }
}

/// Tries to move the items of the leaf of a path into one of its neighbours under the same parent.
fn merge<R: Release>(path: &Path<'_, R>, items: &[Item<R>], nodes: &mut Nodes<'_, R>) -> bool {
    let Some((step, above)) = path.steps.split_last() else {
        return false;
    };
    let suits = |others| fit_together(items.len(), others);
    let Some(pair) = Pair::find(step, items, suits, nodes.guard) else {
        return false;
    };
    nodes.mark_dead(node_ptr(path.leaf));
    nodes.mark_dead(pair.neighbour);
    nodes.mark_dead(node_ptr(step.inner));
    let merged = nodes.leaf(pair.fences, &pair.items, None);
    let with = without_pair(nodes, step, pair.left, merged);
    replace(&path.base.root, path.base_fences, above, with, nodes);
    true
}

/// Tries to give records of the leaf of a path, which is marked dead and too full, to a neighbour that has
/// room, so that leaves are fuller than splitting alone would leave them (the idea of the B*-tree).
fn share<R: Release>(path: &Path<'_, R>, items: &[Item<R>], nodes: &mut Nodes<'_, R>) -> bool {
    let Some((step, above)) = path.steps.split_last() else {
        return false;
    };
    let suits = |others| others <= SHARED_MOST;
    let Some(pair) = Pair::find(step, items, suits, nodes.guard) else {
        return false;
    };
    nodes.mark_dead(pair.neighbour);
    nodes.mark_dead(node_ptr(step.inner));
    let middle = pair.items.len() / 2;
    let two = two_leaves(nodes, pair.fences, &pair.items, middle);
    let mut separators = step.inner.separators();
    let mut children = step.inner.children();
    separators[pair.left] = &two.separator;
    children[pair.left] = two.left;
    children[pair.left + 1] = two.right;
    let with = build(nodes, step, &separators, &children);
    replace(&path.base.root, path.base_fences, above, with, nodes);
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
    step: &PathNode<'_>,
    left: usize,
    child: NodePtr,
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

/// The items as two leaves, of which the second begins at `middle`.
pub(super) fn two_leaves<R: Release>(
    nodes: &mut Nodes<'_, R>,
    fences: Fences<'_>,
    items: &[Item<R>],
    middle: usize,
) -> Parts {
    let key = |at: usize| items[at].key();
    let fence = separator_between(key(middle - 1), key(middle));
    let left = nodes.leaf(fences.below(fence), &items[..middle], Some(key(middle)));
    let right = nodes.leaf(fences.from(fence), &items[middle..], Some(key(middle - 1)));
    Parts {
        left,
        separator: fence.to_vec(),
        right,
    }
}
