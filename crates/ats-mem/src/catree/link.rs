//! Nodes and links: references to nodes, and the words of the tree that lead to them.
//!
//! Only this module follows the pointers of the tree. CATREE-6 of [`catree`](super) makes that
//! safe: callers of [`Link::load`] and [`Link::store`] guarantee it, so code with a [`Node`] need
//! not.

use super::header::{Header, NodePtr};
use crate::record::Release;
use crate::slab::SlabBox;
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Makes a type `Copy`; a derive would demand `R: Copy`.
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
/// A value must begin with a [`Header`], whose level only this type has.
pub(super) unsafe trait NodeType<R: Release> {}

/// A node that lives as long as `'n`. [`kind`](Node::kind) returns its type.
#[repr(transparent)]
pub(super) struct Node<'n, R: Release>(NonNull<Header>, PhantomData<(&'n Header, R)>);

copy_for_any_release!(Node);

impl<R: Release> PartialEq for Node<'_, R> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<'n, R: Release> Node<'n, R> {
    /// Wraps a node of a known type.
    pub(super) fn of<N: NodeType<R>>(node: &'n N) -> Self {
        Node(NonNull::from(node).cast(), PhantomData)
    }

    /// Wraps the node at an address.
    ///
    /// # Safety
    /// The address must be that of a node of a tree of `R`, which must live during `'n`.
    #[inline(always)]
    pub(super) unsafe fn at(node: NodePtr) -> Self {
        // SAFETY: the caller promises a node there, and no node is at address 0.
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

/// Releases the box of a new node, which goes into the tree and is freed by retiring.
pub(super) fn leak<N>(node: SlabBox<N>, _guard: &Guard) -> &N {
    // SAFETY: a node is freed by retiring only, so this one outlives the guard (CATREE-6).
    unsafe { &*SlabBox::into_raw(node) }
}

/// The word that leads to a node: the root of a tree or of a base node, or a child of an inner
/// node.
#[repr(transparent)]
pub(super) struct Link<R: Release>(AtomicPtr<Header>, PhantomData<R>);

impl<R: Release> Link<R> {
    /// Creates a link to a new node.
    pub(super) fn owning<N: NodeType<R>>(node: SlabBox<N>) -> Self {
        Link(AtomicPtr::new(SlabBox::into_raw(node).cast()), PhantomData)
    }

    /// Creates a link to a node of the tree; without a node, a link that is never loaded.
    pub(super) fn to(node: Option<Node<'_, R>>) -> Self {
        let pointer = node.map_or(ptr::null_mut(), Node::pointer);
        Link(AtomicPtr::new(pointer), PhantomData)
    }

    /// Loads the current node.
    ///
    /// # Safety
    /// The link must have a node. During `'n`, the thread must be pinned, as it was when it reached
    /// the link; or it must have exclusive access to the tree (CATREE-6).
    #[inline(always)]
    pub(super) unsafe fn load(&self) -> Node<'_, R> {
        // SAFETY: a node loaded from a link under a guard lives as long as the guard (CATREE-6).
        unsafe { Node::at(self.pointer()) }
    }

    /// Returns the current address of the node.
    #[inline(always)]
    pub(super) fn pointer(&self) -> NodePtr {
        self.0.load(Ordering::Acquire)
    }

    /// Replaces the node.
    ///
    /// # Safety
    /// The caller must hold the lock that guards the link (CATREE-1, CATREE-2). The node must not
    /// be marked dead, and its type must be allowed there. The old node must have been marked dead
    /// (CATREE-3).
    pub(super) unsafe fn store(&self, node: Node<'_, R>) {
        self.0.store(node.pointer(), Ordering::Release);
    }
}
