//! The ordered store: a contention adapting tree over fat leaves, whose readers neither lock nor
//! validate.
//!
//! ```text
//!   route node              which base node? high fan-out, replaced only when the tree adapts
//!    |      |
//!   base    base            the unit of a lock: as large as contention allows
//!    |       |
//!   inner   inner           a B+tree for each base node
//!    |  |     |
//!   leaf leaf leaf          34 keys, by their heads, and for each a word that leads to its record
//! ```
//!
//! The idea is that of K. Sagonas and K. Winblad, *A contention adapting approach to concurrent
//! ordered sets* (JPDC 2018; in Erlang/OTP since 22): a contended lock is split together with the
//! data it guards, and two uncontended locks are joined. So a table that one process uses has one
//! lock, which stays in its cache, and a table that many use has as many locks as they need, in the
//! parts where they need them.
//!
//! # Differences from the papers
//! - Their route nodes are a binary tree that is never balanced; ours are a B+tree, three levels of
//!   which lead to 200,000 base nodes, for any order of their creation. A change of it is one
//!   store, protected by one lock for the whole tree. That lock is only tried: a thread that does
//!   not get it adapts next time.
//! - Their base nodes hold binary trees, or leaves of 64 that are copied as a whole. Ours hold
//!   B+trees with leaves that are changed in place if one word suffices. Locks are as fine as
//!   contention demands, nodes as fat as the cache likes. Base nodes are split and joined by
//!   splitting and grafting their B+trees: O(height), no record moves.
//! - They split in the middle, where half of the conflicts remain if keys are skewed and all if
//!   they ascend. We split between the keys of the last two writers that contended. A split cannot
//!   separate writers that contend for one key, or append to one end, so there is none.
//! - Their readers check a sequence number or take a lock. Ours do neither; see below.
//! - They join all uncontended base nodes. Two threads that write concurrently to base nodes of
//!   their own would be brought together by that, and separated again at once, thousands of writes
//!   later, and so on. We put a join off, up to 32 times in a row, if another thread was the last
//!   to write to the neighbour.
//! - Several keys are written atomically by [`batch`](crate::batch)es that hold keys and not base
//!   nodes.
//! - The owner of the tree calls [`join_idle`](crate::Provided::join_idle) now and then, so that a
//!   tree that is only read gets fewer base nodes again. Readers do not join.
//!
//! Good for: point reads (one or two cache misses below the inner nodes, which stay in the cache),
//! writes that do not read the old record (one), scans, rows of ascending keys, writers in
//! different parts. Bad for: new keys, of which one in nine copies a leaf (about 600 bytes); many
//! writers of one key, or of one end.
//!
//! # Invariants
//! - CATREE-1. Only the holder of the base node's lock stores to the children of an inner node, the
//!   slots of a leaf and the root of a base node, while the base node is valid and the node alive.
//! - CATREE-2. Only the holder of the lock of adaptation stores to the link at the root and to the
//!   children of route nodes. Only a thread that holds a base node's lock, too, replaces the base
//!   node there.
//! - CATREE-3. A node is marked dead before its replacement is published, and does not change from
//!   then on.
//! - CATREE-4. The fences of a leaf or inner node (the range of keys that lead to it) never change.
//!   Replacements partition or extend their range.
//! - CATREE-5. A thread waits for the lock of a base node only while it holds no lock. A thread
//!   that holds the lock of a base node only tries the lock of adaptation. A thread that holds both
//!   only tries the lock of a neighbour. So threads cannot deadlock. A census waits for locks to
//!   become free while it holds the lock of adaptation; no thread waits for the latter while it
//!   holds another.
//! - CATREE-6. A node is retired once, after its replacement was published. Then only links of
//!   nodes that died no later, and were removed, too, lead to it. References to nodes exist under a
//!   guard that was taken before the thread read the root, for as long as the guard; or in code
//!   that has exclusive access to the tree. So a node lives as long as a reference to it.
//! - CATREE-7. While the lock of a valid base node is free, its finger and the spot of its last
//!   write each are empty or lead to a leaf that is not dead. Only the holder of the lock uses
//!   them, and not those of a dead base node.
//! - CATREE-8. A key keeps its slot in a leaf. New keys get the next slot.
//!
//! # Correctness of readers on dead nodes
//! Each node on a reader's path was current at some moment since the reader began: the root was
//! when it was loaded; a child pointer of a live node was current when loaded, one of a dead node
//! was current when the node died, and by CATREE-3 it has not changed since; and the node was found
//! current before it died. It makes no difference that a leaf moves to another base node when its
//! own is split or joined. So the slot that the reader finally loads held this value at some moment
//! between the begin and the end of the operation, and the operation linearizes there.
//!
//! # Correctness of writers
//! A writer descends like a reader, and then takes the lock of the base node it passed. If the base
//! node is still valid, and leaf and parent are alive, their position (CATREE-1, CATREE-3) and
//! their range (CATREE-4) have not changed. If the base node is not valid, the writer starts again;
//! if only the leaf is dead, it descends again from the base node.

mod adapt;
mod base;
mod batch_prefetch;
mod bisect;
mod block;
mod cursor;
mod fences;
mod find;
mod finger;
mod header;
mod heads;
mod inner;
mod item;
mod key_cache;
mod kind;
mod leaf;
mod leaf_edit;
mod leaf_hint;
mod leaf_order;
mod link;
mod locked_leaf;
#[cfg(all(test, loom))]
mod models;
mod nodes;
mod objects_per_record;
mod order_statistics;
mod path;
mod pop;
mod root;
mod routes;
mod simd_search;
mod sizes;
mod slot;
mod split_graft;
mod split_join;
mod subtree_counts;
mod teardown;
mod totals;
mod tree;
mod walk;
mod write;

use crate::change::{Busy, Change};
use crate::figures::{Adaptation, ShapeNode, Totals};
use crate::read_points::{ReadPoint, When};
use crate::record::{Record, RecordBox, Release};
use crate::records::{Beside, Neighbour, NoSuchKey, Records, Skipped, Upkeep};
use crate::short_key::ShortKey;
use crate::walk::Walk;
use ats_store::{Direction, End, KeyRange, WalkFrom, successor};
use ats_sync::Guard;
pub use routes::OnFirstSplit;
use simd_search::Baseline;
#[cfg(target_arch = "x86_64")]
use simd_search::has_avx2;
use std::ops::ControlFlow;
pub use tree::CaTree;

impl<R: Release> Records<R> for CaTree<R> {
    fn is_ordered(&self) -> bool {
        true
    }

    #[inline(always)]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the check above has found that the processor has these instructions.
            return unsafe { self.root().find_avx2(key, guard) };
        }
        self.root().find::<Baseline>(key, guard)
    }

    fn get_at<'g>(&'g self, key: &[u8], when: When, guard: &'g Guard) -> Option<&'g Record<R>> {
        if when.is_now() {
            return self.get(key, guard);
        }
        let (leaf, slot) = self.root().slot_of(key, guard)?;
        leaf.any_record(slot, guard)?.resolve_at(when, guard)
    }

    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<ReadPoint>, Busy> {
        self.begin_read_point(prepare).map(Some)
    }

    #[inline]
    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        self.root().get_cached(key, guard)
    }

    fn put(&self, key: &[u8], record: RecordBox<R>, guard: &Guard) -> Result<bool, Busy> {
        self.put_over(key, record, guard)
    }

    fn remove(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy> {
        self.remove_any(key, guard)
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        self.change_end(end, guard, decide)
    }

    #[inline(always)]
    fn beside<'g>(
        &'g self,
        key: Option<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Beside<'g, R> {
        Ok(match (direction, key) {
            (Direction::Up, Some(key)) => self.root().above(key, guard),
            (Direction::Up, None) => self.root().lowest(guard),
            (Direction::Down, below) => self.root().below(below, guard),
        })
    }

    fn neighbour<'g>(
        &'g self,
        key: &[u8],
        direction: Direction,
        guard: &'g Guard,
        will_do: &dyn Fn(&ShortKey) -> bool,
    ) -> Result<Option<Neighbour<'g, R>>, NoSuchKey> {
        Ok(match direction {
            Direction::Up => self.root().above_by(key, guard, &will_do),
            Direction::Down => self.root().below_by(Some(key), guard, &will_do),
        })
    }

    /// Parts without records are never large here, so there is no need to pause in them.
    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        _pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, NoSuchKey> {
        let (root, when) = (self.root(), walk.when);
        match (walk.direction, walk.from) {
            (Direction::Up, WalkFrom::Start | WalkFrom::Position(_)) => {
                root.walk_up(&[], true, when, guard, visit);
            }
            (Direction::Up, WalkFrom::Key(key)) => root.walk_up(key, true, when, guard, visit),
            (Direction::Up, WalkFrom::Known(key) | WalkFrom::Behind(key)) => {
                root.walk_up(key, false, when, guard, visit);
            }
            (Direction::Down, WalkFrom::Start | WalkFrom::Position(_)) => {
                root.walk_down(None, when, guard, visit);
            }
            (Direction::Down, WalkFrom::Key(key)) => {
                root.walk_down(Some(&successor(key)), when, guard, visit);
            }
            (Direction::Down, WalkFrom::Known(key) | WalkFrom::Behind(key)) => {
                root.walk_down(Some(key), when, guard, visit);
            }
        }
        Ok(None)
    }

    fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, R> {
        self.skip_records(key_range, direction, most, guard, pause)
    }

    fn skip_at_once<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, R>> {
        self.skip_records_at_once(key_range, direction, most, guard)
    }

    fn totals(&self) -> Result<Totals, Busy> {
        self.census()
    }

    fn estimate(&self) -> Totals {
        let estimate = self.estimate_nodes();
        let nodes = estimate.counts.node_bytes + estimate.route_bytes;
        let own = size_of::<Self>() + self.routes.shared_bytes();
        Totals {
            objects: estimate.counts.objects,
            bytes: estimate.counts.bytes - estimate.counts.node_bytes,
            structure: own as i64 + nodes.max(0),
        }
    }

    fn upkeep(&self, work: Upkeep, budget: usize, guard: &Guard) -> bool {
        match work {
            // Walks go on from any key.
            Upkeep::Walks => true,
            Upkeep::Queries => self.read_points.reclaim(self, budget, guard),
            Upkeep::Parts => self.routes.join_idle(guard),
        }
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.routes.force(splits, joins);
    }
}

impl<R: Release> CaTree<R> {
    /// Returns statistics of the tree's adaptation to contention. Approximate while it is changing.
    /// O(base nodes).
    pub fn adaptation(&self) -> Adaptation {
        self.estimate_nodes().adaptation
    }

    /// Returns the route nodes and base nodes in key order; a route node comes before its children.
    /// O(base nodes).
    pub fn shape(&self) -> Vec<ShapeNode> {
        self.nodes_in_order()
    }
}
