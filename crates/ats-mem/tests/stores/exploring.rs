//! Scenarios under a scheduler, and a store of numbers for them.

use ats_mem::When;
use ats_mem::{Busy, Change, Plain, Provided, RecordBox, Records};
use ats_sync::pin;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner, thread};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Runs blocks concurrently, each with its own reference to the value it names.
macro_rules! together {
    ($($share:ident => $body:block)*) => {
        $crate::exploring::run_all(vec![$({
            let $share = std::sync::Arc::clone(&$share);
            Box::new(move || $body)
        }),*])
    };
}

/// Time limit of each scheduler, for each test.
pub(crate) const TIME: Duration = Duration::from_millis(800);
/// Largest number of iterations, which the time limit never allows.
pub(crate) const ITERATIONS: usize = 1_000_000;

/// Runs a scenario under a scheduler that switches at random, and under one that switches rarely
/// but with a guaranteed chance of finding bugs that need few switches (Burckhardt and others,
/// ASPLOS 2010).
pub(crate) fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    explore_for(TIME, scenario);
}

pub(crate) fn explore_for(time: Duration, scenario: impl Fn() + Send + Sync + 'static) {
    let scenario = Arc::new(scenario);
    let again = Arc::clone(&scenario);
    Runner::new(RandomScheduler::new(ITERATIONS), config(time)).run(move || scenario());
    Runner::new(PctScheduler::new(3, ITERATIONS), config(time)).run(move || again());
}

/// Explores like `explore`, for a scenario that returns `true` if it reached its subject. At least
/// one run in ten has to.
pub(crate) fn explore_reaching(scenario: impl Fn() -> bool + Send + Sync + 'static) {
    explore_reaching_for(TIME, scenario);
}

pub(crate) fn explore_reaching_for(
    time: Duration,
    scenario: impl Fn() -> bool + Send + Sync + 'static,
) {
    let counts = Arc::new([0; 2].map(AtomicUsize::new));
    let counting = Arc::clone(&counts);
    explore_for(time, move || {
        counting[0].fetch_add(1, Relaxed);
        counting[1].fetch_add(scenario().into(), Relaxed);
    });
    let [runs, reached] = [0, 1].map(|at: usize| counts[at].load(Relaxed));
    assert!(reached * 10 >= runs, "reached in {reached} of {runs} runs");
}

pub(crate) fn config(time: Duration) -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.max_steps = MaxSteps::FailAfter(1_000_000);
    config.max_time = Some(time);
    config.silence_warnings = true;
    config
}

/// Runs all threads concurrently, and waits for their end.
pub(crate) fn run_all(threads: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = threads.into_iter().map(thread::spawn).collect();
    for thread in threads {
        thread.join().expect("a thread of the scenario");
    }
}

/// Number from which keys are so long that the tree keeps no tombstones of them, and merges leaves
/// before they are empty.
pub(crate) const LONG: u64 = 1 << 32;

pub(crate) fn key(number: u64) -> Vec<u8> {
    let tail = if number < LONG { 0 } else { 16 };
    [&number.to_be_bytes()[..], &[1; 16][..tail]].concat()
}

/// Returns the number of a key.
pub(crate) fn number(key: &[u8]) -> u64 {
    let number = key.first_chunk().expect("keys of eight bytes or more");
    u64::from_be_bytes(*number)
}

pub(crate) fn put(store: &impl Records<Plain>, number: u64, value: u64) {
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

pub(crate) fn remove(store: &impl Records<Plain>, number: u64) {
    let guard = pin();
    while store.update(&key(number), &guard, &mut |_| Change::Remove) == Err(Busy) {
        thread::yield_now();
    }
}

pub(crate) fn get(store: &impl Records<Plain>, number: u64) -> Option<u64> {
    store
        .get(&key(number), &pin())
        .map(|record| record.value()[0])
}

/// Returns the numbers and values that a scan finds after a number, or from the beginning, in its
/// order.
pub(crate) fn scan_from(store: &impl Records<Plain>, after: Option<u64>) -> Vec<(u64, u64)> {
    let mut met = Vec::new();
    let after = after.map(key);
    let scanned = store.scan(after.as_deref(), When::NOW, &pin(), &mut |record| {
        met.push((number(record.key()), record.value()[0]));
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    met
}

/// The numbers a scan meets, in its order.
pub(crate) fn numbers(store: &impl Records<Plain>) -> Vec<u64> {
    let met = scan_from(store, None);
    met.into_iter().map(|(number, _)| number).collect()
}

/// Asserts that each of `stay` is among the numbers met, and that these ascend.
pub(crate) fn are_ascending_with(met: &[u64], stay: impl Iterator<Item = u64>) {
    assert!(met.windows(2).all(|pair| pair[0] < pair[1]), "{met:?}");
    for number in stay {
        assert!(met.contains(&number), "{number} is not in {met:?}");
    }
}
