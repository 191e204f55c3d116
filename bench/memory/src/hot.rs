//! One number that all threads change: a record of ats, and simpler things.

use crate::crew::rate_over_time;
use crate::maps::{AtsOrdered, Locked, Map, MapLock};
use crate::mcs::McsWord;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The hot key, and how many others are in the map with it.
const KEY: u64 = 500;
const KEYS: u64 = 1000;

/// Increments between two looks at the clock.
const CHUNK: u64 = 16;

/// A number that every thread can increment.
pub trait Number: Default + Sync {
    /// The name in the table of results.
    const NAME: &'static str;

    /// Adds 1.
    fn increment(&self);

    /// Returns the number itself.
    fn value(&self) -> u64;
}

/// A record among others, replaced for each increment.
pub struct HotRecord(AtsOrdered<8>);

impl Default for HotRecord {
    fn default() -> Self {
        let map = AtsOrdered::<8>::default();
        (0..KEYS).for_each(|key| map.insert(key, 0));
        HotRecord(map)
    }
}

impl Number for HotRecord {
    const NAME: &'static str = AtsOrdered::<8>::NAME;

    #[inline]
    fn increment(&self) {
        self.0.increment(KEY);
    }

    fn value(&self) -> u64 {
        self.0.lookup(KEY).expect("the key is there")
    }
}

/// A value in a `BTreeMap` behind a lock, changed in place.
pub struct HotEntry<L>(Locked<L>);

impl<L: MapLock<Key = u64> + From<BTreeMap<u64, u64>>> Default for HotEntry<L> {
    fn default() -> Self {
        let map: BTreeMap<u64, u64> = (0..KEYS).map(|key| (key, 0)).collect();
        HotEntry(Locked(L::from(map)))
    }
}

impl<L: MapLock<Key = u64> + From<BTreeMap<u64, u64>>> Number for HotEntry<L> {
    const NAME: &'static str = L::NAME;

    #[inline]
    fn increment(&self) {
        let mut map = self.0.0.write_map();
        *map.get_mut(&KEY).expect("the key is there") += 1;
    }

    fn value(&self) -> u64 {
        self.0.lookup(KEY).expect("the key is there")
    }
}

impl Number for McsWord {
    const NAME: &'static str = "MCS word";

    #[inline]
    fn increment(&self) {
        black_box(McsWord::increment(self));
    }

    fn value(&self) -> u64 {
        McsWord::increment(self) - 1
    }
}

impl Number for Mutex<u64> {
    const NAME: &'static str = "Mutex word";

    #[inline]
    fn increment(&self) {
        *self.lock().expect("no panic") += 1;
    }

    fn value(&self) -> u64 {
        *self.lock().expect("no panic")
    }
}

impl Number for AtomicU64 {
    const NAME: &'static str = "fetch_add";

    #[inline]
    fn increment(&self) {
        self.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

/// One kind of number: its name, and how to take its rate.
pub type Contestant = (&'static str, fn(usize, Duration) -> f64);

/// Returns all kinds of numbers, ours first.
pub fn contestants() -> Vec<Contestant> {
    type Map = BTreeMap<u64, u64>;
    vec![
        contestant::<HotRecord>(),
        contestant::<HotEntry<parking_lot::RwLock<Map>>>(),
        contestant::<HotEntry<std::sync::RwLock<Map>>>(),
        contestant::<McsWord>(),
        contestant::<Mutex<u64>>(),
        contestant::<AtomicU64>(),
    ]
}

fn contestant<N: Number>() -> Contestant {
    (N::NAME, rate::<N>)
}

/// Increments per second of all threads together.
///
/// # Panics
/// If increments were lost.
fn rate<N: Number>(threads: usize, time: Duration) -> f64 {
    let number = N::default();
    let done = AtomicU64::new(0);
    let rate = rate_over_time(threads, time, |_| {
        let (number, done) = (&number, &done);
        let mut mine = Tally { sum: 0, into: done };
        move || {
            (0..CHUNK).for_each(|_| number.increment());
            mine.add(CHUNK)
        }
    });
    assert_eq!(
        number.value(),
        done.into_inner(),
        "{} lost increments",
        N::NAME
    );
    rate
}

/// The work of one thread, warming up included; told to all when the thread ends.
struct Tally<'a> {
    sum: u64,
    into: &'a AtomicU64,
}

impl Tally<'_> {
    fn add(&mut self, operations: u64) -> u64 {
        self.sum += operations;
        operations
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.into.fetch_add(self.sum, Ordering::Relaxed);
    }
}
