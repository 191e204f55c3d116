//! Making a draft a version: counting references, or taking them over.
//!
//! The draft and the version it was made of are walked side by side, where they differ. At each place of
//! the tree there is a node of the draft, and mostly the node that it replaces. While the way there from
//! the old root has led through nodes with a single reference, these references are ours to dispose of:
//! the old node is retired as a bare block, and its references to children that are also children of the
//! new node go over to that, uncounted. From the first node on that has other references as well, the old
//! node keeps its references, and the new node counts its own.

use super::Sequence;
use super::block::{Link, Node, Value, slots};
use super::free::{Remains, free_value};
use crate::record::Release;
use ats_sync::Guard;
use std::marker::PhantomData;

/// What a version that was [taken over](super::Edit::finish_taking_over) had, and its successor has not.
///
/// Dropping it instead of retiring leaks that.
#[must_use = "what is not retired is leaked"]
pub struct Leftovers<R: Release> {
    list: Vec<Leftover>,
    release: PhantomData<R>,
}

/// As many leftovers need one allocation.
const FEW: usize = 8;

enum Leftover {
    /// A node whose references to its children now belong to others.
    Bare(Link),
    /// A reference to a value.
    Value(Link),
    /// A reference to a node of this height.
    Node(Link, u32),
}

impl<R: Release> Leftovers<R> {
    pub(super) fn none() -> Self {
        Leftovers {
            // A change of one value leaves a node of each height and a value.
            list: Vec::with_capacity(FEW),
            release: PhantomData,
        }
    }

    /// Gives everything back when no reader can be reading the old version any more.
    ///
    /// # Safety
    /// Threads that pin from now on do not find the old version.
    pub unsafe fn retire(mut self, guard: &Guard) {
        for leftover in std::mem::take(&mut self.list) {
            // SAFETY: only the old version led to these references, by the way that `settle` went. By
            // contract, only readers that were pinned before this call can find that version.
            unsafe {
                match leftover {
                    Leftover::Bare(link) => {
                        guard.retire(link.pointer(), link.node().bytes(), free_bare);
                    }
                    Leftover::Value(link) => {
                        let bytes = kept_by::<R>(link.value());
                        guard.retire(link.pointer(), bytes, give_up_value::<R>);
                    }
                    Leftover::Node(link, height) => {
                        // If the node has other references, only this reference is given back.
                        let bytes = match link.is_only() {
                            true => bytes_below::<R>(link, height),
                            false => 0,
                        };
                        let remains = Box::new(Remains::<R>::new(Some((link, height))));
                        let bytes = bytes.saturating_add(size_of_val(&*remains));
                        guard.retire(Box::into_raw(remains).cast(), bytes, free_remains::<R>);
                    }
                }
            }
        }
    }

    fn give_up(&mut self, link: Link, height: u32) {
        self.list.push(match height {
            0 => Leftover::Value(link),
            _ => Leftover::Node(link, height),
        });
    }
}

/// About what is given back with a value.
fn kept_by<R: Release>(value: Value<'_>) -> usize {
    let mut bytes = value.bytes();
    if value.owns() {
        let words = value.words();
        // SAFETY: the words of a value that owns, and values of sequences do not change.
        bytes = bytes.saturating_add(unsafe { R::kept_bytes(words.as_ptr(), words.len()) });
    }
    bytes
}

/// About how many bytes are given back with a node that has no other reference. The values below it were
/// taken out of the new version one by one, so this takes no longer than that did.
///
/// # Safety
/// The link leads to a node of this height, which lives.
unsafe fn bytes_below<R: Release>(link: Link, height: u32) -> usize {
    let mut stack = vec![(link, height)];
    let mut sum = 0usize;
    while let Some((link, height)) = stack.pop() {
        // SAFETY: the contract; children live as long as their nodes, with the height below.
        unsafe {
            match height {
                0 => sum = sum.saturating_add(kept_by::<R>(link.value())),
                _ => {
                    let node = link.node();
                    sum = sum.saturating_add(node.bytes());
                    let children = node.links().iter();
                    stack.extend(children.map(|child| (child.settled(), height - 1)));
                }
            }
        }
    }
    sum
}

unsafe fn free_remains<R: Release>(raw: *mut u8) {
    // SAFETY: retired as the pointer of a box of this type, which no other code has.
    drop(unsafe { Box::from_raw(raw.cast::<Remains<R>>()) });
}

unsafe fn free_bare(raw: *mut u8) {
    // SAFETY: retired as the pointer of a node that is not used any more.
    unsafe { Link::of_pointer(raw).node().free() };
}

unsafe fn give_up_value<R: Release>(raw: *mut u8) {
    // SAFETY: retired as the pointer of a value, together with a reference to it.
    unsafe {
        let link = Link::of_pointer(raw);
        if link.give_up() {
            free_value::<R>(link.value());
        }
    }
}

/// Removes the marks from a draft, except that of its root, and makes its references count. With
/// `leftovers`, takes the references of the old version over, as far as no other version shares its nodes.
///
/// # Safety
/// - The draft of this root and height was made of `old`, is the caller's alone, and is not used as a draft
///   afterwards.
/// - With `leftovers`, the contract of [`finish_taking_over`](super::Edit::finish_taking_over).
pub(super) unsafe fn settle<R: Release>(
    root: Option<Link>,
    height: u32,
    old: &Sequence<R>,
    leftovers: Option<&mut Leftovers<R>>,
) {
    // If everything is gone, the old version frees it when it goes itself.
    let Some(root) = root else { return };
    // SAFETY: handed on.
    unsafe {
        match old.root {
            None => settle_draft::<R>(root, height, None, None),
            Some(_) => {
                // If the old root stays, the new version refers to it, and there is nothing to take.
                let leftovers = leftovers
                    .filter(|_| replaces_root(root, height, old.height) && old.be_taken_over());
                settle_root(root, height, old, leftovers);
            }
        }
    }
}

/// Whether the draft has a node of its own in the place of the root of the old version.
///
/// # Safety
/// As for [`settle`].
unsafe fn replaces_root(mut link: Link, height: u32, old_height: u32) -> bool {
    for _ in old_height..height {
        // SAFETY: above the place of the old root there are nodes.
        match unsafe { link.node() }.child(0) {
            Some(below) => link = below,
            None => return false,
        }
    }
    link.is_draft()
}

/// [`settle`] below a node that stands where the old root does, or above it in a tree that has grown.
/// With `leftovers`, the old root has been taken.
unsafe fn settle_root<R: Release>(
    link: Link,
    height: u32,
    old: &Sequence<R>,
    leftovers: Option<&mut Leftovers<R>>,
) {
    // SAFETY: as for `settle`: links of the draft and of the old version live, and stand at the heights
    // they are looked for at.
    unsafe {
        if height > old.height {
            let node = link.node();
            let mut leftovers = leftovers;
            for (index, slot) in slots(node.bitmap()).enumerate() {
                let child = node.links()[index];
                match slot {
                    0 => settle_root(child, height - 1, old, leftovers.take()),
                    _ => settle_draft::<R>(child, height - 1, None, None),
                }
                node.set_at(index, child.settled());
            }
            return;
        }
        match (leftovers, old.root) {
            (Some(leftovers), Some(root)) => {
                leftovers.list.push(Leftover::Bare(root));
                settle_children(link.node(), height, Some(root.node()), Some(leftovers));
            }
            _ if link.is_draft() => settle_draft::<R>(link, height, old.root, None),
            _ => link.share(),
        }
    }
}

/// Settles a node of the draft, which stands where the old version has `old`. With `leftovers`, the
/// reference of the old version is ours.
///
/// # Safety
/// As for [`settle`].
unsafe fn settle_draft<R: Release>(
    link: Link,
    height: u32,
    old: Option<Link>,
    leftovers: Option<&mut Leftovers<R>>,
) {
    // SAFETY: as in `settle_root`.
    unsafe {
        let mut below = None;
        if let (Some(old), Some(leftovers)) = (old, leftovers) {
            // If the node has one reference, no other thread can begin to share it (Q4): it would need a
            // reference to the node, or to a node above it, and these are all ours.
            if old.is_only() {
                leftovers.list.push(Leftover::Bare(old));
                below = Some(leftovers);
            } else {
                leftovers.give_up(old, height);
            }
        }
        let old = old.map(|old| old.node());
        settle_children(link.node(), height, old, below);
    }
}

/// Settles the children of a node of the draft, which stands where the old version has `old`. With
/// `leftovers`, the references of the old node are ours.
///
/// # Safety
/// As for [`settle`].
unsafe fn settle_children<R: Release>(
    node: Node<'_>,
    height: u32,
    old: Option<Node<'_>>,
    mut leftovers: Option<&mut Leftovers<R>>,
) {
    for index in 0..node.links().len() {
        let child = node.links()[index];
        // SAFETY: as for `settle`. No slice of the links is held beyond this.
        unsafe {
            if child.is_draft() {
                let before = old.and_then(|old| old.child(node.slot_at(index)));
                if height > 1 {
                    settle_draft(child, height - 1, before, leftovers.as_deref_mut());
                } else if let (Some(before), Some(leftovers)) = (before, leftovers.as_deref_mut()) {
                    // A value was replaced.
                    leftovers.give_up(before, 0);
                }
                node.set_at(index, child.settled());
            } else if leftovers.is_none() {
                child.share();
            } // else the reference of the old version is that of the new one now
        }
    }
    if let (Some(old), Some(leftovers)) = (old, leftovers) {
        for slot in slots(old.bitmap() & !node.bitmap()) {
            let gone = old.child(slot).expect("a slot of the bitmap has a child");
            leftovers.give_up(gone, height - 1);
        }
    }
}
