//! Walking in key order.
//!
//! A walk stands on a leaf and knows its fences; when the leaf is used up it goes to the next child of the
//! parent or, if there is none or the parent is being replaced, down again from the root to the leaf
//! beyond the fence. So it holds nothing between leaves that a writer could invalidate, and a key that is
//! present throughout is met exactly once: leaves met one after the other begin where their predecessor
//! ended, whatever was split or merged meanwhile.
//!
//! Where a walk upwards ends in a leaf is read before it looks for its beginning there. What is appended
//! to the leaf after that may belong before the beginning, which was not looked for among it.

use super::counting::Portable;
use super::cursor::{self, Hanging};
use super::find::Place;
use super::leaf::Leaf;
use super::path::PathNode;
use super::tree::CaTree;
use crate::record::{Record, Release};
use ats_sync::Guard;
use std::ops::{ControlFlow, Range};

/// How many records ahead of a walk are fetched: enough to hide a cache miss behind the calls of a chain.
const AHEAD: usize = 6;

/// What a reader sees at a place of a leaf.
#[inline(always)]
fn settled<'g, R: Release>(
    leaf: Leaf<'g, R>,
    at: usize,
    guard: &'g Guard,
) -> Option<&'g Record<R>> {
    leaf.record(at, guard)?.settled(guard)
}

impl<'g, R: Release> Place<'g, R> {
    fn hanging(&self) -> Hanging<'g, R> {
        Hanging {
            leaf: self.leaf,
            parent: self.parent.map(|step| (step.inner, step.place)),
        }
    }

    /// The place of the leaf to the right, if it can be had without going back to the root.
    fn right(&self) -> Option<Self> {
        let right = self.hanging().right()?;
        let step = self.parent?;
        let place = step.place + 1;
        Some(Place {
            leaf: right.leaf,
            fences: step.fences.of_child(step.inner, place),
            parent: Some(PathNode { place, ..step }),
        })
    }
}

impl<R: Release> CaTree<R> {
    /// Visits records from `key` upwards (`inclusive`: with `key` itself) until `visit` breaks.
    /// Not a snapshot: each record is as of the moment it is visited.
    pub(super) fn walk_up<'g>(
        &'g self,
        key: &[u8],
        inclusive: bool,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let mut place = self.place_for(key, guard);
        let mut end = place.leaf.len();
        let mut start = match place.leaf.search::<Portable>(key) {
            Ok(at) => at + usize::from(!inclusive),
            Err(at) => at,
        };
        loop {
            let beside = place.right();
            if let Some(beside) = &beside {
                beside.leaf.prefetch();
            }
            (start..start + AHEAD).for_each(|at| place.leaf.prefetch_record(at));
            for at in start..end {
                match (at + AHEAD, &beside) {
                    (ahead, Some(beside)) if ahead >= end => {
                        beside.leaf.prefetch_record(ahead - end)
                    }
                    (ahead, _) => place.leaf.prefetch_record(ahead),
                }
                if let Some(record) = settled(place.leaf, at, guard)
                    && visit(record).is_break()
                {
                    return;
                }
            }
            let Some(fence) = place.fences.high else {
                return;
            };
            (place, start, end) = match beside.and_then(|_| place.right()) {
                Some(beside) => {
                    let end = beside.leaf.len();
                    (beside, 0, end)
                }
                // Leaves may have been merged meanwhile, so the fence can lie within the next one.
                None => {
                    let place = self.place_for(fence, guard);
                    let end = place.leaf.len();
                    let start = place.leaf.search_bound(fence);
                    (place, start, end)
                }
            };
        }
    }

    /// Visits records below `bound`, or all, downwards until `visit` breaks. Not a snapshot: each record is as of the
    /// moment it is visited.
    ///
    /// Goes down from the root once for each leaf. What it has looked at ends at the lower fence of the leaf, so what
    /// is split or merged meanwhile does not matter.
    pub(super) fn walk_down<'g>(
        &'g self,
        bound: Option<&[u8]>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let mut bound = bound;
        loop {
            let (place, end) = self.place_below(bound, guard);
            (end.saturating_sub(AHEAD)..end).for_each(|at| place.leaf.prefetch_record(at));
            for at in (0..end).rev() {
                if let Some(ahead) = at.checked_sub(AHEAD) {
                    place.leaf.prefetch_record(ahead);
                }
                if let Some(record) = settled(place.leaf, at, guard)
                    && visit(record).is_break()
                {
                    return;
                }
            }
            match place.fences.low {
                Some(low) => bound = Some(low),
                None => return,
            }
        }
    }

    /// The least record above `key`. A chain of such steps goes down from the root once for each leaf; in
    /// between, a cursor of the thread knows the leaf.
    pub(super) fn above<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        if let Some((here, at)) = cursor::recall(&self.identity, key, guard) {
            if let Some(record) = self.step_up(here, at + 1..here.leaf.len(), guard) {
                return Some(record);
            }
            if let Some(right) = here.right()
                && let Some(record) = self.step_up(right, 0..right.leaf.len(), guard)
            {
                return Some(record);
            }
        }
        let mut place = self.place_for(key, guard);
        let mut end = place.leaf.len();
        let mut start = match place.leaf.search::<Portable>(key) {
            Ok(at) => at + 1,
            Err(at) => at,
        };
        loop {
            (start..start + AHEAD).for_each(|at| place.leaf.prefetch_record(at));
            if let Some(record) = self.step_up(place.hanging(), start..end, guard) {
                return Some(record);
            }
            let fence = place.fences.high?;
            place = self.place_for(fence, guard);
            end = place.leaf.len();
            start = place.leaf.search_bound(fence);
        }
    }

    /// The first record at these places of a leaf, for the cursor to remember. Fetches what later steps
    /// will come to.
    #[inline(always)]
    fn step_up<'g>(
        &'g self,
        here: Hanging<'g, R>,
        places: Range<usize>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let len = places.end;
        for at in places {
            let Some(record) = settled(here.leaf, at, guard) else {
                continue;
            };
            cursor::remember(&self.identity, here, at, guard);
            let ahead = at + AHEAD;
            if ahead < len {
                here.leaf.prefetch_record(ahead);
            }
            if at + 2 * AHEAD >= len
                && let Some(right) = here.right()
            {
                match ahead.checked_sub(len) {
                    Some(beyond) => right.leaf.prefetch_record(beyond),
                    None => right.leaf.prefetch(),
                }
            }
            return Some(record);
        }
        None
    }

    /// The greatest record below `bound`, or of all.
    pub(super) fn below<'g>(
        &'g self,
        bound: Option<&[u8]>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        if let Some(key) = bound
            && let Some((here, at)) = cursor::recall(&self.identity, key, guard)
        {
            for at in (0..at).rev() {
                if let Some(record) = settled(here.leaf, at, guard) {
                    cursor::remember(&self.identity, here, at, guard);
                    if let Some(ahead) = at.checked_sub(AHEAD) {
                        here.leaf.prefetch_record(ahead);
                    }
                    return Some(record);
                }
            }
        }
        let mut bound = bound;
        loop {
            let (place, end) = self.place_below(bound, guard);
            for at in (0..end).rev() {
                if let Some(record) = settled(place.leaf, at, guard) {
                    cursor::remember(&self.identity, place.hanging(), at, guard);
                    (at.saturating_sub(AHEAD)..at).for_each(|at| place.leaf.prefetch_record(at));
                    return Some(record);
                }
            }
            // Nothing here: go on below the lower fence, if there is one.
            bound = Some(place.fences.low?);
        }
    }

    /// The leaf with the keys just below `bound`, and the place there where `bound` would be.
    fn place_below<'g>(&'g self, bound: Option<&[u8]>, guard: &'g Guard) -> (Place<'g, R>, usize) {
        match bound {
            None => {
                let place = self.place_by(guard, |inner| inner.len());
                let end = place.leaf.len();
                (place, end)
            }
            Some(key) => {
                let place = self.place_by(guard, |inner| inner.child_below(key));
                let end = place.leaf.search_bound(key);
                (place, end)
            }
        }
    }
}
