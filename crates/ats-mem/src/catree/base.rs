//! Base nodes: the unit of locking, with the statistics that decide about splits and joins.
//!
//! A base node owns a range of keys, in a B+tree of its own. Its first cache line is for threads
//! that pass through it and changes hardly more often than the root of the B+tree; the second
//! belongs to writers.

use super::finger::Finger;
use super::header::{BASE, Header};
use super::leaf::Leaf;
use super::link::{Link, Node, copy_for_any_release};
use super::sizes::LEAF;
use crate::prefetch::prefetch_to_write;
use crate::record::{Release, Weight};
use crate::slab::{self, SlabBox};
use ats_sync::census::Part;
use ats_sync::shim::atomic::AtomicBool;
use ats_sync::{Gate, Guard, Held, Lock};
use std::ptr;
// Atomics that bypass the shim: only a census depends on their order, and it has models of its own.
use ats_sync::count::atomic::Ordering::{Acquire, Relaxed, Release as ReleaseOrdering};
use ats_sync::count::atomic::{AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

/// Statistics above which a base node is split.
///
/// This, [`JOIN_BELOW`] and the two costs of the lock are the constants of Sagonas and Winblad
/// (JPDC 2018), which `erl_db_catree.c` of Erlang/OTP uses as well: about five contended
/// acquisitions split a base node, about a thousand uncontended ones join it.
pub(super) const SPLIT_ABOVE: i32 = 1000;
/// Statistics below which a base node is joined with a neighbour.
pub(super) const JOIN_BELOW: i32 = -1000;
/// Statistics below which a base node that has become empty is joined with a neighbour. Erlang/OTP
/// always joins it; but if writers contend for a few keys, a node just split is empty now and then,
/// and would be joined and split tens of thousands of times a second.
pub(super) const EMPTY_JOIN_BELOW: i32 = -100;
/// Largest number of times that the join threshold is doubled: once for each contention split of a
/// base node since its last join. Otherwise concurrent writers would be brought together every
/// thousand writes, and separated again. Not in the papers. Sixteen thousand is within the limit of
/// the statistics.
const JOIN_DELAY_MOST: u32 = 4;
/// Number of times in a row that a join is put off because another thread writes to the neighbour.
/// Two threads with keys of their own would contend again at once, and be separated again, with
/// some waits each time. Not in the papers.
const PUT_OFF_MOST: u8 = 32;
/// Amount that a batch adds to the statistics of each base node except its first, because fewer
/// base nodes would make it cheaper. The constant of Erlang/OTP for operations on several base
/// nodes.
pub(super) const SPANNING_COST: i32 = -10;
/// Amount that a visit of [`join_idle`](crate::Provided::join_idle) adds to the statistics of a
/// base node to which no writer has come since the previous visit. In Erlang/OTP one reader in 512
/// adds this number to a random base node; here readers write nothing.
pub(super) const IDLE_COST: i32 = -500;

#[repr(C, align(64))]
pub(super) struct Base<R: Release> {
    pub header: Header,
    /// The B+tree: a leaf or an inner node.
    root: Link<R>,
    /// The finger, on a cache line of its own; null until a row of ascending keys fills the second
    /// leaf. Used only by the holder of the lock.
    finger: AtomicPtr<Finger<R>>,
    /// Number of acquisitions at the last visit of `join_idle`.
    visited: AtomicU64,
    /// Nonzero if the finger likely leads to the slot of the next key. On this line, because
    /// writers read it before they have the lock; it changes where rows begin and end.
    expects_row: AtomicU8,
    /// `true` if an inner node may have subtree counts. On this line, because it changes only once.
    counts_subtrees: AtomicBool,
    writers: Writers,
}

/// Data that only writers access. The holder of the lock changes numbers with a load and a store.
#[repr(C, align(64))]
struct Writers {
    lock: Lock,
    /// Number of objects visible to readers.
    objects: AtomicI64,
    /// Bytes of nodes, and of records visible to readers, including this node.
    bytes: AtomicI64,
    contended: AtomicU64,
    uncontended: AtomicU64,
    /// Bytes of nodes alone, which only reports show.
    node_bytes: AtomicI64,
    /// The leaf of the last write, which is null or not dead (CATREE-7), and the spot in it.
    last: AtomicPtr<Header>,
    /// Number of records that open batches have installed. Only the sum over all base nodes counts,
    /// modulo 2^32: a batch subtracts most of its records where it commits.
    pending: AtomicU32,
    last_at: AtomicU8,
    /// Number of times that [`JOIN_BELOW`] is doubled for this node.
    join_delay: AtomicU8,
    /// Number of times that a join was put off.
    put_off: AtomicU8,
    /// The [tag](Guard::thread_tag) of the last writer.
    writer: AtomicU8,
}

/// The spot of a write.
pub(super) struct Spot<'g, R: Release> {
    /// The leaf; `None` if it is no longer known.
    pub leaf: Option<Node<'g, R>>,
    pub at: usize,
    /// `true` if the write put a new key at an end of the leaf.
    pub grew: bool,
    /// `true` if the write put a new key.
    pub is_new: bool,
}

copy_for_any_release!(Spot);

impl<R: Release> Spot<'_, R> {
    pub(super) const UNKNOWN: Self = Spot {
        leaf: None,
        at: 0,
        grew: false,
        is_new: false,
    };

    /// Returns `true` if the spot is in this leaf.
    pub(super) fn is_in(&self, leaf: Leaf<'_, R>) -> bool {
        self.leaf.is_some_and(|last| last == leaf.node())
    }
}

/// Numbers that move from a base node to its replacements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub objects: i64,
    /// Records of open batches, to be added up by [`sum_pending`].
    pub pending: u32,
    pub bytes: i64,
    /// The part of the bytes that nodes take, without records.
    pub node_bytes: i64,
    pub contended: u64,
    pub uncontended: u64,
    /// `true` if inner nodes may have subtree counts.
    pub counts_subtrees: bool,
}

impl<R: Release> Base<R> {
    /// Creates a base node with this B+tree. `counts` does not include the base node itself.
    pub(super) fn new(root: Link<R>, counts: Counts) -> SlabBox<Self> {
        SlabBox::new(Base {
            header: Header::new(BASE),
            root,
            finger: AtomicPtr::new(ptr::null_mut()),
            visited: AtomicU64::new(u64::MAX),
            expects_row: AtomicU8::new(0),
            counts_subtrees: AtomicBool::new(counts.counts_subtrees),
            writers: Writers {
                lock: Lock::new(),
                objects: AtomicI64::new(counts.objects),
                bytes: AtomicI64::new(counts.bytes + Self::bytes() as i64),
                contended: AtomicU64::new(counts.contended),
                uncontended: AtomicU64::new(counts.uncontended),
                node_bytes: AtomicI64::new(counts.node_bytes),
                last: AtomicPtr::new(ptr::null_mut()),
                pending: AtomicU32::new(counts.pending),
                last_at: AtomicU8::new(0),
                join_delay: AtomicU8::new(0),
                put_off: AtomicU8::new(0),
                writer: AtomicU8::new(0),
            },
        })
    }

    /// Returns the root of the B+tree.
    #[inline(always)]
    pub(super) fn root(&self) -> Node<'_, R> {
        // SAFETY: a reference to a base node exists only under a guard, or with exclusive access
        // (CATREE-6), and the node has a root.
        unsafe { self.root.load() }
    }

    /// Returns the link to the root, which is stored to only under the lock.
    #[inline(always)]
    pub(super) fn link(&self) -> &Link<R> {
        &self.root
    }

    /// Returns the bytes of memory of the node itself, without its finger.
    pub(super) fn bytes() -> usize {
        slab::block_size(size_of::<Self>())
    }

    /// Returns the bytes of memory of the node itself, and of its finger if it has one.
    pub(super) fn bytes_with_finger(&self) -> usize {
        if self.has_finger() {
            Self::bytes() + slab::block_size(size_of::<Finger<R>>())
        } else {
            Self::bytes()
        }
    }

    /// Returns `true` if the node has a finger. A guess unless the caller holds the lock.
    #[inline]
    fn has_finger(&self) -> bool {
        !self.finger.load(Relaxed).is_null()
    }

    /// Takes the lock, and updates the statistics.
    #[inline]
    pub(super) fn lock(&self, gate: &Gate) -> Held<'_> {
        self.count_acquisition(gate.enter(&self.writers.lock))
    }

    /// Locks like [`lock`](Self::lock), but a thread that must not wait for long gives up after a
    /// while.
    #[inline]
    pub(super) fn lock_within_limit(&self, gate: &Gate) -> Option<Held<'_>> {
        let taken = gate.enter_within_limit(&self.writers.lock)?;
        Some(self.count_acquisition(taken))
    }

    /// Counts an acquisition of the writers' lock, which waited or did not.
    #[inline]
    fn count_acquisition<'h>(&self, (held, waited): (Held<'h>, bool)) -> Held<'h> {
        let count = if waited {
            &self.writers.contended
        } else {
            &self.writers.uncontended
        };
        add_turn(count);
        held
    }

    pub(super) fn try_lock(&self) -> Option<Held<'_>> {
        self.writers.lock.try_lock()
    }

    /// Counts records that become visible or invisible. The caller holds the lock.
    #[inline]
    pub(super) fn count(&self, more: Weight) {
        add(&self.writers.objects, more.objects);
        add(&self.writers.bytes, more.bytes);
    }

    /// Counts records that an open batch has installed, or subtracts those whose batch has ended.
    /// The caller holds the lock.
    #[inline]
    pub(super) fn count_pending(&self, more: i32) {
        let pending = self.pending().wrapping_add_signed(more);
        self.writers.pending.store(pending, Relaxed);
    }

    /// Returns the [count](Self::count_pending) of records of open batches, which may be outdated
    /// unless the caller holds the lock, or no thread is inside. It is meaningful only when [added
    /// up](sum_pending) over all base nodes.
    pub(super) fn pending(&self) -> u32 {
        self.writers.pending.load(Relaxed)
    }

    /// Adds the growth of nodes to the number of bytes. The caller holds the lock.
    #[inline]
    pub(super) fn account_nodes(&self, bytes: i64) {
        add(&self.writers.node_bytes, bytes);
        add(&self.writers.bytes, bytes);
    }

    /// Returns the numbers, without the bytes of the node itself. They may be outdated unless the
    /// caller holds the lock.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            objects: self.writers.objects.load(Relaxed),
            pending: self.pending(),
            bytes: self.writers.bytes.load(Relaxed) - Self::bytes() as i64,
            node_bytes: self.writers.node_bytes.load(Relaxed),
            contended: self.writers.contended.load(Relaxed),
            uncontended: self.writers.uncontended.load(Relaxed),
            counts_subtrees: self.counts_subtrees(),
        }
    }

    /// Returns the statistics of the lock, which may be outdated unless the caller holds it.
    pub(super) fn statistics(&self) -> i32 {
        self.writers.lock.statistics()
    }

    /// Takes the lock for a thread that counts records. The statistics stay unchanged: more base
    /// nodes would make counting more expensive. Before such a thread changes a number it [counts
    /// its turn](Self::count_turn).
    pub(super) fn lock_to_count(&self, gate: &Gate) -> Held<'_> {
        gate.enter_uncounted(&self.writers.lock)
    }

    /// Counts the turn of a thread whose lock operation has not. The caller holds the lock.
    pub(super) fn count_turn(&self) {
        add_turn(&self.writers.uncontended);
    }

    /// Returns `true` if inner nodes may have subtree counts, which writers have to maintain. The
    /// caller holds the lock.
    #[inline]
    pub(super) fn counts_subtrees(&self) -> bool {
        self.counts_subtrees.load(Relaxed)
    }

    /// Records that inner nodes may have subtree counts from now on. The caller holds the lock.
    pub(super) fn set_counts_subtrees(&self) {
        self.counts_subtrees.store(true, Relaxed);
    }

    /// Returns `true` if no writer took the lock since the last call. The caller holds the lock,
    /// uncounted.
    pub(super) fn was_idle(&self) -> bool {
        let acquired =
            self.writers.contended.load(Relaxed) + self.writers.uncontended.load(Relaxed);
        let before = self.visited.load(Relaxed);
        self.visited.store(acquired, Relaxed);
        before == acquired
    }

    /// Returns `true` if the statistics demand a join. The caller holds the lock.
    #[inline]
    pub(super) fn wants_to_join(&self, statistics: i32) -> bool {
        statistics < JOIN_BELOW && statistics < JOIN_BELOW << self.join_delay()
    }

    /// Returns the number of times that the join threshold is doubled.
    pub(super) fn join_delay(&self) -> u32 {
        u32::from(self.writers.join_delay.load(Relaxed))
    }

    /// Sets the number of times that the join threshold is doubled. The caller holds the lock, or
    /// has made the node.
    pub(super) fn set_join_delay(&self, join_delay: u32) {
        let join_delay = join_delay.min(JOIN_DELAY_MOST) as u8;
        self.writers.join_delay.store(join_delay, Relaxed);
    }

    /// Records the last writer. The caller holds the lock.
    #[inline]
    pub(super) fn set_writer(&self, guard: &Guard) {
        self.writers.writer.store(guard.thread_tag(), Relaxed);
    }

    /// Returns `true` if a join with a neighbour should be put off because its last writer is
    /// another thread than that of this node. The caller holds both locks.
    pub(super) fn puts_off_join_with(&self, other: &Self) -> bool {
        let writers = [self, other].map(|base| base.writers.writer.load(Relaxed));
        let put_off = self.writers.put_off.load(Relaxed);
        let puts_off = writers[0] != writers[1] && put_off < PUT_OFF_MOST;
        self.writers
            .put_off
            .store(if puts_off { put_off + 1 } else { 0 }, Relaxed);
        puts_off
    }

    /// Returns `true` if the finger likely leads to the slot of the next key. A guess unless the
    /// caller holds the lock.
    #[inline]
    pub(super) fn expects_row(&self) -> bool {
        self.expects_row.load(Relaxed) != 0
    }

    /// Sets whether the finger likely leads to the slot of the next key. The caller holds the lock.
    #[inline]
    pub(super) fn expect_row(&self, expects_row: bool) {
        // Stored only on a change: all passing threads have the line in their caches.
        if self.expects_row() != expects_row {
            self.expects_row.store(u8::from(expects_row), Relaxed);
        }
    }

    /// Prefetches the line that a writer will write to when it has reached its leaf.
    #[inline]
    pub(super) fn prefetch_for_writer(&self) {
        prefetch_to_write(&raw const self.writers);
    }

    /// Returns the finger, if there is one, to the holder of the lock.
    #[inline]
    pub(super) fn finger<'h>(&'h self, held: &'h mut Held<'_>) -> Option<&'h mut Finger<R>> {
        assert!(held.holds(&self.writers.lock));
        // SAFETY: the pointer is null or that of a box. The caller holds the lock (CATREE-7), and
        // the borrow of `held` makes the access exclusive.
        unsafe { self.finger.load(Relaxed).as_mut() }
    }

    /// Returns the finger, which is made on first use, to the holder of the lock.
    pub(super) fn finger_or_new<'h>(&'h self, held: &'h mut Held<'_>) -> &'h mut Finger<R> {
        assert!(held.holds(&self.writers.lock));
        if !self.has_finger() {
            let finger = SlabBox::into_raw(SlabBox::new(Finger::NONE));
            self.finger.store(finger, Relaxed);
        }
        self.finger(held).expect("it has just been made")
    }

    /// Lifts the finger off its leaf. Must be called before leaves are replaced.
    pub(super) fn lift_finger(&self, held: &mut Held<'_>) {
        self.expect_row(false);
        if let Some(finger) = self.finger(held) {
            finger.lift();
        }
    }

    /// Frees the finger. The caller holds the lock.
    pub(super) fn forget_finger(&self, held: &mut Held<'_>) {
        assert!(held.holds(&self.writers.lock));
        if self.has_finger() {
            let finger = self.finger.swap(ptr::null_mut(), Relaxed);
            // SAFETY: the finger comes from a box, and only the holder of the lock, which is the
            // caller, uses it (CATREE-7).
            drop(unsafe { SlabBox::from_raw(finger) });
        }
    }

    /// Returns the spot of the last write to the holder of the lock.
    pub(super) fn last<'g>(&self, held: &Held<'_>, _guard: &'g Guard) -> Spot<'g, R> {
        assert!(held.holds(&self.writers.lock));
        let leaf = self.writers.last.load(Relaxed);
        let at = self.writers.last_at.load(Relaxed);
        Spot {
            // SAFETY: the lock is held, so the leaf is not dead (CATREE-7), and it lives as long as
            // the guard (CATREE-6).
            leaf: (!leaf.is_null()).then(|| unsafe { Node::at(leaf) }),
            at: usize::from(at >> 2),
            grew: at & 1 == 1,
            is_new: at & 2 == 2,
        }
    }

    /// Records the spot of a write. The caller holds the lock.
    #[inline]
    pub(super) fn set_last(&self, spot: Spot<'_, R>) {
        let leaf = spot.leaf.map_or(ptr::null_mut(), Node::pointer);
        self.writers.last.store(leaf, Relaxed);
        let at = (spot.at as u8) << 2 | u8::from(spot.is_new) << 1 | u8::from(spot.grew);
        self.writers.last_at.store(at, Relaxed);
    }
}

impl<R: Release> Drop for Base<R> {
    fn drop(&mut self) {
        let finger = *self.finger.get_mut();
        if !finger.is_null() {
            // SAFETY: the finger comes from a box, and no other thread has the node any more
            // (CATREE-6).
            drop(unsafe { SlabBox::from_raw(finger) });
        }
    }
}

impl<R: Release> Part for Base<R> {
    fn lock(&self) -> &Lock {
        &self.writers.lock
    }

    fn turns(&self) -> u64 {
        self.writers.contended.load(Acquire) + self.writers.uncontended.load(Acquire)
    }
}

/// Returns the number of records that open batches have installed, from the counts of all base
/// nodes at one moment.
pub(super) fn sum_pending(pending: impl Iterator<Item = u32>) -> u32 {
    pending.fold(0, u32::wrapping_add)
}

/// Counts a turn. Release: a [census](ats_sync::census) relies on it.
#[inline]
fn add_turn(turns: &AtomicU64) {
    turns.store(turns.load(Relaxed) + 1, ReleaseOrdering);
}

/// Adds to a number that only the caller changes. Release: a [census](ats_sync::census) relies on
/// it.
#[inline]
fn add(number: &AtomicI64, more: i64) {
    if more != 0 {
        number.store(number.load(Relaxed) + more, ReleaseOrdering);
    }
}

// The atomics of the model checker are larger.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Base<crate::record::Plain>>() == 128);

// The spot of the last write is in one byte, beside two flags.
const _: () = assert!(LEAF << 2 <= 256);
