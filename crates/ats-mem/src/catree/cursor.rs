//! Cursors: a thread's last position in a tree, so that the next step of a walk need not begin at
//! the root.
//!
//! A chain of `next` calls asks for the key after the one just returned. Each thread remembers a
//! few leaves, one for each of the trees it walked last, with the slot of the key it returned. The
//! next call is served from there if
//!
//! - the leaf is [still alive](LeafHint), and the current one;
//! - the key of the call is the one that was returned. It keeps its slot in the leaf, even when its
//!   record is removed.
//!
//! Otherwise the call descends from the root. A cursor belongs to its thread: setting it writes no
//! shared memory. Erlang/OTP keeps one stack for each table instead, which one process can use
//! at a time, and none for its contention adapting trees.

use super::header::NodePtr;
use super::inner::Inner;
use super::kind::Kind;
use super::leaf::Leaf;
use super::leaf_hint::LeafHint;
use super::leaf_order::LeafOrder;
use super::link::{Node, copy_for_any_release};
use crate::identity::Identity;
use crate::record::Release;
use crate::short_key::ShortKey;
use ats_sync::Guard;
use ats_sync::shim::constants_of_threads;
use std::cell::Cell;
use std::ptr;

#[derive(Clone, Copy)]
struct Cursor {
    hint: LeafHint,
    /// The parent, or null, and the child index of the leaf there.
    parent: NodePtr,
    child_index: usize,
    /// The slot in the leaf, its index in the order of the slots, and their number.
    slot: usize,
    index: usize,
    len: usize,
    /// The key in that slot, if it is short.
    key: Option<ShortKey>,
}

/// A leaf, with its parent and child index unless the parent is a base node.
pub(super) struct Hanging<'g, R: Release> {
    pub leaf: Leaf<'g, R>,
    pub parent: Option<(&'g Inner<R>, usize)>,
}

copy_for_any_release!(Hanging);

impl<R: Release> Hanging<'_, R> {
    /// Returns the leaf to the right under the same parent, if there is one, and if the parent is
    /// not being replaced, so that its children are current.
    pub(super) fn right(&self) -> Option<Self> {
        let (inner, child_index) = self.parent?;
        if child_index == inner.len() || inner.header().is_dead() {
            return None;
        }
        let Kind::Leaf(leaf) = inner.child(child_index + 1).kind() else {
            return None;
        };
        Some(Hanging {
            leaf,
            parent: Some((inner, child_index + 1)),
        })
    }

    /// Prefetches the leaf to the right under the same parent.
    #[inline(always)]
    pub(super) fn prefetch_right(&self) {
        if let Some((inner, child_index)) = self.parent {
            inner.prefetch_child(child_index + 1);
        }
    }
}

/// The position of a cursor: a leaf, its order, and the index there.
pub(super) struct Recalled<'g, R: Release> {
    pub here: Hanging<'g, R>,
    pub order: LeafOrder,
    pub index: usize,
}

/// Number of trees that a thread can walk alternately without losing its position.
const CURSORS: usize = 4;

const UNSET: Cursor = Cursor {
    hint: LeafHint::NONE,
    parent: ptr::null_mut(),
    child_index: 0,
    slot: 0,
    index: 0,
    len: 0,
    key: None,
};

/// Cursors, each with the order of its leaf.
type Cursors = [(Cell<Cursor>, Cell<LeafOrder>); CURSORS];

constants_of_threads! {
    static LAST: Cursors = [const { (Cell::new(UNSET), Cell::new(LeafOrder::NONE)) }; CURSORS];
}

#[inline(always)]
fn with_cursor<T>(
    identity: &Identity,
    act: impl FnOnce(&Cell<Cursor>, &Cell<LeafOrder>) -> T,
) -> T {
    LAST.with(|cursors| {
        let (cursor, order) = &cursors[identity.number() as usize % CURSORS];
        act(cursor, order)
    })
}

/// Records the leaf, and the index in its order, of a returned key. `key` is only given if it is
/// short.
#[inline(always)]
pub(super) fn remember<R: Release>(
    identity: &Identity,
    hanging: Hanging<'_, R>,
    order: &LeafOrder,
    index: usize,
    key: Option<ShortKey>,
    guard: &Guard,
) {
    let parent = hanging
        .parent
        .map(|(inner, child_index)| (Node::of(inner).pointer(), child_index));
    let (parent, child_index) = parent.unwrap_or((ptr::null_mut(), 0));
    let new = Cursor {
        hint: LeafHint::of(identity, hanging.leaf, guard),
        parent,
        child_index,
        slot: order.slot(index),
        index,
        len: order.len(),
        key,
    };
    with_cursor(identity, |cursor, kept| {
        let old = cursor.replace(new);
        if (old.hint, old.len) != (new.hint, new.len) {
            kept.set(*order);
        }
    });
}

/// Returns the leaf and the index of `key`, if the cursor of this thread is there.
#[inline(always)]
pub(super) fn recall<'g, R: Release>(
    identity: &Identity,
    key: &[u8],
    guard: &'g Guard,
) -> Option<Recalled<'g, R>> {
    let cursor = with_cursor(identity, |cursor, _| cursor.get());
    let leaf: Leaf<'g, R> = cursor.hint.recall(identity, guard)?;
    // SAFETY: the parent was reachable together with the leaf, so it lives as long as this guard,
    // too (EPOCH-5, CATREE-6). It belongs to this tree, hence has this type.
    let inner = unsafe { cursor.parent.cast::<Inner<R>>().as_ref() };
    let slot = cursor.slot;
    let is_there = || match &cursor.key {
        Some(_) => cursor.key == ShortKey::of(key),
        None => leaf
            .record(slot, guard)
            .is_some_and(|record| record.has_key(key)),
    };
    if !is_there() {
        return None;
    }
    let parent = inner.map(|inner| (inner, cursor.child_index));
    let here = Hanging { leaf, parent };
    // The order is unchanged unless keys were added.
    if leaf.len() == cursor.len {
        let order = with_cursor(identity, |_, order| order.get());
        let index = cursor.index;
        return Some(Recalled { here, order, index });
    }
    let order = leaf.in_order();
    let index = order.index_of(slot);
    Some(Recalled { here, order, index })
}
