//! The rates of one thread alone, and of two beside each other: the calibration of the model, and a
//! check of it.

use crate::mixes::{Mix, Subject};
use crate::tables::TableKind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time that a run takes, and the number of runs. The run counts that was disturbed least, of
/// several equal ones the fastest.
const TIME: Duration = Duration::from_millis(60);
const RUNS: usize = 40;

/// A run in which no thread had to wait for a processor for a larger part of its time is not
/// disturbed.
const DISTURBED: f64 = 0.04;

/// Steps that a thread does over and over: enough to leave the caches.
const STEPS: u64 = 1 << 17;

/// The throughput of one mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The table.
    pub kind: TableKind,
    /// The operation.
    pub mix: Mix,
    /// The number of threads that did it.
    pub threads: usize,
    /// Operations a second of all threads together.
    pub per_second: f64,
}

impl Rate {
    /// Returns a line of a file.
    pub fn to_csv(self) -> String {
        let (kind, mix) = (self.kind.id(), self.mix.id());
        format!("rate,{kind},{mix},{},{:.0}", self.threads, self.per_second)
    }

    /// Returns the rate in such a line; `None` of any other line.
    pub fn from_csv(line: &str) -> Option<Self> {
        let mut fields = line.strip_prefix("rate,")?.split(',');
        Some(Rate {
            kind: TableKind::of_id(fields.next()?)?,
            mix: crate::counts::mix_of_id(fields.next()?)?,
            threads: fields.next()?.parse().ok()?,
            per_second: fields.next()?.parse().ok()?,
        })
    }
}

/// Measures all mixes on both kinds of tables with one thread and with two.
pub fn measure_all(mut report: impl FnMut(Rate)) {
    for kind in TableKind::ALL {
        for mix in Mix::ALL {
            let subject = Subject::new(kind.table_type());
            let mut best = [Run::default(); 2];
            // The first time counters get their cells, and caches are cold.
            run(&subject, mix, 2);
            // Takes turns, so that both meet the same machine.
            for _ in 0..RUNS {
                for (best, threads) in best.iter_mut().zip(1..) {
                    let run = run(&subject, mix, threads);
                    if run.is_better(best) {
                        *best = run;
                    }
                }
            }
            for (Run { per_second, .. }, threads) in best.into_iter().zip(1..) {
                report(Rate {
                    kind,
                    mix,
                    threads,
                    per_second,
                });
            }
        }
    }
}

/// One run.
#[derive(Clone, Copy)]
struct Run {
    per_second: f64,
    /// The part of its time in which a thread could have run, but other programs had the
    /// processors.
    waited: f64,
}

impl Default for Run {
    /// Worse than any run.
    fn default() -> Self {
        Run {
            per_second: 0.0,
            waited: f64::MAX,
        }
    }
}

impl Run {
    fn is_better(&self, other: &Run) -> bool {
        match (self.waited < DISTURBED, other.waited < DISTURBED) {
            (true, true) => self.per_second > other.per_second,
            _ => self.waited < other.waited,
        }
    }
}

fn run(subject: &Subject, mix: Mix, threads: usize) -> Run {
    let (ready, stop) = (&Barrier::new(threads + 1), &AtomicBool::new(false));
    let steps_each = STEPS.min(mix.enough());
    let work = move |seed| {
        let steps = Subject::draw(mix, steps_each, seed);
        ready.wait();
        let (start, queued_before) = (Instant::now(), seconds_in_queue());
        let mut operations = 0;
        'time: loop {
            for piece in steps.chunks(256) {
                subject.work(piece, || ());
                operations += piece.len();
                if stop.load(Ordering::Relaxed) {
                    break 'time;
                }
            }
        }
        let (time, queued) = (start.elapsed().as_secs_f64(), seconds_in_queue());
        let queued = queued - queued_before;
        Run {
            per_second: operations as f64 / (time - queued),
            waited: queued / time,
        }
    };
    thread::scope(|scope| {
        let crew: Vec<_> = (0..threads as u64)
            .map(|seed| scope.spawn(move || work(seed)))
            .collect();
        ready.wait();
        thread::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
        let none = Run {
            per_second: 0.0,
            waited: 0.0,
        };
        crew.into_iter().fold(none, |all, one| {
            let one = one.join().expect("a worker does not panic");
            Run {
                per_second: all.per_second + one.per_second,
                waited: one.waited.max(all.waited),
            }
        })
    })
}

/// Returns the time for which this thread could have run and did not, because other threads did.
/// The kernel counts it (the second number, in nanoseconds); elsewhere than on Linux it is unknown
/// and counts as none.
fn seconds_in_queue() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let queued = statistics.split_whitespace().nth(1);
    queued
        .and_then(|queued| queued.parse::<f64>().ok())
        .unwrap_or(0.0)
        * 1e-9
}

/// The size in bytes of the blocks of which a refill is timed: those of a small object.
const BLOCK: usize = 32;

/// Seconds for which a thread holds the lock of a pool of the slab to fetch blocks. Measured as the
/// time that allocation takes if every block comes from the pool sooner or later: all of that is
/// reckoned to be under the lock. Returns seconds for one block.
pub fn seconds_in_pool() -> f64 {
    const BLOCKS: usize = 1 << 18;
    let time = |_| {
        let mut blocks = Vec::with_capacity(BLOCKS);
        let start = Instant::now();
        blocks.extend((0..BLOCKS).map(|_| ats_mem::slab::allocate(BLOCK)));
        let time = start.elapsed().as_secs_f64();
        for block in blocks {
            // SAFETY: the block was allocated above with this size, and is not used any more.
            unsafe { ats_mem::slab::free(block, BLOCK) };
        }
        time / BLOCKS as f64
    };
    (0..RUNS).map(time).fold(f64::MAX, f64::min)
}
