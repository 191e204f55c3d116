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
//! The thread that finds that a record has expired, and replaces or removes it, marks it as *told*
//! before that: its deadline becomes 0. So a record is counted, and told to an [`OnGone`], once,
//! even if the change is undone.
//!
//! # Invariants
//! - LIMITED-1. All records have a note.
//! - LIMITED-2. If a record has a deadline and is not told, the list has an entry for it that has
//!   its token and is due at the deadline or before it, unless a thread that holds `sweeping` has
//!   taken the entry. Such a thread then removes the record, or adds an entry.
//! - LIMITED-3. If the store has a bound, a queue has an entry for each record that has its token,
//!   unless a thread has taken the entry. Such a thread then removes the record, or puts the entry
//!   back.

mod as_records;
mod clock;
mod deadlines;
mod evicting;
mod gone;
mod limits;
mod pieces;
mod queues;
mod random;
mod sweeping;

use super::records::TableRecords;
use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::note::{Dating, NEVER, Note, READS_MOST};
use crate::terms::value::{Rec, Values};
use ats_mem::{Change, RecordBox};
use ats_sync::clock::LATE;
use ats_sync::{Guard, ShardedCounter};
use ats_term::image::Host;
use deadlines::Deadlines;
pub use gone::{Gone, OnGone};
pub(crate) use limits::milliseconds;
pub use limits::{Limits, TimeLeft, Ttl};
use queues::Queues;
use random::{READS_COUNTED_AS_ONE, is_sample, next_token};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// The approximate bytes of the lists of a few objects.
const LISTS_BYTES: usize = 512;
/// The deadline of a record that has expired and was counted.
const TOLD: u64 = 0;
/// Divisor of the interval of an idle object: reading puts the deadline off if this part of the
/// interval has passed.
const IDLE_PART: u64 = 16;

/// Puts the clock by which objects expire ahead, for tests, in all tables of the process.
#[cfg(feature = "forcing")]
pub fn advance_clock(time: Duration) {
    clock::AHEAD.fetch_add(milliseconds(time), Ordering::Relaxed);
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

/// Returns a record that is there, with its note.
fn with_note<H: Host>(record: Option<&Rec<H>>) -> Option<(&Rec<H>, Note)> {
    record.and_then(|record| Some((record, Note::of(record)?)))
}
