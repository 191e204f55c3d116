//! A store whose changes depend on values, beside the store that is plainly right.

use crate::append::Append;
use crate::cases;
use crate::directory::Directory;
use crate::{BLOCK, open, random};
use ats_disk::{AtomicStore, Options};
use ats_store::{BTreeStore, BatchPlan, Change, Direction, End, KeyRange, Store};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The change of a key.
#[derive(Clone, Debug)]
enum Decision {
    Keep,
    Put(Vec<u8>),
    Remove,
    Abort,
    /// Change that is put off, and then made of the value.
    Later(u8),
}

#[derive(Clone, Debug)]
enum Op {
    Get(Vec<u8>),
    Update(Vec<(Vec<u8>, Decision)>),
    UpdateEnd(bool, Decision),
    Scan(Option<Vec<u8>>, Option<Vec<u8>>, bool, usize),
    Len,
    /// Takes all records, writes this, and looks at the taken ones.
    TakeAll(Vec<u8>),
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
        2 => (any::<bool>(), decision())
            .prop_map(|(first, decision)| Op::UpdateEnd(first, decision)),
        2 => (bound(), bound(), any::<bool>(), 0_usize..6)
            .prop_map(|(low, high, up, most)| Op::Scan(low, high, up, most)),
        2 => Just(Op::Len),
        1 => key().prop_map(Op::TakeAll),
        4 => (key(), value()).prop_map(|(key, value)| Op::Merge(key, value)),
        1 => Just(Op::Flush),
        1 => Just(Op::Work),
    ]
}

/// Plan that decides as it is told, and notes the values that it sees.
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

/// Returns the report of an operation.
fn run(store: &dyn Store, op: &Op) -> String {
    match op {
        Op::Get(key) => {
            let mut found = None;
            let read = store.get(BLOCK, key, &mut |value| found = Some(value.to_vec()));
            format!("{read:?} {found:?}")
        }
        Op::Update(changes) => {
            let keys: Vec<&[u8]> = changes.iter().map(|(key, _)| &key[..]).collect();
            let mut plan = Plan {
                decisions: changes.iter().map(|(_, decision)| decision).collect(),
                seen: Vec::new(),
            };
            let updated = store.update(BLOCK, &keys, &mut plan);
            format!("{updated:?} {:?}", plan.seen)
        }
        Op::UpdateEnd(first, decision) => {
            let end = if *first { End::First } else { End::Last };
            let mut seen = None;
            let updated = store.update_end(BLOCK, end, &mut |record| {
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
        Op::Len => format!("{:?} {:?}", store.len(BLOCK), store.is_empty(BLOCK)),
        Op::TakeAll(key) => {
            let taken = store.take_all(BLOCK).expect("it has room");
            let len = store.len(BLOCK);
            let put = store.update(BLOCK, &[key], &mut |_: usize, _: Option<&[u8]>| {
                Change::Put(b"after".to_vec())
            });
            let up = scan(&*taken, KeyRange::default(), Direction::Up, usize::MAX);
            let down = scan(&*taken, KeyRange::default(), Direction::Down, 2);
            let bytes = (
                taken.sum(BLOCK, &<[u8]>::len),
                store.sum(BLOCK, &<[u8]>::len),
            );
            format!(
                "{len:?} {put:?} {up:?} {down:?} {:?} {bytes:?}",
                taken.len(BLOCK)
            )
        }
        Op::Merge(key, operand) => {
            let merges = store.merges().expect("it has an operator");
            format!("{:?}", merges.merge(BLOCK, key, operand))
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
    let scanned = store.scan(BLOCK, range, direction, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        if found.len() > most {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(scanned, Ok(()));
    found
}

fn options() -> Options {
    Options::new()
        .operator(Arc::new(Append))
        .memtable_bytes(2_000)
        .block_bytes(64)
        .file_bytes(500)
        .fan_in(2)
        .background(false)
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
        prop_assert_eq!(store.len(BLOCK), tree.len(BLOCK));
    }
}

/// Each thread adds 1 to both keys of a pair, by reading and writing; nothing is lost. And the
/// number of records is that of a walk.
#[test]
fn concurrent_changes_lose_no_update() {
    const THREADS: u64 = 4;
    const CHANGES: u64 = 300;
    let directory = Directory::new();
    let options = options().background(true);
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
                    let updated =
                        store.update(BLOCK, &keys, &mut |_: usize, value: Option<&[u8]>| {
                            Change::Put((number(value) + 1).to_be_bytes().to_vec())
                        });
                    assert_eq!(updated, Ok(true));
                    if change % 10 == 0 {
                        let len = store.len(BLOCK).expect("counted") as u64;
                        assert!((3..=4 + THREADS * 256).contains(&len));
                    }
                    if change % 4 == 0 {
                        let mut remove = |_: usize, _: Option<&[u8]>| Change::Remove;
                        assert_eq!(store.update(BLOCK, &[&own], &mut remove), Ok(true));
                    }
                }
            });
        }
    });
    let get = |key: &[u8]| {
        let mut found = 0;
        let read = store.get(BLOCK, key, &mut |value| found = number(Some(value)));
        assert_eq!(read, Ok(true));
        found
    };
    assert_eq!(get(b"a"), THREADS * CHANGES);
    assert_eq!(get(b"b") + get(b"c") + get(b"d"), THREADS * CHANGES);
    let all = scan(&store, KeyRange::default(), Direction::Up, usize::MAX);
    assert_eq!(store.len(BLOCK), Ok(all.len()));
}

/// The record at an end is removed by one thread only.
#[test]
fn ends_are_taken_once() {
    const RECORDS: u32 = 400;
    let directory = Directory::new();
    let store = AtomicStore::new(open(directory.path(), &options()));
    for number in 0..RECORDS {
        let mut put = |_: usize, _: Option<&[u8]>| Change::Put(b"v".to_vec());
        assert_eq!(
            store.update(BLOCK, &[&number.to_be_bytes()], &mut put),
            Ok(true)
        );
    }
    let mut taken: Vec<Vec<u8>> = thread::scope(|scope| {
        let take = |end| {
            let store = &store;
            move || {
                let mut taken = Vec::new();
                loop {
                    let mut key = None;
                    let done = store.update_end(BLOCK, end, &mut |record| {
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
    assert_eq!(store.len(BLOCK), Ok(0));
}

/// Taking all records from one end takes time in proportion to them, though deletes stay where they
/// were.
#[test]
fn a_queue_does_not_slow_down() {
    const RECORDS: u32 = 40_000;
    for (end, other) in [(End::First, End::Last), (End::Last, End::First)] {
        let directory = Directory::new();
        let store = AtomicStore::new(open(directory.path(), &Options::new()));
        for number in 0..RECORDS {
            store
                .store()
                .put(&number.to_be_bytes(), b"v")
                .expect("written");
        }
        let start = Instant::now();
        let mut taken = Vec::new();
        for _ in 0..=RECORDS {
            let take = &mut |record: Option<(&[u8], &[u8])>| match record {
                Some((key, _)) => {
                    taken.push(u32::from_be_bytes(key.try_into().expect("4 bytes")));
                    Change::Remove
                }
                None => Change::Keep,
            };
            store.update_end(BLOCK, end, take).expect("taken");
        }
        let took = start.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        if end == End::Last {
            taken.reverse();
        }
        assert!(taken.into_iter().eq(0..RECORDS));
        // A key that comes beyond the end is found there.
        let mut plan = Put(b"outermost");
        assert_eq!(store.update(BLOCK, &[&[7]], &mut plan), Ok(true));
        for end in [end, other] {
            let mut found = None;
            let look = &mut |record: Option<(&[u8], &[u8])>| {
                found = record.map(|(key, _)| key.to_vec());
                Change::Keep
            };
            store.update_end(BLOCK, end, look).expect("looked");
            assert_eq!(found, Some(vec![7]));
        }
    }
}

/// Gives keys a value.
struct Put(&'static [u8]);

impl BatchPlan<[u8], Vec<u8>> for Put {
    fn decide(&mut self, _index: usize, _current: Option<&[u8]>) -> Change<Vec<u8>> {
        Change::Put(self.0.to_vec())
    }
}

/// Records that are put anywhere while others take from both ends are taken once.
#[test]
fn nothing_is_overlooked_at_an_end() {
    const EACH: u32 = 3000;
    let directory = Directory::new();
    let store = AtomicStore::new(open(directory.path(), &Options::new()));
    let left = AtomicU32::new(2 * EACH);
    let mut taken: Vec<Vec<u8>> = thread::scope(|scope| {
        for producer in 0..2 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..EACH {
                    let key = random((producer, number)).to_be_bytes();
                    assert_eq!(store.update(BLOCK, &[&key], &mut Put(b"v")), Ok(true));
                }
            });
        }
        let takers = [End::First, End::Last, End::First].map(|end| {
            let (store, left) = (&store, &left);
            scope.spawn(move || {
                let mut taken = Vec::new();
                while left.load(Ordering::Relaxed) > 0 {
                    let take = &mut |record: Option<(&[u8], &[u8])>| match record {
                        Some((key, _)) => {
                            taken.push(key.to_vec());
                            left.fetch_sub(1, Ordering::Relaxed);
                            Change::Remove
                        }
                        None => Change::Keep,
                    };
                    store.update_end(BLOCK, end, take).expect("taken");
                }
                taken
            })
        });
        takers
            .into_iter()
            .flat_map(|taker| taker.join().expect("no panic"))
            .collect()
    });
    taken.sort();
    let mut put: Vec<_> = (0..2)
        .flat_map(|producer| {
            (0..EACH).map(move |number| random((producer, number)).to_be_bytes().to_vec())
        })
        .collect();
    put.sort();
    assert!(taken == put);
}

/// All records are exchanged for others at one moment, also for the next opening; a failure changes
/// nothing.
#[test]
fn all_records_are_replaced() {
    let directory = Directory::new();
    let store = AtomicStore::new(open(directory.path(), &Options::new()));
    put_all(&store, &[b"a", b"b", b"z"]);
    let before = store.freeze();
    let refused = store.replace_all(BLOCK, |visit| {
        let _ = visit(b"m", b"new");
        Err(ats_store::Error::Corrupt)
    });
    assert_eq!(refused, Err(ats_store::Error::Corrupt));
    assert_eq!(keys(&store), [b"a", b"b", b"z"]);
    let replaced = store.replace_all(BLOCK, |visit| {
        for key in [b"b", b"m"] {
            let _ = visit(key, b"new");
        }
        Ok::<_, ats_store::Error>(())
    });
    assert_eq!(replaced, Ok(()));
    assert_eq!(
        (keys(&store), store.len(BLOCK)),
        (vec![b"b".to_vec(), b"m".to_vec()], Ok(2))
    );
    assert_eq!(keys(&*before), [b"a", b"b", b"z"]);
    drop((before, store));
    let store = AtomicStore::new(open(directory.path(), &Options::new()));
    assert_eq!(keys(&store), [b"b", b"m"]);
}

fn put_all(store: &AtomicStore, keys: &[&[u8]]) {
    for key in keys {
        store.put_unread(BLOCK, key, b"old").expect("it is written");
    }
}

fn keys(store: &dyn Store) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let scanned = store.scan(BLOCK, KeyRange::default(), Direction::Up, &mut |key, _| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    });
    scanned.expect("it is read");
    keys
}
