//! The list of the deadlines of a store: which keys expire when.
//!
//! There is an *entry* for each record with a deadline. An entry is *due* at its deadline or before
//! it: entries far ahead share slots of a second or a minute, and move to a slot of their own
//! millisecond when that begins. So the entries that are due are those of all objects that have
//! expired, and few others. (Timing wheels; Varghese and Lauck, 1987. The slots are those of a
//! search tree, so that a deadline may be any time ahead.)
//!
//! An entry names the key and the token of the record. A record that takes the place of another one
//! with an earlier deadline takes over its token, and with it the entry: an object that is written
//! again and again has one entry, which is moved only when it is due. An entry whose token is not
//! that of the record is *stale*, because the record was removed, or got an earlier deadline.
//!
//! Each thread adds entries to a part of its own, so threads do not wait for each other.

use ats_sync::CachePadded;
use ats_sync::counter::{shard_count, thread_number};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Milliseconds of the slots of entries that are not due within the next second or so, and within
/// the next minute or so.
const LONG_SLOTS: [u64; 2] = [1 << 16, 1 << 10];
/// Bytes of an entry besides its key.
const HEAD_BYTES: usize = 8 + 2 + 4;

/// The deadlines of a store.
pub(super) struct Deadlines {
    parts: Box<[CachePadded<Part>]>,
}

struct Part {
    slots: Mutex<BTreeMap<u64, Slot>>,
    /// The time of the first slot. Written by the thread that has locked the slots, like the
    /// others.
    next_due: AtomicU64,
    entries: AtomicUsize,
    bytes: AtomicUsize,
}

/// Entries that are due at the same time, one behind the other.
#[derive(Default)]
struct Slot {
    bytes: Vec<u8>,
    /// The number of bytes that were taken already.
    taken: usize,
}

/// An entry that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) key: Box<[u8]>,
    pub(super) token: u16,
    pub(super) deadline: u64,
}

impl Slot {
    fn push(&mut self, key: &[u8], token: u16, deadline: u64) {
        self.bytes.extend_from_slice(&deadline.to_le_bytes());
        self.bytes.extend_from_slice(&token.to_le_bytes());
        // A key of a record has less than 4 GiB.
        self.bytes
            .extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(key);
    }

    fn take(&mut self) -> Option<Due> {
        let rest = &self.bytes[self.taken..];
        let (deadline, rest) = rest.split_first_chunk()?;
        let (token, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let key: Box<[u8]> = rest[..u32::from_le_bytes(*len) as usize].into();
        self.taken += HEAD_BYTES + key.len();
        Some(Due {
            token: u16::from_le_bytes(*token),
            deadline: u64::from_le_bytes(*deadline),
            key,
        })
    }
}

impl Default for Part {
    fn default() -> Self {
        Part {
            slots: Mutex::default(),
            next_due: AtomicU64::new(u64::MAX),
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }
}

impl Part {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Slot>> {
        // Only the system can fail while it is locked, for lack of memory, which ends the process.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_first(&self, slots: &BTreeMap<u64, Slot>) {
        let first = slots.keys().next().copied().unwrap_or(u64::MAX);
        self.next_due.store(first, Ordering::Release);
    }

    fn forget(&self, entry: &Due) {
        self.entries.fetch_sub(1, Ordering::Relaxed);
        let bytes = HEAD_BYTES + entry.key.len();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Returns the time at which an entry is due.
fn due(deadline: u64, now: u64) -> u64 {
    let long = LONG_SLOTS.map(|slot| deadline - deadline % slot);
    long.into_iter().find(|due| *due > now).unwrap_or(deadline)
}

impl Deadlines {
    pub(super) fn new() -> Self {
        Deadlines {
            parts: (0..shard_count()).map(|_| CachePadded::default()).collect(),
        }
    }

    fn sum(&self, of: impl Fn(&Part) -> &AtomicUsize) -> usize {
        let parts = self.parts.iter();
        parts.map(|part| of(part).load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.sum(|part| &part.entries)
    }

    /// Returns the approximate bytes of memory of the entries.
    pub(super) fn bytes(&self) -> usize {
        self.sum(|part| &part.bytes)
    }

    /// Returns `true` if an entry is due.
    pub(super) fn is_due(&self, now: u64) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| part.next_due.load(Ordering::Acquire) <= now)
    }

    /// Adds an entry. Returns `true` if its part had none.
    pub(super) fn push(&self, key: &[u8], token: u16, deadline: u64, now: u64) -> bool {
        let due = due(deadline, now);
        let part = &self.parts[thread_number() % self.parts.len()];
        let mut slots = part.lock();
        slots.entry(due).or_default().push(key, token, deadline);
        part.note_first(&slots);
        let bytes = HEAD_BYTES + key.len();
        part.bytes.fetch_add(bytes, Ordering::Relaxed);
        part.entries.fetch_add(1, Ordering::Relaxed) == 0
    }

    /// Takes up to `most` entries that are due out of the list.
    pub(super) fn take(&self, now: u64, most: usize) -> Vec<Due> {
        let mut taken = Vec::new();
        for part in &self.parts {
            let mut slots = part.lock();
            while taken.len() < most
                && let Some(mut first) = slots.first_entry()
                && *first.key() <= now
            {
                match first.get_mut().take() {
                    Some(due) => {
                        part.forget(&due);
                        taken.push(due);
                    }
                    None => drop(first.remove()),
                }
            }
            part.note_first(&slots);
        }
        taken
    }

    /// Removes the entries of one slot for which `is_current` returns `false`: the first slot of
    /// the part with this number that is due at a time or later. Returns the place of the next one,
    /// and `None` after the last.
    pub(super) fn tidy_slot(
        &self,
        (number, from): (usize, u64),
        mut is_current: impl FnMut(&Due) -> bool,
    ) -> Option<(usize, u64)> {
        let part = self.parts.get(number)?;
        let mut slots = part.lock();
        let due = slots.range(from..).next().map(|(due, _)| *due);
        let Some((due, mut slot)) = due.and_then(|due| slots.remove_entry(&due)) else {
            return Some((number + 1, 0));
        };
        drop(slots);
        let mut left = Slot::default();
        while let Some(entry) = slot.take() {
            if is_current(&entry) {
                left.push(&entry.key, entry.token, entry.deadline);
            } else {
                part.forget(&entry);
            }
        }
        let mut slots = part.lock();
        if !left.bytes.is_empty() {
            let slot = slots.entry(due).or_default();
            slot.bytes.extend_from_slice(&left.bytes);
        }
        part.note_first(&slots);
        Some((number, due + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(deadlines: &Deadlines, now: u64) -> Vec<(Vec<u8>, u64)> {
        let mut all = Vec::new();
        loop {
            let taken = deadlines.take(now, 3);
            if taken.is_empty() {
                return all;
            }
            all.extend(
                taken
                    .into_iter()
                    .map(|due| (due.key.into_vec(), due.deadline)),
            );
        }
    }

    #[test]
    fn entries_are_due_at_their_deadline_or_before() {
        let deadlines = Deadlines::new();
        let times: [u64; 9] = [
            1,
            5,
            1000,
            1500,
            5000,
            70_000,
            200_000,
            1 << 30,
            (1 << 40) - 1,
        ];
        for (token, deadline) in (0..).zip(times) {
            deadlines.push(&deadline.to_le_bytes(), token, deadline, 0);
        }
        assert_eq!(deadlines.len(), times.len());
        let mut left = times.to_vec();
        for now in [0, 1, 4, 1023, 1024, 6000, 65_536, 140_000, 1 << 39, 1 << 40] {
            for (key, deadline) in drain(&deadlines, now) {
                assert_eq!(key, deadline.to_le_bytes());
                if deadline > now {
                    // The caller puts an entry back that was due early.
                    assert!(deadline - now <= LONG_SLOTS[0], "{deadline} at {now}");
                    deadlines.push(&key, 0, deadline, now);
                } else {
                    left.retain(|other| *other != deadline);
                }
            }
            assert!(
                left.iter().all(|deadline| *deadline > now),
                "{left:?} at {now}"
            );
            assert!(!deadlines.is_due(now));
            assert_eq!(deadlines.len(), left.len());
        }
        assert_eq!(deadlines.bytes(), 0);
    }

    #[test]
    fn stale_entries_are_removed() {
        let deadlines = Deadlines::new();
        for number in 0..1000_u16 {
            let deadline = u64::from(number) * 997;
            deadlines.push(&number.to_le_bytes(), number, deadline, 0);
        }
        let mut place = Some((0, 0));
        while let Some(from) = place {
            place = deadlines.tidy_slot(from, |entry| entry.token % 4 == 1);
        }
        assert_eq!(deadlines.len(), 250);
        assert_eq!(deadlines.bytes(), 250 * (HEAD_BYTES + 2));
        let taken = deadlines.take(u64::MAX, 1000);
        assert!(taken.iter().all(|entry| entry.token % 4 == 1));
        assert_eq!(taken.len(), 250);
    }
}
