//! Removal of records because of a bound.

use super::deadlines::Due;
use super::queues::Candidate;
use super::{Gone, Limited, Limits, with_note};
use crate::terms::error::Error;
use crate::terms::note::Note;
use crate::terms::store::records::TableRecords;
use ats_mem::Change;
use ats_term::image::Host;

/// The number of entries of deadlines at which an eviction looks if many are stale.
const TIDIED_AT_ONCE: usize = 8;
/// The number of objects that are kept in a row because they were read; the next one goes. Without
/// it an insert into a table in which all was read would look at all of it.
const KEPT_MOST: usize = 1000;
/// The reads for which an object at the end of the small queue moves to the main queue.
const READS_OF_MAIN: u8 = 2;

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

impl<S, H: Host> Limited<S, H> {
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
    pub(super) fn after_change(&self, is_larger: bool) -> Result<(), Error>
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
}
