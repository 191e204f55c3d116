//! The records of a base node: an AVL tree, used by one thread that writes or by several that read.
//!
//! Good for: being cut in two and put together in O(log n). Bad at: the cache, since each step of a
//! search is a node somewhere else. Nodes are blocks of the slab, like those of other stores.
//!
//! Two trees become one as in G. Blelloch, D. Ferizovic and Y. Sun, *Just join for parallel ordered
//! sets* (SPAA 2016): the lower tree goes down along the side of the higher one to where it is as
//! high, and nodes are balanced on the way back.
//!
//! # Invariants
//! - AVL-1. Keys are above those to the left and below those to the right.
//! - AVL-2. The heights of the two subtrees of a node differ by 1 at most, and it knows its own
//!   height.

mod visit;
mod way;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use super::side::Side;
use crate::record_map::Kept;
use ats_mem::record::Release;
use ats_mem::slab::SlabBox;
use std::cmp::Ordering;
use std::mem;
pub(super) use way::Way;

/// Bytes of memory for each record.
pub(super) const NODE_BYTES: usize = size_of::<AvlNode<ats_mem::record::Plain>>();

/// A sequential map of records.
pub(super) struct Avl<R: Release>(Tree<R>);

type Tree<R> = Option<Subtree<R>>;
type Subtree<R> = SlabBox<AvlNode<R>>;

struct AvlNode<R: Release> {
    left: Tree<R>,
    right: Tree<R>,
    record: Kept<R>,
    /// The first bytes of its key, see [`head`].
    head: u64,
    height: u8,
}

/// A key that is looked for.
#[derive(Clone, Copy)]
struct Sought<'k> {
    head: u64,
    key: &'k [u8],
}

impl<'k> Sought<'k> {
    fn new(key: &'k [u8]) -> Self {
        Sought {
            head: head(key),
            key,
        }
    }
}

/// The first eight bytes of a key, as if it went on with zeros. If they are different for two keys
/// they are in the order of the keys.
fn head(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(bytes)
        }
    }
}

impl<R: Release> AvlNode<R> {
    fn child(&self, side: Side) -> &Tree<R> {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    fn child_mut(&mut self, side: Side) -> &mut Tree<R> {
        match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        }
    }

    /// Compares its key with another one.
    #[inline]
    fn compare(&self, to: Sought<'_>) -> Ordering {
        let heads = self.head.cmp(&to.head);
        heads.then_with(|| self.record.get().key().cmp(to.key))
    }

    /// By how much it is higher on a side than on the other.
    fn lean(&self, side: Side) -> i32 {
        height(self.child(side)) - height(self.child(side.other()))
    }

    /// Finds out its height.
    fn measure(&mut self) {
        let below = height(&self.left).max(height(&self.right));
        self.height = below as u8 + 1;
    }
}

fn height<R: Release>(tree: &Tree<R>) -> i32 {
    tree.as_ref().map_or(0, |node| i32::from(node.height))
}

impl<R: Release> Default for Avl<R> {
    fn default() -> Self {
        Avl(None)
    }
}

impl<R: Release> Avl<R> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns `true` if there are at least two records.
    pub(super) fn has_two(&self) -> bool {
        height(&self.0) > 1
    }

    /// The record with the least key.
    pub(super) fn first(&self) -> Option<&Kept<R>> {
        let mut node = self.0.as_ref()?;
        while let Some(left) = &node.left {
            node = left;
        }
        Some(&node.record)
    }

    /// The record of a key.
    pub(super) fn find(&self, key: &[u8]) -> Option<&Kept<R>> {
        let sought = Sought::new(key);
        let mut tree = &self.0;
        while let Some(node) = tree {
            tree = match node.compare(sought) {
                Ordering::Equal => return Some(&node.record),
                Ordering::Greater => &node.left,
                Ordering::Less => &node.right,
            };
        }
        None
    }

    /// Does what [`find`](Avl::find) does, for a writer: also the way to the node of the key, or to
    /// the place where it would be.
    pub(super) fn search(&self, key: &[u8]) -> (Way, Option<&Kept<R>>) {
        let sought = Sought::new(key);
        let (mut tree, mut way) = (&self.0, Way::default());
        while let Some(node) = tree {
            let side = match node.compare(sought) {
                Ordering::Equal => return (way, Some(&node.record)),
                Ordering::Greater => Side::Left,
                Ordering::Less => Side::Right,
            };
            way.go(side);
            tree = node.child(side);
        }
        (way, None)
    }

    /// Puts another record of the same key, to which the way leads.
    pub(super) fn replace(&mut self, mut way: Way, record: Kept<R>) {
        let mut tree = &mut self.0;
        while let Some(node) = tree {
            match way.next() {
                Some(side) => tree = node.child_mut(side),
                None => {
                    node.record = record;
                    return;
                }
            }
        }
    }

    /// Puts a record of a new key, to the place of which the way leads.
    pub(super) fn insert(&mut self, way: Way, record: Kept<R>) {
        let head = head(record.get().key());
        insert(
            &mut self.0,
            way,
            SlabBox::new(AvlNode {
                left: None,
                right: None,
                record,
                head,
                height: 1,
            }),
        );
    }

    /// Takes out the record to which the way leads.
    pub(super) fn remove(&mut self, way: Way) {
        remove(&mut self.0, way);
    }

    /// Cuts it at the root, which goes to the right: in two parts that are not empty if there are
    /// two records.
    pub(super) fn split(self) -> [Self; 2] {
        let Some(mut root) = self.0 else {
            return [Avl(None), Avl(None)];
        };
        let (left, right) = (root.left.take(), root.right.take());
        match left {
            Some(_) => [Avl(left), Avl(Some(link(None, root, right)))],
            None => {
                root.measure();
                [Avl(Some(root)), Avl(right)]
            }
        }
    }

    /// Puts two together, of which the left one has the lower keys.
    pub(super) fn join(left: Self, mut right: Self) -> Self {
        match take_first(&mut right.0) {
            Some(first) => Avl(Some(link(left.0, first, right.0))),
            None => left,
        }
    }
}

fn insert<R: Release>(tree: &mut Tree<R>, mut way: Way, new: Subtree<R>) {
    match (tree, way.next()) {
        (Some(node), Some(side)) => {
            insert(node.child_mut(side), way, new);
            balance(node);
        }
        (tree, _) => *tree = Some(new),
    }
}

fn remove<R: Release>(tree: &mut Tree<R>, mut way: Way) {
    let Some(node) = tree else { return };
    if let Some(side) = way.next() {
        remove(node.child_mut(side), way);
        balance(node);
        return;
    }
    let (left, mut right) = (node.left.take(), node.right.take());
    *tree = match take_first(&mut right) {
        Some(first) => Some(link(left, first, right)),
        None => left,
    };
}

/// Takes out the node with the least key.
fn take_first<R: Release>(tree: &mut Tree<R>) -> Tree<R> {
    let node = tree.as_mut()?;
    if node.left.is_some() {
        let first = take_first(&mut node.left);
        balance(node);
        return first;
    }
    let right = node.right.take();
    mem::replace(tree, right)
}

/// Makes a tree of a node without children, and of trees to its left and to its right, however high
/// they are. O(the difference of their heights).
fn link<R: Release>(left: Tree<R>, mut node: Subtree<R>, right: Tree<R>) -> Subtree<R> {
    match (left, right) {
        (Some(mut left), right) if i32::from(left.height) > height(&right) + 1 => {
            let inner = left.right.take();
            left.right = Some(link(inner, node, right));
            balance(&mut left);
            left
        }
        (left, Some(mut right)) if i32::from(right.height) > height(&left) + 1 => {
            let inner = right.left.take();
            right.left = Some(link(left, node, inner));
            balance(&mut right);
            right
        }
        (left, right) => {
            (node.left, node.right) = (left, right);
            node.measure();
            node
        }
    }
}

/// Makes AVL-2 true of a node of which one side has become one higher or lower.
fn balance<R: Release>(node: &mut Subtree<R>) {
    let side = match node.lean(Side::Left) {
        2.. => Side::Left,
        ..=-2 => Side::Right,
        _ => return node.measure(),
    };
    if let Some(child) = node.child_mut(side)
        && child.lean(side) < 0
    {
        lift(child, side.other());
    }
    lift(node, side);
}

/// Puts the child on this side in the place of its parent, which becomes its child on the other
/// side.
fn lift<R: Release>(node: &mut Subtree<R>, side: Side) {
    let Some(mut child) = node.child_mut(side).take() else {
        return;
    };
    *node.child_mut(side) = child.child_mut(side.other()).take();
    node.measure();
    let parent = mem::replace(node, child);
    *node.child_mut(side.other()) = Some(parent);
    node.measure();
}
