//! Leftovers of an old version after its take-over, and their release.

use super::block::Link;
use super::free::{Remains, free_value};
use super::value::Value;
use crate::record::Release;
use ats_sync::Guard;
use std::marker::PhantomData;

/// The blocks of a version that was [taken over](super::Edit::finish_taking_over) that its
/// successor does not have.
///
/// Dropping them instead of retiring leaks them.
#[must_use = "what is not retired is leaked"]
pub struct Leftovers<R: Release> {
    list: Vec<Leftover>,
    release: PhantomData<R>,
}

/// Number of leftovers that fit one allocation.
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
            // A change of one value leaves a node of each height, and a value.
            list: Vec::with_capacity(FEW),
            release: PhantomData,
        }
    }

    /// Frees all blocks once no reader can access the old version any more.
    ///
    /// # Safety
    /// Threads that pin from now on must not find the old version.
    pub unsafe fn retire(mut self, guard: &Guard) {
        for leftover in std::mem::take(&mut self.list) {
            // SAFETY: only the old version led to these references, on the path that `make_version`
            // took. By contract, only readers pinned before this call can find that version
            // (SEQUENCE-6).
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
                        // A node with other references only loses this one.
                        let bytes = if link.is_only() {
                            bytes_below::<R>(link, height)
                        } else {
                            0
                        };
                        let remains = Box::new(Remains::<R>::new(Some((link, height))));
                        let bytes = bytes.saturating_add(size_of_val(&*remains));
                        guard.retire(Box::into_raw(remains).cast(), bytes, free_remains::<R>);
                    }
                }
            }
        }
    }

    /// Adds a leftover.
    pub(super) fn add(&mut self, leftover: Leftover) {
        self.list.push(leftover);
    }

    /// Adds a reference to a block of this height.
    pub(super) fn add_reference(&mut self, link: Link, height: u32) {
        self.list.push(match height {
            0 => Leftover::Value(link),
            _ => Leftover::Node(link, height),
        });
    }
}

/// Returns the approximate number of bytes that are freed with a value.
fn bytes_kept_by<R: Release>(value: Value<'_>) -> usize {
    value.bytes().saturating_add(value.owned_bytes::<R>())
}

/// Returns the approximate number of bytes that are freed with a node without other references. The
/// values below it were removed from the new version one by one, so this takes no longer than that.
///
/// # Safety
/// The link must lead to a live node of this height.
unsafe fn bytes_below<R: Release>(link: Link, height: u32) -> usize {
    let mut stack = vec![(link, height)];
    let mut sum = 0usize;
    while let Some((link, height)) = stack.pop() {
        // SAFETY: the caller promises that the link leads to a live node of this height. Its
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
    // SAFETY: the pointer was retired as that of a node, whose readers have left (SEQUENCE-6).
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
