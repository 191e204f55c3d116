//! The designs as the model knows them: their operations, in terms of lines and stations.
//!
//! For our tables the lines are counted. For those of `ets` they follow from how `ets` works, and
//! the comments say how. Seconds alone are measured or published in all cases.

use crate::counts::{BARRIERS, Counts, LOCKS, SLAB};
use crate::mixes::Mix;
use crate::model::{Machine, NS, Operation, Service, Station, US};
use crate::tables::TableKind;

/// The machine of the published figures: 2 processors Intel E5-2673 v4, 32 cores, 64 threads.
///
/// `wake` is fitted to one published figure, which [`published`](crate::published) names.
pub const PUBLISHED: Machine = Machine {
    sockets: 2,
    cores: 16,
    two_threads: 1.3,
    within: 50.0 * NS,
    between: 150.0 * NS,
    call: 1.2 * US,
    interrupt: US,
    wake: 38.0 * US,
    patience: 10.0 * US,
};

/// A machine for predictions: 2 sockets of 64 cores with one thread each.
pub const LARGE: Machine = Machine {
    cores: 64,
    two_threads: 1.0,
    ..PUBLISHED
};

/// The machine on which our tables are measured, of which two cores of one socket are had.
pub const HERE: Machine = Machine {
    sockets: 1,
    cores: 2,
    ..LARGE
};

/// `LARGE` with the cheapest and the dearest lines of the range that is found in the literature.
pub const BOUNDS: [Machine; 2] = [
    Machine {
        within: 40.0 * NS,
        between: 100.0 * NS,
        ..LARGE
    },
    Machine {
        within: 100.0 * NS,
        between: 300.0 * NS,
        ..LARGE
    },
];

/// A design of `ets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ets {
    /// `ordered_set` of Erlang/OTP 21: an AVL tree under one lock for readers and writers.
    Tree21,
    /// `ordered_set` of Erlang/OTP 22 with `write_concurrency`: a contention adapting tree.
    Tree22,
    /// `set` of Erlang/OTP 22 with `write_concurrency`: 64 locks, and one counter of objects.
    Set22,
    /// `set` of Erlang/OTP 25 with `write_concurrency` and `decentralized_counters`: 64 locks.
    Set25,
}

impl Ets {
    /// All of them.
    pub const ALL: [Ets; 4] = [Ets::Tree21, Ets::Tree22, Ets::Set22, Ets::Set25];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Ets::Tree21 => "ordered_set, OTP 21",
            Ets::Tree22 => "ordered_set, OTP 22",
            Ets::Set22 => "set, OTP 22",
            Ets::Set25 => "set, OTP 25, decentralized counters",
        }
    }

    /// Returns an operation of a mix with this part of inserts and deletes, half of which change
    /// nothing.
    pub fn operation(self, writes: f64, alone: f64, threads: usize) -> Operation {
        let (fetched, stations) = match self {
            Ets::Tree21 => (0.0, one_tree(writes, alone)),
            Ets::Tree22 => contention_adapting(writes, alone, threads),
            Ets::Set22 => sixty_four_locks(writes, alone, threads, true),
            Ets::Set25 => sixty_four_locks(writes, alone, threads, false),
        };
        Operation {
            alone,
            fetched,
            calls: 0.0,
            stations,
        }
    }
}

/// Readers count themselves in one word, when they come and when they go. A writer is alone. The
/// lock goes to the thread that has waited longest: once for a write, and once more if a reader
/// comes next. Readers that wait are woken one by one.
fn one_tree(writes: f64, alone: f64) -> Vec<Station> {
    let reads = 1.0 - writes;
    let sleeps = if writes > 0.0 { 1.0 } else { 0.0 };
    vec![Station {
        copies: 1.0,
        visits: 1.0,
        service: Service::Queue {
            hold: writes * alone,
            lines: writes + 2.0 * reads,
            handovers: writes * (1.0 + reads),
            wakes: sleeps * reads,
        },
        nested: false,
    }]
}

/// Every operation takes the lock of a base node, a lookup for reading; that is one line. An insert
/// or a delete writes two nodes besides, the one whose child changes and one that is balanced, and
/// reads one that another operation has changed. (Route nodes do not change while the tree does not
/// adapt.)
fn contention_adapting(writes: f64, alone: f64, threads: usize) -> (f64, Vec<Station>) {
    let share = HELD * (0.1 + 0.9 * writes);
    let station = Station {
        copies: parts(threads, share),
        visits: 1.0,
        service: Service::Lock {
            hold: share * alone,
        },
        nested: false,
    };
    (3.0 * writes * others(threads), vec![station])
}

/// Every operation takes one of 64 locks, a lookup for reading. An insert or a delete writes the
/// bucket and an object. Half of them change the number of objects while they hold the lock; the
/// other half read it.
fn sixty_four_locks(writes: f64, alone: f64, threads: usize, central: bool) -> (f64, Vec<Station>) {
    let lock = Station {
        copies: 64.0,
        visits: 1.0,
        service: if writes > 0.0 {
            Service::Queue {
                hold: HELD * writes * alone,
                lines: 1.0,
                handovers: writes * (2.0 - writes),
                wakes: 1.0 - writes,
            }
        } else {
            Service::Line
        },
        nested: false,
    };
    let counter = Station {
        copies: 1.0,
        visits: writes,
        service: Service::Line,
        nested: true,
    };
    let stations = if central && writes > 0.0 {
        vec![lock, counter]
    } else {
        vec![lock]
    };
    (2.0 * writes * others(threads), stations)
}

/// The part of an operation during which it holds a lock that it writes under.
const HELD: f64 = 0.3;

/// Acquisitions for each one that waits, when a structure that adapts neither splits nor joins any
/// more: a wait adds 250 to its statistics, and an acquisition without one subtracts 1.
const PER_WAIT: f64 = 251.0;

/// Parts of a table that has adapted to its threads, each of which holds a lock for this share of
/// its time. An acquisition waits as often as one of the other threads holds the same part.
fn parts(threads: usize, share: f64) -> f64 {
    (PER_WAIT * (threads - 1) as f64 * share).clamp(1.0, MOST_PARTS)
}

/// More are not made of a table of this size: a part has a few dozen objects.
const MOST_PARTS: f64 = 16_384.0;

/// Returns the part of threads that are others.
fn others(threads: usize) -> f64 {
    (threads - 1) as f64 / threads as f64
}

/// Returns an operation on one of our tables, as counted with several threads.
///
/// `in_pool` is how many seconds a thread holds the lock of a pool of the slab for one block.
pub fn ours(counts: &Counts, alone: f64, in_pool: f64, threads: usize) -> Operation {
    let (mut locks, slab) = (
        counts.figures[LOCKS] - counts.figures[SLAB],
        counts.figures[SLAB],
    );
    let mut fetched = counts.fetched_lines(threads);
    let mut stations = Vec::new();
    let mut station = |copies: f64, visits: f64, service: Service| {
        // The line of a station is fetched there.
        fetched = (fetched - visits * others(threads)).max(0.0);
        if visits > 0.0 {
            stations.push(Station {
                copies,
                visits,
                service,
                nested: false,
            });
        }
    };
    match counts.mix {
        // A number in one record, that all change by an atomic instruction.
        Mix::OneCounter => station(1.0, 1.0, Service::Line),
        // The one lock under which base nodes are added up.
        Mix::Size if locks > 0.0 => {
            let hold = 0.5 * alone;
            station(1.0, locks, Service::Lock { hold });
            locks = 0.0;
        }
        _ => (),
    }
    // Beside each other, visits of a list hold one lock at a time.
    let hold = HELD * alone / locks.max(1.0);
    let share = HELD * locks.min(1.0);
    station(parts(threads, share), locks, Service::Lock { hold });
    let hold = BLOCKS_OF_A_VISIT * in_pool;
    station(POOLS, slab, Service::Lock { hold });
    Operation {
        alone,
        fetched,
        calls: counts.figures[BARRIERS],
        stations,
    }
}

/// Blocks that a thread takes from a pool of the slab at once, or gives back.
const BLOCKS_OF_A_VISIT: f64 = 128.0;

/// Pools that operations use: one for records, and in a tree another one for leaves. Reckoned as
/// one.
const POOLS: f64 = 1.0;

/// Returns the figure of a table and a mix that was counted with the most threads.
pub fn find_counts(all: &[Counts], kind: TableKind, mix: Mix) -> Option<&Counts> {
    let of_mix = all
        .iter()
        .filter(|counts| (counts.kind, counts.mix) == (kind, mix));
    of_mix.max_by_key(|counts| counts.threads)
}
