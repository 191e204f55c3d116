//! Runs mixes in the build that counts, and adds up the counts of the threads.

use crate::counts::{CORES, Counts, SHARED, Share};
use crate::mixes::{Mix, Step, Subject};
use crate::tables::TableKind;
use ats_sync::count::{self, Tally, Touches};
use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;

/// The numbers of threads that count.
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// Counts all mixes on both kinds of tables with all numbers of threads, and hands each result on.
///
/// Fails if operations that only read write a line that other threads access.
pub fn count_all(mut report: impl FnMut(&Counts)) -> Result<(), String> {
    let mut wrong = Vec::new();
    for kind in TableKind::ALL {
        for mix in Mix::ALL {
            for threads in THREADS {
                let counts = count_one(kind, mix, threads, mix.enough());
                report(&counts);
                let shared = counts.figures[SHARED];
                if mix.writes_nothing_shared() && shared > 0.0 {
                    wrong.push(format!(
                        "{}, {}, {threads} threads: {shared} shared lines written per operation, \
                         not 0",
                        kind.id(),
                        mix.name()
                    ));
                }
            }
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// Counts one mix, in a number of operations of all threads together.
fn count_one(kind: TableKind, mix: Mix, threads: usize, operations: u64) -> Counts {
    let subject = Subject::new(kind.table_type());
    let draw = |operations, seed| Subject::draw(mix, operations, seed);
    count_on(&subject, (kind, mix), (threads, operations), draw)
}

/// Counts operations that `draw` returns, of a number and a seed.
fn count_on(
    subject: &Subject,
    (kind, mix): (TableKind, Mix),
    (threads, operations): (usize, u64),
    draw: impl Fn(u64, u64) -> Vec<Step> + Sync,
) -> Counts {
    let ready = Barrier::new(threads);
    let each = operations / threads as u64;
    let work = |thread: u64| {
        // The table adapts to these threads first.
        let before = draw(each / 4, thread);
        let steps = draw(each, thread + 100);
        ready.wait();
        subject.work(&before, || ());
        ready.wait();
        count::begin();
        subject.work(&steps, count::next_operation);
        count::end()
    };
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let work = &work;
        let crew: Vec<_> = (0..threads as u64)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        crew.into_iter()
            .map(|one| one.join().expect("a worker does not panic"))
            .collect()
    });
    add_up(kind, mix, subject.parts(), &tallies)
}

/// The accesses of all threads to one line.
#[derive(Default)]
struct Line {
    reads: u64,
    writes: u64,
    threads: u32,
    writers: u32,
}

fn add_up(kind: TableKind, mix: Mix, parts: usize, tallies: &[Tally]) -> Counts {
    let mut lines: HashMap<usize, Line> = HashMap::new();
    for tally in tallies {
        for (address, touches) in &tally.lines {
            let line = lines.entry(*address).or_default();
            line.reads += u64::from(touches.reads);
            line.writes += u64::from(touches.writes);
            line.threads += 1;
            line.writers += u32::from(touches.writes > 0);
        }
    }
    let operations: u64 = tallies
        .iter()
        .map(|tally| u64::from(tally.operations))
        .sum();
    let per_operation = |number: u64| number as f64 / operations as f64;
    let sum = |figure: fn(&Tally) -> u64| per_operation(tallies.iter().map(figure).sum());
    let written = |choose: fn(&Line) -> bool| {
        let chosen = lines.values().filter(|line| choose(line));
        per_operation(chosen.map(|line| line.writes).sum())
    };
    // Excludes lines that only one thread writes.
    let contested = lines.values().filter(|line| line.writers > 1);
    let hottest = contested.map(|line| line.writes).max().unwrap_or(0);
    let fetched = CORES.map(|cores| {
        let others = tallies.len().max(2) - 1;
        let more = (cores - 1) as f64 / others as f64;
        let fetches = tallies.iter().flat_map(|tally| &tally.lines);
        let fetches = fetches.map(|(address, own)| share(own, &lines[address]).fetches(more));
        fetches.sum::<f64>() / operations as f64
    });
    Counts {
        kind,
        mix,
        threads: tallies.len(),
        parts,
        figures: [
            sum(|tally| tally.changes),
            sum(|tally| tally.stores),
            sum(|tally| tally.locks),
            sum(|tally| tally.waits),
            sum(|tally| tally.mutexes),
            sum(|tally| tally.allocated),
            sum(|tally| tally.moved),
            sum(|tally| tally.barriers),
            sum(|tally| tally.futexes),
            written(|_| true),
            written(|line| line.threads > 1),
            per_operation(hottest),
        ],
        fetched,
    }
}

fn share(own: &Touches, all: &Line) -> Share {
    let (reads, writes) = (f64::from(own.reads), f64::from(own.writes));
    Share {
        reads,
        writes,
        others: (all.reads + all.writes) as f64 - reads - writes,
        others_writes: all.writes as f64 - writes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{LOCKS, SLAB};

    #[test]
    fn operations_that_read_write_no_shared_line_and_take_no_lock() {
        for kind in TableKind::ALL {
            for mix in [Mix::Lookup, Mix::Chains] {
                let counts = count_one(kind, mix, 4, 40_000);
                assert_eq!(counts.figures[SHARED], 0.0, "{counts:?}");
                assert_eq!(counts.figures[LOCKS], 0.0, "{counts:?}");
                assert_eq!(counts.fetched, [0.0; CORES.len()], "{counts:?}");
            }
        }
    }

    /// Counts reads of objects that were read often enough that their bits stay. One read in 64 is
    /// counted as a hit or a miss, in a line that few threads share.
    #[test]
    fn reads_of_a_bounded_table_write_for_samples_alone() {
        for kind in TableKind::ALL {
            let subject = Subject::bounded(kind.table_type());
            let of = (kind, Mix::Lookup);
            let counts = count_on(&subject, of, (4, 40_000), Subject::draw_hot);
            assert!(counts.figures[SHARED] < 1.2 / 64.0, "{counts:?}");
            assert_eq!(counts.figures[LOCKS], 0.0, "{counts:?}");
        }
    }

    #[test]
    fn one_counter_is_one_line_that_all_write() {
        for kind in TableKind::ALL {
            let counts = count_one(kind, Mix::OneCounter, 4, 40_000);
            assert!((counts.figures[SHARED] - 1.0).abs() < 0.01, "{counts:?}");
            assert!(counts.fetched[7] > 0.9, "{counts:?}");
        }
    }

    #[test]
    fn updates_take_one_lock_at_most() {
        for kind in TableKind::ALL {
            let counts = count_one(kind, Mix::Updates, 2, 40_000);
            // Half of the deletes, which are half of the updates, find nothing and take none.
            let locks = counts.figures[LOCKS] - counts.figures[SLAB];
            assert!((0.7..0.9).contains(&locks), "{counts:?}");
            // Alone there is no other core to fetch from.
            assert_eq!(counts.fetched[0], 0.0);
            assert!(counts.fetched.is_sorted(), "{counts:?}");
        }
    }
}
