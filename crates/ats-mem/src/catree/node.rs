//! The nodes that hold keys: leaves, and the inner nodes above them, of which also the route is made.
//!
//! ```text
//! Leaf   header | heads[32]  keys ascending        | slots[32]  records, or tombstones
//! Inner  header | heads[64]  separators ascending  | children[64] | separators as bytes
//! ```
//!
//! The keys a node has never change. What changes in place are the slots of a leaf and the children of
//! an inner node, one atomic word each; and a leaf can get a key above all others at its end. Any other
//! change of the set of keys replaces the node by a copy. So a reader needs no validation: whatever
//! mixture of words it sees, each was true at some moment since the reader began.

use super::search::{Counting, Head, Heads, Portable, common_prefix, head_at, prefetch};
use crate::record::{Record, Release};
use crate::slab::{self, SlabBox};
use ats_sync::Guard;
use ats_sync::shim::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release as Rel,
};
use std::cmp::Ordering;
use std::ptr;

/// Most keys of a leaf. Small where interleavings are explored, so that few steps lead to changes of
/// structure.
pub(super) const LEAF: usize = if cfg!(any(loom, shuttle)) { 8 } else { 32 };
/// Most separators of an inner node.
pub(super) const FANOUT: usize = if cfg!(any(loom, shuttle)) { 7 } else { 63 };

/// Cache lines of a leaf.
const LEAF_LINES: usize = size_of::<Leaf<crate::record::Plain>>() / 64;

/// The level of base nodes. Inner nodes of a base node are below it, route nodes above.
pub(super) const BASE: u8 = 128;

/// What the nodes have in common; first in all, so that a pointer to it is a pointer to the node.
#[repr(C)]
pub(super) struct Header {
    /// Height: 0 is a leaf, then inner nodes; [`BASE`] is a base node, and route nodes are above.
    pub level: u8,
    /// Set when the node is about to be replaced. Nothing in it changes any more.
    dead: AtomicBool,
}

impl Header {
    pub(super) fn new(level: u8) -> Self {
        Header {
            level,
            dead: AtomicBool::new(false),
        }
    }

    /// Whether the node was, or is about to be, replaced. Exact for the holder of the base node's lock.
    /// Who sees `false` knows that the node was current at that moment.
    #[inline]
    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Acquire)
    }

    /// To be called before the replacement is published.
    pub(super) fn set_dead(&self) {
        self.dead.store(true, Rel);
    }
}

/// A node, by its header.
pub(super) type NodePtr = *mut Header;

#[repr(C, align(64))]
pub(super) struct Leaf<R: Release> {
    pub header: Header,
    pub keys: Heads<LEAF>,
    slots: [Slot<R>; LEAF],
}

#[repr(C, align(64))]
pub(super) struct Inner {
    pub header: Header,
    pub keys: Heads<{ FANOUT + 1 }>,
    children: [AtomicPtr<Header>; FANOUT + 1],
    /// End of each separator in `bytes`.
    ends: [u32; FANOUT],
    bytes: Box<[u8]>,
}

/// A word of a leaf: the record of a key, or a *tombstone* that keeps the place of a removed key so
/// that it can come back without a copy of the leaf. A tombstone only knows the length of its key,
/// so a key gets one only if its head completes it.
struct Slot<R: Release>(AtomicU64, std::marker::PhantomData<R>);

/// The content of a slot at one moment.
pub(super) enum Content<R: Release> {
    Record(*mut Record<R>),
    Tombstone { key_len: usize },
}

// Records are aligned to 8 bytes, so an odd word is no pointer.
fn tombstone(key_len: usize) -> u64 {
    (key_len as u64) << 1 | 1
}

impl<R: Release> Leaf<R> {
    pub(super) fn empty() -> SlabBox<Self> {
        Self::build(0, &[], None)
    }

    /// A leaf of these records, ascending, whose fences share `skip` bytes. Keys that are to come will
    /// look like `like`, too, if it is given.
    pub(super) fn build(
        skip: usize,
        records: &[*mut Record<R>],
        like: Option<&[u8]>,
    ) -> SlabBox<Self> {
        // SAFETY: the caller holds the lock of the base node these records come from, or has not
        // published them yet, so they live.
        let key = |place: usize| unsafe { &*records[place] }.key();
        let words = std::array::from_fn(|place| {
            Slot::new(
                records
                    .get(place)
                    .map_or(0, |record| record.expose_provenance() as u64),
            )
        });
        SlabBox::new(Leaf {
            header: Header::new(0),
            keys: Heads::new(skip, records.len(), key, like),
            slots: words,
        })
    }

    /// Bytes of memory a leaf takes, without its records.
    pub(super) fn bytes() -> usize {
        slab::rounded(size_of::<Self>())
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    pub(super) fn content(&self, place: usize) -> Content<R> {
        let word = self.slots[place].0.load(Acquire);
        if word & 1 == 1 {
            let key_len = (word >> 1) as usize;
            Content::Tombstone { key_len }
        } else {
            Content::Record(ptr::with_exposed_provenance_mut(word as usize))
        }
    }

    /// The record at a place below `len`, if there is one (it may be pending).
    #[inline(always)]
    pub(super) fn record<'g>(&'g self, place: usize, _guard: &'g Guard) -> Option<&'g Record<R>> {
        match self.content(place) {
            // SAFETY: a record in a slot is retired only after it was taken out (record I2), so one
            // that is seen there under a guard lives as long as the guard.
            Content::Record(record) => Some(unsafe { &*record }),
            Content::Tombstone { .. } => None,
        }
    }

    /// Asks for the record at a place, if there is such a place.
    #[inline(always)]
    pub(super) fn prefetch_record(&self, place: usize) {
        if let Some(slot) = self.slots.get(place) {
            // A hint: a tombstone, or an unused slot, does no harm.
            let word = slot.0.load(Relaxed) as usize;
            prefetch::<1, u8>(ptr::without_provenance(word));
        }
    }

    /// The place of `key`, or the place where it would be inserted.
    #[inline(always)]
    pub(super) fn search<C: Counting>(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys
            .search::<C>(key, |place| match self.content(place) {
                // SAFETY: as in `record`; whoever searches holds a guard.
                Content::Record(record) => unsafe { &*record }.key().cmp(key),
                // The head is equal and completes the key, so only trailing zeros can make a difference.
                Content::Tombstone { key_len } => key_len.cmp(&key.len()),
            })
    }

    /// The place before which all keys are below `key`.
    pub(super) fn search_bound(&self, key: &[u8]) -> usize {
        self.search::<Portable>(key).unwrap_or_else(|place| place)
    }

    /// Puts a record into a slot. The caller holds the lock.
    pub(super) fn put(&self, place: usize, record: *mut Record<R>) {
        self.slots[place]
            .0
            .store(record.expose_provenance() as u64, Rel);
    }

    /// Puts a tombstone into a slot if the key allows it. The caller holds the lock.
    pub(super) fn bury(&self, place: usize, key: &[u8]) -> bool {
        let complete = key.len() <= self.keys.head_start() + 8;
        if complete {
            self.slots[place].0.store(tombstone(key.len()), Rel);
        }
        complete
    }

    /// Puts a record with a key above all others at the end, if there is room and its key has the
    /// prefix of the others. The caller holds the lock.
    pub(super) fn append(&self, record: *mut Record<R>) -> bool {
        let len = self.len();
        // SAFETY: the record is not published yet; the caller owns it.
        let key = unsafe { &*record }.key();
        let fits = len > 0 && len < LEAF && self.shares_prefix(key);
        if fits {
            self.put(len, record);
            self.keys.push(head_at(key, self.keys.head_start()));
        }
        fits
    }

    /// The records, ascending, without tombstones.
    pub(super) fn records(&self) -> Vec<*mut Record<R>> {
        (0..self.len())
            .filter_map(|place| match self.content(place) {
                Content::Record(record) => Some(record),
                Content::Tombstone { .. } => None,
            })
            .collect()
    }

    /// Number of records (pending ones included).
    pub(super) fn live(&self) -> usize {
        (0..self.len())
            .filter(|place| matches!(self.content(*place), Content::Record(_)))
            .count()
    }

    /// A copy with `record` inserted at `place`, if there is room and its key has the prefix of the
    /// others. This is the common case of an insert; it reads no record.
    pub(super) fn with_inserted(
        &self,
        place: usize,
        record: *mut Record<R>,
    ) -> Option<SlabBox<Self>> {
        let len = self.len();
        // SAFETY: the record is not published yet; the caller owns it.
        let key = unsafe { &*record }.key();
        if len == 0 || len == LEAF || !self.shares_prefix(key) {
            return None;
        }
        let word = |from: usize| Slot::new(self.slots[from].0.load(Relaxed));
        let shifted = |to: usize| if to > place { to - 1 } else { to };
        let slots = std::array::from_fn(|to| match to.cmp(&place) {
            Ordering::Equal => Slot::new(record.expose_provenance() as u64),
            _ => word(shifted(to)),
        });
        let head = head_at(key, self.keys.head_start());
        Some(SlabBox::new(Leaf {
            header: Header::new(0),
            keys: self.keys.with_inserted(place, head),
            slots,
        }))
    }

    fn shares_prefix(&self, key: &[u8]) -> bool {
        key[self.keys.skip()..].starts_with(self.keys.prefix())
    }
}

impl<R: Release> Slot<R> {
    fn new(word: u64) -> Self {
        Slot(AtomicU64::new(word), std::marker::PhantomData)
    }
}

impl Inner {
    /// An inner node, or a route node; `separators[i]` is the least key that may be under
    /// `children[i + 1]`.
    pub(super) fn build(
        level: u8,
        skip: usize,
        separators: &[&[u8]],
        children: &[NodePtr],
    ) -> SlabBox<Self> {
        assert_eq!(separators.len() + 1, children.len());
        let mut ends = [0; FANOUT];
        let mut end = 0;
        for (place, separator) in separators.iter().enumerate() {
            end += separator.len();
            ends[place] = u32::try_from(end).expect("separators of a node are below 4 GiB");
        }
        SlabBox::new(Inner {
            header: Header::new(level),
            keys: Heads::new(skip, separators.len(), |place| separators[place], None),
            children: std::array::from_fn(|place| {
                AtomicPtr::new(children.get(place).copied().unwrap_or(ptr::null_mut()))
            }),
            ends,
            bytes: separators.concat().into_boxed_slice(),
        })
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    pub(super) fn separator(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[place] as usize]
    }

    pub(super) fn separators(&self) -> Vec<&[u8]> {
        (0..self.len()).map(|place| self.separator(place)).collect()
    }

    pub(super) fn children(&self) -> Vec<NodePtr> {
        (0..=self.len()).map(|place| self.child(place)).collect()
    }

    #[inline(always)]
    pub(super) fn child(&self, place: usize) -> NodePtr {
        self.children[place].load(Acquire)
    }

    /// The child at a place, which the caller goes to next. Where it is a leaf, all of its lines are
    /// asked for at once: none of them is likely in the cache.
    #[inline(always)]
    pub(super) fn descend(&self, place: usize) -> NodePtr {
        let child = self.child(place);
        if self.header.level == 1 {
            prefetch::<LEAF_LINES, _>(child);
        }
        child
    }

    /// The word that leads to a child. Stored to only under the lock.
    pub(super) fn link(&self, place: usize) -> &AtomicPtr<Header> {
        &self.children[place]
    }

    /// The child under which `key` is.
    #[inline(always)]
    pub(super) fn child_for<C: Counting>(&self, key: &[u8]) -> usize {
        match self.search::<C>(key) {
            Ok(equal) => equal + 1,
            Err(place) => place,
        }
    }

    /// The child under which the keys just below `key` are.
    pub(super) fn child_below(&self, key: &[u8]) -> usize {
        self.search::<Portable>(key).unwrap_or_else(|place| place)
    }

    #[inline(always)]
    fn search<C: Counting>(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys
            .search::<C>(key, |place| self.separator(place).cmp(key))
    }

    pub(super) fn bytes(&self) -> usize {
        slab::rounded(size_of::<Self>()) + self.bytes.len()
    }
}

/// Number of bytes that every key between two fences begins with.
pub(super) fn skip_between(low: Option<&[u8]>, high: Option<&[u8]>) -> usize {
    match (low, high) {
        (Some(low), Some(high)) => common_prefix(low, high),
        _ => 0,
    }
}

/// The shortest key above `left` and not above `right`.
pub(super) fn separator_between<'k>(left: &[u8], right: &'k [u8]) -> &'k [u8] {
    &right[..common_prefix(left, right) + 1]
}

/// A node as it is linked. Its mutable parts are atomics.
pub(super) fn node_ptr<N>(node: &N) -> NodePtr {
    ptr::from_ref(node).cast_mut().cast::<Header>()
}

/// The level of a node.
pub(super) fn level(node: NodePtr, _guard: &Guard) -> u8 {
    // SAFETY: nodes are read from the tree, or were just made, by someone who holds a guard.
    unsafe { (*node).level }
}

const _: () = assert!(size_of::<Head>() == 8);
