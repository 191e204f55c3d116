//! Tests of tables under many threads: every reader sees an atomic operation as a whole.

use crate::common::{ALL_TYPES, TermTable, everything, objects, patiently};
use ats::terms::{CounterOp, TableType, Workspace};
use ats_term::Term;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_millis(300);

/// Runs the writers for a while, and the readers as long as they write.
fn race(writers: &[&(dyn Fn(u64) + Sync)], readers: &[&(dyn Fn() + Sync)]) {
    let done = AtomicBool::new(false);
    let done = &done;
    std::thread::scope(|scope| {
        for reader in readers {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    reader();
                }
            });
        }
        let writing: Vec<_> = writers
            .iter()
            .map(|writer| {
                scope.spawn(move || {
                    let start = Instant::now();
                    for round in 0.. {
                        writer(round);
                        if start.elapsed() > TIME {
                            break;
                        }
                    }
                })
            })
            .collect();
        let results: Vec<_> = writing.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "a writer failed");
    });
}

fn insert_many(table: &TermTable, objects: &[Term]) {
    patiently(|| table.insert_many(objects.iter(), &mut Workspace::new()));
}

/// Returns the second element of the only object of a key.
fn version(table: &TermTable, key: i64) -> Option<i64> {
    let objects = objects(table, &Term::from(key));
    assert!(objects.len() <= 1, "{objects:?}");
    objects.first()?.as_tuple()?[1].as_int()
}

#[test]
fn lists_in_sets_are_seen_whole() {
    for kind in [TableType::Set, TableType::OrderedSet] {
        let table = TermTable::new(kind, 1);
        let write = |round: u64| {
            let objects: Vec<Term> = (0..40).map(|key| Term::from((key, round))).collect();
            insert_many(&table, &objects);
        };
        // A reader that has seen a round under one key must see no older round under another.
        let read = || {
            let first = version(&table, 39);
            let second = version(&table, 0);
            assert!(second >= first, "{first:?}, then {second:?}");
        };
        // Other keys are inserted and deleted, so that the structure changes.
        let disturb = |round: u64| {
            let object = Term::from((Term::try_from(round as f64 + 0.5).expect("finite"), 1));
            patiently(|| table.insert(&object, &mut Workspace::new()));
            let key = Term::try_from((round / 2) as f64 + 0.5).expect("finite");
            patiently(|| table.delete(&key, &mut Workspace::new()));
        };
        race(&[&write, &disturb], &[&read]);
    }
}

#[test]
fn lists_in_bags_are_seen_whole() {
    for kind in ALL_TYPES.into_iter().filter(|kind| kind.is_bag()) {
        let table = TermTable::new(kind, 1);
        // Each list has three objects of one key, and one of another. Two writers insert different
        // objects.
        let add = |mine: i64| {
            let objects: Vec<Term> = [(1, mine), (2, mine), (1, mine + 1), (1, mine + 2)]
                .map(Term::from)
                .to_vec();
            insert_many(&table, &objects);
        };
        let remove = |_| {
            patiently(|| table.delete(&Term::from(1), &mut Workspace::new()));
        };
        let read = || {
            let found = objects(&table, &Term::from(1));
            for mine in [10, 20] {
                let count = |value: i64| {
                    let wanted = Term::from((1, value));
                    found.iter().filter(|object| **object == wanted).count()
                };
                let counts = [mine, mine + 1, mine + 2].map(count);
                assert_eq!(counts, [counts[0]; 3], "{found:?}");
                assert!(!kind.is_distinct_bag() || counts[0] <= 1);
            }
        };
        race(&[&|_| add(10), &|_| add(20), &remove], &[&read]);
        let all = everything(&table);
        assert_eq!(table.len().unwrap(), all.len());
    }
}

#[test]
fn lists_of_new_objects_have_one_winner() {
    for kind in ALL_TYPES {
        let table = TermTable::new(kind, 1);
        let claim = |round: u64, mine: i64| {
            let keys = (0..3).map(|at| 3 * (round as i64 % 1000) + at);
            let objects: Vec<Term> = keys.map(|key| Term::from((key, mine))).collect();
            patiently(|| table.insert_many_new(objects.iter(), &mut Workspace::new()));
        };
        race(&[&|round| claim(round, 1), &|round| claim(round, 2)], &[]);
        let all = everything(&table);
        assert_eq!(all.len(), table.len().unwrap());
        let owner = |key: i64| version(&table, key);
        for first in (0..3000).step_by(3) {
            assert_eq!(owner(first), owner(first + 1), "{kind:?} {first}");
            assert_eq!(owner(first), owner(first + 2), "{kind:?} {first}");
        }
    }
}

#[test]
fn counters_lose_nothing() {
    for kind in [TableType::Set, TableType::OrderedSet] {
        let table = TermTable::new(kind, 1);
        let (key, default) = (Term::from(1), Term::from((0, 0, 0)));
        let count = |position, increment: i64| CounterOp {
            position,
            increment: increment.into(),
            wrap: None,
        };
        let ops = [count(2, 1), count(3, -1)];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5000 {
                        patiently(|| {
                            let work = &mut Workspace::new();
                            table.update_counter(&key, &ops, Some(&default), work)
                        });
                    }
                });
            }
        });
        assert_eq!(objects(&table, &key), [Term::from((1, 20_000, -20_000))]);
    }
}

#[test]
fn clearing_goes_with_everything() {
    for kind in ALL_TYPES {
        let table = TermTable::new(kind, 1);
        let insert = |round: u64| {
            let object = Term::from((round as i64 % 500, 0, "text"));
            patiently(|| table.insert(&object, &mut Workspace::new()));
        };
        let insert_list = |round: u64| {
            let objects: Vec<Term> = (0..20).map(|key| Term::from((1000 + key, round))).collect();
            insert_many(&table, &objects);
        };
        let clear = |_| {
            table.clear().expect("memory does not fail");
            std::thread::yield_now();
        };
        let remove = |round: u64| {
            let (key, object) = (Term::from(round % 500), Term::from((1000, round)));
            patiently(|| {
                table
                    .take(&key, &mut Workspace::new(), &ats::terms::pin())
                    .map(|_| ())
            });
            patiently(|| table.delete_object(&object, &mut Workspace::new()));
        };
        let walk = || {
            table.fix();
            let guard = ats::terms::pin();
            let mut here = table.first(&guard).expect("memory does not fail");
            while let Some(found) = here {
                assert!(found.count() > 0);
                here = table
                    .next(found.key_bytes(), &guard)
                    .expect("the table is fixed");
            }
            drop(guard);
            table.unfix();
        };
        let read = || {
            everything(&table);
            objects(&table, &Term::from(7));
        };
        race(&[&insert, &insert_list, &clear, &remove], &[&walk, &read]);
        assert_eq!(table.len().unwrap(), everything(&table).len(), "{kind:?}");
        table.clear().expect("memory does not fail");
        assert_eq!((table.len().unwrap(), everything(&table).len()), (0, 0));
    }
}

#[test]
fn exchanged_objects_lose_no_change_of_others() {
    const KEYS: u64 = 3;
    for kind in [TableType::Set, TableType::OrderedSet] {
        let table = TermTable::new(kind, 1);
        let objects: Vec<Term> = (0..KEYS).map(|key| Term::from((key, 0))).collect();
        insert_many(&table, &objects);
        let added = AtomicU64::new(0);
        let exchange = |round: u64| {
            let key = round % KEYS;
            let Some(seen) = version(&table, i64::try_from(key).expect("small")) else {
                panic!("the object is there");
            };
            let [before, after] = [seen, seen + 1].map(|value| Term::from((key, value)));
            let mut work = Workspace::new();
            let done = patiently(|| table.exchange(Some(&before), Some(&after), &mut work));
            added.fetch_add(u64::from(done), Ordering::Relaxed);
        };
        // Counters change in place, without the lock of the key.
        let count = |round: u64| {
            let op = CounterOp {
                position: 2,
                increment: 1.into(),
                wrap: None,
            };
            let (key, mut work) = (Term::from(round % KEYS), Workspace::new());
            patiently(|| table.update_counter(&key, std::slice::from_ref(&op), None, &mut work));
            added.fetch_add(1, Ordering::Relaxed);
        };
        race(&[&exchange, &exchange, &count], &[]);
        let values = (0..KEYS).map(|key| version(&table, i64::try_from(key).expect("small")));
        let sum: i64 = values
            .map(|value| value.expect("the object is there"))
            .sum();
        assert_eq!(u64::try_from(sum), Ok(added.into_inner()));
    }
}
