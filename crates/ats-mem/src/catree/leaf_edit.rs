//! Changes within a base node: records are put into leaves and removed, leaves are split and
//! merged.
//!
//! The caller holds the lock of the base node throughout. If nodes above the leaf change, the root
//! provides their path.

use super::base::Spot;
use super::block::Added;
use super::fences::Fences;
use super::heads::common_prefix;
use super::item::Item;
use super::kind::Kind;
use super::leaf::Leaf;
use super::link::{Link, Node};
use super::locked_leaf::LockedLeaf;
use super::nodes::{Nodes, Parts, Replacement, retire};
use super::path::{Path, PathNode, build, replace};
use super::root::Root;
use super::sizes::LEAF;
use super::slot::Word;
use crate::record::{Record, RecordBox, Release};
use ats_sync::Guard;

/// Number of records up to which a leaf is merged with a neighbour, if both fit together.
const MERGE_BELOW: usize = LEAF / 4;
/// Largest number of records of a merged leaf, so that the next inserts do not split it again. An
/// empty leaf is always merged.
const MERGED_MOST: usize = LEAF * 3 / 4;
/// Number of records up to which a full leaf with tombstones is copied instead of split.
const COPIED_MOST: usize = LEAF * 7 / 8;
/// Number of records up to which a neighbour receives records of an overfull leaf. More would make
/// leaves fuller and inserts more expensive: with two thirds, random inserts fill leaves by 78 %
/// instead of 70 %, and build twice as many.
const SHARED_MOST: usize = LEAF * 2 / 3;
/// Number of tombstones, besides two for each record, beyond which a leaf is copied without them:
/// often enough that a leaf whose keys are removed shrinks and is merged, and seldom enough that a
/// leaf whose keys come and go, half of them absent at any time, is not.
const TOMBSTONES_SPARED: usize = 4;

impl<'g, R: Release> LockedLeaf<'g, R> {
    /// Puts a record: replaces the one found for its key, which the caller retires, or inserts a
    /// new key.
    pub(super) fn put_record(&mut self, record: RecordBox<R>, root: &Root<R>, guard: &'g Guard) {
        // SAFETY: the record goes into the store, and is freed by retiring only (RECORD-2), hence
        // after the guard.
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

    /// Puts the record of a new key into a leaf. Returns its spot.
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
            let link = self.link.expect("the finger leads to leaves that append");
            self.replace_by_copy(link, copy, guard);
            return Spot {
                grew: at == 0,
                is_new: true,
                ..spot(copy, at)
            };
        }
        self.base.lift_finger(&mut self.held);
        let last = self.base.last(&self.held, guard);
        // Directly after the last record put: a row that grows between other keys.
        let order = leaf.in_order();
        let index = leaf.lower_bound(record.key(), &order);
        let is_row_inside = last.is_in(leaf) && order.index_of(last.at) + 1 == index;
        let path = root.path(record.key(), guard);
        let mut nodes = Nodes::new(guard);
        let mut items = leaf.items();
        let live = (0..index).filter(|index| leaf.has_any(order.slot(*index)));
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
            // A key at the end likely belongs to an ascending row with more keys to follow: they
            // get a leaf of their own, and this one stays full. The same holds for descending rows.
            // The split moves a row that grows inside to the end of its leaf.
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
        // SAFETY: the lock is held, and the replaced nodes are marked dead (CATREE-1, CATREE-3).
        unsafe { publish(&path, steps, with, nodes) };
        Spot {
            grew: is_end,
            is_new: true,
            ..Spot::UNKNOWN
        }
    }

    /// Replaces the leaf, to which the link leads, by a copy with one record more or less.
    fn replace_by_copy(&mut self, link: &Link<R>, copy: Leaf<'g, R>, guard: &Guard) {
        let leaf = self.leaf;
        leaf.header().set_dead();
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
    }

    /// Points the finger at a leaf to whose end two successive writes have added, unless it is a
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

    /// Removes the record of a slot from its leaf; the record itself is not retired.
    pub(super) fn take_out(&mut self, at: usize, key: &[u8], root: &Root<R>, guard: &'g Guard) {
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
        } else if let Some(link) = self.link
            && let left = leaf.live() - usize::from(leaf.is_live(at))
            && left > MERGE_BELOW
            && !has_many_tombstones(leaf, left)
        {
            self.replace_by_copy(link, leaf.without(at, guard), guard);
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
        // SAFETY: the lock is held, and the replaced nodes are marked dead (CATREE-1, CATREE-3).
        unsafe { publish(&path, steps, with, nodes) };
    }
}

/// Returns `true` if a leaf with this many records should be copied without its tombstones.
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

/// The first steps of a path, and the replacement of the child of the last one.
type Substitution<'p, 'g, R> = (&'p [PathNode<'g, R>], Replacement<'g, R>);

/// Replaces the child of the last of `steps`, the first ones of a path, by `with`, and retires the
/// nodes marked dead.
///
/// # Safety
/// The caller must hold the lock of the base node (CATREE-1). The child of the last step must be
/// marked dead, and all nodes marked dead must be below that step.
unsafe fn publish<'g, R: Release>(
    path: &Path<'g, R>,
    steps: &[PathNode<'g, R>],
    with: Replacement<'g, R>,
    mut nodes: Nodes<'g, R>,
) {
    // SAFETY: the caller holds the lock of the base node (CATREE-1) and has marked exactly the
    // replaced nodes dead; so no node that `nodes` retires can be reached after the store
    // (CATREE-6).
    let bytes = unsafe {
        replace(path.base.link(), path.base_fences, steps, with, &mut nodes);
        nodes.finish()
    };
    path.base.account_nodes(bytes);
}

/// Two adjacent leaves under one parent: that of a path, and a neighbour.
struct Pair<'g, R: Release> {
    /// Index of the left one.
    left: usize,
    /// The items of both.
    items: Vec<Item<'g, R>>,
    /// The range of both.
    fences: Fences<'g>,
    neighbour: Node<'g, R>,
}

impl<'g, R: Release> Pair<'g, R> {
    /// Searches for a neighbour with a suitable number of records, and combines it with `items`.
    fn find(
        step: &PathNode<'g, R>,
        items: &[Item<'g, R>],
        suits: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let (inner, at) = (step.inner, step.child_index);
        // The right neighbour comes first. If keys are removed in ascending order, it is still
        // full, and the left one has been thinned out.
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
                items: if is_right {
                    [items, &others].concat()
                } else {
                    [&others, items].concat()
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

/// Moves the items of a path's leaf, which is marked dead, to a neighbour under the same parent, if
/// one is suitable.
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

/// Moves records of a path's leaf, which is marked dead and overfull, to a neighbour with room, if
/// there is one, so that leaves are fuller than with splits alone (the idea of the B*-tree).
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

/// Returns `true` if two leaves with these numbers of records should be merged.
pub(super) fn fit_together(one: usize, other: usize) -> bool {
    one == 0 || other == 0 || one + other <= MERGED_MOST
}

/// Returns the replacement of a node whose children at `left` and after it become one. An inner
/// node with a single child is replaced by the child.
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
    if separators.is_empty() {
        Replacement::One(child)
    } else {
        build(nodes, step, &separators, &children)
    }
}

/// Builds two leaves of the items; the second begins at `middle`.
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

/// Returns the shortest key above `left` and not above `right`.
fn separator_between<'k>(left: &[u8], right: &'k [u8]) -> &'k [u8] {
    &right[..common_prefix(left, right) + 1]
}
