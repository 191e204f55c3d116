//! Order statistics: the number of objects between two keys, and the n-th of them, without a visit
//! of each. Most trees have one object in each record; those of bags read the number of objects
//! from the records, when they are counted first.
//!
//! The base nodes are locked and passed one by one, from one end of the range to the other. Below a
//! base node whole subtrees are passed by their [subtree counts](super::subtree_counts). If a count
//! is missing, the leaves are counted, and the count is stored for the next thread that counts. So
//! the first count of a range visits its leaves, and later ones take O(log n), in each base node.
//!
//! The lock is released after [`NODES_HELD`] nodes, and the rest of the range is passed like a new
//! range. So writers do not wait long, and a count ends even if they invalidate subtree counts
//! faster than it makes them: it is a walk with some long steps.
//!
//! # At one moment
//! A range whose subtree counts are known is passed in microseconds, and so
//! [at one read point](crate::Records::skip_at_once): under the lock of the base node if it is the
//! only one; else, as a [census](ats_sync::census) is taken, behind the closed gate, and with the
//! lock of adaptation, so that the base nodes stay as they are. Subtree counts include the records
//! of open batches, which nobody sees, so there must be none at that moment: base nodes count
//! records that batches have installed and not ended, and the sum of these numbers is 0.
//!
//! Uses the root, the gate, because it takes locks, the routes, which have the lock of adaptation,
//! and the number of objects per record.

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

/// Number of record reads that take about as long as the visit of a node.
const RECORDS_AS_NODE: usize = 4;

/// Number of children by which nodes are prefetched.
const AHEAD: usize = 3;

/// The reason why a skip ends within a base node.
enum Stop<'g, R: Release> {
    /// All wanted objects were passed: the record of the next object (it may be pending), and the
    /// number of its own objects among those passed.
    At(&'g Record<R>, u64),
    /// The limit of work is reached. All objects on the near side of this fence were passed.
    Pause(&'g [u8]),
}

/// The state of a skip through a locked base node.
struct Skipping<'g> {
    guard: &'g Guard,
    direction: Direction,
    objects: ObjectsPerRecord,
    /// Number of objects still to be passed.
    left: u64,
    /// Number of nodes that may still be visited.
    nodes: usize,
    /// Bytes of new subtree counts.
    bytes: usize,
    /// `true` if the lock is held, so that subtree counts can be stored.
    keeps: bool,
}

/// The ends of a range that are within some node.
#[derive(Clone, Copy)]
struct Ends<'k> {
    low: Option<&'k [u8]>,
    high: Option<&'k [u8]>,
}

impl Ends<'_> {
    /// Drops the ends that the fences imply.
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

/// A range, the direction in which it is passed, and the largest number of objects.
type Wanted<'k> = (KeyRange<'k>, Direction, usize);

/// The outcome of an attempt to skip records at one moment.
enum Try<'g, R: Release> {
    Skipped(Skipped<'g, R>),
    /// Too many nodes have to be visited, or the calling thread must not wait.
    TooFar,
    /// A batch is open.
    Again,
}

impl<'g> Skipping<'g> {
    /// Passes the records of a range in a base node with these fences.
    fn skip_base<R: Release>(
        &mut self,
        base: &'g Base<R>,
        fences: Fences<'g>,
        KeyRange { low, high }: KeyRange<'_>,
    ) -> ControlFlow<Stop<'g, R>> {
        let ends = Ends { low, high }.within(&fences);
        self.skip(base.root(), fences, ends)
    }

    /// Passes the records between the ends below a node with these fences.
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
            // Some records were passed, or fewer nodes would have been visited.
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
        let slots = || {
            let slots = (start..end).map(|index| order.slot(index));
            slots.filter(|slot| leaf.is_live(*slot))
        };
        let live = slots().count() as u64;
        let (slot, within) = match self.objects {
            ObjectsPerRecord::One if live <= self.left => {
                self.left -= live;
                return Continue(());
            }
            ObjectsPerRecord::One => {
                let left = self.left as usize;
                let slot = match self.direction {
                    Direction::Up => slots().nth(left),
                    Direction::Down => slots().nth_back(left),
                };
                (slot, 0)
            }
            ObjectsPerRecord::Stored => {
                self.nodes = self.nodes.saturating_sub(live as usize / RECORDS_AS_NODE);
                let mut passes = |slot: &usize| {
                    let objects = self.objects.of_slot(leaf, *slot, self.guard);
                    let rest = self.left.checked_sub(objects);
                    self.left = rest.unwrap_or(self.left);
                    rest.is_some()
                };
                let slot = match self.direction {
                    Direction::Up => slots().find(|slot| !passes(slot)),
                    Direction::Down => slots().rev().find(|slot| !passes(slot)),
                };
                if slot.is_none() {
                    return Continue(());
                }
                (slot, self.left)
            }
        };
        self.left = 0;
        let record = slot.and_then(|slot| leaf.record(slot, self.guard));
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
        let mut skip = |child_index| {
            let fences = fences.of_child(inner, child_index);
            self.pass_child(inner, child_index, fences, ends.within(&fences))
        };
        match direction {
            Direction::Up => (first..=last).try_for_each(&mut skip),
            Direction::Down => (first..=last).rev().try_for_each(&mut skip),
        }
    }

    fn pass_child<R: Release>(
        &mut self,
        inner: &'g Inner<R>,
        child_index: usize,
        fences: Fences<'g>,
        ends: Ends<'_>,
    ) -> ControlFlow<Stop<'g, R>> {
        let is_whole = ends.are_none();
        let known = inner.subtree_counts.get(child_index);
        if is_whole && let Some(rest) = known.and_then(|count| self.left.checked_sub(count)) {
            self.left = rest;
            return Continue(());
        }
        let ahead = match self.direction {
            Direction::Up => child_index + AHEAD,
            Direction::Down => child_index.wrapping_sub(AHEAD),
        };
        inner.prefetch_child(ahead);
        let before = self.left;
        self.skip(inner.child(child_index), fences, ends)?;
        if is_whole && known.is_none() && self.keeps {
            self.bytes += inner.subtree_counts.set(child_index, before - self.left);
        }
        Continue(())
    }
}

impl<R: Release> CaTree<R> {
    /// Implements [`skip`](crate::Records::skip).
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

    /// Passes the part of a range in the base node at its near end. Returns the end of that part.
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

    /// Implements [`skip_at_once`](crate::Records::skip_at_once).
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
                // The open batches will end, so another attempt may succeed.
                Try::Again if backoff.wait() => {}
                Try::Again | Try::TooFar => return None,
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
        if base.header.is_dead() || base.pending() != 0 {
            Try::Again
        } else {
            self.skip_at_rest(&[(base, Fences::NONE)], wanted, guard)
        }
    }

    /// Passes records while no writer is inside.
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
            self.gate.close(turn, parts, || {
                if has_pending() {
                    Try::Again
                } else {
                    self.skip_at_rest(&bases, wanted, guard)
                }
            })
        });
        tried.unwrap_or(Try::TooFar)
    }

    /// Passes records of all these base nodes, while no other thread writes and no batch is open.
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
            // Each base node counts as a visited node.
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

/// Returns the base node at the near end of a range, with its fences, which are valid as long as it
/// is not dead.
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
                let child_index = match direction {
                    Direction::Up => key_range
                        .low
                        .map_or(0, |key| inner.child_for::<Baseline>(key)),
                    Direction::Down => key_range
                        .high
                        .map_or(inner.len(), |key| inner.child_below(key)),
                };
                fences = fences.of_child(inner, child_index);
                node = inner.child(child_index);
            }
            Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
        }
    }
}

/// Returns the record that a reader sees instead of one that was reached: itself, the record
/// before, or if there was none, the next one.
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
