//! The block of a leaf: the keys of records, ascending, and where the records are.
//!
//! ```text
//! header | heads[N]  keys ascending | slots[N]  records, or tombstones
//! ```
//!
//! The keys a block has never change. What changes in place are its slots, one atomic word each; and it can
//! get a key above all others at its end. Any other change of the set of keys replaces the block by a copy. So
//! a reader needs no validation: whatever mixture of words it sees, each was true at some moment since the
//! reader began.
//!
//! Good for: searches, which compare numbers that lie side by side. Bad at: few keys, for which most of the
//! places are unused; so there are blocks of two [sizes](super::leaf).

use super::counting::Counting;
use super::header::Header;
use super::heads::{Heads, compare_behind_heads, head_at, write_with_inserted};
use super::item::{Item, heads_kept};
use super::leaf::SMALL;
use crate::prefetch::prefetch;
use crate::record::{Record, RecordBox, Release};
use crate::slab::{self, SlabBox};
use ats_sync::Guard;
use ats_sync::shim::atomic::{
    AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release as Rel,
};
use std::ptr;

/// The block of a leaf that has room for `N` keys.
#[repr(C, align(64))]
pub(super) struct Block<R: Release, const N: usize> {
    keys: Heads<N>,
    slots: [Slot<R>; N],
}

/// A word of a block: the record of a key, or a *tombstone* that keeps the place of a removed key so
/// that it can come back without a copy of the block. A tombstone only knows the length of its key,
/// so a key gets one only if its head completes it.
struct Slot<R: Release>(AtomicU64, std::marker::PhantomData<R>);

/// The content of a slot at one moment.
enum Content<'l, R: Release> {
    Record(&'l Record<R>),
    Tombstone { key_len: usize },
}

fn word_of<R: Release>(record: &Record<R>) -> u64 {
    ptr::from_ref(record).expose_provenance() as u64
}

// Records are aligned to 8 bytes, so an odd word is no pointer.
fn tombstone(key_len: usize) -> u64 {
    (key_len as u64) << 1 | 1
}

#[inline(always)]
fn is_tombstone(word: u64) -> bool {
    word & 1 == 1
}

impl<R: Release, const N: usize> Block<R, N> {
    /// A block of these items, ascending, whose fences share `skip` bytes. Keys that are to come will
    /// look like `like`, too, if it is given.
    pub(super) fn build(skip: usize, items: &[Item<'_, R>], like: Option<&[u8]>) -> SlabBox<Self> {
        let key = |place: usize| items[place].key();
        let keys = match heads_kept::<R, N>(skip, items) {
            Some((start, heads)) => Heads::of_heads(
                Header::of_leaf(N == SMALL),
                skip,
                start,
                items[0].key(),
                &heads[..items.len()],
            ),
            None => Heads::new(Header::of_leaf(N == SMALL), skip, items.len(), key, like),
        };
        let slots = std::array::from_fn(|place| {
            Slot::new(items.get(place).map_or(0, |item| word_of(item.record())))
        });
        SlabBox::new(Block { keys, slots })
    }

    /// Bytes of memory a block takes, without its records.
    pub(super) fn bytes() -> usize {
        slab::rounded(size_of::<Self>())
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Number of records (pending ones included). Exact for the holder of the lock.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.len() - self.keys.header.tombstones()
    }

    #[inline(always)]
    fn content(&self, place: usize) -> Content<'_, R> {
        let word = self.slots[place].0.load(Acquire);
        if is_tombstone(word) {
            let key_len = (word >> 1) as usize;
            Content::Tombstone { key_len }
        } else {
            // SAFETY: a reference to a leaf is had under a guard, or alone (C6). A record that is seen in
            // a slot then is retired only after it was taken out (record I2), so it lives as long.
            Content::Record(unsafe { &*ptr::with_exposed_provenance(word as usize) })
        }
    }

    /// The record at a place below `len`, if there is one (it may be pending).
    #[inline(always)]
    pub(super) fn record<'g>(&'g self, place: usize, _guard: &'g Guard) -> Option<&'g Record<R>> {
        match self.content(place) {
            Content::Record(record) => Some(record),
            Content::Tombstone { .. } => None,
        }
    }

    /// Asks for the record at a place, if there is such a place.
    #[inline(always)]
    pub(super) fn prefetch_record(&self, place: usize) {
        if let Some(slot) = self.slots.get(place) {
            // A hint: a tombstone, or an unused slot, does no harm.
            // A short record lies in one line or in two.
            let word = slot.0.load(Relaxed) as usize;
            prefetch::<1, u8>(ptr::without_provenance(word));
            prefetch::<1, u8>(ptr::without_provenance(word + 32));
        }
    }

    /// The first place where `key` can be. Looks at no record.
    #[inline(always)]
    pub(super) fn place_of_head<C: Counting>(&self, key: &[u8]) -> usize {
        self.keys.locate::<C>(key).start
    }

    /// The place of `key`, or the place where it would be inserted.
    #[inline(always)]
    pub(super) fn search<C: Counting>(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys
            .search::<C>(key, |place| match self.content(place) {
                Content::Record(record) => {
                    compare_behind_heads(record.key(), key, self.keys.head_start())
                }
                // The head is equal and completes the key, so only trailing zeros can make a difference.
                Content::Tombstone { key_len } => key_len.cmp(&key.len()),
            })
    }

    /// Puts a record into a slot of a key that the block has. The caller holds the lock.
    #[inline]
    pub(super) fn put(&self, place: usize, record: &Record<R>) {
        let slot = &self.slots[place].0;
        if is_tombstone(slot.load(Relaxed)) {
            self.keys.header.remove_tombstone();
        }
        slot.store(word_of(record), Rel);
    }

    /// Puts a tombstone into the slot of a record if the key allows it. The caller holds the lock.
    pub(super) fn put_tombstone(&self, place: usize, key: &[u8]) -> bool {
        let complete = key.len() <= self.keys.head_start() + 8;
        if complete {
            self.keys.header.add_tombstone();
            self.slots[place].0.store(tombstone(key.len()), Rel);
        }
        complete
    }

    /// Whether `key`, which is below the upper fence, can be put at the end in place. The caller holds the
    /// lock.
    #[inline]
    pub(super) fn can_append(&self, key: &[u8], guard: &Guard) -> bool {
        let len = self.len();
        // Above the last key means in the range, so only then the prefix says something.
        (1..N).contains(&len)
            && self
                .record(len - 1, guard)
                .is_some_and(|last| last.key() < key)
            && self.shares_prefix(key)
    }

    /// Puts a record with a key above all others at the end, if there is room and its key has the
    /// prefix of the others. The caller holds the lock.
    pub(super) fn append(&self, record: &Record<R>) -> bool {
        let (len, key) = (self.len(), record.key());
        // A first key gets in if its head completes it. Another one is better off in a copy, which has a prefix.
        let suits = len > 0 || key.len() <= self.keys.head_start() + 8;
        let fits = suits && len < N && self.shares_prefix(key);
        if fits {
            self.slots[len].0.store(word_of(record), Rel);
            self.keys.push(head_at(key, self.keys.head_start()));
        }
        fits
    }

    /// The records, ascending, without tombstones.
    pub(super) fn items(&self) -> Vec<Item<'_, R>> {
        let mut items = Vec::with_capacity(N + 1);
        items.extend(
            (0..self.len()).filter_map(|place| match self.content(place) {
                Content::Record(record) => {
                    let head = self.keys.head(place);
                    Some(Item::of_leaf(record, head, self.keys.head_start()))
                }
                Content::Tombstone { .. } => None,
            }),
        );
        items
    }

    /// Whether a place has a record (a pending one included).
    pub(super) fn is_live(&self, place: usize) -> bool {
        matches!(self.content(place), Content::Record(_))
    }

    /// A copy with `record` inserted at `place`, if there is room and its key has the prefix of the
    /// others. This is the common case of an insert; it reads no record. The caller holds the lock.
    pub(super) fn with_inserted(&self, place: usize, record: &Record<R>) -> Option<SlabBox<Self>> {
        let (len, key) = (self.len(), record.key());
        if len == 0 || len == N || !self.shares_prefix(key) {
            return None;
        }
        let head = head_at(key, self.keys.head_start());
        let mut copy = SlabBox::<Self>::uninit();
        let to = copy.as_mut_ptr();
        // SAFETY: the block is ours, and both of its fields are written.
        unsafe {
            self.keys
                .write_with_inserted(&raw mut (*to).keys, place, head);
            let slots = (&raw mut (*to).slots).cast();
            let new = Slot::new(word_of(record));
            write_with_inserted(&self.slots, slots, place, new, |slot| {
                Slot::new(slot.0.load(Relaxed))
            });
            Some(copy.assume_init())
        }
    }

    fn shares_prefix(&self, key: &[u8]) -> bool {
        key[self.keys.skip()..].starts_with(self.keys.prefix())
    }

    /// Frees the records. Returns how many there were.
    ///
    /// # Safety
    /// No other code can reach them, and the leaf is not used afterwards.
    pub(super) unsafe fn free_records(&self) -> usize {
        let mut freed = 0;
        for place in (0..self.len()).filter(|place| self.is_live(*place)) {
            let word = self.slots[place].0.load(Relaxed) as usize;
            // SAFETY: the contract: no code can reach the record, which was given away to the store (record I2).
            drop(unsafe { RecordBox::<R>::from_raw(ptr::with_exposed_provenance_mut(word)) });
            freed += 1;
        }
        freed
    }
}

impl<R: Release> Slot<R> {
    fn new(word: u64) -> Self {
        Slot(AtomicU64::new(word), std::marker::PhantomData)
    }
}
