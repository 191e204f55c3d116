//! Transactions of maps in memory: a function of the program reads and changes several keys as one
//! step.
//!
//! The function runs on a [view](MapView), with no lock and no guard. The view notes the values
//! that it has read, and keeps the changes to itself. The commit holds all keys of the view, by a
//! [transaction of the store](Transaction), compares the values of those that were read with the
//! ones that are noted, and makes the changes visible together. If a value differs, the function
//! runs again on a new view.
//!
//! Values are compared as bytes, not records by their identity. The result of a function depends on
//! the values alone, so one that was removed and put back, or replaced by an equal one, is as good
//! as one that stayed; and nothing that was read must be kept in memory while the function runs.
//!
//! A view without changes is checked without a write, if it has few keys: its values are found
//! twice, under one guard. A record that is found both times was in the map in between, because
//! memory is not used again under a guard, and a record that was replaced does not come back. So
//! all of them were there between the two times. Only a missing key could come and go unseen, so at
//! most one key may be missing, and it is looked for in between. Other views have their keys held.
//!
//! The scheme is optimistic concurrency control (Kung and Robinson, 1981), with the keys held
//! during the last two of its phases, validation and writing.
//!
//! # Invariants
//! - TRANSACTION-1. The values of a view that commits are those of its keys at the moment at
//!   which its changes become visible, or at a moment during the commit if it has none.
//! - TRANSACTION-2. The result of a function is returned only if its view has committed, or
//!   could have: also an error.

mod error;
mod view;

use super::key::Key;
use super::records::{Records, retry};
use super::store::MapStore;
use super::value::Value;
use ats_mem::{Change, Record, Transaction, When};
use ats_sync::counter::thread_number;
use ats_sync::pin;
pub use error::TransactError;
use std::marker::PhantomData;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};
pub use view::MapView;
use view::{New, Part, Parts, Seen};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of times that the function of a transaction runs at most.
const ATTEMPTS: u32 = 64;
/// Number of attempts that follow on each other with no pause but a yield.
const ATTEMPTS_AT_ONCE: u32 = 4;
/// Maximum duration of a pause between two attempts.
const PAUSE_MOST: Duration = Duration::from_millis(10);
/// Maximum number of keys that are checked under one guard: this many take well under a
/// millisecond.
const FEW: usize = 256;

impl<S: MapStore, K: Key, V: Value> Records<S, K, V> {
    pub(in crate::map) fn transact<T, E>(
        &self,
        mut run: impl FnMut(&mut MapView<'_, K, V>) -> Result<T, E>,
    ) -> Result<T, TransactError<E>> {
        let read = |key: &[u8]| Some(self.words_at(key)?.as_slice().into());
        for attempt in 1..=ATTEMPTS {
            let begin = (attempt > ATTEMPTS_AT_ONCE).then(Instant::now);
            let mut view = MapView::new(&read);
            let result = run(&mut view);
            let parts = view.into_parts();
            let commits = match &result {
                Ok(_) if parts.values().any(|part| part.new.is_some()) => self.commit(&parts, true),
                _ => self.is_of_one_moment(&parts),
            };
            if commits {
                return result.map_err(TransactError::Abandoned);
            }
            if attempt < ATTEMPTS {
                pause(attempt, begin);
            }
        }
        Err(TransactError::Conflict)
    }

    /// Makes the changes of a view, if `writes`, and if the values that it has read are current.
    /// Returns `true` if they are.
    fn commit(&self, parts: &Parts, writes: bool) -> bool {
        let held = |part: &Part| writes || part.seen.is_some();
        let held = parts.iter().filter(|(_, part)| held(part));
        let (keys, parts): (Vec<&[u8]>, Vec<&Part>) =
            held.map(|(key, part)| (&**key, part)).unzip();
        let mut committing = Committing::<S> {
            keys: &keys,
            parts,
            writes,
            store: PhantomData,
        };
        retry(|| {
            let kept = self.store().keep();
            kept.store().transact(&keys, &mut committing)
        })
    }

    /// Returns `true` if there was a moment at which the map had all values that a view has read.
    fn is_of_one_moment(&self, parts: &Parts) -> bool {
        let read = parts.values().filter(|part| part.seen.is_some()).count();
        // One value was read at one moment.
        read < 2 || read <= FEW && self.is_found_twice(parts) || self.commit(parts, false)
    }

    /// Returns `true` if the records of the values that a view has read were in the map, all at one
    /// moment of this call; `false` if that is not known.
    fn is_found_twice(&self, parts: &Parts) -> bool {
        let guard = pin();
        let store = self.store().get(&guard);
        let find = |key: &[u8]| store.get_at(key, When::NOW, &guard);
        let (mut found, mut missing) = (Vec::with_capacity(parts.len()), None);
        for (key, part) in parts {
            match &part.seen {
                None => {}
                Some(Seen(None)) if missing.is_none() => missing = Some(key),
                Some(Seen(None)) => return false,
                Some(Seen(Some(words))) => match find(key) {
                    Some(record) if *S::words(record) == **words => found.push((key, record)),
                    _ => return false,
                },
            }
        }
        missing.is_none_or(|key| find(key).is_none())
            && found
                .into_iter()
                .all(|(key, record)| find(key).is_some_and(|again| ptr::eq(again, record)))
    }
}

/// The commit of a view.
struct Committing<'a, S: MapStore> {
    keys: &'a [&'a [u8]],
    parts: Vec<&'a Part>,
    /// `true` if the changes are made.
    writes: bool,
    store: PhantomData<S>,
}

impl<S: MapStore> Transaction<S::Of> for Committing<'_, S> {
    fn may_change(&self, index: usize) -> bool {
        self.writes && self.parts[index].new.is_some()
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<S::Of>>) -> bool {
        let is_current = |(index, part): (usize, &&Part)| {
            let seen = part.seen.as_ref();
            seen.is_none_or(|seen| found(index).map(S::words) == seen.0.as_deref())
        };
        self.parts.iter().enumerate().all(is_current)
    }

    fn change(&mut self, index: usize, found: Option<&Record<S::Of>>) -> Change<S::Of> {
        match &self.parts[index].new {
            Some(New::Value(words, dating)) => {
                Change::Put(S::record(self.keys[index], words, *dating))
            }
            Some(New::Removal) if found.is_some() => Change::Remove,
            _ => Change::Keep,
        }
    }

    fn release(&mut self, _has_committed: bool) {}
}

/// Waits after an attempt that has failed, and began at this time: at random up to a multiple of
/// its duration, which doubles from one attempt to the next. So one of several threads that fail
/// again and again has the time to itself sooner or later. The first attempts have no such wait.
fn pause(attempt: u32, begin: Option<Instant>) {
    let Some(begin) = begin else {
        return thread::yield_now();
    };
    let doublings = (attempt - ATTEMPTS_AT_ONCE).min(16);
    let most = begin
        .elapsed()
        .saturating_mul(1 << doublings)
        .min(PAUSE_MOST);
    let random = xxh3_64_with_seed(&attempt.to_ne_bytes(), thread_number() as u64);
    thread::sleep(most.mul_f64(random as f64 / u64::MAX as f64));
}
