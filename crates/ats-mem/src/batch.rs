//! Batches: several keys written as one, also for readers that take no lock.
//!
//! A batch installs its records one after the other, each stamped with an entry of the batch. While
//! the batch is open, readers look through a stamped record to the one before it. The commit is one
//! store into the state all entries share, so the records become visible together. Afterwards
//! the stamps are cleared, and what was replaced is retired.
//!
//! A stamped record of an open batch is the lock of its key: other writers wait, with bounded
//! patience, and report [`Busy`] when it is exhausted. Keys are installed in ascending order, so
//! batches wait for each other in one direction only and cannot deadlock. An aborted batch takes
//! its records out again; until it has, they still lock their keys.
//!
//! The idea of a version stamp that can be pending is that of multi-version stores (for instance
//! the versioned pointers of Blelloch and Wei's Verlib, PPoPP 2024); here it costs a reader one
//! comparison on a cache line it needs anyway.
//!
//! # Invariants
//! - B1. The state goes from `Open` to `Committed` or to `Aborted`, once.
//! - B2. `before` of an entry is set before its record is published, and never changed.
//! - B3. The record before stays unretired as long as the state is `Open` or the entry can be found
//!   in a stamp of an aborted batch.
//! - B4. Entries live until no stamp names them, plus a grace period.

use crate::backend::{Busy, Change};
use crate::record::entry::{Entry, Shared, State};
use crate::record::{self, Record, RecordBox, Release};
use crate::slab;
use ats_sync::Guard;
use ats_sync::shim::thread;
use std::ptr::{self, NonNull};
#[cfg(not(any(loom, shuttle)))]
use std::time::Duration;
use std::time::Instant;

/// What a store is asked to do with one key on the way to a [`Change`].
pub(crate) enum Step<R: Release> {
    Keep,
    /// Put a record; the store counts it and retires the old one.
    Put(RecordBox<R>),
    /// Put a stamped record; retiring the old one is the batch's business.
    Install(RecordBox<R>),
    Remove,
}

/// The way of a writer through the parts of a store that have locks of their own, so that a store that
/// adapts can count operations that need several.
pub(crate) struct Trip {
    /// The part where it was last.
    last: Option<usize>,
}

impl Trip {
    pub(crate) fn new() -> Self {
        Trip { last: None }
    }

    /// Notes that it has come to a part, of this identity. Whether it comes from another.
    pub(crate) fn comes_to(&mut self, part: usize) -> bool {
        self.last.replace(part).is_some_and(|last| last != part)
    }
}

/// What a batch needs of a store.
pub(crate) trait Stepwise<R: Release> {
    /// Like [`Backend::update`](crate::Backend::update), one step of a batch included.
    fn step<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        trip: &mut Trip,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Step<R>,
    ) -> Result<(), Busy>;

    /// Asks the processor to fetch what steps for these keys will touch. A hint; does nothing unless the
    /// store does better.
    fn approach(&self, keys: &[&[u8]], guard: &Guard) {
        let _ = (keys, guard);
    }

    /// Puts `before` (or nothing, if null) in the place of `installed`, which is in the store and was
    /// counted there.
    fn revert(&self, installed: &Record<R>, before: *const Record<R>, guard: &Guard);
}

/// [`Backend::update`](crate::Backend::update) by way of [`Stepwise::step`].
pub(crate) fn update<'g, R: Release, S: Stepwise<R>>(
    store: &'g S,
    key: &[u8],
    guard: &'g Guard,
    decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
) -> Result<(), Busy> {
    store.step(
        key,
        guard,
        &mut Trip::new(),
        &mut |current| match decide(current) {
            Change::Keep | Change::Abort => Step::Keep,
            Change::Put(record) => Step::Put(record),
            Change::Remove => Step::Remove,
        },
    )
}

/// [`Backend::update_many`](crate::Backend::update_many) for any store that can step.
pub(crate) fn update_many<'g, R: Release, S: Stepwise<R>>(
    store: &'g S,
    keys: &[&[u8]],
    guard: &'g Guard,
    decide: &mut dyn FnMut(usize, Option<&'g Record<R>>) -> Change<R>,
) -> Result<bool, Busy> {
    debug_assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "keys ascend");
    store.approach(keys, guard);
    let mut open = Open::new(store, guard, keys.len());
    let mut trip = Trip::new();
    for (index, key) in keys.iter().enumerate() {
        let mut aborted = false;
        store.step(
            key,
            guard,
            &mut trip,
            &mut |current| match decide(index, current) {
                Change::Keep => Step::Keep,
                Change::Put(record) => Step::Install(open.batch().stamp(record, current)),
                Change::Remove | Change::Abort => {
                    aborted = true;
                    Step::Keep
                }
            },
        )?;
        if aborted {
            return Ok(false);
        }
    }
    open.commit();
    Ok(true)
}

/// A batch that is undone unless it commits: because `decide` said so, because another batch was in
/// the way, or because `decide` panicked. Its records would hold their keys for ever, and their
/// stamps would name entries that are gone.
struct Open<'a, R: Release, S: Stepwise<R>> {
    /// Until the end.
    batch: Option<Batch<R>>,
    store: &'a S,
    guard: &'a Guard,
}

impl<'a, R: Release, S: Stepwise<R>> Open<'a, R, S> {
    fn new(store: &'a S, guard: &'a Guard, keys: usize) -> Self {
        Open {
            batch: Some(Batch::new(keys)),
            store,
            guard,
        }
    }

    fn batch(&mut self) -> &mut Batch<R> {
        self.batch.as_mut().expect("the batch has not ended")
    }

    fn commit(mut self) {
        if let Some(batch) = self.batch.take() {
            batch.commit(self.guard);
        }
    }
}

impl<R: Release, S: Stepwise<R>> Drop for Open<'_, R, S> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            batch.abort(self.store, self.guard);
        }
    }
}

/// A batch being made: one block of the slab, so that its entries do not move.
struct Batch<R: Release>(NonNull<Head<R>>);

/// What the block begins with; the entries follow.
#[repr(C)]
struct Head<R: Release> {
    shared: Shared,
    /// How many entries there are, and for how many there is room.
    len: usize,
    room: usize,
    entries: [Entry<R>; 0],
}

impl<R: Release> Batch<R> {
    fn new(keys: usize) -> Self {
        let block = slab::allocate(Self::bytes(keys)).cast::<Head<R>>();
        // SAFETY: the block is new, and large enough for its head.
        unsafe {
            block.write(Head {
                shared: Shared::new(),
                len: 0,
                room: keys,
                entries: [],
            });
        }
        Batch(block)
    }

    fn bytes(keys: usize) -> usize {
        size_of::<Head<R>>() + keys * size_of::<Entry<R>>()
    }

    fn head(&self) -> &Head<R> {
        // SAFETY: the block is ours, and begins with a head.
        unsafe { self.0.as_ref() }
    }

    /// The place of entry `index`, for which there must be room.
    fn place(&self, index: usize) -> *mut Entry<R> {
        debug_assert!(index < self.head().room);
        let block = self.0.as_ptr();
        // SAFETY: the block has room for so many entries behind its head.
        unsafe { (&raw mut (*block).entries).cast::<Entry<R>>().add(index) }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry<R>> {
        // SAFETY: so many entries were written.
        (0..self.head().len).map(|index| unsafe { &*self.place(index) })
    }

    fn stamp(&mut self, record: RecordBox<R>, before: Option<&Record<R>>) -> RecordBox<R> {
        let len = self.head().len;
        assert!(len < self.head().room, "each key is stamped once");
        let place = self.place(len);
        let record = record.with_room_for(place).into_raw();
        let block = self.0.as_ptr();
        // SAFETY: there is room for this entry, which nobody knows yet; the shared part is in the same block,
        // so it lives as long. Only `len` of the head is written, of which readers know nothing. `record` was just given away by its box and is not published yet.
        unsafe {
            let shared = &raw const (*block).shared;
            let before = before.map_or(ptr::null(), ptr::from_ref);
            place.write(Entry::new(shared, before, record));
            (&raw mut (*block).len).write(len + 1);
            (*record).set_stamp(place);
            RecordBox::from_raw(record)
        }
    }

    fn commit(self, guard: &Guard) {
        self.head().shared.end(State::Committed);
        for entry in self.entries() {
            // SAFETY: the record was installed, and whoever replaces it since the commit retires it
            // under a guard younger than ours, so it lives.
            unsafe { &*entry.record() }.set_stamp(ptr::null_mut());
            if !entry.before().is_null() {
                // SAFETY: the batch took the record before out of the store, and since the commit
                // no reader looks through to it (B3).
                unsafe { record::retire(entry.before().cast_mut(), guard) };
            }
        }
        self.retire(guard);
    }

    fn abort<S: Stepwise<R>>(self, store: &S, guard: &Guard) {
        self.head().shared.end(State::Aborted);
        for entry in self.entries() {
            // SAFETY: until it is reverted, the stamped record holds its key, so it is in the store.
            store.revert(unsafe { &*entry.record() }, entry.before(), guard);
            // SAFETY: `revert` has just taken it out of the store.
            unsafe { record::retire(entry.record(), guard) };
        }
        self.retire(guard);
    }

    /// Frees the batch after a grace period, since readers may still hold its entries (B4).
    fn retire(self, guard: &Guard) {
        unsafe fn free<R: Release>(raw: *mut u8) {
            // SAFETY: `retire` hands over a block that begins with a head, whose entries need no care.
            unsafe {
                let block = NonNull::new_unchecked(raw.cast::<Head<R>>());
                let bytes = Batch::<R>::bytes(block.as_ref().room);
                block.drop_in_place();
                slab::free(block.cast(), bytes);
            }
        }
        let bytes = Self::bytes(self.head().room);
        // SAFETY: no stamp of a record that is in the store names an entry of this batch any more,
        // and stamps of reverted records are read only by readers pinned before.
        unsafe { guard.retire(self.0.as_ptr().cast(), bytes, free::<R>) };
    }
}

/// How long a writer waits for a batch before it reports [`Busy`].
#[cfg(not(any(loom, shuttle)))]
const PATIENCE: Duration = Duration::from_micros(200);

/// The waiting of one writer for batches in its way.
pub(crate) struct Patience(Option<Instant>);

impl Patience {
    pub(crate) fn new() -> Self {
        Patience(None)
    }

    /// Waits a moment; [`Busy`] if that has been going on for too long.
    #[cfg(not(any(loom, shuttle)))]
    pub(crate) fn wait(&mut self) -> Result<(), Busy> {
        let start = *self.0.get_or_insert_with(Instant::now);
        if start.elapsed() > PATIENCE {
            return Err(Busy);
        }
        thread::yield_now();
        Ok(())
    }

    /// Where interleavings are explored time must not count, or none could be repeated.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn wait(&mut self) -> Result<(), Busy> {
        thread::yield_now();
        match self.0.replace(Instant::now()) {
            None => Ok(()),
            Some(_) => Err(Busy),
        }
    }
}
