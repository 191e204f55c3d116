//! Giving references up, without recursion and in slices.

use super::block::Link;
use super::node::Node;
use super::value::Value;
use crate::record::Release;
use std::marker::PhantomData;

/// References that are to be given up, and with the last of a node those that the node has.
///
/// Dropping it does all that is left.
pub struct Remains<R: Release> {
    /// Links with their heights. Children lie above the siblings of their parent, so there are
    /// never more than the children of one node of each height.
    stack: Vec<(Link, u32)>,
    release: PhantomData<R>,
}

// SAFETY: the references in it are its own (SEQUENCE-4), and what values own may be released on any
// thread.
unsafe impl<R: Release> Send for Remains<R> {}

impl<R: Release> Remains<R> {
    /// # Safety
    /// The caller has a reference to what the link leads to, which has this height, and hands it
    /// over.
    pub(super) unsafe fn new(link: Option<(Link, u32)>) -> Self {
        Remains {
            stack: link.into_iter().collect(),
            release: PhantomData,
        }
    }

    /// Gives up to about `budget` references up; true when nothing is left. O(`budget`), and what
    /// [`Release::release`] takes.
    pub fn free_some(&mut self, budget: usize) -> bool {
        for _ in 0..budget {
            let Some((link, height)) = self.stack.pop() else {
                return true;
            };
            // SAFETY: what is on the stack are references of ours (SEQUENCE-1), with their heights.
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

    /// The number of references that wait to be given up.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn len(&self) -> usize {
        self.stack.len()
    }

    /// # Safety
    /// The node has no references any more (SEQUENCE-1).
    unsafe fn free_node(&mut self, node: Node<'_>, height: u32) {
        // The references that the node had to its children are ours now.
        let children = node.links().iter();
        self.stack
            .extend(children.map(|child| (child.without_mark(), height - 1)));
        // SAFETY: the caller says that the node has no references any more, so no code can reach it
        // (SEQUENCE-1).
        unsafe { node.free() };
    }
}

impl<R: Release> Drop for Remains<R> {
    fn drop(&mut self) {
        while !self.free_some(usize::MAX) {}
    }
}

/// Frees a value and what it owns.
///
/// # Safety
/// The value has no references any more (SEQUENCE-1).
pub(super) unsafe fn free_value<R: Release>(value: Value<'_>) {
    if value.owns() {
        // SAFETY: the resources of the words have been ours since the value was made (SEQUENCE-5),
        // and end here.
        unsafe { R::release(value.words()) };
    }
    // SAFETY: the caller says that the value has no references any more, so no code can reach it
    // (SEQUENCE-1).
    unsafe { value.free() };
}
