//! Ordered stores, compared with a model, and under many threads.

use ats_mem::When;
use ats_mem::{
    Busy, Change, Direction, KeyRange, Neighbour, Plain, Provided, Record, RecordBox, Records,
    Release, ShortKey, Skipped, Walk, WalkFrom,
};
use ats_sync::{Guard, pin};
use fastrand::Rng;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) fn put<R: Release>(
    tree: &impl Records<R>,
    key: &[u8],
    value: u64,
    owns: bool,
) -> Option<u64> {
    let guard = pin();
    loop {
        let mut old = None;
        let done = tree.update(key, &guard, &mut |current| {
            old = current.map(|record| record.value()[0]);
            Change::Put(RecordBox::new(key, &[value], owns))
        });
        if done.is_ok() {
            return old;
        }
    }
}

pub(crate) fn remove<R: Release>(tree: &impl Records<R>, key: &[u8]) -> Option<u64> {
    let guard = pin();
    loop {
        let mut old = None;
        let done = tree.update(key, &guard, &mut |current| {
            old = current.map(|record| record.value()[0]);
            Change::Remove
        });
        if done.is_ok() {
            return old;
        }
    }
}

pub(crate) fn get<R: Release>(tree: &impl Records<R>, key: &[u8]) -> Option<u64> {
    tree.get(key, &pin()).map(|record| record.value()[0])
}

pub(crate) fn pair<R: Release>(record: &Record<R>) -> (Vec<u8>, u64) {
    (record.key().to_vec(), record.value()[0])
}

pub(crate) fn contents<R: Release>(tree: &impl Records<R>) -> Vec<(Vec<u8>, u64)> {
    let mut all = Vec::new();
    tree.scan(None, When::NOW, &pin(), &mut |record| {
        all.push(pair(record));
        std::ops::ControlFlow::Continue(())
    })
    .expect("ordered stores scan from anywhere");
    all
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Put(Vec<u8>, u64),
    Remove(Vec<u8>),
    /// Put without reading the old record.
    PutOver(Vec<u8>, u64),
    RemoveAny(Vec<u8>),
    Get(Vec<u8>),
    GetAgain(Vec<u8>),
    /// Take this many steps from a key, in a direction, each asking for a key alone.
    Steps(Vec<u8>, bool, usize),
    Next(Vec<u8>),
    Prev(Vec<u8>),
    ScanFrom(Vec<u8>, usize),
    ScanDown(Option<Vec<u8>>, usize),
    Pass(Option<Vec<u8>>, Option<Vec<u8>>, bool, usize),
    Batch(BTreeMap<Vec<u8>, u64>, Option<usize>),
}

/// Generates ends of keys.
fn tail() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(0u8..2, 0..12),
        any::<u16>().prop_map(|n| n.to_be_bytes().to_vec()),
    ]
}

/// Generates keys that are often equal, share prefixes of many lengths, and differ in trailing
/// zeros.
pub(crate) fn key() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![
        Just(&b""[..]),
        Just(&b"a common beginning of some keys/"[..]),
        Just(&b"a common beginning of some"[..]),
        Just(&b"\0\0\0"[..]),
    ];
    (head, tail()).prop_map(|(head, tail)| [head, &tail].concat())
}

/// Generates keys of which nearly all share a beginning longer than a node stores of it.
fn alike_key() -> impl Strategy<Value = Vec<u8>> {
    let beginning = b"https://www.example.org/customers/orders/";
    let len = prop_oneof![39 => Just(beginning.len()), 1 => 0..beginning.len()];
    (len, tail()).prop_map(move |(len, tail)| [&beginning[..len], &tail].concat())
}

/// Generates operations on keys that are alike or not.
pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop_oneof![
        proptest::collection::vec(op(|| key().boxed()), 0..1500),
        proptest::collection::vec(op(|| alike_key().boxed()), 0..1500),
    ]
}

fn op(key: impl Fn() -> BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (key(), any::<u64>()).prop_map(|(key, value)| Op::Put(key, value)),
        4 => key().prop_map(Op::Remove),
        5 => (key(), any::<u64>()).prop_map(|(key, value)| Op::PutOver(key, value)),
        3 => key().prop_map(Op::RemoveAny),
        2 => key().prop_map(Op::Get),
        1 => key().prop_map(Op::GetAgain),
        2 => (key(), any::<bool>(), 1usize..60)
            .prop_map(|(key, up, most)| Op::Steps(key, up, most)),
        1 => key().prop_map(Op::Next),
        1 => key().prop_map(Op::Prev),
        1 => (key(), 1usize..60).prop_map(|(key, most)| Op::ScanFrom(key, most)),
        1 => (proptest::option::of(key()), 1usize..60)
            .prop_map(|(key, most)| Op::ScanDown(key, most)),
        2 => (proptest::option::of(key()), proptest::option::of(key()), any::<bool>(), 0usize..500)
            .prop_map(|(low, high, up, most)| Op::Pass(low, high, up, most)),
        1 => (proptest::collection::btree_map(key(), any::<u64>(), 0..20),
              proptest::option::of(0usize..20)).prop_map(|(all, stop)| Op::Batch(all, stop)),
    ]
}

pub(crate) fn owned((key, value): (&Vec<u8>, &u64)) -> (Vec<u8>, u64) {
    (key.clone(), *value)
}

pub(crate) fn neighbours(
    model: &BTreeMap<Vec<u8>, u64>,
    key: &[u8],
) -> [Option<(Vec<u8>, u64)>; 2] {
    let above = model.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded));
    let below = model.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key)));
    [above.map(owned).next(), below.map(owned).next_back()]
}

/// Takes the first `most` records of a scan.
pub(crate) fn take_all<'g>(
    most: usize,
    scan: impl FnOnce(&mut dyn FnMut(&'g Record<Plain>) -> ControlFlow<()>),
) -> Vec<(Vec<u8>, u64)> {
    let mut found = Vec::new();
    scan(&mut |record| {
        found.push(pair(record));
        if found.len() < most {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    found
}

#[expect(clippy::too_many_lines, reason = "one arm for each operation")]
pub(crate) fn apply(tree: &impl Records<Plain>, model: &mut BTreeMap<Vec<u8>, u64>, op: Op) {
    match op {
        Op::Put(key, value) => {
            assert_eq!(put(tree, &key, value, false), model.insert(key, value));
        }
        Op::Remove(key) => assert_eq!(remove(tree, &key), model.remove(&key)),
        Op::PutOver(key, value) => {
            let record = RecordBox::new(&key, &[value], false);
            let was_there = tree.put(&key, record, &pin());
            assert_eq!(was_there, Ok(model.insert(key, value).is_some()));
        }
        Op::RemoveAny(key) => {
            let was_there = tree.remove(&key, &pin());
            assert_eq!(was_there, Ok(model.remove(&key).is_some()));
        }
        Op::Get(key) => assert_eq!(get(tree, &key), model.get(&key).copied()),
        Op::GetAgain(key) => {
            for _ in 0..2 {
                let guard = pin();
                let found = tree.get_again(&key, &guard).map(|record| record.value()[0]);
                assert_eq!(found, model.get(&key).copied());
            }
        }
        Op::Steps(key, up, most) => {
            let direction = if up { Direction::Up } else { Direction::Down };
            let mut here = Some(key);
            for _ in 0..most {
                let Some(key) = here else { break };
                let guard = pin();
                let shown = Cell::new(None);
                let will_do = |key: &ShortKey| {
                    shown.set(Some(*key));
                    key.to_bytes().1 % 2 == most % 2
                };
                here = tree
                    .neighbour(&key, direction, &guard, &will_do)
                    .expect("any key will do")
                    .map(|met| match met {
                        Neighbour::Record(record) => record.key().to_vec(),
                        Neighbour::Key => {
                            let (bytes, len) = shown.get().expect("a key was shown").to_bytes();
                            bytes[..len].to_vec()
                        }
                    });
                let expected = neighbours(model, &key)[usize::from(!up)].clone();
                assert_eq!(here, expected.map(|(key, _)| key));
            }
        }
        Op::Next(key) => {
            let next = tree.next(&key, &pin()).expect("any key will do").map(pair);
            assert_eq!(next, neighbours(model, &key)[0]);
        }
        Op::Prev(key) => {
            let prev = tree.prev(&key, &pin()).expect("any key will do").map(pair);
            assert_eq!(prev, neighbours(model, &key)[1]);
        }
        Op::ScanFrom(key, most) => {
            let guard = pin();
            let found = take_all(most, |visit| {
                let walk = Walk::up(WalkFrom::Key(&key));
                assert_eq!(tree.visit(walk, &guard, visit), Ok(()));
            });
            let expected = model.range(key..).take(most);
            assert_eq!(found, expected.map(owned).collect::<Vec<_>>());
        }
        Op::ScanDown(key, most) => {
            let guard = pin();
            let found = take_all(most, |visit| {
                let from = key.as_deref().map_or(WalkFrom::Start, WalkFrom::Behind);
                assert_eq!(tree.visit(Walk::down(from), &guard, visit), Ok(()));
            });
            let below = key.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            let expected = model.range::<Vec<u8>, _>((Bound::Unbounded, below));
            let expected = expected.rev().take(most);
            assert_eq!(found, expected.map(owned).collect::<Vec<_>>());
        }
        Op::Pass(low, high, up, most) => {
            let key_range = KeyRange {
                low: low.as_deref(),
                high: high.as_deref(),
            };
            let mut there: Vec<_> = model.iter().filter(|(key, _)| key_range.has(key)).collect();
            if !up {
                there.reverse();
            }
            let direction = if up { Direction::Up } else { Direction::Down };
            let guard = pin();
            match tree.skip(key_range, direction, most, &guard, &mut || {
                ControlFlow::Continue(())
            }) {
                Skipped::At(record, _) => {
                    assert_eq!(Some(pair(record)), there.get(most).copied().map(owned));
                }
                Skipped::All(skipped) => {
                    assert!(skipped <= most);
                    assert_eq!(skipped, there.len());
                }
                Skipped::Paused { .. } => panic!("nobody said so"),
            }
        }
        Op::Batch(all, stop) => {
            let keys: Vec<&[u8]> = all.keys().map(Vec::as_slice).collect();
            let values: Vec<u64> = all.values().copied().collect();
            let done = tree.update_many(&keys, &pin(), &mut |index, current| {
                assert_eq!(
                    current.map(|r| r.value()[0]),
                    model.get(keys[index]).copied()
                );
                match stop {
                    Some(stop) if stop == index => Change::Abort,
                    _ => Change::Put(RecordBox::new(keys[index], &[values[index]], false)),
                }
            });
            let aborted = stop.is_some_and(|stop| stop < all.len());
            assert_eq!(done, Ok(!aborted));
            if !aborted {
                model.extend(all);
            }
        }
    }
}

pub(crate) fn behave_as_a_sorted_map(
    tree: &impl Records<Plain>,
    ops: Vec<Op>,
) -> Result<(), TestCaseError> {
    let mut model = BTreeMap::new();
    for op in ops {
        apply(tree, &mut model, op);
        prop_assert_eq!(tree.len(), model.len());
    }
    let guard = pin();
    let first = model.first_key_value().map(owned);
    let last = model.last_key_value().map(owned);
    prop_assert_eq!(tree.first(&guard).map(pair), first);
    prop_assert_eq!(tree.last(&guard).map(pair), last);
    prop_assert_eq!(contents(tree), model.into_iter().collect::<Vec<_>>());
    Ok(())
}

pub(crate) fn number(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Number of live records, for each of the tests that count.
pub(crate) static LIVE: [AtomicI64; 10] = [const { AtomicI64::new(0) }; 10];

/// Records that count for a test. One type for all tests: the compiler makes each store anew for
/// each type.
pub(crate) struct Counted;

impl Release for Counted {
    unsafe fn release(value: &[u64]) {
        LIVE[value[1] as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn owning(test: usize, key: &[u8], value: u64) -> RecordBox<Counted> {
    LIVE[test].fetch_add(1, Ordering::Relaxed);
    RecordBox::new(key, &[value, test as u64], true)
}

/// Runs threads that write their own keys (whose state they know exactly) between each other's,
/// while readers check permanent keys and walk over everything.
pub(crate) fn many_threads<S>(test: usize, forcing: u32) -> S
where
    S: Records<Counted> + Default,
{
    const WRITERS: u64 = 3;
    const KEYS: u64 = 3_000;
    const STEPS: u64 = 100_000;
    let tree = S::default();
    for n in 0..KEYS {
        let guard = pin();
        let key = number(n * 8);
        tree.update(&key, &guard, &mut |_| Change::Put(owning(test, &key, n)))
            .expect("no batch runs");
    }
    tree.force_adaptation(forcing, forcing);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                tree.join_idle(&pin());
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        let writers: Vec<_> = (1..=WRITERS)
            .map(|id| {
                let tree = &tree;
                scope.spawn(move || {
                    let mut random = Rng::with_seed(id * 77);
                    let mut mine = BTreeMap::new();
                    for step in 0..STEPS {
                        let n = random.u64(..KEYS);
                        let key = number(n * 8 + id);
                        let guard = pin();
                        let insert = random.u64(..2) == 0;
                        let mut seen = None;
                        tree.update(&key, &guard, &mut |current| {
                            seen = current.map(|record| record.value()[0]);
                            if insert {
                                Change::Put(owning(test, &key, step))
                            } else {
                                Change::Remove
                            }
                        })
                        .expect("no batch runs");
                        let known = if insert {
                            mine.insert(n, step)
                        } else {
                            mine.remove(&n)
                        };
                        assert_eq!(seen, known);
                    }
                    mine.len()
                })
            })
            .collect();
        for id in 0..2 {
            let (tree, stop) = (&tree, &stop);
            scope.spawn(move || {
                let mut random = Rng::with_seed(id + 1000);
                while !stop.load(Ordering::Relaxed) {
                    let n = random.u64(..KEYS);
                    assert_eq!(get(tree, &number(n * 8)), Some(n));
                    if random.u64(..500) == 0 {
                        let all = contents(tree);
                        assert!(all.windows(2).all(|two| two[0].0 < two[1].0));
                        let stable = all.iter().filter(|(key, _)| key[7] % 8 == 0).count();
                        assert_eq!(stable as u64, KEYS);
                        let mut back = tree.last(&pin()).map(|r| r.key().to_vec());
                        let mut steps = 0;
                        while let Some(key) = back {
                            steps += u64::from(key[7] % 8 == 0);
                            back = tree
                                .prev(&key, &pin())
                                .expect("ordered")
                                .map(|r| r.key().to_vec());
                        }
                        assert_eq!(steps, KEYS);
                    }
                }
            });
        }
        let left: usize = writers
            .into_iter()
            .map(|writer| writer.join().expect("no panic"))
            .sum();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(tree.len(), left + KEYS as usize);
        assert_eq!(contents(&tree).len(), tree.len());
    });
    tree
}

pub(crate) fn wait_until_all_are_released(test: usize) {
    // Other tests of this program may hold back the epoch for a moment.
    let start = Instant::now();
    while LIVE[test].load(Ordering::Relaxed) != 0 {
        assert!(start.elapsed().as_secs() < 20, "a record was not released");
        ats_sync::collect();
        std::thread::yield_now();
    }
}

pub(crate) fn write_batch(
    tree: &impl Records<Plain>,
    keys: &[&[u8]],
    guard: &Guard,
    new_only: bool,
    value: u64,
) -> Result<bool, Busy> {
    tree.update_many(keys, guard, &mut |index, current| match current {
        Some(_) if new_only => Change::Abort,
        _ => Change::Put(RecordBox::new(keys[index], &[value], false)),
    })
}

/// Writers give all keys of an overlapping set one value at a time; readers that see a value at one
/// key must see it, or a later one, at every other.
pub(crate) fn readers_never_see_half_a_batch(tree: &impl Records<Plain>) {
    let keys: Vec<[u8; 8]> = (0..40).map(|n| number(n * 1000)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    for n in 0..5000u64 {
        put(tree, &number(n * 14 + 1), n, false);
    }
    let clock = AtomicU64::new(1);
    assert_eq!(write_batch(tree, &keys, &pin(), true, 0), Ok(true));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..3_000 {
                let now = clock.fetch_add(1, Ordering::Relaxed);
                while write_batch(tree, &keys, &pin(), false, now).is_err() {}
                assert_eq!(
                    write_batch(tree, &keys[3..], &pin(), true, u64::MAX),
                    Ok(false)
                );
            }
            stop.store(true, Ordering::Relaxed);
        });
        for seed in 1..3 {
            let (keys, stop) = (&keys, &stop);
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed);
                let mut latest = 0;
                while !stop.load(Ordering::Relaxed) {
                    let key = keys[random.usize(..keys.len())];
                    let now = get(tree, key).expect("the keys are always there");
                    assert!(now >= latest && now != u64::MAX, "saw {now} after {latest}");
                    latest = now;
                }
            });
        }
        // Unrelated writers force leaves to be copied, split and merged under the batches.
        let stop = &stop;
        scope.spawn(move || {
            let mut random = Rng::with_seed(9);
            while !stop.load(Ordering::Relaxed) {
                let key = number(random.u64(..40_000) * 2 + 1);
                match random.u64(..2) {
                    0 => put(tree, &key, 1, false),
                    _ => remove(tree, &key),
                };
            }
        });
        writer.join().expect("no panic");
    });
}

/// Checks that no increment is lost by batches with overlapping keys from several threads: they
/// exclude each other and single writers key by key.
pub(crate) fn batches_do_not_lose_updates(tree: &impl Records<Plain>) {
    const ROUNDS: u64 = 4_000;
    std::thread::scope(|scope| {
        for id in 0..3u64 {
            scope.spawn(move || {
                let mut random = Rng::with_seed(id + 5);
                for _ in 0..ROUNDS {
                    let start = random.u64(..20);
                    let keys: Vec<[u8; 8]> = (start..start + 6).map(number).collect();
                    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
                    loop {
                        let done = tree.update_many(&keys, &pin(), &mut |index, current| {
                            let value = current.map_or(0, |record| record.value()[0]) + 1;
                            Change::Put(RecordBox::new(keys[index], &[value], false))
                        });
                        if done.is_ok() {
                            break;
                        }
                    }
                    let key = number(random.u64(..26));
                    let guard = pin();
                    while tree
                        .update(&key, &guard, &mut |current| {
                            let value = current.map_or(0, |record| record.value()[0]) + 1;
                            Change::Put(RecordBox::new(&key, &[value], false))
                        })
                        .is_err()
                    {}
                }
            });
        }
    });
    let total: u64 = contents(tree).iter().map(|(_, value)| value).sum();
    assert_eq!(total, 3 * ROUNDS * 7);
}
