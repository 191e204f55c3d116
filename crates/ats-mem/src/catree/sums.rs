//! Sums over all base nodes: how many records there are, how much memory they take, how the tree has
//! adapted.

use super::base::{Base, Counts};
use super::header::BASE;
use super::kind::Kind;
use super::tree::CaTree;
use crate::backend::Adaptation;
use crate::record::Release;
use ats_sync::pin;

/// Sums as of about one moment.
pub(super) struct Sums {
    pub counts: Counts,
    pub route_bytes: i64,
    pub adaptation: Adaptation,
}

impl<R: Release> CaTree<R> {
    /// Adds up the numbers of all base nodes. O(base nodes). Holds the lock of adaptation, so that no
    /// base node is counted twice, or not at all, because it is split or joined meanwhile; writers go on.
    pub(super) fn sums(&self) -> Sums {
        let guard = pin();
        let _adapting = self.adapting.lock.lock();
        let mut counts = Counts::default();
        let mut adaptation = Adaptation {
            splits: self.adapting.splits(),
            joins: self.adapting.joins(),
            ..Adaptation::default()
        };
        let mut ahead = vec![(self.root(&guard), 0)];
        while let Some((node, depth)) = ahead.pop() {
            match node.kind() {
                Kind::Base(base) => {
                    let more = base.counts();
                    counts.records += more.records;
                    counts.bytes += more.bytes + Base::<R>::bytes() as i64;
                    counts.node_bytes += more.node_bytes + Base::<R>::bytes() as i64;
                    counts.contended += more.contended;
                    counts.uncontended += more.uncontended;
                    adaptation.base_nodes += 1;
                    adaptation.depth = adaptation.depth.max(depth);
                }
                Kind::Inner(route) => {
                    debug_assert!(route.header().level > BASE);
                    adaptation.route_nodes += 1;
                    ahead.extend(route.children().into_iter().map(|child| (child, depth + 1)));
                }
                Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
            }
        }
        adaptation.contended = counts.contended;
        adaptation.uncontended = counts.uncontended;
        Sums {
            counts,
            route_bytes: self.adapting.route_bytes(),
            adaptation,
        }
    }
}
