//! Changes of structure: copying, splitting and merging nodes, and publishing the result upwards.

use super::node::{FANOUT, Header, Inner, LEAF, Leaf, NodePtr, separator_between, skip_between};
use super::search::Portable;
use super::{BTree, Place, as_inner, narrow};
use crate::record::{Record, Release};
use crate::slab::SlabBox;
use ats_sync::shim::atomic::Ordering;
use ats_sync::{Guard, Held};

/// A leaf with at most this many records is merged with a neighbour if both fit together.
const MERGE_BELOW: usize = LEAF / 4;
/// Two leaves are merged only if this many records suffice for both, so that the next inserts do not
/// split them again. An empty leaf always goes.
const MERGED_MOST: usize = LEAF * 3 / 4;
/// A full leaf whose tombstones leave at most this many records is copied instead of split.
const COPIED_MOST: usize = LEAF * 7 / 8;

/// What comes in the place of a node.
enum Replacement {
    One(NodePtr),
    /// A leaf for a leaf: the common case, which leaves the size of the tree as it is. Counting it
    /// down and up again would cost two locked additions.
    Copy(NodePtr),
    /// Two nodes, the second from this separator on.
    Two(NodePtr, Vec<u8>, NodePtr),
}

/// Where a node hangs; held, so that it stays.
enum Parent<'g> {
    Root(Held<'g>),
    Inner(InnerPlace<'g>),
}

struct InnerPlace<'g> {
    inner: &'g Inner,
    place: usize,
    low: Option<&'g [u8]>,
    high: Option<&'g [u8]>,
    _held: Held<'g>,
}

/// A leaf to merge with, held.
struct Partner<'g, R: Release> {
    leaf: NodePtr,
    records: Vec<*mut Record<R>>,
    _held: Held<'g>,
}

impl<R: Release> BTree<R> {
    /// Puts a record where `found` says. The caller holds the lock of the leaf, which is alive, and
    /// retires what was there.
    pub(super) fn put(
        &self,
        place: &Place<'_, R>,
        found: Result<usize, usize>,
        record: *mut Record<R>,
        guard: &Guard,
    ) {
        let leaf = place.leaf;
        let at = match found {
            Ok(at) => return leaf.put(at, record),
            Err(at) => at,
        };
        // SAFETY: the caller owns the record until it is published below.
        let key = unsafe { &*record }.key();
        if let Some(copy) = leaf.with_inserted(at, record) {
            let copy = Replacement::Copy(SlabBox::into_raw(copy).cast());
            return self.replace(key, node_ptr(leaf), copy, guard);
        }
        let mut records = leaf.records();
        // SAFETY: records of a leaf whose lock we hold are alive.
        let at = records.partition_point(|other| unsafe { &**other }.key() < key);
        records.insert(at, record);
        let replacement = if records.len() <= COPIED_MOST {
            self.one_leaf(place.low, place.high, &records)
        } else {
            // A key at the end is likely one of an ascending row, of which more will follow: they get a
            // leaf of their own, and this one stays full. The same for descending rows.
            let middle = match at {
                0 => 1,
                _ if at + 1 == records.len() => at,
                _ => records.len() / 2,
            };
            self.two_leaves(place, &records, middle)
        };
        self.replace(key, node_ptr(leaf), replacement, guard);
    }

    /// Replaces a leaf, whose lock the caller holds, by one with these records, or merges them into
    /// a neighbour if they are few. `key` is any key in the range of the leaf.
    pub(super) fn shrink(
        &self,
        place: &Place<'_, R>,
        records: Vec<*mut Record<R>>,
        key: &[u8],
        guard: &Guard,
    ) {
        if records.len() <= MERGE_BELOW && self.merge(place, &records, key, guard) {
            return;
        }
        let replacement = self.one_leaf(place.low, place.high, &records);
        self.replace(key, node_ptr(place.leaf), replacement, guard);
    }

    /// Tries to move the records of a leaf into one of its neighbours under the same parent.
    fn merge(
        &self,
        place: &Place<'_, R>,
        records: &[*mut Record<R>],
        key: &[u8],
        guard: &Guard,
    ) -> bool {
        let leaf = node_ptr(place.leaf);
        let Parent::Inner(parent) = self.lock_parent(key, leaf, guard) else {
            return false;
        };
        let at = parent.place;
        // The right neighbour first. Where keys are removed in ascending order it is still full, and
        // the left one has been thinned out.
        let right = (at < parent.inner.len()).then_some(at);
        let lefts = right.into_iter().chain(at.checked_sub(1));
        let Some((left, neighbour)) = lefts
            .map(|left| {
                (
                    left,
                    parent.inner.child(if left == at { at + 1 } else { left }),
                )
            })
            .find_map(|(left, other)| Some((left, self.partner(other, records.len(), guard)?)))
        else {
            return false;
        };
        let Partner {
            leaf: other,
            records: others,
            _held,
        } = neighbour;
        let merged = match left == at {
            true => [records, &others].concat(),
            false => [&others, records].concat(),
        };
        let (low, _) = narrow(parent.inner, left, parent.low, parent.high);
        let (_, high) = narrow(parent.inner, left + 1, parent.low, parent.high);
        let Replacement::One(merged) = self.one_leaf(low, high, &merged) else {
            unreachable!("one leaf was asked for")
        };
        let mut separators = parent.inner.separators();
        let mut children = parent.inner.children();
        separators.remove(left);
        children.remove(left + 1);
        children[left] = merged;
        // An inner node with one child is superfluous; the child takes its place.
        let replacement = match separators.is_empty() {
            true => merged,
            false => self.publish_inner(Inner::build(
                parent.inner.header.level,
                parent.inner.keys.skip as usize,
                &separators,
                &children,
            )),
        };
        self.replace(
            key,
            node_ptr(parent.inner),
            Replacement::One(replacement),
            guard,
        );
        self.bury_node(leaf, guard);
        self.bury_node(other, guard);
        true
    }

    /// A neighbour that can take `more` records, or any neighbour to take none.
    fn partner<'g>(&self, node: NodePtr, more: usize, guard: &'g Guard) -> Option<Partner<'g, R>> {
        let leaf = as_inner::<R>(node, guard).err()?;
        // Only tried (T3): whoever holds it may be waiting for the parent.
        let _held = leaf.header.lock.try_lock()?;
        let records = leaf.records();
        let fits = more == 0 || more + records.len() <= MERGED_MOST;
        fits.then_some(Partner {
            leaf: node,
            records,
            _held,
        })
    }

    /// Publishes what comes in the place of `old`, whose lock the caller holds and which is alive;
    /// marks it dead and retires it. `key` is any key in its range.
    fn replace(&self, key: &[u8], old: NodePtr, with: Replacement, guard: &Guard) {
        let is_copy = matches!(with, Replacement::Copy(_));
        match (self.lock_parent(key, old, guard), with) {
            (Parent::Root(_held), Replacement::One(node) | Replacement::Copy(node)) => {
                self.root.store(node, Ordering::Release);
            }
            (Parent::Root(_held), Replacement::Two(left, separator, right)) => {
                // SAFETY: `left` was just made.
                let level = unsafe { (*left).level } + 1;
                let root = Inner::build(level, 0, &[&separator], &[left, right]);
                self.root.store(self.publish_inner(root), Ordering::Release);
            }
            (Parent::Inner(parent), Replacement::One(node) | Replacement::Copy(node)) => {
                parent.inner.set_child(parent.place, node);
            }
            (Parent::Inner(parent), Replacement::Two(left, separator, right)) => {
                let with = self.with_child(&parent, left, &separator, right);
                self.replace(key, node_ptr(parent.inner), with, guard);
            }
        }
        match is_copy {
            true => _ = self.retire_node(old, guard),
            false => self.bury_node(old, guard),
        }
    }

    /// The parent with one child replaced by two; itself as one or, if it was full, as two nodes.
    fn with_child(
        &self,
        parent: &InnerPlace<'_>,
        left: NodePtr,
        separator: &[u8],
        right: NodePtr,
    ) -> Replacement {
        let level = parent.inner.header.level;
        let mut separators = parent.inner.separators();
        let mut children = parent.inner.children();
        separators.insert(parent.place, separator);
        children[parent.place] = left;
        children.insert(parent.place + 1, right);
        if separators.len() <= FANOUT {
            let skip = parent.inner.keys.skip as usize;
            let copy = Inner::build(level, skip, &separators, &children);
            return Replacement::One(self.publish_inner(copy));
        }
        // As for leaves: in an ascending row the left node is left nearly full.
        let middle = match parent.place {
            0 => 1,
            place if place + 1 == separators.len() => FANOUT - 1,
            _ => separators.len() / 2,
        };
        let fence = separators[middle];
        let left_skip = skip_between(parent.low, Some(fence));
        let right_skip = skip_between(Some(fence), parent.high);
        let left = Inner::build(
            level,
            left_skip,
            &separators[..middle],
            &children[..=middle],
        );
        let right = Inner::build(
            level,
            right_skip,
            &separators[middle + 1..],
            &children[middle + 1..],
        );
        let (left, right) = (self.publish_inner(left), self.publish_inner(right));
        Replacement::Two(left, fence.to_vec(), right)
    }

    /// Finds and locks what `child` hangs from. `child` is alive and locked by the caller, so it
    /// stays reachable by a key in its range (T5), and the search ends.
    fn lock_parent<'g>(&'g self, key: &[u8], child: NodePtr, guard: &'g Guard) -> Parent<'g> {
        loop {
            let (mut low, mut high) = (None, None);
            let mut node = self.root.load(Ordering::Acquire);
            if node == child {
                let held = self.root_lock.lock();
                if self.root.load(Ordering::Acquire) == child {
                    return Parent::Root(held);
                }
                continue;
            }
            while let Ok(inner) = as_inner::<R>(node, guard) {
                let place = inner.child_for::<Portable>(key);
                if inner.child(place) != child {
                    (low, high) = narrow(inner, place, low, high);
                    node = inner.child(place);
                    continue;
                }
                let held = inner.header.lock.lock();
                if !inner.header.is_dead() && inner.child(place) == child {
                    return Parent::Inner(InnerPlace {
                        inner,
                        place,
                        low,
                        high,
                        _held: held,
                    });
                }
                break;
            }
        }
    }

    fn one_leaf(
        &self,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        records: &[*mut Record<R>],
    ) -> Replacement {
        let leaf = Leaf::build(skip_between(low, high), records);
        Replacement::One(self.publish_leaf(leaf))
    }

    fn two_leaves(
        &self,
        place: &Place<'_, R>,
        records: &[*mut Record<R>],
        middle: usize,
    ) -> Replacement {
        // SAFETY: records of a leaf whose lock we hold are alive, and so is the one being inserted.
        let key = |at: usize| unsafe { &*records[at] }.key();
        let fence = separator_between(key(middle - 1), key(middle));
        let left = Leaf::build(skip_between(place.low, Some(fence)), &records[..middle]);
        let right = Leaf::build(skip_between(Some(fence), place.high), &records[middle..]);
        let (left, right) = (self.publish_leaf(left), self.publish_leaf(right));
        Replacement::Two(left, fence.to_vec(), right)
    }

    fn publish_leaf(&self, leaf: SlabBox<Leaf<R>>) -> NodePtr {
        self.bytes.add(Leaf::<R>::bytes() as i64);
        SlabBox::into_raw(leaf).cast()
    }

    fn publish_inner(&self, inner: SlabBox<Inner>) -> NodePtr {
        self.bytes.add(inner.bytes() as i64);
        SlabBox::into_raw(inner).cast()
    }

    /// Marks a node dead that was taken out of the tree, retires it, and counts it down.
    fn bury_node(&self, node: NodePtr, guard: &Guard) {
        let bytes = self.retire_node(node, guard);
        self.bytes.add(-(bytes as i64));
    }

    /// Marks a node dead that was taken out of the tree, and retires it. Returns its size.
    fn retire_node(&self, node: NodePtr, guard: &Guard) -> usize {
        unsafe fn free_leaf<R: Release>(raw: *mut u8) {
            // SAFETY: `raw` is a leaf that nobody can reach after the grace period. Its records are
            // in its replacement or were retired themselves.
            drop(unsafe { SlabBox::from_raw(raw.cast::<Leaf<R>>()) });
        }
        unsafe fn free_inner(raw: *mut u8) {
            // SAFETY: as for `free_leaf`.
            drop(unsafe { SlabBox::from_raw(raw.cast::<Inner>()) });
        }
        // SAFETY: the caller holds the node's lock and has unlinked it; it lives at least as long
        // as the guard.
        unsafe {
            (*node).set_dead();
            let (bytes, free) = match as_inner::<R>(node, guard) {
                Err(_) => (Leaf::<R>::bytes(), free_leaf::<R> as unsafe fn(*mut u8)),
                Ok(inner) => (inner.bytes(), free_inner as unsafe fn(*mut u8)),
            };
            guard.retire(node.cast(), bytes, free);
            bytes
        }
    }
}

/// A node as the tree links it. Its mutable parts are atomics and locks.
fn node_ptr<N>(node: &N) -> NodePtr {
    std::ptr::from_ref(node).cast_mut().cast::<Header>()
}
