//! The container of a base node: an immutable treap of fat leaves.
//!
//! ```text
//! inner node    a key, a priority: keys below it are on the left, the others on the right
//!   |    |
//! leaf  inner node ...    64 records at most
//! ```
//!
//! A change makes new nodes on the path from the root to the leaf, and shares all others with the
//! old container ([`edit`](super::edit)). So a container can be read for as long as a guard lives,
//! and split at its root without copies. The priority of an inner node is the hash of its key: so
//! the shape depends on the keys alone, without random numbers. C. R. Aragon and R. Seidel,
//! *Randomized search trees* (FOCS 1989).
//!
//! Good for: walks and splits beside changes. Bad at: changes, each of which copies a leaf and a
//! path; keys chosen so that their hashes descend.
//!
//! # Invariants
//! - TREAP-1. A node does not change from the moment it is made until it is freed.
//! - TREAP-2. A node is in the container of one base node of the tree at a time, once, from the
//!   exchange (by compare-and-swap) that makes it reachable until the one that takes it out. The
//!   thread that makes the latter exchange retires the node afterwards. So it lives as long as a
//!   guard under which it was found, and so do the nodes to which it leads. While a join is
//!   completed, the joined container shares nodes with the two that it was made of.
//! - TREAP-3. A record in a leaf lives as long as a guard under which the leaf was found: the store
//!   retires a record only after the change that takes out the leaves with it (SHARED_STORE-2 of
//!   [`shared_store`](super::super::shared_store)).
//! - TREAP-4. An inner node has two children, neither of them empty, and no child of a higher
//!   priority.

use super::leaf::{self, Block, Kept, Leaf};
#[cfg(test)]
use super::live;
use ats_mem::record::{Record, Release};
use ats_mem::slab::{SharedSlice, SlabBox};
use ats_sync::Guard;
use std::marker::PhantomData;
use std::ops::{Bound, Deref};
use std::ptr::NonNull;

/// A pointer to a container, or to a part of one, as nodes store it.
pub(super) enum Link<R: Release> {
    Empty,
    Leaf(NonNull<Block<R>>),
    Inner(NonNull<InnerNode<R>>),
}

/// A container, or a part of one, that a thread may read as long as `'g`.
pub(super) enum Tree<'g, R: Release> {
    Empty,
    Leaf(Leaf<'g, R>),
    Inner(Inner<'g, R>),
}

pub(super) struct InnerNode<R: Release> {
    pub priority: u64,
    pub key: SharedSlice<u8>,
    left: Link<R>,
    right: Link<R>,
}

/// An inner node that lives as long as `'g`.
pub(super) struct Inner<'g, R: Release> {
    node: NonNull<InnerNode<R>>,
    lives: PhantomData<&'g InnerNode<R>>,
}

impl<R: Release> Clone for Link<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Release> Copy for Link<R> {}

impl<R: Release> Clone for Tree<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Release> Copy for Tree<'_, R> {}

impl<R: Release> Clone for Inner<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Release> Copy for Inner<'_, R> {}

impl<R: Release> Deref for Inner<'_, R> {
    type Target = InnerNode<R>;

    fn deref(&self) -> &InnerNode<R> {
        // SAFETY: the node lives (promised to `Link::tree`), and does not change (TREAP-1).
        unsafe { self.node.as_ref() }
    }
}

impl<R: Release> Link<R> {
    pub(super) fn leaf(block: NonNull<Block<R>>) -> Self {
        Link::Leaf(block)
    }

    pub(super) fn inner(priority: u64, key: SharedSlice<u8>, left: Self, right: Self) -> Self {
        let inner = SlabBox::into_raw(SlabBox::new(InnerNode {
            priority,
            key,
            left,
            right,
        }));
        #[cfg(test)]
        live::count::<R>(1);
        // SAFETY: `into_raw` never gives null.
        Link::Inner(unsafe { NonNull::new_unchecked(inner) })
    }

    /// Returns the part of the container for reading.
    ///
    /// # Safety
    /// Neither the node nor the nodes below it are freed as long as `'g`.
    pub(super) unsafe fn tree<'g>(self) -> Tree<'g, R> {
        match self {
            Link::Empty => Tree::Empty,
            // SAFETY: the caller says that the leaf is not freed as long as `'g`, and the block of
            // a link was made by `leaf::make` (TREAP-2).
            Link::Leaf(block) => Tree::Leaf(unsafe { Leaf::of(block) }),
            Link::Inner(node) => Tree::Inner(Inner {
                node,
                lives: PhantomData,
            }),
        }
    }

    /// Frees this node, but not the nodes to which it leads.
    ///
    /// # Safety
    /// No other code has the node.
    pub(super) unsafe fn free(self) {
        match self {
            Link::Empty => {}
            // SAFETY: the caller says that no other code has the leaf, whose block was made by
            // `leaf::make`.
            Link::Leaf(block) => unsafe { leaf::free::<R>(block) },
            // SAFETY: the caller says that no other code has the node, and inner nodes come from
            // boxes.
            Link::Inner(inner) => unsafe { free_inner::<R>(inner.as_ptr().cast()) },
        }
    }

    /// Frees this node and all nodes below it.
    ///
    /// # Safety
    /// No other code has any of them.
    pub(super) unsafe fn free_all(self) {
        // SAFETY: the caller says that no other code has any of these nodes, so each is freed once
        // and used no more (TREAP-2).
        unsafe {
            if let Tree::Inner(inner) = self.tree() {
                inner.left().link().free_all();
                inner.right().link().free_all();
            }
            self.free();
        }
    }

    /// Retires this node, but not the nodes to which it leads.
    ///
    /// # Safety
    /// The node has been taken out, and no other thread retires it (TREAP-2).
    pub(super) unsafe fn retire(self, guard: &Guard) {
        unsafe fn free_leaf<R: Release>(raw: *mut u8) {
            // SAFETY: `retire` hands over a leaf that no thread can reach after the grace period.
            unsafe { leaf::free::<R>(NonNull::new_unchecked(raw.cast())) }
        }
        // SAFETY: the caller says that this thread has taken the node out of the tree and that no
        // other retires it (TREAP-2). It lives until the grace period is over.
        unsafe {
            match self.tree() {
                Tree::Empty => {}
                Tree::Leaf(leaf) => {
                    let block = leaf.block().as_ptr().cast();
                    guard.retire(block, leaf.bytes(), free_leaf::<R>);
                }
                Tree::Inner(inner) => {
                    let raw = inner.node.as_ptr().cast();
                    guard.retire(raw, size_of::<InnerNode<R>>(), free_inner::<R>);
                }
            }
        }
    }
}

/// Frees an inner node, but not its children.
///
/// # Safety
/// `raw` is an inner node that no other code has.
unsafe fn free_inner<R: Release>(raw: *mut u8) {
    #[cfg(test)]
    live::count::<R>(-1);
    // SAFETY: the caller says that it is an inner node that no other code has, and inner nodes come
    // from boxes.
    drop(unsafe { SlabBox::<InnerNode<R>>::from_raw(raw.cast()) });
}

impl<'g, R: Release> Inner<'g, R> {
    pub(super) fn left(self) -> Tree<'g, R> {
        // SAFETY: the nodes to which a node leads live as long as the node is read (TREAP-2).
        unsafe { self.node.as_ref().left.tree() }
    }

    pub(super) fn right(self) -> Tree<'g, R> {
        // SAFETY: the nodes to which a node leads live as long as the node is read (TREAP-2).
        unsafe { self.node.as_ref().right.tree() }
    }
}

impl<'g, R: Release> Tree<'g, R> {
    pub(super) fn link(self) -> Link<R> {
        match self {
            Tree::Empty => Link::Empty,
            Tree::Leaf(leaf) => Link::Leaf(leaf.block()),
            Tree::Inner(inner) => Link::Inner(inner.node),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        matches!(self, Tree::Empty)
    }

    /// Returns the record of a key.
    pub(super) fn get(self, key: &[u8]) -> Option<&'g Record<R>> {
        let mut here = self;
        loop {
            here = match here {
                Tree::Empty => return None,
                Tree::Leaf(leaf) => return leaf.find(key).ok().map(|at| leaf.record(at)),
                Tree::Inner(inner) if *key < *inner.key => inner.left(),
                Tree::Inner(inner) => inner.right(),
            };
        }
    }

    /// Appends all records to `all`, in the order of their keys.
    pub(super) fn all(self, all: &mut Vec<Kept<R>>) {
        match self {
            Tree::Empty => {}
            Tree::Leaf(leaf) => all.extend_from_slice(leaf.records()),
            Tree::Inner(inner) => {
                inner.left().all(all);
                inner.right().all(all);
            }
        }
    }

    /// Appends the records from a bound on and below `high`, ascending, until `found` has `most`.
    pub(super) fn up(
        self,
        from: Bound<&[u8]>,
        high: Option<&[u8]>,
        most: usize,
        found: &mut Vec<&'g Record<R>>,
    ) {
        match self {
            Tree::Empty => {}
            Tree::Leaf(leaf) => {
                let start = match from {
                    Bound::Unbounded => 0,
                    Bound::Included(key) => leaf.below(key),
                    Bound::Excluded(key) => leaf.find(key).map_or_else(|at| at, |at| at + 1),
                };
                let end = match high {
                    Some(high) if leaf.record(leaf.len() - 1).key() >= high => leaf.below(high),
                    _ => leaf.len(),
                };
                let end = end.min(start + most.saturating_sub(found.len()));
                found.extend((start..end).map(|at| leaf.record(at)));
            }
            Tree::Inner(inner) => {
                let starts_left = match from {
                    Bound::Unbounded => true,
                    Bound::Included(key) | Bound::Excluded(key) => *key < *inner.key,
                };
                if starts_left {
                    inner.left().up(from, high, most, found);
                }
                if found.len() < most && high.is_none_or(|high| *high > *inner.key) {
                    let from = if starts_left { Bound::Unbounded } else { from };
                    inner.right().up(from, high, most, found);
                }
            }
        }
    }

    /// Appends the records below `below` and from `low` on, descending, until `found` has `most`.
    pub(super) fn down(
        self,
        low: Option<&[u8]>,
        below: Option<&[u8]>,
        most: usize,
        found: &mut Vec<&'g Record<R>>,
    ) {
        match self {
            Tree::Empty => {}
            Tree::Leaf(leaf) => {
                let end = below.map_or(leaf.len(), |below| leaf.below(below));
                let start = match low {
                    Some(low) if leaf.record(0).key() < low => leaf.below(low),
                    _ => 0,
                };
                let start = start.max(end.saturating_sub(most.saturating_sub(found.len())));
                found.extend((start..end).rev().map(|at| leaf.record(at)));
            }
            Tree::Inner(inner) => {
                let starts_right = below.is_none_or(|below| *below > *inner.key);
                if starts_right {
                    inner.right().down(low, below, most, found);
                }
                if found.len() < most && low.is_none_or(|low| *low < *inner.key) {
                    let below = if starts_right { None } else { below };
                    inner.left().down(low, below, most, found);
                }
            }
        }
    }
}
