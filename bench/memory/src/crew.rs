//! Threads that do the same thing at the same time while a clock runs.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WARMING: u8 = 0;
const MEASURING: u8 = 1;
const STOPPING: u8 = 2;

/// Operations per second of `threads` threads that do their step over and over for `time`, after a
/// quarter of it to get warm. `step` makes the step of a thread; a step says how many operations it
/// did.
pub fn rate_over_time<S>(threads: usize, time: Duration, step: impl Fn(usize) -> S + Sync) -> f64
where
    S: FnMut() -> u64,
{
    let phase = AtomicU8::new(WARMING);
    let ready = Barrier::new(threads + 1);
    let work = |thread| {
        let mut step = step(thread);
        ready.wait();
        while phase.load(Ordering::Relaxed) == WARMING {
            step();
        }
        let start = Instant::now();
        let mut operations = 0;
        while phase.load(Ordering::Relaxed) == MEASURING {
            operations += step();
        }
        operations as f64 / start.elapsed().as_secs_f64()
    };
    thread::scope(|scope| {
        let work = &work;
        let crew: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        ready.wait();
        thread::sleep(time / 4);
        phase.store(MEASURING, Ordering::Relaxed);
        thread::sleep(time);
        phase.store(STOPPING, Ordering::Relaxed);
        let rates = crew.into_iter().map(|one| one.join().expect("no panic"));
        rates.sum()
    })
}

/// Operations per second of threads that do their work once, from when the first begins until the
/// last is done. `work` says how many operations it did.
pub fn rate_of_work(threads: usize, work: impl Fn(usize) -> u64 + Sync) -> f64 {
    let ready = Barrier::new(threads);
    let timed = |thread| {
        ready.wait();
        let start = Instant::now();
        let operations = work(thread);
        (operations, start, Instant::now())
    };
    let runs: Vec<_> = thread::scope(|scope| {
        let timed = &timed;
        let crew: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || timed(thread)))
            .collect();
        let runs = crew.into_iter().map(|one| one.join().expect("no panic"));
        runs.collect()
    });
    let operations: u64 = runs.iter().map(|run| run.0).sum();
    let start = runs.iter().map(|run| run.1).min().expect("a thread");
    let end = runs.iter().map(|run| run.2).max().expect("a thread");
    operations as f64 / (end - start).as_secs_f64()
}
