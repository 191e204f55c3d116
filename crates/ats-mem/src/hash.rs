//! The unordered store: linear hashing whose buckets are cache lines and whose readers take no lock.
//!
//! Good for: point reads (one cache miss for the bucket, one for the record; often none for a key that
//! is not there), point writes, any
//! number of records (it grows and shrinks a few buckets at a time, without long stops). Bad at:
//! ranges, for which there is no order; walks, which jump about in memory.
//!
//! # How it works
//! A bucket is a line of seven slots; a slot is one word with 16 bits of the hash and the address of a
//! record (module `line`). Apart from the lines, densely, lies a word with seven bits of the hash for each
//! slot (module `fingerprints`): a search looks there first, nearly always needs one slot of the line or none,
//! and then compares one key. Buckets that overflow continue in further lines (module `bucket`). The
//! array of buckets grows by linear hashing (Litwin
//! 1980, Larson 1988): one bucket at a time is split in two, in a fixed order, so that two words say
//! where every record is (module `directory`). There are as many writer locks as the contention on
//! them asks for (module `stripes`). Walks follow an order that growing and shrinking do not change
//! (module `walk`).
//!
//! Cache-line buckets with resizing by small steps are those of DLHT (HPDC 2024); growing in the
//! order of linear hashing is what `ets` does; fingerprints apart from the entries are those of "Swiss
//! tables" (Abseil, 2017).
//!
//! # Invariants
//! - H1. A slot is stored only by the holder of the stripe of its bucket.
//! - H2. A key has at most one slot with a record that is not marked as deleted, except while the
//!   holder of the lock moves it, when both slots hold the same word.
//! - H3. The record of a key stays in its slot until it is removed, except for moves: to the other
//!   bucket of a split or a join, or within a bucket. Every move publishes the copy, then changes what
//!   readers compare (the number of buckets, the count of moves, or both), then clears the original.
//! - H4. Every store to a slot releases and every load acquires.
//! - H5. What is taken out of a slot, a line out of a chain, or a segment out of the directory, is freed by
//!   retiring only. References to buckets and records are had under a guard that was there when the thread
//!   read the directory, or by code that has the table alone. So what they lead to lives as long as they do.
//! - H6. Locks are taken in this order: resize lock, stripes in ascending order. A writer holds one
//!   stripe and takes no other lock under it.
//! - H7. The fingerprint of a slot is stored before the slot is filled and cleared after it was emptied, and
//!   so is the bit for records behind the first line. Lines are linked and unlinked between the two.
//!
//! # Why a reader that finds nothing is right
//! A reader that finds a record is right: it was there when the slot was loaded. Let it find
//! nothing, and suppose the key was present all the time. (If it was absent at some moment of the search,
//! then "nothing" is right for that moment.) By H3 its record was in one slot until it
//! moved. If it did not move, the reader loaded that slot and found it. If it moved after the reader
//! had loaded the slot where it was, the same. So the reader has loaded, with acquire, a slot that a move had
//! cleared, or by H7 fingerprints from which a move had cleared that of the slot, or it was before that in
//! the place the record was moved to, which a move then announced.
//!
//! Now the reader confirms. Before its search it has loaded the count of moves, then the number of
//! buckets; behind it, it loads the number, then the count (`Directory::confirms`). If the count differs, or
//! the number leads to another bucket, it starts again. Let that not be so, and let M be the last move of which
//! it missed the record, having seen it cleared.
//! - M was within a bucket. It was counted before it cleared, so the count behind the search includes it,
//!   and so does the equal one before the search: the copy was published before the search began.
//! - M was a join. It was counted a second time after the number had changed and before it cleared. As
//!   before, this count was seen before the search; so the number was that of M or a later one, and the
//!   bucket searched was that of the copy.
//! - M was a split. It changed the number before it cleared, so the number behind the search is that of M
//!   or a later one. If the number before the search was so, too, the reader searched the bucket of the copy. If
//!   it was older, it led to the bucket the record came from, and so does the later one; then the later one
//!   is not older than that of a join after M. This join was counted a first time before it changed the number,
//!   so this count was seen behind the search and, being equal, before it, and then the number before the
//!   search was not older than M.
//!
//! So the copy was there to be found, unless it has been moved on: but M was the last move.

mod bucket;
mod directory;
mod fingerprints;
mod line;
#[cfg(all(test, loom))]
mod models;
mod resize;
mod seed;
mod stripes;
#[cfg(all(test, not(loom)))]
mod tests;
mod walk;

use crate::backend::{
    Backend, Buckets, Busy, Change, End, Memory, NoSuchKey, Plan, ScanPosition, SlotAnswer,
};
use crate::batch::{self, HeldKeyWait, KeyStep, Pinning, Stepwise, Trip};
use crate::forced::Forcing;
use crate::record::{self, Record, RecordBox, Release};
use ats_sync::shim::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use ats_sync::{Guard, Lock, Padded, pin};
use bucket::{Bucket, Slot};
use directory::{Directory, bucket_of};
use line::{Full, Line, Word};
use resize::Chores;
use seed::Seed;
use std::ops::ControlFlow;
use std::ptr;
use stripes::{Locked, StripeSet};
use walk::Place;

/// How many keys of a batch are approached at once: about as many misses as a processor has under way.
const APPROACHED: usize = 16;

/// An unordered store of records; see the module's documentation.
pub struct HashTable<R: Release> {
    directory: Padded<Directory<R>>,
    stripes: StripeSet,
    seed: Seed,
    forcing: Forcing,
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
    /// A thread holds it while it changes the number of buckets or of locks.
    resizing: Lock,
    /// Lines behind the first ones of buckets.
    lines: AtomicI64,
    /// Where in the order of the table [`update_end`](Backend::update_end) found the last record. Before
    /// that there is likely nothing; if it were not remembered, each would begin with all the buckets
    /// that those before it have emptied.
    taken: AtomicU64,
}

/// What a thread finds in a bucket when it holds the lock and is about to change one key.
struct Entry<'g, R: Release> {
    bucket: Bucket<'g, R>,
    locked: Locked<'g>,
    hash: u64,
    /// The slot of the key's record.
    live: Option<(Slot<'g>, Full<'g, R>)>,
    /// The slot of a record of the key that was deleted while the table was fixed; only looked for if
    /// there is no other.
    deleted: Option<(Slot<'g>, Full<'g, R>)>,
}

impl<R: Release> HashTable<R> {
    /// An empty table. About two kilobytes.
    pub fn new() -> Self {
        Self {
            directory: Padded(Directory::new()),
            stripes: StripeSet::new(),
            seed: Seed::random(),
            forcing: Forcing::default(),
            drained: 0,
            rare: Padded(Rare {
                fixed: AtomicUsize::new(0),
                slots: AtomicUsize::new(0),
                resizing: Lock::new(),
                lines: AtomicI64::new(0),
                taken: AtomicU64::new(0),
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
        let bucket = self.active_bucket(bucket, guard);
        let mut freed = 0;
        bucket.for_each(|slot, word| {
            slot.clear();
            let bytes = word.record().bytes();
            locked.add(-i64::from(!word.is_deleted()), -(bytes as i64));
            // SAFETY: just taken out of its only slot, and the exclusive borrow shows that no reference
            // to it is left: those handed out are borrowed from the table, too.
            drop(unsafe { RecordBox::from_raw(word.pointer::<R>()) });
            freed += 1;
        });
        // SAFETY: the exclusive borrow shows that no other thread uses the table.
        self.add_lines(-(unsafe { bucket.free_lines() } as i64));
        freed
    }

    fn add_lines(&self, lines: i64) {
        if lines != 0 {
            self.rare.lines.fetch_add(lines, Ordering::Relaxed);
        }
    }

    /// How many lines there are behind the first ones of buckets.
    fn lines(&self) -> usize {
        usize::try_from(self.rare.lines.load(Ordering::Relaxed)).unwrap_or(0)
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
            let number = view.bucket(hash);
            if let Some(bucket) = self.directory.bucket(number, guard) {
                bucket.prefetch_line();
                let found = bucket.find(hash, |_, word| match word.record().has_key(key) {
                    true => wanted(*word, word.record()),
                    false => None,
                });
                if found.is_some() {
                    return found;
                }
            }
            if self.directory.confirms(view, hash, number) {
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
    #[inline]
    fn lock<'g>(&'g self, key: &[u8], hash: u64, guard: &'g Guard) -> Entry<'g, R> {
        self.approach_to_write(hash, guard);
        self.entry(key, hash, self.stripes.lock(hash, guard), guard)
    }

    /// As [`lock`](Self::lock), but a thread that must not wait for long gives up after a while.
    #[inline]
    fn lock_patiently<'g>(
        &'g self,
        key: &[u8],
        hash: u64,
        guard: &'g Guard,
    ) -> Result<Entry<'g, R>, Busy> {
        self.approach_to_write(hash, guard);
        let locked = self.stripes.lock_patiently(hash, guard)?;
        Ok(self.entry(key, hash, locked, guard))
    }

    /// Has what a writer of this hash will look at fetched while it takes the lock.
    #[inline]
    fn approach_to_write(&self, hash: u64, guard: &Guard) {
        // To be had by the time the lock is. Another bucket may turn out to be the right one.
        let bucket = self.directory.view().bucket(hash);
        if let Some(bucket) = self.directory.bucket(bucket, guard) {
            bucket.prefetch_line();
            bucket.prefetch_records(hash);
        }
    }

    /// Finds a key in its bucket, which is locked.
    #[inline]
    fn entry<'g>(
        &'g self,
        key: &[u8],
        hash: u64,
        locked: Locked<'g>,
        guard: &'g Guard,
    ) -> Entry<'g, R> {
        // Under the lock this is exact: the number of buckets may change meanwhile, but not in a way
        // that concerns the buckets of this stripe.
        let bucket = self.active_bucket(bucket_of(hash, self.directory.active()), guard);
        let mut deleted = None;
        let live = bucket.find(hash, |slot, word| {
            if !word.record().has_key(key) {
                return None;
            }
            if word.is_deleted() {
                deleted = Some((slot, word));
                return None;
            }
            Some((slot, word))
        });
        Entry {
            bucket,
            locked,
            hash,
            live,
            deleted,
        }
    }

    /// Does a step of a writer. Returns what it took out of its slot, to be [retired](retire) when the lock is
    /// free again.
    #[inline]
    fn apply<'g>(
        &self,
        entry: &Entry<'g, R>,
        step: KeyStep<R>,
        guard: &Guard,
    ) -> Option<&'g Record<R>> {
        match step {
            KeyStep::Keep => None,
            KeyStep::Put(record) => self.put(entry, record),
            KeyStep::Install(record) => {
                self.install(entry, record);
                None
            }
            KeyStep::Remove => self.remove(entry, guard),
        }
    }

    #[inline]
    fn put<'g>(&self, entry: &Entry<'g, R>, record: RecordBox<R>) -> Option<&'g Record<R>> {
        let bytes = record.bytes() as i64;
        let word = Word::new(entry.hash, record.into_raw());
        match entry.live.or(entry.deleted) {
            Some((slot, old)) => {
                slot.replace(word);
                let records = i64::from(old.is_deleted());
                let old = old.record();
                entry.locked.add(records, bytes - old.bytes() as i64);
                Some(old)
            }
            None => {
                self.add_lines(entry.bucket.insert(word) as i64);
                entry.locked.add(1, bytes);
                None
            }
        }
    }

    /// Puts a record of a batch. What it replaces is retired by the batch, or put back.
    ///
    /// A record marked as deleted keeps its slot, so that it is still known if the batch is undone.
    fn install(&self, entry: &Entry<'_, R>, record: RecordBox<R>) {
        let bytes = record.bytes() as i64;
        let word = Word::new(entry.hash, record.into_raw());
        match entry.live {
            Some((slot, old)) => {
                slot.replace(word);
                entry.locked.add(0, bytes - old.record().bytes() as i64);
            }
            None => {
                self.add_lines(entry.bucket.insert(word) as i64);
                entry.locked.add(1, bytes);
            }
        }
    }

    #[inline]
    fn remove<'g>(&self, entry: &Entry<'g, R>, guard: &Guard) -> Option<&'g Record<R>> {
        let (slot, live) = entry.live?;
        let record = live.record();
        if self.is_fixed() && !self.has_deleted(entry, record.key()) {
            slot.replace(live.deleted());
            entry.locked.add(-1, 0);
            entry.locked.remember_deleted(entry.hash);
            None
        } else {
            slot.clear();
            entry.locked.add(-1, -(record.bytes() as i64));
            self.add_lines(-(entry.bucket.unlink_empty(guard) as i64));
            Some(record)
        }
    }

    /// Whether beside the record of this key there is one that was deleted while the table was fixed.
    #[cold]
    fn has_deleted(&self, entry: &Entry<'_, R>, key: &[u8]) -> bool {
        let deleted = entry.bucket.find(entry.hash, |_, word| {
            (word.is_deleted() && word.record().has_key(key)).then_some(())
        });
        deleted.is_some()
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
        let bucket = self.active_bucket(bucket_of(hash, self.directory.active()), guard);
        bucket.for_each(|slot, word| {
            if word.is_deleted() {
                slot.clear();
                locked.add(0, -(word.record().bytes() as i64));
                retire(Some(word.record()), guard);
            }
        });
        self.add_lines(-(bucket.unlink_empty(guard) as i64));
    }
}

/// Retires a record that was taken out of its slot.
#[inline]
fn retire<R: Release>(gone: Option<&Record<R>>, guard: &Guard) {
    if let Some(record) = gone {
        // SAFETY: no other slot led to it (H2), and it was taken out under the lock (H1).
        unsafe { record::retire(ptr::from_ref(record).cast_mut(), guard) };
    }
}

impl<R: Release> Stepwise<R> for HashTable<R> {
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        _trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy> {
        let hash = self.seed.hash(key);
        let mut patience = HeldKeyWait::new();
        loop {
            let entry = self.lock_patiently(key, hash, guard)?;
            let current = entry.live.map(|(_, word)| word.record());
            if current.is_some_and(Record::is_held) {
                drop(entry);
                patience.wait()?;
                continue;
            }
            let gone = self.apply(&entry, decide(current), guard);
            let chores = Chores::of(&entry.locked, self.directory.active());
            drop(entry);
            retire(gone, guard);
            self.do_chores(chores, guard);
            if let Some(forced) = self.forcing.forced() {
                self.force(forced, guard);
            }
            return Ok(());
        }
    }

    /// First the buckets of some keys, then the records in them, so that misses of different keys overlap.
    fn approach(&self, keys: &[&[u8]], guard: &Guard) {
        let view = self.directory.view();
        for keys in keys.chunks(APPROACHED) {
            let mut hashes = [0; APPROACHED];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.seed.hash(key);
                self.stripes.prefetch(*hash, guard);
                self.directory.prefetch(view.bucket(*hash));
            }
            for hash in &hashes[..keys.len()] {
                if let Some(bucket) = self.directory.bucket(view.bucket(*hash), guard) {
                    bucket.prefetch_records(*hash);
                }
            }
        }
    }

    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard) {
        let key = installed.key();
        let entry = self.lock(key, self.seed.hash(key), guard);
        let slot = slot_of(&entry, installed);
        let bytes = installed.bytes() as i64;
        match other {
            None => {
                slot.clear();
                entry.locked.add(-1, -bytes);
                self.add_lines(-(entry.bucket.unlink_empty(guard) as i64));
            }
            Some(other) => {
                slot.replace(Word::new(entry.hash, other));
                entry.locked.add(0, other.bytes() as i64 - bytes);
            }
        }
    }

    /// The record before comes back first, since it stays, marked as deleted, while the table is fixed.
    fn remove_held(&self, hold: &Record<R>, before: Option<&Record<R>>, guard: &Guard) {
        let Some(before) = before else {
            return self.exchange(hold, None, guard);
        };
        let key = hold.key();
        let mut entry = self.lock(key, self.seed.hash(key), guard);
        let slot = slot_of(&entry, hold);
        let back = Full::of(entry.hash, before);
        slot.replace(*back);
        entry
            .locked
            .add(0, before.bytes() as i64 - hold.bytes() as i64);
        entry.live = Some((slot, back));
        let gone = self.remove(&entry, guard);
        drop(entry);
        retire(gone, guard);
    }
}

/// The slot of a record of a batch, whose bucket is locked.
fn slot_of<'g, R: Release>(entry: &Entry<'g, R>, installed: &Record<R>) -> Slot<'g> {
    let (slot, word) = entry.live.expect("an installed record is in its slot");
    debug_assert!(ptr::eq(word.record(), installed));
    slot
}

impl<R: Release> Backend<R> for HashTable<R> {
    #[inline]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        let hash = self.seed.hash(key);
        let live = |word: Word, record| (!word.is_deleted()).then_some(record);
        self.search(key, hash, guard, live)?.settled(guard)
    }

    #[inline]
    fn prefetch(&self, key: &[u8]) {
        let bucket = self.directory.view().bucket(self.seed.hash(key));
        self.directory.prefetch(bucket);
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

    /// Any record will do, so whichever end is asked for.
    fn update_end<'g>(
        &'g self,
        _end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        let start = self.rare.taken.load(Ordering::Relaxed);
        loop {
            let found = self
                .successor(Place::At(start), guard)
                // The place is a hint, so only a search of the whole table tells that it is empty.
                .or_else(|| self.successor(Place::START, guard));
            let Some(found) = found else {
                decide(None);
                return Ok(());
            };
            let mut gone = false;
            self.update(found.key(), guard, &mut |current| {
                gone = current.is_none();
                current.map_or(Change::Keep, |current| decide(Some(current)))
            })?;
            // Another thread has taken it; there may be other records.
            if gone {
                continue;
            }
            let place = self.seed.hash(found.key()).reverse_bits();
            if place != start {
                self.rare.taken.store(place, Ordering::Relaxed);
            }
            return Ok(());
        }
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

    fn resume_scan<'g>(
        &'g self,
        from: ScanPosition<'_>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64> {
        let place = match from {
            ScanPosition::Start => Place::START,
            ScanPosition::At(reversed) => Place::At(reversed),
            ScanPosition::Behind(key) => Place::behind(self.seed.hash(key), key),
        };
        self.walk_until(place, guard, visit, pause)
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

    fn memory(&self) -> Memory {
        let guard = pin();
        let (_, records) = self.stripes.totals(&guard);
        let buckets = self.directory.bytes() + self.lines() * size_of::<Line<R>>();
        Memory {
            records: usize::try_from(records).unwrap_or(0),
            structure: size_of::<Self>() + self.stripes.bytes(&guard) + buckets,
        }
    }

    fn buckets(&self) -> Option<Buckets> {
        Some(Buckets {
            buckets: self.directory.active(),
            lines: self.lines(),
            ..self.stripes.statistics(&pin())
        })
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.forcing.set(splits, joins);
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
        // it is done; a thread that takes that stripe after us finds the table fixed.
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
