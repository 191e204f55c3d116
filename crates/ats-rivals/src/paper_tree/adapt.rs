//! Adaptation: when and how base nodes are split and joined.
//!
//! A writer looks at the statistics of its base node before it unlocks it, and adapts with that
//! lock held.
//!
//! The invariants (PAPER_TREE-1 and so on) are those of [`paper_tree`](super).

use super::Routes;
use super::avl::Avl;
use super::base::{Base, Contents, Turns};
use super::find::Place;
use super::link::Link;
use super::node::Made;
use super::route::{Route, Separator};
use super::side::Side;
use crate::reader_groups::WriteGuard;
use ats_mem::forcing::Forced;
use ats_mem::record::Release;
use ats_sync::Guard;
use ats_sync::count::atomic::{AtomicU64, Ordering::Relaxed};
use std::ptr;

/// A base node whose statistics are above this is split.
const SPLIT_ABOVE: i32 = 1000;
/// A base node whose statistics are below this is joined with a neighbour.
const JOIN_BELOW: i32 = -1000;
/// Most route nodes on the way to a base node, since they are not balanced.
pub(super) const MOST_LEVELS: usize = 16;

/// A base node that is locked to write.
type Locked<'g, R> = WriteGuard<'g, Contents<R>>;

impl<R: Release> Routes<R> {
    /// Ends a write: splits or joins its base node if the statistics say so, and unlocks it.
    #[inline]
    pub(super) fn adapt_after(&self, place: &Place<'_, R>, contents: Locked<'_, R>, guard: &Guard) {
        let forced = self.forcing.decide_forced();
        let is_fitting = (JOIN_BELOW..=SPLIT_ABOVE).contains(&contents.statistics());
        if !is_fitting || contents.records.is_empty() || forced.is_some() {
            self.adapt(place, contents, forced, guard);
        }
    }

    #[cold]
    fn adapt(
        &self,
        place: &Place<'_, R>,
        contents: Locked<'_, R>,
        forced: Option<Forced>,
        guard: &Guard,
    ) {
        let statistics = contents.statistics();
        let is_empty = contents.records.is_empty();
        match forced {
            Some(Forced::Split) => self.split(place, contents, guard),
            Some(Forced::Join) => self.join(place, contents, guard),
            None if is_empty && place.parent.is_some() => self.join(place, contents, guard),
            None if statistics < JOIN_BELOW => self.join(place, contents, guard),
            None if statistics > SPLIT_ABOVE => self.split(place, contents, guard),
            None => {}
        }
    }

    /// Replaces a base node by a route node with two base nodes. The word that leads to it cannot
    /// change meanwhile, so this takes no further lock (PAPER_TREE-2).
    fn split(&self, place: &Place<'_, R>, mut contents: Locked<'_, R>, guard: &Guard) {
        if place.levels >= MOST_LEVELS {
            return;
        }
        if !contents.records.has_two() {
            contents.reset_statistics();
            return;
        }
        let (records, turns) = contents.invalidate();
        let [left, right] = records.split();
        let separator = Separator::new(right.first().map_or(&[], |first| first.get().key()));
        let base = |records, turns| Link::to(Made::Base(Box::new(Base::new(records, turns))));
        // The left one has what the old one has counted.
        let route = Route::new(separator, base(left, turns), base(right, Turns::default()));
        let old = place.link.put(Made::Route(Box::new(route)));
        drop(contents);
        count(&self.splits);
        // SAFETY: it was just replaced, under its lock, and marked (PAPER_TREE-1).
        unsafe { old.retire(guard) };
    }

    /// Joins a base node with its neighbour, and splices out its parent.
    fn join<'g>(&self, place: &Place<'g, R>, mut contents: Locked<'g, R>, guard: &'g Guard) {
        let Some((parent, side)) = place.parent else {
            contents.reset_statistics();
            return;
        };
        let neighbour = self.neighbour(parent, side, guard);
        let Some(mut beyond) = neighbour.base.try_write() else {
            // To wait for it could be to wait in a circle (PAPER_TREE-5).
            contents.reset_statistics();
            return;
        };
        // The valid neighbour is where it was found (PAPER_TREE-3), and so is what is below the
        // parent on its side.
        let sibling = parent.child(side.other());
        let is_sibling = ptr::eq(neighbour.link, sibling);

        let parent_held = parent.lock();
        let (above, above_held) = self.lock_parent(parent, guard);
        let spliced = above.follow(sibling);
        parent.invalidate(&parent_held);
        drop(above_held);
        drop(parent_held);

        let (own, own_turns) = contents.invalidate();
        let (other, other_turns) = beyond.invalidate();
        let joined = match side {
            Side::Left => Avl::join(own, other),
            Side::Right => Avl::join(other, own),
        };
        let turns = Turns {
            contended: own_turns.contended + other_turns.contended,
            uncontended: own_turns.uncontended + other_turns.uncontended,
        };
        // Published last: from now on other threads split it, and join what comes of that, and have
        // to find the routes as they will be.
        let link = if is_sibling { above } else { neighbour.link };
        let other = link.put(Made::Base(Box::new(Base::new(joined, turns))));
        drop(beyond);
        drop(contents);
        count(&self.joins);
        let own = parent.child(side).replaced_child();
        // SAFETY: the three were just replaced, under their locks, and marked (PAPER_TREE-1,
        // PAPER_TREE-3). The words of the parent do not change any more (PAPER_TREE-4), so the one
        // on this side leads to the base node that was here.
        unsafe {
            spliced.retire(guard);
            own.retire(guard);
            other.retire(guard);
        }
    }
}

fn count(times: &AtomicU64) {
    times.fetch_add(1, Relaxed);
}
