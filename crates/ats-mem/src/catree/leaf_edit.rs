//! Changes within a base node: records put into leaves and taken out, leaves split and merged.
//!
//! The caller holds the lock of the base node throughout. Where nodes above the leaf change, the
//! root tells their path.

use super::base::Spot;
use super::block::Added;
use super::fences::Fences;
use super::heads::common_prefix;
use super::item::Item;
use super::kind::Kind;
use super::leaf::Leaf;
use super::link::Node;
use super::locked_leaf::LockedLeaf;
use super::nodes::{Nodes, Parts, Replacement, retire};
use super::path::{Path, PathNode, build, replace};
use super::root::Root;
use super::sizes::LEAF;
use super::slot::Word;
use crate::record::{Record, RecordBox, Release};
use ats_sync::Guard;

/// A leaf with at most this many records is merged with a neighbour if both fit together.
const MERGE_BELOW: usize = LEAF / 4;
/// Two leaves are merged only if this many records suffice for both, so that the next inserts do
/// not split them again. An empty leaf always goes.
const MERGED_MOST: usize = LEAF * 3 / 4;
/// A full leaf whose tombstones leave at most this many records is copied instead of split.
const COPIED_MOST: usize = LEAF * 7 / 8;
/// A leaf that is too full gives to a neighbour that has at most this many records. More would make
/// leaves fuller and inserts dearer: with two thirds, random inserts fill leaves by 78 % instead of
/// 70 %, and build twice as many.
const SHARED_MOST: usize = LEAF * 2 / 3;
/// A leaf is copied without its tombstones when it has more than two for each record, and these:
/// often enough that a leaf whose keys go shrinks and is merged, and seldom enough that a leaf
/// whose keys come and go, half of them absent at any time, is not.
const TOMBSTONES_SPARED: usize = 4;

impl<'g, R: Release> LockedLeaf<'g, R> {
    /// Puts a record where its key was found, in the place of another one, which the caller
    /// retires, or as a new one.
    pub(super) fn put_record(&mut self, record: RecordBox<R>, root: &Root<R>, guard: &'g Guard) {
        // SAFETY: it goes into the store, and is freed by retiring only (RECORD-2), hence after the
        // guard.
        let record = unsafe { &*record.into_raw() };
        let spot = match self.found {
            Some(at) => {
                self.leaf.put(at, Word::of(record));
                spot(self.leaf, at)
            }
            None => self.insert(record, root, guard),
        };
        self.base.set_last(spot);
    }

    /// Puts the record of a new key into a leaf. Says where it is.
    fn insert(&mut self, record: &'g Record<R>, root: &Root<R>, guard: &'g Guard) -> Spot<'g, R> {
        let leaf = self.leaf;
        if let Some(added) = leaf.add(record) {
            let grew = added == Added::Above;
            if grew {
                self.point_finger(record, root, guard);
            }
            return Spot {
                grew,
                is_new: true,
                ..spot(leaf, leaf.len() - 1)
            };
        }
        if let Some((copy, at)) = leaf.with_added(record, guard) {
            leaf.header().set_dead();
            let link = self.link.expect("the finger leads to leaves that append");
            // SAFETY: the lock is held, and the leaf, to which the link leads, is dead (CATREE-1,
            // CATREE-3).
            unsafe { link.store(copy.node()) };
            if let (Some(leaf), Some(copy)) = (leaf.full(), copy.full())
                && let Some(finger) = self.base.finger(&mut self.held)
            {
                finger.follow(leaf, copy);
            }
            // SAFETY: the copy has just been published, so no link leads to the leaf any more
            // (CATREE-6).
            unsafe { retire(leaf.node(), guard) };
            return Spot {
                grew: at == 0,
                is_new: true,
                ..spot(copy, at)
            };
        }
        self.base.lift_finger(&mut self.held);
        let last = self.base.last(&self.held, guard);
        // Behind the record that was put last: a row that grows between other keys.
        let order = leaf.in_order();
        let index = leaf.lower_bound(record.key(), &order);
        let is_row_inside = last.is_in(leaf) && order.index_of(last.at) + 1 == index;
        let path = root.path(record.key(), guard);
        let mut nodes = Nodes::new(guard);
        let mut items = leaf.items();
        let live = (0..index).filter(|index| leaf.has_any(order.place(*index)));
        let at = live.count();
        items.insert(at, Item::new(record));
        nodes.mark_dead(leaf.node());
        let is_end = at == 0 || at + 1 == items.len();
        let is_row = is_end || is_row_inside;
        let (steps, with) = if items.len() <= COPIED_MOST {
            let copy = nodes.leaf(path.fences, &items, None);
            (&path.steps[..], Replacement::One(copy))
        } else if !is_row && let Some(shared) = share(&path, &items, &mut nodes) {
            shared
        } else {
            // A key at the end is likely one of an ascending row, of which more will follow: they
            // get a leaf of their own, and this one stays full. The same for descending rows. A row
            // that grows inside gets to the end of its leaf.
            let middle = match at {
                0 => 1,
                _ if is_end => at,
                _ if is_row_inside => at + 1,
                _ => items.len() / 2,
            };
            let two = two_leaves(&mut nodes, path.fences, &items, middle);
            if at + 1 == items.len()
                && let Kind::Leaf(right) = two.right.kind()
                && let Some(right) = right.full()
            {
                let finger = self.base.finger_or_new(&mut self.held);
                finger.point(right, path.fences.high);
                self.base.expect_row(true);
            }
            (&path.steps[..], two.into())
        };
        // SAFETY: the lock is held, and what is replaced is marked dead (CATREE-1, CATREE-3).
        unsafe { publish(&path, steps, with, nodes) };
        Spot {
            grew: is_end,
            is_new: true,
            ..Spot::UNKNOWN
        }
    }

    /// Lets the finger point at a leaf to which two writes in a row have added at the end. Not at a
    /// small leaf, which is found at once.
    fn point_finger(&mut self, record: &Record<R>, root: &Root<R>, guard: &Guard) {
        let Some(leaf) = self.leaf.full() else {
            return;
        };
        let last = self.base.last(&self.held, guard);
        let is_row = last.grew && last.is_in(self.leaf);
        if !is_row || self.base.expects_row() {
            return;
        }
        let finger = self.base.finger(&mut self.held);
        if !finger.is_some_and(|finger| finger.points_at(leaf)) {
            let path = root.path(record.key(), guard);
            let finger = self.base.finger_or_new(&mut self.held);
            finger.point(leaf, path.fences.high);
        }
        self.base.expect_row(true);
    }

    /// Takes the record at a place out of its leaf; the record itself is not retired.
    pub(super) fn take_out(&mut self, at: usize, key: &[u8], root: &Root<R>, guard: &Guard) {
        let leaf = self.leaf;
        if leaf.put_tombstone(at, key) {
            if !has_many_tombstones(leaf, leaf.live()) {
                return self.base.set_last(spot(leaf, at));
            }
            // Removals are kept.
            let items = leaf.items();
            if !has_many_tombstones(leaf, items.len()) {
                return self.base.set_last(spot(leaf, at));
            }
            self.shrink(items, key, root, guard);
        } else {
            let gone = leaf.word(at).address();
            let mut items = leaf.items();
            items.retain(|item| item.word().address() != gone);
            self.shrink(items, key, root, guard);
        }
        self.base.set_last(Spot::UNKNOWN);
    }

    /// Replaces a leaf by one with these records, or merges them into a neighbour if they are few.
    fn shrink(&mut self, items: Vec<Item<'_, R>>, key: &[u8], root: &Root<R>, guard: &Guard) {
        self.base.lift_finger(&mut self.held);
        let path = root.path(key, guard);
        let mut nodes = Nodes::new(guard);
        nodes.mark_dead(self.leaf.node());
        let (steps, with) = if items.len() <= MERGE_BELOW
            && let Some(merged) = merge(&path, &items, &mut nodes)
        {
            merged
        } else {
            let leaf = nodes.leaf(path.fences, &items, None);
            (&path.steps[..], Replacement::One(leaf))
        };
        if path.fences.cover_all() {
            self.base.forget_finger(&mut self.held);
        }
        // SAFETY: the lock is held, and what is replaced is marked dead (CATREE-1, CATREE-3).
        unsafe { publish(&path, steps, with, nodes) };
    }
}

/// Returns `true` if a leaf with so many records is to be copied without its tombstones.
fn has_many_tombstones<R: Release>(leaf: Leaf<'_, R>, records: usize) -> bool {
    records == 0 || leaf.len() - records > 2 * records + TOMBSTONES_SPARED
}

fn spot<R: Release>(leaf: Leaf<'_, R>, at: usize) -> Spot<'_, R> {
    Spot {
        leaf: Some(leaf.node()),
        at,
        grew: false,
        is_new: false,
    }
}

/// Some of the steps of a path, and what comes in the place of what hangs from the last of them.
type Substitution<'p, 'g, R> = (&'p [PathNode<'g, R>], Replacement<'g, R>);

/// Puts `with` in the place of what hangs from the last of `steps`, the first ones of a path, and
/// retires what is marked dead.
///
/// # Safety
/// The caller holds the lock of the base node (CATREE-1). The nodes that hang from the last step
/// are marked dead, and all that is marked dead hangs from there.
unsafe fn publish<'g, R: Release>(
    path: &Path<'g, R>,
    steps: &[PathNode<'g, R>],
    with: Replacement<'g, R>,
    mut nodes: Nodes<'g, R>,
) {
    // SAFETY: the caller holds the lock of the base node (CATREE-1) and has marked dead what is
    // replaced, and that only; so nothing that `nodes` retires can be reached after the store
    // (CATREE-6).
    let bytes = unsafe {
        replace(path.base.link(), path.base_fences, steps, with, &mut nodes);
        nodes.finish()
    };
    path.base.account_nodes(bytes);
}

/// Two leaves side by side under one parent: that of a path, and a neighbour.
struct Pair<'g, R: Release> {
    /// The place of the left one.
    left: usize,
    /// The items of both.
    items: Vec<Item<'g, R>>,
    /// The range of both.
    fences: Fences<'g>,
    neighbour: Node<'g, R>,
}

impl<'g, R: Release> Pair<'g, R> {
    /// Looks for a neighbour whose number of records suits, and combines it with `items`.
    fn find(
        step: &PathNode<'g, R>,
        items: &[Item<'g, R>],
        suits: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let (inner, at) = (step.inner, step.place);
        // The right neighbour first. Where keys are removed in ascending order it is still full,
        // and the left one has been thinned out.
        let right = (at < inner.len()).then_some(at);
        let mut lefts = right.into_iter().chain(at.checked_sub(1));
        lefts.find_map(|left| {
            let is_right = left == at;
            let neighbour = inner.child(if is_right { at + 1 } else { left });
            let Kind::Leaf(leaf) = neighbour.kind() else {
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

/// Moves the items of the leaf of a path, which is marked dead, into one of its neighbours under
/// the same parent, if one suits.
fn merge<'p, 'g, R: Release>(
    path: &'p Path<'g, R>,
    items: &[Item<'g, R>],
    nodes: &mut Nodes<'g, R>,
) -> Option<Substitution<'p, 'g, R>> {
    let (step, above) = path.steps.split_last()?;
    let pair = Pair::find(step, items, |others| fit_together(items.len(), others))?;
    nodes.mark_dead(pair.neighbour);
    nodes.mark_dead(Node::of(step.inner));
    let merged = nodes.leaf(pair.fences, &pair.items, None);
    Some((above, without_pair(nodes, step, pair.left, merged)))
}

/// Gives records of the leaf of a path, which is marked dead and too full, to a neighbour that has
/// room, if one has, so that leaves are fuller than splitting alone would leave them (the idea of
/// the B*-tree).
fn share<'p, 'g, R: Release>(
    path: &'p Path<'g, R>,
    items: &[Item<'g, R>],
    nodes: &mut Nodes<'g, R>,
) -> Option<Substitution<'p, 'g, R>> {
    let (step, above) = path.steps.split_last()?;
    let pair = Pair::find(step, items, |others| others <= SHARED_MOST)?;
    nodes.mark_dead(pair.neighbour);
    nodes.mark_dead(Node::of(step.inner));
    let middle = pair.items.len() / 2;
    let two = two_leaves(nodes, pair.fences, &pair.items, middle);
    let mut separators = step.inner.separators();
    let mut children = step.inner.children();
    separators[pair.left] = &two.separator;
    children[pair.left] = two.left;
    children[pair.left + 1] = two.right;
    Some((above, build(nodes, step, &separators, &children)))
}

/// Returns `true` if two leaves with this many records each should be one.
pub(super) fn fit_together(one: usize, other: usize) -> bool {
    one == 0 || other == 0 || one + other <= MERGED_MOST
}

/// The node in the place of one of which the children at `left` and behind it become one. An inner
/// node with one child is superfluous; the child takes its place.
pub(super) fn without_pair<'g, R: Release>(
    nodes: &mut Nodes<'g, R>,
    step: &PathNode<'g, R>,
    left: usize,
    child: Node<'g, R>,
) -> Replacement<'g, R> {
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
pub(super) fn two_leaves<'g, R: Release>(
    nodes: &mut Nodes<'g, R>,
    fences: Fences<'_>,
    items: &[Item<'_, R>],
    middle: usize,
) -> Parts<'g, R> {
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

/// The shortest key above `left` and not above `right`.
fn separator_between<'k>(left: &[u8], right: &'k [u8]) -> &'k [u8] {
    &right[..common_prefix(left, right) + 1]
}
