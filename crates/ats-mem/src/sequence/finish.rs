//! Conversion of a draft to a version: its references are counted, or taken over.
//!
//! The draft and the version it was made from are walked side by side, where they differ. At each
//! point of the tree is a node of the draft, and mostly the node that it replaces. As long as the
//! path from the old root leads through nodes with a single reference, these references belong to
//! us: the old node is retired as a bare block, and its references to children that the new node
//! also has move to that, uncounted. From the first node on with other references, the old node
//! keeps its references, and the new node counts its own.

use super::block::Link;
use super::leftovers::{Leftover, Leftovers};
use super::node::{Node, slots};
use super::version::Sequence;
use crate::record::Release;

/// Removes the marks from a draft, except that of its root, and counts its references. With
/// `leftovers`, takes over the references of the old version, unless another version shares its
/// nodes.
///
/// # Safety
/// - The draft of this root and height was made from `old`, belongs to the caller alone, and is not
///   used as a draft afterwards.
/// - With `leftovers`, the contract of [`finish_taking_over`](super::Edit::finish_taking_over).
pub(super) unsafe fn make_version<R: Release>(
    root: Option<Link>,
    height: u32,
    old: &Sequence<R>,
    leftovers: Option<&mut Leftovers<R>>,
) {
    // An empty draft leaves everything to the old version, which frees it when it is dropped.
    let Some(root) = root else { return };
    // SAFETY: the caller promises that the draft was made from `old` and belongs to the caller
    // alone. So the links of the draft (SEQUENCE-7) and those of the version (SEQUENCE-1) lead to
    // live blocks.
    unsafe {
        match old.root {
            None => count_draft::<R>(root, height, None, None),
            Some(_) => {
                // The old root may stay, with a reference from the new version; then there is
                // nothing to take over.
                let leftovers = leftovers
                    .filter(|_| replaces_root(root, height, old.height) && old.take_root_if_only());
                count_root(root, height, old, leftovers);
            }
        }
    }
}

/// Returns `true` if the draft has a node of its own instead of the root of the old version.
///
/// # Safety
/// The same as for [`make_version`].
unsafe fn replaces_root(mut link: Link, height: u32, old_height: u32) -> bool {
    for _ in old_height..height {
        // SAFETY: above the old root are nodes of the draft (SEQUENCE-7).
        match unsafe { link.node() }.child(0) {
            Some(below) => link = below,
            None => return false,
        }
    }
    link.is_draft()
}

/// Does the work of [`make_version`] below a node that replaces the old root, or is above it in a
/// tree that has grown. With `leftovers`, the old root has been taken.
///
/// # Safety
/// The same as for [`make_version`].
unsafe fn count_root<R: Release>(
    link: Link,
    height: u32,
    old: &Sequence<R>,
    leftovers: Option<&mut Leftovers<R>>,
) {
    // SAFETY: the draft was made from `old` and belongs to the caller alone. So links of the draft
    // (SEQUENCE-7) and of the old version (SEQUENCE-1) lead to live blocks at the expected heights.
    unsafe {
        if height > old.height {
            let node = link.node();
            let mut leftovers = leftovers;
            for (index, slot) in slots(node.bitmap()).enumerate() {
                let child = node.links()[index];
                match slot {
                    0 => count_root(child, height - 1, old, leftovers.take()),
                    _ => count_draft::<R>(child, height - 1, None, None),
                }
                node.set_at(index, child.without_mark());
            }
            return;
        }
        match (leftovers, old.root) {
            (Some(leftovers), Some(root)) => {
                leftovers.add(Leftover::Bare(root));
                count_children(link.node(), height, Some(root.node()), Some(leftovers));
            }
            _ if link.is_draft() => count_draft::<R>(link, height, old.root, None),
            _ => link.share(),
        }
    }
}

/// Counts the references of a node of the draft that replaces `old`. With `leftovers`, the
/// reference of the old version is ours.
///
/// # Safety
/// The same as for [`make_version`].
unsafe fn count_draft<R: Release>(
    link: Link,
    height: u32,
    old: Option<Link>,
    leftovers: Option<&mut Leftovers<R>>,
) {
    // SAFETY: the draft was made from the old version and belongs to the caller alone. So links of
    // the draft (SEQUENCE-7) and of the old version (SEQUENCE-1) lead to live blocks at the
    // expected heights.
    unsafe {
        let mut below = None;
        if let (Some(old), Some(leftovers)) = (old, leftovers) {
            // A node with one reference cannot be shared by other threads (SEQUENCE-4): they would
            // need a reference to the node, or to a node above it, and these are all ours.
            if old.is_only() {
                leftovers.add(Leftover::Bare(old));
                below = Some(leftovers);
            } else {
                leftovers.add_reference(old, height);
            }
        }
        let old = old.map(|old| old.node());
        count_children(link.node(), height, old, below);
    }
}

/// Counts the references to the children of a node of the draft that replaces `old`. With
/// `leftovers`, the references of the old node are ours.
///
/// # Safety
/// The same as for [`make_version`].
unsafe fn count_children<R: Release>(
    node: Node<'_>,
    height: u32,
    old: Option<Node<'_>>,
    mut leftovers: Option<&mut Leftovers<R>>,
) {
    for index in 0..node.links().len() {
        let child = node.links()[index];
        // SAFETY: the draft was made from the old version and belongs to the caller alone. So links
        // of the draft (SEQUENCE-7) and of the old version (SEQUENCE-1) lead to live blocks at the
        // expected heights. No slice of the links is held beyond this block.
        unsafe {
            if child.is_draft() {
                let before = old.and_then(|old| old.child(node.slot_at(index)));
                if height > 1 {
                    count_draft(child, height - 1, before, leftovers.as_deref_mut());
                } else if let (Some(before), Some(leftovers)) = (before, leftovers.as_deref_mut()) {
                    // A value was replaced.
                    leftovers.add_reference(before, 0);
                }
                node.set_at(index, child.without_mark());
            } else if leftovers.is_none() {
                child.share();
            } // else the reference of the old version is that of the new one now
        }
    }
    if let (Some(old), Some(leftovers)) = (old, leftovers) {
        for slot in slots(old.bitmap() & !node.bitmap()) {
            let gone = old.child(slot).expect("a slot of the bitmap has a child");
            leftovers.add_reference(gone, height - 1);
        }
    }
}
