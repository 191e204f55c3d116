//! Nodes of either kind, and how words lead to them. The pointers of the tree are followed here
//! only.
//!
//! The lowest bit of a word says which kind of node it leads to. So does a flag in the nodes of the
//! original, which is on a line that the thread reads next anyway.
//!
//! The invariants (PAPER_TREE-1 and so on) are those of [`paper_tree`](super).

use super::base::Base;
use super::link::Link;
use super::route::Route;
use ats_mem::record::Release;
use ats_sync::Guard;
use ats_sync::shim::atomic::Ordering;
use std::marker::PhantomData;

/// The bit of an address that says that there is a route node. Nodes are aligned to lines.
const ROUTE: usize = 1;

/// A node that is being looked at.
pub(super) enum Node<'g, R: Release> {
    Route(&'g Route<R>),
    Base(&'g Base<R>),
}

/// A node that no other code has.
pub(super) enum Made<R: Release> {
    Route(Box<Route<R>>),
    Base(Box<Base<R>>),
}

impl<R: Release> Made<R> {
    fn into_word(self) -> *mut u8 {
        match self {
            Made::Route(route) => {
                let route = Box::into_raw(route).cast::<u8>();
                route.map_addr(|address| address | ROUTE)
            }
            Made::Base(base) => Box::into_raw(base).cast(),
        }
    }

    /// Takes a node back.
    ///
    /// # Safety
    /// The word comes from [`into_word`](Made::into_word), and no other code can reach the node.
    unsafe fn from_word(word: *mut u8) -> Self {
        let node = word.map_addr(|address| address & !ROUTE);
        // SAFETY: the caller says that the word comes from `into_word`, which made it of a box and
        // set the bit by its type, and that no other code can reach the node.
        unsafe {
            match word.addr() & ROUTE {
                0 => Made::Base(Box::from_raw(node.cast())),
                _ => Made::Route(Box::from_raw(node.cast())),
            }
        }
    }
}

impl<R: Release> Link<R> {
    pub(super) fn to(node: Made<R>) -> Self {
        Link::of(node.into_word())
    }

    /// The node that it leads to, for a thread that has come here from the root under this guard.
    pub(super) fn load<'g>(&'g self, _guard: &'g Guard) -> Node<'g, R> {
        let word = self.word(Ordering::Acquire);
        let node = word.map_addr(|address| address & !ROUTE);
        // SAFETY: a word always leads to a node, which was made as what the bit says. It was
        // retired after the guard was made, or not at all (PAPER_TREE-6).
        unsafe {
            match word.addr() & ROUTE {
                0 => Node::Base(&*node.cast()),
                _ => Node::Route(&*node.cast()),
            }
        }
    }

    /// Publishes a new node in the place of the one that it leads to. The caller has the locks that
    /// PAPER_TREE-2 names.
    pub(super) fn put(&self, node: Made<R>) -> Replaced<R> {
        Replaced(self.swap(node.into_word()), PhantomData)
    }

    /// From now on it leads where another word leads, too. The caller has the locks that
    /// PAPER_TREE-2 names.
    pub(super) fn follow(&self, other: &Self) -> Replaced<R> {
        Replaced(self.swap(other.word(Ordering::Acquire)), PhantomData)
    }

    /// The node that this leads to, in a route node that has just been spliced out: it was
    /// replaced, too.
    pub(super) fn replaced_child(&self) -> Replaced<R> {
        Replaced(self.word(Ordering::Acquire), PhantomData)
    }

    /// Takes the node out of the tree, which is never used again.
    ///
    /// # Safety
    /// The caller has the tree alone, and does this once.
    pub(super) unsafe fn take(&self) -> Made<R> {
        // SAFETY: the caller has the tree alone and takes this node once, and words come from
        // `into_word`.
        unsafe { Made::from_word(self.word(Ordering::Relaxed)) }
    }
}

/// A node that was in the tree.
#[must_use = "it is never freed unless it is retired"]
pub(super) struct Replaced<R: Release>(*mut u8, PhantomData<fn() -> R>);

impl<R: Release> Replaced<R> {
    /// Has the node freed when no thread looks at it any more.
    ///
    /// # Safety
    /// It was replaced under the guard, is marked as not valid, and is retired only here
    /// (PAPER_TREE-6).
    pub(super) unsafe fn retire(self, guard: &Guard) {
        let node = self.0.map_addr(|address| address & !ROUTE);
        // SAFETY: the caller says that the node was replaced under the guard and is retired only
        // here (PAPER_TREE-6), and nodes come from boxes of the type that the bit tells.
        unsafe {
            match self.0.addr() & ROUTE {
                0 => guard.retire_box(node.cast::<Base<R>>()),
                _ => guard.retire_box(node.cast::<Route<R>>()),
            }
        }
    }
}
