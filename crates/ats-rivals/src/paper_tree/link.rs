//! The words that lead to nodes. The module `node` knows the nodes to which they lead.

use ats_mem::record::Release;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;

/// A word that leads to a node. Dropping it leaves the node as it is.
pub(super) struct Link<R: Release>(AtomicPtr<u8>, PhantomData<fn() -> R>);

impl<R: Release> Link<R> {
    pub(super) fn of(word: *mut u8) -> Self {
        Link(AtomicPtr::new(word), PhantomData)
    }

    pub(super) fn word(&self, order: Ordering) -> *mut u8 {
        self.0.load(order)
    }

    /// Publishes another word, and returns the one before.
    pub(super) fn swap(&self, word: *mut u8) -> *mut u8 {
        self.0.swap(word, Ordering::AcqRel)
    }
}
