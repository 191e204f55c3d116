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

use super::pieces::Pieces;
use ats_sync::CachePadded;
use ats_sync::counter::{shard_count, thread_number};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Milliseconds of the slots of entries that are not due within the next second or so, and within
/// the next minute or so.
const LONG_SLOTS: [u64; 2] = [1 << 16, 1 << 10];
/// Bytes of an entry before its key: deadline and token.
const HEAD_BYTES: usize = 8 + 2;

/// Entries that are due at the same time.
type Slot = Pieces<HEAD_BYTES>;

/// The deadlines of a store.
pub(super) struct Deadlines {
    parts: Box<[CachePadded<Part>]>,
    /// The place at which the next stale entries are looked for.
    tidied: Mutex<Place>,
}

/// A place in the list: a part, a slot of it, and the number of entries of the slot that were not
/// looked at.
#[derive(Default)]
struct Place {
    part: usize,
    due: u64,
    left: usize,
}

struct Part {
    slots: Mutex<BTreeMap<u64, Slot>>,
    /// The time of the first slot. Written by the thread that has locked the slots, like the
    /// others.
    next_due: AtomicU64,
    entries: AtomicUsize,
    bytes: AtomicUsize,
}

/// An entry that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) key: Box<[u8]>,
    pub(super) token: u16,
    pub(super) deadline: u64,
}

fn put(slot: &mut Slot, key: &[u8], token: u16, deadline: u64) {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&deadline.to_le_bytes());
    head[8..].copy_from_slice(&token.to_le_bytes());
    slot.push(head, key);
}

fn take_first(slot: &mut Slot) -> Option<Due> {
    let (head, key) = slot.pop()?;
    let (deadline, token) = head.split_first_chunk()?;
    Some(Due {
        key,
        token: u16::from_le_bytes(*token.first_chunk()?),
        deadline: u64::from_le_bytes(*deadline),
    })
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

    /// Changes the slots by `change`, and notes their state.
    fn change<R>(&self, due: u64, change: impl FnOnce(&mut Slot) -> R) -> R {
        let mut slots = self.lock();
        let slot = slots.entry(due).or_default();
        let before = (slot.len(), slot.bytes());
        let result = change(slot);
        let after = (slot.len(), slot.bytes());
        if slot.len() == 0 {
            slots.remove(&due);
        }
        let first = slots.keys().next().copied().unwrap_or(u64::MAX);
        self.next_due.store(first, Ordering::Release);
        // The counts wrap if they become less.
        self.entries
            .fetch_add(after.0.wrapping_sub(before.0), Ordering::Relaxed);
        self.bytes
            .fetch_add(after.1.wrapping_sub(before.1), Ordering::Relaxed);
        result
    }

    /// Takes up to `most` entries of a slot.
    fn take(&self, due: u64, most: usize) -> Vec<Due> {
        self.change(due, |slot| {
            let entries = std::iter::from_fn(|| take_first(slot));
            entries.take(most).collect()
        })
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
            tidied: Mutex::default(),
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
        let part = &self.parts[thread_number() % self.parts.len()];
        let is_first = part.entries.load(Ordering::Relaxed) == 0;
        part.change(due(deadline, now), |slot| put(slot, key, token, deadline));
        is_first
    }

    /// Takes up to `most` entries that are due out of the list.
    pub(super) fn take(&self, now: u64, most: usize) -> Vec<Due> {
        let mut taken = Vec::new();
        for part in &self.parts {
            while taken.len() < most {
                let due = part.next_due.load(Ordering::Acquire);
                if due > now || due == u64::MAX {
                    break;
                }
                taken.extend(part.take(due, most - taken.len()));
            }
        }
        taken
    }

    /// Looks at up to `most` entries, from the place on at which the last call has ended, and
    /// removes those for which `is_current` returns `false`. Returns the number of entries that it
    /// has looked at: 0 if there are none, or another thread does the same.
    pub(super) fn tidy(&self, most: usize, mut is_current: impl FnMut(&Due) -> bool) -> usize {
        let Ok(mut place) = self.tidied.try_lock() else {
            return 0;
        };
        for _ in 0..=self.parts.len() {
            let part = &self.parts[place.part];
            let found = {
                let slots = part.lock();
                let found = slots.range(place.due..).next();
                found.map(|(due, slot)| (*due, slot.len()))
            };
            let Some((due, len)) = found else {
                *place = Place {
                    part: (place.part + 1) % self.parts.len(),
                    ..Place::default()
                };
                continue;
            };
            if place.due != due || place.left == 0 {
                (place.due, place.left) = (due, len);
            }
            let taken = part.take(due, most.min(place.left));
            let current: Vec<_> = taken.iter().filter(|entry| is_current(entry)).collect();
            part.change(due, |slot| {
                for entry in current {
                    put(slot, &entry.key, entry.token, entry.deadline);
                }
            });
            place.left = place.left.saturating_sub(taken.len());
            if place.left == 0 || taken.is_empty() {
                (place.due, place.left) = (due + 1, 0);
            }
            return taken.len();
        }
        0
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
        let mut looked = 0;
        while looked < 5000 {
            looked += deadlines.tidy(50, |entry| entry.token % 4 == 1).max(1);
        }
        assert_eq!(deadlines.len(), 250);
        assert!(deadlines.bytes() > 250 * (HEAD_BYTES + 4 + 2));
        let taken = deadlines.take(u64::MAX, 1000);
        assert!(taken.iter().all(|entry| entry.token % 4 == 1));
        assert_eq!(taken.len(), 250);
    }
}
