//! References to nodes, and the words of the tree that lead to them.
//!
//! The pointers of the tree are followed here only. That is safe by CATREE-6 of [`catree`](super):
//! callers of [`Link::load`] and [`Link::store`] answer for it, so code that has a [`Node`] need
//! not.

use super::header::{Header, NodePtr};
use crate::record::Release;
use crate::slab::SlabBox;
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Makes a type `Copy`; deriving would ask for `R: Copy`.
macro_rules! copy_for_any_release {
    ($name:ident) => {
        impl<R: Release> Clone for $name<'_, R> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<R: Release> Copy for $name<'_, R> {}
    };
}
pub(super) use copy_for_any_release;

/// A type of nodes in a tree of `R`.
///
/// # Safety
/// A value begins with a [`Header`], whose level is one that only this type has.
pub(super) unsafe trait NodeType<R: Release> {}

/// A node, which lives as long as `'n`. [`kind`](Node::kind) tells its type.
#[repr(transparent)]
pub(super) struct Node<'n, R: Release>(NonNull<Header>, PhantomData<(&'n Header, R)>);

copy_for_any_release!(Node);

impl<R: Release> PartialEq for Node<'_, R> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<'n, R: Release> Node<'n, R> {
    /// A node that is known as what it is.
    pub(super) fn of<N: NodeType<R>>(node: &'n N) -> Self {
        Node(NonNull::from(node).cast(), PhantomData)
    }

    /// The node at an address.
    ///
    /// # Safety
    /// There is a node of a tree of `R`, which lives as long as `'n`.
    #[inline(always)]
    pub(super) unsafe fn at(node: NodePtr) -> Self {
        // SAFETY: no node is at address 0.
        Node(unsafe { NonNull::new_unchecked(node) }, PhantomData)
    }

    #[inline(always)]
    pub(super) fn pointer(self) -> NodePtr {
        self.0.as_ptr()
    }

    #[inline(always)]
    pub(super) fn header(self) -> &'n Header {
        // SAFETY: the node lives as long as `'n` (CATREE-6), and begins with its header.
        unsafe { self.0.as_ref() }
    }
}

/// Gives up the box of a new node, which is to be put into the tree, from where it is freed by
/// retiring.
pub(super) fn leak<N>(node: SlabBox<N>, _guard: &Guard) -> &N {
    // SAFETY: a node is freed by retiring only, so this one outlives the guard (CATREE-6).
    unsafe { &*SlabBox::into_raw(node) }
}

/// The word that leads to a node: the root of a tree or of a base node, or a child of an inner
/// node.
#[repr(transparent)]
pub(super) struct Link<R: Release>(AtomicPtr<Header>, PhantomData<R>);

impl<R: Release> Link<R> {
    /// A link to a new node.
    pub(super) fn owning<N: NodeType<R>>(node: SlabBox<N>) -> Self {
        Link(AtomicPtr::new(SlabBox::into_raw(node).cast()), PhantomData)
    }

    /// A link to a node of the tree; without one, a link that is never loaded from.
    pub(super) fn to(node: Option<Node<'_, R>>) -> Self {
        let pointer = node.map_or(ptr::null_mut(), Node::pointer);
        Link(AtomicPtr::new(pointer), PhantomData)
    }

    /// The node, as of this moment.
    ///
    /// # Safety
    /// There is one. As long as `'n`, the thread is pinned, and was so when it came to the link; or
    /// it has the tree alone (CATREE-6).
    #[inline(always)]
    pub(super) unsafe fn load<'n>(&'n self) -> Node<'n, R> {
        // SAFETY: what a link leads to under a guard lives as long as the guard (CATREE-6).
        unsafe { Node::at(self.pointer()) }
    }

    /// The address of the node at this moment.
    #[inline(always)]
    pub(super) fn pointer(&self) -> NodePtr {
        self.0.load(Ordering::Acquire)
    }

    /// Puts a node in the place of the one before.
    ///
    /// # Safety
    /// The caller holds the lock that guards the link (CATREE-1, CATREE-2). The node is not marked
    /// dead, and its type is one that may be there. The one before has been marked dead (CATREE-3).
    pub(super) unsafe fn store(&self, node: Node<'_, R>) {
        self.0.store(node.pointer(), Ordering::Release);
    }
}
