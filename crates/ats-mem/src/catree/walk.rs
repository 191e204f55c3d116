//! Walking in key order.
//!
//! A walk stands on a leaf and knows its fences; when the leaf is used up it goes down again from the
//! root to the leaf beyond the fence. So it holds nothing between leaves that a writer could
//! invalidate, and a key that is present throughout is met exactly once: leaves met one after the
//! other begin where their predecessor ended, whatever was split or merged meanwhile.

use super::search::Portable;
use super::{CaTree, Place};
use crate::record::{Record, Release};
use ats_sync::Guard;
use std::ops::ControlFlow;

impl<R: Release> CaTree<R> {
    /// Visits records from `key` upwards (`inclusive`: with `key` itself) until `visit` breaks.
    /// Not a snapshot: each record is as of the moment it is visited.
    pub(super) fn scan_up<'g>(
        &'g self,
        key: &[u8],
        inclusive: bool,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        let mut place = self.place_for(key, guard);
        let mut start = match place.leaf.search::<Portable>(key) {
            Ok(at) => at + usize::from(!inclusive),
            Err(at) => at,
        };
        loop {
            for at in start..place.leaf.len() {
                let record = place.leaf.record(at, guard);
                if let Some(record) = record.and_then(|record| record.settled(guard))
                    && visit(record).is_break()
                {
                    return;
                }
            }
            let Some(fence) = place.fences.high else {
                return;
            };
            // Leaves may have been merged meanwhile, so the fence can lie within the next one.
            place = self.place_for(fence, guard);
            start = place.leaf.search_bound(fence);
        }
    }

    /// The greatest record below `bound`, or of all.
    pub(super) fn below<'g>(
        &'g self,
        bound: Option<&[u8]>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let mut bound = bound;
        loop {
            let (place, end) = self.place_below(bound, guard);
            for at in (0..end).rev() {
                let record = place.leaf.record(at, guard);
                if let Some(record) = record.and_then(|record| record.settled(guard)) {
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
