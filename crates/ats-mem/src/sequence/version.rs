//! Versions: read access, and their end.

use super::block::Link;
use super::free::Remains;
use super::node::{BITS, Node, slot_of};
use crate::record::Release;
use ats_sync::shim::atomic::{AtomicBool, Ordering::Relaxed};
use std::marker::PhantomData;

/// Estimated bytes of a node that a change has copied.
const NODE_BYTES: usize = 256;

/// A version of a sequence.
///
/// Dropping it frees the blocks that no other version has: O(values), unless it was taken over. For
/// a long one see [`into_remains`](Sequence::into_remains).
pub struct Sequence<R: Release> {
    pub(super) root: Option<Link>,
    /// Height of the root: the number of nodes on the path to a value.
    pub(super) height: u32,
    pub(super) len: usize,
    pub(super) bytes: usize,
    /// Bytes owned by the values.
    pub(super) owned: usize,
    /// Number of values removed or replaced since the first version.
    pub(super) gone: u64,
    /// Position of the next value to append.
    pub(super) next: u64,
    pub(super) taken_over: AtomicBool,
    pub(super) release: PhantomData<R>,
}

// SAFETY: blocks do not change except their atomic counts (SEQUENCE-2), and `Release` may be called
// on any thread (SEQUENCE-5).
unsafe impl<R: Release> Send for Sequence<R> {}
// SAFETY: blocks do not change once their version is finished, except their counts, which are
// atomic (SEQUENCE-2).
unsafe impl<R: Release> Sync for Sequence<R> {}

impl<R: Release> Sequence<R> {
    /// Creates an empty sequence.
    pub fn new() -> Self {
        Sequence {
            root: None,
            height: 0,
            len: 0,
            bytes: 0,
            owned: 0,
            gone: 0,
            next: 0,
            taken_over: AtomicBool::new(false),
            release: PhantomData,
        }
    }

    /// Returns the number of values. O(1).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the sequence is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of memory of this version's blocks, including those that other versions
    /// share. O(1).
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the approximate number of bytes that are freed with this version, including
    /// resources of its values: none if it has been taken over. O(1).
    pub fn kept_bytes(&self) -> usize {
        if self.taken_over.load(Relaxed) {
            0
        } else {
            self.bytes.saturating_add(self.owned)
        }
    }

    /// Returns the approximate number of bytes that this version keeps and a later one does not,
    /// including resources of its values: its share of the values removed since, and the nodes that
    /// changes have copied. O(1).
    pub fn held_bytes(&self, later: &Self) -> usize {
        let gone = later.gone.saturating_sub(self.gone);
        let is_changed = gone > 0 || later.next > self.next;
        let nodes = usize::from(is_changed) * (self.height as usize) * NODE_BYTES;
        let all = self.bytes.saturating_add(self.owned) as u128;
        let share = all * u128::from(gone.min(self.len as u64)) / (self.len.max(1) as u128);
        (share as usize).saturating_add(nodes)
    }

    /// Returns the position of the next value to append, which is larger than all before it. O(1).
    pub fn next_position(&self) -> u64 {
        self.next
    }

    /// Returns the value at a position. O(log positions).
    ///
    /// A reader that found the version under a guard which it still holds may call this even while
    /// the version is being, or after it was, taken over. The same holds for all functions that
    /// read.
    #[inline]
    pub fn get(&self, position: u64) -> Option<&[u64]> {
        // SAFETY: the blocks of a version stay alive while a reader uses it (SEQUENCE-1,
        // SEQUENCE-6).
        unsafe { find(self.root, self.height, position) }
    }

    /// Returns another count of this version, to be kept beyond the guard it was found under;
    /// `None` if it has been taken over, so that a newer version can be found. O(1).
    pub fn share(&self) -> Option<Self> {
        if let Some(root) = self.root {
            // SAFETY: the block of the root stays alive while a reader uses the version
            // (SEQUENCE-1, SEQUENCE-6).
            unsafe { root.share_if_any() }.then_some(())?;
        }
        Some(Sequence {
            taken_over: AtomicBool::new(false),
            ..*self
        })
    }

    /// Returns the references of this version, to be given up in slices.
    pub fn into_remains(mut self) -> Remains<R> {
        self.take_remains()
    }

    fn take_remains(&mut self) -> Remains<R> {
        let root = self.root.take();
        // Relaxed: if the version was taken over, that happened before this code got exclusive
        // access to it.
        let ours = root.filter(|_| !self.taken_over.load(Relaxed));
        // SAFETY: a version has a reference to its root, unless it was taken over (SEQUENCE-1,
        // SEQUENCE-6), and this one has just lost its root.
        unsafe { Remains::new(ours.map(|root| (root, self.height))) }
    }

    /// Takes the reference to the root away, if there is a root with only one. Returns `true` if it
    /// did; then the root and its references belong to the caller (SEQUENCE-4).
    pub(super) fn take_root_if_only(&self) -> bool {
        // SAFETY: the version has a reference to its root (SEQUENCE-1).
        let taken = self.root.is_some_and(|root| unsafe { root.take_only() });
        if taken {
            self.taken_over.store(true, Relaxed);
        }
        taken
    }

    pub(super) fn root_node(&self) -> Option<Node<'_>> {
        // SAFETY: a root is a node, and stays alive while a reader uses the version (SEQUENCE-1,
        // SEQUENCE-6).
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

/// Returns the value at a position below a link.
///
/// # Safety
/// The link must lead to a node of this height, which must live during `'a` with everything below
/// it (SEQUENCE-1).
#[inline]
pub(super) unsafe fn find<'a>(root: Option<Link>, height: u32, position: u64) -> Option<&'a [u64]> {
    // SAFETY: the caller promises that the node, of this height, and everything below it live
    // during `'a` (SEQUENCE-1). Below the last node is a value.
    unsafe { find_link(root, height, position).map(|link| link.value().words()) }
}

/// Returns the link to the value at a position below a link.
///
/// # Safety
/// The same as for [`find`].
#[inline]
pub(super) unsafe fn find_link(root: Option<Link>, height: u32, position: u64) -> Option<Link> {
    if position.checked_shr(height * BITS).unwrap_or(0) != 0 {
        return None;
    }
    let mut link = root?;
    for height in (1..=height).rev() {
        // SAFETY: the caller promises that the parent is a live node, and so is this one, which is
        // below it (SEQUENCE-1).
        link = unsafe { link.node() }.child(slot_of(position, height))?;
    }
    Some(link)
}
