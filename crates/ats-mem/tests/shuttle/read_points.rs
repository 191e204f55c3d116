//! Snapshot queries, beside writers, batches and reclaiming threads.

use crate::*;
use ats_mem::{HashTable, ReadPoint};

fn begin(store: &impl Records<Plain>) -> ReadPoint {
    loop {
        match store.begin(&mut || Ok(true)) {
            Ok(read_point) => return read_point.expect("the store has moments"),
            Err(Busy) => thread::yield_now(),
        }
    }
}

/// The content that a query sees, by number.
fn content(store: &impl Records<Plain>, when: When) -> Vec<(u64, u64)> {
    let mut met = Vec::new();
    let scanned = store.scan(None, when, &pin(), &mut |record| {
        met.push((number(record.key()), record.value()[0]));
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    met.sort_unstable();
    met
}

fn reclaim_all(store: &impl Records<Plain>) {
    while !store.reclaim(4, &pin()) {
        thread::yield_now();
    }
}

/// Batches put one value under three keys, another thread puts two keys in a row and removes them
/// in the same order, and queries find all of that as of one moment, as often as they look.
fn queries_against_writers<S: Records<Plain> + Default + 'static>(
    keys: u64,
    splits: u32,
    joins: u32,
) {
    let equal = [0, keys + 1, 2 * keys - 2];
    let [first, second] = [keys + 3, 1];
    explore(move || {
        let store = fill::<S>(evens(keys));
        quietly(|| put_all(&*store, &equal, 100));
        store.force_adaptation(splits, joins);
        let others = keys as usize - 2;
        together! {
            store => {
                put_all(&*store, &equal, 101);
                put_all(&*store, &equal, 102);
            }
            store => {
                put(&*store, first, 1);
                put(&*store, second, 2);
                remove(&*store, first);
                remove(&*store, second);
                store.reclaim(2, &pin());
            }
            store => {
                for _ in 0..2 {
                    let read_point = begin(&*store);
                    let met = content(&*store, read_point.when());
                    assert_eq!(met.len() as i64, read_point.objects);
                    let value = |number| {
                        let found = met.iter().find(|(met, _)| *met == number);
                        found.map(|(_, value)| *value)
                    };
                    let found = equal.map(value);
                    assert!(found[0].is_some() && found == [found[0]; 3], "{found:?}");
                    let rest = met.len() - equal.len();
                    let there = [first, second].map(|number| usize::from(value(number).is_some()));
                    assert_eq!(rest, others + there[0] + there[1]);
                    assert_eq!(content(&*store, read_point.when()), met);
                    let guard = pin();
                    for number in equal.into_iter().chain([first, second]) {
                        let seen = store.get_at(&key(number), read_point.when(), &guard);
                        assert_eq!(seen.map(|record| record.value()[0]), value(number));
                    }
                    drop(guard);
                    store.end(read_point);
                    store.reclaim(3, &pin());
                }
            }
        }
        reclaim_all(&*store);
        assert_eq!(store.len() as u64, keys + 1);
        let met = content(&*store, When::NOW);
        assert_eq!(met.len() as u64, keys + 1);
        assert!(equal.iter().all(|number| met.contains(&(*number, 102))));
    });
}

#[test]
fn queries_of_the_tree() {
    queries_against_writers::<CaTree<Plain>>(LEAF, 0, 0);
}

#[test]
fn queries_of_a_tree_that_adapts() {
    queries_against_writers::<CaTree<Plain>>(3 * LEAF, 2, 3);
}

#[test]
fn queries_of_the_hash_table() {
    queries_against_writers::<HashTable<Plain>>(hash::FULL, 0, 0);
}

#[test]
fn queries_of_a_hash_table_that_adapts() {
    queries_against_writers::<HashTable<Plain>>(hash::FULL, 2, 3);
}

/// One key is written again and again, beside queries that look at it as often as they like, begin
/// and end in any order, and threads that reclaim: so its history grows, moves, and is looked
/// through.
fn queries_of_one_key<S: Records<Plain> + Default + 'static>() {
    explore(|| {
        let store = fill::<S>(evens(2));
        let see = |store: &S, read_point: &ReadPoint| {
            let guard = pin();
            let seen = store.get_at(&key(2), read_point.when(), &guard);
            seen.map(|record| record.value()[0])
        };
        let query = move |store: &S, order: [usize; 4]| {
            let mut queries = Vec::new();
            for _ in 0..5 {
                let read_point = begin(store);
                let seen = see(store, &read_point);
                queries.push((read_point, seen));
            }
            for at in order {
                for (read_point, seen) in &queries {
                    assert_eq!(see(store, read_point), *seen);
                }
                store.end(queries.remove(at).0);
                store.reclaim(3, &pin());
            }
            let (read_point, seen) = queries.pop().expect("one is left");
            assert_eq!(see(store, &read_point), seen);
            store.end(read_point);
        };
        together! {
            store => {
                for value in 0..14 {
                    match value % 5 {
                        4 => remove(&*store, 2),
                        _ => put(&*store, 2, value),
                    }
                }
            }
            store => { query(&store, [1, 1, 0, 0]) }
            store => { query(&store, [4, 3, 2, 1]) }
        }
        reclaim_all(&*store);
        assert_eq!(store.read_points().expect("it has moments").held_bytes(), 0);
    });
}

#[test]
fn queries_of_one_key_of_a_tree() {
    queries_of_one_key::<CaTree<Plain>>();
}

#[test]
fn queries_of_one_key_of_a_hash_table() {
    queries_of_one_key::<HashTable<Plain>>();
}

/// A writer keeps writing one key while the last query ends and the records kept for it are freed.
fn the_last_query_ends<S: Records<Plain> + Default + 'static>() {
    explore(|| {
        let store = fill::<S>(evens(4));
        let read_point = begin(&*store);
        quietly(|| {
            put(&*store, 2, 20);
            remove(&*store, 4);
        });
        together! {
            store => { put(&*store, 2, 21); put(&*store, 4, 41); put(&*store, 2, 22) }
            store => { put_all(&*store, &[2, 4], 50); remove(&*store, 4) }
            store => { store.end(read_point); store.reclaim(9, &pin()); ats_sync::collect(); }
        }
        reclaim_all(&*store);
        ats_sync::collect();
        let met = content(&*store, When::NOW);
        assert_eq!(store.len(), met.len());
        let read_point = begin(&*store);
        assert_eq!(content(&*store, read_point.when()), met);
        store.end(read_point);
    });
}

#[test]
fn the_last_query_of_a_tree_ends() {
    the_last_query_ends::<CaTree<Plain>>();
}

#[test]
fn the_last_query_of_a_hash_table_ends() {
    the_last_query_ends::<HashTable<Plain>>();
}

/// A query removes the records that it sees unless they have been written since. Beside it runs a
/// batch, which it removes as a whole or not at all, and another query, whose view stays the same.
fn a_query_that_removes<S: Records<Plain> + Default + 'static>(keys: u64, splits: u32, joins: u32) {
    let equal = [0, keys + 1, 2 * keys - 2];
    explore(move || {
        let store = fill::<S>(evens(keys));
        store.force_adaptation(splits, joins);
        together! {
            store => { put_all(&*store, &equal, 100) }
            store => {
                let read_point = begin(&*store);
                let guard = pin();
                let mut seen = Vec::new();
                let scanned = store.scan(None, read_point.when(), &guard, &mut |record| {
                    seen.push(record);
                    ControlFlow::Continue(())
                });
                assert_eq!(scanned, Ok(()));
                for record in seen {
                    let by = read_point.query();
                    let remove = || {
                        store.update_by(record.key(), by, &guard, &mut |current| match current {
                            Some(current) if std::ptr::eq(current, record) => Change::Remove,
                            _ => Change::Keep,
                        })
                    };
                    while remove().is_err() {
                        thread::yield_now();
                    }
                }
                drop(guard);
                store.end(read_point);
                store.reclaim(3, &pin());
            }
            store => {
                let read_point = begin(&*store);
                let met = content(&*store, read_point.when());
                assert_eq!(met.len() as i64, read_point.objects);
                assert_eq!(content(&*store, read_point.when()), met);
                store.end(read_point);
            }
        }
        reclaim_all(&*store);
        let met = content(&*store, When::NOW);
        let whole = equal.map(|number| (number, 100));
        assert!(met.is_empty() || met == whole, "{met:?}");
        assert_eq!(store.len(), met.len());
    });
}

#[test]
fn a_query_removes_from_a_tree() {
    a_query_that_removes::<CaTree<Plain>>(LEAF, 0, 0);
}

#[test]
fn a_query_removes_from_a_tree_that_adapts() {
    a_query_that_removes::<CaTree<Plain>>(3 * LEAF, 2, 3);
}

#[test]
fn a_query_removes_from_a_hash_table() {
    a_query_that_removes::<HashTable<Plain>>(hash::FULL, 0, 0);
}

#[test]
fn a_query_removes_from_a_hash_table_that_adapts() {
    a_query_that_removes::<HashTable<Plain>>(hash::FULL, 2, 3);
}
