//! Tests of maps against the maps of the standard library.

use ats::{HashMap, Key, OrderedMap, TransactError};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

/// An operation; its keys are indices of a list.
#[derive(Clone, Debug)]
enum Op {
    Insert(usize, String),
    Put(usize, String),
    InsertNew(usize, String),
    InsertMany(Vec<(usize, String)>, bool),
    Remove(usize),
    GetOrInsert(usize, String),
    Compute(usize, Option<String>),
    Merge(usize, String),
    Retain(usize),
    First,
    Last,
    RemoveRange(Bound<usize>, Bound<usize>),
    Range(Bound<usize>, Bound<usize>, Vec<bool>),
    Rank(usize),
    Snapshot,
    /// A transaction, and whether it commits.
    Transact(Vec<Step>, bool),
}

/// A step of a transaction.
#[derive(Clone, Debug)]
enum Step {
    Get(usize),
    Insert(usize, String),
    Put(usize, String),
    Remove(usize),
    Append(usize, String),
}

fn step(keys: usize) -> impl Strategy<Value = Step> {
    let text = || ".{0,12}";
    prop_oneof![
        3 => (0..keys).prop_map(Step::Get),
        2 => (0..keys, text()).prop_map(|(key, value)| Step::Insert(key, value)),
        1 => (0..keys, text()).prop_map(|(key, value)| Step::Put(key, value)),
        2 => (0..keys).prop_map(Step::Remove),
        2 => (0..keys, text()).prop_map(|(key, value)| Step::Append(key, value)),
    ]
}

fn bound(keys: usize) -> impl Strategy<Value = Bound<usize>> {
    prop_oneof![
        Just(Bound::Unbounded),
        (0..keys).prop_map(Bound::Included),
        (0..keys).prop_map(Bound::Excluded),
    ]
}

fn op(keys: usize) -> impl Strategy<Value = Op> {
    let text = || ".{0,12}";
    let pairs = prop::collection::vec((0..keys, text()), 0..20);
    prop_oneof![
        6 => (0..keys, text()).prop_map(|(key, value)| Op::Insert(key, value)),
        6 => (0..keys, text()).prop_map(|(key, value)| Op::Put(key, value)),
        2 => (0..keys, text()).prop_map(|(key, value)| Op::InsertNew(key, value)),
        2 => (pairs, any::<bool>()).prop_map(|(pairs, new)| Op::InsertMany(pairs, new)),
        4 => (0..keys).prop_map(Op::Remove),
        2 => (0..keys, text()).prop_map(|(key, value)| Op::GetOrInsert(key, value)),
        2 => (0..keys, prop::option::of(text())).prop_map(|(key, value)| Op::Compute(key, value)),
        2 => (0..keys, text()).prop_map(|(key, value)| Op::Merge(key, value)),
        1 => (0..5_usize).prop_map(Op::Retain),
        1 => Just(Op::First),
        1 => Just(Op::Last),
        1 => (bound(keys), bound(keys)).prop_map(|(low, high)| Op::RemoveRange(low, high)),
        3 => (bound(keys), bound(keys), prop::collection::vec(any::<bool>(), 0..40))
            .prop_map(|(low, high, ends)| Op::Range(low, high, ends)),
        2 => (0..keys).prop_map(Op::Rank),
        1 => Just(Op::Snapshot),
        3 => (prop::collection::vec(step(keys), 0..8), any::<bool>())
            .prop_map(|(steps, commits)| Op::Transact(steps, commits)),
    ]
}

fn joined(earlier: String, later: &str) -> String {
    earlier + later
}

/// Checks the operations of both kinds of maps.
macro_rules! check_shared {
    ($map:expr, $model:expr, $keys:expr, $op:expr) => {{
        let (map, model, key) = (&$map, &mut $model, |at: &usize| $keys[*at].clone());
        match $op {
            Op::Insert(at, value) => {
                assert_eq!(
                    map.insert(key(at), value),
                    model.insert(key(at), value.clone())
                );
            }
            Op::Put(at, value) => {
                let was_there = model.insert(key(at), value.clone()).is_some();
                assert_eq!(map.put(key(at), value), was_there);
            }
            Op::InsertNew(at, value) => {
                let is_new = !model.contains_key(&key(at));
                model.entry(key(at)).or_insert(value.clone());
                assert_eq!(map.insert_new(key(at), value), is_new);
            }
            Op::InsertMany(pairs, only_new) => {
                let given = pairs.iter().map(|(at, value)| (key(at), value));
                let may = !only_new || !pairs.iter().any(|(at, _)| model.contains_key(&key(at)));
                if *only_new {
                    assert_eq!(map.insert_many_new(given), may)
                } else {
                    map.insert_many(given)
                }
                if may {
                    model.extend(pairs.iter().map(|(at, value)| (key(at), value.clone())));
                }
            }
            Op::Remove(at) => assert_eq!(map.remove(key(at)), model.remove(&key(at))),
            Op::GetOrInsert(at, value) => {
                let expected = model.entry(key(at)).or_insert(value.clone()).clone();
                assert_eq!(map.get_or_insert_with(key(at), || value.clone()), expected);
            }
            Op::Compute(at, value) => {
                let before = model.get(&key(at)).cloned();
                let made = map.compute(key(at), |found| {
                    assert_eq!(found, before);
                    value.clone()
                });
                assert_eq!(&made, value);
                match value {
                    Some(value) => drop(model.insert(key(at), value.clone())),
                    None => drop(model.remove(&key(at))),
                }
            }
            Op::Merge(at, value) => {
                let merged = match model.get(&key(at)) {
                    Some(earlier) => joined(earlier.clone(), value),
                    None => value.clone(),
                };
                model.insert(key(at), merged.clone());
                assert_eq!(
                    map.merge(key(at), value.clone(), |earlier, later| joined(
                        earlier, later
                    )),
                    merged
                );
            }
            Op::Retain(most) => {
                map.retain(|_, value| value.len() <= *most);
                model.retain(|_, value| value.len() <= *most);
            }
            Op::Transact(steps, commits) => {
                let mut draft = model.clone();
                let done = map.transact(|view| {
                    for step in steps {
                        match step {
                            Step::Get(at) => {
                                assert_eq!(view.get(key(at)), draft.get(&key(at)).cloned());
                                let is_there = draft.contains_key(&key(at));
                                assert_eq!(view.contains_key(key(at)), is_there);
                            }
                            Step::Insert(at, value) => assert_eq!(
                                view.insert(key(at), value),
                                draft.insert(key(at), value.clone())
                            ),
                            Step::Put(at, value) => {
                                view.put(key(at), value);
                                draft.insert(key(at), value.clone());
                            }
                            Step::Remove(at) => {
                                assert_eq!(view.remove(key(at)), draft.remove(&key(at)));
                            }
                            Step::Append(at, value) => {
                                let new = view.update(key(at), |old| joined(old, value));
                                if let Some(old) = draft.get_mut(&key(at)) {
                                    old.push_str(value);
                                }
                                assert_eq!(new, draft.get(&key(at)).cloned());
                            }
                        }
                    }
                    if *commits { Ok(()) } else { Err("given up") }
                });
                if *commits {
                    assert_eq!(done, Ok(()));
                    *model = draft;
                } else {
                    assert_eq!(done, Err(TransactError::Abandoned("given up")));
                }
            }
            _ => {}
        }
        for at in 0..$keys.len() {
            assert_eq!(map.get(&$keys[at]), model.get(&$keys[at]).cloned());
            assert_eq!(map.contains_key(&$keys[at]), model.contains_key(&$keys[at]));
        }
        assert_eq!(map.len(), model.len());
        assert_eq!(map.is_empty(), model.is_empty());
    }};
}

/// Returns the pairs of a model in a range; the standard library refuses some ranges.
fn expected<K: Ord + Clone>(
    model: &BTreeMap<K, String>,
    low: &Bound<K>,
    high: &Bound<K>,
) -> Vec<(K, String)> {
    let above = |key: &K| match low {
        Bound::Unbounded => true,
        Bound::Included(low) => low <= key,
        Bound::Excluded(low) => low < key,
    };
    let below = |key: &K| match high {
        Bound::Unbounded => true,
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
    };
    let inside = model.iter().filter(|(key, _)| above(key) && below(key));
    inside
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn check_ordered<K: Key + Ord + Clone + Debug>(keys: &[K], ops: &[Op]) {
    let (map, mut model) = (OrderedMap::<K, String>::new(), BTreeMap::new());
    for op in ops {
        check_shared!(map, model, keys, op);
        let range = |low: &Bound<usize>, high: &Bound<usize>| {
            let key = |at: usize| keys[at].clone();
            (low.map(key), high.map(key))
        };
        match op {
            Op::First => assert_eq!(map.pop_first(), model.pop_first()),
            Op::Last => assert_eq!(map.pop_last(), model.pop_last()),
            Op::RemoveRange(low, high) => {
                let range = range(low, high);
                let inside = expected(&model, &range.0, &range.1);
                assert_eq!(map.remove_range(&range), inside.len());
                for (key, _) in &inside {
                    drop(model.remove(key));
                }
            }
            Op::Range(low, high, ends) => {
                let range = range(low, high);
                let mut inside = expected(&model, &range.0, &range.1);
                assert_eq!(map.count(&range), inside.len());
                assert_eq!(map.nth_in(&range, 1).as_ref(), inside.get(1));
                let before = map.snapshot();
                assert_eq!(before.count(&range), inside.len());
                assert_eq!(before.nth_in(&range, 1).as_ref(), inside.get(1));
                let mut some = map.range(&range);
                for from_back in ends {
                    let (found, wanted) = if *from_back {
                        (some.next_back(), inside.pop())
                    } else {
                        (some.next(), (!inside.is_empty()).then(|| inside.remove(0)))
                    };
                    assert_eq!(found, wanted);
                }
                assert_eq!(some.collect::<Vec<_>>(), inside);
            }
            Op::Rank(at) => {
                let rank = model.range(..&keys[*at]).count();
                assert_eq!(map.rank(&keys[*at]), rank);
                let nth = model.iter().nth(rank);
                assert_eq!(
                    map.nth(rank),
                    nth.map(|(key, value)| (key.clone(), value.clone()))
                );
            }
            Op::Snapshot => {
                let before = map.snapshot();
                let first_and_last = (map.first(), map.last());
                map.clear();
                assert_eq!(before.len(), model.len());
                assert!(before.iter().eq(model.clone()));
                assert!(before.iter().rev().eq(model.clone().into_iter().rev()));
                assert!(map.is_empty());
                assert_eq!((before.first(), before.last()), first_and_last);
                for (rank, (key, value)) in model.iter().enumerate() {
                    assert_eq!(before.rank(key), rank);
                    assert_eq!(before.nth(rank), Some((key.clone(), value.clone())));
                }
                assert_eq!(before.nth(model.len()), None);
                before
                    .iter()
                    .for_each(|(key, value)| drop(map.insert(key, value)));
            }
            _ => {}
        }
        assert!(map.iter().eq(model.clone()));
        assert!(map.iter().rev().eq(model.clone().into_iter().rev()));
        assert!(map.clone().iter().eq(&map));
        assert_eq!(
            map.first(),
            model.first_key_value().map(|(k, v)| (k.clone(), v.clone()))
        );
        assert_eq!(
            map.last(),
            model.last_key_value().map(|(k, v)| (k.clone(), v.clone()))
        );
        assert_eq!(format!("{map:?}"), format!("{model:?}"));
    }
}

fn check_hash<K: Key + Ord + Clone + Debug>(keys: &[K], ops: &[Op]) {
    let (map, mut model) = (HashMap::<K, String>::new(), BTreeMap::new());
    for op in ops {
        check_shared!(map, model, keys, op);
        match op {
            Op::First => {
                let popped = map.pop();
                assert_eq!(popped.is_some(), !model.is_empty());
                if let Some((key, value)) = popped {
                    assert_eq!(model.remove(&key), Some(value));
                }
            }
            Op::Snapshot => {
                let before = map.snapshot();
                map.clear();
                assert_eq!(before.len(), model.len());
                assert_eq!(before.iter().collect::<BTreeMap<_, _>>(), model);
                assert!(map.is_empty());
                before
                    .iter()
                    .for_each(|(key, value)| drop(map.insert(key, value)));
            }
            _ => {}
        }
        assert_eq!(map.iter().count(), model.len());
        assert_eq!(map.iter().collect::<BTreeMap<_, _>>(), model);
    }
}

macro_rules! models {
    ($($name:ident: $keys:expr;)*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(48))]

                #[test]
                fn ordered(
                    keys in prop::collection::vec($keys, 20),
                    ops in prop::collection::vec(op(20), 1..80),
                ) {
                    check_ordered(&keys, &ops);
                }

                #[test]
                fn hash(
                    keys in prop::collection::vec($keys, 20),
                    ops in prop::collection::vec(op(20), 1..80),
                ) {
                    check_hash(&keys, &ops);
                }
            }
        }
    )*};
}

models! {
    numbers: -10_i64..10;
    texts: "[\0\u{1}ab]{0,3}";
    parts: ("[ab]{0,2}", prop::option::of(any::<u8>()), any::<bool>().prop_map(Reverse));
    byte_strings: prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 255]), 0..3);
}

#[test]
fn a_large_map_is_read_from_both_ends_piece_by_piece() {
    let map: OrderedMap<u32, u64> = (0..10_000).map(|n| (n, u64::from(n) * 3)).collect();
    let (mut all, mut low, mut high) = (map.iter(), 0, 10_000);
    while low < high {
        assert_eq!(all.next(), Some((low, u64::from(low) * 3)));
        low += 1;
        for _ in 0..2 {
            if low < high {
                high -= 1;
                assert_eq!(all.next_back(), Some((high, u64::from(high) * 3)));
            }
        }
    }
    assert_eq!((all.next(), all.next_back()), (None, None));
    assert_eq!(
        (map.rank(5_000), map.count(10..=20), map.nth(9_999)),
        (5_000, 11, Some((9_999, 29_997)))
    );
}

/// The records are too many to be counted under one guard.
#[test]
fn many_records_of_a_moment_are_counted() {
    let map: OrderedMap<u32, u32> = (0..10_000).map(|n| (n, n + 1)).collect();
    let before = map.snapshot();
    map.remove_range(1_000..9_000);
    map.insert(20_000, 0);
    assert_eq!((before.count(..), before.count(1..5_001)), (10_000, 5_000));
    assert_eq!((before.rank(3_000), before.rank(30_000)), (3_000, 10_000));
    for rank in [0, 999, 1_000, 1_001, 5_000, 9_999] {
        assert_eq!(before.nth(rank), Some((rank as u32, rank as u32 + 1)));
    }
    assert_eq!(before.nth_in(500.., 1_000), Some((1_500, 1_501)));
    assert_eq!((before.nth(10_000), before.count(9..9)), (None, 0));
    assert_eq!(
        (map.count(..), map.nth(1_000)),
        (2_001, Some((9_000, 9_001)))
    );
}

/// Returns the number of keys that tests of walks remove: `ATS_REMOVED_KEYS`, or a smaller number.
pub(crate) fn removed_keys() -> u32 {
    let told = std::env::var("ATS_REMOVED_KEYS");
    told.map_or(100_000, |told| told.parse().expect("it is a number"))
}

/// A walk over many removed keys neither recurses nor takes long.
#[test]
fn removed_keys_are_passed_while_a_snapshot_keeps_them() {
    let keys = removed_keys();
    let map: OrderedMap<u32, ()> = (0..keys).map(|n| (n, ())).collect();
    let hash: HashMap<u32, ()> = (0..keys).map(|n| (n, ())).collect();
    let (before, hash_before) = (map.snapshot(), hash.snapshot());
    assert_eq!(map.remove_range(1..), keys as usize - 1);
    hash.retain(|key, ()| *key == 0);
    assert_eq!(
        (map.iter().count(), map.iter().rev().count(), map.len()),
        (1, 1, 1)
    );
    assert_eq!((map.first(), map.last()), (Some((0, ())), Some((0, ()))));
    assert_eq!((hash.iter().count(), hash.len()), (1, 1));
    assert_eq!(
        (before.iter().count(), before.len()),
        (keys as usize, keys as usize)
    );
    assert_eq!(hash_before.iter().count(), keys as usize);
}

#[test]
fn a_map_tells_its_memory() {
    let map: OrderedMap<u64, u64> = OrderedMap::new();
    let empty = map.memory();
    map.insert_many((0..10_000).map(|n| (n, n)));
    let each = (map.memory() - empty) / 10_000;
    assert!((24..100).contains(&each), "{each} bytes for 16");
}

#[test]
fn large_values_come_back() {
    let map: OrderedMap<String, Vec<u8>> = OrderedMap::new();
    for len in [0, 1, 63, 64, 65, 1_000, 100_000, 3_000_000] {
        let value: Vec<u8> = (0..len).map(|at| at as u8).collect();
        map.insert(format!("{len}"), &value);
        assert_eq!(map.get(format!("{len}")), Some(value));
    }
    assert_eq!(
        map.iter().map(|(_, value)| value.len()).sum::<usize>(),
        3_101_193
    );
}

#[test]
fn a_key_may_have_no_bytes() {
    let (ordered, hash) = (OrderedMap::<(), u8>::new(), HashMap::<(), u8>::new());
    assert_eq!((ordered.insert((), 1), hash.insert((), 1)), (None, None));
    assert_eq!(
        (
            ordered.range(()..=()).count(),
            ordered.range(()..()).count()
        ),
        (1, 0)
    );
    assert_eq!((ordered.rank(()), ordered.nth(0)), (0, Some(((), 1))));
    assert!(ordered.iter().eq(&hash) && ordered.iter().rev().eq(&hash));
    assert_eq!((ordered.remove(()), hash.remove(())), (Some(1), Some(1)));
    assert!(ordered.is_empty() && hash.is_empty());
}
