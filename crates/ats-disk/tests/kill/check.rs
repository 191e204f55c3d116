//! Checks of a store whose writing process was killed.

use crate::append::Append;
use crate::map::Model;
use crate::operation::{Operation, SHARED, WRITERS, keys, mark, own_keys, random, shared_key};
use crate::writer::{Report, options};
use ats_disk::{DiskStore, LendingScan};
use ats_store::{Direction, KeyRange};
use std::path::Path;

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// The records that are known to be in the store.
#[derive(Default)]
pub(crate) struct Expected {
    writers: [Writer; WRITERS],
}

/// The keys of a writer.
#[derive(Default)]
struct Writer {
    /// The number of writes.
    count: u64,
    model: Model,
}

impl Expected {
    /// Returns the number of writes of each writer.
    pub(crate) fn counts(&self) -> [u64; WRITERS] {
        std::array::from_fn(|writer| self.writers[writer].count)
    }
}

fn collect(scan: Result<LendingScan, ats_disk::Error>) -> Records {
    let mut scan = scan.expect("a scan");
    let mut all = Records::new();
    while let Some((key, value)) = scan.next().expect("scanned") {
        all.push((key.to_vec(), value.to_vec()));
    }
    all
}

/// Counts the reports of a writer in a round: how many writes were acknowledged, and whether
/// another was under way.
fn count_acknowledged(reports: &[Report], writer: usize, first: u64) -> (u64, bool) {
    let (mut acknowledged, mut is_under_way) = (0, false);
    for report in reports.iter().filter(|report| report.writer == writer) {
        assert_eq!(report.number, first + acknowledged, "{report:?}");
        assert_eq!(report.is_done, is_under_way, "{report:?}");
        acknowledged += u64::from(report.is_done);
        is_under_way = !report.is_done;
    }
    (acknowledged, is_under_way)
}

/// The marks in each of the keys that all writers share, in their order.
type Marks = [Vec<Vec<u8>>; SHARED as usize];

fn shared_marks(store: &DiskStore) -> Marks {
    let length = mark(0, 0).len();
    std::array::from_fn(|number| {
        let value = store.get(&shared_key(number as u64)).expect("read");
        let value = value.unwrap_or_default();
        assert!(value.len().is_multiple_of(length));
        value.chunks(length).map(<[u8]>::to_vec).collect()
    })
}

/// Makes a write in the model, and notes its mark.
fn apply(operation: &Operation, model: &mut Model, marks: &mut Marks) {
    operation.apply(model);
    if let Some((key, mark)) = &operation.shared {
        marks[usize::from(key[1])].push(mark.clone());
    }
}

/// Opens the store that a process has left, compares it with the reports of the process, and leaves
/// it for the next round. Returns the number of writes that were acknowledged.
pub(crate) fn check(
    round: u64,
    directory: &Path,
    expected: &mut Expected,
    reports: &[Report],
) -> usize {
    let options = options(round + 1).background(random((round, "parent")) % 2 == 1);
    let store = DiskStore::open(directory, options).expect("opened");
    let shared = shared_marks(&store);
    for (writer, known) in expected.writers.iter_mut().enumerate() {
        check_writer(&store, writer, known, reports, &shared);
    }
    let writes: usize = shared.iter().map(Vec::len).sum();
    let done = reports.iter().filter(|report| report.is_done).count();
    assert!(writes <= done + WRITERS);
    assert_eq!(store.verify(), Ok(()));
    leave(&store, round);
    done
}

/// Compares the keys of a writer, and its marks, with the expected ones.
fn check_writer(
    store: &DiskStore,
    writer: usize,
    known: &mut Writer,
    reports: &[Report],
    shared: &Marks,
) {
    let first = known.count;
    let (acknowledged, is_under_way) = count_acknowledged(reports, writer, first);
    let end = first + acknowledged;
    let mut marks = Marks::default();
    for number in first..end {
        apply(&Operation::of(writer, number), &mut known.model, &mut marks);
    }
    known.count = end;
    let (low, high) = own_keys(writer);
    let range = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let found = collect(store.scan_lending(range, Direction::Up));
    let is_own = |mark: &&Vec<u8>| usize::from(mark[0]) == writer;
    let found_marks: Marks = shared
        .each_ref()
        .map(|marks| marks.iter().filter(is_own).cloned().collect());
    if found_marks != marks || found != known.model.all(&Append) {
        assert!(is_under_way, "writer {writer}: not what was acknowledged");
        apply(&Operation::of(writer, end), &mut known.model, &mut marks);
        known.count += 1;
        assert_eq!(found_marks, marks, "writer {writer}");
        let is_whole = found == known.model.all(&Append);
        assert!(is_whole, "writer {writer}: a write is there in part");
    }
    for key in keys(writer) {
        assert_eq!(store.get(&key), Ok(known.model.get(&key, &Append)));
    }
    let mut down = collect(store.scan_lending(range, Direction::Down));
    down.reverse();
    assert!(down == found);
}

/// Leaves the store in one way or another, without the marks.
fn leave(store: &DiskStore, round: u64) {
    for number in 0..SHARED {
        store.delete(&shared_key(number)).expect("written");
    }
    match random((round, "leave")) % 4 {
        0 => store.close().expect("closed"),
        1 => store.compact().expect("compacted"),
        2 => store.flush().expect("flushed"),
        _ => {}
    }
}
