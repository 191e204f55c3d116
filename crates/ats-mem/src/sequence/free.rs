//! Release of references, without recursion and in slices.

use super::block::Link;
use super::node::Node;
use super::value::Value;
use crate::record::Release;
use std::marker::PhantomData;

/// References to be given up, and with the last reference to a node also those of the node.
///
/// Dropping it gives up all that are left.
pub struct Remains<R: Release> {
    /// Links with their heights. Children are above the siblings of their parent, so the stack
    /// never holds more than the children of one node of each height.
    stack: Vec<(Link, u32)>,
    release: PhantomData<R>,
}

// SAFETY: the references belong to this struct (SEQUENCE-4), and resources of values may be
// released on any thread.
unsafe impl<R: Release> Send for Remains<R> {}

impl<R: Release> Remains<R> {
    /// # Safety
    /// The caller must have a reference to the block, which must have this height, and hands it
    /// over.
    pub(super) unsafe fn new(link: Option<(Link, u32)>) -> Self {
        Remains {
            stack: link.into_iter().collect(),
            release: PhantomData,
        }
    }

    /// Gives up at most about `budget` references. Returns `true` when none is left. O(`budget`),
    /// plus the calls of [`Release::release`].
    pub fn free_some(&mut self, budget: usize) -> bool {
        for _ in 0..budget {
            let Some((link, height)) = self.stack.pop() else {
                return true;
            };
            // SAFETY: the stack holds references of ours (SEQUENCE-1), with their heights.
            unsafe {
                if !link.give_up() {
                    continue;
                }
                match height {
                    0 => free_value::<R>(link.value()),
                    _ => self.free_node(link.node(), height),
                }
            }
        }
        self.stack.is_empty()
    }

    /// Returns the number of references that wait to be given up.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn len(&self) -> usize {
        self.stack.len()
    }

    /// # Safety
    /// The node must have no references any more (SEQUENCE-1).
    unsafe fn free_node(&mut self, node: Node<'_>, height: u32) {
        // The node's references to its children are ours now.
        let children = node.links().iter();
        self.stack
            .extend(children.map(|child| (child.without_mark(), height - 1)));
        // SAFETY: the caller promises that the node has no references any more, so no code can
        // reach it (SEQUENCE-1).
        unsafe { node.free() };
    }
}

impl<R: Release> Drop for Remains<R> {
    fn drop(&mut self) {
        while !self.free_some(usize::MAX) {}
    }
}

/// Frees a value and releases its resources.
///
/// # Safety
/// The value must have no references any more (SEQUENCE-1).
pub(super) unsafe fn free_value<R: Release>(value: Value<'_>) {
    if value.owns() {
        // SAFETY: the sequence has owned the resources of the words since the value was made
        // (SEQUENCE-5), and releases them here.
        unsafe { R::release(value.words()) };
    }
    // SAFETY: the caller promises that the value has no references any more, so no code can reach
    // it (SEQUENCE-1).
    unsafe { value.free() };
}
