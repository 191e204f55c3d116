//! Iterators over a version.

use super::node::{BITS, FANOUT, Node, height_for, slot_of};
use super::version::Sequence;
use crate::record::Release;
use ats_store::Direction;

/// Returns the nearest slot of a bitmap that is not empty.
fn nearest(direction: Direction, bitmap: u32) -> u32 {
    match direction {
        Direction::Up => bitmap.trailing_zeros(),
        Direction::Down => bitmap.ilog2(),
    }
}

/// Returns the slots after this one.
fn after(direction: Direction, slot: u32) -> u32 {
    match direction {
        // Two shifts, because a shift by all 32 bits is undefined.
        Direction::Up => u32::MAX << slot << 1,
        Direction::Down => (1 << slot) - 1,
    }
}

impl<R: Release> Sequence<R> {
    /// Returns the values at this position and after it, upwards, with their positions.
    pub fn iter_from(&self, position: u64) -> Iter<'_, R> {
        Iter::up(self, position)
    }

    /// Returns the values before this position, downwards, with their positions.
    pub fn iter_before(&self, position: u64) -> Iter<'_, R> {
        let last = self.next.min(position).checked_sub(1);
        Iter::new(self, last, Direction::Down)
    }

    /// Returns the values at this position and before it, downwards, with their positions.
    pub fn iter_back_from(&self, position: u64) -> Iter<'_, R> {
        Iter::down(self, position)
    }
}

/// An iterator over the values from a position on, upwards or downwards, with their positions.
///
/// O(1) for each value on average.
pub struct Iter<'a, R: Release> {
    sequence: &'a Sequence<R>,
    direction: Direction,
    leaf: Option<Leaf<'a>>,
}

/// A node whose children are values.
struct Leaf<'a> {
    node: Node<'a>,
    /// Position of its first slot.
    base: u64,
    /// Slots not visited yet.
    rest: u32,
}

impl<'a, R: Release> Iter<'a, R> {
    pub(super) fn up(sequence: &'a Sequence<R>, from: u64) -> Self {
        Self::new(sequence, Some(from), Direction::Up)
    }

    pub(super) fn down(sequence: &'a Sequence<R>, from: u64) -> Self {
        let last = sequence.next.checked_sub(1);
        Self::new(sequence, last.map(|last| last.min(from)), Direction::Down)
    }

    fn new(sequence: &'a Sequence<R>, from: Option<u64>, direction: Direction) -> Self {
        let mut iter = Iter {
            sequence,
            direction,
            leaf: None,
        };
        iter.leaf = from.and_then(|from| iter.leaf_at(from));
        iter
    }

    /// Returns the leaf of the next value at this position or after it.
    fn leaf_at(&self, from: u64) -> Option<Leaf<'a>> {
        let height = self.sequence.height;
        let root = Subtree {
            node: self.sequence.root_node()?,
            height,
            base: 0,
        };
        // The root has no larger positions.
        (height_for(from) <= height).then(|| seek(root, Some(from), self.direction))?
    }

    /// Returns the leaf after the one with this base.
    fn leaf_after(&self, base: u64) -> Option<Leaf<'a>> {
        self.leaf_at(match self.direction {
            Direction::Up => base.checked_add(u64::from(FANOUT))?,
            Direction::Down => base.checked_sub(1)?,
        })
    }
}

impl<'a, R: Release> Iterator for Iter<'a, R> {
    type Item = (u64, &'a [u64]);

    fn next(&mut self) -> Option<Self::Item> {
        let leaf = self.leaf.as_mut()?;
        let slot = nearest(self.direction, leaf.rest);
        let (node, base) = (leaf.node, leaf.base);
        leaf.rest &= !(1 << slot);
        if leaf.rest == 0 {
            self.leaf = self.leaf_after(base);
        }
        let link = node.child(slot).expect("a slot of the bitmap has a child");
        // SAFETY: a child of a leaf is a value, which lives as long as the version (SEQUENCE-1).
        Some((base + u64::from(slot), unsafe { link.value() }.words()))
    }

    /// Skips `n` values. O(n / 32) and O(log positions): skipped values are not read.
    fn nth(&mut self, mut n: usize) -> Option<Self::Item> {
        loop {
            let leaf = self.leaf.as_mut()?;
            let values = leaf.rest.count_ones() as usize;
            if n < values {
                for _ in 0..n {
                    leaf.rest &= !(1 << nearest(self.direction, leaf.rest));
                }
                return self.next();
            }
            n -= values;
            let base = leaf.base;
            self.leaf = self.leaf_after(base);
        }
    }
}

/// Returns the nearest leaf below a node that has a value at `from` or after it; any leaf if `from`
/// is `None`. O(height), which also bounds the recursion.
fn seek(subtree: Subtree<'_>, from: Option<u64>, direction: Direction) -> Option<Leaf<'_>> {
    let Subtree { node, height, base } = subtree;
    let slot = from.map(|from| slot_of(from, height));
    let after = node.bitmap() & slot.map_or(u32::MAX, |slot| after(direction, slot));
    if height == 1 {
        let rest = after | slot.map_or(0, |slot| node.bitmap() & 1 << slot);
        return (rest != 0).then_some(Leaf { node, base, rest });
    }
    let exact = slot.and_then(|slot| subtree.child(slot));
    let found = exact.and_then(|child| seek(child, from, direction));
    if found.is_some() || after == 0 {
        return found;
    }
    // All values after the slot come after `from`.
    seek(subtree.child(nearest(direction, after))?, None, direction)
}

/// A node, and the range of positions below it.
struct Subtree<'a> {
    node: Node<'a>,
    height: u32,
    /// Position of its first slot.
    base: u64,
}

impl<'a> Subtree<'a> {
    /// Returns the child at a slot of a node that is no leaf.
    fn child(&self, slot: u32) -> Option<Subtree<'a>> {
        let link = self.node.child(slot)?;
        let height = self.height - 1;
        Some(Subtree {
            // SAFETY: children of nodes above the leaves are nodes, and live as long as the version
            // (SEQUENCE-1).
            node: unsafe { link.node() },
            height,
            base: self.base + (u64::from(slot) << (height * BITS)),
        })
    }
}
