//! Interleavings of few threads in the places where the structure changes, chosen by a scheduler that
//! looks for trouble. Runs under `RUSTFLAGS="--cfg shuttle"`.
//!
//! Most tests build a store that is one write away from a change of its structure, let writers make the
//! change, and let readers look at keys that no writer touches; they fail if the change is not reached.
//! Nodes are small there: eight keys in a leaf, eight children of an inner node. An access to an atomic is
//! where the scheduler can switch. It does not show the effects of weak memory orders; `loom`, which
//! does, is too slow for structures of this size.
//!
//! | module | what it explores |
//! |---|---|
//! | [`leaves`] | leaves and inner nodes of the tree that split, share, merge and go |
//! | [`adapting`] | base nodes that are split and joined |
//! | [`batches`] | several keys written as one |
//! | [`claims`] | one key held by a change that takes long |
//! | [`anything`] | random operations of any kind while the tree adapts |
//! | [`hash`] | buckets of the hash table that split and join, and fixations |
//! | [`hashing`] | random operations of any kind while the hash table adapts |
//! | [`paper_tree`] | base nodes of the tree for comparison that are split and joined |
#![cfg(shuttle)]

// Before the modules, which use it.
macro_rules! together {
    ($($share:ident => $body:block)*) => {
        crate::run_all(vec![$({
            let $share = std::sync::Arc::clone(&$share);
            Box::new(move || $body)
        }),*])
    };
}

mod adapting;
mod anything;
mod batches;
mod claims;
mod hash;
mod hashing;
mod leaves;
mod paper_tree;

use ats_mem::{
    Adaptive, Backend, Busy, CaTree, Change, Direction, Fixable, KeyRange, MemoryStore, Ordered,
    Plain, RecordBox, Skipped,
};
use ats_sync::pin;
use ats_sync::shim::atomic::quietly;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner, thread};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// How long each scheduler may try, for each test.
const TIME: Duration = Duration::from_millis(800);
/// More would not be reached in the time.
const ITERATIONS: usize = 1_000_000;

/// Runs a scenario under a scheduler that switches at random, and under one that switches rarely but
/// with a guaranteed chance of finding bugs that need few switches (Burckhardt and others, ASPLOS
/// 2010).
fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    explore_for(TIME, scenario);
}

fn explore_for(time: Duration, scenario: impl Fn() + Send + Sync + 'static) {
    let scenario = Arc::new(scenario);
    let again = Arc::clone(&scenario);
    Runner::new(RandomScheduler::new(ITERATIONS), config(time)).run(move || scenario());
    Runner::new(PctScheduler::new(3, ITERATIONS), config(time)).run(move || again());
}

/// As `explore`, for a scenario that says whether it came to what it is about. At least one run in ten
/// has to.
fn explore_reaching(scenario: impl Fn() -> bool + Send + Sync + 'static) {
    explore_reaching_for(TIME, scenario);
}

fn explore_reaching_for(time: Duration, scenario: impl Fn() -> bool + Send + Sync + 'static) {
    let counts = Arc::new([0; 2].map(AtomicUsize::new));
    let counting = Arc::clone(&counts);
    explore_for(time, move || {
        counting[0].fetch_add(1, Relaxed);
        counting[1].fetch_add(scenario().into(), Relaxed);
    });
    let [runs, reached] = [0, 1].map(|at: usize| counts[at].load(Relaxed));
    assert!(reached * 10 >= runs, "reached in {reached} of {runs} runs");
}

/// Runs something once that needs no scheduler, only small nodes.
fn once(act: impl Fn() + Send + Sync + 'static) {
    Runner::new(RandomScheduler::new(1), config(TIME)).run(move || quietly(&act));
}

fn config(time: Duration) -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.max_steps = MaxSteps::FailAfter(1_000_000);
    config.max_time = Some(time);
    config.silence_warnings = true;
    config
}

/// Runs all of these at once, and ends with them.
fn run_all(threads: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = threads.into_iter().map(thread::spawn).collect();
    for thread in threads {
        thread.join().expect("a thread of the scenario");
    }
}

/// Keys of this number and above are so long that the tree keeps no tombstones of them, and merges
/// leaves before they are empty.
const LONG: u64 = 1 << 32;

fn key(number: u64) -> Vec<u8> {
    let tail = if number < LONG { 0 } else { 16 };
    [&number.to_be_bytes()[..], &[1; 16][..tail]].concat()
}

/// The number of a key.
fn number(key: &[u8]) -> u64 {
    let number = key.first_chunk().expect("keys of eight bytes or more");
    u64::from_be_bytes(*number)
}

fn put(store: &impl MemoryStore<Plain>, number: u64, value: u64) {
    let key = key(number);
    let guard = pin();
    let put = || {
        store.update(&key, &guard, &mut |_| {
            Change::Put(RecordBox::new(&key, &[value], false))
        })
    };
    while put() == Err(Busy) {
        thread::yield_now();
    }
}

fn remove(store: &impl MemoryStore<Plain>, number: u64) {
    let guard = pin();
    while store.update(&key(number), &guard, &mut |_| Change::Remove) == Err(Busy) {
        thread::yield_now();
    }
}

/// Puts `value` under all of these numbers, which ascend, as one.
fn put_all(store: &impl MemoryStore<Plain>, numbers: &[u64], value: u64) {
    let keys: Vec<Vec<u8>> = numbers.iter().map(|number| key(*number)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let guard = pin();
    let put = || {
        store.update_many(&keys, &guard, &mut |index, _| {
            Change::Put(RecordBox::new(keys[index], &[value], false))
        })
    };
    while put() != Ok(true) {
        thread::yield_now();
    }
}

fn get(store: &impl MemoryStore<Plain>, number: u64) -> Option<u64> {
    store
        .get(&key(number), &pin())
        .map(|record| record.value()[0])
}

/// What a scan meets behind a number, or from the beginning, in its order: numbers and values.
fn scanned(store: &impl MemoryStore<Plain>, after: Option<u64>) -> Vec<(u64, u64)> {
    let mut met = Vec::new();
    let after = after.map(key);
    let scanned = store.scan(after.as_deref(), &pin(), &mut |record| {
        met.push((number(record.key()), record.value()[0]));
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    met
}

/// The numbers a scan meets, in its order.
fn numbers(store: &impl MemoryStore<Plain>) -> Vec<u64> {
    let met = scanned(store, None);
    met.into_iter().map(|(number, _)| number).collect()
}

/// The numbers that a chain of `next` calls comes to, or of `prev` calls.
fn walked(tree: &CaTree<Plain>, upwards: bool) -> Vec<u64> {
    let mut met = Vec::new();
    let guard = pin();
    let mut here = match upwards {
        true => tree.first(&guard),
        false => tree.last(&guard),
    };
    while let Some(record) = here {
        met.push(number(record.key()));
        let step = match upwards {
            true => tree.next(record.key(), &guard),
            false => tree.prev(record.key(), &guard),
        };
        here = step.expect("ordered stores take any key");
    }
    met
}

/// What comes of skipping records.
fn skipped(
    tree: &CaTree<Plain>,
    range: Range<u64>,
    direction: Direction,
    most: usize,
) -> Result<u64, usize> {
    let (low, high) = (key(range.start), key(range.end));
    let key_range = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let guard = pin();
    match tree.skip(key_range, direction, most, &guard, &mut || {
        ControlFlow::Continue(())
    }) {
        Skipped::At(record, _) => Ok(number(record.key())),
        Skipped::All(skipped) => Err(skipped),
        Skipped::Paused { .. } => panic!("nobody said so"),
    }
}

/// How many records there are.
fn count(tree: &CaTree<Plain>, range: Range<u64>) -> usize {
    skipped(tree, range, Direction::Up, usize::MAX).expect_err("not so many")
}

/// Asserts that these numbers, which ascend, are counted and found by their places.
fn are_counted(tree: &CaTree<Plain>, numbers: &[u64]) {
    let all = || 0..u64::MAX;
    assert_eq!(count(tree, all()), numbers.len());
    for (rank, number) in numbers.iter().enumerate() {
        assert_eq!(count(tree, 0..*number), rank);
        assert_eq!(skipped(tree, all(), Direction::Up, rank), Ok(*number));
        let behind = numbers.len() - rank - 1;
        assert_eq!(skipped(tree, all(), Direction::Down, behind), Ok(*number));
    }
}

/// Asserts that each of `stay` is among the numbers met, and that these ascend.
fn are_ascending_with(met: &[u64], stay: impl Iterator<Item = u64>) {
    assert!(met.windows(2).all(|pair| pair[0] < pair[1]), "{met:?}");
    for number in stay {
        assert!(met.contains(&number), "{number} is not in {met:?}");
    }
}

/// Asserts that a scan meets each of `stay` once, and of the others none twice.
fn scan_meets(store: &impl MemoryStore<Plain>, stay: impl Iterator<Item = u64>) {
    let mut met = numbers(store);
    met.sort_unstable();
    are_ascending_with(&met, stay);
}

/// Asserts that a scan, and walks in both directions, meet each of `stay` in order.
fn walks_meet(tree: &CaTree<Plain>, stay: impl Iterator<Item = u64> + Clone) {
    are_ascending_with(&numbers(tree), stay.clone());
    are_ascending_with(&walked(tree, true), stay.clone());
    let mut down = walked(tree, false);
    down.reverse();
    are_ascending_with(&down, stay);
}

fn filled<S: MemoryStore<Plain> + Default>(numbers: impl Iterator<Item = u64>) -> Arc<S> {
    let store = S::default();
    quietly(|| numbers.for_each(|number| put(&store, number, number)));
    Arc::new(store)
}

/// Even numbers, so that odd ones fall between them. They fill leaf after leaf of the tree.
fn evens(count: u64) -> impl Iterator<Item = u64> + Clone {
    (0..count).map(|number| 2 * number)
}

/// The keys of a full leaf of the tree.
const LEAF: u64 = 8;

/// Bytes of the nodes of a tree, without records.
fn structure(tree: &CaTree<Plain>) -> usize {
    let mut records = 0;
    quietly(|| {
        let scanned = tree.scan(None, &pin(), &mut |record| {
            records += record.bytes();
            ControlFlow::Continue(())
        });
        assert_eq!(scanned, Ok(()));
        tree.bytes() - records
    })
}
