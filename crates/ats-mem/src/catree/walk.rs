//! Walks in key order.
//!
//! A walk keeps its leaf and the leaf's fences; after the last key of the leaf it moves to the next
//! child of the parent or, if there is none or the parent is being replaced, descends again from
//! the root to the leaf beyond the fence. So between leaves it holds nothing that a writer could
//! invalidate, and a key that is present throughout is met exactly once: each leaf begins where its
//! predecessor ended, even if leaves were split or merged meanwhile.
//!
//! A walk reads the order of a leaf once, before it searches for its start there. It does not meet
//! records added to the leaf after that.

use super::cursor::{self, Hanging, Recalled};
use super::find::FencedLeaf;
use super::leaf::Leaf;
use super::leaf_order::LeafOrder;
use super::path::PathNode;
use super::root::Root;
use crate::read_points::When;
use crate::record::{Record, Release};
use crate::records::Neighbour;
use crate::short_key::ShortKey;
use ats_sync::Guard;
use std::ops::{ControlFlow, Range};

/// Number of records prefetched ahead of a walk: enough to hide a cache miss behind the calls of a
/// chain.
const AHEAD: usize = 6;

/// Returns the record that a reader sees in a slot of a leaf.
#[inline(always)]
fn resolve_at<'g, R: Release>(
    leaf: Leaf<'g, R>,
    slot: usize,
    when: When,
    guard: &'g Guard,
) -> Option<&'g Record<R>> {
    if when.is_now() {
        leaf.record(slot, guard)?.resolve(guard)
    } else {
        leaf.any_record(slot, guard)?.resolve_at(when, guard)
    }
}

/// Returns the record of a neighbour that cannot be a key alone.
fn only_record<R: Release>(met: Neighbour<'_, R>) -> Option<&Record<R>> {
    match met {
        Neighbour::Record(record) => Some(record),
        Neighbour::Key => None,
    }
}

/// Prefetches the records at indices of the order of a leaf, where a chain of steps that reads
/// records has begun.
fn prefetch_for_chain<R: Release>(
    met: &Neighbour<'_, R>,
    leaf: Leaf<'_, R>,
    order: &LeafOrder,
    indices: Range<usize>,
) {
    if matches!(met, Neighbour::Record(_)) {
        for index in indices {
            leaf.prefetch_record(order.slot(index));
        }
    }
}

impl<'g, R: Release> FencedLeaf<'g, R> {
    fn hanging(&self) -> Hanging<'g, R> {
        Hanging {
            leaf: self.leaf,
            parent: self.parent.map(|step| (step.inner, step.child_index)),
        }
    }

    /// Returns the leaf to the right, if it can be reached without descending from the root.
    fn right(&self) -> Option<Self> {
        let right = self.hanging().right()?;
        let step = self.parent?;
        let child_index = step.child_index + 1;
        Some(FencedLeaf {
            leaf: right.leaf,
            fences: step.fences.of_child(step.inner, child_index),
            parent: Some(PathNode {
                child_index,
                ..step
            }),
        })
    }
}

impl<R: Release> Root<R> {
    /// Visits records upwards from `key`, itself included if `inclusive`, until `visit` breaks.
    /// Shows each record as of one read point, or as of the moment at which it is visited.
    pub(super) fn walk_up<'g>(
        &'g self,
        key: &[u8],
        inclusive: bool,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let mut here = self.fenced_leaf_for(key, guard);
        let mut order = here.leaf.in_order();
        let mut start = match here.leaf.index_of(key, &order) {
            Ok(index) => index + usize::from(!inclusive),
            Err(index) => index,
        };
        loop {
            let beside = here.right();
            if let Some(beside) = &beside {
                beside.leaf.prefetch();
            }
            let end = order.len();
            for index in start..end.min(start + AHEAD) {
                here.leaf.prefetch_record(order.slot(index));
            }
            for index in start..end {
                match (index + AHEAD).checked_sub(end) {
                    None => here.leaf.prefetch_record(order.slot(index + AHEAD)),
                    Some(beyond) => {
                        if let Some(beside) = &beside {
                            beside.leaf.prefetch_record(beyond);
                        }
                    }
                }
                if let Some(record) = resolve_at(here.leaf, order.slot(index), when, guard)
                    && visit(record).is_break()
                {
                    return;
                }
            }
            let Some(fence) = here.fences.high else {
                return;
            };
            (here, order, start) = match beside.and_then(|_| here.right()) {
                Some(beside) => {
                    let order = beside.leaf.in_order();
                    (beside, order, 0)
                }
                // Leaves may have been merged meanwhile, so the fence can lie within the next one.
                None => {
                    let here = self.fenced_leaf_for(fence, guard);
                    let order = here.leaf.in_order();
                    let start = here.leaf.lower_bound(fence, &order);
                    (here, order, start)
                }
            };
        }
    }

    /// Visits records downwards from below `bound`, or from the last of all, until `visit` breaks.
    /// Shows each record as of one read point, or as of the moment at which it is visited.
    ///
    /// Descends from the root once for each leaf. The part already visited ends at the lower fence
    /// of the leaf, so concurrent splits and merges do not matter.
    pub(super) fn walk_down<'g>(
        &'g self,
        bound: Option<&[u8]>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let mut bound = bound;
        loop {
            let (here, order, end) = self.position_below(bound, guard);
            for index in end.saturating_sub(AHEAD)..end {
                here.leaf.prefetch_record(order.slot(index));
            }
            for index in (0..end).rev() {
                if let Some(ahead) = index.checked_sub(AHEAD) {
                    here.leaf.prefetch_record(order.slot(ahead));
                }
                if let Some(record) = resolve_at(here.leaf, order.slot(index), when, guard)
                    && visit(record).is_break()
                {
                    return;
                }
            }
            match here.fences.low {
                Some(low) => bound = Some(low),
                None => return,
            }
        }
    }

    /// Returns the smallest record above `key`. A chain of such steps descends from the root once
    /// for each leaf; in between, a cursor of the thread remembers the leaf.
    pub(super) fn above<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        only_record(self.above_by(key, guard, &|_| false)?)
    }

    /// Returns the first record. The order of the first leaf is not needed unless its lowest key
    /// has no record, as in a queue whose first records were taken.
    pub(super) fn lowest<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        let leaf = self.fenced_leaf_for(&[], guard).leaf;
        let resolve = |slot| resolve_at(leaf, slot, When::NOW, guard);
        if let Some(record) = leaf.lowest_slot().and_then(resolve) {
            return Some(record);
        }
        let order = leaf.in_order();
        let mut slots = (0..order.len()).map(|index| order.slot(index));
        if let Some(record) = slots.find_map(resolve) {
            return Some(record);
        }
        let mut first = None;
        self.walk_up(&[], true, When::NOW, guard, &mut |record| {
            first = Some(record);
            ControlFlow::Break(())
        });
        first
    }

    /// Returns the greatest record below `bound`, or the last of all.
    pub(super) fn below<'g>(
        &'g self,
        bound: Option<&[u8]>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        only_record(self.below_by(bound, guard, &|_| false)?)
    }

    /// Returns the smallest record like [`above`](Self::above), but returns the key alone if it can
    /// be read from the leaf and `will_do` accepts it.
    #[inline(always)]
    pub(super) fn above_by<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        will_do: &impl Fn(&ShortKey) -> bool,
    ) -> Option<Neighbour<'g, R>> {
        if let Some(Recalled { here, order, index }) = cursor::recall(self.identity(), key, guard) {
            if let Some(met) = self.step_up(here, &order, index + 1, key, guard, will_do) {
                return Some(met);
            }
            if let Some(right) = here.right()
                && let Some((inner, child_index)) = right.parent
            {
                let (order, fence) = (right.leaf.in_order(), inner.separator(child_index - 1));
                if let Some(met) = self.step_up(right, &order, 0, fence, guard, will_do) {
                    return Some(met);
                }
            }
        }
        self.above_from_root(key, guard, will_do)
    }

    #[inline(never)]
    fn above_from_root<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        will_do: &impl Fn(&ShortKey) -> bool,
    ) -> Option<Neighbour<'g, R>> {
        let mut here = self.fenced_leaf_for(key, guard);
        let mut order = here.leaf.in_order();
        let mut start = match here.leaf.index_of(key, &order) {
            Ok(index) => index + 1,
            Err(index) => index,
        };
        let mut inside = key;
        loop {
            let met = self.step_up(here.hanging(), &order, start, inside, guard, will_do);
            if let Some(met) = met {
                let end = order.len().min(start + AHEAD);
                prefetch_for_chain(&met, here.leaf, &order, start..end);
                return Some(met);
            }
            let fence = here.fences.high?;
            here = self.fenced_leaf_for(fence, guard);
            order = here.leaf.in_order();
            start = here.leaf.lower_bound(fence, &order);
            inside = fence;
        }
    }

    /// Returns the first key of a leaf from an index of its order on, and sets the cursor to it.
    /// Prefetches data for later steps. `inside` is a key that leads to the leaf.
    #[inline(always)]
    fn step_up<'g>(
        &'g self,
        here: Hanging<'g, R>,
        order: &LeafOrder,
        start: usize,
        inside: &[u8],
        guard: &'g Guard,
        will_do: &impl Fn(&ShortKey) -> bool,
    ) -> Option<Neighbour<'g, R>> {
        let len = order.len();
        for index in start..len {
            let Some(met) = self.meet(here, order, index, inside, guard, will_do) else {
                continue;
            };
            // The leaf to the right is rarely in the cache, so it is prefetched before it is read.
            if index + 2 * AHEAD == len {
                here.prefetch_right();
            }
            if matches!(met, Neighbour::Record(_)) {
                let ahead = index + AHEAD;
                match ahead.checked_sub(len) {
                    None => here.leaf.prefetch_record(order.slot(ahead)),
                    Some(beyond) => {
                        if let Some(right) = here.right() {
                            right.leaf.prefetch_record(beyond);
                        }
                    }
                }
            }
            return Some(met);
        }
        None
    }

    /// Returns the greatest record like [`below`](Self::below), but returns the key alone if it can
    /// be read from the leaf and `will_do` accepts it.
    #[inline(always)]
    pub(super) fn below_by<'g>(
        &'g self,
        bound: Option<&[u8]>,
        guard: &'g Guard,
        will_do: &impl Fn(&ShortKey) -> bool,
    ) -> Option<Neighbour<'g, R>> {
        if let Some(key) = bound
            && let Some(Recalled { here, order, index }) =
                cursor::recall(self.identity(), key, guard)
        {
            for index in (0..index).rev() {
                if let Some(met) = self.meet(here, &order, index, key, guard, will_do) {
                    if matches!(met, Neighbour::Record(_))
                        && let Some(ahead) = index.checked_sub(AHEAD)
                    {
                        here.leaf.prefetch_record(order.slot(ahead));
                    }
                    return Some(met);
                }
            }
        }
        self.below_from_root(bound, guard, will_do)
    }

    #[inline(never)]
    fn below_from_root<'g>(
        &'g self,
        bound: Option<&[u8]>,
        guard: &'g Guard,
        will_do: &impl Fn(&ShortKey) -> bool,
    ) -> Option<Neighbour<'g, R>> {
        let mut bound = bound;
        loop {
            let (here, order, end) = self.position_below(bound, guard);
            // The bound may be the upper fence of the leaf. Fences share the prefix of the keys
            // in the leaf, too.
            let inside = bound.unwrap_or_default();
            for index in (0..end).rev() {
                let met = self.meet(here.hanging(), &order, index, inside, guard, will_do);
                if let Some(met) = met {
                    let start = index.saturating_sub(AHEAD);
                    prefetch_for_chain(&met, here.leaf, &order, start..index);
                    return Some(met);
                }
            }
            // The leaf has no such record: continue below the lower fence, if there is one.
            bound = Some(here.fences.low?);
        }
    }

    /// Returns the record that readers see at an index of the order of a leaf, and sets the cursor
    /// to it. `inside` is a key that leads to the leaf.
    #[inline(always)]
    fn meet<'g>(
        &'g self,
        here: Hanging<'g, R>,
        order: &LeafOrder,
        index: usize,
        inside: &[u8],
        guard: &'g Guard,
        will_do: &impl Fn(&ShortKey) -> bool,
    ) -> Option<Neighbour<'g, R>> {
        let slot = order.slot(index);
        if let Some(key) = here.leaf.tell(slot, inside)
            && will_do(&key)
        {
            cursor::remember(self.identity(), here, order, index, Some(key), guard);
            return Some(Neighbour::Key);
        }
        let record = resolve_at(here.leaf, slot, When::NOW, guard)?;
        let key = ShortKey::of(record.key());
        cursor::remember(self.identity(), here, order, index, key, guard);
        Some(Neighbour::Record(record))
    }

    /// Returns the leaf with the keys just below `bound`, its order, and the index there where
    /// `bound` would be.
    fn position_below<'g>(
        &'g self,
        bound: Option<&[u8]>,
        guard: &'g Guard,
    ) -> (FencedLeaf<'g, R>, LeafOrder, usize) {
        match bound {
            None => {
                let here = self.fenced_leaf_by(guard, |inner| inner.len());
                let order = here.leaf.in_order();
                (here, order, order.len())
            }
            Some(key) => {
                let here = self.fenced_leaf_by(guard, |inner| inner.child_below(key));
                let order = here.leaf.in_order();
                let end = here.leaf.lower_bound(key, &order);
                (here, order, end)
            }
        }
    }
}
