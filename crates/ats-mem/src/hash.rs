//! The unordered store: linear hashing whose buckets are cache lines and whose readers take no lock.
//!
//! Good for: point reads (one cache miss for the bucket, one for the record), point writes, any
//! number of records (it grows and shrinks a few buckets at a time, without long stops). Bad at:
//! ranges, for which there is no order; walks, which jump about in memory.
//!
//! # How it works
//! A bucket is a line of seven slots; a slot is one word with 16 bits of the hash and the address of a
//! record. A search compares seven tags in one cache line and then, nearly always, one key. Buckets
//! that overflow continue in further lines. The array of buckets grows by linear hashing (Litwin
//! 1980, Larson 1988): one bucket at a time is split in two, in a fixed order, so that two words say
//! where every record is (module `directory`). There are as many writer locks as the contention on
//! them asks for (module `stripes`). Walks follow an order that growing and shrinking do not change
//! (module `walk`).
//!
//! Cache-line buckets with resizing by small steps are those of DLHT (HPDC 2024); growing in the
//! order of linear hashing is what `ets` does.
//!
//! # Invariants
//! - H1. A slot is stored only by the holder of the stripe of its bucket.
//! - H2. A key has at most one slot with a record that is not marked as deleted, except while the
//!   holder of the lock moves it, when both slots hold the same word.
//! - H3. The record of a key stays in its slot until it is removed, except for moves: to the other
//!   bucket of a split or a join, or within a bucket. Every move publishes the copy, then changes what
//!   readers compare (the number of buckets, the count of moves, or both), then clears the original.
//! - H4. Every store to a slot releases and every load acquires.
//! - H5. What is taken out of a slot, or a line out of a chain, is freed by retiring only.
//! - H6. Locks are taken in this order: resize lock, stripes in ascending order. A writer holds one
//!   stripe and takes no other lock under it.
//!
//! # Why a reader that finds nothing is right
//! A reader that finds a record is right: it was there when the slot was loaded. Let it find
//! nothing, and suppose the key was present all the time. By H3 its record was in one slot until it
//! moved. If it did not move, the reader loaded that slot and found it. If it moved after the reader
//! had loaded the slot where it was, the same. So the reader came to the original after it was
//! cleared, or came to a place before a record was moved there and to the original's place after.
//! In either case it loaded, with acquire, a slot that was cleared after the move was announced, so
//! the check behind the search (`Directory::confirms`) sees the announcement and the reader starts
//! again. If, on the other hand, the key was absent at some moment of the search, then "nothing" is
//! right for that moment. The number of buckets alone does not announce a move and a move back;
//! joins, without which there is no way back, count as moves, too.

mod directory;
mod line;
mod resize;
mod seed;
mod stripes;
#[cfg(test)]
mod tests;
mod walk;

use crate::backend::{Backend, Busy, Change, NoSuchKey, SlotAnswer};
use crate::batch::{self, Patience, Step, Stepwise, Trip};
use crate::record::{self, Record, RecordBox, Release, Writable};
use ats_sync::shim::atomic::{AtomicI64, AtomicUsize, Ordering};
use ats_sync::{Guard, Lock, Padded, pin};
use directory::{Directory, bucket_of};
use line::{Line, Slot, Word};
use resize::Chores;
use seed::Seed;
use std::ops::ControlFlow;
use stripes::{Locked, StripeSet};
use walk::Place;

/// An unordered store of records; see the module's documentation.
pub struct HashTable<R: Release> {
    directory: Padded<Directory<R>>,
    stripes: StripeSet,
    seed: Seed,
    /// Buckets emptied by `free_some`.
    drained: usize,
    rare: Padded<Rare>,
}

/// What is written now and then, by other operations than those that read the other fields. Padded, so
/// that these do not notice.
struct Rare {
    /// How many fixations there are.
    fixed: AtomicUsize,
    /// How many buckets there were when the table became fixed.
    slots: AtomicUsize,
    /// Held by whoever changes the number of buckets or of locks.
    resizing: Lock,
    /// Bytes of lines and segments.
    structure: AtomicI64,
}

/// A bucket whose lock is held, as seen by somebody who is about to change one key.
struct Bucket<'t, 'g, R: Release> {
    line: &'t Line<R>,
    locked: Locked<'g>,
    hash: u64,
    /// The slot of the key's record.
    live: Option<(Slot<'t>, Word)>,
    /// The slot of a record of the key that was deleted while the table was fixed.
    deleted: Option<(Slot<'t>, Word)>,
}

impl<R: Release> HashTable<R> {
    /// An empty table. About two kilobytes.
    pub fn new() -> Self {
        let directory = Directory::new();
        let structure = AtomicI64::new(directory.bytes() as i64);
        Self {
            directory: Padded(directory),
            stripes: StripeSet::new(),
            seed: Seed::random(),
            drained: 0,
            rare: Padded(Rare {
                fixed: AtomicUsize::new(0),
                slots: AtomicUsize::new(0),
                resizing: Lock::new(),
                structure,
            }),
        }
    }

    /// Removes about `count` records (and at least one bucket) for good. Returns whether the table is
    /// empty now. For getting rid of a huge table in slices; dropping it does the rest at once.
    pub fn free_some(&mut self, count: usize) -> bool {
        let mut guard = pin();
        let mut freed = 0;
        while self.drained < self.directory.active() {
            if freed >= count {
                return false;
            }
            freed += self.drain_bucket(self.drained, &guard);
            self.drained += 1;
            // Otherwise all of it would wait for this guard.
            guard.repin();
        }
        // Records may have been added to buckets that had been emptied.
        if self.stripes.totals(&guard) != (0, 0) {
            self.drained = 0;
        }
        self.drained != 0
    }

    /// Empties a bucket. Returns how many records were in it.
    fn drain_bucket(&mut self, bucket: usize, guard: &Guard) -> usize {
        let locked = self.stripes.lock(bucket as u64, guard);
        let line = self.directory.line_mut(bucket);
        let mut freed = 0;
        for slot in line.chain_slots() {
            let word = slot.load();
            if word.is_empty() {
                continue;
            }
            slot.store(Word::EMPTY);
            // SAFETY: just read from a slot, under the guard, and not empty.
            let bytes = unsafe { word.record::<R>(guard) }.bytes();
            locked.add(-i64::from(!word.is_deleted()), -(bytes as i64));
            // SAFETY: just taken out of its only slot, and the exclusive borrow shows that no reference
            // to it is left: those handed out are borrowed from the table, too.
            drop(unsafe { RecordBox::from_raw(word.pointer::<R>()) });
            freed += 1;
        }
        let lines = line.chain().count() - 1;
        // SAFETY: the exclusive borrow shows that nobody else uses the table.
        unsafe { line.free_rest() };
        self.rare
            .structure
            .fetch_sub((lines * size_of::<Line<R>>()) as i64, Ordering::Relaxed);
        freed
    }

    fn add_structure(&self, bytes: i64) {
        if bytes != 0 {
            self.rare.structure.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn is_fixed(&self) -> bool {
        self.rare.fixed.load(Ordering::Acquire) > 0
    }

    /// The first slot content that belongs to `key` and satisfies `wanted`, at some moment since the
    /// call.
    #[inline]
    fn search<'g, T>(
        &'g self,
        key: &[u8],
        hash: u64,
        guard: &'g Guard,
        wanted: impl Fn(Word, &'g Record<R>) -> Option<T>,
    ) -> Option<T> {
        loop {
            let view = self.directory.view();
            let bucket = view.bucket(hash);
            let mut line = self.directory.line(bucket);
            while let Some(here) = line {
                for slot in here.slots() {
                    let word = slot.load();
                    if !word.may_be(hash) {
                        continue;
                    }
                    // SAFETY: just read from a slot, under the guard, and not empty.
                    let record: &'g Record<R> = unsafe { word.record(guard) };
                    if record.has_key(key)
                        && let Some(result) = wanted(word, record)
                    {
                        return Some(result);
                    }
                }
                line = here.next();
            }
            if self.directory.confirms(view, hash, bucket) {
                return None;
            }
        }
    }

    /// Whether a walk may continue from `key`.
    fn is_known(&self, key: &[u8], hash: u64, guard: &Guard) -> bool {
        let fixed = self.is_fixed();
        let found = self.search(key, hash, guard, |word, record| {
            let known = match word.is_deleted() {
                true => fixed,
                false => record.settled(guard).is_some(),
            };
            known.then_some(())
        });
        found.is_some()
    }

    /// The place behind `key`, which must be known.
    fn behind<'k>(&self, key: &'k [u8], guard: &Guard) -> Result<Place<'k>, NoSuchKey> {
        let hash = self.seed.hash(key);
        match self.is_known(key, hash, guard) {
            true => Ok(Place::behind(hash, key)),
            false => Err(NoSuchKey),
        }
    }

    /// Locks the bucket of `key` and finds the key in it.
    fn lock<'t, 'g>(&'t self, key: &[u8], hash: u64, guard: &'g Guard) -> Bucket<'t, 'g, R> {
        let locked = self.stripes.lock(hash, guard);
        // Under the lock this is exact: the number of buckets may change meanwhile, but not in a way
        // that concerns the buckets of this stripe.
        let line = self.active_line(bucket_of(hash, self.directory.active()));
        let mut bucket = Bucket {
            line,
            locked,
            hash,
            live: None,
            deleted: None,
        };
        for slot in line.chain_slots() {
            let word = slot.load();
            if !word.may_be(hash) {
                continue;
            }
            // SAFETY: just read from a slot, under the guard, and not empty.
            if !unsafe { word.record::<R>(guard) }.has_key(key) {
                continue;
            }
            match word.is_deleted() {
                true => bucket.deleted = Some((slot, word)),
                false => bucket.live = Some((slot, word)),
            }
        }
        bucket
    }

    fn apply(&self, bucket: &Bucket<'_, '_, R>, step: Step<R>, guard: &Guard) {
        match step {
            Step::Keep => {}
            Step::Put(record) => self.put(bucket, record, guard),
            Step::Install(record) => self.install(bucket, record, guard),
            Step::Remove => self.remove(bucket, guard),
        }
    }

    fn put(&self, bucket: &Bucket<'_, '_, R>, record: RecordBox<R>, guard: &Guard) {
        let bytes = record.bytes() as i64;
        let word = Word::new(bucket.hash, record.into_raw());
        match bucket.live.or(bucket.deleted) {
            Some((slot, old)) => {
                slot.store(word);
                let old_bytes = self.retire(old, guard);
                let records = i64::from(old.is_deleted());
                bucket.locked.add(records, bytes - old_bytes);
            }
            None => {
                self.add_lines(bucket.line.insert(word) as i64);
                bucket.locked.add(1, bytes);
            }
        }
    }

    /// Puts a record of a batch. What it replaces is retired by the batch, or put back.
    ///
    /// A record marked as deleted keeps its slot, so that it is still known if the batch is undone.
    fn install(&self, bucket: &Bucket<'_, '_, R>, record: RecordBox<R>, guard: &Guard) {
        let bytes = record.bytes() as i64;
        let word = Word::new(bucket.hash, record.into_raw());
        match bucket.live {
            Some((slot, old)) => {
                slot.store(word);
                // SAFETY: just read from a slot, under the guard, and not empty.
                let old_bytes = unsafe { old.record::<R>(guard) }.bytes() as i64;
                bucket.locked.add(0, bytes - old_bytes);
            }
            None => {
                self.add_lines(bucket.line.insert(word) as i64);
                bucket.locked.add(1, bytes);
            }
        }
    }

    fn remove(&self, bucket: &Bucket<'_, '_, R>, guard: &Guard) {
        let Some((slot, word)) = bucket.live else {
            return;
        };
        if self.is_fixed() && bucket.deleted.is_none() {
            slot.store(word.deleted());
            bucket.locked.add(-1, 0);
            bucket.locked.remember_deleted(bucket.hash);
        } else {
            slot.store(Word::EMPTY);
            let bytes = self.retire(word, guard);
            bucket.locked.add(-1, -bytes);
            self.add_lines(-(bucket.line.unlink_empty(guard) as i64));
        }
    }

    /// Retires the record of a word that was just taken out of its slot. Returns its bytes.
    fn retire(&self, word: Word, guard: &Guard) -> i64 {
        // SAFETY: the word was read from a slot under the guard.
        let bytes = unsafe { word.record::<R>(guard) }.bytes() as i64;
        // SAFETY: by H2 no other slot leads to it, and its stripe is locked, so it is not being moved.
        unsafe { record::retire(word.pointer::<R>(), guard) };
        bytes
    }

    /// Removes for good up to `budget` of what was deleted while the table was fixed, unless it is
    /// fixed again. Whether nothing is left to do.
    fn purge(&self, budget: usize, guard: &Guard) -> bool {
        // Keeps the stripes as they are, so that none is passed over.
        let _resizing = self.rare.resizing.lock();
        let mut left = budget;
        for stripe in 0..self.stripes.count(guard) {
            let locked = self.stripes.lock(stripe as u64, guard);
            if self.is_fixed() {
                return true;
            }
            let deleted = locked.take_deleted(left);
            left -= deleted.len();
            for hash in deleted {
                self.purge_bucket(hash, &locked, guard);
            }
            if left == 0 {
                return false;
            }
        }
        true
    }

    fn purge_bucket(&self, hash: u64, locked: &Locked<'_>, guard: &Guard) {
        let line = self.active_line(bucket_of(hash, self.directory.active()));
        for slot in line.chain_slots() {
            let word = slot.load();
            if word.is_deleted() {
                slot.store(Word::EMPTY);
                locked.add(0, -self.retire(word, guard));
            }
        }
        self.add_lines(-(line.unlink_empty(guard) as i64));
    }
}

impl<R: Release> Stepwise<R> for HashTable<R> {
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        _trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Step<R>,
    ) -> Result<(), Busy> {
        let hash = self.seed.hash(key);
        let mut patience = Patience::new();
        loop {
            let bucket = self.lock(key, hash, guard);
            let current = match bucket.live {
                None => None,
                // SAFETY: read from a slot, under the guard, and not empty.
                Some((_, word)) => match unsafe { word.record::<R>(guard) }.writable() {
                    Writable::Settled(current) => current,
                    Writable::Pending => {
                        drop(bucket);
                        patience.wait()?;
                        continue;
                    }
                },
            };
            self.apply(&bucket, decide(current), guard);
            let chores = Chores::of(&bucket.locked, self.directory.active());
            drop(bucket);
            self.do_chores(chores, guard);
            return Ok(());
        }
    }

    fn revert(&self, installed: &Record<R>, before: *const Record<R>, guard: &Guard) {
        let key = installed.key();
        let bucket = self.lock(key, self.seed.hash(key), guard);
        let (slot, word) = bucket.live.expect("an installed record is in its slot");
        debug_assert!(std::ptr::eq(word.pointer(), installed));
        let bytes = installed.bytes() as i64;
        if before.is_null() {
            slot.store(Word::EMPTY);
            bucket.locked.add(-1, -bytes);
            self.add_lines(-(bucket.line.unlink_empty(guard) as i64));
        } else {
            slot.store(Word::new(bucket.hash, before.cast_mut()));
            // SAFETY: the batch was open, so what was there before is not retired.
            let before_bytes = unsafe { &*before }.bytes() as i64;
            bucket.locked.add(0, before_bytes - bytes);
        }
    }
}

impl<R: Release> Backend<R> for HashTable<R> {
    #[inline]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        let hash = self.seed.hash(key);
        let live = |word: Word, record| (!word.is_deleted()).then_some(record);
        self.search(key, hash, guard, live)?.settled(guard)
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
        self.successor(Place::START, guard)
    }

    fn last<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        self.first(guard)
    }

    fn next<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Record<R>>, NoSuchKey> {
        Ok(self.successor(self.behind(key, guard)?, guard))
    }

    fn prev<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Record<R>>, NoSuchKey> {
        self.next(key, guard)
    }

    fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) -> Result<(), NoSuchKey> {
        let place = match after {
            None => Place::START,
            Some(key) => self.behind(key, guard)?,
        };
        self.walk(place, guard, visit);
        Ok(())
    }

    /// As many slots as there are buckets, or were when the table became fixed.
    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) -> SlotAnswer {
        let slots = match self.is_fixed() {
            true => self.rare.slots.load(Ordering::Relaxed),
            false => self.directory.active(),
        };
        if index >= slots {
            return match index == slots {
                true => SlotAnswer::End,
                false => SlotAnswer::Beyond,
            };
        }
        self.walk_slot(index, slots, guard, visit);
        SlotAnswer::Here
    }

    fn len(&self) -> usize {
        let (records, _) = self.stripes.totals(&pin());
        usize::try_from(records).unwrap_or(0)
    }

    fn bytes(&self) -> usize {
        let guard = pin();
        let (_, records) = self.stripes.totals(&guard);
        let structure = self.rare.structure.load(Ordering::Relaxed);
        let bytes = usize::try_from(records + structure).unwrap_or(0);
        size_of::<Self>() + self.stripes.bytes(&guard) + bytes
    }

    fn fix(&self) {
        let guard = pin();
        // Keeps the stripes as they are, so that none is passed over, and lets no second caller go
        // before the first has waited.
        let _resizing = self.rare.resizing.lock();
        if !self.is_fixed() {
            let slots = self.directory.active();
            self.rare.slots.store(slots, Ordering::Relaxed);
        }
        if self.rare.fixed.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        // A removal that found the table not fixed must not take away a key that a walk, which does
        // not wait for it, has reached since. It holds a stripe from before its look at `fixed` until
        // it is done; whoever takes that stripe after us finds the table fixed.
        for stripe in 0..self.stripes.count(&guard) {
            drop(self.stripes.lock(stripe as u64, &guard));
        }
    }

    fn unfix(&self) {
        self.rare.fixed.fetch_sub(1, Ordering::AcqRel);
    }

    fn tidy(&self, budget: usize, guard: &Guard) -> bool {
        self.is_fixed() || self.purge(budget, guard)
    }
}

impl<R: Release> Default for HashTable<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Release> std::fmt::Debug for HashTable<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HashTable")
            .field("len", &self.len())
            .field("buckets", &self.directory.active())
            .finish_non_exhaustive()
    }
}

impl<R: Release> Drop for HashTable<R> {
    fn drop(&mut self) {
        // Twice, for records that were added after `free_some` had begun.
        if !self.free_some(usize::MAX) {
            self.free_some(usize::MAX);
        }
    }
}
