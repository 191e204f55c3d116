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
//! # Invariants
//! - LIMITED-1. All records have a note.
//! - LIMITED-2. If a record has a deadline, the list has an entry for it that has its token and is
//!   due at the deadline or before it, unless a thread that holds `sweeping` has taken the entry.
//!   Such a thread then removes the record, or adds an entry.
//! - LIMITED-3. If the store has a bound, a queue has an entry for each record that has its token,
//!   unless a thread has taken the entry. Such a thread then removes the record, or puts the entry
//!   back.

mod clock;
mod deadlines;
mod pieces;
mod queues;

use super::records::{Decide, TableRecords, Visit, Walked};
use crate::terms::error::Error;
use crate::terms::note::{Dating, NEVER, Note};
use crate::terms::value::{Rec, Values};
use ats_mem::read_points::{Query, ReadPoints};
use ats_mem::{BatchPlan, Busy, Change, ReadPoint, RecordBox, Totals, Upkeep, Walk, When};
use ats_store::{End, SlotAnswer};
use ats_sync::clock::LATE;
use ats_sync::counter::thread_number;
use ats_sync::{Guard, ShardedCounter};
use ats_term::image::Host;
use deadlines::{Deadlines, Due};
use queues::{Candidate, Queues};
use std::cell::Cell;
use std::ops::ControlFlow;
#[cfg(feature = "forcing")]
use std::sync::atomic::Ordering;
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
    /// The time since the object was written or read by its key.
    Idle(Duration),
    /// Infinite: objects expire only if they are written with a time of their own.
    Never,
}

/// The time that is left to the objects of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
            Ttl::Written(time) | Ttl::Idle(time) => milliseconds(time),
            Ttl::Never => NEVER,
        }
    }
}

/// The owner of a store, who removes its expired records, and stale entries, now and then.
pub(crate) trait OnFirstEntry: Send + Sync {
    /// Begins with that: there are entries.
    fn has_entries(self: Arc<Self>);
}

/// A store with limits. See the [module](self).
pub(crate) struct Limited<S> {
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
    owner: OnceLock<Weak<dyn OnFirstEntry>>,
}

impl<S> Limited<S> {
    /// Returns a store of these records, which are empty.
    pub(crate) fn new(records: S, limits: Limits) -> Self {
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
            owner: OnceLock::new(),
        }
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

    /// Returns the approximate bytes of memory of the deadlines and the queues.
    fn bytes_of_lists(&self) -> usize {
        self.deadlines.bytes() + self.queues().map_or(0, |queues| queues.bytes())
    }

    /// Returns `true` if a record has not expired.
    #[inline]
    fn is_alive<H: Host>(record: &Rec<H>) -> bool {
        Note::of(record).is_none_or(Self::is_before)
    }

    /// Returns a record unless it has expired.
    #[inline]
    fn alive<H: Host>(record: Option<&Rec<H>>) -> Option<&Rec<H>> {
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
    fn read<H: Host>(&self, record: &Rec<H>) -> bool {
        let Some(note) = Note::of(record) else {
            return true;
        };
        if !Self::is_before(note) {
            return false;
        }
        let mut read = note;
        if self.queues.is_some() {
            read = read.read_again();
        }
        if matches!(self.limits.ttl, Ttl::Idle(_)) && !note.is_fixed {
            read.deadline = self.put_off(note.deadline);
        }
        if read != note {
            note.exchange(read, record);
        }
        true
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
    fn note_for<H: Host>(&self, key: &[u8], dating: Dating, old: Option<&Rec<H>>) -> Note {
        let now = clock::now();
        let after = |time: u64| {
            if time == NEVER {
                NEVER
            } else {
                (now + time).min(NEVER - 1)
            }
        };
        let old = old.and_then(Note::of);
        let alive = old.filter(|note| note.deadline > now);
        let of_table = (after(self.interval), false);
        let (deadline, is_fixed) = match (dating, alive) {
            (Dating::After(time), _) => (after(time), true),
            (Dating::Kept, Some(old))
                if old.is_fixed || !matches!(self.limits.ttl, Ttl::Idle(_)) =>
            {
                (old.deadline, old.is_fixed)
            }
            (Dating::Kept | Dating::OfTable, _) => of_table,
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

    /// Returns the change of a key that has the record `old`, as a decision has made it; `None` if
    /// the new record alone is too large for the bound.
    fn dated_within<H: Host>(
        &self,
        key: &[u8],
        old: Option<&Rec<H>>,
        change: Change<Values<H>>,
    ) -> Option<Change<Values<H>>>
    where
        S: TableRecords<H>,
    {
        if let (Change::Put(record), Some(most)) = (&change, self.limits.bytes) {
            let empty = self
                .empty_bytes
                .get_or_init(|| self.records.about_bytes() + LISTS_BYTES);
            if record.bytes() + empty > most {
                return None;
            }
        }
        Some(self.dated(key, old, change))
    }

    /// Returns the change of a key that has the record `old`, as a decision has made it.
    fn dated<H: Host>(
        &self,
        key: &[u8],
        old: Option<&Rec<H>>,
        change: Change<Values<H>>,
    ) -> Change<Values<H>> {
        match change {
            Change::Put(record) => {
                let dating = Dating::of(&record).unwrap_or(Dating::Kept);
                let note = self.note_for(key, dating, old);
                Change::Put(note.put_before(record))
            }
            change => change,
        }
    }
}

impl<S> Limited<S> {
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
    fn sweep_some<H: Host>(&self, now: u64) -> Result<usize, Error>
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
    fn sweep<H: Host>(&self, entry: &Due, now: u64, guard: &Guard) -> Result<(), Error>
    where
        S: TableRecords<H>,
    {
        if entry.deadline > now {
            self.enter_again(&entry.key, entry.token, entry.deadline, now);
            return Ok(());
        }
        let mut left = None;
        let mut is_removed = false;
        self.records
            .update_by(&entry.key, None, guard, &mut |current| {
                let note = current.and_then(Note::of);
                left = note.filter(|note| note.token == entry.token && note.deadline != NEVER);
                is_removed = left.is_some_and(|note| note.deadline <= now);
                if is_removed {
                    Change::Remove
                } else {
                    Change::Keep
                }
            })?;
        match left {
            Some(_) if is_removed => self.expired.add(1),
            // The record was written, or read, again.
            Some(note) => self.enter_again(&entry.key, entry.token, note.deadline, now),
            None => {}
        }
        Ok(())
    }

    /// Removes all records that have expired.
    ///
    /// # Errors
    /// [`Error::Busy`] if the calling thread must not work for that long.
    fn sweep_all<H: Host>(&self) -> Result<(), Error>
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
    pub(crate) fn sweep_slice<H: Host>(&self, budget: usize) -> bool
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
        true
    }

    /// Returns `true` if a bound does not hold.
    fn is_over<H: Host>(&self) -> bool
    where
        S: TableRecords<H>,
    {
        let Limits { objects, bytes, .. } = self.limits;
        let are_many = |most| self.records.about_len().is_some_and(|len| len > most);
        let are_large = |most| self.records.about_bytes() + self.bytes_of_lists() > most;
        objects.is_some_and(are_many) || bytes.is_some_and(are_large)
    }

    /// Removes some stale entries from the list of deadlines, if there are many, so that they do
    /// not take the room of objects.
    fn tidy_some<H: Host>(&self)
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
    fn make_room<H: Host>(&self)
    where
        S: TableRecords<H>,
    {
        let mut kept = 0;
        while self.is_over() {
            self.tidy_some();
            let Some(candidate) = self.queues().and_then(|mut queues| queues.pop()) else {
                return;
            };
            match self.evict(&candidate, kept >= KEPT_MOST) {
                Ok(true) => kept += 1,
                Ok(false) => kept = 0,
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
    fn after_change<H: Host>(&self, is_larger: bool) -> Result<(), Error>
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
    /// entry goes to the main queue. Returns `true` if the record is kept.
    fn evict<H: Host>(&self, candidate: &Candidate, must_go: bool) -> Result<bool, Error>
    where
        S: TableRecords<H>,
    {
        let least = if candidate.is_of_main {
            1
        } else {
            READS_OF_MAIN
        };
        let guard = ats_sync::pin();
        let (mut is_kept, mut has_expired, mut is_removed) = (false, false, false);
        self.records
            .update_by(&candidate.key, None, &guard, &mut |current| {
                (is_kept, has_expired, is_removed) = (false, false, false);
                let Some((record, note)) =
                    current.and_then(|record| Some((record, Note::of(record)?)))
                else {
                    return Change::Keep;
                };
                if note.token != candidate.token {
                    return Change::Keep;
                }
                has_expired = !Self::is_before(note);
                is_kept = !has_expired && !must_go && note.reads >= least;
                is_removed = !is_kept;
                if is_removed {
                    return Change::Remove;
                }
                let reads = if candidate.is_of_main {
                    note.reads - 1
                } else {
                    0
                };
                note.exchange(Note { reads, ..note }, record);
                Change::Keep
            })?;
        if is_removed {
            let counter = if has_expired {
                &self.expired
            } else {
                &self.evicted
            };
            counter.add(1);
        }
        if let Some(mut queues) = self.queues() {
            if is_kept {
                queues.keep(candidate);
            } else if is_removed && !has_expired {
                queues.on_evicted(candidate);
            }
        }
        Ok(is_kept)
    }

    /// Returns `true` if an entry of a key is that of its record. The record of a batch that is
    /// being written cannot be seen yet; its key is held, which is an error here.
    fn is_current<H: Host>(&self, key: &[u8], token: u16) -> bool
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
    pub(crate) fn tidy_lists<H: Host>(&self) -> bool
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

    /// Returns the time that is left to the objects of a key; `None` if there are none.
    pub(crate) fn time_left<H: Host>(
        &self,
        key: &[u8],
        guard: &Guard,
    ) -> Result<Option<TimeLeft>, Error>
    where
        S: TableRecords<H>,
    {
        let note = self.records.get(key, guard)?.and_then(Note::of);
        let now = clock::now();
        let alive = note.filter(|note| note.deadline > now);
        Ok(alive.map(|note| match note.deadline {
            NEVER => TimeLeft::Forever,
            deadline => TimeLeft::Time(Duration::from_millis(deadline - now)),
        }))
    }

    /// Sets the deadline of the objects of a key. Returns `true` if there are some.
    pub(crate) fn touch<H: Host>(
        &self,
        key: &[u8],
        dating: Dating,
        guard: &Guard,
    ) -> Result<bool, Error>
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

/// A plan that does not see expired records, and whose new records get deadlines.
struct Dated<'a, 'k, H: Host, S> {
    store: &'a Limited<S>,
    keys: &'a [&'k [u8]],
    plan: &'a mut dyn BatchPlan<Values<H>>,
    /// `true` if a new record is larger than the bound.
    is_larger: bool,
}

impl<H: Host, S: TableRecords<H>> ats_store::BatchPlan<Rec<H>, RecordBox<Values<H>>>
    for Dated<'_, '_, H, S>
{
    fn decide(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let change = self.plan.decide(index, Limited::<S>::alive(current));
        let key = self.keys[index];
        let dated = self.store.dated_within(key, current, change);
        self.is_larger |= dated.is_none();
        dated.unwrap_or(Change::Abort)
    }

    fn build(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let change = self.plan.build(index, Limited::<S>::alive(current));
        // A refusal is too late. If the record is larger than the bound, it goes at once.
        self.store.dated(self.keys[index], current, change)
    }
}

impl<H: Host, S: TableRecords<H>> TableRecords<H> for Limited<S> {
    fn is_ordered(&self) -> bool {
        self.records.is_ordered()
    }

    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        let found = self.records.get(key, guard)?;
        Ok(found.filter(|record| self.read(record)))
    }

    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        let found = self.records.get_again(key, guard)?;
        Ok(found.filter(|record| self.read(record)))
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

    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        loop {
            let mut has_expired = false;
            self.records.update_end(end, guard, &mut |current| {
                has_expired = current.is_some_and(|current| !Self::is_alive(current));
                if has_expired {
                    self.expired.add(1);
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
