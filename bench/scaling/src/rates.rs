//! How fast one thread is alone, and two beside each other: the calibration of the model, and a check of it.

use crate::mixes::{Mix, Subject};
use crate::tables::TableKind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a run takes, and how many there are. The fastest counts: whatever else the machine does makes a run
/// slower.
const TIME: Duration = Duration::from_millis(80);
const RUNS: usize = 20;

/// Steps that a thread does over and over: enough to leave the caches.
const STEPS: u64 = 1 << 17;

/// The throughput of one mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The table.
    pub kind: TableKind,
    /// What was done.
    pub mix: Mix,
    /// How many threads did it.
    pub threads: usize,
    /// Operations a second of all threads together.
    pub per_second: f64,
}

impl Rate {
    /// A line of a file.
    pub fn to_csv(self) -> String {
        let (kind, mix) = (self.kind.id(), self.mix.id());
        format!("rate,{kind},{mix},{},{:.0}", self.threads, self.per_second)
    }

    /// What such a line says; `None` of any other line.
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
            let mut best = [0.0; 2];
            // In turn, so that both meet the same machine.
            for _ in 0..RUNS {
                for (best, threads) in best.iter_mut().zip(1..) {
                    *best = run(&subject, mix, threads).max(*best);
                }
            }
            for (per_second, threads) in best.into_iter().zip(1..) {
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

fn run(subject: &Subject, mix: Mix, threads: usize) -> f64 {
    let (ready, stop) = (&Barrier::new(threads + 1), &AtomicBool::new(false));
    let steps_each = STEPS.min(mix.enough());
    let work = move |seed| {
        let steps = Subject::draw(mix, steps_each, seed);
        ready.wait();
        let start = Instant::now();
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
        operations as f64 / start.elapsed().as_secs_f64()
    };
    thread::scope(|scope| {
        let crew: Vec<_> = (0..threads as u64)
            .map(|seed| scope.spawn(move || work(seed)))
            .collect();
        ready.wait();
        thread::sleep(TIME);
        stop.store(true, Ordering::Relaxed);
        let rates = crew.into_iter().map(|one| one.join().expect("no panic"));
        rates.sum()
    })
}

/// How many bytes the blocks have of which a refill is timed: those of a small object.
const BLOCK: usize = 32;

/// Seconds for which a thread holds the lock of a pool of the slab to fetch blocks. Measured as the time that
/// allocation takes if every block comes from the pool sooner or later: all of that is reckoned to be under the
/// lock. Returns seconds for one block.
pub fn seconds_in_pool() -> f64 {
    const BLOCKS: usize = 1 << 18;
    let time = |_| {
        let mut blocks = Vec::with_capacity(BLOCKS);
        let start = Instant::now();
        blocks.extend((0..BLOCKS).map(|_| ats_mem::slab::allocate(BLOCK)));
        let time = start.elapsed().as_secs_f64();
        for block in blocks {
            // SAFETY: allocated above with this size, and not used.
            unsafe { ats_mem::slab::free(block, BLOCK) };
        }
        time / BLOCKS as f64
    };
    (0..RUNS).map(time).fold(f64::MAX, f64::min)
}
