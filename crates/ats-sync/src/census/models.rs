//! Models for `loom`: censuses beside writers, and beside readers without a lock.

use super::*;
use crate::shim::atomic::AtomicI64;
use loom::sync::Arc;
use loom::thread;

/// A part with a value that readers load without the lock.
struct Cell {
    lock: Lock,
    turns: AtomicU64,
    count: AtomicI64,
    /// Always ten times the count when the lock is free.
    weight: AtomicI64,
    visible: AtomicI64,
}

const WEIGHT: i64 = 10;

impl Part for Cell {
    fn lock(&self) -> &Lock {
        &self.lock
    }

    fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }
}

struct Store {
    gate: Gate,
    census: Census<Sum>,
    clock: AtomicU64,
    parts: [Cell; 2],
}

impl Store {
    fn new() -> Arc<Self> {
        Arc::new(Store {
            gate: Gate::new(),
            census: Census::new(),
            clock: AtomicU64::new(1),
            parts: std::array::from_fn(|_| Cell {
                lock: Lock::new(),
                turns: AtomicU64::new(0),
                count: AtomicI64::new(0),
                weight: AtomicI64::new(0),
                visible: AtomicI64::new(0),
            }),
        })
    }

    /// Publishes, then counts, like the stores. Returns the time read under the lock.
    fn insert(&self, part: usize) -> u64 {
        let part = &self.parts[part];
        let (held, _) = self.gate.enter(&part.lock);
        part.turns
            .store(part.turns.load(Ordering::Relaxed) + 1, Ordering::Release);
        let time = self.clock.load(Ordering::Relaxed);
        part.visible.store(1, Ordering::Release);
        part.count
            .store(part.count.load(Ordering::Relaxed) + 1, Ordering::Release);
        part.weight.store(
            part.weight.load(Ordering::Relaxed) + WEIGHT,
            Ordering::Release,
        );
        drop(held);
        time
    }

    fn sees(&self, part: usize) -> i64 {
        self.parts[part].visible.load(Ordering::Acquire)
    }

    fn glance(&self) -> Option<i64> {
        let sum = self.gate.glance(|| self.parts.iter(), add, None)?;
        Some(sum.count())
    }

    fn size(&self) -> i64 {
        let sum = (self.census).share(|turn| {
            self.gate
                .close_and_sum(turn, || self.parts.iter(), add, &mut || {})
        });
        sum.expect("threads of models may wait").count()
    }

    /// Returns the sum, and its moment, at which the clock is advanced.
    fn glance_at_moment(&self) -> Option<(i64, u64)> {
        let mut moment = 0;
        let mut advance = || moment = self.clock.fetch_add(1, Ordering::SeqCst);
        let sum: Sum = (self.gate).glance(|| self.parts.iter(), add, Some(&mut advance))?;
        Some((sum.count(), moment))
    }

    fn size_at_moment(&self) -> Option<(i64, u64)> {
        let mut moment = 0;
        let mut advance = || moment = self.clock.fetch_add(1, Ordering::SeqCst);
        let sum = (self.census).share(|turn| {
            self.gate
                .close_and_sum(turn, || self.parts.iter(), add, &mut advance)
        });
        Some((sum?.count(), moment))
    }
}

/// Two numbers, which must belong to the same moment.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: i64,
    weight: i64,
}

impl Sum {
    fn count(self) -> i64 {
        assert_eq!(self.weight, WEIGHT * self.count, "one moment");
        self.count
    }
}

fn add(sum: &mut Sum, part: &Cell) {
    sum.count += part.count.load(Ordering::Relaxed);
    sum.weight += part.weight.load(Ordering::Relaxed);
}

fn check(switches: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(model);
}

/// Checks that objects a reader has seen before are counted, and that counted ones are visible
/// afterwards.
fn between_looks(store: &Store, size: impl Fn(&Store) -> Option<i64>) {
    let before = store.sees(0) + store.sees(1);
    let Some(size) = size(store) else { return };
    let after = store.sees(0) + store.sees(1);
    assert!(
        (before..=after).contains(&size),
        "{before} <= {size} <= {after}"
    );
}

#[test]
fn a_glance_is_of_one_moment() {
    check(2, || {
        let store = Store::new();
        let writer = Arc::clone(&store);
        let writer = thread::spawn(move || {
            writer.insert(0);
            writer.insert(1);
        });
        between_looks(&store, Store::glance);
        writer.join().expect("thread");
        assert_eq!(store.glance(), Some(2));
    });
}

#[test]
fn behind_the_gate_it_is_of_one_moment() {
    check(2, || {
        let store = Store::new();
        let writer = Arc::clone(&store);
        let writer = thread::spawn(move || {
            writer.insert(1);
            writer.insert(0);
        });
        between_looks(&store, |store| Some(store.size()));
        writer.join().expect("thread");
        assert_eq!(store.size(), 2);
    });
}

/// Two inserts whose order a reader has seen: a census that counts the later one counts the earlier
/// one.
#[test]
fn two_writers_and_a_reader() {
    check(1, || {
        let store = Store::new();
        let writers = [0, 1].map(|part| {
            let store = Arc::clone(&store);
            thread::spawn(move || store.insert(part))
        });
        between_looks(&store, |store| Some(store.size()));
        for writer in writers {
            writer.join().expect("thread");
        }
        assert_eq!(store.size(), 2);
    });
}

#[test]
fn a_shared_census_began_after_the_call() {
    check(2, || {
        let store = Store::new();
        let other = Arc::clone(&store);
        let other = thread::spawn(move || other.size());
        store.insert(0);
        assert_eq!(store.size(), 1);
        assert!((0..=1).contains(&other.join().expect("thread")));
    });
}

/// Checks that each change counted at a moment has read a time that is not later, and each other
/// change a later time.
fn times_separate_counted_changes_from_others(
    switches: usize,
    parts: &'static [usize],
    find: fn(&Store) -> Option<(i64, u64)>,
) {
    check(switches, move || {
        let store = Store::new();
        let writer = Arc::clone(&store);
        let insert = move |part: &usize| writer.insert(*part);
        let writer = thread::spawn(move || parts.iter().map(insert).collect::<Vec<_>>());
        let found = find(&store);
        let times = writer.join().expect("thread");
        if let Some((size, moment)) = found {
            let before = times.iter().filter(|time| **time <= moment).count();
            assert_eq!(size, before as i64, "{times:?} at {moment}");
        }
    });
}

#[test]
fn a_glance_finds_a_moment_between_writers() {
    times_separate_counted_changes_from_others(3, &[0], Store::glance_at_moment);
}

#[test]
fn a_closed_gate_makes_a_moment_between_writers() {
    times_separate_counted_changes_from_others(2, &[0, 1], Store::size_at_moment);
}
