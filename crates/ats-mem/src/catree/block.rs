//! Blocks of leaves: heads of keys, and slots for their records.
//!
//! ```text
//! header | heads[N]  of keys that ascend, and of a few others | slots[N]  records, or tombstones
//! ```
//!
//! The keys of a block never change. Its slots change in place, one atomic word each; and keys can
//! be added at its end: one above all others, or up to [`TAIL`](Block::TAIL) others, in order of
//! arrival. These are its *tail*. When the tail is full, a copy with all keys in order replaces the
//! block. So a reader needs no validation: each word it reads was current at some moment since the
//! reader began. A lookup compares the head of its key with all heads, in any order; a walk, which
//! needs the order, [merges](super::leaf_order) the few keys of the tail.
//!
//! The BP-tree (H. Xu, A. Li, B. Wheatman, M. Marneni, P. Pandey, VLDB 2023) puts new keys into an
//! unsorted part of a leaf, too; there it is a log before the sorted part, and readers exclude
//! writers by locks.
//!
//! Good for: searches, which compare adjacent numbers; inserts, of which one in nine copies. Bad
//! for: few keys, which leave most slots unused; so there are blocks of two [sizes](super::sizes).

use super::bisect::bisect;
use super::header::Header;
use super::heads::{Head, Heads, bits_of, compare_behind_heads, head_at};
use super::item::{Item, reuse_heads};
use super::leaf_order::{LeafOrder, TAIL_MOST};
use super::simd_search::Search;
#[cfg(target_arch = "x86_64")]
use super::simd_search::has_avx2;
use super::sizes::SMALL;
use super::slot::{Slot, Word};
use crate::prefetch::prefetch;
use crate::record::{Record, Release, free_alone};
use crate::short_key::ShortKey;
use crate::slab::{self, SlabBox};
use ats_sync::Guard;
use std::cmp::Ordering;
use std::ptr;

/// The block of a leaf with room for `N` keys.
#[repr(C, align(64))]
pub(super) struct Block<R: Release, const N: usize> {
    keys: Heads<N>,
    slots: [Slot<R>; N],
}

/// The part of a block to which a record was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// The end, above all others.
    Above,
    /// The tail.
    Inside,
}

impl<R: Release, const N: usize> Block<R, N> {
    /// Largest number of keys in the tail. A copy moves a block, so with eight an insert moves a
    /// ninth of one on average; more would slow down walks, which merge them.
    const TAIL: usize = if N / 4 < TAIL_MOST { N / 4 } else { TAIL_MOST };

    /// Builds a block of these ascending items, whose fences share `skip` bytes. If `like` is
    /// given, later keys will resemble it, too.
    pub(super) fn build(skip: usize, items: &[Item<'_, R>], like: Option<&[u8]>) -> SlabBox<Self> {
        let key = |index: usize| items[index].key();
        let keys = match reuse_heads::<R, N>(skip, items) {
            Some((start, heads)) => Heads::of_heads(
                Header::of_leaf(N == SMALL),
                skip,
                start,
                items[0].key(),
                &heads[..items.len()],
            ),
            None => Heads::new(Header::of_leaf(N == SMALL), skip, items.len(), key, like),
        };
        let slots =
            std::array::from_fn(|slot| Slot::new(items.get(slot).map_or(Word::UNUSED, Item::word)));
        for _ in items.iter().filter(|item| item.word().is_gone()) {
            keys.header.add_tombstone();
        }
        SlabBox::new(Block { keys, slots })
    }

    /// Returns the bytes of memory of a block, without its records.
    pub(super) fn bytes() -> usize {
        slab::block_size(size_of::<Self>())
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the number of records, including pending ones, but not removals. Exact for the
    /// holder of the lock.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.len() - self.keys.header.tombstones()
    }

    /// Returns the word of a slot below `len`.
    #[inline(always)]
    pub(super) fn word(&self, slot: usize) -> Word<R> {
        self.slots[slot].load()
    }

    /// Returns the record in a slot below `len`, if there is one (it may be pending).
    #[inline(always)]
    pub(super) fn record<'g>(&'g self, slot: usize, _guard: &'g Guard) -> Option<&'g Record<R>> {
        // SAFETY: the word is from this leaf, which lives as long as `'g` (CATREE-6).
        unsafe { self.word(slot).record() }
    }

    /// Returns the record or removal in a slot below `len`, if there is one.
    pub(super) fn any_record<'g>(
        &'g self,
        slot: usize,
        _guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        // SAFETY: the word is from this leaf, which lives as long as `'g` (CATREE-6).
        unsafe { self.word(slot).any_record() }
    }

    /// Prefetches the record in a slot, if the slot exists.
    #[inline(always)]
    pub(super) fn prefetch_record(&self, slot: usize) {
        if let Some(slot) = self.slots.get(slot) {
            // A hint: a tombstone or an unused slot is harmless. A short record is on one or two
            // cache lines.
            let address = slot.peek().address();
            prefetch::<1, u8>(ptr::without_provenance(address));
            prefetch::<1, u8>(ptr::without_provenance(address + 32));
        }
    }

    /// Prefetches the record that `key` may have according to its head.
    #[inline(always)]
    pub(super) fn prefetch_record_of<C: Search>(&self, key: &[u8]) {
        let candidates = self.keys.candidates::<C>(key, || self.first_key());
        self.prefetch_record(candidates.trailing_zeros() as usize);
    }

    /// Returns the first key of a block whose prefix is read from there.
    #[cold]
    fn first_key(&self) -> &[u8] {
        // SAFETY: the word is from this leaf, which is borrowed as long (CATREE-6).
        let first = unsafe { self.word(0).any_record() };
        first
            .expect("a block of keys with a long prefix has no tombstones")
            .key()
    }

    /// Returns the slot of `key`, if the block has it.
    #[inline(always)]
    pub(super) fn find<C: Search>(&self, key: &[u8]) -> Option<usize> {
        let candidates = self.keys.candidates::<C>(key, || self.first_key());
        if candidates & candidates.wrapping_sub(1) != 0 {
            return self.find_among(candidates, key);
        }
        let slot = candidates.trailing_zeros() as usize;
        (candidates != 0 && self.compare_behind_head(slot, key).is_eq()).then_some(slot)
    }

    /// Finds a key like [`find`](Self::find), for several keys with the same head. Each record read
    /// is likely a cache miss, so ascending ones are searched by bisection.
    #[inline(never)]
    fn find_among(&self, candidates: u64, key: &[u8]) -> Option<usize> {
        let first = candidates.trailing_zeros() as usize;
        let behind_row = first + (candidates >> first).trailing_ones() as usize;
        let sorted = self.keys.sorted_len(behind_row).max(first);
        let compare = |slot| self.compare_behind_head(slot, key);
        if let Ok(slot) = bisect(first..sorted, compare) {
            return Some(slot);
        }
        let mut others = (sorted..N).filter(|slot| candidates >> slot & 1 == 1);
        others.find(|slot| compare(*slot).is_eq())
    }

    /// Compares the key of a slot with `key`, if their heads and all bytes before are equal.
    #[inline(always)]
    fn compare_behind_head(&self, slot: usize, key: &[u8]) -> Ordering {
        let (word, start) = (self.word(slot), self.keys.head_start());
        match word.key_len() {
            // The head completes the key, so only trailing zeros can make a difference.
            Some(len) if len <= start + size_of::<Head>() => len.cmp(&key.len()),
            // SAFETY: the word is from this leaf (CATREE-6).
            _ => match unsafe { word.any_record() } {
                Some(record) => compare_behind_heads(record.key(), key, start),
                None => unreachable!("a head completes the key of a tombstone"),
            },
        }
    }

    /// Returns the key of a slot below `len`, if it is short, can be read from the block alone, and
    /// readers see its record. `like` is a key that leads to the block.
    #[inline(always)]
    pub(super) fn tell(&self, slot: usize, like: &[u8]) -> Option<ShortKey> {
        let word = self.word(slot);
        word.simple()?;
        let len = word.key_len()?;
        let (skip, prefix) = (self.keys.skip(), self.keys.stored_prefix());
        if len > self.keys.head_start() + size_of::<Head>() {
            return None;
        }
        let head = bits_of(self.keys.head(slot));
        ShortKey::in_parts(like, skip, prefix, head, len)
    }

    /// Compares the keys of two slots.
    fn compare_slots(&self, a: usize, b: usize) -> Ordering {
        let heads = self.keys.head(a).cmp(&self.keys.head(b));
        heads.then_with(|| self.compare_slots_behind_heads(a, b))
    }

    #[cold]
    fn compare_slots_behind_heads(&self, a: usize, b: usize) -> Ordering {
        let words = [a, b].map(|slot| self.word(slot));
        // SAFETY: the words are from this leaf (CATREE-6).
        match words.map(|word| unsafe { word.any_record() }) {
            [Some(record), Some(other)] => {
                compare_behind_heads(record.key(), other.key(), self.keys.head_start())
            }
            // The head completes at least one of them.
            _ => {
                let [a, b] = words.map(|word| {
                    // SAFETY: both words are from this leaf, which is borrowed and so outlives this
                    // use of the records (CATREE-6).
                    let record = unsafe { word.any_record() };
                    record.map_or_else(|| word.key_len(), |record| Some(record.key().len()))
                });
                a.cmp(&b)
            }
        }
    }

    /// Returns the slots in the current order of their keys. O(keys of the tail).
    #[inline]
    pub(super) fn in_order(&self) -> LeafOrder {
        let len = self.len();
        let sorted = self.keys.sorted_len(len);
        if sorted == len {
            return LeafOrder::as_they_are(len);
        }
        #[cfg(target_arch = "x86_64")]
        if has_avx2()
            // SAFETY: the check above has found that the processor has these instructions.
            && let Some(order) = unsafe { self.in_order_avx2(len, sorted) }
        {
            return order;
        }
        self.in_order_by_one(len, sorted)
    }

    /// Returns the slot of the lowest key: the first slot, or one of the tail. O(keys of the tail).
    pub(super) fn lowest_slot(&self) -> Option<usize> {
        let len = self.len();
        let tail = self.keys.sorted_len(len)..len;
        let candidates = (0..len.min(1)).chain(tail);
        candidates.min_by(|a, b| self.compare_slots(*a, *b))
    }

    /// Returns the order by heads alone, which are all compared at once; `None` if some are equal,
    /// or were added meanwhile.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn in_order_avx2(&self, len: usize, sorted: usize) -> Option<LeafOrder> {
        let head = |slot: usize| self.keys.head(slot);
        let mut ranks = [0; TAIL_MOST];
        let ranks = &mut ranks[..len - sorted];
        for (rank, slot) in ranks.iter_mut().zip(sorted..) {
            *rank = self.keys.rank_of_head(head(slot));
        }
        // The ranks are wrong if keys were added meanwhile.
        if self.keys.has_grown(len) {
            return None;
        }
        let order = LeafOrder::of_ranks(len, ranks)?;
        // A key of the tail is put before keys with the same head in this order.
        let mut pairs = ranks.iter().zip(sorted..);
        let ties =
            pairs.any(|(rank, slot)| rank + 1 < len && head(order.slot(rank + 1)) == head(slot));
        (!ties).then_some(order)
    }

    fn in_order_by_one(&self, len: usize, sorted: usize) -> LeafOrder {
        let rank = |slot: usize| {
            let to_slot = |other: usize| self.compare_slots(other, slot);
            let in_tail = (sorted..len).filter(|other| to_slot(*other).is_lt());
            let (Ok(before) | Err(before)) = bisect(0..sorted, to_slot);
            before + in_tail.count()
        };
        let ranks: Vec<usize> = (sorted..len).map(rank).collect();
        LeafOrder::of_ranks(len, &ranks).expect("no key is here twice")
    }

    /// Returns the index in this order of `key`, or of the first key above it.
    pub(super) fn index_of(&self, key: &[u8], order: &LeafOrder) -> Result<usize, usize> {
        order.search(|slot| {
            let heads = self.keys.compare_head(slot, key, || self.first_key());
            heads.then_with(|| self.compare_behind_head(slot, key))
        })
    }

    /// Stores a word with a record in the slot of an existing key. The caller holds the lock.
    #[inline]
    pub(super) fn put(&self, slot: usize, word: Word<R>) {
        let slot = &self.slots[slot];
        match (slot.peek().is_gone(), word.is_gone()) {
            (true, false) => self.keys.header.remove_tombstone(),
            (false, true) => self.keys.header.add_tombstone(),
            _ => {}
        }
        slot.store(word);
    }

    /// Replaces the record in a slot by a tombstone, if the key allows it. The caller holds the
    /// lock.
    pub(super) fn put_tombstone(&self, slot: usize, key: &[u8]) -> bool {
        let complete = key.len() <= self.keys.head_start() + size_of::<Head>();
        // Any slot may become the first one of a copy, and that must have its key.
        let fits = complete && !self.keys.reads_first_key();
        if fits {
            self.put(slot, Word::tombstone(key.len()));
        }
        fits
    }

    /// Returns `true` if `key`, which is below the upper fence, can be appended in place. The
    /// caller holds the lock.
    #[inline]
    pub(super) fn can_append(&self, key: &[u8], guard: &Guard) -> bool {
        let len = self.len();
        // The prefix only matters for keys in the range, hence above the last key.
        (1..N).contains(&len)
            && self.keys.sorted_len(len) == len
            && self
                .record(len - 1, guard)
                .is_some_and(|last| last.key() < key)
            && self.shares_prefix(key)
    }

    /// Appends a record with a new key, if there is room, its key has the prefix of the others, and
    /// it is above all of them or there is room in the tail. Returns which of these it was. The
    /// caller holds the lock.
    pub(super) fn add(&self, record: &Record<R>) -> Option<Added> {
        let (len, key) = (self.len(), record.key());
        // A first key is added if its head completes it. Other keys are better off in a copy, which
        // has a prefix.
        let suits = len > 0 || key.len() <= self.keys.head_start() + size_of::<Head>();
        if !suits || len == N || !self.shares_prefix(key) {
            return None;
        }
        let head = head_at(key, self.keys.head_start());
        let sorted = self.keys.sorted_len(len);
        let is_above = sorted == len
            && len.checked_sub(1).is_none_or(|last| {
                let heads = self.keys.head(last).cmp(&head);
                heads
                    .then_with(|| self.compare_behind_head(last, key))
                    .is_lt()
            });
        if !is_above && len - sorted == Self::TAIL {
            return None;
        }
        self.slots[len].store(Word::of(record));
        self.keys.push(head, is_above);
        Some(if is_above {
            Added::Above
        } else {
            Added::Inside
        })
    }

    /// Returns a copy with the record and without tail, if there is room and the key has the prefix
    /// of the others; and the slot of the record. Reads no record unless heads are equal. The
    /// caller holds the lock.
    pub(super) fn with_added(&self, record: &Record<R>) -> Option<(SlabBox<Self>, usize)> {
        let (len, key) = (self.len(), record.key());
        if len == 0 || len == N || !self.shares_prefix(key) {
            return None;
        }
        let order = self.in_order();
        let at = self.index_of(key, &order).unwrap_or_else(|index| index);
        let head = head_at(key, self.keys.head_start());
        let old = |slot: usize| order.slot(if slot < at { slot } else { slot - 1 });
        let copy = self.copy(len + 1, |slot| {
            if slot == at {
                (head, Word::of(record))
            } else {
                self.entry(old(slot))
            }
        });
        Some((copy, at))
    }

    /// Returns a copy without a slot and without tail. Reads no record unless heads are equal. The
    /// caller holds the lock, and another slot has a record.
    pub(super) fn without(&self, slot: usize) -> SlabBox<Self> {
        let (order, len) = (self.in_order(), self.len() - 1);
        let gone = order.index_of(slot);
        let old = |slot: usize| order.slot(if slot < gone { slot } else { slot + 1 });
        let copy = self.copy(len, |slot| self.entry(old(slot)));
        if self.word(slot).is_gone() {
            copy.keys.header.remove_tombstone();
        }
        copy
    }

    /// Returns the head and the word of a slot below `len`. The caller holds the lock.
    #[inline(always)]
    fn entry(&self, slot: usize) -> (Head, Word<R>) {
        (self.keys.head(slot), self.slots[slot].peek())
    }

    /// Returns a block like this one, of these ascending heads and their words, without tail.
    #[inline(always)]
    fn copy(&self, len: usize, entry: impl Fn(usize) -> (Head, Word<R>)) -> SlabBox<Self> {
        let keys = self.keys.like(len, |slot| entry(slot).0);
        let word = |slot| {
            if slot < len {
                entry(slot).1
            } else {
                Word::UNUSED
            }
        };
        let slots = std::array::from_fn(|slot| Slot::new(word(slot)));
        SlabBox::new(Block { keys, slots })
    }

    fn shares_prefix(&self, key: &[u8]) -> bool {
        (self.keys.compare_prefix(key, || self.first_key())).is_eq()
    }

    /// Returns the records, ascending, without tombstones, but with removals.
    pub(super) fn items(&self) -> Vec<Item<'_, R>> {
        let (order, start) = (self.in_order(), self.keys.head_start());
        let mut items = Vec::with_capacity(N + 1);
        items.extend((0..order.len()).filter_map(|index| {
            let slot = order.slot(index);
            // SAFETY: the word is from this leaf, which is borrowed as long (CATREE-6).
            unsafe { Item::of_leaf(self.word(slot), self.keys.head(slot), start) }
        }));
        items
    }

    /// Returns `true` if a slot has a record, which may be pending.
    pub(super) fn is_live(&self, slot: usize) -> bool {
        !self.word(slot).is_gone()
    }

    /// Returns `true` if a slot has a record or a removal.
    pub(super) fn has_any(&self, slot: usize) -> bool {
        !self.word(slot).is_tombstone()
    }

    /// Frees the records, and returns their number.
    ///
    /// # Safety
    /// No other code may reach them, and the leaf must not be used afterwards. The moments of the
    /// tree must not have been dropped.
    pub(super) unsafe fn free_records(&self) -> usize {
        let mut freed = 0;
        for slot in (0..self.len()).filter(|slot| self.has_any(*slot)) {
            let address = self.slots[slot].peek().address();
            // SAFETY: the caller promises that no other code can reach the record, and that the
            // moments have not been dropped. The record was given to the store, so it came from a
            // `RecordBox`, and only this call frees it (RECORD-2).
            unsafe { free_alone::<R>(ptr::with_exposed_provenance_mut(address)) };
            freed += 1;
        }
        freed
    }
}
