//! Walks over the records of several base nodes: one is locked at a time, as in Erlang/OTP.
//!
//! A separator on the way to a base node is next to its range as a rule. If a route node is spliced
//! out while a thread stands on it, the base node reaches beyond that separator (PAPER_TREE-4). So
//! what was found may be beyond it, too, and a walk goes on from whatever is further.
//!
//! The invariants (PAPER_TREE-1 and so on) are those of [`paper_tree`](super).

use super::Routes;
use super::side::Side;
use ats_mem::record::{Record, Release};
use ats_sync::Guard;
use std::ops::{Bound, ControlFlow};

impl<R: Release> Routes<R> {
    /// Finds the first `most` records from a bound on.
    pub(super) fn walk_up<'g>(
        &'g self,
        from: Bound<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        let (mut from, start) = (from, found.len());
        loop {
            let mut fence = None;
            let place = self.descend(guard, |route| {
                let side = match from {
                    Bound::Unbounded => Side::Left,
                    Bound::Included(key) | Bound::Excluded(key) => route.side_of(key),
                };
                if side == Side::Left {
                    fence = Some(route.separator());
                }
                side
            });
            let Some(contents) = place.base.read() else {
                continue;
            };
            let end = contents.records.visit_up(from, &mut |record| {
                // SAFETY: it is in the map while the lock is held (PAPER_TREE-1), and the guard is
                // older than that.
                found.push(unsafe { record.get_under(guard) });
                break_if_enough(found.len() - start, most)
            });
            drop(contents);
            let (ControlFlow::Continue(()), Some(fence)) = (end, fence) else {
                return;
            };
            from = match found[start..].last() {
                Some(last) if last.key() >= fence => Bound::Excluded(last.key()),
                _ => Bound::Included(fence),
            };
        }
    }

    /// Finds the last `most` records below a key, or of all, from the last one down.
    pub(super) fn walk_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        let (mut below, start) = (below, found.len());
        loop {
            let mut fence = None;
            let place = self.descend(guard, |route| {
                if below.is_some_and(|below| below <= route.separator()) {
                    return Side::Left;
                }
                fence = Some(route.separator());
                Side::Right
            });
            let Some(contents) = place.base.read() else {
                continue;
            };
            let end = contents.records.visit_down(below, &mut |record| {
                // SAFETY: the record is in the map while the lock is held (PAPER_TREE-1), and the
                // guard is older than that.
                found.push(unsafe { record.get_under(guard) });
                break_if_enough(found.len() - start, most)
            });
            drop(contents);
            let (ControlFlow::Continue(()), Some(fence)) = (end, fence) else {
                return;
            };
            below = match found[start..].last() {
                Some(last) if last.key() < fence => Some(last.key()),
                _ => Some(fence),
            };
        }
    }
}

fn break_if_enough(found: usize, most: usize) -> ControlFlow<()> {
    match found < most {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}
