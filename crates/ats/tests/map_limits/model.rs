//! Tests of maps whose pairs expire against a model with deadlines.

use crate::{UNIT, alone, units};
use ats::terms::advance_clock;
use ats::{HashMap, Limited, OrderedMap, TimeLeft, TransactError};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

/// The time of maps of the model, in units and a half.
const TTL: u64 = 3;
const FOREVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expiry {
    Never,
    Written,
    Idle,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    value: String,
    gone_at: u64,
    is_fixed: bool,
}

#[derive(Clone, Debug)]
struct Model {
    expiry: Expiry,
    now: u64,
    pairs: BTreeMap<u32, Pair>,
}

impl Model {
    fn of_map(&self) -> (u64, bool) {
        match self.expiry {
            Expiry::Never => (FOREVER, false),
            _ => (self.now + TTL + 1, false),
        }
    }

    fn tick(&mut self, units: u64) {
        self.now += units;
        self.pairs.retain(|_, pair| pair.gone_at > self.now);
    }

    fn put(&mut self, key: u32, value: &str, (gone_at, is_fixed): (u64, bool)) -> Option<String> {
        let value = String::from(value);
        let pair = Pair {
            value,
            gone_at,
            is_fixed,
        };
        self.pairs.insert(key, pair).map(|pair| pair.value)
    }

    fn insert(&mut self, key: u32, value: &str) -> Option<String> {
        self.put(key, value, self.of_map())
    }

    fn read(&mut self, key: u32) -> Option<String> {
        let (gone_at, _) = self.of_map();
        let pair = self.pairs.get_mut(&key)?;
        if self.expiry == Expiry::Idle && !pair.is_fixed {
            pair.gone_at = gone_at;
        }
        Some(pair.value.clone())
    }

    fn change(&mut self, key: u32, value: &str) {
        self.read(key);
        let kept = self.pairs.get(&key).map(|old| (old.gone_at, old.is_fixed));
        self.put(key, value, kept.unwrap_or(self.of_map()));
    }

    fn all(&self) -> Vec<(u32, String)> {
        let pairs = self.pairs.iter();
        pairs
            .map(|(key, pair)| (*key, pair.value.clone()))
            .collect()
    }

    fn left(&self, key: u32) -> Option<u64> {
        self.pairs.get(&key).map(|pair| pair.gone_at)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Tick(u64),
    Insert(u32, String),
    Put(u32, String),
    InsertFor(u32, String, u64),
    InsertForever(u32, String),
    InsertNew(u32, String),
    InsertMany(Vec<(u32, String)>, bool),
    Get(u32),
    Contains(u32),
    Remove(u32),
    GetOrInsert(u32, String),
    Compute(u32, Option<String>),
    Update(u32, String),
    Merge(u32, String),
    Touch(u32),
    TouchFor(u32, u64),
    Retain(usize),
    First,
    Last,
    RemoveRange(u32, u32),
    Clear,
    /// A transaction, and whether it commits.
    Transact(Vec<Step>, bool),
}

/// A step of a transaction.
#[derive(Clone, Debug)]
enum Step {
    Get(u32),
    Insert(u32, String),
    Put(u32, String),
    Remove(u32),
    Update(u32, String),
}

fn step() -> impl Strategy<Value = Step> {
    let (text, key) = (|| "[a-z]{0,12}", || 0..KEYS);
    prop_oneof![
        key().prop_map(Step::Get),
        (key(), text()).prop_map(|(key, value)| Step::Insert(key, value)),
        (key(), text()).prop_map(|(key, value)| Step::Put(key, value)),
        key().prop_map(Step::Remove),
        (key(), text()).prop_map(|(key, value)| Step::Update(key, value)),
    ]
}

const KEYS: u32 = 12;

fn op() -> impl Strategy<Value = Op> {
    let text = || "[a-z]{0,12}";
    let key = || 0..KEYS;
    let pairs = prop::collection::vec((key(), text()), 0..8);
    prop_oneof![
        6 => (0..3_u64).prop_map(Op::Tick),
        4 => (key(), text()).prop_map(|(key, value)| Op::Insert(key, value)),
        4 => (key(), text()).prop_map(|(key, value)| Op::Put(key, value)),
        4 => (key(), text(), 0..4_u64).prop_map(|(key, value, n)| Op::InsertFor(key, value, n)),
        1 => (key(), text()).prop_map(|(key, value)| Op::InsertForever(key, value)),
        2 => (key(), text()).prop_map(|(key, value)| Op::InsertNew(key, value)),
        2 => (pairs, any::<bool>()).prop_map(|(pairs, new)| Op::InsertMany(pairs, new)),
        4 => key().prop_map(Op::Get),
        1 => key().prop_map(Op::Contains),
        2 => key().prop_map(Op::Remove),
        2 => (key(), text()).prop_map(|(key, value)| Op::GetOrInsert(key, value)),
        2 => (key(), prop::option::of(text())).prop_map(|(key, value)| Op::Compute(key, value)),
        2 => (key(), text()).prop_map(|(key, value)| Op::Update(key, value)),
        2 => (key(), text()).prop_map(|(key, value)| Op::Merge(key, value)),
        2 => key().prop_map(Op::Touch),
        2 => (key(), 0..4_u64).prop_map(|(key, n)| Op::TouchFor(key, n)),
        1 => (0..12_usize).prop_map(Op::Retain),
        1 => Just(Op::First),
        1 => Just(Op::Last),
        1 => (key(), key()).prop_map(|(low, high)| Op::RemoveRange(low, high)),
        1 => Just(Op::Clear),
        4 => (prop::collection::vec(step(), 0..8), any::<bool>())
            .prop_map(|(steps, commits)| Op::Transact(steps, commits)),
    ]
}

/// Checks the operations of both kinds of maps.
macro_rules! check_shared {
    ($map:expr, $model:expr, $op:expr) => {{
        let (map, model) = (&$map, &mut $model);
        match $op {
            Op::Tick(number) => {
                advance_clock(UNIT * *number as u32);
                model.tick(*number);
            }
            Op::Insert(key, value) => {
                assert_eq!(map.insert(*key, value), model.insert(*key, value));
            }
            Op::Put(key, value) => {
                assert_eq!(map.put(*key, value), model.insert(*key, value).is_some());
            }
            Op::InsertFor(key, value, number) => {
                let gone_at = model.now + number + 1;
                assert_eq!(
                    map.insert_for(*key, value, units(*number)),
                    model.put(*key, value, (gone_at, true))
                );
            }
            Op::InsertForever(key, value) => {
                assert_eq!(
                    map.insert_for(*key, value, Duration::MAX),
                    model.put(*key, value, (FOREVER, true))
                );
            }
            Op::InsertNew(key, value) => {
                let is_new = !model.pairs.contains_key(key);
                if is_new {
                    model.insert(*key, value);
                }
                assert_eq!(map.insert_new(*key, value), is_new);
            }
            Op::InsertMany(pairs, only_new) => {
                let is_there = |(key, _): &(u32, String)| model.pairs.contains_key(key);
                let may = !only_new || !pairs.iter().any(is_there);
                if *only_new {
                    assert_eq!(map.insert_many_new(pairs.iter().cloned()), may);
                } else {
                    map.insert_many(pairs.iter().cloned());
                }
                for (key, value) in pairs.iter().filter(|_| may) {
                    model.insert(*key, value);
                }
            }
            Op::Get(key) => assert_eq!(map.get(*key), model.read(*key)),
            Op::Contains(key) => {
                assert_eq!(map.contains_key(*key), model.pairs.contains_key(key));
            }
            Op::Remove(key) => {
                let removed = model.pairs.remove(key).map(|pair| pair.value);
                assert_eq!(map.remove(*key), removed);
            }
            Op::GetOrInsert(key, value) => {
                let found = model.read(*key);
                if found.is_none() {
                    model.insert(*key, value);
                }
                let made = map.get_or_insert_with(*key, || value.clone());
                assert_eq!(&made, found.as_ref().unwrap_or(value));
            }
            Op::Compute(key, value) => {
                let before = model.read(*key);
                let made = map.compute(*key, |found| {
                    assert_eq!(found, before);
                    value.clone()
                });
                assert_eq!(&made, value);
                match value {
                    Some(value) => model.change(*key, value),
                    None => drop(model.pairs.remove(key)),
                }
            }
            Op::Update(key, value) => {
                let is_there = model.pairs.contains_key(key);
                let made = map.update(*key, |_| value.clone());
                assert_eq!(made.as_ref(), Some(value).filter(|_| is_there));
                if is_there {
                    model.change(*key, value);
                }
            }
            Op::Merge(key, value) => {
                let merged = model.read(*key).unwrap_or_default() + value;
                model.change(*key, &merged);
                let made = map.merge(*key, value.clone(), |earlier, later| earlier + later);
                assert_eq!(made, merged);
            }
            Op::Touch(key) => {
                let of_map = model.of_map();
                let pair = model.pairs.get_mut(key);
                assert_eq!(map.touch(*key), pair.is_some());
                if let Some(pair) = pair {
                    (pair.gone_at, pair.is_fixed) = of_map;
                }
            }
            Op::TouchFor(key, number) => {
                let gone_at = model.now + number + 1;
                let pair = model.pairs.get_mut(key);
                assert_eq!(map.touch_for(*key, units(*number)), pair.is_some());
                if let Some(pair) = pair {
                    (pair.gone_at, pair.is_fixed) = (gone_at, true);
                }
            }
            Op::Retain(most) => {
                map.retain(|_, value| value.len() <= *most);
                model.pairs.retain(|_, pair| pair.value.len() <= *most);
            }
            Op::Clear => {
                map.clear();
                model.pairs.clear();
            }
            Op::Transact(steps, commits) => {
                let (mut draft, mut new) = (model.clone(), BTreeSet::new());
                let done = map.transact(|view| {
                    for step in steps {
                        // The map is read unless the view has a value of its own.
                        let (Step::Get(key)
                        | Step::Insert(key, _)
                        | Step::Put(key, _)
                        | Step::Remove(key)
                        | Step::Update(key, _)) = step;
                        if !matches!(step, Step::Put(..)) && !new.contains(key) {
                            draft.read(*key);
                            model.read(*key);
                        }
                        if !matches!(step, Step::Get(_)) {
                            let is_there = draft.pairs.contains_key(key);
                            if is_there || !matches!(step, Step::Update(..)) {
                                new.insert(*key);
                            }
                        }
                        let old = draft.pairs.get(key).map(|pair| pair.value.clone());
                        match step {
                            Step::Get(key) => assert_eq!(view.get(*key), old),
                            Step::Insert(key, value) => {
                                assert_eq!(view.insert(*key, value), old);
                                draft.insert(*key, value);
                            }
                            Step::Put(key, value) => {
                                view.put(*key, value);
                                draft.insert(*key, value);
                            }
                            Step::Remove(key) => {
                                assert_eq!(view.remove(*key), old);
                                draft.pairs.remove(key);
                            }
                            Step::Update(key, value) => {
                                let made = view.update(*key, |_| value.clone());
                                assert_eq!(made.is_some(), old.is_some());
                                if old.is_some() {
                                    draft.change(*key, value);
                                }
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
        for key in 0..KEYS {
            let left = model.left(key);
            assert_eq!(map.contains_key(key), left.is_some());
            match (map.time_left(key), left) {
                (None, None) => {}
                (Some(TimeLeft::Forever), Some(FOREVER)) => {}
                (Some(TimeLeft::Time(time)), Some(gone_at)) => {
                    let most = units(gone_at - model.now - 1);
                    assert!(time <= most && time > most - UNIT / 4, "{time:?} {most:?}");
                }
                other => panic!("{other:?} of {key}"),
            }
        }
        assert_eq!(
            (map.len(), map.is_empty()),
            (model.pairs.len(), model.pairs.is_empty())
        );
        let snapshot = map.snapshot();
        let mut all: Vec<_> = map.iter().collect();
        all.sort();
        assert_eq!(all, model.all());
        let mut past: Vec<_> = snapshot.iter().collect();
        past.sort();
        assert_eq!(past, model.all());
        assert_eq!(snapshot.len(), model.pairs.len());
        for key in 0..KEYS {
            let value = model.pairs.get(&key).map(|pair| pair.value.clone());
            assert_eq!(snapshot.get(key), value);
        }
    }};
}

fn with_expiry<M>(builder: ats::MapBuilder<M>, expiry: Expiry) -> ats::MapBuilder<M> {
    match expiry {
        Expiry::Never => builder,
        Expiry::Written => builder.ttl(units(TTL)),
        Expiry::Idle => builder.idle(units(TTL)),
    }
}

fn check_hash(expiry: Expiry, ops: &[Op]) {
    let map: HashMap<u32, String, Limited> = with_expiry(HashMap::builder(), expiry).build();
    let mut model = Model {
        expiry,
        now: 0,
        pairs: BTreeMap::new(),
    };
    for op in ops {
        if let Op::First = op {
            let popped = map.pop();
            assert_eq!(popped.is_some(), !model.pairs.is_empty());
            if let Some((key, value)) = popped {
                assert_eq!(model.pairs.remove(&key).map(|pair| pair.value), Some(value));
            }
        }
        check_shared!(map, model, op);
    }
}

fn check_ordered(expiry: Expiry, ops: &[Op]) {
    let map: OrderedMap<u32, String, Limited> = with_expiry(OrderedMap::builder(), expiry).build();
    let mut model = Model {
        expiry,
        now: 0,
        pairs: BTreeMap::new(),
    };
    let value = |(key, pair): (u32, Pair)| (key, pair.value);
    for op in ops {
        match op {
            Op::First => assert_eq!(map.pop_first(), model.pairs.pop_first().map(value)),
            Op::Last => assert_eq!(map.pop_last(), model.pairs.pop_last().map(value)),
            Op::RemoveRange(low, high) => {
                let before = model.pairs.len();
                model.pairs.retain(|key, _| key < low || key >= high);
                assert_eq!(map.remove_range(low..high), before - model.pairs.len());
            }
            _ => {}
        }
        check_shared!(map, model, op);
        let all = model.all();
        assert_eq!(map.first(), all.first().cloned());
        assert_eq!(map.last(), all.last().cloned());
        assert!(map.iter().rev().eq(all.iter().rev().cloned()));
        assert_eq!(
            (map.count(..), map.nth(1)),
            (all.len(), all.get(1).cloned())
        );
        for key in 0..KEYS {
            let above: Vec<_> = all
                .iter()
                .filter(|(other, _)| *other > key)
                .cloned()
                .collect();
            let range = (Bound::Excluded(key), Bound::<u32>::Unbounded);
            assert!(map.range(range).eq(above.iter().cloned()));
            assert_eq!(map.count(range), above.len());
            assert_eq!(
                map.rank(key),
                all.iter().filter(|(other, _)| *other < key).count()
            );
            assert_eq!(map.nth_in(range, 0), above.first().cloned());
        }
        let snapshot = map.snapshot();
        assert_eq!(
            (snapshot.count(..), snapshot.nth(0)),
            (all.len(), all.first().cloned())
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn maps_behave_as_models_with_deadlines(ops in prop::collection::vec(op(), 1..80)) {
        let _alone = alone();
        for expiry in [Expiry::Never, Expiry::Written, Expiry::Idle] {
            check_hash(expiry, &ops);
            check_ordered(expiry, &ops);
        }
    }
}
