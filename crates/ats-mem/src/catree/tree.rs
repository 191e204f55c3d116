//! The tree itself: its parts, how it is made, and how it is freed.

use super::base::Base;
use super::objects_per_record::ObjectsPerRecord;
use super::root::Root;
use super::routes::{OnFirstSplit, Routes};
use super::teardown::Teardown;
use crate::moments::Moments;
use crate::record::Release;
use ats_sync::{Gate, Held};
use std::sync::Weak;

/// An ordered store of records; see the documentation of [`catree`](super).
pub struct CaTree<R: Release> {
    /// The way to base nodes, and when that changes.
    pub(super) routes: Routes<R>,
    /// The gate that writers pass, and a census closes.
    pub(super) gate: Gate,
    pub(super) objects: ObjectsPerRecord,
    /// The clock, and what queries of one moment may read.
    pub(super) moments: Moments<R>,
    /// Nodes not yet freed by `free_some`.
    teardown: Teardown<R>,
}

// SAFETY: nodes are shared between threads by design: their mutable words are atomics or behind
// locks (CATREE-1, CATREE-2), and records may be released on any thread (`Release`).
unsafe impl<R: Release> Send for CaTree<R> {}
// SAFETY: mutable words of nodes are atomics or behind locks (CATREE-1, CATREE-2), and a shared
// tree only lends shared records.
unsafe impl<R: Release> Sync for CaTree<R> {}

impl<R: Release> Default for CaTree<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release> CaTree<R> {
    /// An empty store of records of which each is one object.
    pub fn new() -> Self {
        Self::with_objects(ObjectsPerRecord::One)
    }

    /// An empty store of records of which each has as many objects as its [weight](Release::weight)
    /// says. No value is without words.
    pub fn of_many_objects() -> Self {
        Self::with_objects(ObjectsPerRecord::Stored)
    }

    /// An empty store of records of the same kind.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::with_objects(self.objects)
    }

    fn with_objects(objects: ObjectsPerRecord) -> Self {
        CaTree {
            routes: Routes::new(),
            gate: Gate::new(),
            objects,
            moments: Moments::new(),
            teardown: Teardown::new(),
        }
    }

    /// Sets what is called, with no lock held, each time the tree has gone from one base node to
    /// two: from then on it needs [`join_idle`](crate::Records::upkeep) now and then.
    pub fn on_first_split(&mut self, notice: Weak<dyn OnFirstSplit>) {
        self.routes.on_first_split(notice);
    }

    /// The part that readers use.
    #[inline(always)]
    pub(super) fn root(&self) -> &Root<R> {
        self.routes.root()
    }

    /// Takes the lock of a base node, as long as the calling thread may wait for it.
    #[inline]
    pub(super) fn lock<'g>(&self, base: &'g Base<R>) -> Option<Held<'g>> {
        base.lock_within_limit(&self.gate)
    }

    /// Frees up to about `budget` records and nodes of those that were there when this was called
    /// first; true when all of them have been freed. So that a large store can be freed in slices;
    /// dropping it frees the rest at once.
    pub fn free_some(&mut self, budget: usize) -> bool {
        if self.teardown.is_done() {
            let nodes = self.routes.take();
            // SAFETY: the tree is borrowed exclusively, so no reference into it is left (CATREE-6).
            unsafe { self.teardown.add(nodes) };
        }
        self.teardown.free(budget)
    }
}

impl<R: Release> Drop for CaTree<R> {
    fn drop(&mut self) {
        // Frees the records that were put into the store since `free_some`, and those that
        // `free_some` has left.
        let nodes = self.root().link().pointer();
        // SAFETY: no other thread has the tree any more, so no reference into it is left
        // (CATREE-6).
        unsafe { self.teardown.add(nodes) };
        // Before the moments are dropped, to which the records lead.
        self.teardown.free(usize::MAX);
    }
}
