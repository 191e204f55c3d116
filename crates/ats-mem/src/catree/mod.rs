//! The ordered store: a contention adapting tree over fat leaves, whose readers neither lock nor
//! validate.
//!
//! ```text
//!   route node              which base node? high fan-out, replaced only when the tree adapts
//!    |      |
//!   base    base            what one lock guards: as much as contention allows
//!    |       |
//!   inner   inner           a B+tree for each base node
//!    |  |     |
//!   leaf leaf leaf          32 keys, by their heads; a word for the record of each
//! ```
//!
//! The idea is that of K. Sagonas and K. Winblad, *A contention adapting approach to concurrent ordered
//! sets* (JPDC 2018; in Erlang/OTP since 22): a lock that many threads contend for is split together
//! with what it guards, and two locks that no threads contend for are joined. So a table that one
//! process uses has one lock, which stays in its cache, and a table that many use has as many as they
//! need, where they need them.
//!
//! # Where this differs from the papers
//! - Their route nodes are a binary tree that is never balanced; ours are a B+tree, three levels of which
//!   lead to 200,000 base nodes, in whatever order those came. A change of it is one store, which one
//!   lock for the whole tree protects. That lock is only tried: a thread that does not get it adapts next
//!   time.
//! - Their base nodes hold binary trees, or leaves of 64 that are copied as a whole. Ours hold B+trees with
//!   leaves that are changed in place where one word suffices. Locks are as fine as contention demands,
//!   nodes as fat as the cache likes. Splitting and joining cut and graft: O(height), no record moves.
//! - They cut in the middle, where half of the conflicts remain if keys are skewed and all if they
//!   ascend. We cut between the keys of the last two writers that met. A cut cannot part writers
//!   that contend for one key, or that append to one end, so there is none.
//! - Their readers check a sequence number or take a lock. Ours do neither; see below.
//! - Several keys are written as one by [`batch`](crate::batch)es that hold keys and not base nodes.
//! - The owner of the tree calls [`join_idle`](crate::Backend::join_idle), so that a tree that is only
//!   read gets fewer base nodes again. Its readers do not call it.
//!
//! Good for: point reads (one or two cache misses below the inner nodes, which stay in the cache), scans,
//! rows of ascending keys, writers in different parts. Bad at: inserts between other keys, which copy a
//! leaf (about 600 bytes); many writers of one key, or of one end.
//!
//! # Invariants
//! - C1. The children of an inner node, the slots of a leaf and the root of a base node are stored to
//!   only by the holder of the base node's lock, while the base node is valid and the node alive.
//! - C2. The word at the root and the children of route nodes are stored to only by the holder of the
//!   lock of adaptation. A base node that hangs from them is replaced only by the holder of its lock,
//!   too.
//! - C3. A node is marked dead before its replacement is published, and not stored to any more.
//! - C4. The fences of a leaf or inner node (the range of keys led to it) do not change in its life.
//!   Replacements partition or extend their range.
//! - C5. A thread waits for the lock of a base node only while it holds no lock. A thread that holds the
//!   lock of a base node only tries the lock of adaptation. A thread that holds both only tries the lock
//!   of a neighbour. So threads cannot wait in a circle.
//! - C6. A node is freed by retiring, once, after its replacement was published. Then no links lead to it but
//!   those of nodes that died no later, and were taken out, too. References to nodes are had under a guard
//!   that was there when the thread read the root, for as long as that; or by code that has the tree alone.
//!   So a node lives as long as a reference to it.
//! - C7. The finger of a valid base node and the spot that was written last lead to leaves that are not dead,
//!   or nowhere, whenever its lock is free. Only the holder of the lock uses them, and not those of a dead one.
//!
//! # Why a reader that stands on a dead node is right
//! Each node on its way was current at some moment since the reader began: the root was when it was
//! loaded; a child pointer of a live node was current when loaded, one of a dead node was current when
//! the node died, and by C3 it has not changed since; and the node was found current before it died.
//! That a leaf moves to another base node when its own is split or joined makes no difference to this.
//! So the slot it finally loads held this value at some moment between the begin and the end of the
//! operation, and the operation linearizes there.
//!
//! # Why a writer changes the right leaf
//! It goes down like a reader and then takes the lock of the base node it passed. If the base node is
//! still valid, and leaf and parent are alive, they are where they were (C1, C3), and their range still
//! is (C4). If the base node is not valid it starts again; if only the leaf is dead it goes down again
//! from the base node.

mod adapt;
mod base;
mod cursor;
mod cut;
mod fences;
mod header;
mod kind;
mod leaves;
mod link;
#[cfg(all(test, loom))]
mod models;
mod node;
mod nodes;
mod order_statistics;
mod path;
mod pop;
mod search;
mod subtree_counts;
mod sums;
mod walk;

use crate::backend::{
    Adaptation, Backend, Busy, Change, Direction, End, KeyRange, Memory, NoSuchKey, Plan,
    ScanPosition, Skipped, SlotAnswer,
};
use crate::batch::{self, HeldKeyWait, KeyStep, Pinning, Stepwise, Trip};
use crate::record::{self, Record, Release};
use crate::slab::SlabBox;
use adapt::Adapting;
use ats_sync::{Guard, Held};
use base::{Base, SPANNING_COST, Spot};
use fences::Fences;
use header::{BASE, NodePtr};
use kind::Kind;
use link::{Link, Node};
use node::{Inner, Leaf};
use nodes::empty_base;
#[cfg(target_arch = "x86_64")]
use search::Vectors;
use search::{Counting, Portable};
use std::ops::ControlFlow;
use std::{mem, ptr};
use subtree_counts::account;

/// An ordered store of records; see the module's documentation.
pub struct CaTree<R: Release> {
    root: Link<R>,
    /// By which cursors know the tree.
    identity: cursor::Identity,
    adapting: Adapting,
    /// Nodes not yet freed by `free_some`.
    doomed: Vec<NodePtr>,
}

// SAFETY: nodes are shared between threads by design: their mutable words are atomics or behind
// locks (C1, C2), and records may be released on any thread (`Release`).
unsafe impl<R: Release> Send for CaTree<R> {}
// SAFETY: as for `Send`.
unsafe impl<R: Release> Sync for CaTree<R> {}

/// A leaf and the range of keys that is led to it.
struct Place<'g, R: Release> {
    leaf: &'g Leaf<R>,
    fences: Fences<'g>,
    /// The node above, unless that is a base node.
    parent: Option<path::PathNode<'g, R>>,
}

/// Where a writer works: a leaf, and the base node around it, held.
struct LockedLeaf<'g, R: Release> {
    base: &'g Base<R>,
    held: Held<'g>,
    leaf: &'g Leaf<R>,
    /// The word that leads to the leaf. Not known where the finger led, to a leaf that can take the key
    /// in place.
    link: Option<&'g Link<R>>,
    /// The place of the key, or where it would be inserted.
    found: Result<usize, usize>,
}

/// A record that a write took out of the store.
enum Gone<'g, R: Release> {
    /// Another one is in its place.
    Replaced(&'g Record<R>),
    /// Its key is gone.
    Removed(&'g Record<R>),
}

impl<R: Release> Default for CaTree<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release> CaTree<R> {
    /// An empty store.
    pub fn new() -> Self {
        CaTree {
            root: Link::owning(empty_base::<R>()),
            identity: cursor::Identity::new(),
            adapting: Adapting::new(),
            doomed: Vec::new(),
        }
    }

    /// The node at the root.
    #[inline(always)]
    fn root<'g>(&'g self, _guard: &'g Guard) -> Node<'g, R> {
        // SAFETY: the thread is pinned (C6), and there is a root at any time.
        unsafe { self.root.load() }
    }

    /// The leaf that `key` is led to.
    #[inline(always)]
    fn leaf_for<'g, C: Counting>(&'g self, key: &[u8], guard: &'g Guard) -> &'g Leaf<R> {
        let mut node = self.root(guard);
        loop {
            node = match node.kind() {
                Kind::Leaf(leaf) => return leaf,
                Kind::Inner(inner) => inner.descend(inner.child_for::<C>(key)),
                Kind::Base(base) => base.root(),
            }
        }
    }

    #[inline(always)]
    fn find<'g, C: Counting>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        let leaf = self.leaf_for::<C>(key, guard);
        let place = leaf.search::<C>(key).ok()?;
        leaf.record(place, guard)?.settled(guard)
    }

    /// `find`, compiled for processors with vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn find_by_vectors<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        self.find::<Vectors>(key, guard)
    }

    /// The leaf that `key` is led to, with its fences.
    fn place_for<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Place<'g, R> {
        #[cfg(target_arch = "x86_64")]
        if has_vectors() {
            // SAFETY: the processor has just said that it has these instructions.
            return unsafe { self.place_by_vectors(key, guard) };
        }
        self.place_by(guard, |inner| inner.child_for::<Portable>(key))
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn place_by_vectors<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Place<'g, R> {
        self.place_by(guard, |inner| inner.child_for::<Vectors>(key))
    }

    /// Walks down by `choose`, keeping the fences.
    #[inline(always)]
    fn place_by<'g>(
        &'g self,
        guard: &'g Guard,
        choose: impl Fn(&Inner<R>) -> usize,
    ) -> Place<'g, R> {
        let mut fences = Fences::NONE;
        let mut parent = None;
        let mut node = self.root(guard);
        loop {
            node = match node.kind() {
                Kind::Leaf(leaf) => {
                    return Place {
                        leaf,
                        fences,
                        parent,
                    };
                }
                Kind::Base(base) => {
                    parent = None;
                    base.root()
                }
                Kind::Inner(inner) => {
                    let place = choose(inner);
                    parent = Some(path::PathNode {
                        inner,
                        place,
                        fences,
                    });
                    fences = fences.of_child(inner, place);
                    inner.descend(place)
                }
            }
        }
    }

    /// Takes the lock of the base node of `key`, and finds its leaf and its place there.
    fn locked_leaf_for<'g>(&'g self, key: &[u8], guard: &'g Guard) -> LockedLeaf<'g, R> {
        let locked = self.try_locked_leaf(key, |base| Some(base.lock()), guard);
        locked.expect("this way of locking waits")
    }

    /// As [`locked_leaf_for`](Self::locked_leaf_for), for a way of locking that may give up.
    #[inline]
    fn try_locked_leaf<'g>(
        &'g self,
        key: &[u8],
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<LockedLeaf<'g, R>, Busy> {
        #[cfg(target_arch = "x86_64")]
        if has_vectors() {
            // SAFETY: the processor has just said that it has these instructions.
            return unsafe { self.locked_leaf_by_vectors(key, take, guard) };
        }
        self.locked_leaf_by::<Portable>(key, take, guard)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn locked_leaf_by_vectors<'g>(
        &'g self,
        key: &[u8],
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<LockedLeaf<'g, R>, Busy> {
        self.locked_leaf_by::<Vectors>(key, take, guard)
    }

    #[inline(always)]
    fn locked_leaf_by<'g, C: Counting>(
        &'g self,
        key: &[u8],
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<LockedLeaf<'g, R>, Busy> {
        loop {
            let mut node = self.root(guard);
            let base = loop {
                match node.kind() {
                    Kind::Inner(inner) => node = inner.child(inner.child_for::<C>(key)),
                    Kind::Base(base) => break base,
                    Kind::Leaf(_) => unreachable!("a base node is above each leaf"),
                }
            };
            if base.expects_row() {
                let mut held = take(base).ok_or(Busy)?;
                if base.header.is_dead() {
                    continue;
                }
                if let Some(leaf) = base.finger(&mut held).leaf_below(key, guard)
                    && leaf.can_append(key, guard)
                {
                    return Ok(LockedLeaf {
                        base,
                        held,
                        leaf,
                        link: None,
                        found: Err(leaf.len()),
                    });
                }
            }
            // Down to the leaf first, so that its misses are not suffered under the lock.
            let (mut leaf, mut link, parent) = descend::<R, C>(base, key);
            let held = take(base).ok_or(Busy)?;
            if base.header.is_dead() {
                continue;
            }
            if leaf.header().is_dead() || parent.is_some_and(|inner| inner.header().is_dead()) {
                (leaf, link, _) = descend::<R, C>(base, key);
            }
            return Ok(LockedLeaf {
                base,
                held,
                leaf,
                link: Some(link),
                found: leaf.search::<C>(key),
            });
        }
    }

    /// Changes the record of `key` as was decided, at its locked leaf, where `current` is. Returns what it took
    /// out of the store, for [`end_write`](Self::end_write).
    #[inline]
    fn carry_out<'g>(
        &self,
        locked: &mut LockedLeaf<'g, R>,
        current: Option<&'g Record<R>>,
        step: KeyStep<R>,
        key: &[u8],
        guard: &'g Guard,
    ) -> Option<Gone<'g, R>> {
        match step {
            KeyStep::Keep => None,
            KeyStep::Put(record) => {
                self.put(locked, current, record, guard);
                current.map(Gone::Replaced)
            }
            // The batch retires what was there, when it has committed.
            KeyStep::Install(record) => {
                self.put(locked, current, record, guard);
                None
            }
            KeyStep::Remove => {
                let (Some(old), Ok(at)) = (current, locked.found) else {
                    return None;
                };
                account(locked.base, key, -1, -(old.bytes() as i64));
                self.take_out(locked, at, key, guard);
                Some(Gone::Removed(old))
            }
        }
    }

    /// Ends a write: adapts if need be, unlocks, and retires what the write took out. Not before that, since
    /// a thread that retires also frees records that others have retired, of whatever size. `before` is
    /// where the write before this one went.
    #[inline]
    fn end_write(
        &self,
        locked: LockedLeaf<'_, R>,
        before: Spot<'_, R>,
        gone: Option<Gone<'_, R>>,
        key: &[u8],
        guard: &Guard,
    ) {
        let removed = matches!(gone, Some(Gone::Removed(_)));
        self.adapt_after(locked, before, removed, key, guard);
        if let Some(Gone::Replaced(old) | Gone::Removed(old)) = gone {
            // SAFETY: it was taken out of its leaf under the lock that was held.
            unsafe { record::retire(ptr::from_ref(old).cast_mut(), guard) };
        }
    }

    /// Frees up to about `budget` records and nodes of those that were there when this was called first;
    /// true when all of them have been freed. So that a large store can be freed in slices; dropping it
    /// frees the rest at once.
    pub fn free_some(&mut self, budget: usize) -> bool {
        if self.doomed.is_empty() {
            let root = mem::replace(&mut self.root, Link::owning(empty_base::<R>()));
            self.adapting.forget_routes();
            // The leaves that cursors remember are freed without a grace period.
            self.identity = cursor::Identity::new();
            self.doomed.push(root.pointer());
        }
        let mut freed = 0;
        while freed < budget {
            let Some(node) = self.doomed.pop() else {
                return true;
            };
            // SAFETY: the tree is borrowed exclusively, so no reference into it is left, and every
            // node has one parent, so this is the only way to it.
            freed += 1 + unsafe { self.free_node(node) };
        }
        self.doomed.is_empty()
    }

    /// Frees a node, with the records of a leaf; remembers the children of others. Returns how many
    /// records there were.
    ///
    /// # Safety
    /// No other thread can reach the node.
    unsafe fn free_node(&mut self, node: NodePtr) -> usize {
        // SAFETY: the caller's promise; nodes and records come from boxes.
        unsafe {
            match (*node).level {
                0 => {
                    let leaf = SlabBox::from_raw(node.cast::<Leaf<R>>());
                    leaf.free_records()
                }
                BASE => {
                    let base = SlabBox::from_raw(node.cast::<Base<R>>());
                    self.doomed.push(base.root().pointer());
                    0
                }
                _ => {
                    let inner = SlabBox::from_raw(node.cast::<Inner<R>>());
                    let children = inner.children().into_iter().map(Node::pointer);
                    self.doomed.extend(children);
                    0
                }
            }
        }
    }
}

/// From a base node to the leaf of `key`: the leaf, the word that leads to it, and the node with this
/// word unless that is the base node.
#[inline(always)]
fn descend<'g, R: Release, C: Counting>(
    base: &'g Base<R>,
    key: &[u8],
) -> (&'g Leaf<R>, &'g Link<R>, Option<&'g Inner<R>>) {
    let (mut link, mut parent) = (base.link(), None);
    let mut node = base.root();
    loop {
        match node.kind() {
            Kind::Leaf(leaf) => return (leaf, link, parent),
            Kind::Base(_) => unreachable!("no base node is below another"),
            Kind::Inner(inner) => {
                let place = inner.child_for::<C>(key);
                (link, parent) = (inner.link(place), Some(inner));
                node = inner.descend(place);
            }
        }
    }
}

/// Whether the processor has vectors of 256 bits. The answer is kept, so asking costs a load.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_vectors() -> bool {
    // Tools that watch memory accesses do not see what the vectors load.
    !cfg!(any(tsan, watched, loom))
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
}

impl<R: Release> Stepwise<R> for CaTree<R> {
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy> {
        let mut patience = HeldKeyWait::new();
        loop {
            let mut locked = self.try_locked_leaf(key, Base::lock_patiently, guard)?;
            let here = locked
                .found
                .ok()
                .and_then(|at| locked.leaf.record(at, guard));
            if here.is_some_and(Record::is_held) {
                drop(locked);
                patience.wait()?;
                continue;
            }
            if trip.comes_to(ptr::from_ref(locked.base).addr()) {
                locked.held.count(SPANNING_COST);
            }
            let before = locked.base.last(&locked.held, guard);
            let gone = self.carry_out(&mut locked, here, decide(here), key, guard);
            self.end_write(locked, before, gone, key, guard);
            return Ok(());
        }
    }

    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard) {
        let key = installed.key();
        let mut locked = self.locked_leaf_for(key, guard);
        let at = locked.found.expect("a pending record stays in the store");
        let bytes = installed.bytes() as i64;
        match other {
            None => {
                account(locked.base, key, -1, -bytes);
                self.take_out(&mut locked, at, key, guard);
            }
            Some(record) => {
                locked.base.account_bytes(record.bytes() as i64 - bytes);
                locked.leaf.put(at, record);
            }
        }
    }

    fn remove_held(&self, hold: &Record<R>, before: Option<&Record<R>>, guard: &Guard) {
        self.exchange(hold, None, guard);
        if let Some(before) = before {
            // SAFETY: it was in the store before the hold, which has just been taken out (B3).
            unsafe { record::retire(ptr::from_ref(before).cast_mut(), guard) };
        }
    }
}

impl<R: Release> Backend<R> for CaTree<R> {
    #[inline]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        #[cfg(target_arch = "x86_64")]
        if has_vectors() {
            // SAFETY: the processor has just said that it has these instructions.
            return unsafe { self.find_by_vectors(key, guard) };
        }
        self.find::<Portable>(key, guard)
    }

    fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        batch::update(self, key, guard, decide)
    }

    fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        batch::update_alone(self, key, guard, decide)
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        self.change_end(end, guard, decide)
    }

    fn update_batch(
        &self,
        keys: &[&[u8]],
        guard: &Guard,
        plan: &mut dyn Plan<R>,
    ) -> Result<bool, Busy> {
        batch::update_batch(self, keys, Pinning::Callers(guard), plan)
    }

    fn update_long_batch(&self, keys: &[&[u8]], plan: &mut dyn Plan<R>) -> Result<bool, Busy> {
        batch::update_batch(self, keys, Pinning::Own(None), plan)
    }

    fn first<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        let mut first = None;
        self.walk_up(&[], true, guard, &mut |record| {
            first = Some(record);
            ControlFlow::Break(())
        });
        first
    }

    fn last<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        self.below(None, guard)
    }

    fn next<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Record<R>>, NoSuchKey> {
        Ok(self.above(key, guard))
    }

    fn prev<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Record<R>>, NoSuchKey> {
        Ok(self.below(Some(key), guard))
    }

    fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) -> Result<(), NoSuchKey> {
        match after {
            None => self.walk_up(&[], true, guard, visit),
            Some(key) => self.walk_up(key, false, guard, visit),
        }
        Ok(())
    }

    /// Parts without records are never large here, so there is no need to pause in them.
    fn resume_scan<'g>(
        &'g self,
        from: ScanPosition<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        _pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        match from {
            ScanPosition::Start | ScanPosition::At(_) => self.walk_up(&[], true, guard, visit),
            ScanPosition::Behind(key) => self.walk_up(key, false, guard, visit),
        }
        None
    }

    fn scan_from<'g>(
        &'g self,
        from: &[u8],
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        self.walk_up(from, true, guard, visit);
    }

    fn scan_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) {
        self.walk_down(below, guard, visit);
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

    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) -> SlotAnswer {
        let go_on = &mut || ControlFlow::Continue(());
        match self.skip_records(KeyRange::default(), Direction::Up, index, guard, go_on) {
            Skipped::At(record) => {
                visit(record);
                SlotAnswer::Here
            }
            Skipped::All(len) if len == index => SlotAnswer::End,
            _ => SlotAnswer::Beyond,
        }
    }

    fn len(&self) -> usize {
        usize::try_from(self.sums().counts.records).unwrap_or(0)
    }

    fn memory(&self) -> Memory {
        let sums = self.sums();
        let nodes = sums.counts.node_bytes + sums.route_bytes;
        let records = sums.counts.bytes - sums.counts.node_bytes;
        Memory {
            records: usize::try_from(records).unwrap_or(0),
            structure: size_of::<Self>() + usize::try_from(nodes).unwrap_or(0),
        }
    }

    fn fix(&self) {}

    fn unfix(&self) {}

    fn adaptation(&self) -> Option<Adaptation> {
        Some(self.sums().adaptation)
    }

    fn join_idle(&self, guard: &Guard) -> bool {
        self.join_idle_base_nodes(guard)
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.adapting.forcing.set(splits, joins);
    }
}

impl<R: Release> Drop for CaTree<R> {
    fn drop(&mut self) {
        // What `free_some` has left, and what was put into the store since.
        self.doomed.push(self.root.pointer());
        while let Some(node) = self.doomed.pop() {
            // SAFETY: as in `free_some`.
            unsafe { self.free_node(node) };
        }
    }
}
