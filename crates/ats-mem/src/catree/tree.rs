//! The tree itself: its parts, its creation and its end.

use super::base::Base;
use super::objects_per_record::ObjectsPerRecord;
use super::root::Root;
use super::routes::{OnFirstSplit, Routes};
use super::teardown::Teardown;
use crate::read_points::ReadPoints;
use crate::record::Release;
use ats_sync::{Gate, Held};
use std::sync::Weak;

/// An ordered store of records; see the documentation of [`catree`](super).
pub struct CaTree<R: Release> {
    /// The route to base nodes, and its adaptation.
    pub(super) routes: Routes<R>,
    /// The gate that writers pass, and a census closes.
    pub(super) gate: Gate,
    pub(super) objects: ObjectsPerRecord,
    /// The clock, and the versions that snapshot queries may read.
    pub(super) read_points: ReadPoints<R>,
    /// Nodes not freed yet by `free_some`.
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
    /// Creates an empty store whose records are one object each.
    pub fn new() -> Self {
        Self::with_objects(ObjectsPerRecord::One)
    }

    /// Creates an empty store whose records have as many objects as in their
    /// [weight](Release::weight). No value may be without words.
    pub fn of_many_objects() -> Self {
        Self::with_objects(ObjectsPerRecord::Stored)
    }

    /// Creates an empty store of the same kind of records.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::with_objects(self.objects)
    }

    fn with_objects(objects: ObjectsPerRecord) -> Self {
        CaTree {
            routes: Routes::new(),
            gate: Gate::new(),
            objects,
            read_points: ReadPoints::new(),
            teardown: Teardown::new(),
        }
    }

    /// Sets the listener for splits of the only base node. It is called, with no lock held, each
    /// time the tree has gone from one base node to two: from then on the tree needs
    /// [`join_idle`](crate::Provided::join_idle) now and then.
    pub fn on_first_split(&mut self, notice: Weak<dyn OnFirstSplit>) {
        self.routes.on_first_split(notice);
    }

    /// Returns the part that readers use.
    #[inline(always)]
    pub(super) fn root(&self) -> &Root<R> {
        self.routes.root()
    }

    /// Takes the lock of a base node, unless the calling thread would have to wait too long.
    #[inline]
    pub(super) fn lock<'g>(&self, base: &'g Base<R>) -> Option<Held<'g>> {
        base.lock_within_limit(&self.gate)
    }

    /// Frees up to about `budget` records and nodes of those present at the first call. Returns
    /// `true` when all of them have been freed. So a large store can be freed in slices; dropping
    /// it frees the rest at once.
    pub fn free_some(&mut self, budget: usize) -> bool {
        if self.teardown.is_done() {
            let nodes = self.routes.take();
            // SAFETY: the tree is borrowed exclusively, so no reference to its nodes is left
            // (CATREE-6).
            unsafe { self.teardown.add(nodes) };
        }
        self.teardown.free(budget)
    }
}

impl<R: Release> Drop for CaTree<R> {
    fn drop(&mut self) {
        // Frees the records put into the store since `free_some`, and those that `free_some` has
        // left.
        let nodes = self.root().link().pointer();
        // SAFETY: no other thread has the tree any more, so no reference to its nodes is left
        // (CATREE-6).
        unsafe { self.teardown.add(nodes) };
        // Must happen before the moments are dropped, to which the records lead.
        self.teardown.free(usize::MAX);
    }
}
