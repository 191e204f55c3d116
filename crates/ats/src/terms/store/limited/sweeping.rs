//! Removal of records that have expired, and of stale entries.

use super::clock;
use super::deadlines::Due;
use super::{Limited, with_note};
use crate::terms::error::Error;
use crate::terms::note::{NEVER, Note};
use crate::terms::store::records::TableRecords;
use ats_mem::Change;
use ats_sync::Guard;
use ats_term::image::Host;
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// The number of entries that are handled while `sweeping` is locked.
const SWEPT_AT_ONCE: usize = 64;
/// The number of records that a caller removes that must not work for long.
const SWEPT_BY_CALLER: usize = 1024;
/// A list with this many entries more than twice the number of records is tidied.
const SPARE_ENTRIES: usize = 4096;

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

    /// Removes all records that have expired, if an [`OnGone`](super::OnGone) is told of them.
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

    /// Returns `true` if an entry of a key is that of its record. The record of a batch that is
    /// being written cannot be seen yet; its key is held, which is an error here.
    pub(super) fn is_current(&self, key: &[u8], token: u16) -> bool
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
}
