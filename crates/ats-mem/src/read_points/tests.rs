//! Histories: their results, their speed, and their end.

use super::*;
use crate::record::history::PAGE;
use crate::{CaTree, HashTable, Plain, Provided, Records};
use std::collections::BTreeMap;

const KEY: [u8; 8] = [7; 8];

fn put(store: &impl Records<Plain>, value: u64) {
    let record = RecordBox::new(&KEY, &[value], false);
    assert!(store.put(&KEY, record, &ats_sync::pin()).is_ok());
}

fn remove(store: &impl Records<Plain>) {
    assert!(store.remove(&KEY, &ats_sync::pin()).is_ok());
}

fn begin(store: &impl Records<Plain>) -> ReadPoint {
    let read_point = store.begin(&mut || Ok(true)).expect("no thread is inside");
    read_point.expect("the store has moments")
}

fn reclaim_all(store: &impl Records<Plain>) {
    while !store.reclaim(7, &ats_sync::pin()) {}
}

fn value_at(store: &impl Records<Plain>, when: When) -> Option<u64> {
    let guard = ats_sync::pin();
    let found = store.get_at(&KEY, when, &guard);
    found.map(|record| record.value()[0])
}

/// The number of records that a query of a moment comes to that it does not see, if the key is
/// there now.
fn steps(store: &impl Records<Plain>, when: When) -> usize {
    let guard = ats_sync::pin();
    let mut next = store.get(&KEY, &guard);
    let mut steps = 0;
    while let Some(version) = next.and_then(|record| record.version(&guard)) {
        if when.sees(version.time) {
            break;
        }
        steps += 1;
        next = version.before_at(when, &guard);
    }
    steps
}

/// The number of records in the history of the key, if it is there now.
fn records(store: &impl Records<Plain>) -> usize {
    let guard = ats_sync::pin();
    let mut next = store.get(&KEY, &guard);
    while let Some(version) = next.and_then(|record| record.version(&guard)) {
        if let Ok(history) = version.history(&guard) {
            return history.records(&guard);
        }
        next = version.before(&guard);
    }
    0
}

fn held_bytes(store: &impl Records<Plain>) -> usize {
    reclaim_all(store);
    store.read_points().map_or(0, ReadPoints::held_bytes)
}

/// A generator of the same random numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

/// Writes one key while queries begin and end, newest or oldest or in between, one or many at once.
/// Checks that each query sees the record of its moment.
fn queries_find_records_of_their_moment(store: &impl Records<Plain>, seed: u64) {
    let mut random = Random(seed);
    let mut queries: Vec<(ReadPoint, Option<u64>)> = Vec::new();
    let mut now = None;
    for round in 0..6000u64 {
        // The limit varies, so that there are many queries for a while, and then few.
        let most = [2, 20, 200][(round / 500 % 3) as usize];
        match random.below(16) {
            0..6 => {
                now = Some(round);
                put(store, round);
            }
            6 => {
                now = None;
                remove(store);
            }
            7..11 if queries.len() < most => queries.push((begin(store), now)),
            7..13 if !queries.is_empty() => {
                let newest = queries.len() - 1;
                let at = [0, newest, random.below(newest + 1)][random.below(3)];
                store.end(queries.remove(at).0);
            }
            13 => {
                let some = random.below(queries.len() + 1);
                queries
                    .drain(some..)
                    .for_each(|(query, _)| store.end(query));
            }
            _ => {
                store.reclaim(random.below(30), &ats_sync::pin());
            }
        }
        if let Some((query, then)) = queries.get(random.below(queries.len().max(1))) {
            assert_eq!(value_at(store, query.when()), *then);
            assert!(steps(store, query.when()) <= PAGE + 1);
        }
        assert_eq!(value_at(store, When::NOW), now);
        if round % 64 == 0 {
            for (query, then) in &queries {
                assert_eq!(value_at(store, query.when()), *then);
            }
        }
    }
    for (query, _) in queries {
        store.end(query);
    }
    assert_eq!(held_bytes(store), 0);
}

#[test]
fn queries_of_trees_find_records_of_their_moment() {
    (0..6).for_each(|seed| queries_find_records_of_their_moment(&CaTree::new(), seed));
}

#[test]
fn queries_of_hash_tables_find_records_of_their_moment() {
    (6..12).for_each(|seed| queries_find_records_of_their_moment(&HashTable::new(), seed));
}

/// Queries come and go for ever, and few run at a time: as a moving window, and in waves beside one
/// that stays.
#[test]
fn a_history_does_not_grow_for_ever() {
    let store = CaTree::new();
    let mut window = BTreeMap::new();
    for round in 0..20_000u64 {
        put(&store, round);
        window.insert(round, begin(&store));
        if window.len() > 100 {
            store.end(window.pop_first().expect("some").1);
        }
        if round % 50 == 0 {
            reclaim_all(&store);
            assert!(records(&store) < 1000, "{}", records(&store));
        }
    }
    let (oldest, read_point) = window.first_key_value().expect("some");
    assert_eq!(value_at(&store, read_point.when()), Some(*oldest));
    for round in 0..20_000u64 {
        put(&store, round);
        window.insert(20_000 + round, begin(&store));
        if window.len() > 200 {
            window
                .split_off(&20_000)
                .into_values()
                .for_each(|query| store.end(query));
            reclaim_all(&store);
            assert!(records(&store) < 1000, "{}", records(&store));
        }
    }
    assert!(steps(&store, window.first_key_value().expect("some").1.when()) <= PAGE);
    for (value, query) in window {
        assert_eq!(value_at(&store, query.when()), Some(value % 20_000));
        store.end(query);
    }
    assert_eq!(held_bytes(&store), 0);
}

/// The bytes held back are those of the remaining versions, for any order of the ends.
#[test]
fn bytes_that_are_held_back_are_counted_until_they_go() {
    for order in 0..3 {
        let store = CaTree::new();
        put(&store, 0);
        let mut queries: Vec<_> = (1..=30)
            .map(|value| {
                let query = begin(&store);
                put(&store, value);
                query
            })
            .collect();
        let all = held_bytes(&store);
        let mut random = Random(order);
        while !queries.is_empty() {
            let at = [0, queries.len() - 1, random.below(queries.len())][order as usize];
            store.end(queries.remove(at));
            // Versions that were passed over may be left for a while.
            let (least, most) = (all * queries.len() / 60, all * (queries.len() + 4) / 15);
            let held = held_bytes(&store);
            assert!(
                (least..=most).contains(&held),
                "{held} of {all}: {}",
                queries.len()
            );
        }
        assert_eq!(held_bytes(&store), 0);
    }
}
