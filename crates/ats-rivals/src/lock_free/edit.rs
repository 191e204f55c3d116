//! Changes of containers: the nodes that a change makes, and those that it replaces.
//!
//! The invariants (TREAP-1 and so on) are those of [`treap`](super::treap).

use super::leaf::{self, Kept, Leaf, MOST};
use super::treap::{Inner, Link, Tree};
use ats_mem::record::{Record, Release};
use ats_mem::slab::SharedSlice;
use ats_sync::Guard;
use std::hash::{DefaultHasher, Hasher};
use std::ptr::NonNull;

/// Two sibling leaves become one if they have at most this many records together after a removal.
const FEW: usize = MOST / 2;

/// Initial capacity for the nodes of a change: most paths are not longer.
const PATH: usize = 16;

/// The nodes of one change.
///
/// It frees the nodes that it has made, unless the change was published
/// ([`retire_replaced`](Edit::retire_replaced)) or [kept](Edit::keep).
pub(super) struct Edit<R: Release> {
    made: Vec<Link<R>>,
    replaced: Vec<Link<R>>,
}

/// Two parts of a container, and the first key that belongs to the second, with its priority.
struct Parts<R: Release> {
    left: Link<R>,
    key: SharedSlice<u8>,
    priority: u64,
    right: Link<R>,
}

/// A part of a container after a record was put into it.
enum Grown<R: Release> {
    One(Link<R>),
    /// Two parts without the inner node above them. The caller makes it as high up as TREAP-4
    /// demands.
    Two(Parts<R>),
}

fn priority(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

impl<R: Release> Edit<R> {
    pub(super) fn new() -> Self {
        Edit {
            made: Vec::with_capacity(PATH),
            replaced: Vec::with_capacity(PATH),
        }
    }

    /// Puts a record into a container. It replaces the one with the same key if there is one.
    pub(super) fn put(&mut self, tree: Tree<'_, R>, record: &Record<R>) -> Link<R> {
        match self.put_below(tree, record) {
            Grown::One(link) => link,
            Grown::Two(parts) => self.inner(parts),
        }
    }

    fn put_below(&mut self, tree: Tree<'_, R>, record: &Record<R>) -> Grown<R> {
        match tree {
            Tree::Empty => Grown::One(self.leaf(&[&[NonNull::from(record)]])),
            Tree::Leaf(leaf) => self.put_in_leaf(leaf, record),
            Tree::Inner(inner) if *record.key() < *inner.key => {
                let left = self.put_below(inner.left(), record);
                let right = inner.right().link();
                self.replace(tree);
                match left {
                    Grown::Two(parts) if parts.priority > inner.priority => {
                        let right = self.copy_inner(inner, parts.right, right);
                        Grown::Two(Parts { right, ..parts })
                    }
                    Grown::Two(parts) => {
                        let left = self.inner(parts);
                        Grown::One(self.copy_inner(inner, left, right))
                    }
                    Grown::One(left) => Grown::One(self.copy_inner(inner, left, right)),
                }
            }
            Tree::Inner(inner) => {
                let right = self.put_below(inner.right(), record);
                let left = inner.left().link();
                self.replace(tree);
                match right {
                    Grown::Two(parts) if parts.priority > inner.priority => {
                        let left = self.copy_inner(inner, left, parts.left);
                        Grown::Two(Parts { left, ..parts })
                    }
                    Grown::Two(parts) => {
                        let right = self.inner(parts);
                        Grown::One(self.copy_inner(inner, left, right))
                    }
                    Grown::One(right) => Grown::One(self.copy_inner(inner, left, right)),
                }
            }
        }
    }

    fn put_in_leaf(&mut self, leaf: Leaf<'_, R>, record: &Record<R>) -> Grown<R> {
        self.replace(Tree::Leaf(leaf));
        let (kept, new) = (leaf.records(), [NonNull::from(record)]);
        let at = match leaf.find(record.key()) {
            Ok(at) => return Grown::One(self.leaf(&[&kept[..at], &new, &kept[at + 1..]])),
            Err(at) => at,
        };
        if kept.len() < MOST {
            return Grown::One(self.leaf(&[&kept[..at], &new, &kept[at..]]));
        }
        let all = [&kept[..at], &new, &kept[at..]].concat();
        Grown::Two(self.halves(&all))
    }

    /// Makes two leaves of these records.
    fn halves(&mut self, all: &[Kept<R>]) -> Parts<R> {
        let (left, right) = all.split_at(all.len() / 2);
        // SAFETY: the record is in a leaf that the caller is reading (TREAP-3), or is the one to
        // put.
        let first = unsafe { right[0].as_ref() };
        Parts {
            left: self.leaf(&[left]),
            key: SharedSlice::from(first.key()),
            priority: priority(first.key()),
            right: self.leaf(&[right]),
        }
    }

    /// Removes the record of a key from a container. Returns `None` if it is absent.
    pub(super) fn remove(&mut self, tree: Tree<'_, R>, key: &[u8]) -> Option<Link<R>> {
        let inner = match tree {
            Tree::Empty => return None,
            Tree::Leaf(leaf) => {
                let at = leaf.find(key).ok()?;
                self.replace(tree);
                let (before, behind) = (&leaf.records()[..at], &leaf.records()[at + 1..]);
                return Some(match leaf.len() {
                    1 => Link::Empty,
                    _ => self.leaf(&[before, behind]),
                });
            }
            Tree::Inner(inner) => inner,
        };
        if let (Tree::Leaf(left), Tree::Leaf(right)) = (inner.left(), inner.right())
            && left.len() + right.len() <= FEW + 1
        {
            let all = [left.records(), right.records()].concat();
            let at = if *key < *inner.key {
                left.find(key).ok()?
            } else {
                left.len() + right.find(key).ok()?
            };
            self.replace(tree);
            self.replace(inner.left());
            self.replace(inner.right());
            return Some(self.leaf(&[&all[..at], &all[at + 1..]]));
        }
        let (mut left, mut right) = (inner.left().link(), inner.right().link());
        if *key < *inner.key {
            left = self.remove(inner.left(), key)?;
        } else {
            right = self.remove(inner.right(), key)?;
        }
        self.replace(tree);
        Some(match (left, right) {
            (Link::Empty, other) | (other, Link::Empty) => other,
            (left, right) => self.copy_inner(inner, left, right),
        })
    }

    /// Splits a container at its root, or its only leaf in the middle. Returns the parts and the
    /// first key that belongs to the second, or `None` if it has fewer than two records.
    pub(super) fn split(
        &mut self,
        tree: Tree<'_, R>,
    ) -> Option<(Link<R>, SharedSlice<u8>, Link<R>)> {
        match tree {
            Tree::Inner(inner) => {
                self.replace(tree);
                Some((inner.left().link(), inner.key.clone(), inner.right().link()))
            }
            Tree::Leaf(leaf) if leaf.len() > 1 => {
                self.replace(tree);
                let halves = self.halves(leaf.records());
                Some((halves.left, halves.key, halves.right))
            }
            _ => None,
        }
    }

    /// Joins two containers. The first has the keys below `key`, the second the others.
    pub(super) fn join(
        &mut self,
        left: Tree<'_, R>,
        key: &SharedSlice<u8>,
        right: Tree<'_, R>,
    ) -> Link<R> {
        self.join_at(left, key, priority(key), right)
    }

    fn join_at(
        &mut self,
        left: Tree<'_, R>,
        key: &SharedSlice<u8>,
        priority: u64,
        right: Tree<'_, R>,
    ) -> Link<R> {
        let priority_of = |tree: Tree<'_, R>| match tree {
            Tree::Inner(inner) => Some(inner.priority),
            _ => None,
        };
        match (left, right) {
            (Tree::Empty, other) | (other, Tree::Empty) => other.link(),
            (Tree::Leaf(first), Tree::Leaf(second)) if first.len() + second.len() <= MOST => {
                self.replace(left);
                self.replace(right);
                self.leaf(&[first.records(), second.records()])
            }
            (Tree::Inner(inner), _)
                if inner.priority >= priority && Some(inner.priority) >= priority_of(right) =>
            {
                self.replace(left);
                let right = self.join_at(inner.right(), key, priority, right);
                self.copy_inner(inner, inner.left().link(), right)
            }
            (_, Tree::Inner(inner)) if inner.priority >= priority => {
                self.replace(right);
                let left = self.join_at(left, key, priority, inner.left());
                self.copy_inner(inner, left, inner.right().link())
            }
            _ => self.inner(Parts {
                left: left.link(),
                key: key.clone(),
                priority,
                right: right.link(),
            }),
        }
    }

    fn leaf(&mut self, parts: &[&[Kept<R>]]) -> Link<R> {
        let link = Link::leaf(leaf::make(parts));
        self.made.push(link);
        link
    }

    fn inner(&mut self, parts: Parts<R>) -> Link<R> {
        let link = Link::inner(parts.priority, parts.key, parts.left, parts.right);
        self.made.push(link);
        link
    }

    /// Makes a copy of an inner node with other children.
    fn copy_inner(&mut self, inner: Inner<'_, R>, left: Link<R>, right: Link<R>) -> Link<R> {
        self.inner(Parts {
            left,
            key: inner.key.clone(),
            priority: inner.priority,
            right,
        })
    }

    fn replace(&mut self, tree: Tree<'_, R>) {
        self.replaced.push(tree.link());
    }

    /// Retires the replaced nodes, after the new ones have replaced them in the tree.
    ///
    /// # Safety
    /// An exchange by this thread has replaced the old nodes by the new ones (TREAP-2).
    pub(super) unsafe fn retire_replaced(mut self, guard: &Guard) {
        // SAFETY: the caller says that an exchange of this thread has taken these nodes out of the
        // tree, so no other thread retires them (TREAP-2).
        self.replaced
            .drain(..)
            .for_each(|link| unsafe { link.retire(guard) });
        self.keep();
    }

    /// Leaves the new nodes to their new owner, instead of freeing them on drop.
    pub(super) fn keep(mut self) {
        self.made.clear();
    }

    /// Returns the nodes to retire once the change has taken effect. It is for changes that other
    /// threads may complete.
    pub(super) fn take_replaced(&mut self) -> Vec<Link<R>> {
        std::mem::take(&mut self.replaced)
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn new_nodes(&self) -> &[Link<R>] {
        &self.made
    }
}

impl<R: Release> Drop for Edit<R> {
    fn drop(&mut self) {
        // SAFETY: the change was neither published nor kept, so no other code has the new nodes.
        self.made.drain(..).for_each(|link| unsafe { link.free() });
    }
}
