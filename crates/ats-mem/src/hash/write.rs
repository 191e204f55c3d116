//! Writes to the locked bucket of a key.

use super::bucket::{Bucket, Slot};
use super::directory::{View, bucket_of};
use super::line::{Full, Word};
use super::resize::Chores;
use super::stripes::Locked;
use super::table::HashTable;
use crate::batch::{HeldKeyWait, KeyStep, Stepwise, Trip};
use crate::change::Busy;
use crate::read_points::{Fresh, Query, ReadPoints, Removal, RemovedAt, TakeOut, Tick};
use crate::record::{self, Old, Record, RecordBox, Release, Weight};
use ats_sync::Guard;
use std::ptr;

/// Number of keys of a batch that are prefetched at once: about as many misses as a processor can
/// have outstanding.
const APPROACHED: usize = 16;

/// A key found in its locked bucket, about to be changed.
struct LockedKey<'g, R: Release> {
    bucket: Bucket<'g, R>,
    locked: Locked<'g>,
    hash: u64,
    /// The slot of the key's record.
    live: Option<(Slot<'g>, Full<'g, R>)>,
    /// `true` if the key only has a record that is marked as deleted.
    was_deleted: bool,
}

/// The bucket that a hash led to before its lock was taken.
struct Approached<'g, R: Release> {
    view: View,
    bucket: Option<Bucket<'g, R>>,
}

impl<R: Release> HashTable<R> {
    /// Locks the bucket of `key` and finds the key in it.
    #[inline]
    fn lock<'g>(&'g self, key: &[u8], hash: u64, guard: &'g Guard) -> LockedKey<'g, R> {
        let approached = self.approach_to_write(hash, guard);
        let locked = self.stripes.lock(hash, guard);
        self.find_locked(key, hash, locked, approached, guard)
    }

    /// Locks like [`lock`](Self::lock), but a thread that must not wait for long gives up after a
    /// while.
    #[inline(always)]
    fn lock_within_limit<'g>(
        &'g self,
        key: &[u8],
        hash: u64,
        guard: &'g Guard,
    ) -> Result<LockedKey<'g, R>, Busy> {
        let approached = self.approach_to_write(hash, guard);
        let locked = self.stripes.lock_within_limit(hash, guard)?;
        Ok(self.find_locked(key, hash, locked, approached, guard))
    }

    /// Prefetches the data that a writer of this hash will read while it takes the lock.
    #[inline(always)]
    fn approach_to_write<'g>(&'g self, hash: u64, guard: &'g Guard) -> Approached<'g, R> {
        let view = self.directory.view();
        let bucket = self.directory.bucket(view.bucket(hash), guard);
        if let Some(bucket) = bucket {
            bucket.prefetch_line();
            bucket.prefetch_records::<1>(hash);
        }
        Approached { view, bucket }
    }

    /// Finds a key in its locked bucket.
    #[inline(always)]
    fn find_locked<'g>(
        &'g self,
        key: &[u8],
        hash: u64,
        locked: Locked<'g>,
        approached: Approached<'g, R>,
        guard: &'g Guard,
    ) -> LockedKey<'g, R> {
        // Under the lock this is exact: the number of buckets may change meanwhile, but not for the
        // buckets of this stripe.
        let bucket = match approached.bucket {
            Some(bucket) if self.directory.is_as(approached.view) => bucket,
            _ => self.active_bucket(bucket_of(hash, self.directory.active()), guard),
        };
        let mut was_deleted = false;
        let live = bucket.find(hash, |slot, word| {
            if !word.record().has_key(key) {
                return None;
            }
            if word.is_deleted() {
                was_deleted = true;
                return None;
            }
            Some((slot, word))
        });
        LockedKey {
            bucket,
            locked,
            hash,
            live,
            was_deleted: was_deleted && live.is_none(),
        }
    }

    /// Does a step of a writer, for a query if one is given. Returns the record taken out of its
    /// slot, to be [retired](retire) after the lock is released.
    #[inline]
    fn apply<'g>(
        &self,
        found: &LockedKey<'g, R>,
        step: KeyStep<R>,
        by: Option<Query>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        match step {
            KeyStep::Keep => None,
            KeyStep::Put(record) => self.put(found, record, by, guard),
            KeyStep::Install(record) => {
                self.install(found, record);
                None
            }
            KeyStep::Remove => self.remove(found, by, guard),
        }
    }

    #[inline]
    fn put<'g>(
        &self,
        found: &LockedKey<'g, R>,
        record: RecordBox<R>,
        by: Option<Query>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let weight = R::weight(&record);
        let there = if found.was_deleted {
            Some(expect_deleted(found, record.key()))
        } else {
            found.live
        };
        let (fresh, gone) = match self.read_points.tick() {
            None => (Fresh::NONE, there.map(|(_, old)| old.record())),
            Some(tick) => self.date((tick, by), &record, there.map(|(_, old)| old), guard),
        };
        let word = Word::new(found.hash, record.into_raw());
        match there {
            Some((slot, old)) => {
                slot.replace(word);
                let records = i64::from(!old.is_counted());
                found.locked.add(records, weight - old.weight());
            }
            None => {
                self.add_lines(found.bucket.insert(word) as i64);
                found.locked.add(1, weight);
            }
        }
        self.read_points.list(fresh, guard);
        gone
    }

    /// Gives a time to a record that replaces the one in the slot, while queries run. Returns the
    /// record to retire.
    #[cold]
    fn date<'g>(
        &self,
        tick: (Tick, Option<Query>),
        record: &Record<R>,
        there: Option<Full<'g, R>>,
        guard: &'g Guard,
    ) -> (Fresh<R>, Option<&'g Record<R>>) {
        // A record marked as deleted while no query ran is invisible to queries.
        let marked = there.filter(|old| old.is_deleted() && !old.record().is_removal());
        let before = match marked {
            Some(_) => None,
            None => there.map(|old| Old::Seen(old.record())),
        };
        let (fresh, gone) = self.read_points.date_at(tick, record, before, guard);
        (fresh, marked.map(Full::record).or_else(|| seen(gone)))
    }

    /// Puts a record of a batch. The batch retires the replaced record, or restores it.
    ///
    /// A record marked as deleted keeps its slot, so that it is still known if the batch aborts.
    fn install(&self, found: &LockedKey<'_, R>, record: RecordBox<R>) {
        let word = Word::new(found.hash, record.into_raw());
        match found.live {
            Some((slot, _)) => slot.replace(word),
            None => {
                self.add_lines(found.bucket.insert(word) as i64);
                found.locked.add(1, Weight::NONE);
            }
        }
    }

    #[inline]
    fn remove<'g>(
        &self,
        found: &LockedKey<'g, R>,
        by: Option<Query>,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let record = found.live?.1.record();
        let old = Old::Seen(record);
        let removal = self.read_points.remove(record.key(), old, by, guard);
        let less = Weight::NONE - R::weight(record);
        self.take_out_as(found, record, removal, less, guard)
    }

    /// Removes a record as decided. The slot of its key has the record, or its hold. `less` is the
    /// change of weight that is not counted yet.
    #[inline(always)]
    fn take_out_as<'g>(
        &self,
        found: &LockedKey<'g, R>,
        record: &'g Record<R>,
        removal: Removal<'g, R>,
        less: Weight,
        guard: &'g Guard,
    ) -> Option<&'g Record<R>> {
        let (slot, _) = found.live?;
        if let Removal::By(removal, fresh, gone) = removal {
            let word = Word::new(found.hash, removal.into_raw());
            if self.is_fixed() {
                slot.replace(word.as_deleted());
                found.locked.remember_deleted(found.hash);
            } else {
                slot.replace(word.as_unknown());
            }
            // A removal counts as a record as long as it occupies a slot.
            found.locked.add(0, less);
            self.read_points.list(fresh, guard);
            return seen(gone);
        }
        if self.is_fixed() && find_deleted(found, record.key()).is_none() {
            slot.replace(Full::of(found.hash, record).as_deleted());
            // The bytes of the record are counted as long as it stays.
            let bytes = less.bytes + R::weight(record).bytes;
            found.locked.add(-1, Weight { bytes, ..less });
            found.locked.remember_deleted(found.hash);
            None
        } else {
            found.bucket.clear(slot);
            found.locked.add(-1, less);
            self.add_lines(-(found.bucket.unlink_empty(guard) as i64));
            Some(record)
        }
    }
}

/// Returns the record to be retired, which was read.
#[inline(always)]
fn seen<R: Release>(gone: Option<Old<'_, R>>) -> Option<&Record<R>> {
    gone.map(|old| match old {
        Old::Seen(record) => record,
        Old::Unseen(_) => unreachable!("a bucket does not tell what a record is"),
    })
}

/// Returns the existing record of a key that was deleted while the table was fixed.
#[cold]
fn expect_deleted<'g, R: Release>(found: &LockedKey<'g, R>, key: &[u8]) -> (Slot<'g>, Full<'g, R>) {
    find_deleted(found, key).expect("it has just been found under the same lock")
}

/// Returns the record of a key that was deleted while the table was fixed, if there is one.
#[cold]
fn find_deleted<'g, R: Release>(
    found: &LockedKey<'g, R>,
    key: &[u8],
) -> Option<(Slot<'g>, Full<'g, R>)> {
    found.bucket.find(found.hash, |slot, word| {
        (word.is_deleted() && word.record().has_key(key)).then_some((slot, word))
    })
}

/// Retires a record that was taken out of its slot.
#[inline]
pub(super) fn retire<R: Release>(gone: Option<&Record<R>>, guard: &Guard) {
    if let Some(record) = gone {
        // SAFETY: no other slot led to it (HASH-2), and it was taken out under the lock (HASH-1).
        unsafe { record::retire(ptr::from_ref(record).cast_mut(), guard) };
    }
}

impl<R: Release> HashTable<R> {
    /// Does [`Stepwise::step`] for a key whose hash is known, for a query if one is given.
    pub(super) fn step_hashed<'g>(
        &'g self,
        (key, hash): (&[u8], u64),
        by: Option<Query>,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy> {
        let mut wait = HeldKeyWait::new();
        loop {
            let found = self.lock_within_limit(key, hash, guard)?;
            let current = found.live.map(|(_, word)| word.record());
            if current.is_some_and(Record::is_held) {
                drop(found);
                wait.wait()?;
                continue;
            }
            let gone = self.apply(&found, decide(current), by, guard);
            let chores = Chores::of(&found.locked, self.directory.active());
            drop(found);
            retire(gone, guard);
            self.do_chores(chores, guard);
            if let Some(forced) = self.forcing.decide_forced() {
                self.force(forced, guard);
            }
            return Ok(());
        }
    }
}

impl<R: Release> HashTable<R> {
    /// Prefetches the buckets of some keys, then the records in them, so that misses of different
    /// keys overlap. Calls `besides` for each hash. Does nothing for a small table.
    #[inline]
    fn prefetch_for(&self, keys: &[&[u8]], guard: &Guard, besides: impl Fn(u64)) {
        let view = self.directory.view();
        if view.is_cached() {
            return;
        }
        for keys in keys.chunks(APPROACHED) {
            let mut hashes = [0; APPROACHED];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.seed.hash(key);
                besides(*hash);
                self.directory.prefetch(view.bucket(*hash));
            }
            for hash in &hashes[..keys.len()] {
                if let Some(bucket) = self.directory.bucket(view.bucket(*hash), guard) {
                    bucket.prefetch_records::<2>(*hash);
                }
            }
        }
    }
}

impl<R: Release> Stepwise<R> for HashTable<R> {
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy> {
        self.step_hashed((key, self.seed.hash(key)), trip.query(), guard, decide)
    }

    fn read_points(&self) -> Option<&ReadPoints<R>> {
        Some(&self.read_points)
    }

    fn prefetch_records(&self, keys: &[&[u8]], guard: &Guard) {
        self.prefetch_for(keys, guard, |_| {});
    }

    fn prefetch_batch(&self, keys: &[&[u8]], guard: &Guard) {
        self.prefetch_for(keys, guard, |hash| self.stripes.prefetch(hash, guard));
    }

    fn commit(
        &self,
        key: &[u8],
        (weight, _): (Weight, u32),
        guard: &Guard,
        commit: &mut dyn FnMut(),
    ) {
        let locked = self.stripes.lock(self.seed.hash(key), guard);
        commit();
        locked.add(0, weight);
    }

    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard) {
        let key = installed.key();
        let found = self.lock(key, self.seed.hash(key), guard);
        let slot = slot_of(&found, installed);
        match other {
            None => {
                found.bucket.clear(slot);
                found.locked.add(-1, Weight::NONE);
                self.add_lines(-(found.bucket.unlink_empty(guard) as i64));
            }
            Some(other) => slot.replace(Word::new(found.hash, other)),
        }
    }

    /// Marks the record before as deleted, and leaves it there, while the table is fixed.
    fn remove_held(
        &self,
        hold: &Record<R>,
        before: Option<&Record<R>>,
        at: RemovedAt,
        guard: &Guard,
    ) {
        let Some(before) = before else {
            return self.exchange(hold, None, guard);
        };
        let key = hold.key();
        let found = self.lock(key, self.seed.hash(key), guard);
        debug_assert_eq!(
            found.live.map(|(_, word)| ptr::from_ref(word.record())),
            Some(ptr::from_ref(hold))
        );
        let old = Old::Seen(before);
        let removal = self.read_points.remove_held(key, old, at, guard);
        let gone = self.take_out_as(&found, before, removal, at.weight_of(before), guard);
        drop(found);
        retire(gone, guard);
    }
}

impl<R: Release> TakeOut<R> for HashTable<R> {
    fn take_out(&self, removal: &Record<R>, guard: &Guard, is_out: &mut dyn FnMut(bool)) {
        let hash = self.seed.hash(removal.key());
        let locked = self.stripes.lock(hash, guard);
        let bucket = self.active_bucket(bucket_of(hash, self.directory.active()), guard);
        let slot = bucket.find(hash, |slot, word| {
            ptr::eq(word.record(), removal).then_some(slot)
        });
        // A walk may continue from its key while the table is fixed: then it is purged with the
        // other marked records.
        let is_there = slot.is_some() && !self.is_fixed();
        if let (Some(slot), true) = (slot, is_there) {
            bucket.clear(slot);
            locked.add(-1, Weight::NONE);
            self.add_lines(-(bucket.unlink_empty(guard) as i64));
        } else if slot.is_some() {
            locked.remember_deleted(hash);
        }
        is_out(is_there);
    }
}

/// Returns the slot of a batch's record in its locked bucket.
fn slot_of<'g, R: Release>(found: &LockedKey<'g, R>, installed: &Record<R>) -> Slot<'g> {
    let (slot, word) = found.live.expect("an installed record is in its slot");
    debug_assert!(ptr::eq(word.record(), installed));
    slot
}
