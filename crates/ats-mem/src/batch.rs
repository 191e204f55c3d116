//! Batches: several keys written as one, also for readers that take no lock.
//!
//! A batch installs its records one after the other, each stamped with an entry of the batch. While
//! the batch is open, readers look through a stamped record to the one before it. The commit is one
//! store into the state all entries share, so the records become visible together. Afterwards
//! the stamps are cleared, and what was replaced is retired.
//!
//! A stamped record is the lock of its key until its stamp is cleared: other writers wait, with bounded
//! patience, and report [`Busy`] when it is exhausted. Keys are installed in ascending order, so
//! batches wait for each other in one direction only and cannot deadlock. An aborted batch takes
//! its records out again; until it has, they still lock their keys.
//!
//! The idea of a version stamp that can be pending is that of multi-version stores (for instance
//! the versioned pointers of Blelloch and Wei's Verlib, PPoPP 2024); here it costs a reader one
//! comparison on a cache line it needs anyway.
//!
//! # Keys that stay as they are
//! What a batch decides about one key must still be right when it commits, so it holds every key it has
//! looked at. If a key is to stay as it is, the record that is there is *kept*: it is stamped, but readers see
//! it whatever becomes of the batch. If there is no record, or none that can bear the stamp, the key gets a
//! *hold*: a stamped record without value, through which readers see what was there before. When the batch
//! has ended, the record before is put back. Without that another writer could change the key between the
//! decision and the commit, and its change would be lost or seen in an order that no moment explains. A batch
//! of one key needs none of this, since its decision and its commit are one step under one lock.
//!
//! # Keys whose new record takes long to make
//! A decision runs under a lock that the key shares with others, so it must be short. If it is not, the plan
//! answers [`Change::Later`]: the key gets a hold, the lock is let go, and [`Plan::build`] makes the record
//! while only this key is locked. Then the record takes the place of the hold. A single key that is changed in
//! this way is [`Backend::update_alone`](crate::Backend::update_alone).
//!
//! # Long batches
//! A batch that pins for itself (`Pinning::Own`) pins anew after each [`PIECE`] keys, installed or cleared, and
//! is not pinned while it builds a record. What it refers to from one piece to the next lives without a
//! guard: the record before, and the record installed, as long as the stamp holds the key (B3, B5); entries,
//! since they are the batch's own; and the store, which its caller keeps alive.
//!
//! # Invariants
//! - B1. The state goes from `Open` to `Committed` or to `Aborted`, once.
//! - B2. `before` of an entry is set before its record is published, and never changed.
//! - B3. The record before is neither retired nor changed by a writer as long as the key is held.
//! - B4. Entries live until no stamp names them, plus a grace period.
//! - B5. A stamped record is taken out of the store by its batch only. Other writers leave it there until the
//!   stamp is cleared, also when the batch has committed; after that, the batch does not touch it.
//! - B6. From its decision about a key until its end, a batch holds the key, whatever the decision was.

use crate::backend::{Busy, Change, Plan};
use crate::record::entry::{BatchState, Entry, Installed, State};
use crate::record::{self, Record, RecordBox, Release};
use crate::slab;
use ats_sync::shim::thread;
use ats_sync::{Guard, pin};
use std::ptr::{self, NonNull};
#[cfg(not(any(loom, shuttle)))]
use std::time::Duration;
use std::time::Instant;

/// After so many keys a long batch pins anew: this many take well under a millisecond.
pub const PIECE: usize = 256;

/// How a batch is pinned.
pub(crate) enum Pinning<'a> {
    /// By its caller, throughout.
    Callers(&'a Guard),
    /// By itself, for a piece at a time; `None` between two.
    Own(Option<Guard>),
}

impl Pinning<'_> {
    fn guard(&mut self) -> &Guard {
        match self {
            Pinning::Callers(guard) => guard,
            Pinning::Own(guard) => guard.get_or_insert_with(pin),
        }
    }

    /// Lets the thread be unpinned until the guard is asked for again, if that is the batch's business.
    fn pause(&mut self) {
        if let Pinning::Own(guard) = self {
            *guard = None;
        }
    }
}

/// What a store is asked to do with one key on the way to a [`Change`].
pub(crate) enum KeyStep<R: Release> {
    Keep,
    /// Put a record; the store counts it and retires the old one.
    Put(RecordBox<R>),
    /// Put a stamped record; retiring the old one is the batch's business.
    Install(RecordBox<R>),
    Remove,
}

impl<R: Release> KeyStep<R> {
    /// The change of a single key.
    pub(crate) fn of(change: Change<R>) -> Self {
        match change {
            Change::Keep | Change::Abort => KeyStep::Keep,
            Change::Put(record) => KeyStep::Put(record),
            Change::Remove => KeyStep::Remove,
            Change::Later => unreachable!("only a plan can put a change off"),
        }
    }
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
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> KeyStep<R>,
    ) -> Result<(), Busy>;

    /// Asks the processor to fetch what steps for these keys will touch. A hint; does nothing unless the
    /// store does better.
    fn approach(&self, keys: &[&[u8]], guard: &Guard) {
        let _ = (keys, guard);
    }

    /// Puts another record of the key, or nothing, in the place of `installed`, which is stamped, in the store,
    /// and was counted there. The other one has been given to the store now, or was there before.
    fn exchange(&self, installed: &Record<R>, other: Option<&Record<R>>, guard: &Guard);

    /// Removes a key that is held, as [`KeyStep::Remove`] does, and retires the record before.
    fn remove_held(&self, hold: &Record<R>, before: Option<&Record<R>>, guard: &Guard);
}

/// [`Backend::update`](crate::Backend::update) by way of [`Stepwise::step`].
pub(crate) fn update<'g, R: Release, S: Stepwise<R>>(
    store: &'g S,
    key: &[u8],
    guard: &'g Guard,
    decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
) -> Result<(), Busy> {
    store.step(key, guard, &mut Trip::new(), &mut |current| {
        KeyStep::of(decide(current))
    })
}

/// [`Backend::update_batch`](crate::Backend::update_batch) for any store that can step.
pub(crate) fn update_batch<R: Release, S: Stepwise<R>>(
    store: &S,
    keys: &[&[u8]],
    pinning: Pinning<'_>,
    plan: &mut dyn Plan<R>,
) -> Result<bool, Busy> {
    debug_assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "keys ascend");
    let mut open = Open {
        batch: Batch::new(keys.len()),
        ended: false,
        store,
        pinning,
    };
    let mut trip = Trip::new();
    for (piece, some) in keys.chunks(PIECE).enumerate() {
        open.pinning.pause();
        store.approach(some, open.pinning.guard());
        for (at, key) in some.iter().enumerate() {
            match open.decide(piece * PIECE + at, key, &mut trip, plan)? {
                Then::Next => {}
                Then::Build(index) => open.build(index, plan),
                Then::Abort => return Ok(false),
            }
        }
    }
    open.commit();
    Ok(true)
}

/// [`Backend::update_alone`](crate::Backend::update_alone) for any store that can step: a batch of one key whose
/// change is put off until no lock is held.
pub(crate) fn update_alone<'g, R: Release, S: Stepwise<R>>(
    store: &'g S,
    key: &[u8],
    guard: &'g Guard,
    decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
) -> Result<(), Busy> {
    let mut plan = Alone(decide);
    update_batch(store, &[key], Pinning::Callers(guard), &mut plan).map(|_| ())
}

/// The plan of a batch of one key, decided while the key alone is held. The batch is pinned by a guard of the
/// lifetime `'g`.
struct Alone<'a, 'g, R: Release>(&'a mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>);

impl<R: Release> Plan<R> for Alone<'_, '_, R> {
    fn decide(&mut self, _: usize, _: Option<&Record<R>>) -> Change<R> {
        Change::Later
    }

    fn build(&mut self, _: usize, current: Option<&Record<R>>) -> Change<R> {
        // SAFETY: the record was found under the guard of the lifetime `'g`, and is not retired before its key
        // is let go (B3): so it lives as long as the guard.
        (self.0)(current.map(|record| unsafe { &*ptr::from_ref(record) }))
    }
}

/// What follows the decision about a key.
enum Then {
    Next,
    /// Make the record for the key with this index, which is held.
    Build(usize),
    Abort,
}

/// A batch that is undone unless it commits: because its plan said so, because another batch was in
/// the way, or because the plan panicked. Its records would hold their keys for ever, and their
/// stamps would name entries that are gone.
struct Open<'a, R: Release, S: Stepwise<R>> {
    batch: Batch<R>,
    ended: bool,
    store: &'a S,
    pinning: Pinning<'a>,
}

impl<R: Release, S: Stepwise<R>> Open<'_, R, S> {
    #[inline]
    fn decide(
        &mut self,
        index: usize,
        key: &[u8],
        trip: &mut Trip,
        plan: &mut dyn Plan<R>,
    ) -> Result<Then, Busy> {
        let Open {
            batch,
            store,
            pinning,
            ..
        } = self;
        let mut then = Then::Next;
        store.step(
            key,
            pinning.guard(),
            trip,
            &mut |current| match plan.decide(index, current) {
                Change::Keep if batch.is_single() => KeyStep::Keep,
                Change::Keep => batch.keep(key, current),
                Change::Put(record) => KeyStep::Install(batch.stamp(record, current)),
                Change::Later => {
                    then = Then::Build(index);
                    KeyStep::Install(batch.hold(key, current))
                }
                Change::Remove | Change::Abort => {
                    then = Then::Abort;
                    KeyStep::Keep
                }
            },
        )?;
        Ok(then)
    }

    /// Makes the record for the key that was held last.
    #[cold]
    fn build(&mut self, index: usize, plan: &mut dyn Plan<R>) {
        let entry = self.batch.last();
        // SAFETY: the key is held, so the record before lives, pinned or not (B3).
        let before = unsafe { entry.before() };
        let Installed::Hold(hold) = entry.installed() else {
            unreachable!("the key was held");
        };
        self.pinning.pause();
        let change = plan.build(index, before);
        let guard = self.pinning.guard();
        // SAFETY: a record that only holds its key stays in the store until the batch takes it out (B5).
        let held = unsafe { &*hold };
        match change {
            Change::Put(record) => {
                let record = self.batch.stamp_again(record).into_raw();
                // SAFETY: it is the store's now, where it stays until the batch ends (B5).
                let record = unsafe { &*record };
                self.store.exchange(held, Some(record), guard);
            }
            Change::Remove if self.batch.is_single() => {
                self.batch.last().install(&Installed::Nothing);
                self.store.remove_held(held, before, guard);
            }
            // The hold stays until the batch ends.
            _ => return,
        }
        // SAFETY: its batch has just taken it out of the store (B5).
        unsafe { record::retire(hold, guard) };
    }

    fn commit(mut self) {
        self.ended = true;
        self.batch
            .end(State::Committed, self.store, &mut self.pinning);
    }
}

impl<R: Release, S: Stepwise<R>> Drop for Open<'_, R, S> {
    fn drop(&mut self) {
        if !self.ended {
            self.batch
                .end(State::Aborted, self.store, &mut self.pinning);
        }
    }
}

/// A batch being made: one block of the slab, so that its entries do not move. Ends by
/// [`end`](Batch::end).
struct Batch<R: Release>(NonNull<BatchHeader<R>>);

/// What the block begins with; the entries follow.
#[repr(C)]
struct BatchHeader<R: Release> {
    shared: BatchState,
    /// How many entries there are, and for how many there is room.
    len: usize,
    room: usize,
    entries: [Entry<Record<R>>; 0],
}

impl<R: Release> Batch<R> {
    fn new(keys: usize) -> Self {
        let block = slab::allocate(Self::bytes(keys)).cast::<BatchHeader<R>>();
        // SAFETY: the block is new, and large enough for its head.
        unsafe {
            block.write(BatchHeader {
                shared: BatchState::new(),
                len: 0,
                room: keys,
                entries: [],
            });
        }
        Batch(block)
    }

    fn bytes(keys: usize) -> usize {
        size_of::<BatchHeader<R>>() + keys * size_of::<Entry<Record<R>>>()
    }

    fn head(&self) -> &BatchHeader<R> {
        // SAFETY: the block is ours, and begins with a head.
        unsafe { self.0.as_ref() }
    }

    /// Whether it is a batch of one key.
    fn is_single(&self) -> bool {
        self.head().room == 1
    }

    /// The place of entry `index`; there is room for it if it is below `room`.
    fn place(&self, index: usize) -> *mut Entry<Record<R>> {
        let block = self.0.as_ptr();
        // SAFETY: the block is ours, and entries follow its head.
        let first = unsafe { (&raw mut (*block).entries).cast::<Entry<Record<R>>>() };
        first.wrapping_add(index)
    }

    /// The entries that were made so far.
    fn entries(&self) -> &[Entry<Record<R>>] {
        // SAFETY: so many entries were written, one behind the other.
        unsafe { std::slice::from_raw_parts(self.place(0), self.head().len) }
    }

    /// The entry that was made last.
    fn last(&self) -> &Entry<Record<R>> {
        self.entries().last().expect("a key has an entry")
    }

    /// An entry for the next key.
    fn entry(&mut self, before: Option<&Record<R>>) -> &Entry<Record<R>> {
        let len = self.head().len;
        assert!(len < self.head().room, "each key is stamped once");
        let place = self.place(len);
        let block = self.0.as_ptr();
        // SAFETY: there is room for this entry, to which no other thread has a pointer yet; the shared part
        // is in the same block, so it lives as long (B4). Only `len` of the head is written, which no reader
        // accesses.
        unsafe {
            let shared = &raw const (*block).shared;
            let before = before.map_or(ptr::null(), ptr::from_ref);
            place.write(Entry::new(shared, before));
            (&raw mut (*block).len).write(len + 1);
        }
        self.last()
    }

    /// What is done with a key that stays as it is.
    fn keep(&mut self, key: &[u8], current: Option<&Record<R>>) -> KeyStep<R> {
        let next = self.place(self.head().len);
        let Some(kept) = current.filter(|record| record.has_room_for(next)) else {
            return KeyStep::Install(self.hold(key, current));
        };
        let entry = self.entry(current);
        entry.install(&Installed::Kept(ptr::from_ref(kept).cast_mut()));
        kept.set_stamp(ptr::from_ref(entry).cast_mut());
        KeyStep::Keep
    }

    /// The record of a key that only holds it.
    #[cold]
    fn hold(&mut self, key: &[u8], before: Option<&Record<R>>) -> RecordBox<R> {
        let hold = RecordBox::new(key, &[], false);
        stamped(hold, self.entry(before), Installed::Hold)
    }

    fn stamp(&mut self, record: RecordBox<R>, before: Option<&Record<R>>) -> RecordBox<R> {
        stamped(record, self.entry(before), Installed::Put)
    }

    /// Stamps the record that takes the place of the hold that was made last.
    fn stamp_again(&self, record: RecordBox<R>) -> RecordBox<R> {
        stamped(record, self.last(), Installed::Put)
    }

    /// Ends the batch as committed, after which its records stay, or as aborted: then what was there before
    /// takes their places again.
    fn end<S: Stepwise<R>>(&self, state: State, store: &S, pinning: &mut Pinning<'_>) {
        // The thread is pinned when the state changes, so readers that it makes blind for what was before
        // are no older than what is retired.
        pinning.guard();
        self.head().shared.end(state);
        for (index, entry) in self.entries().iter().enumerate() {
            if index % PIECE == PIECE - 1 {
                pinning.pause();
            }
            let guard = pinning.guard();
            // SAFETY: until the key is let go here, the record before is not retired (B3), and what is installed
            // is in the store (B5).
            unsafe {
                let before = entry.before();
                match (entry.installed(), state) {
                    (Installed::Nothing, _) => {}
                    (Installed::Kept(record), _) => clear(record),
                    (Installed::Put(record), State::Committed) => {
                        clear(record);
                        // The batch took the record before out of the store, and since the commit no
                        // reader that pins looks through to it.
                        if let Some(before) = before {
                            record::retire(ptr::from_ref(before).cast_mut(), guard);
                        }
                    }
                    (Installed::Hold(record) | Installed::Put(record), _) => {
                        store.exchange(&*record, before, guard);
                        record::retire(record, guard);
                    }
                }
            }
        }
        self.retire(pinning.guard());
    }

    /// Frees the batch after a grace period, since readers may still hold its entries (B4).
    fn retire(&self, guard: &Guard) {
        unsafe fn free<R: Release>(raw: *mut u8) {
            // SAFETY: `retire` hands over a block that begins with a head, whose entries need no care.
            unsafe {
                let block = NonNull::new_unchecked(raw.cast::<BatchHeader<R>>());
                let bytes = Batch::<R>::bytes(block.as_ref().room);
                block.drop_in_place();
                slab::free(block.cast(), bytes);
            }
        }
        let bytes = Self::bytes(self.head().room);
        // SAFETY: no stamp of a record that is in the store names an entry of this batch any more (B4),
        // and stamps of records that were taken out are read only by readers pinned before. A batch ends
        // once.
        unsafe { guard.retire(self.0.as_ptr().cast(), bytes, free::<R>) };
    }
}

/// The record with the stamp of an entry, which is told of it.
fn stamped<R: Release>(
    record: RecordBox<R>,
    entry: &Entry<Record<R>>,
    installed: fn(*mut Record<R>) -> Installed<Record<R>>,
) -> RecordBox<R> {
    let record = record.with_room_for(entry).into_raw();
    entry.install(&installed(record));
    // SAFETY: just given away by its box.
    let record = unsafe { RecordBox::from_raw(record) };
    record.set_stamp(ptr::from_ref(entry).cast_mut());
    record
}

/// Takes the stamp of a batch from one of its records.
///
/// # Safety
/// The record is in the store.
unsafe fn clear<R: Release>(record: *mut Record<R>) {
    // SAFETY: the contract; it stays there at least until its stamp is cleared (B5).
    unsafe { &*record }.set_stamp(ptr::null_mut());
}

/// How long a writer waits for a batch before it reports [`Busy`].
#[cfg(not(any(loom, shuttle)))]
const PATIENCE: Duration = Duration::from_micros(200);

/// The waiting of one writer for batches in its way.
pub(crate) struct HeldKeyWait(Option<Instant>);

impl HeldKeyWait {
    pub(crate) fn new() -> Self {
        HeldKeyWait(None)
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
