//! The blocks that taking over leaves of the old version, and their release.

use super::block::Link;
use super::free::{Remains, free_value};
use super::value::Value;
use crate::record::Release;
use ats_sync::Guard;
use std::marker::PhantomData;

/// The blocks that a version that was [taken over](super::Edit::finish_taking_over) had, and its
/// successor has not.
///
/// Dropping it instead of retiring leaks that.
#[must_use = "what is not retired is leaked"]
pub struct Leftovers<R: Release> {
    list: Vec<Leftover>,
    release: PhantomData<R>,
}

/// The number of leftovers that need one allocation.
const FEW: usize = 8;

pub(super) enum Leftover {
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
            // SAFETY: only the old version led to these references, by the way that `make_version`
            // went. By contract, only readers that were pinned before this call can find that
            // version (SEQUENCE-6).
            unsafe {
                match leftover {
                    Leftover::Bare(link) => {
                        guard.retire(link.pointer(), link.node().bytes(), free_bare);
                    }
                    Leftover::Value(link) => {
                        let bytes = bytes_kept_by::<R>(link.value());
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

    /// Adds one.
    pub(super) fn add(&mut self, leftover: Leftover) {
        self.list.push(leftover);
    }

    /// Adds a reference to what is of this height.
    pub(super) fn add_reference(&mut self, link: Link, height: u32) {
        self.list.push(match height {
            0 => Leftover::Value(link),
            _ => Leftover::Node(link, height),
        });
    }
}

/// About what is given back with a value.
fn bytes_kept_by<R: Release>(value: Value<'_>) -> usize {
    value.bytes().saturating_add(value.owned_bytes::<R>())
}

/// About how many bytes are given back with a node that has no other reference. The values below it
/// were taken out of the new version one by one, so this takes no longer than that did.
///
/// # Safety
/// The link leads to a node of this height, which lives.
unsafe fn bytes_below<R: Release>(link: Link, height: u32) -> usize {
    let mut stack = vec![(link, height)];
    let mut sum = 0usize;
    while let Some((link, height)) = stack.pop() {
        // SAFETY: the caller says that the link leads to a node of this height, which lives. Its
        // children live as long (SEQUENCE-1), with the height below.
        unsafe {
            match height {
                0 => sum = sum.saturating_add(bytes_kept_by::<R>(link.value())),
                _ => {
                    let node = link.node();
                    sum = sum.saturating_add(node.bytes());
                    let children = node.links().iter();
                    stack.extend(children.map(|child| (child.without_mark(), height - 1)));
                }
            }
        }
    }
    sum
}

unsafe fn free_remains<R: Release>(raw: *mut u8) {
    // SAFETY: the pointer was retired as that of a box of this type, whose references are ours
    // (SEQUENCE-6).
    drop(unsafe { Box::from_raw(raw.cast::<Remains<R>>()) });
}

unsafe fn free_bare(raw: *mut u8) {
    // SAFETY: the pointer was retired as that of a node whose readers have gone (SEQUENCE-6).
    unsafe { Link::of_pointer(raw).node().free() };
}

unsafe fn give_up_value<R: Release>(raw: *mut u8) {
    // SAFETY: the pointer was retired as that of a value, together with a reference to it
    // (SEQUENCE-1, SEQUENCE-6).
    unsafe {
        let link = Link::of_pointer(raw);
        if link.give_up() {
            free_value::<R>(link.value());
        }
    }
}
