//! Making the next version: a draft that shares what does not change.

use super::block::Link;
use super::finish::make_version;
use super::free::free_value;
use super::leftovers::Leftovers;
use super::node::{Node, height_for, slot_of};
use super::value::Value;
use super::version::{Sequence, find, find_link};
use crate::record::Release;
use ats_sync::shim::atomic::{AtomicBool, Ordering::Relaxed};
use std::marker::PhantomData;

/// Changes to a version, of which a new one is made.
///
/// Until it is finished the edit takes no reference and changes no block of the old version: it
/// copies the nodes on the way to what changes, and writes to its own copies, which no second
/// change of the same edit copies again. Dropping it undoes everything.
pub struct Edit<'a, R: Release> {
    old: &'a Sequence<R>,
    new: Draft,
    release: PhantomData<R>,
}

/// A version being made. Links to blocks that were made for it are marked as drafts; it has the
/// only reference to them, and none to the others.
#[derive(Clone, Copy)]
struct Draft {
    root: Option<Link>,
    height: u32,
    len: usize,
    bytes: usize,
    /// Bytes that the values own.
    owned: usize,
    /// Values that were removed or replaced since the first version.
    gone: u64,
    next: u64,
}

impl<R: Release> Sequence<R> {
    /// Begins to make a new version of this one. O(1).
    ///
    /// There must not be another edit of the same version at the same time that is finished by
    /// taking over, nor may that have happened before.
    pub fn edit(&self) -> Edit<'_, R> {
        debug_assert!(
            !self.taken_over.load(Relaxed),
            "a version that was taken over"
        );
        Edit::new(self)
    }
}

impl<'a, R: Release> Edit<'a, R> {
    fn new(old: &'a Sequence<R>) -> Self {
        Edit {
            new: Draft {
                root: old.root,
                height: old.height,
                len: old.len,
                bytes: old.bytes,
                owned: old.owned,
                gone: old.gone,
                next: old.next,
            },
            old,
            release: PhantomData,
        }
    }

    /// Number of values as edited so far.
    pub fn len(&self) -> usize {
        self.new.len
    }

    /// Returns `true` if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at a position, as edited so far. O(log positions).
    pub fn get(&self, position: u64) -> Option<&[u64]> {
        // SAFETY: the draft leads to blocks of its own and of the old version, which live as long
        // as we borrow both (SEQUENCE-7).
        unsafe { find(self.new.root, self.new.height, position) }
    }

    /// Appends a value, whose position is returned. `owns` says that it holds resources for which
    /// [`Release::release`] must be called in the end; they belong to the sequence from now on.
    /// O(log positions), amortised without copies of nodes for all but the first.
    ///
    /// # Panics
    /// If the value has 2^31 words, or all 2^64 - 1 positions have been given.
    pub fn push(&mut self, words: &[u64], owns: bool) -> u64 {
        let position = self.new.next;
        let next = position.checked_add(1).expect("a position is left");
        let value = Value::make(words, owns);
        // SAFETY: `Value::make` has just made the value, and no other code frees it meanwhile
        // (SEQUENCE-7).
        self.new.count_value::<R>(unsafe { value.value() });
        self.new.grow(height_for(position));
        let root = self
            .new
            .put(self.new.root, self.new.height, position, value);
        self.new.root = Some(root);
        self.new.next = next;
        self.new.len += 1;
        position
    }

    /// Removes the value at a position; says whether there was one. O(log positions).
    pub fn remove(&mut self, position: u64) -> bool {
        if self.get(position).is_none() {
            return false;
        }
        let root = self.new.root.expect("a sequence with a value has a root");
        self.new.root = self.new.cut::<R>(root, self.new.height, position);
        self.new.len -= 1;
        true
    }

    /// Puts a value in the place of the one at a position; says whether there was one. As for
    /// [`push`](Edit::push) otherwise. O(log positions).
    ///
    /// # Panics
    /// If the value has 2^31 words.
    pub fn replace(&mut self, position: u64, words: &[u64], owns: bool) -> bool {
        // SAFETY: the draft and the version it was made of keep all blocks below the root, and the
        // height says what links lead to (SEQUENCE-7).
        let Some(old) = (unsafe { find_link(self.new.root, self.new.height, position) }) else {
            return false;
        };
        let value = Value::make(words, owns);
        // SAFETY: `Value::make` has just made the value, and no other code frees it meanwhile
        // (SEQUENCE-7).
        self.new.count_value::<R>(unsafe { value.value() });
        let root = self
            .new
            .put(self.new.root, self.new.height, position, value);
        self.new.root = Some(root);
        // Nothing of the draft leads to it any more.
        self.new.drop_value::<R>(old);
        true
    }

    /// The new version. The old one stays as it is: blocks that are in both have one more
    /// reference. O(blocks made by this edit), times the fan-out.
    pub fn finish(self) -> Sequence<R> {
        let (new, old) = (self.new, self.old);
        std::mem::forget(self);
        // SAFETY: the draft was made of this version, and no other code has it (SEQUENCE-7).
        unsafe { make_version(new.root, new.height, old, None) };
        new.into_sequence()
    }

    /// The new version, for which the old one is taken apart: it gets the references of the old one
    /// instead of more references, so that blocks which did not change are not touched. O(blocks
    /// made by this edit), times the fan-out.
    ///
    /// The leftovers are the parts of the old version that the new one has not. Until they are
    /// [retired](Leftovers::retire), the old version can be read as before.
    ///
    /// # Safety
    /// - The new version takes the place of the old one where readers find it, and is not dropped
    ///   before readers that find the old one there are gone.
    /// - No other code edits the old version now, and no code edits it later.
    /// - After the leftovers have been retired, the old version is read only by readers that hold a
    ///   guard, or a [shared](Sequence::share) version of their own.
    pub unsafe fn finish_taking_over(self) -> (Sequence<R>, Leftovers<R>) {
        let (new, old) = (self.new, self.old);
        std::mem::forget(self);
        let mut leftovers = Leftovers::none();
        // SAFETY: the draft was made of this version, and no other code has it (SEQUENCE-7). The
        // caller says that no other code edits the old version, now or later, and that only readers
        // with guards or versions of their own read it, which is what taking over asks for
        // (SEQUENCE-6).
        unsafe { make_version(new.root, new.height, old, Some(&mut leftovers)) };
        (new.into_sequence(), leftovers)
    }
}

impl<R: Release> Drop for Edit<'_, R> {
    fn drop(&mut self) {
        if let Some(root) = self.new.root {
            // SAFETY: the edit ends here, and its draft with it (SEQUENCE-7).
            unsafe { discard::<R>(root, self.new.height) };
        }
    }
}

impl Draft {
    fn into_sequence<R: Release>(self) -> Sequence<R> {
        Sequence {
            root: self.root.map(Link::without_mark),
            height: self.height,
            len: self.len,
            bytes: self.bytes,
            owned: self.owned,
            gone: self.gone,
            next: self.next,
            taken_over: AtomicBool::new(false),
            release: PhantomData,
        }
    }

    /// Puts nodes above the root until it has this height.
    fn grow(&mut self, height: u32) {
        if self.root.is_none() {
            self.height = self.height.max(height);
        }
        while let Some(root) = self.root
            && self.height < height
        {
            self.root = Some(self.count_node(Node::single(0, root)));
            self.height += 1;
        }
    }

    /// The node behind `link`, or a new one, with a value at a position below it. Recurs as deep as
    /// the tree is high.
    fn put(&mut self, link: Option<Link>, height: u32, position: u64, value: Link) -> Link {
        let slot = slot_of(position, height);
        let child = match height {
            1 => value,
            _ => {
                // SAFETY: links of the draft that stand at this height lead to nodes that live
                // (SEQUENCE-7).
                let below = link.and_then(|link| unsafe { link.node() }.child(slot));
                self.put(below, height - 1, position, value)
            }
        };
        match link {
            Some(link) => self.with_child(link, slot, Some(child)),
            None => self.count_node(Node::single(slot, child)),
        }
    }

    /// The node behind `link` without the value at a position below it, which is there; nothing if
    /// it was the last. Recurs as deep as the tree is high.
    fn cut<R: Release>(&mut self, link: Link, height: u32, position: u64) -> Option<Link> {
        let slot = slot_of(position, height);
        // SAFETY: links of the draft that stand at this height lead to nodes that live
        // (SEQUENCE-7).
        let node = unsafe { link.node() };
        let below = node.child(slot).expect("there is a way to the value");
        let rest = match height {
            1 => {
                self.drop_value::<R>(below);
                None
            }
            _ => self.cut::<R>(below, height - 1, position),
        };
        if rest.is_none() && node.links().len() == 1 {
            self.drop_node(link);
            return None;
        }
        Some(self.with_child(link, slot, rest))
    }

    /// A node of the draft that is the one behind `link`, but with this child in a slot, or none.
    fn with_child(&mut self, link: Link, slot: u32, child: Option<Link>) -> Link {
        // SAFETY: links of the draft that do not stand at the bottom lead to nodes that live
        // (SEQUENCE-7).
        let node = unsafe { link.node() };
        match child {
            Some(child) if link.is_draft() && node.has(slot) => {
                // SAFETY: only the draft leads to its own nodes (SEQUENCE-7).
                unsafe { node.set(slot, child) };
                link
            }
            _ => {
                let copy = self.count_node(node.copy_with(slot, child));
                self.drop_node(link);
                copy
            }
        }
    }

    /// Counts a node that was made.
    fn count_node(&mut self, link: Link) -> Link {
        // SAFETY: the caller has just made this node for the draft, which alone has it
        // (SEQUENCE-7).
        self.bytes += unsafe { link.node() }.bytes();
        link
    }

    /// Counts a value that was made.
    fn count_value<R: Release>(&mut self, value: Value<'_>) {
        self.bytes += value.bytes();
        self.owned = self.owned.saturating_add(value.owned_bytes::<R>());
    }

    /// Lets go of a node that the draft will not have any more.
    fn drop_node(&mut self, link: Link) {
        // SAFETY: links of the draft that do not stand at the bottom lead to nodes that live
        // (SEQUENCE-7).
        let node = unsafe { link.node() };
        self.bytes -= node.bytes();
        if link.is_draft() {
            // SAFETY: only the draft leads to its own nodes (SEQUENCE-7).
            unsafe { node.free() };
        }
    }

    /// Lets go of a value that the draft will not have any more.
    fn drop_value<R: Release>(&mut self, link: Link) {
        // SAFETY: links at the bottom of the draft lead to values that live (SEQUENCE-7).
        let value = unsafe { link.value() };
        self.bytes -= value.bytes();
        self.owned = self.owned.saturating_sub(value.owned_bytes::<R>());
        self.gone += 1;
        if link.is_draft() {
            // SAFETY: only the draft leads to its own values (SEQUENCE-7).
            unsafe { free_value::<R>(value) };
        }
    }
}

/// Frees the blocks of a draft. Recurs as deep as the tree is high.
///
/// # Safety
/// The draft is not used afterwards, and `height` is that of `link`.
unsafe fn discard<R: Release>(link: Link, height: u32) {
    if !link.is_draft() {
        return;
    }
    // SAFETY: only the draft leads to its own blocks; the height says what they are (SEQUENCE-7).
    unsafe {
        if height == 0 {
            return free_value::<R>(link.value());
        }
        let node = link.node();
        for child in node.links() {
            discard::<R>(*child, height - 1);
        }
        node.free();
    }
}
