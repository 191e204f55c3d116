//! A store of which changes depend on what is there, beside the store that is plainly right.

use crate::append::Append;
use crate::cases;
use crate::directory::Directory;
use crate::open;
use ats_disk::{AtomicStore, Options};
use ats_store::{BTreeStore, BatchPlan, Change, Direction, End, KeyRange, Store};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;

/// What is made of a key.
#[derive(Clone, Debug)]
enum Decision {
    Keep,
    Put(Vec<u8>),
    Remove,
    Abort,
    /// Put off, and then made of what is there.
    Later(u8),
}

#[derive(Clone, Debug)]
enum Op {
    Get(Vec<u8>),
    Update(Vec<(Vec<u8>, Decision)>),
    UpdateEnd(bool, Decision),
    Scan(Option<Vec<u8>>, Option<Vec<u8>>, bool, usize),
    Len,
    Merge(Vec<u8>, Vec<u8>),
    Flush,
    Work,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (0_u8..12).prop_map(|number| vec![b'k', number]),
        1 => prop::collection::vec(prop_oneof![Just(0_u8), Just(255)], 0..3),
    ]
}

/// The empty value counts as missing.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(b'a'..b'e', 1..6),
        1 => Just(Vec::new()),
        1 => Just(b"!base".to_vec()),
    ]
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        3 => value().prop_map(Decision::Put),
        2 => Just(Decision::Remove),
        1 => Just(Decision::Keep),
        1 => (0_u8..4).prop_map(Decision::Later),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let in_batch = prop_oneof![12 => decision(), 1 => Just(Decision::Abort)];
    let bound = || prop::option::of(key());
    prop_oneof![
        2 => key().prop_map(Op::Get),
        8 => prop::collection::btree_map(key(), in_batch, 1..5)
            .prop_map(|keys| Op::Update(keys.into_iter().collect())),
        2 => (any::<bool>(), decision()).prop_map(|(first, decision)| Op::UpdateEnd(first, decision)),
        2 => (bound(), bound(), any::<bool>(), 0_usize..6)
            .prop_map(|(low, high, up, most)| Op::Scan(low, high, up, most)),
        2 => Just(Op::Len),
        4 => (key(), value()).prop_map(|(key, value)| Op::Merge(key, value)),
        1 => Just(Op::Flush),
        1 => Just(Op::Work),
    ]
}

/// Decides as it is told, and notes what it sees.
struct Plan<'a> {
    decisions: Vec<&'a Decision>,
    seen: Vec<(usize, Option<Vec<u8>>)>,
}

impl Plan<'_> {
    fn change(decision: &Decision) -> Change<Vec<u8>> {
        match decision {
            Decision::Keep => Change::Keep,
            Decision::Put(value) => Change::Put(value.clone()),
            Decision::Remove => Change::Remove,
            Decision::Abort => Change::Abort,
            Decision::Later(_) => Change::Later,
        }
    }
}

impl BatchPlan<[u8], Vec<u8>> for Plan<'_> {
    fn decide(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        self.seen.push((index, current.map(<[u8]>::to_vec)));
        Self::change(self.decisions[index])
    }

    fn build(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        self.seen.push((index, current.map(<[u8]>::to_vec)));
        match self.decisions[index] {
            Decision::Later(0) => Change::Keep,
            Decision::Later(letter) => {
                Change::Put([current.unwrap_or_default(), &[b'a' + letter]].concat())
            }
            _ => unreachable!("only what was put off is built"),
        }
    }
}

/// What an operation tells of itself.
fn run(store: &dyn Store, op: &Op) -> String {
    match op {
        Op::Get(key) => {
            let mut found = None;
            let read = store.get(key, &mut |value| found = Some(value.to_vec()));
            format!("{read:?} {found:?}")
        }
        Op::Update(changes) => {
            let keys: Vec<&[u8]> = changes.iter().map(|(key, _)| &key[..]).collect();
            let mut plan = Plan {
                decisions: changes.iter().map(|(_, decision)| decision).collect(),
                seen: Vec::new(),
            };
            let updated = store.update(&keys, &mut plan);
            format!("{updated:?} {:?}", plan.seen)
        }
        Op::UpdateEnd(first, decision) => {
            let end = if *first { End::First } else { End::Last };
            let mut seen = None;
            let updated = store.update_end(end, &mut |record| {
                seen = record.map(|(key, value)| (key.to_vec(), value.to_vec()));
                match decision {
                    Decision::Later(_) => Change::Keep,
                    decision => Plan::change(decision),
                }
            });
            format!("{updated:?} {seen:?}")
        }
        Op::Scan(low, high, up, most) => {
            let direction = if *up { Direction::Up } else { Direction::Down };
            let range = KeyRange {
                low: low.as_deref(),
                high: high.as_deref(),
            };
            format!("{:?}", scan(store, range, direction, *most))
        }
        Op::Len => format!("{:?} {:?}", store.len(), store.is_empty()),
        Op::Merge(key, operand) => {
            let merges = store.merges().expect("it has an operator");
            format!("{:?}", merges.merge(key, operand))
        }
        Op::Flush | Op::Work => String::new(),
    }
}

fn scan(
    store: &dyn Store,
    range: KeyRange<'_>,
    direction: Direction,
    most: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let scanned = store.scan(range, direction, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        match found.len() > most {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    assert_eq!(scanned, Ok(()));
    found
}

fn options() -> Options {
    Options {
        operator: Some(Arc::new(Append)),
        memtable_bytes: 2_000,
        block_bytes: 64,
        file_bytes: 500,
        fan_in: 2,
        threads: 0,
        ..Options::default()
    }
}

proptest! {
    #![proptest_config(cases::config(200))]

    #[test]
    fn programs_do_as_they_do_on_a_tree(ops in prop::collection::vec(op(), 1..80)) {
        let directory = Directory::new();
        let store = AtomicStore::new(open(directory.path(), &options()));
        let tree = BTreeStore::merging(Arc::new(Append));
        for op in &ops {
            match op {
                Op::Flush => store.store().flush().expect("flushed"),
                Op::Work => drop(store.store().work().expect("worked")),
                op => prop_assert_eq!(run(&store, op), run(&tree, op), "{:?}", op),
            }
        }
        drop(store);
        let store = AtomicStore::new(open(directory.path(), &options()));
        let all = |store: &dyn Store| scan(store, KeyRange::default(), Direction::Up, usize::MAX);
        prop_assert_eq!(all(&store), all(&tree));
        prop_assert_eq!(store.len(), tree.len());
    }
}

/// Each thread adds 1 to both keys of a pair, by reading and writing; nothing is lost. And the number of records is
/// that of a walk.
#[test]
fn changes_depend_on_what_is_there() {
    const THREADS: u64 = 4;
    const CHANGES: u64 = 300;
    let directory = Directory::new();
    let options = Options {
        threads: 1,
        ..options()
    };
    let store = AtomicStore::new(open(directory.path(), &options));
    let number = |value: Option<&[u8]>| {
        let bytes = value.map_or([0; 8], |value| value.try_into().expect("a number"));
        u64::from_be_bytes(bytes)
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for change in 0..CHANGES {
                    let second = [b'b' + (change % 3) as u8];
                    let own = [b'x', thread as u8, change as u8];
                    let keys: [&[u8]; 3] = [b"a", &second, &own];
                    let updated = store.update(&keys, &mut |_: usize, value: Option<&[u8]>| {
                        Change::Put((number(value) + 1).to_be_bytes().to_vec())
                    });
                    assert_eq!(updated, Ok(true));
                    if change % 10 == 0 {
                        let len = store.len().expect("counted") as u64;
                        assert!((3..=4 + THREADS * 256).contains(&len));
                    }
                    if change % 4 == 0 {
                        let mut remove = |_: usize, _: Option<&[u8]>| Change::Remove;
                        assert_eq!(store.update(&[&own], &mut remove), Ok(true));
                    }
                }
            });
        }
    });
    let get = |key: &[u8]| {
        let mut found = 0;
        let read = store.get(key, &mut |value| found = number(Some(value)));
        assert_eq!(read, Ok(true));
        found
    };
    assert_eq!(get(b"a"), THREADS * CHANGES);
    assert_eq!(get(b"b") + get(b"c") + get(b"d"), THREADS * CHANGES);
    let all = scan(&store, KeyRange::default(), Direction::Up, usize::MAX);
    assert_eq!(store.len(), Ok(all.len()));
}

/// The record at an end is removed by one thread only.
#[test]
fn ends_are_taken_once() {
    const RECORDS: u32 = 400;
    let directory = Directory::new();
    let store = AtomicStore::new(open(directory.path(), &options()));
    for number in 0..RECORDS {
        let mut put = |_: usize, _: Option<&[u8]>| Change::Put(b"v".to_vec());
        assert_eq!(store.update(&[&number.to_be_bytes()], &mut put), Ok(true));
    }
    let mut taken: Vec<Vec<u8>> = thread::scope(|scope| {
        let take = |end| {
            let store = &store;
            move || {
                let mut taken = Vec::new();
                loop {
                    let mut key = None;
                    let done = store.update_end(end, &mut |record| {
                        key = record.map(|(key, _)| key.to_vec());
                        Change::Remove
                    });
                    assert_eq!(done, Ok(()));
                    match key {
                        Some(key) => taken.push(key),
                        None => return taken,
                    }
                }
            }
        };
        let threads = [End::First, End::Last, End::First].map(|end| scope.spawn(take(end)));
        let taken = threads.map(|thread| thread.join().expect("no panic"));
        taken.into_iter().flatten().collect()
    });
    taken.sort();
    let expected = (0..RECORDS).map(|number| number.to_be_bytes().to_vec());
    assert!(taken.into_iter().eq(expected));
    assert_eq!(store.len(), Ok(0));
}
