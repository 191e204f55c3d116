//! Totals over all base nodes: the number of objects, their memory, the adaptation of the tree.
//!
//! [`totals`](crate::Records::totals) is a [census](ats_sync::census): base nodes are its parts,
//! and the lock of adaptation keeps them as they are.
//!
//! Uses the root, the routes, which have that lock and the numbers of splits and joins, and the
//! gate.

use super::base::{Base, Counts};
use super::header::BASE;
use super::kind::Kind;
use super::tree::CaTree;
use crate::change::Busy;
use crate::figures::{Adaptation, BaseState, ShapeNode, Totals};
use crate::read_points::ReadPoint;
use crate::record::Release;
use ats_sync::census::Turn;
use ats_sync::{Guard, pin};
use std::iter;
use std::ops::ControlFlow;

/// The approximate totals of about one moment.
pub(super) struct Estimate {
    pub counts: Counts,
    pub route_bytes: i64,
    pub adaptation: Adaptation,
}

impl<R: Release> CaTree<R> {
    /// Implements [`totals`](crate::Records::totals). O(base nodes).
    pub(super) fn census(&self) -> Result<Totals, Busy> {
        let guard = pin();
        if let Some(totals) = self.glance(None, &guard) {
            return Ok(totals);
        }
        self.take_census(&guard).map(|(totals, _)| totals)
    }

    /// Begins a query, by a census like [`census`](Self::census).
    pub(super) fn begin_read_point(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<ReadPoint, Busy> {
        self.read_points.begin(prepare, || {
            let guard = pin();
            let mut read_point = 0;
            let mut advance = || read_point = self.read_points.advance();
            let (totals, read_point) = match self.glance(Some(&mut advance), &guard) {
                Some(totals) => (totals, read_point),
                None => self.take_census(&guard)?,
            };
            Ok((read_point, totals.objects))
        })
    }

    /// Takes a census. Returns the totals, and the read point of their moment.
    fn take_census(&self, guard: &Guard) -> Result<(Totals, u64), Busy> {
        self.routes
            .share_census(|turn| self.totals_of_all(turn, guard))
    }

    /// Returns the totals without a census, if there is one base node and no thread writes.
    /// `between` is called between the two rounds in which the gate reads the lock.
    fn glance(&self, between: Option<&mut dyn FnMut()>, guard: &Guard) -> Option<Totals> {
        let Kind::Base(base) = self.root().node(guard).kind() else {
            return None;
        };
        let totals = self.gate.glance(|| iter::once(base), add, between)?;
        // A node that is not dead was the only one all the time, and its lock was not held.
        (!base.header.is_dead()).then(|| self.with_routes(totals))
    }

    fn totals_of_all(&self, turn: &mut Turn<'_>, guard: &Guard) -> Option<(Totals, u64)> {
        let _routes_held = self.routes.lock_within_limit()?;
        let mut bases = Vec::new();
        self.root().for_each_base(guard, &mut |base, _| {
            bases.push(base);
            ControlFlow::Continue(())
        });
        let mut read_point = 0;
        let mut advance = || read_point = self.read_points.advance();
        let parts = || bases.iter().copied();
        let totals = self.gate.close_and_sum(turn, parts, add, &mut advance)?;
        Some((self.with_routes(totals), read_point))
    }

    fn with_routes(&self, totals: Totals) -> Totals {
        let own = size_of::<Self>() + self.routes.shared_bytes() + self.read_points.bytes();
        let structure = own as i64 + self.routes.bytes();
        Totals {
            structure: totals.structure + structure,
            ..totals
        }
    }

    /// Returns the numbers of the base node at about one moment, if it is the only one. Takes no
    /// lock.
    fn counts_of_only(&self) -> Option<Counts> {
        let guard = pin();
        let Kind::Base(base) = self.root().node(&guard).kind() else {
            return None;
        };
        let (counts, own) = (base.counts(), base.bytes_with_finger() as i64);
        Some(Counts {
            bytes: counts.bytes + own,
            node_bytes: counts.node_bytes + own,
            ..counts
        })
    }

    /// Adds up the numbers of all base nodes. O(base nodes). If there are several, it holds the
    /// lock of adaptation, so that no base node is counted twice, or not at all, because it is
    /// split or joined meanwhile; writers go on.
    pub(super) fn estimate_nodes(&self) -> Estimate {
        if let Some(counts) = self.counts_of_only() {
            let adaptation = Adaptation {
                base_nodes: 1,
                splits: self.routes.splits(),
                joins: self.routes.joins(),
                contended: counts.contended,
                uncontended: counts.uncontended,
                ..Adaptation::default()
            };
            return Estimate {
                counts,
                route_bytes: 0,
                adaptation,
            };
        }
        let guard = pin();
        let _routes_held = self.routes.lock();
        let mut counts = Counts::default();
        let mut adaptation = Adaptation {
            splits: self.routes.splits(),
            joins: self.routes.joins(),
            ..Adaptation::default()
        };
        self.for_each_above_leaves(&guard, |depth, base| match base {
            Some(base) => {
                let more = base.counts();
                counts.objects += more.objects;
                let own = base.bytes_with_finger() as i64;
                counts.bytes += more.bytes + own;
                counts.node_bytes += more.node_bytes + own;
                counts.contended += more.contended;
                counts.uncontended += more.uncontended;
                adaptation.base_nodes += 1;
                adaptation.depth = adaptation.depth.max(depth);
            }
            None => adaptation.route_nodes += 1,
        });
        adaptation.contended = counts.contended;
        adaptation.uncontended = counts.uncontended;
        Estimate {
            counts,
            route_bytes: self.routes.bytes(),
            adaptation,
        }
    }

    /// Implements [`shape`](Self::shape). Writers are not stopped, but no base node is split or
    /// joined meanwhile.
    pub(super) fn nodes_in_order(&self) -> Vec<ShapeNode> {
        let guard = pin();
        let _routes_held = self.routes.lock();
        let mut nodes = Vec::new();
        self.for_each_above_leaves(&guard, |depth, base| {
            let base = base.map(|base| {
                let counts = base.counts();
                BaseState {
                    statistics: base.statistics(),
                    contended: counts.contended,
                    uncontended: counts.uncontended,
                }
            });
            nodes.push(ShapeNode { depth, base });
        });
        nodes
    }

    /// Visits route nodes, passed as `None`, and base nodes, with the number of route nodes above;
    /// in key order, a route node before its children. The caller holds the lock of adaptation.
    fn for_each_above_leaves(&self, guard: &Guard, mut visit: impl FnMut(usize, Option<&Base<R>>)) {
        let mut ahead = vec![(self.root().node(guard), 0)];
        while let Some((node, depth)) = ahead.pop() {
            match node.kind() {
                Kind::Base(base) => visit(depth, Some(base)),
                Kind::Inner(route) => {
                    debug_assert!(route.header().level > BASE);
                    visit(depth, None);
                    let children = route.children().into_iter().rev();
                    ahead.extend(children.map(|child| (child, depth + 1)));
                }
                Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
            }
        }
    }
}

/// Adds the numbers of one base node.
fn add<R: Release>(totals: &mut Totals, base: &Base<R>) {
    let counts = base.counts();
    totals.objects += counts.objects;
    totals.bytes += counts.bytes - counts.node_bytes;
    totals.structure += counts.node_bytes + base.bytes_with_finger() as i64;
}
