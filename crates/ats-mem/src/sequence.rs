//! A persistent sequence of values with stable positions.
//!
//! What a key of a bag holds when it holds very many objects: values that are appended, removed anywhere,
//! and read from any position on, while readers look at whole versions that do not change.
//!
//! A value keeps the position at which it was appended; positions ascend and are not given again. A version
//! is a radix tree over positions, 32 wide, whose nodes have a place only for children that exist:
//!
//! ```text
//! height 2        bitmap 101            positions of 5 bits for each node:
//!                 |    \                height 2 looks at bits 9..5, height 1 at bits 4..0
//! height 1   1011       10000
//!            | | \          \
//! values     0 1  3          68
//! ```
//!
//! A new version is an [`Edit`] of an old one: it copies the nodes on the way to what changes and shares
//! all others. Blocks count the references to them.
//!
//! # Two ways to a new version
//! To share, the copy of a node takes references to up to 31 children that the old node keeps as well:
//! that is 31 writes to blocks that are otherwise not touched. It is the price where the old version may be
//! needed again. Where it is not, the new version *takes over*: it gets the old references, and the old
//! nodes are freed without their children, when the last reader has gone.
//!
//! # Invariants
//! - Q1. A block lives as long as there is a reference to it, and after that until all readers have gone
//!   that could find it when the last reference was given up. A version has one reference to its root. A
//!   node has one reference to each of its children.
//! - Q2. Blocks do not change once their version is finished, except their counts. The only change to a
//!   version is that it is taken over.
//! - Q3. Nodes have at least one child. The root of height `h` covers all positions below 32^h.
//! - Q4. References are made from references. Code that has a reference makes another one with
//!   `Link::share`. A reader that finds a version under a guard makes a reference to its root with
//!   `Link::share_if_any`, if the count is not 0. Take a node with a single reference, which is held by a
//!   node that itself has a single reference, and so on up to a root whose count a thread has taken from 1
//!   to 0. Such a node belongs to that thread, because no other thread can get a reference to it. Taking
//!   over relies on this.
//! - Q5. What the words of a value own is released when its last reference is given up.
//! - Q6. A version that was taken over has no references. Its blocks can be read until the leftovers are
//!   retired and all readers have gone that were pinned before.
//!
//! Why a reader under a guard is safe while its version is taken over: of the blocks it can reach each one
//! is either still a block of the new version, or among the leftovers, which are retired after the new
//! version has taken the place of the old one. If the new version is itself taken over, or dropped, the same
//! holds for what it leaves; that is retired later, and the guard is older. A reader with a reference to
//! the root prevents that its version is taken over at all.
//!
//! # Sources
//! P. Bagwell, *Ideal hash trees*, 2001, for nodes with bitmaps; C. Okasaki, *Purely functional data
//! structures*, 1998, for persistence by copied paths. That a structure with a single reference can be
//! changed in place is an old idea of functional languages; see for instance A. Reinking and others,
//! *Perceus: garbage free reference counting with reuse*, PLDI 2021.

mod block;
mod edit;
mod free;
mod iter;
#[cfg(all(test, loom))]
mod models;
mod settle;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use edit::Edit;
pub use free::Remains;
pub use iter::Iter;
pub use settle::Leftovers;

use crate::record::Release;
use ats_sync::shim::atomic::{AtomicBool, Ordering::Relaxed};
use block::{BITS, Link, Node, slot_of};
use std::marker::PhantomData;

/// One version of a sequence.
///
/// Dropping it frees what no other version has: O(values), unless it was taken over. For a long one see
/// [`into_remains`](Sequence::into_remains).
pub struct Sequence<R: Release> {
    root: Option<Link>,
    /// Of the root: number of nodes on the way to a value.
    height: u32,
    len: usize,
    bytes: usize,
    /// The position of the value to be appended next.
    next: u64,
    taken_over: AtomicBool,
    release: PhantomData<R>,
}

// SAFETY: blocks do not change but by atomic counts, and `Release` may be called on any thread.
unsafe impl<R: Release> Send for Sequence<R> {}
// SAFETY: as for `Send`.
unsafe impl<R: Release> Sync for Sequence<R> {}

impl<R: Release> Sequence<R> {
    /// A sequence without values.
    pub fn new() -> Self {
        Sequence {
            root: None,
            height: 0,
            len: 0,
            bytes: 0,
            next: 0,
            taken_over: AtomicBool::new(false),
            release: PhantomData,
        }
    }

    /// Number of values. O(1).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that the blocks of this version take, also those that other versions share. O(1).
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// About how many bytes are given back when this version is: none if it has been taken over. O(1).
    pub fn kept_bytes(&self) -> usize {
        match self.taken_over.load(Relaxed) {
            true => 0,
            false => self.bytes,
        }
    }

    /// The position of the value that is appended next: larger than all before it. O(1).
    pub fn next_position(&self) -> u64 {
        self.next
    }

    /// The value at a position. O(log positions).
    ///
    /// May be called on a version that is being or has been taken over, by a reader that found it under a
    /// guard which it still holds. That is so for all functions that read.
    #[inline]
    pub fn get(&self, position: u64) -> Option<&[u64]> {
        // SAFETY: the blocks of a version live while a reader uses it (Q1, Q6).
        unsafe { find(self.root, self.height, position) }
    }

    /// The values at this position and after it, upwards, with their positions.
    pub fn iter_from(&self, position: u64) -> Iter<'_, R> {
        Iter::up(self, position)
    }

    /// The values at this position and before it, downwards, with their positions.
    pub fn iter_back_from(&self, position: u64) -> Iter<'_, R> {
        Iter::down(self, position)
    }

    /// The same version once more, to be kept beyond the guard it was found under; none if it has been
    /// taken over, so that a newer version is to be found. O(1).
    pub fn share(&self) -> Option<Self> {
        if let Some(root) = self.root {
            // SAFETY: the block of the root lives while a reader uses the version (Q1, Q6).
            unsafe { root.share_if_any() }.then_some(())?;
        }
        Some(Sequence {
            taken_over: AtomicBool::new(false),
            ..*self
        })
    }

    /// Begins to make a new version of this one. O(1).
    ///
    /// There must not be another edit of the same version at the same time that is finished by taking over,
    /// nor may that have happened before.
    pub fn edit(&self) -> Edit<'_, R> {
        debug_assert!(
            !self.taken_over.load(Relaxed),
            "a version that was taken over"
        );
        Edit::new(self)
    }

    /// The references of this version, to be given up in slices.
    pub fn into_remains(mut self) -> Remains<R> {
        self.take_remains()
    }

    fn take_remains(&mut self) -> Remains<R> {
        let root = self.root.take();
        // Relaxed: if the version was taken over, that happened before this code got exclusive access to it.
        let ours = root.filter(|_| !self.taken_over.load(Relaxed));
        // SAFETY: a version has a reference to its root, unless it was taken over (Q1, Q6), and this one has
        // just lost its root.
        unsafe { Remains::new(ours.map(|root| (root, self.height))) }
    }

    /// Takes the reference to the root away, if it is the only one and there is a root. Whether it did; then
    /// the root and its references are the caller's (Q4).
    fn be_taken_over(&self) -> bool {
        // SAFETY: the version has a reference to its root.
        let taken = self.root.is_some_and(|root| unsafe { root.take_only() });
        if taken {
            self.taken_over.store(true, Relaxed);
        }
        taken
    }

    fn root_node(&self) -> Option<Node<'_>> {
        // SAFETY: a root is a node, and lives while a reader uses the version (Q1, Q6).
        self.root.map(|root| unsafe { root.node() })
    }
}

impl<R: Release> Default for Sequence<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release> Drop for Sequence<R> {
    fn drop(&mut self) {
        drop(self.take_remains());
    }
}

/// The value at a position below a link.
///
/// # Safety
/// The link leads to a node of this height, which lives as long as `'a` with all that is below it.
#[inline]
unsafe fn find<'a>(root: Option<Link>, height: u32, position: u64) -> Option<&'a [u64]> {
    // SAFETY: the contract; what is below the last node is a value.
    unsafe { find_link(root, height, position).map(|link| link.value().words()) }
}

/// The link to the value at a position below a link.
///
/// # Safety
/// As for [`find`].
#[inline]
unsafe fn find_link(root: Option<Link>, height: u32, position: u64) -> Option<Link> {
    if position.checked_shr(height * BITS).unwrap_or(0) != 0 {
        return None;
    }
    let mut link = root?;
    for height in (1..=height).rev() {
        // SAFETY: by the contract this is a node that lives.
        link = unsafe { link.node() }.child(slot_of(position, height))?;
    }
    Some(link)
}
