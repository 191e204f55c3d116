//! Skipping over objects without looking at them: how many there are between two keys, and which is
//! the n-th of them. Most trees have one object in each record; those of bags look at the records
//! that say how many they have, when they are counted first.
//!
//! Base node after base node is locked and passed, from one end of the range to the other. Below a
//! base node whole subtrees are passed by their [subtree counts](super::subtree_counts). Where
//! there is none, the leaves are counted, and the count is kept for the next thread that counts. So
//! a range costs what its leaves cost when it is counted first, and O(log n) later, in each base
//! node.
//!
//! The lock is given back after [`NODES_HELD`] nodes, and the rest of the range passed as if it had
//! been asked for. So writers do not wait long, and a count ends even if they undo subtree counts
//! faster than it makes them: it is a walk whose steps are sometimes long.
//!
//! # At one moment
//! A range whose subtree counts are known is passed in microseconds, and so
//! [at one moment](crate::Records::skip_at_once): under the lock of the base node if it is the only
//! one; else, as a [census](ats_sync::census) is taken, behind the closed gate, and with the lock
//! of adaptation, so that the base nodes stay as they are. Subtree counts include the records of
//! open batches, which nobody sees, so there must be none at that moment: base nodes count records
//! that batches have installed and not ended, and the sum of these numbers is 0.
//!
//! Uses the root, the gate, since it takes locks, the routes, which have the lock of adaptation,
//! and the rule that says how many objects a record is.

use super::base::{Base, sum_pending};
use super::fences::Fences;
use super::inner::Inner;
use super::kind::Kind;
use super::leaf::Leaf;
use super::link::Node;
use super::objects_per_record::ObjectsPerRecord;
use super::root::Root;
use super::simd_search::Baseline;
use super::tree::CaTree;
use crate::record::{Record, Release};
use crate::records::Skipped;
use ats_store::{Direction, KeyRange};
use ats_sync::model::{MOMENT_ATTEMPTS, NODES_HELD};
use ats_sync::{Backoff, Guard};
use std::ops::ControlFlow::{self, Break, Continue};

/// Looking at so many records takes about as long as visiting a node.
const RECORDS_AS_NODE: usize = 4;

/// The number of children by which nodes are fetched ahead.
const AHEAD: usize = 3;

/// The reason why skipping in a base node ends before its end.
enum Stop<'g, R: Release> {
    /// The record of the next object (it may be pending), when as many as wanted were passed; and
    /// the number of its own objects that are among those.
    At(&'g Record<R>, u64),
    /// Enough for now. All on the near side of this fence was passed.
    Pause(&'g [u8]),
}

/// On the way through a base node, of which the lock is held.
struct Skipping<'g> {
    guard: &'g Guard,
    direction: Direction,
    objects: ObjectsPerRecord,
    /// Objects to be passed.
    left: u64,
    /// Nodes that may still be visited.
    nodes: usize,
    /// Bytes of memory taken by subtree counts.
    bytes: usize,
    /// `true` if the lock is held, so that subtree counts can be kept.
    keeps: bool,
}

/// Those of the ends of a range that lie within some node.
#[derive(Clone, Copy)]
struct Ends<'k> {
    low: Option<&'k [u8]>,
    high: Option<&'k [u8]>,
}

impl<'k> Ends<'k> {
    /// Leaves out those which say no more than the fences.
    fn within(self, fences: &Fences<'_>) -> Self {
        let Ends { low, high } = self;
        Ends {
            low: low.filter(|low| fences.low.is_none_or(|fence| fence < *low)),
            high: high.filter(|high| fences.high.is_none_or(|fence| *high < fence)),
        }
    }

    fn are_none(&self) -> bool {
        self.low.is_none() && self.high.is_none()
    }
}

/// A range, the direction in which it is passed, and most objects.
type Wanted<'k> = (KeyRange<'k>, Direction, usize);

/// The outcome of an attempt to skip records at one moment.
enum Try<'g, R: Release> {
    Skipped(Skipped<'g, R>),
    /// There are too many nodes to be visited, or the calling thread must not wait.
    TooFar,
    /// A batch is open.
    Again,
}

impl<'g> Skipping<'g> {
    /// Passes the records of a range in a base node, which has these fences.
    fn skip_base<R: Release>(
        &mut self,
        base: &'g Base<R>,
        fences: Fences<'g>,
        KeyRange { low, high }: KeyRange<'_>,
    ) -> ControlFlow<Stop<'g, R>> {
        let ends = Ends { low, high }.within(&fences);
        self.skip(base.root(), fences, ends)
    }

    /// Passes the records between the ends below a node, which has these fences.
    fn skip<R: Release>(
        &mut self,
        node: Node<'g, R>,
        fences: Fences<'g>,
        ends: Ends<'_>,
    ) -> ControlFlow<Stop<'g, R>> {
        let near = match self.direction {
            Direction::Up => fences.low,
            Direction::Down => fences.high,
        };
        match (self.nodes.checked_sub(1), near) {
            (Some(nodes), _) => self.nodes = nodes,
            // Something was passed, or so many nodes would not have been visited.
            (None, Some(fence)) => return Break(Stop::Pause(fence)),
            (None, None) => {}
        }
        match node.kind() {
            Kind::Leaf(leaf) => self.pass_leaf(leaf, ends),
            Kind::Inner(inner) => self.pass_inner(inner, fences, ends),
            Kind::Base(_) => unreachable!("no base node is below another"),
        }
    }

    fn pass_leaf<R: Release>(
        &mut self,
        leaf: Leaf<'g, R>,
        ends: Ends<'_>,
    ) -> ControlFlow<Stop<'g, R>> {
        let order = leaf.in_order();
        let start = ends.low.map_or(0, |key| leaf.lower_bound(key, &order));
        let end = ends
            .high
            .map_or(order.len(), |key| leaf.lower_bound(key, &order));
        let places = || {
            let places = (start..end).map(|index| order.place(index));
            places.filter(|place| leaf.is_live(*place))
        };
        let live = places().count() as u64;
        let (place, within) = match self.objects {
            ObjectsPerRecord::One if live <= self.left => {
                self.left -= live;
                return Continue(());
            }
            ObjectsPerRecord::One => {
                let left = self.left as usize;
                let place = match self.direction {
                    Direction::Up => places().nth(left),
                    Direction::Down => places().nth_back(left),
                };
                (place, 0)
            }
            ObjectsPerRecord::Stored => {
                self.nodes = self.nodes.saturating_sub(live as usize / RECORDS_AS_NODE);
                let mut passes = |place: &usize| {
                    let objects = self.objects.of_place(leaf, *place, self.guard);
                    let rest = self.left.checked_sub(objects);
                    self.left = rest.unwrap_or(self.left);
                    rest.is_some()
                };
                let place = match self.direction {
                    Direction::Up => places().find(|place| !passes(place)),
                    Direction::Down => places().rev().find(|place| !passes(place)),
                };
                if place.is_none() {
                    return Continue(());
                }
                (place, self.left)
            }
        };
        self.left = 0;
        let record = place.and_then(|place| leaf.record(place, self.guard));
        let record = record.expect("only the holder of the lock takes records out");
        Break(Stop::At(record, within))
    }

    fn pass_inner<R: Release>(
        &mut self,
        inner: &'g Inner<R>,
        fences: Fences<'g>,
        ends: Ends<'_>,
    ) -> ControlFlow<Stop<'g, R>> {
        let first = ends.low.map_or(0, |key| inner.child_for::<Baseline>(key));
        let last = ends.high.map_or(inner.len(), |key| inner.child_below(key));
        let direction = self.direction;
        let mut skip = |place| {
            let fences = fences.of_child(inner, place);
            self.pass_child(inner, place, fences, ends.within(&fences))
        };
        match direction {
            Direction::Up => (first..=last).try_for_each(&mut skip),
            Direction::Down => (first..=last).rev().try_for_each(&mut skip),
        }
    }

    fn pass_child<R: Release>(
        &mut self,
        inner: &'g Inner<R>,
        place: usize,
        fences: Fences<'g>,
        ends: Ends<'_>,
    ) -> ControlFlow<Stop<'g, R>> {
        let is_whole = ends.are_none();
        let known = inner.subtree_counts.get(place);
        if is_whole && let Some(rest) = known.and_then(|count| self.left.checked_sub(count)) {
            self.left = rest;
            return Continue(());
        }
        let ahead = match self.direction {
            Direction::Up => place + AHEAD,
            Direction::Down => place.wrapping_sub(AHEAD),
        };
        inner.prefetch_child(ahead);
        let before = self.left;
        self.skip(inner.child(place), fences, ends)?;
        if is_whole && known.is_none() && self.keeps {
            self.bytes += inner.subtree_counts.set(place, before - self.left);
        }
        Continue(())
    }
}

impl<R: Release> CaTree<R> {
    /// See [`Records::skip`](crate::Records::skip).
    pub(super) fn skip_records<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, R> {
        let mut rest = key_range;
        let mut left = most as u64;
        let skipped = |left: u64| most - left as usize;
        while !rest.is_empty() {
            let bound = match self.pass_base(rest, direction, &mut left, guard) {
                Break(Stop::At(record, within)) => {
                    let visible = visible(self.root(), record, rest, direction, guard);
                    return match visible {
                        Some(seen) => Skipped::At(seen, within as usize),
                        None => Skipped::All(most),
                    };
                }
                Break(Stop::Pause(fence)) => Some(fence),
                Continue(end) => end,
            };
            let Some(bound) = bound else { break };
            match direction {
                Direction::Up => rest.low = Some(bound),
                Direction::Down => rest.high = Some(bound),
            }
            if !rest.is_empty() && pause().is_break() {
                return Skipped::Paused {
                    skipped: skipped(left),
                    bound: bound.to_vec(),
                };
            }
        }
        Skipped::All(skipped(left))
    }

    /// Passes what a range has in the base node at its near end. Returns where that ends.
    fn pass_base<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        left: &mut u64,
        guard: &'g Guard,
    ) -> ControlFlow<Stop<'g, R>, Option<&'g [u8]>> {
        let (base, fences, held) = loop {
            let (base, fences) = base_at_end(self.root(), key_range, direction, guard);
            let held = base.lock_to_count(&self.gate);
            if !base.header.is_dead() {
                break (base, fences, held);
            }
        };
        let mut skipping = self.skipping(direction, *left, guard);
        skipping.keeps = true;
        let stop = skipping.skip_base(base, fences, key_range);
        *left = skipping.left;
        if skipping.bytes > 0 {
            base.count_turn();
            base.set_counts_subtrees();
            base.account_nodes(skipping.bytes as i64);
        }
        drop(held);
        stop?;
        Continue(match direction {
            Direction::Up => fences.high,
            Direction::Down => fences.low,
        })
    }

    fn skipping<'g>(&self, direction: Direction, left: u64, guard: &'g Guard) -> Skipping<'g> {
        Skipping {
            guard,
            direction,
            objects: self.objects,
            left,
            nodes: NODES_HELD,
            bytes: 0,
            keeps: false,
        }
    }

    /// See [`Records::skip_at_once`](crate::Records::skip_at_once).
    pub(super) fn skip_records_at_once<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, R>> {
        if key_range.is_empty() {
            return Some(Skipped::All(0));
        }
        let wanted = (key_range, direction, most);
        let mut backoff = Backoff::new();
        for _ in 0..MOMENT_ATTEMPTS {
            let tried = match self.root().node(guard).kind() {
                Kind::Base(base) => self.try_in_only(base, wanted, guard),
                _ => self.try_in_all(wanted, guard),
            };
            match tried {
                Try::Skipped(skipped) => return Some(skipped),
                Try::TooFar => return None,
                // Batches are open, which end.
                Try::Again if backoff.wait() => {}
                Try::Again => return None,
            }
        }
        None
    }

    /// Passes records under the lock of the base node if that is the only one.
    fn try_in_only<'g>(
        &'g self,
        base: &'g Base<R>,
        wanted: Wanted<'_>,
        guard: &'g Guard,
    ) -> Try<'g, R> {
        if base.pending() != 0 {
            return Try::Again;
        }
        let _held = base.lock_to_count(&self.gate);
        match base.header.is_dead() || base.pending() != 0 {
            true => Try::Again,
            false => self.skip_at_rest(&[(base, Fences::NONE)], wanted, guard),
        }
    }

    /// Passes records while no thread is inside that writes.
    fn try_in_all<'g>(&'g self, wanted: Wanted<'_>, guard: &'g Guard) -> Try<'g, R> {
        let tried = self.routes.take_turn(|turn| {
            let _routes_held = self.routes.lock_within_limit()?;
            let mut bases = Vec::new();
            self.root().for_each_base(guard, &mut |base, fences| {
                bases.push((base, fences));
                Continue(())
            });
            let has_pending = || sum_pending(bases.iter().map(|(base, _)| base.pending())) != 0;
            if has_pending() {
                return Some(Try::Again);
            }
            let parts = || bases.iter().map(|(base, _)| *base);
            self.gate.close(turn, parts, || match has_pending() {
                true => Try::Again,
                false => self.skip_at_rest(&bases, wanted, guard),
            })
        });
        tried.unwrap_or(Try::TooFar)
    }

    /// Passes records of these base nodes, which are all, while no other thread changes anything
    /// and no batch is open.
    fn skip_at_rest<'g>(
        &'g self,
        bases: &[(&'g Base<R>, Fences<'g>)],
        (key_range, direction, most): Wanted<'_>,
        guard: &'g Guard,
    ) -> Try<'g, R> {
        let mut skipping = self.skipping(direction, most as u64, guard);
        let mut skip = |(base, fences): &(&'g Base<R>, Fences<'g>)| {
            if !fences.meet(&key_range) {
                return Continue(());
            }
            // Each base node was looked at anyway.
            skipping.nodes += 1;
            skipping.skip_base(base, *fences, key_range)
        };
        let stop = match direction {
            Direction::Up => bases.iter().try_for_each(&mut skip),
            Direction::Down => bases.iter().rev().try_for_each(&mut skip),
        };
        match stop {
            Continue(()) => Try::Skipped(Skipped::All(most - skipping.left as usize)),
            Break(Stop::At(record, within)) => Try::Skipped(Skipped::At(record, within as usize)),
            Break(Stop::Pause(_)) => Try::TooFar,
        }
    }
}

/// The base node at the near end of a range, and its range, which is that of the base node for as
/// long as this is not dead.
fn base_at_end<'g, R: Release>(
    root: &'g Root<R>,
    key_range: KeyRange<'_>,
    direction: Direction,
    guard: &'g Guard,
) -> (&'g Base<R>, Fences<'g>) {
    let mut fences = Fences::NONE;
    let mut node = root.node(guard);
    loop {
        match node.kind() {
            Kind::Base(base) => return (base, fences),
            Kind::Inner(inner) => {
                let place = match direction {
                    Direction::Up => key_range
                        .low
                        .map_or(0, |key| inner.child_for::<Baseline>(key)),
                    Direction::Down => key_range
                        .high
                        .map_or(inner.len(), |key| inner.child_below(key)),
                };
                fences = fences.of_child(inner, place);
                node = inner.child(place);
            }
            Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
        }
    }
}

/// The record that a reader sees of one that was come to: itself, the one that was there
/// before, or if there was none, the next.
fn visible<'g, R: Release>(
    root: &'g Root<R>,
    record: &'g Record<R>,
    key_range: KeyRange<'_>,
    direction: Direction,
    guard: &'g Guard,
) -> Option<&'g Record<R>> {
    let beyond = || match direction {
        Direction::Up => root.above(record.key(), guard),
        Direction::Down => root.below(Some(record.key()), guard),
    };
    let seen = record.resolve(guard).or_else(beyond);
    seen.filter(|seen| key_range.has(seen.key()))
}
