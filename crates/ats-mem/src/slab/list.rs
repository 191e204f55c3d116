//! Doubly linked lists whose links are in the nodes. The nodes are live (SLAB-5), and accessed
//! under the lock that guards the list (SLAB-2).

use std::ptr::NonNull;

/// The neighbours of a node. All zeros are valid links of a node that is in no list.
pub(super) struct Links<T> {
    next: Option<NonNull<T>>,
    previous: Option<NonNull<T>>,
}

/// An element of a list.
///
/// # Safety
/// `links` must return the same address each time, inside the node.
pub(super) unsafe trait Linked: Sized {
    /// Returns the links of a node.
    ///
    /// # Safety
    /// `node` must point to a live node.
    unsafe fn links(node: NonNull<Self>) -> *mut Links<Self>;
}

/// A list; the last node pushed comes first. Code that has exclusive access to the list also
/// has exclusive access to the links of all its nodes.
pub(super) struct List<T> {
    first: Option<NonNull<T>>,
}

// SAFETY: the list owns the links of its nodes (SLAB-2), and pointers may move to other threads.
unsafe impl<T> Send for List<T> {}

impl<T: Linked> List<T> {
    pub(super) const fn new() -> Self {
        List { first: None }
    }

    pub(super) fn first(&self) -> Option<NonNull<T>> {
        self.first
    }

    /// # Safety
    /// `node` must be live, in no list, and stay live as long as it is in this one.
    pub(super) unsafe fn push(&mut self, node: NonNull<T>) {
        // SAFETY: the caller promises that the new node is live, and so did the caller that pushed
        // the old first node (SLAB-5). The links belong to the holder of the lock of this
        // list (SLAB-2).
        unsafe {
            T::links(node).write(Links {
                next: self.first,
                previous: None,
            });
            if let Some(first) = self.first {
                (*T::links(first)).previous = Some(node);
            }
        }
        self.first = Some(node);
    }

    /// # Safety
    /// `node` must be in this list.
    pub(super) unsafe fn remove(&mut self, node: NonNull<T>) {
        // SAFETY: a node in the list is live and so are its neighbours (SLAB-5).
        unsafe {
            let Links { next, previous } = T::links(node).read();
            if let Some(next) = next {
                (*T::links(next)).previous = previous;
            }
            match previous {
                Some(previous) => (*T::links(previous)).next = next,
                None => self.first = next,
            }
        }
    }

    /// Calls `visit` with each node.
    pub(super) fn for_each(&self, mut visit: impl FnMut(NonNull<T>)) {
        let mut here = self.first;
        while let Some(node) = here {
            visit(node);
            // SAFETY: a node in the list is live (SLAB-5).
            here = unsafe { (*T::links(node)).next };
        }
    }
}
