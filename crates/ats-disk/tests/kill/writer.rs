//! The process that writes, until it is killed.

use crate::append::Append;
use crate::operation::{Operation, WRITERS, random};
use ats_disk::{Compression, DiskStore, Durability, Options};
use ats_store::{Direction, KeyRange};
use std::fmt;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Variables of the environment: the directory of the store, and the task.
pub(crate) const DIRECTORY: &str = "ATS_DISK_KILL_DIRECTORY";
pub(crate) const ORDER: &str = "ATS_DISK_KILL_ORDER";

/// The work to do: in which round, and for each writer from which write on.
pub(crate) struct Order {
    pub(crate) round: u64,
    pub(crate) first: [u64; WRITERS],
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.round)?;
        self.first
            .iter()
            .try_for_each(|first| write!(f, " {first}"))
    }
}

impl Order {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map_while(|number| number.parse().ok());
        let round = numbers.next()?;
        let first: Vec<_> = numbers.collect();
        Some(Order {
            round,
            first: first.try_into().ok()?,
        })
    }
}

/// The report of a writer about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) writer: usize,
    pub(crate) number: u64,
    /// `true` if the write has returned; otherwise it is about to begin.
    pub(crate) is_done: bool,
}

impl Report {
    /// Writes it to the pipe with one call, which is atomic. If nothing reads it any more, the
    /// process ends.
    fn send(self) {
        let what = if self.is_done { "done" } else { "begun" };
        let line = format!("\n{what} {} {}\n", self.writer, self.number);
        if std::io::stdout().write_all(line.as_bytes()).is_err() {
            process::exit(1);
        }
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (is_done, numbers) = match line.strip_prefix("done ") {
            Some(numbers) => (true, numbers),
            None => (false, line.strip_prefix("begun ")?),
        };
        let (writer, number) = numbers.split_once(' ')?;
        Some(Report {
            writer: writer.parse().ok()?,
            number: number.parse().ok()?,
            is_done,
        })
    }
}

/// Returns the options of the store in a round: with sizes so small that memtables are written and
/// runs merged all the time.
pub(crate) fn options(round: u64) -> Options {
    let random = |what: &str, below: u64| random((round, what)) % below;
    Options::new()
        .operator(Arc::new(Append))
        .durability(match random("durability", 4) {
            0 => Durability::Always,
            1 => Durability::Interval(Duration::from_millis(2)),
            _ => Durability::System,
        })
        .memtable_bytes(10_000 << random("memtable", 4))
        .cache_bytes(100_000)
        .block_bytes(300)
        .file_bytes(2_000 << random("file", 4))
        .compression(match random("compression", 2) {
            0 => Compression::None,
            _ => Compression::Lz4,
        })
        .fan_in(2 + random("fan-in", 3) as usize)
        .background(true)
}

/// Returns `true` if this process is to write.
pub(crate) fn was_ordered() -> bool {
    std::env::var_os(ORDER).is_some()
}

/// Does the task that the environment names, until the process is killed.
pub(crate) fn write() {
    let order = std::env::var(ORDER).expect("it was set");
    let order = Order::parse(&order).expect("an order");
    let directory = std::env::var_os(DIRECTORY).expect("it was set");
    let store = DiskStore::open(Path::new(&directory), options(order.round)).expect("opened");
    // The writer ends by itself if nothing kills it.
    let end = Instant::now() + Duration::from_secs(60);
    thread::scope(|scope| {
        for (writer, first) in order.first.into_iter().enumerate() {
            let store = &store;
            scope.spawn(move || {
                let write = |number| {
                    let mut report = Report {
                        writer,
                        number,
                        is_done: false,
                    };
                    report.send();
                    let written = Operation::of(writer, number).write(store);
                    written.expect("written");
                    report.is_done = true;
                    report.send();
                };
                (first..u64::MAX)
                    .take_while(|_| Instant::now() < end)
                    .for_each(write);
            });
        }
        scope.spawn(|| disturb(&store, order.round, end));
    });
}

/// Flushes, compacts and reads beside the writers.
fn disturb(store: &DiskStore, round: u64, end: Instant) {
    for number in 0_u64.. {
        if Instant::now() > end {
            return;
        }
        let random = random((round, number, "disturb"));
        match random % 8 {
            0 => store.flush().expect("flushed"),
            1 => store.compact().expect("compacted"),
            2 => {
                let broken_off = store.compact_with(&mut |_| ControlFlow::Break(()));
                broken_off.expect("compacted in part");
            }
            3 => store.sync().expect("synced"),
            4 => {
                let snapshot = store.snapshot();
                thread::sleep(Duration::from_millis(3));
                let scan = snapshot.scan_lending(KeyRange::default(), Direction::Up);
                let mut scan = scan.expect("a scan");
                while scan.next().expect("scanned").is_some() {}
            }
            _ => thread::sleep(Duration::from_micros(random % 5000)),
        }
    }
}
