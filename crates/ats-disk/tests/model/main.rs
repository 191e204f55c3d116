//! Random programs against a map with the list of writes of each key: with tiny memtables, blocks
//! and files, so that every path runs, and the same programs under different settings.

mod affine;
#[path = "../support/append.rs"]
mod append;
#[path = "../support/cases.rs"]
mod cases;
#[path = "../support/directory.rs"]
mod directory;
#[path = "../support/map.rs"]
mod map;

use affine::{Affine, affine};
use append::Append;
use ats_disk::fault_injection::{InjectedFault, inject};
use ats_disk::{Batch, Compression, DiskStore, Durability, Options, Snapshot};
use ats_store::{Direction, KeyRange, MergeOperator};
use directory::Directory;
use map::Model;
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::panic::catch_unwind;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Option<Vec<u8>>, Option<Vec<u8>>),
    /// Deletes of many neighbours, one by one.
    DeleteEach(std::ops::Range<u8>),
}

#[derive(Clone, Debug)]
enum Op {
    Write(Vec<Change>),
    Read(Vec<u8>),
    Scan(Option<Vec<u8>>, Option<Vec<u8>>, bool),
    Snapshot,
    DropSnapshot,
    Flush,
    Work,
    Settle,
    Compact,
    CompactPart(u8),
    Reopen { clean: bool, settings: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Append,
    Affine,
}

impl Kind {
    fn operator(self) -> Arc<dyn MergeOperator> {
        match self {
            Kind::Append => Arc::new(Append),
            Kind::Affine => Arc::new(Affine),
        }
    }
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0_u8..60).prop_map(|number| vec![b'k', number]),
        2 => prop::collection::vec(prop_oneof![Just(0_u8), Just(255), Just(b'k')], 0..4),
        1 => (0_u8..3, 1_usize..300).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn value(kind: Kind) -> BoxedStrategy<Vec<u8>> {
    match kind {
        Kind::Affine => prop_oneof![4 => (1_u64..1_000_000, 0_u64..1_000_000), 1 => Just((1, 0))]
            .prop_map(|(a, b)| affine(a, b))
            .boxed(),
        Kind::Append => prop_oneof![
            12 => prop::collection::vec(b'a'..b'e', 1..6),
            1 => (b'a'..b'e', 200_usize..900).prop_map(|(byte, len)| vec![byte; len]),
            1 => Just(b"!base".to_vec()),
            2 => Just(Vec::new()),
        ]
        .boxed(),
    }
}

fn change(kind: Kind) -> impl Strategy<Value = Change> {
    let bound = || prop::option::weighted(0.8, key());
    prop_oneof![
        3 => (key(), value(kind)).prop_map(|(key, value)| Change::Put(key, value)),
        2 => key().prop_map(Change::Delete),
        6 => (key(), value(kind)).prop_map(|(key, value)| Change::Merge(key, value)),
        1 => (bound(), bound()).prop_map(|(low, high)| Change::DeleteRange(low, high)),
        1 => (0_u8..30, 30_u8..60).prop_map(|(from, to)| Change::DeleteEach(from..to)),
    ]
}

fn op(kind: Kind) -> impl Strategy<Value = Op> {
    let bound = || prop::option::of(key());
    prop_oneof![
        20 => prop::collection::vec(change(kind), 1..2).prop_map(Op::Write),
        6 => prop::collection::vec(change(kind), 2..12).prop_map(Op::Write),
        6 => key().prop_map(Op::Read),
        3 => (bound(), bound(), any::<bool>()).prop_map(|(low, high, up)| Op::Scan(low, high, up)),
        1 => Just(Op::Snapshot),
        1 => Just(Op::DropSnapshot),
        2 => Just(Op::Flush),
        4 => Just(Op::Work),
        1 => Just(Op::Settle),
        1 => Just(Op::Compact),
        2 => (0_u8..5).prop_map(Op::CompactPart),
        1 => any::<(bool, u8)>().prop_map(|(clean, settings)| Op::Reopen { clean, settings }),
    ]
}

fn settings(number: u8, kind: Kind) -> Options {
    let tiny = number.is_multiple_of(2);
    Options::new()
        .operator(kind.operator())
        .durability(match number % 3 {
            0 => Durability::Always,
            _ => Durability::System,
        })
        .memtable_bytes(if tiny { 2_000 } else { 20_000 })
        .cache_bytes(if tiny { 4_000 } else { 1 << 20 })
        .block_bytes(if tiny { 64 } else { 1024 })
        .file_bytes(if tiny { 500 } else { 5_000 })
        .compression(match number % 5 {
            0 => Compression::Lz4,
            _ => Compression::None,
        })
        .false_positives([0.01, 0.5, 1.0][usize::from(number % 3)])
        .fan_in(2 + usize::from(number % 4))
        .background(number % 7 == 3)
}

/// The operations that run on both.
struct Run {
    kind: Kind,
    directory: Directory,
    options: Options,
    operator: Arc<dyn MergeOperator>,
    store: DiskStore,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
}

impl Run {
    fn new(options: Options, kind: Kind) -> Self {
        let directory = Directory::new();
        let store = DiskStore::open(directory.path(), options.clone()).expect("a new store");
        Run {
            kind,
            directory,
            options,
            operator: kind.operator(),
            store,
            model: Model::default(),
            snapshots: Vec::new(),
        }
    }

    fn write(&mut self, changes: &[Change]) {
        let mut batch = Batch::new();
        for change in changes {
            match change {
                Change::Put(key, value) => {
                    batch.put(key, value).expect("short");
                    self.model.put(key, value);
                }
                Change::Delete(key) => {
                    batch.delete(key).expect("short");
                    self.model.delete(key);
                }
                Change::Merge(key, value) => {
                    batch.merge(key, value).expect("short");
                    self.model.merge(key, value);
                }
                Change::DeleteEach(numbers) => {
                    for number in numbers.clone() {
                        let key = [b'k', number];
                        batch.delete(&key).expect("short");
                        self.model.delete(&key);
                    }
                }
                Change::DeleteRange(low, high) => {
                    let range = KeyRange {
                        low: low.as_deref(),
                        high: high.as_deref(),
                    };
                    batch.delete_range(range).expect("short");
                    self.model.delete_range(range);
                }
            }
        }
        self.store.write(&batch).expect("written");
    }

    fn check_scan(&self, low: Option<&[u8]>, high: Option<&[u8]>, up: bool) {
        let range = KeyRange { low, high };
        let direction = if up { Direction::Up } else { Direction::Down };
        let mut expected = self.model.all(&*self.operator);
        expected.retain(|(key, _)| range.has(key) && !range.is_empty());
        if up {
            let mut scan = self
                .store
                .scan(range)
                .map(|record| record.expect("scanned"));
            let (mut found, mut last) = (Vec::new(), Vec::new());
            while let Some(record) = scan.next() {
                found.push(record);
                last.extend(scan.next_back());
            }
            found.extend(last.into_iter().rev());
            check_same(&found, &expected, &format!("{range:?} from both ends"));
        } else {
            expected.reverse();
        }
        let scan = self.store.scan_lending(range, direction).expect("a scan");
        check_same(
            &collect(scan),
            &expected,
            &format!("{range:?} {direction:?}"),
        );
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Write(changes) => self.write(changes),
            Op::Read(key) => {
                let found = self.store.get(key).expect("read");
                assert_eq!(found, self.model.get(key, &*self.operator), "{key:?}");
            }
            Op::Scan(low, high, up) => self.check_scan(low.as_deref(), high.as_deref(), *up),
            Op::Snapshot => {
                self.snapshots
                    .push((self.store.snapshot(), self.model.clone()));
            }
            Op::DropSnapshot => self.check_snapshot(),
            Op::Flush => self.store.flush().expect("flushed"),
            Op::Work => {
                self.store.work().expect("worked");
            }
            Op::Settle => self.store.settle().expect("settled"),
            Op::Compact => {
                self.store.compact().expect("compacted");
                assert!(self.store.info().runs.len() <= 1);
            }
            Op::CompactPart(steps) => {
                let mut left = *steps;
                let compacted = self.store.compact_with(&mut |_| {
                    left = left.saturating_sub(1);
                    match left {
                        0 => ControlFlow::Break(()),
                        _ => ControlFlow::Continue(()),
                    }
                });
                compacted.expect("compacted in part");
            }
            Op::Reopen { clean, settings } => {
                self.options = self::settings(*settings, self.kind);
                self.reopen(*clean);
            }
        }
    }

    fn check_snapshot(&mut self) {
        if let Some((snapshot, model)) = self.snapshots.pop() {
            let expected = model.all(&*self.operator);
            let scan = snapshot
                .scan_lending(KeyRange::default(), Direction::Up)
                .expect("a scan");
            assert_eq!(collect(scan), expected, "a snapshot");
            for (key, value) in expected {
                assert_eq!(snapshot.get(&key).expect("read"), Some(value), "a snapshot");
            }
        }
    }

    fn reopen(&mut self, clean: bool) {
        while !self.snapshots.is_empty() {
            self.check_snapshot();
        }
        if clean {
            self.store.close().expect("closed");
        }
        // The old one lets the directory go only when it is dropped.
        let elsewhere = Directory::new();
        self.store =
            DiskStore::open(elsewhere.path(), self.options.clone()).expect("another store");
        self.store = DiskStore::open(self.directory.path(), self.options.clone()).expect("opened");
    }
}

/// Fails with the first difference, which may stand between long values.
fn check_same(found: &[(Vec<u8>, Vec<u8>)], expected: &[(Vec<u8>, Vec<u8>)], what: &str) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            found == expected,
            "{what}: {:?} = {}, not {:?} = {}",
            found.0,
            found.1.escape_ascii(),
            expected.0,
            expected.1.escape_ascii()
        );
    }
    assert_eq!(found.len(), expected.len(), "{what}: number of records");
}

fn collect(mut scan: ats_disk::LendingScan) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((key, value)) = scan.next().expect("scanned") {
        all.push((key.to_vec(), value.to_vec()));
    }
    all
}

fn check(kind: Kind, number: u8, ops: &[Op]) {
    let mut run = Run::new(settings(number, kind), kind);
    for op in ops {
        run.run(op);
    }
    run.check_scan(None, None, true);
    run.check_scan(None, None, false);
    run.reopen(false);
    run.check_scan(None, None, true);
    run.store.verify().expect("the files are sound");
    run.store.compact().expect("compacted");
    run.check_scan(None, None, true);
    run.reopen(true);
    run.check_scan(None, None, true);
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 500, ..cases::config(250) })]

    #[test]
    fn appending(number in any::<u8>(), ops in prop::collection::vec(op(Kind::Append), 1..120)) {
        check(Kind::Append, number, &ops);
    }

    #[test]
    fn affine_maps(number in any::<u8>(), ops in prop::collection::vec(op(Kind::Affine), 1..120)) {
        check(Kind::Affine, number, &ops);
    }

    /// The same history under different settings reads the same: all read as the model does.
    #[test]
    fn other_settings(
        numbers in prop::array::uniform3(any::<u8>()),
        ops in prop::collection::vec(op(Kind::Append), 1..60),
    ) {
        for number in numbers {
            check(Kind::Append, number, &ops);
        }
    }
}

/// A delete that is newer than a large run, and runs that are merged without that one.
fn delete_and_merge() {
    let put = |key: &[u8], len: usize| Op::Write(vec![Change::Put(key.to_vec(), vec![b'v'; len])]);
    let mut ops = vec![put(b"key", 10), put(b"large", 30_000), Op::Flush];
    ops.push(Op::Write(vec![Change::Delete(b"key".to_vec())]));
    for key in [b"a", b"b", b"c", b"d"] {
        ops.extend([put(key, 10), Op::Flush]);
    }
    ops.extend([Op::Work, Op::Work, Op::Work, Op::Read(b"key".to_vec())]);
    let mut run = Run::new(settings(2, Kind::Append), Kind::Append);
    for op in &ops {
        run.run(op);
    }
}

#[test]
fn a_delete_that_vanishes_early_is_found() {
    delete_and_merge();
    inject(Some(InjectedFault::EarlyDrop));
    let caught = catch_unwind(delete_and_merge);
    inject(None);
    assert!(caught.is_err());
}

/// A key that is written where walks have found that there is nothing.
fn write_in_a_gap() {
    let delete = Op::Write(vec![Change::DeleteEach(0..60)]);
    let put = Op::Write(vec![Change::Put(vec![b'k', 30], b"value".to_vec())]);
    let mut run = Run::new(settings(2, Kind::Append), Kind::Append);
    for op in [
        delete,
        Op::Scan(None, None, true),
        put,
        Op::Scan(None, None, false),
    ] {
        run.run(&op);
    }
}

#[test]
fn a_gap_that_is_not_broken_is_found() {
    write_in_a_gap();
    inject(Some(InjectedFault::StaleGap));
    let caught = catch_unwind(write_in_a_gap);
    inject(None);
    assert!(caught.is_err());
}
