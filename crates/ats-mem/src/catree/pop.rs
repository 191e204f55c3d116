//! Changes of the first or the last record.
//!
//! A thread that holds the lock of the base node at an end of the tree knows that no other base
//! node has keys beyond, as long as it holds the lock: the range of a base node never changes, and
//! this one has no fence on that side. So if the base node has a record, its first one is the first
//! of the tree, and stays so during the change.
//!
//! If the base node has none, the first record is in a neighbour. But a record of the neighbour may
//! not be the first of the tree as long as this base node can get records. Instead of holding two
//! locks, the thread joins the empty base node with its neighbour and tries again. So a queue that
//! is consumed from its end pays one join for each base node that it empties.
//!
//! A record of an open batch may or may not exist in the next moment. At the end of the tree a
//! thread must wait for it, like any other writer of its key.
//!
//! Uses the root to find the base node, the routes to join it, and all that [`write`](super::write)
//! uses.

use super::base::{Base, SPLIT_ABOVE};
use super::inner::Inner;
use super::kind::Kind;
use super::leaf::Leaf;
use super::locked_leaf::LockedLeaf;
use super::root::Root;
use super::tree::CaTree;
use crate::batch::{HeldKeyWait, KeyStep};
use crate::change::{Busy, Change};
use crate::record::{Old, Record, Release};
use ats_store::End;
use ats_sync::Guard;

/// The leaf of a base node with the record at one end, and the slot of this record.
type Outermost<'g, R> = (Leaf<'g, R>, usize, &'g Record<R>);

impl<R: Release> CaTree<R> {
    /// Implements [`update_end`](crate::Records::update_end).
    pub(super) fn change_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        let mut wait = HeldKeyWait::new();
        loop {
            let (base, inside) = outermost_base(self.root(), end, guard);
            let held = self.lock(base).ok_or(Busy)?;
            if base.header.is_dead() {
                continue;
            }
            let Some((leaf, slot, record)) = outermost(base, end, guard) else {
                if self.root().is_only(base, guard) {
                    decide(None);
                    return Ok(());
                }
                self.routes.join(base, &held, inside, guard);
                let joined = base.header.is_dead();
                drop(held);
                if !joined {
                    wait.wait()?;
                }
                continue;
            };
            if record.is_held() {
                drop(held);
                wait.wait()?;
                continue;
            }
            let step = KeyStep::of(decide(Some(record)));
            let mut locked = LockedLeaf {
                base,
                held,
                leaf,
                link: None,
                found: Some(slot),
            };
            let before = base.last(&locked.held, guard);
            let gone = self.carry_out(
                &mut locked,
                Some(Old::Seen(record)),
                step,
                (record.key(), None),
                guard,
            );
            // A split cannot separate threads that contend for one end.
            if locked.held.statistics() > SPLIT_ABOVE {
                locked.held.reset_statistics();
            }
            self.end_write(locked, before, gone, record.key(), guard);
            return Ok(());
        }
    }
}

/// Returns the base node at an end, and a key of its range.
fn outermost_base<'g, R: Release>(
    root: &'g Root<R>,
    end: End,
    guard: &'g Guard,
) -> (&'g Base<R>, &'g [u8]) {
    let mut inside: &[u8] = &[];
    let mut node = root.node(guard);
    loop {
        match node.kind() {
            Kind::Base(base) => return (base, inside),
            Kind::Inner(inner) => {
                if let (End::Last, Some(last)) = (end, inner.len().checked_sub(1)) {
                    inside = inner.separator(last);
                }
                node = inner.child(outer(inner.len(), end));
            }
            Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
        }
    }
}

/// Returns the index of the outermost child; `last` is the last index.
fn outer(last: usize, end: End) -> usize {
    match end {
        End::First => 0,
        End::Last => last,
    }
}

/// Returns the outermost record of a base node, which the caller holds.
fn outermost<'g, R: Release>(
    base: &'g Base<R>,
    end: End,
    guard: &'g Guard,
) -> Option<Outermost<'g, R>> {
    // Inner nodes whose outermost children have no record, and the number of these children.
    let mut passed: Vec<(&Inner<R>, usize)> = Vec::new();
    let mut node = base.root();
    loop {
        match node.kind() {
            Kind::Inner(inner) => {
                passed.push((inner, 0));
                node = inner.child(outer(inner.len(), end));
                continue;
            }
            // Pops during a query would scan the same removals each time.
            Kind::Leaf(leaf) if leaf.live() == 0 => {}
            Kind::Leaf(leaf) => {
                let order = leaf.in_order();
                let there = |index| {
                    let slot = order.slot(index);
                    Some((leaf, slot, leaf.record(slot, guard)?))
                };
                let found = match end {
                    End::First => (0..order.len()).find_map(there),
                    End::Last => (0..order.len()).rev().find_map(there),
                };
                if found.is_some() {
                    return found;
                }
            }
            Kind::Base(_) => unreachable!("no base node is below another"),
        }
        // The leaf has no record. Such leaves are usually merged, but not while queries may look
        // through the removals in them.
        node = loop {
            let (inner, without) = passed.last_mut()?;
            *without += 1;
            if *without <= inner.len() {
                break inner.child(match end {
                    End::First => *without,
                    End::Last => inner.len() - *without,
                });
            }
            passed.pop();
        };
    }
}
