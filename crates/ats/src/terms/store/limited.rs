//! Records with limits: a store in memory whose records expire, or which has a bound of their
//! number or of its memory.
//!
//! Each record has a [note](crate::terms::note) with its deadline. A reader that finds a record
//! past its deadline finds none, and so does a writer, under the lock of the key: an object is gone
//! at its deadline for everybody. The record itself is removed soon after, in slices: by the
//! background thread, by callers that count objects, and by queries of a moment before they begin.
//! So the records of a moment are those that had not expired at its begin, and the queries need not
//! look at deadlines.
//!
//! The deadline of a record is set when the record is published, under the lock of its key, and
//! changes only there; reading an object that expires when it is *idle* puts it off without a lock,
//! at most sixteen times in the interval.
//!
//! The deadlines are in a [list](deadlines), which costs a key and 14 bytes for each object that
//! expires, and is tidied when most of its entries are stale.
//!
//! The objects of a key of a bag have one deadline.
//!
//! A store with a bound removes records when an insert brings more, in the order of its [queues],
//! before the insert returns. It stops at a key that is held: a list is being written then, whose
//! end makes room. An entry of a queue is stale like one of a deadline, and is taken when its turn
//! comes.
//!
//! Who finds that a record has expired, and replaces or removes it, marks it as *told* before that:
//! its deadline becomes 0. So a record is counted, and told to an [`OnGone`], once, even if the
//! change is undone.
//!
//! # Invariants
//! - LIMITED-1. All records have a note.
//! - LIMITED-2. If a record has a deadline and is not told, the list has an entry for it that has
//!   its token and is due at the deadline or before it, unless a thread that holds `sweeping` has
//!   taken the entry. Such a thread then removes the record, or adds an entry.
//! - LIMITED-3. If the store has a bound, a queue has an entry for each record that has its token,
//!   unless a thread has taken the entry. Such a thread then removes the record, or puts the entry
//!   back.

mod clock;
mod deadlines;
mod gone;
mod pieces;
mod queues;

use super::records::{Decide, TableRecords, Visit, Walked};
use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::note::{Dating, NEVER, Note, READS_MOST};
use crate::terms::value::{Rec, Values};
use ats_mem::read_points::{Query, ReadPoints};
use ats_mem::{
    BatchPlan, Busy, Change, ReadPoint, RecordBox, Totals, Transaction, Upkeep, Walk, When,
};
use ats_store::{End, SlotAnswer};
use ats_sync::clock::LATE;
use ats_sync::counter::thread_number;
use ats_sync::{Guard, ShardedCounter};
use ats_term::image::Host;
use deadlines::{Deadlines, Due};
pub use gone::{Gone, OnGone};
use queues::{Candidate, Queues};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::time::Duration;

/// The number of entries that are handled while `sweeping` is locked.
const SWEPT_AT_ONCE: usize = 64;
/// The number of records that a caller removes that must not work for long.
const SWEPT_BY_CALLER: usize = 1024;
/// A list with this many entries more than twice the number of records is tidied.
const SPARE_ENTRIES: usize = 4096;
/// The approximate bytes of the lists of a few objects.
const LISTS_BYTES: usize = 512;
/// The number of entries of deadlines at which an eviction looks if many are stale.
const TIDIED_AT_ONCE: usize = 8;
/// The number of objects that are kept in a row because they were read; the next one goes. Without
/// it an insert into a table in which all was read would look at all of it.
const KEPT_MOST: usize = 1000;
/// The reads for which an object at the end of the small queue moves to the main queue.
const READS_OF_MAIN: u8 = 2;
/// The deadline of a record that has expired and was counted.
const TOLD: u64 = 0;
/// The number of reads by a key of which about one is counted, for all of them: counting each would
/// let readers write to the same memory.
const READS_COUNTED_AS_ONE: u32 = 64;
/// Divisor of the interval of an idle object: reading puts the deadline off if this part of the
/// interval has passed.
const IDLE_PART: u64 = 16;

/// Puts the clock by which objects expire ahead, for tests, in all tables of the process.
#[cfg(feature = "forcing")]
pub fn advance_clock(time: Duration) {
    clock::AHEAD.fetch_add(milliseconds(time), Ordering::Relaxed);
}

/// The time after which the objects of a table expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The time since the object was written.
    Written(Duration),
    /// The time since the object was written, less a random part of it that is up to this many
    /// percent, 99 at most: so objects that are written together do not expire together.
    Spread(Duration, u8),
    /// The time since the object was written or read by its key.
    Idle(Duration),
    /// Infinite: objects expire only if they are written with a time of their own.
    Never,
}

/// The time that is left to the objects of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeLeft {
    /// A time, in whole milliseconds.
    Time(Duration),
    /// No end.
    Forever,
}

/// Returns a token. Two threads may take the same one, at worst for records of the same key, so
/// that a stale entry is taken for a current one.
fn next_token() -> u16 {
    thread_local! {
        static LAST: Cell<u16> = Cell::new((thread_number() * 1009) as u16);
    }
    LAST.with(|last| {
        last.set(Note::next_token(last.get()));
        last.get()
    })
}

/// Returns `true` for about one call in [`READS_COUNTED_AS_ONE`], at random, so that reads in a
/// rhythm are counted right. (A linear congruential generator: Knuth's constant, the upper bits.)
#[inline]
fn is_sample() -> bool {
    thread_local! {
        static STATE: Cell<u32> = const { Cell::new(1) };
    }
    STATE.with(|state| {
        let next = state
            .get()
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        state.set(next);
        next < u32::MAX / READS_COUNTED_AS_ONE
    })
}

/// Returns a random number, by xorshift (Marsaglia, 2003).
fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = {
            let thread = (thread_number() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Cell::new(clock::now() ^ thread)
        };
    }
    STATE.with(|state| {
        let mut number = state.get().max(1);
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        state.set(number);
        number
    })
}

/// Returns a duration in milliseconds, rounded up, from 1 to [`NEVER`].
pub(crate) fn milliseconds(time: Duration) -> u64 {
    let ms = time.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(NEVER).clamp(1, NEVER)
}

/// The limits of a table: see [`Table::limited`](crate::terms::Table::limited).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time after which objects expire.
    pub ttl: Ttl,
    /// The most objects. The objects of a key of a bag go together.
    pub objects: Option<usize>,
    /// The most bytes of memory, as [`Table::about_bytes`](crate::terms::Table::about_bytes)
    /// returns them.
    pub bytes: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            ttl: Ttl::Never,
            objects: None,
            bytes: None,
        }
    }
}

impl Limits {
    fn has_bound(self) -> bool {
        self.objects.is_some() || self.bytes.is_some()
    }
}

impl Ttl {
    fn milliseconds(self) -> u64 {
        match self {
            Ttl::Written(time) | Ttl::Spread(time, _) | Ttl::Idle(time) => milliseconds(time),
            Ttl::Never => NEVER,
        }
    }

    /// Returns the time of an object that is written now, in milliseconds.
    fn of_object(self) -> u64 {
        let most = self.milliseconds();
        match self {
            Ttl::Spread(_, percent) => {
                let part = most * u64::from(percent.min(99)) / 100;
                most - random() % (part + 1)
            }
            _ => most,
        }
    }
}

/// The owner of a store, who removes its expired records, and stale entries, now and then.
pub(crate) trait OnFirstEntry: Send + Sync {
    /// Begins with that: there are entries.
    fn has_entries(self: Arc<Self>);
}

/// A store with limits. See the [module](self).
pub(crate) struct Limited<S, H: Host> {
    records: S,
    limits: Limits,
    /// The queues of a store with a bound.
    queues: Option<Mutex<Queues>>,
    /// The time of the table in milliseconds.
    interval: u64,
    deadlines: Deadlines,
    /// Held by the thread that removes expired records.
    sweeping: Mutex<()>,
    /// The bytes of the store without records.
    empty_bytes: OnceLock<usize>,
    expired: ShardedCounter,
    evicted: ShardedCounter,
    hits: ShardedCounter,
    misses: ShardedCounter,
    owner: OnceLock<Weak<dyn OnFirstEntry>>,
    on_gone: Option<Arc<dyn OnGone<H>>>,
    /// `true` if the store was taken out of its table, so that its records are not told any more.
    is_taken_out: AtomicBool,
}

impl<S, H: Host> Limited<S, H> {
    /// Returns a store of these records, which are empty, with a collector of those that are gone.
    pub(crate) fn new(records: S, limits: Limits, on_gone: Option<Arc<dyn OnGone<H>>>) -> Self {
        Limited {
            records,
            limits,
            queues: limits.has_bound().then(Mutex::default),
            interval: limits.ttl.milliseconds(),
            deadlines: Deadlines::new(),
            sweeping: Mutex::new(()),
            empty_bytes: OnceLock::new(),
            expired: ShardedCounter::new(),
            evicted: ShardedCounter::new(),
            hits: ShardedCounter::new(),
            misses: ShardedCounter::new(),
            owner: OnceLock::new(),
            on_gone,
            is_taken_out: AtomicBool::new(false),
        }
    }

    /// Notes that the store was taken out of its table.
    pub(crate) fn set_taken_out(&self) {
        self.is_taken_out.store(true, Ordering::Relaxed);
    }

    /// Returns the collector of records that are gone.
    pub(crate) fn on_gone(&self) -> Option<Arc<dyn OnGone<H>>> {
        self.on_gone.clone()
    }

    /// Returns the store without deadlines.
    pub(crate) fn records(&self) -> &S {
        &self.records
    }

    /// Returns the store without deadlines.
    pub(crate) fn records_mut(&mut self) -> &mut S {
        &mut self.records
    }

    /// Returns the limits.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    fn queues(&self) -> Option<MutexGuard<'_, Queues>> {
        // Only the system can fail while they are locked, for lack of memory, which ends the
        // process.
        let queues = self.queues.as_ref()?;
        Some(queues.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the owner, once.
    pub(crate) fn set_owner(&self, owner: Weak<dyn OnFirstEntry>) {
        let _ = self.owner.set(owner);
    }

    /// Returns the number of records that have expired and were removed.
    pub(crate) fn expired(&self) -> u64 {
        u64::try_from(self.expired.sum()).unwrap_or(0)
    }

    /// Returns the number of records that were removed because there were too many.
    pub(crate) fn evicted(&self) -> u64 {
        u64::try_from(self.evicted.sum()).unwrap_or(0)
    }

    /// Returns about how many reads by a key have found objects.
    pub(crate) fn hits(&self) -> u64 {
        u64::try_from(self.hits.sum()).unwrap_or(0)
    }

    /// Returns about how many reads by a key have found none.
    pub(crate) fn misses(&self) -> u64 {
        u64::try_from(self.misses.sum()).unwrap_or(0)
    }

    /// Returns the record of a key and notes that it was read. Counts neither a hit nor a miss.
    #[inline]
    pub(crate) fn look_up<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error>
    where
        S: TableRecords<H>,
    {
        let found = self.records.get(key, guard)?;
        Ok(found.filter(|record| self.read(record)))
    }

    /// Counts a hit or a miss, if the calling read is a sample. Returns what was found.
    #[inline]
    fn counted<'g>(&self, found: Option<&'g Rec<H>>) -> Option<&'g Rec<H>> {
        if is_sample() {
            let counter = if found.is_some() {
                &self.hits
            } else {
                &self.misses
            };
            counter.add(READS_COUNTED_AS_ONE.into());
        }
        found
    }

    /// Counts a record that was removed because it was too large.
    pub(crate) fn count_evicted(&self) {
        self.evicted.add(1);
    }

    /// Returns the approximate bytes of memory of the deadlines and the queues.
    fn bytes_of_lists(&self) -> usize {
        self.deadlines.bytes() + self.queues().map_or(0, |queues| queues.bytes())
    }

    /// Returns `true` if a record has not expired.
    #[inline]
    fn is_alive(record: &Rec<H>) -> bool {
        Note::of(record).is_none_or(Self::is_before)
    }

    /// Returns a record unless it has expired.
    #[inline]
    fn alive(record: Option<&Rec<H>>) -> Option<&Rec<H>> {
        record.filter(|record| Self::is_alive(record))
    }

    /// Returns `true` if the deadline of a record has not passed.
    #[inline]
    fn is_before(note: Note) -> bool {
        note.deadline == NEVER
            || clock::now_if_near(note.deadline).is_none_or(|now| note.deadline > now)
    }

    /// Returns `true` if a record that is read by its key has not expired, and puts its deadline
    /// off if that is due.
    #[inline]
    fn read(&self, record: &Rec<H>) -> bool {
        let Some(note) = Note::of(record) else {
            return true;
        };
        if !Self::is_before(note) {
            return false;
        }
        let counts = self.queues.is_some() && note.reads < READS_MOST;
        if counts || matches!(self.limits.ttl, Ttl::Idle(_)) && !note.is_fixed {
            self.note_read(note, record);
        }
        true
    }

    fn note_read(&self, note: Note, record: &Rec<H>) {
        let mut read = note;
        if self.queues.is_some() {
            read = read.read_again();
        }
        if matches!(self.limits.ttl, Ttl::Idle(_)) && !note.is_fixed {
            read.deadline = self.put_off(note.deadline);
        }
        if read != note {
            let _ = note.exchange(read, record);
        }
    }

    /// Returns the deadline of an idle record that is read: a later one if a part of the interval
    /// has passed.
    fn put_off(&self, deadline: u64) -> u64 {
        let passed = |now: u64| (now + self.interval).saturating_sub(deadline);
        let part = self.interval / IDLE_PART;
        if passed(clock::recent() + LATE) > part {
            let now = clock::now();
            if passed(now) > part {
                return (now + self.interval).min(NEVER - 1);
            }
        }
        deadline
    }

    /// Adds entries for a record: to the list of deadlines if it has one, and to a queue if the
    /// store has a bound. Returns their token.
    fn enter(&self, key: &[u8], deadline: u64, now: u64) -> u16 {
        let token = next_token();
        if let Some(mut queues) = self.queues() {
            queues.push(key, token);
            if queues.len() == 1 {
                drop(queues);
                self.notify_owner();
            }
        }
        if deadline != NEVER {
            self.enter_again(key, token, deadline, now);
        }
        token
    }

    fn enter_again(&self, key: &[u8], token: u16, deadline: u64, now: u64) {
        if self.deadlines.push(key, token, deadline, now) {
            self.notify_owner();
        }
    }

    /// Tells the owner that there is an entry.
    fn notify_owner(&self) {
        if let Some(owner) = self.owner.get().and_then(Weak::upgrade) {
            owner.has_entries();
        }
    }

    /// Returns the note of a record that is to replace `old`. The key is locked.
    fn note_for(&self, key: &[u8], dating: Dating, old: Option<&Rec<H>>) -> Note {
        let old = old.and_then(Note::of);
        // Reading the time takes as long as the rest.
        let has_times = !matches!(
            (dating, self.interval),
            (Dating::OfTable | Dating::Kept, NEVER) | (Dating::After(NEVER), _)
        ) || old.is_some_and(|note| note.deadline != NEVER);
        let now = if has_times { clock::now() } else { 0 };
        let after = |time: u64| {
            if time == NEVER {
                NEVER
            } else {
                (now + time).min(NEVER - 1)
            }
        };
        let alive = old.filter(|note| note.deadline > now);
        let of_table = || (after(self.limits.ttl.of_object()), false);
        let (deadline, is_fixed) = match (dating, alive) {
            (Dating::After(time), _) => (after(time), true),
            (Dating::Kept, Some(old))
                if old.is_fixed || !matches!(self.limits.ttl, Ttl::Idle(_)) =>
            {
                (old.deadline, old.is_fixed)
            }
            (Dating::Kept | Dating::OfTable, _) => of_table(),
        };
        // The entries of the old record serve the new one if they are due early enough.
        let is_early =
            |old: &Note| deadline == NEVER || old.deadline <= deadline && old.deadline != NEVER;
        let (token, reads) = match old.filter(is_early) {
            Some(old) => (old.token, old.read_again().reads),
            None if deadline == NEVER && self.queues.is_none() => (0, 0),
            None => (self.enter(key, deadline, now), 0),
        };
        Note {
            deadline,
            is_fixed,
            reads,
            token,
        }
    }

    /// Returns `true` if a record alone is too large for the bound.
    pub(crate) fn is_too_large(&self, record: &RecordBox<Values<H>>) -> bool
    where
        S: TableRecords<H>,
    {
        self.limits.bytes.is_some_and(|most| {
            let empty = self
                .empty_bytes
                .get_or_init(|| self.records.about_bytes() + LISTS_BYTES);
            record.bytes() + empty > most
        })
    }

    /// Returns the change of a key that has the record `old`, as a decision has made it; `None` if
    /// the new record alone is too large for the bound.
    fn dated_within(
        &self,
        key: &[u8],
        old: Option<&Rec<H>>,
        change: Change<Values<H>>,
    ) -> Option<Change<Values<H>>>
    where
        S: TableRecords<H>,
    {
        if let Change::Put(record) = &change
            && self.is_too_large(record)
        {
            return None;
        }
        Some(self.dated(key, old, change))
    }

    /// Returns the change of a key that has the record `old`, as a decision has made it.
    fn dated(
        &self,
        key: &[u8],
        old: Option<&Rec<H>>,
        change: Change<Values<H>>,
    ) -> Change<Values<H>> {
        match change {
            Change::Put(record) => {
                let dating = Dating::of(&record).unwrap_or(Dating::Kept);
                let note = self.note_for(key, dating, old);
                if let Some(old) = old {
                    let _ = self.note_if_expired(old);
                }
                Change::Put(note.put_before(record))
            }
            change => change,
        }
    }

    /// Returns `true` if a record has expired, and notes that it is gone, unless that was noted
    /// before. The key is locked.
    fn note_if_expired(&self, record: &Rec<H>) -> bool {
        let Some(note) = Note::of(record).filter(|note| !Self::is_before(*note)) else {
            return false;
        };
        if note.deadline == TOLD {
            return true;
        }
        let told = Note {
            deadline: TOLD,
            ..note
        };
        // A reader that found the record in time may put the deadline off at this moment.
        let is_gone = note.exchange(told, record);
        if is_gone {
            self.note_gone(Gone::Expired, record);
        }
        is_gone
    }

    /// Counts a record that is gone, and notes it for the collector.
    fn note_gone(&self, why: Gone, record: &Rec<H>) {
        match why {
            Gone::Expired => self.expired.add(1),
            Gone::Objects | Gone::Bytes => self.evicted.add(1),
        }
        if let Some(on_gone) = &self.on_gone
            && !self.is_taken_out.load(Ordering::Relaxed)
        {
            on_gone.note(why, LookupResult::new(record));
            self.notify_owner();
        }
    }
}

impl<S, H: Host> Limited<S, H> {
    /// Locks the removal of expired records.
    ///
    /// # Errors
    /// [`Error::Busy`] if another thread has locked it, and the calling thread must not wait.
    fn lock(&self) -> Result<MutexGuard<'_, ()>, Error> {
        match self.sweeping.try_lock() {
            Ok(locked) => Ok(locked),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if !ats_sync::lock::may_wait() => Err(Error::Busy),
            Err(TryLockError::WouldBlock) => {
                Ok(self.sweeping.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }

    /// Handles some entries that are due. Returns their number.
    fn sweep_some(&self, now: u64) -> Result<usize, Error>
    where
        S: TableRecords<H>,
    {
        let _sweeping = self.lock()?;
        if !self.deadlines.is_due(now) {
            return Ok(0);
        }
        let guard = ats_sync::pin();
        let taken = self.deadlines.take(now, SWEPT_AT_ONCE);
        let mut result = Ok(taken.len());
        for entry in &taken {
            let done = if result.is_err() {
                Err(Error::Busy)
            } else {
                self.sweep(entry, now, &guard)
            };
            if let Err(error) = done {
                // The entry is due at once again.
                self.enter_again(&entry.key, entry.token, entry.deadline.min(now), now);
                result = Err(error);
            }
        }
        result
    }

    /// Removes the record of an entry, if it has expired.
    fn sweep(&self, entry: &Due, now: u64, guard: &Guard) -> Result<(), Error>
    where
        S: TableRecords<H>,
    {
        if entry.deadline > now {
            self.enter_again(&entry.key, entry.token, entry.deadline, now);
            return Ok(());
        }
        let mut left = None;
        self.records
            .update_by(&entry.key, None, guard, &mut |current| {
                left = None;
                let Some((record, note)) = with_note(current) else {
                    return Change::Keep;
                };
                if note.token != entry.token || note.deadline == NEVER {
                    return Change::Keep;
                }
                if note.deadline <= now && self.note_if_expired(record) {
                    return Change::Remove;
                }
                left = Note::of(record).map(|note| note.deadline);
                Change::Keep
            })?;
        if let Some(deadline) = left {
            // The record was written, or read, again.
            self.enter_again(&entry.key, entry.token, deadline, now);
        }
        Ok(())
    }

    /// Removes all records that have expired, if an [`OnGone`] is told of them.
    pub(crate) fn sweep_if_told(&self) -> Result<(), Error>
    where
        S: TableRecords<H>,
    {
        match self.on_gone {
            Some(_) => self.sweep_all(),
            None => Ok(()),
        }
    }

    /// Removes all records that have expired.
    ///
    /// # Errors
    /// [`Error::Busy`] if the calling thread must not work for that long.
    pub(crate) fn sweep_all(&self) -> Result<(), Error>
    where
        S: TableRecords<H>,
    {
        let now = clock::now();
        let mut swept = 0;
        loop {
            // Another thread may have taken entries.
            let some = self.sweep_some(now)?;
            if some == 0 {
                return Ok(());
            }
            swept += some;
            if swept > SWEPT_BY_CALLER && !ats_sync::lock::may_wait() {
                return Err(Error::Busy);
            }
        }
    }

    /// Removes up to about `budget` records that have expired. Returns `true` if none is left.
    pub(crate) fn sweep_slice(&self, budget: usize) -> bool
    where
        S: TableRecords<H>,
    {
        let now = clock::now();
        let mut swept = 0;
        while self.deadlines.is_due(now) {
            if swept > budget {
                return false;
            }
            // A key that is held is tried again.
            match self.sweep_some(now) {
                Ok(some) => swept += some,
                Err(_) => return false,
            }
        }
        if let Some(on_gone) = &self.on_gone {
            on_gone.tell();
        }
        true
    }

    /// Returns a bound that does not hold.
    fn bound_passed(&self) -> Option<Gone>
    where
        S: TableRecords<H>,
    {
        let Limits { objects, bytes, .. } = self.limits;
        let are_many = |most| self.records.about_len().is_some_and(|len| len > most);
        let are_large = |most| self.records.about_bytes() + self.bytes_of_lists() > most;
        if objects.is_some_and(are_many) {
            return Some(Gone::Objects);
        }
        bytes.is_some_and(are_large).then_some(Gone::Bytes)
    }

    /// Removes some stale entries from the list of deadlines, if there are many, so that they do
    /// not take the room of objects.
    fn tidy_some(&self)
    where
        S: TableRecords<H>,
    {
        let entries = self.deadlines.len();
        let records = self.records.about_len().unwrap_or(entries);
        if entries > records + records / 4 + TIDIED_AT_ONCE
            && let Ok(_sweeping) = self.sweeping.try_lock()
        {
            let is_current = |entry: &Due| self.is_current(&entry.key, entry.token);
            self.deadlines.tidy(TIDIED_AT_ONCE, is_current);
        }
    }

    /// Removes objects until the bounds hold. The caller holds no key.
    fn make_room(&self)
    where
        S: TableRecords<H>,
    {
        let mut kept = 0;
        while let Some(why) = self.bound_passed() {
            self.tidy_some();
            let Some(candidate) = self.queues().and_then(|mut queues| queues.pop()) else {
                return;
            };
            match self.evict(&candidate, why, kept >= KEPT_MOST) {
                Ok(Evicted::No) => kept += 1,
                Ok(_) => kept = 0,
                Err(_) => {
                    // A list is being written, whose end makes room.
                    if let Some(mut queues) = self.queues() {
                        queues.put_back(&candidate);
                    }
                    return;
                }
            }
        }
    }

    /// Makes room after a change, unless it was refused because a record is larger than the bound.
    fn after_change(&self, is_larger: bool) -> Result<(), Error>
    where
        S: TableRecords<H>,
    {
        if is_larger {
            return Err(Error::Bound);
        }
        self.make_room();
        Ok(())
    }

    /// Removes the record of an entry that was taken, unless it was read and need not go; then the
    /// entry goes to the main queue.
    fn evict(&self, candidate: &Candidate, why: Gone, must_go: bool) -> Result<Evicted, Error>
    where
        S: TableRecords<H>,
    {
        let least = if candidate.is_of_main {
            1
        } else {
            READS_OF_MAIN
        };
        let guard = ats_sync::pin();
        let (mut done, mut removed) = (Evicted::Stale, None);
        self.records
            .update_by(&candidate.key, None, &guard, &mut |current| {
                (done, removed) = (Evicted::Stale, None);
                let Some((record, note)) = with_note(current) else {
                    return Change::Keep;
                };
                if note.token != candidate.token {
                    return Change::Keep;
                }
                if self.note_if_expired(record) {
                    return Change::Remove;
                }
                if must_go || note.reads < least {
                    (done, removed) = (Evicted::Yes, Some(record));
                    return Change::Remove;
                }
                let reads = if candidate.is_of_main {
                    note.reads - 1
                } else {
                    0
                };
                let _ = note.exchange(Note { reads, ..note }, record);
                done = Evicted::No;
                Change::Keep
            })?;
        if let Some(record) = removed {
            self.note_gone(why, record);
        }
        if let Some(mut queues) = self.queues() {
            match done {
                Evicted::Yes => queues.on_evicted(candidate),
                Evicted::No => queues.keep(candidate),
                Evicted::Stale => {}
            }
        }
        Ok(done)
    }

    /// Returns `true` if an entry of a key is that of its record. The record of a batch that is
    /// being written cannot be seen yet; its key is held, which is an error here.
    fn is_current(&self, key: &[u8], token: u16) -> bool
    where
        S: TableRecords<H>,
    {
        let (guard, mut is_current) = (ats_sync::pin(), true);
        let looked = self.records.update_by(key, None, &guard, &mut |current| {
            is_current = current
                .and_then(Note::of)
                .is_some_and(|note| note.token == token);
            Change::Keep
        });
        is_current || looked.is_err()
    }

    /// Removes stale entries from the list of deadlines, and from the queues, if there are many.
    /// Returns `true` if they are empty.
    pub(crate) fn tidy_lists(&self) -> bool
    where
        S: TableRecords<H>,
    {
        let records = self.records.about_len().unwrap_or(0);
        let are_many = |entries| entries > 2 * records + SPARE_ENTRIES;
        let queued = self.queues().map_or(0, |queues| queues.len());
        if are_many(queued) {
            for _ in 0..queued {
                let Some(candidate) = self.queues().and_then(|mut queues| queues.rotate()) else {
                    break;
                };
                if self.is_current(&candidate.key, candidate.token)
                    && let Some(mut queues) = self.queues()
                {
                    queues.put_back(&candidate);
                }
            }
        }
        let entries = self.deadlines.len();
        let mut left = if are_many(entries) { entries } else { 0 };
        while left > 0
            && let Ok(_sweeping) = self.lock()
        {
            let is_current = |entry: &Due| self.is_current(&entry.key, entry.token);
            match self.deadlines.tidy(left.min(SWEPT_BY_CALLER), is_current) {
                0 => break,
                looked => left = left.saturating_sub(looked),
            }
        }
        self.deadlines.len() == 0 && self.queues().is_none_or(|queues| queues.len() == 0)
    }

    /// Returns the time that is left to a record of this store or of an earlier moment of it, and
    /// `true` if it has a time of its own; `None` if it has expired.
    pub(crate) fn time_left(record: &Rec<H>) -> Option<(TimeLeft, bool)> {
        let Some(note) = Note::of(record) else {
            return Some((TimeLeft::Forever, true));
        };
        if note.deadline == NEVER {
            return Some((TimeLeft::Forever, note.is_fixed));
        }
        let left = note
            .deadline
            .checked_sub(clock::now())
            .filter(|left| *left > 0)?;
        Some((TimeLeft::Time(Duration::from_millis(left)), note.is_fixed))
    }

    /// Sets the deadline of the objects of a key. Returns `true` if there are some.
    pub(crate) fn touch(&self, key: &[u8], dating: Dating, guard: &Guard) -> Result<bool, Error>
    where
        S: TableRecords<H>,
    {
        let mut is_there = false;
        self.records.update_by(key, None, guard, &mut |current| {
            if let Some(current) = Self::alive(current) {
                is_there = true;
                self.note_for(key, dating, Some(current)).set(current);
            }
            Change::Keep
        })?;
        Ok(is_there)
    }
}

/// The end of an entry of a queue.
#[derive(Clone, Copy)]
enum Evicted {
    /// The record was removed for the bound.
    Yes,
    /// The record was kept, because it was read.
    No,
    /// The record was another one, or has expired and was removed.
    Stale,
}

/// Returns a record that is there, with its note.
fn with_note<H: Host>(record: Option<&Rec<H>>) -> Option<(&Rec<H>, Note)> {
    record.and_then(|record| Some((record, Note::of(record)?)))
}

/// A plan that does not see expired records, and whose new records get deadlines.
struct Dated<'a, 'k, H: Host, S> {
    store: &'a Limited<S, H>,
    keys: &'a [&'k [u8]],
    plan: &'a mut dyn BatchPlan<Values<H>>,
    /// `true` if a new record is larger than the bound.
    is_larger: bool,
}

impl<H: Host, S: TableRecords<H>> ats_store::BatchPlan<Rec<H>, RecordBox<Values<H>>>
    for Dated<'_, '_, H, S>
{
    fn decide(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let change = self.plan.decide(index, Limited::<S, H>::alive(current));
        let key = self.keys[index];
        let dated = self.store.dated_within(key, current, change);
        self.is_larger |= dated.is_none();
        dated.unwrap_or(Change::Abort)
    }

    fn build(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let change = self.plan.build(index, Limited::<S, H>::alive(current));
        // A refusal is too late. If the record is larger than the bound, it goes at once.
        self.store.dated(self.keys[index], current, change)
    }
}

/// A transaction that does not see expired records, and whose new records get deadlines.
struct DatedTransaction<'a, 'k, H: Host, S> {
    store: &'a Limited<S, H>,
    keys: &'a [&'k [u8]],
    plan: &'a mut dyn Transaction<Values<H>>,
    /// `true` if a new record is larger than the bound.
    is_larger: bool,
}

impl<H: Host, S: TableRecords<H>> Transaction<Values<H>> for DatedTransaction<'_, '_, H, S> {
    fn may_change(&self, index: usize) -> bool {
        self.plan.may_change(index)
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Rec<H>>) -> bool {
        self.plan
            .decide(&|index| Limited::<S, H>::alive(found(index)))
    }

    fn change(&mut self, index: usize, found: Option<&Rec<H>>) -> Change<Values<H>> {
        let change = self.plan.change(index, found);
        let dated = self.store.dated_within(self.keys[index], found, change);
        self.is_larger |= dated.is_none();
        dated.unwrap_or(Change::Abort)
    }

    fn release(&mut self, has_committed: bool) {
        self.plan.release(has_committed);
    }
}

impl<H: Host, S: TableRecords<H>> TableRecords<H> for Limited<S, H> {
    fn is_ordered(&self) -> bool {
        self.records.is_ordered()
    }

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        Ok(self.counted(self.look_up(key, guard)?))
    }

    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        let found = self.records.get_again(key, guard)?;
        Ok(self.counted(found.filter(|record| self.read(record))))
    }

    fn has_key(&self, key: &[u8], guard: &Guard) -> Result<bool, Error> {
        let found = self.records.get(key, guard)?;
        Ok(found.is_some_and(|record| Self::is_alive(record)))
    }

    fn get_at<'g>(
        &'g self,
        key: &[u8],
        when: When,
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        let found = self.records.get_at(key, when, guard)?;
        Ok(found.filter(|record| !when.is_now() || Self::is_alive(record)))
    }

    fn walk<'g>(
        &'g self,
        walk: Walk<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Walked, Error> {
        if !walk.when.is_now() {
            return self.records.walk(walk, guard, visit, pause);
        }
        let mut visit = |record: &'g Rec<H>| {
            if Self::is_alive(record) {
                visit(record)
            } else {
                ControlFlow::Continue(())
            }
        };
        self.records.walk(walk, guard, &mut visit, pause)
    }

    fn update_by<'g>(
        &'g self,
        key: &[u8],
        by: Option<Query>,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut is_larger = false;
        self.records.update_by(key, by, guard, &mut |current| {
            let dated = self.dated_within(key, current, decide(Self::alive(current)));
            is_larger = dated.is_none();
            dated.unwrap_or(Change::Keep)
        })?;
        self.after_change(is_larger)
    }

    fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut is_larger = false;
        self.records.update_alone(key, guard, &mut |current| {
            let dated = self.dated_within(key, current, decide(Self::alive(current)));
            is_larger = dated.is_none();
            dated.unwrap_or(Change::Keep)
        })?;
        self.after_change(is_larger)
    }

    fn update_batch(
        &self,
        keys: &[&[u8]],
        guard: Option<&Guard>,
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        let mut dated = Dated {
            store: self,
            keys,
            plan,
            is_larger: false,
        };
        let is_done = self.records.update_batch(keys, guard, &mut dated)?;
        self.after_change(dated.is_larger)?;
        Ok(is_done)
    }

    fn transact(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn Transaction<Values<H>>,
    ) -> Result<bool, Error> {
        let mut dated = DatedTransaction {
            store: self,
            keys,
            plan,
            is_larger: false,
        };
        let is_done = self.records.transact(keys, &mut dated)?;
        self.after_change(dated.is_larger)?;
        Ok(is_done)
    }

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        loop {
            let mut has_expired = false;
            self.records.update_end(end, guard, &mut |current| {
                has_expired = current.is_some_and(|current| self.note_if_expired(current));
                if has_expired {
                    return Change::Remove;
                }
                let change = decide(current);
                match current {
                    Some(record) => self.dated(record.key(), current, change),
                    None => change,
                }
            })?;
            if !has_expired {
                return Ok(());
            }
        }
    }

    fn objects(&self) -> Result<usize, Error> {
        self.sweep_all()?;
        self.records.objects()
    }

    fn about_bytes(&self) -> usize {
        self.records.about_bytes() + self.bytes_of_lists()
    }

    fn about_len(&self) -> Option<usize> {
        self.records.about_len()
    }

    fn prefetch(&self, key: &[u8]) {
        self.records.prefetch(key);
    }

    fn prefetch_records(&self, keys: &[&[u8]], guard: &Guard) {
        self.records.prefetch_records(keys, guard);
    }

    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Rec<H>),
    ) -> Result<SlotAnswer, Error> {
        if self.is_ordered() {
            // A slot is the record of that rank.
            self.sweep_all()?;
        }
        self.records.slot(index, guard, &mut |record| {
            if Self::is_alive(record) {
                visit(record);
            }
        })
    }

    fn totals(&self) -> Result<Option<Totals>, Error> {
        self.sweep_all()?;
        let totals = self.records.totals()?;
        let bytes = self.bytes_of_lists() as i64;
        Ok(totals.map(|totals| Totals {
            structure: totals.structure + bytes,
            ..totals
        }))
    }

    fn read_points(&self) -> Option<&ReadPoints<Values<H>>> {
        self.records.read_points()
    }

    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<ReadPoint>, Error> {
        self.sweep_all()?;
        self.records.begin(prepare)
    }

    fn fix(&self) {
        self.records.fix();
    }

    fn unfix(&self) {
        self.records.unfix();
    }

    fn upkeep(&self, work: Upkeep, budget: usize, guard: &Guard) -> bool {
        self.records.upkeep(work, budget, guard)
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.records.force_adaptation(splits, joins);
    }
}
