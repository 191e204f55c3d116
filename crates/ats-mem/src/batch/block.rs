//! A batch in memory: its state and its entries, in one block of the slab.

use super::pinning::{PIECE, Pinning};
use super::stepwise::{KeyStep, Stepwise};
use crate::read_points::{CommitTime, ReadPoints, RemovedAt, Tick};
use crate::record::entry::{BatchState, Entry, Installed, State};
use crate::record::{self, Old, Record, RecordBox, Release, Weight};
use crate::slab;
use ats_sync::Guard;
use std::ptr::{self, NonNull};

/// The end of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Commit,
    Abort,
}

/// A batch under construction: one block of the slab, so that its entries do not move.
/// [`end`](Batch::end) ends it.
pub(super) struct Batch<R: Release>(NonNull<BatchHeader<R>>);

/// The head of the block; the entries follow.
#[repr(C)]
struct BatchHeader<R: Release> {
    shared: BatchState,
    /// Number of entries, and the largest possible number.
    len: usize,
    capacity: usize,
    /// Number of entries whose records have been put.
    put: u32,
    /// Change of the totals by the commit.
    weight: Weight,
    entries: [Entry<Record<R>>; 0],
}

impl<R: Release> Batch<R> {
    pub(super) fn new(keys: usize) -> Self {
        let block = slab::allocate(Self::bytes(keys)).cast::<BatchHeader<R>>();
        // SAFETY: the block is new, and large enough for its head.
        unsafe {
            block.write(BatchHeader {
                shared: BatchState::new(),
                len: 0,
                capacity: keys,
                put: 0,
                weight: Weight::NONE,
                entries: [],
            });
        }
        Batch(block)
    }

    /// Makes this batch, which has no entries yet, one of a group that `leader` leads: see
    /// [`commit`](Self::commit).
    pub(super) fn follow(&mut self, leader: &Self) {
        // SAFETY: the block is ours until the batch ends (BATCH-4), and without entries no other
        // thread has a pointer to its head.
        unsafe { (*self.0.as_ptr()).shared.follow(&leader.head().shared) };
    }

    fn bytes(keys: usize) -> usize {
        size_of::<BatchHeader<R>>() + keys * size_of::<Entry<Record<R>>>()
    }

    fn head(&self) -> &BatchHeader<R> {
        // SAFETY: the block is ours until the batch ends (BATCH-4), and begins with a head.
        unsafe { self.0.as_ref() }
    }

    /// Returns `true` if this is a batch of one key.
    pub(super) fn is_single(&self) -> bool {
        self.head().capacity == 1
    }

    /// Returns the address of entry `index`, which has room if it is below `capacity`.
    fn address_of(&self, index: usize) -> *mut Entry<Record<R>> {
        let block = self.0.as_ptr();
        // SAFETY: the block is ours until the batch ends (BATCH-4), and entries follow its head.
        let first = unsafe { (&raw mut (*block).entries).cast::<Entry<Record<R>>>() };
        first.wrapping_add(index)
    }

    /// Returns the entries made so far.
    pub(super) fn entries(&self) -> &[Entry<Record<R>>] {
        // SAFETY: `len` entries were written contiguously, and they live as long as the batch
        // (BATCH-4).
        unsafe { std::slice::from_raw_parts(self.address_of(0), self.head().len) }
    }

    /// Returns the last entry.
    pub(super) fn last(&self) -> &Entry<Record<R>> {
        self.entries().last().expect("a key has an entry")
    }

    /// Adds an entry for the next key.
    fn entry(&mut self, before: Option<&Record<R>>) -> &Entry<Record<R>> {
        let len = self.head().len;
        assert!(len < self.head().capacity, "each key is stamped once");
        let address = self.address_of(len);
        let block = self.0.as_ptr();
        // SAFETY: the block has room for this entry, to which no other thread has a pointer yet;
        // the shared part is in the same block, so it lives as long (BATCH-4). Only `len` of the
        // head is written, which no reader accesses.
        unsafe {
            let shared = &raw const (*block).shared;
            let before = before.map_or(ptr::null(), ptr::from_ref);
            address.write(Entry::new(shared, before));
            (&raw mut (*block).len).write(len + 1);
        }
        self.last()
    }

    /// Keeps a key unchanged.
    pub(super) fn keep(&mut self, key: &[u8], current: Option<&Record<R>>) -> KeyStep<R> {
        let next = self.address_of(self.head().len);
        let Some(kept) = current.filter(|record| record.has_room_for(next)) else {
            return KeyStep::Install(self.hold(key, current));
        };
        let entry = self.entry(current);
        entry.install(&Installed::Kept(ptr::from_ref(kept).cast_mut()));
        kept.set_stamp(ptr::from_ref(entry).cast_mut());
        KeyStep::Keep
    }

    /// Returns a record that only holds its key.
    #[cold]
    pub(super) fn hold(&mut self, key: &[u8], before: Option<&Record<R>>) -> RecordBox<R> {
        let hold = RecordBox::new(key, &[], false);
        with_stamp(hold, self.entry(before), Installed::Hold)
    }

    pub(super) fn stamp(
        &mut self,
        record: RecordBox<R>,
        before: Option<&Record<R>>,
    ) -> RecordBox<R> {
        let record = with_stamp(record, self.entry(before), Installed::Put);
        self.count(&record, before);
        record
    }

    /// Adds the visibility of a record to the change of the totals.
    fn count(&mut self, record: &Record<R>, before: Option<&Record<R>>) {
        let more = Weight::of_put(record, before);
        // SAFETY: the block is ours until the batch ends (BATCH-4), and readers do not access these
        // fields of its head.
        unsafe {
            (*self.0.as_ptr()).put += 1;
            (*self.0.as_ptr()).weight += more;
        }
    }

    /// Stamps the record that replaces the hold of the key with this index.
    pub(super) fn stamp_again(
        &mut self,
        index: usize,
        record: RecordBox<R>,
        before: Option<&Record<R>>,
    ) -> RecordBox<R> {
        let record = with_stamp(record, &self.entries()[index], Installed::Put);
        self.count(&record, before);
        record
    }

    /// Makes the hold of the key with this index its removal.
    pub(super) fn remove(&mut self, index: usize, hold: *mut Record<R>, before: &Record<R>) {
        self.entries()[index].install(&Installed::Removal(hold));
        let less = Weight::NONE - R::weight(before);
        // SAFETY: the block is ours until the batch ends (BATCH-4), and readers do not access this
        // field of its head.
        unsafe { (*self.0.as_ptr()).weight += less };
    }

    /// Ends the batch: commits it, after which its records stay, or aborts it, after which the
    /// records before are restored.
    pub(super) fn end<S: Stepwise<R> + ?Sized>(
        &self,
        ending: Ending,
        store: &S,
        pinning: &mut Pinning<'_>,
    ) {
        let time = self.conclude(ending, store, pinning);
        self.release(ending, time, store, pinning);
    }

    /// Commits or aborts the batch, whose keys stay held. Returns the time for
    /// [`release`](Self::release), before which the thread stays pinned if it pins for itself.
    #[inline(always)]
    fn conclude<S: Stepwise<R> + ?Sized>(
        &self,
        ending: Ending,
        store: &S,
        pinning: &mut Pinning<'_>,
    ) -> CommitTime {
        // The thread is pinned when the state changes: the readers that can no longer see the
        // records before are pinned no later than these are retired.
        let guard = pinning.guard();
        match ending {
            Ending::Commit => self.commit(store, guard, &mut || ()),
            Ending::Abort => {
                self.head().shared.end(State::Aborted);
                CommitTime(None)
            }
        }
    }

    /// Releases the keys, after the batch has [concluded](Self::conclude).
    #[inline(always)]
    pub(super) fn release<S: Stepwise<R> + ?Sized>(
        &self,
        ending: Ending,
        time: CommitTime,
        store: &S,
        pinning: &mut Pinning<'_>,
    ) {
        for (index, entry) in self.entries().iter().enumerate() {
            if index % PIECE == PIECE - 1 {
                pinning.pause();
            }
            let guard = pinning.guard();
            // SAFETY: until the key is released here, the record before is not retired (BATCH-3),
            // and the installed record is in the store (BATCH-5).
            unsafe {
                let before = entry.before();
                match (entry.load_installed(), ending) {
                    (Installed::Nothing, _) => {}
                    (Installed::Kept(record), _) => clear(record),
                    (Installed::Put(record), Ending::Commit) => {
                        // The batch removed the record before from the store, and since the commit
                        // only running snapshot queries look through to it.
                        if let Some(before) = self.date(record, before, time.0, store, guard) {
                            record::retire(before, guard);
                        }
                    }
                    (Installed::Removal(hold), Ending::Commit) => {
                        store.remove_held(&*hold, before, RemovedAt::Commit(time), guard);
                        record::retire(hold, guard);
                    }
                    (
                        Installed::Hold(record)
                        | Installed::Put(record)
                        | Installed::Removal(record),
                        _,
                    ) => {
                        store.exchange(&*record, before, guard);
                        record::retire(record, guard);
                    }
                }
            }
        }
        self.retire(pinning.guard());
    }

    /// Clears the stamp of a record that the batch has put, or replaces it by a version. Returns
    /// the record to retire.
    ///
    /// # Safety
    /// The record must be in the store, and stamped by the batch, which has committed.
    unsafe fn date<S: Stepwise<R> + ?Sized>(
        &self,
        record: *mut Record<R>,
        before: Option<&Record<R>>,
        tick: Option<Tick>,
        store: &S,
        guard: &Guard,
    ) -> Option<*mut Record<R>> {
        let (Some(tick), Some(read_points)) = (tick, store.read_points()) else {
            // SAFETY: the caller promises that the record is in the store.
            unsafe { clear(record) };
            return before.map(|before| ptr::from_ref(before).cast_mut());
        };
        // SAFETY: the caller promises that the record is in the store, where it stays at least
        // until its stamp is cleared (BATCH-5).
        let record = unsafe { &*record };
        let (fresh, old) = read_points.date_at((tick, None), record, before.map(Old::Seen), guard);
        read_points.list(fresh, guard);
        old.map(|old| old.pointer())
    }

    /// Commits the batch, and then calls `then`, still inside the store: no query begins meanwhile.
    /// The leader of a group commits in the innermost of these calls, by which all batches of the
    /// group become visible (BATCH-7). Returns the clock at the commit, if queries run.
    #[inline(always)]
    pub(super) fn commit<S: Stepwise<R> + ?Sized>(
        &self,
        store: &S,
        guard: &Guard,
        then: &mut dyn FnMut(),
    ) -> CommitTime {
        let head = self.head();
        let put = self
            .entries()
            .iter()
            .find_map(|entry| match entry.load_installed() {
                // SAFETY: the installed record is in the store until the batch ends (BATCH-5).
                Installed::Put(record) | Installed::Removal(record) => Some(unsafe { &*record }),
                _ => None,
            });
        let Some(put) = put else {
            head.shared.end(State::Committed(0));
            then();
            return CommitTime(None);
        };
        let mut tick = None;
        store.commit(put.key(), (head.weight, head.put), guard, &mut || {
            // The versions of its records have the same time: the clock is read once.
            tick = store.read_points().and_then(ReadPoints::tick);
            let time = || store.read_points().map_or(0, ReadPoints::time);
            let time = tick.map_or_else(time, Tick::time);
            head.shared.end(State::Committed(time));
            then();
        });
        CommitTime(tick)
    }

    /// Frees the batch after a grace period, because readers may still use its entries (BATCH-4).
    /// The leader of a group is the last one of it to get here (BATCH-7).
    fn retire(&self, guard: &Guard) {
        unsafe fn free<R: Release>(raw: *mut u8) {
            // SAFETY: the block from `retire` begins with a head, and no stamp names its entries
            // (BATCH-4).
            unsafe {
                let block = NonNull::new_unchecked(raw.cast::<BatchHeader<R>>());
                let bytes = Batch::<R>::bytes(block.as_ref().capacity);
                block.drop_in_place();
                slab::free(block.cast(), bytes);
            }
        }
        let bytes = Self::bytes(self.head().capacity);
        // SAFETY: no stamp of a record that is in the store names an entry of this batch any more
        // (BATCH-4), and only readers pinned before read stamps of removed records. A batch ends
        // once.
        unsafe { guard.retire(self.0.as_ptr().cast(), bytes, free::<R>) };
    }
}

/// Stamps a record with an entry, and installs it there.
fn with_stamp<R: Release>(
    record: RecordBox<R>,
    entry: &Entry<Record<R>>,
    installed: fn(*mut Record<R>) -> Installed<Record<R>>,
) -> RecordBox<R> {
    let record = record.with_room_for(entry).into_raw();
    entry.install(&installed(record));
    // SAFETY: `into_raw` has just released the record, and no other code has it yet.
    let record = unsafe { RecordBox::from_raw(record) };
    record.set_stamp(ptr::from_ref(entry).cast_mut());
    record
}

/// Clears the stamp of a record of the batch.
///
/// # Safety
/// The record must be in the store.
unsafe fn clear<R: Release>(record: *mut Record<R>) {
    // SAFETY: the caller promises that the record is in the store, where it stays at least until
    // its stamp is cleared (BATCH-5).
    unsafe { &*record }.set_stamp(ptr::null_mut());
}
