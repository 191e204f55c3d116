//! Measurements by child processes.

use crate::child::Task;
use crate::engine::Outcome;
use crate::row::Group;
use ats_bench_common::Latencies;
use std::time::{Duration, Instant};

mod load;
mod merges;
mod osmos;
mod reads;
mod writes;

/// Measures the rows of a group.
///
/// # Errors
/// Those of the engine and of the system, and if the engine returns something else than was
/// written.
pub fn run(task: &Task) -> Outcome<()> {
    match task.group {
        Group::Load => load::run(task),
        Group::Reads => reads::run(task),
        Group::Writes => writes::run(task),
        Group::Removals => writes::remove(task),
        Group::Kill if task.recover => writes::recover(task),
        Group::Kill => writes::write_until_killed(task),
        Group::Merges => merges::run(task),
        Group::OneKey => merges::one_key(task),
        Group::Osmos => osmos::run(task),
    }
}

/// Calls made one after the other, each of them timed.
struct Calls {
    /// The time that each took.
    latencies: Latencies,
    /// Their number.
    count: u64,
    /// The time that all took.
    time: Duration,
}

impl Calls {
    /// Makes at most `count` calls, and no more after `limit`.
    fn make(
        count: u64,
        limit: Duration,
        mut call: impl FnMut(u64) -> Outcome<()>,
    ) -> Outcome<Self> {
        let mut latencies = Latencies::default();
        let start = Instant::now();
        let (mut done, mut now) = (0, start);
        while done < count && now - start < limit {
            call(done)?;
            let after = Instant::now();
            latencies.add((after - now).as_nanos() as u64);
            now = after;
            done += 1;
        }
        Ok(Calls {
            latencies,
            count: done,
            time: now - start,
        })
    }

    /// Returns the number a second.
    fn rate(&self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }
}

/// Returns the number of something that a piece of work did in a second.
fn rate(count: u64, work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let start = Instant::now();
    work()?;
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

/// Milliseconds since a moment.
fn ms_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
