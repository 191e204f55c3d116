//! Edits: the construction of the next version, which shares unchanged blocks.

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

/// Changes to a version that make a new one.
///
/// Until it is finished the edit takes no reference and changes no block of the old version: it
/// copies the nodes on the paths to the changes, and writes to its own copies, which further
/// changes of the same edit reuse. Dropping it undoes everything.
pub struct Edit<'a, R: Release> {
    old: &'a Sequence<R>,
    new: Draft,
    release: PhantomData<R>,
}

/// A version under construction. Links to blocks made for it are marked as drafts; it has the only
/// reference to them, and none to the others.
#[derive(Clone, Copy)]
struct Draft {
    root: Option<Link>,
    height: u32,
    len: usize,
    bytes: usize,
    /// Bytes that the values own.
    owned: usize,
    /// Number of values removed or replaced since the first version.
    gone: u64,
    next: u64,
}

impl<R: Release> Sequence<R> {
    /// Begins a new version of this one. O(1).
    ///
    /// No other edit of the same version may be finished by taking over, at the same time or
    /// before.
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

    /// Returns the number of values as edited so far.
    pub fn len(&self) -> usize {
        self.new.len
    }

    /// Returns `true` if the sequence is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value at a position, as edited so far. O(log positions).
    pub fn get(&self, position: u64) -> Option<&[u64]> {
        // SAFETY: the draft leads to blocks of its own and of the old version, which live as long
        // as we borrow both (SEQUENCE-7).
        unsafe { find(self.new.root, self.new.height, position) }
    }

    /// Appends a value, and returns its position. With `owns`, the value holds resources for which
    /// [`Release::release`] must be called in the end; they belong to the sequence from now on.
    /// O(log positions); after the first push of an edit, amortised without copies of nodes.
    ///
    /// # Panics
    /// Panics if the value has 2^31 words or more, or all 2^64 - 1 positions were used.
    pub fn push(&mut self, words: &[u64], owns: bool) -> u64 {
        let position = self.new.next;
        let next = position.checked_add(1).expect("a position is left");
        let value = Value::make(words, owns);
        // SAFETY: `Value::make` has just made the value, and no other code frees it (SEQUENCE-7).
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

    /// Removes the value at a position. Returns `true` if there was one. O(log positions).
    pub fn remove(&mut self, position: u64) -> bool {
        if self.get(position).is_none() {
            return false;
        }
        let root = self.new.root.expect("a sequence with a value has a root");
        self.new.root = self.new.without::<R>(root, self.new.height, position);
        self.new.len -= 1;
        true
    }

    /// Replaces the value at a position. Returns `true` if there was one. Otherwise like
    /// [`push`](Edit::push). O(log positions).
    ///
    /// # Panics
    /// Panics if the value has 2^31 words or more.
    pub fn replace(&mut self, position: u64, words: &[u64], owns: bool) -> bool {
        // SAFETY: the draft and the version it was made from keep all blocks below the root alive,
        // and the height implies the kind of blocks (SEQUENCE-7).
        let Some(old) = (unsafe { find_link(self.new.root, self.new.height, position) }) else {
            return false;
        };
        let value = Value::make(words, owns);
        // SAFETY: `Value::make` has just made the value, and no other code frees it (SEQUENCE-7).
        self.new.count_value::<R>(unsafe { value.value() });
        let root = self
            .new
            .put(self.new.root, self.new.height, position, value);
        self.new.root = Some(root);
        // The draft no longer leads to it.
        self.new.drop_value::<R>(old);
        true
    }

    /// Returns the new version. The old one stays unchanged: blocks in both have one more
    /// reference. O(blocks made by this edit), times the fan-out.
    pub fn finish(self) -> Sequence<R> {
        let (new, old) = (self.new, self.old);
        std::mem::forget(self);
        // SAFETY: the draft was made from this version, and no other code has it (SEQUENCE-7).
        unsafe { make_version(new.root, new.height, old, None) };
        new.into_sequence()
    }

    /// Returns the new version, which takes over the references of the old one instead of adding
    /// references, so that unchanged blocks are not touched. O(blocks made by this edit), times the
    /// fan-out.
    ///
    /// The leftovers are the parts of the old version that the new one does not have. Until they
    /// are [retired](Leftovers::retire), the old version can be read as before.
    ///
    /// # Safety
    /// - The new version replaces the old one where readers find it, and is not dropped before all
    ///   readers that found the old one there have left.
    /// - No other code edits the old version now, and no code edits it later.
    /// - After the leftovers have been retired, the old version is read only by readers that hold a
    ///   guard, or a [shared](Sequence::share) version of their own.
    pub unsafe fn finish_taking_over(self) -> (Sequence<R>, Leftovers<R>) {
        let (new, old) = (self.new, self.old);
        std::mem::forget(self);
        let mut leftovers = Leftovers::none();
        // SAFETY: the draft was made from this version, and no other code has it (SEQUENCE-7). The
        // caller promises that no other code edits the old version, now or later, and that only
        // readers with guards or versions of their own read it, as taking over demands
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

    /// Adds nodes above the root until it has this height.
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

    /// Returns the node behind `link`, or a new one, with a value at a position below it. The
    /// recursion is as deep as the tree is high.
    fn put(&mut self, link: Option<Link>, height: u32, position: u64, value: Link) -> Link {
        let slot = slot_of(position, height);
        let child = match height {
            1 => value,
            _ => {
                // SAFETY: links of the draft at this height lead to live nodes (SEQUENCE-7).
                let below = link.and_then(|link| unsafe { link.node() }.child(slot));
                self.put(below, height - 1, position, value)
            }
        };
        match link {
            Some(link) => self.with_child(link, slot, Some(child)),
            None => self.count_node(Node::single(slot, child)),
        }
    }

    /// Returns the node behind `link` without the existing value at a position below it; `None` if
    /// it was the last. The recursion is as deep as the tree is high.
    fn without<R: Release>(&mut self, link: Link, height: u32, position: u64) -> Option<Link> {
        let slot = slot_of(position, height);
        // SAFETY: links of the draft at this height lead to live nodes (SEQUENCE-7).
        let node = unsafe { link.node() };
        let below = node.child(slot).expect("there is a way to the value");
        let rest = match height {
            1 => {
                self.drop_value::<R>(below);
                None
            }
            _ => self.without::<R>(below, height - 1, position),
        };
        if rest.is_none() && node.links().len() == 1 {
            self.drop_node(link);
            return None;
        }
        Some(self.with_child(link, slot, rest))
    }

    /// Returns a node of the draft like the one behind `link`, with this child in a slot, or none.
    fn with_child(&mut self, link: Link, slot: u32, child: Option<Link>) -> Link {
        // SAFETY: links of the draft above the bottom lead to live nodes (SEQUENCE-7).
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

    /// Counts a new node.
    fn count_node(&mut self, link: Link) -> Link {
        // SAFETY: the caller has just made this node for the draft, which alone has it
        // (SEQUENCE-7).
        self.bytes += unsafe { link.node() }.bytes();
        link
    }

    /// Counts a new value.
    fn count_value<R: Release>(&mut self, value: Value<'_>) {
        self.bytes += value.bytes();
        self.owned = self.owned.saturating_add(value.owned_bytes::<R>());
    }

    /// Drops a node from the draft.
    fn drop_node(&mut self, link: Link) {
        // SAFETY: links of the draft above the bottom lead to live nodes (SEQUENCE-7).
        let node = unsafe { link.node() };
        self.bytes -= node.bytes();
        if link.is_draft() {
            // SAFETY: only the draft leads to its own nodes (SEQUENCE-7).
            unsafe { node.free() };
        }
    }

    /// Drops a value from the draft.
    fn drop_value<R: Release>(&mut self, link: Link) {
        // SAFETY: links at the bottom of the draft lead to live values (SEQUENCE-7).
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

/// Frees the blocks of a draft. The recursion is as deep as the tree is high.
///
/// # Safety
/// The draft must not be used afterwards, and `height` must be that of `link`.
unsafe fn discard<R: Release>(link: Link, height: u32) {
    if !link.is_draft() {
        return;
    }
    // SAFETY: only the draft leads to its own blocks; the height implies their kind (SEQUENCE-7).
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
