//! The store of the standard library's hash map against a model, and the guarantees of its walks,
//! while it is fixed and while it is not.
#![cfg(not(shuttle))]

use ats_mem::When;
use ats_mem::{
    Change, Direction, KeyRange, NoSuchKey, Plain, Provided, RecordBox, Records, Skipped,
    SlotAnswer, Walk, WalkFrom,
};
use ats_rivals::{LockFreeTree, LockedHashMap, SkipList};
use ats_sync::pin;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

type Map = LockedHashMap<Plain>;

fn put(store: &impl Records<Plain>, key: &[u8], value: u64) {
    let done = store.update(key, &pin(), &mut |_| {
        Change::Put(RecordBox::new(key, &[value], false))
    });
    assert_eq!(done, Ok(()));
}

fn remove(store: &impl Records<Plain>, key: &[u8]) {
    assert_eq!(store.update(key, &pin(), &mut |_| Change::Remove), Ok(()));
}

fn scan_keys(store: &impl Records<Plain>, after: Option<&[u8]>) -> Result<Vec<Vec<u8>>, NoSuchKey> {
    let mut keys = Vec::new();
    store.scan(after, When::NOW, &pin(), &mut |record| {
        keys.push(record.key().to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}

/// Returns the keys that a walk by `next` meets.
fn walk_keys(store: &impl Records<Plain>) -> Vec<Vec<u8>> {
    let guard = pin();
    let mut keys = Vec::new();
    let mut here = store.first(&guard);
    while let Some(record) = here {
        keys.push(record.key().to_vec());
        here = store.next(record.key(), &guard).expect("the key is there");
    }
    keys
}

#[derive(Clone, Debug)]
enum Action {
    Put(u8, u64),
    Remove(u8),
    RemoveAlone(u8),
    Batch(BTreeMap<u8, bool>, u64, Option<usize>),
    Fix,
    Unfix,
    Next(u8),
    Scan(u8),
    Bulk(u16),
    Unbulk,
}

fn action() -> impl Strategy<Value = Action> {
    let name = || 0..40u8;
    prop_oneof![
        8 => (name(), any::<u64>()).prop_map(|(key, value)| Action::Put(key, value)),
        5 => name().prop_map(Action::Remove),
        2 => name().prop_map(Action::RemoveAlone),
        3 => (
            proptest::collection::btree_map(name(), any::<bool>(), 0..6),
            any::<u64>(),
            proptest::option::of(0..6usize),
        )
            .prop_map(|(keys, value, abort)| Action::Batch(keys, value, abort)),
        1 => Just(Action::Fix),
        1 => Just(Action::Unfix),
        3 => name().prop_map(Action::Next),
        2 => name().prop_map(Action::Scan),
        1 => (0..600u16).prop_map(Action::Bulk),
        1 => Just(Action::Unbulk),
    ]
}

/// Keys of several lengths, among them the empty one, in the order of their numbers.
fn name(number: u8) -> Vec<u8> {
    vec![b'x'; usize::from(number)]
}

/// The model of the store.
#[derive(Default)]
struct Model {
    records: HashMap<Vec<u8>, u64>,
    /// Keys removed since the store was fixed.
    removed: HashSet<Vec<u8>>,
    fixed: usize,
    bulk: u64,
}

impl Model {
    fn remove(&mut self, key: &[u8]) {
        if self.records.remove(key).is_some() && self.fixed > 0 {
            self.removed.insert(key.to_vec());
        }
    }

    fn knows(&self, key: &[u8]) -> bool {
        self.records.contains_key(key) || self.removed.contains(key)
    }

    fn run(&mut self, map: &Map, action: Action) {
        match action {
            Action::Put(number, value) => {
                put(map, &name(number), value);
                self.records.insert(name(number), value);
            }
            Action::Remove(number) => {
                remove(map, &name(number));
                self.remove(&name(number));
            }
            Action::RemoveAlone(number) => {
                let done = map.update_alone(&name(number), &pin(), &mut |_| Change::Remove);
                assert_eq!(done, Ok(()));
                self.remove(&name(number));
            }
            Action::Batch(keys, value, abort) => self.batch(map, &keys, value, abort),
            Action::Fix => {
                map.fix();
                self.fixed += 1;
            }
            Action::Unfix if self.fixed > 0 => {
                map.unfix();
                assert!(map.tidy(1, &pin()));
                self.fixed -= 1;
                if self.fixed == 0 {
                    self.removed.clear();
                }
            }
            Action::Unfix => {}
            Action::Next(number) => {
                let next = map.next(&name(number), &pin()).is_ok();
                assert_eq!(next, self.knows(&name(number)));
            }
            Action::Scan(number) => match scan_keys(map, Some(&name(number))) {
                Err(NoSuchKey) => assert!(!self.knows(&name(number))),
                Ok(rest) => {
                    assert!(self.knows(&name(number)));
                    let all = scan_keys(map, None).expect("no key to be missing");
                    assert!(all.ends_with(&rest), "the order depends on the start");
                }
            },
            Action::Bulk(count) => {
                for number in self.bulk..self.bulk + u64::from(count) {
                    put(map, &number.to_be_bytes(), number);
                    self.records.insert(number.to_be_bytes().to_vec(), number);
                }
                self.bulk += u64::from(count);
            }
            Action::Unbulk => {
                for number in 0..self.bulk {
                    remove(map, &number.to_be_bytes());
                    self.remove(&number.to_be_bytes());
                }
                self.bulk = 0;
            }
        }
    }

    fn batch(&mut self, map: &Map, keys: &BTreeMap<u8, bool>, value: u64, abort: Option<usize>) {
        let names: Vec<Vec<u8>> = keys.keys().map(|key| name(*key)).collect();
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let puts: Vec<bool> = keys.values().copied().collect();
        let done = map.update_many(&names, &pin(), &mut |index, current| {
            let found = current.map(|record| record.value()[0]);
            assert_eq!(found, self.records.get(names[index]).copied());
            if abort == Some(index) {
                Change::Abort
            } else if puts[index] {
                Change::Put(RecordBox::new(names[index], &[value], false))
            } else {
                Change::Keep
            }
        });
        let is_aborted = abort.is_some_and(|index| index < names.len());
        assert_eq!(done, Ok(!is_aborted));
        for (name, put) in names.into_iter().zip(puts) {
            if put && !is_aborted {
                self.records.insert(name.to_vec(), value);
            }
        }
    }

    fn check(&self, map: &Map) {
        assert_eq!(map.len(), self.records.len());
        for (key, value) in &self.records {
            let guard = pin();
            let record = map.get(key, &guard);
            assert_eq!(record.map(|record| record.value()[0]), Some(*value));
        }
        let walked = walk_keys(map);
        assert_eq!(walked.len(), self.records.len());
        assert!(walked.iter().all(|key| self.records.contains_key(key)));
        assert_eq!(in_slots(map), walked);
        assert_eq!(in_pieces(map), walked);
        assert_eq!(scan_keys(map, None), Ok(walked));
    }
}

/// Returns the keys of all slots. They are in the order of a walk, since slots are intervals of it.
fn in_slots(map: &Map) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for slot in 0.. {
        let answer = map.slot(slot, &pin(), &mut |record| keys.push(record.key().to_vec()));
        if answer == SlotAnswer::End {
            let behind = map.slot(slot + 1, &pin(), &mut |_| panic!("there is nothing"));
            assert_eq!(behind, SlotAnswer::Beyond);
            break;
        }
    }
    keys
}

/// Returns the keys that scans meet if they pause as often as they can.
fn in_pieces(map: &Map) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut from = WalkFrom::Start;
    loop {
        let guard = pin();
        let visit = &mut |record: &ats_mem::Record<Plain>| {
            keys.push(record.key().to_vec());
            ControlFlow::Continue(())
        };
        let pause = &mut || ControlFlow::Break(());
        match map
            .walk(Walk::up(from), &guard, visit, pause)
            .expect("no key is asked for")
        {
            None => return keys,
            Some(position) => from = WalkFrom::Position(position),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_locked_hash_map_behaves_like_a_map(actions in proptest::collection::vec(action(), 0..60)) {
        let map = Map::new();
        let mut model = Model::default();
        for action in actions {
            model.run(&map, action);
        }
        model.check(&map);
        while model.fixed > 0 {
            model.run(&map, Action::Unfix);
        }
        model.check(&map);
    }
}

/// An undone batch leaves no key from which a walk could go on, even if the store is fixed. A key
/// that was removed before stays known.
#[test]
fn keys_of_an_undone_batch_are_not_known() {
    let map = Map::new();
    put(&map, b"old", 1);
    map.fix();
    remove(&map, b"old");
    let keys: [&[u8]; 2] = [b"new", b"old"];
    let done = map.update_many(&keys, &pin(), &mut |index, _| match index {
        0 => Change::Put(RecordBox::new(keys[index], &[2], false)),
        _ => Change::Abort,
    });
    assert_eq!(done, Ok(false));
    let next = |key: &[u8]| map.next(key, &pin()).map(|next| next.is_some());
    assert_eq!((next(b"new"), next(b"old")), (Err(NoSuchKey), Ok(false)));
    map.unfix();
    assert!(map.tidy(1, &pin()));
    assert_eq!(next(b"old"), Err(NoSuchKey));
}

/// Memory is given back with the records, and so is the memory of the map.
#[test]
fn memory_comes_back() {
    fn check<S: Records<Plain> + Default>() {
        let store = S::default();
        let empty = store.memory();
        for number in 0..20_000_u64 {
            put(&store, &number.to_be_bytes(), number);
        }
        let full = store.memory();
        assert!(full.records >= 20_000 * 24 && full.structure >= empty.structure + 20_000 * 8);
        for number in 0..20_000_u64 {
            remove(&store, &number.to_be_bytes());
        }
        assert_eq!(store.memory().records, empty.records);
        assert!(store.memory().structure <= empty.structure + 2048);
    }
    check::<LockFreeTree<Plain>>();
    check::<LockedHashMap<Plain>>();
}

/// Counting in parts, each up to the first pause, gives the same result as counting at once, in
/// both directions, and also if the wanted record lies behind a pause.
#[test]
fn skipping_goes_on_after_a_pause() {
    goes_on_after_a_pause(&SkipList::<Plain>::new());
    goes_on_after_a_pause(&LockFreeTree::<Plain>::new());
}

fn goes_on_after_a_pause(store: &impl Records<Plain>) {
    for number in 0..1000_u64 {
        put(store, &number.to_be_bytes(), number);
    }
    let low = 5_u64.to_be_bytes();
    let high = 990_u64.to_be_bytes();
    for direction in [Direction::Up, Direction::Down] {
        for most in [0, 1, 63, 64, 65, 500, 984, 985, 5000] {
            let guard = pin();
            let (mut passed, mut pauses) = (0, 0);
            let mut ends = [low.to_vec(), high.to_vec()];
            let found = loop {
                let range = KeyRange {
                    low: Some(&ends[0]),
                    high: Some(&ends[1]),
                };
                let pause = &mut || ControlFlow::Break(());
                match store.skip(range, direction, most - passed, &guard, pause) {
                    Skipped::At(record, _) => break Some(record.value()[0]),
                    Skipped::All(skipped) => {
                        passed += skipped;
                        break None;
                    }
                    Skipped::Paused { skipped, bound } => {
                        passed += skipped;
                        pauses += 1;
                        ends[usize::from(direction == Direction::Down)] = bound;
                    }
                }
            };
            let expected = match direction {
                Direction::Up => (5..990).nth(most),
                Direction::Down => (5..990).rev().nth(most),
            };
            assert_eq!(found, expected);
            assert!(found.is_some() || passed == 985);
            assert_eq!(pauses > 0, most > 0);
        }
    }
}
