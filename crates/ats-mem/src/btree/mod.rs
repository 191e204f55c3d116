//! The ordered store: a B+tree with fat leaves, whose readers neither lock nor validate.
//!
//! Good for: point reads (one or two cache misses below the inner nodes, which stay in cache), scans
//! (records of a leaf are found side by side), keys with long common prefixes. Bad at: inserts cost
//! a copy of a leaf (about 600 bytes); a lock for each leaf, so two writers of neighbouring keys wait
//! for each other.
//!
//! # How it works
//! A reader walks from the root by `Acquire` loads and finds the record's word in a leaf. The keys of
//! a node never change; a node whose set of keys changes is *replaced*: the writer locks it, builds a
//! copy, locks the parent, exchanges the child pointer, marks the old node dead and retires it. If
//! the parent must change, too (a leaf split), it is replaced in the same manner, upwards to the root.
//! Replacing the record of a key, and removing a short key, change one word of the leaf in place.
//!
//! This is copy-on-write at the size of a node (as in the immutable leaves of the LFCA tree, Winblad,
//! Sagonas and Jonsson, SPAA 2018) with the in-place updates of a classic B+tree where one word
//! suffices. Searching by heads is described in the module `search`.
//!
//! # Invariants
//! - T1. A slot, or a child pointer, is stored only by the holder of its node's lock, and only while
//!   the node is alive.
//! - T2. A node is marked dead by the holder of its lock, after its replacement was published.
//! - T3. Locks are taken upwards: a leaf, then its parent, and so on, the lock of the root pointer
//!   last. Sideways (to merge) they are only tried. So writers cannot deadlock.
//! - T4. The fences of a node (the range of keys led to it) do not change in its life; its
//!   replacements partition or extend its range.
//! - T5. A node that is alive and locked stays reachable from the root by any key in its range.
//!
//! # Why a reader that stands on a dead node is right
//! Each node on its way was current at some moment since the reader began: the root was when it was
//! loaded; a child pointer of a live node was current when loaded, one of a dead node was current when
//! the node died, and by T1 it has not changed since; and the node was found current before it died.
//! So the slot it finally loads held this value at some moment between the begin and the end of the
//! operation, and the operation linearizes there.

mod node;
mod search;
mod structure;
mod walk;

use crate::backend::{Backend, Busy, Change, NoSuchKey};
use crate::batch::{self, Patience, Step, Stepwise};
use crate::record::{self, Record, Release, Writable};
use crate::slab::SlabBox;
use ats_sync::shim::atomic::{AtomicPtr, Ordering};
use ats_sync::{Guard, Lock, ShardedCounter};
use node::{Content, Header, Inner, Leaf, NodePtr};
#[cfg(target_arch = "x86_64")]
use search::Vectors;
use search::{Counting, Portable};
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::ptr;

/// An ordered store of records; see the module's documentation.
pub struct BTree<R: Release> {
    root: AtomicPtr<Header>,
    /// Taken to exchange `root`.
    root_lock: Lock,
    records: ShardedCounter,
    bytes: ShardedCounter,
    /// Nodes not yet freed by `free_some`.
    doomed: Vec<NodePtr>,
    owned: PhantomData<R>,
}

// SAFETY: nodes are shared between threads by design: their mutable words are atomics or behind
// locks (T1), and records may be released on any thread (`Release`).
unsafe impl<R: Release> Send for BTree<R> {}
// SAFETY: as for `Send`.
unsafe impl<R: Release> Sync for BTree<R> {}

/// A leaf is copied without its tombstones when it has more than two for each record, and these: often
/// enough that a leaf whose keys go shrinks and is merged, and seldom enough that a leaf whose keys
/// come and go, half of them absent at any time, is not.
const TOMBSTONES_SPARED: usize = 4;

/// A leaf and the range of keys that is led to it.
struct Place<'g, R: Release> {
    leaf: &'g Leaf<R>,
    low: Option<&'g [u8]>,
    high: Option<&'g [u8]>,
}

impl<R: Release> Default for BTree<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release> BTree<R> {
    /// An empty store.
    pub fn new() -> Self {
        let root = SlabBox::into_raw(Leaf::<R>::empty()).cast();
        let tree = BTree {
            root: AtomicPtr::new(root),
            root_lock: Lock::new(),
            records: ShardedCounter::new(),
            bytes: ShardedCounter::new(),
            doomed: Vec::new(),
            owned: PhantomData,
        };
        tree.bytes.add(Leaf::<R>::bytes() as i64);
        tree
    }

    /// The leaf that `key` is led to.
    #[inline(always)]
    fn leaf_for<'g, C: Counting>(&'g self, key: &[u8], guard: &'g Guard) -> &'g Leaf<R> {
        let mut node = self.root.load(Ordering::Acquire);
        loop {
            match as_inner(node, guard) {
                Err(leaf) => return leaf,
                Ok(inner) => node = inner.descend(inner.child_for::<C>(key)),
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
    fn place_by<'g>(&'g self, guard: &'g Guard, choose: impl Fn(&Inner) -> usize) -> Place<'g, R> {
        let (mut low, mut high) = (None, None);
        let mut node = self.root.load(Ordering::Acquire);
        loop {
            match as_inner(node, guard) {
                Err(leaf) => return Place { leaf, low, high },
                Ok(inner) => {
                    let place = choose(inner);
                    node = inner.descend(place);
                    (low, high) = narrow(inner, place, low, high);
                }
            }
        }
    }

    /// Frees up to about `budget` records and nodes; true when everything has been freed and the
    /// store is empty. So that a large store can be freed in slices; dropping it frees the rest at
    /// once.
    pub fn free_some(&mut self, budget: usize) -> bool {
        if self.doomed.is_empty() {
            let empty = SlabBox::into_raw(Leaf::<R>::empty()).cast();
            let root = std::mem::replace(self.root.get_mut(), empty);
            self.doomed.push(root);
            self.bytes.add(Leaf::<R>::bytes() as i64);
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

    /// Frees a node, with the records of a leaf; remembers the children of an inner node. Returns how
    /// many records there were.
    ///
    /// # Safety
    /// Nobody else can reach the node.
    unsafe fn free_node(&mut self, node: NodePtr) -> usize {
        // SAFETY: the caller's promise; nodes and records come from boxes.
        unsafe {
            if (*node).level > 0 {
                let inner = SlabBox::from_raw(node.cast::<Inner>());
                self.bytes.add(-(inner.bytes() as i64));
                self.doomed.extend(inner.children());
                return 0;
            }
            let leaf = SlabBox::from_raw(node.cast::<Leaf<R>>());
            self.bytes.add(-(Leaf::<R>::bytes() as i64));
            let records = leaf.records();
            for record in &records {
                let record = record::RecordBox::from_raw(*record);
                self.account(-1, -(record.bytes() as i64));
            }
            records.len()
        }
    }

    /// Takes the record at a place out of a leaf whose lock the caller holds; the record itself is
    /// not retired.
    fn take_out(&self, place: &Place<'_, R>, at: usize, key: &[u8], guard: &Guard) {
        let leaf = place.leaf;
        if leaf.bury(at, key) {
            let live = leaf.live();
            let tombstones = leaf.len() - live;
            if live > 0 && tombstones <= 2 * live + TOMBSTONES_SPARED {
                return;
            }
            self.shrink(place, leaf.records(), key, guard);
        } else {
            let Content::Record(removed) = leaf.content(at) else {
                unreachable!("only a record is taken out")
            };
            let mut records = leaf.records();
            records.retain(|record| *record != removed);
            self.shrink(place, records, key, guard);
        }
    }
}

/// Whether the processor has vectors of 256 bits. The answer is kept, so asking costs a load.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn has_vectors() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")
}

/// The fences of a child.
fn narrow<'g>(
    inner: &'g Inner,
    place: usize,
    low: Option<&'g [u8]>,
    high: Option<&'g [u8]>,
) -> (Option<&'g [u8]>, Option<&'g [u8]>) {
    let low = match place {
        0 => low,
        _ => Some(inner.separator(place - 1)),
    };
    let high = match place < inner.len() {
        true => Some(inner.separator(place)),
        false => high,
    };
    (low, high)
}

/// The node as what it is.
#[inline(always)]
fn as_inner<R: Release>(node: NodePtr, _guard: &Guard) -> Result<&Inner, &Leaf<R>> {
    // SAFETY: `node` was read from the tree under the guard, so it lives as long as the guard
    // (nodes are retired only after they were taken out), and its level says what it is.
    unsafe {
        match (*node).level {
            0 => Err(&*node.cast::<Leaf<R>>()),
            _ => Ok(&*node.cast::<Inner>()),
        }
    }
}

impl<R: Release> Stepwise<R> for BTree<R> {
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Step<R>,
    ) -> Result<(), Busy> {
        let mut patience = Patience::new();
        loop {
            let place = self.place_for(key, guard);
            let held = place.leaf.header.lock.lock();
            if place.leaf.header.is_dead() {
                continue;
            }
            let found = place.leaf.search::<Portable>(key);
            let here = found.ok().and_then(|at| place.leaf.record(at, guard));
            let current = match here.map(Record::writable) {
                None => None,
                Some(Writable::Settled(current)) => current,
                Some(Writable::Pending) => {
                    drop(held);
                    patience.wait()?;
                    continue;
                }
            };
            match decide(current) {
                Step::Keep => {}
                Step::Put(record) => {
                    let old = current.map_or(0, Record::bytes);
                    self.account(
                        i64::from(current.is_none()),
                        record.bytes() as i64 - old as i64,
                    );
                    self.put(&place, found, record.into_raw(), guard);
                    if let Some(old) = current {
                        // SAFETY: its word in the leaf has just been overwritten.
                        unsafe { record::retire(ptr::from_ref(old).cast_mut(), guard) };
                    }
                }
                Step::Install(record) => self.put(&place, found, record.into_raw(), guard),
                Step::Remove => {
                    if let (Some(old), Ok(at)) = (current, found) {
                        self.account(-1, -(old.bytes() as i64));
                        self.take_out(&place, at, key, guard);
                        // SAFETY: it has just been taken out of the leaf.
                        unsafe { record::retire(ptr::from_ref(old).cast_mut(), guard) };
                    }
                }
            }
            return Ok(());
        }
    }

    fn revert(&self, installed: &Record<R>, before: *const Record<R>, guard: &Guard) {
        let key = installed.key();
        loop {
            let place = self.place_for(key, guard);
            let _held = place.leaf.header.lock.lock();
            if place.leaf.header.is_dead() {
                continue;
            }
            let at = place
                .leaf
                .search::<Portable>(key)
                .expect("a pending record stays in the store");
            match before.is_null() {
                true => self.take_out(&place, at, key, guard),
                false => place.leaf.put(at, before.cast_mut()),
            }
            return;
        }
    }

    fn account(&self, records: i64, bytes: i64) {
        if records != 0 {
            self.records.add(records);
        }
        self.bytes.add(bytes);
    }
}

impl<R: Release> Backend<R> for BTree<R> {
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

    fn update_many<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        decide: &mut dyn FnMut(usize, Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<bool, Busy> {
        batch::update_many(self, keys, guard, decide)
    }

    fn first<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        let mut first = None;
        self.scan_up(&[], true, guard, &mut |record| {
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
        let mut next = None;
        self.scan_up(key, false, guard, &mut |record| {
            next = Some(record);
            ControlFlow::Break(())
        });
        Ok(next)
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
            None => self.scan_up(&[], true, guard, visit),
            Some(key) => self.scan_up(key, false, guard, visit),
        }
        Ok(())
    }

    fn len(&self) -> usize {
        usize::try_from(self.records.sum()).unwrap_or(0)
    }

    fn bytes(&self) -> usize {
        let counters = self.records.bytes() + self.bytes.bytes();
        size_of::<Self>() + counters + usize::try_from(self.bytes.sum()).unwrap_or(0)
    }

    fn fix(&self) {}

    fn unfix(&self) {}
}

impl<R: Release> Drop for BTree<R> {
    fn drop(&mut self) {
        while !self.free_some(usize::MAX) {}
        // SAFETY: the empty leaf that `free_some` has left, to which nobody else has a way.
        drop(unsafe { SlabBox::from_raw((*self.root.get_mut()).cast::<Leaf<R>>()) });
    }
}
