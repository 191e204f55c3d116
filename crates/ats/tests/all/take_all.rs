//! Tests of draining tables while other threads write to them: every object is returned once.

use crate::common::{ALL_TYPES, TermTable, everything, patiently};
use ats::terms::{CounterOp, DrainedTable, Error, Table, TableType, TermHost, Workspace};
use ats_term::Term;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn await_rest(taken: &DrainedTable<TermHost>) -> &Table<TermHost> {
    loop {
        match taken.when_at_rest() {
            Some(table) => return table,
            None => thread::yield_now(),
        }
    }
}

fn take_all(table: &TermTable) -> Vec<Term> {
    everything(await_rest(&patiently(|| table.take_all())))
}

fn int(term: &Term, index: usize) -> i64 {
    let element = term.as_tuple().and_then(|object| object[index].as_int());
    element.expect("an integer")
}

const WRITERS: i64 = 3;

/// Runs writers, and drains their table until they have finished, and once more.
fn take_beside(table: &TermTable, writer: impl Fn(i64) + Sync) -> Vec<Term> {
    let running = AtomicUsize::new(WRITERS as usize);
    let mut all = Vec::new();
    thread::scope(|scope| {
        for number in 0..WRITERS {
            let (writer, running) = (&writer, &running);
            scope.spawn(move || {
                writer(number);
                running.fetch_sub(1, Ordering::Release);
            });
        }
        while running.load(Ordering::Acquire) > 0 {
            all.extend(take_all(table));
        }
    });
    all.extend(take_all(table));
    assert!(table.is_empty().unwrap());
    all
}

#[test]
fn each_object_comes_out_once() {
    const OBJECTS: i64 = 20_000;
    for kind in ALL_TYPES {
        let table = TermTable::new(kind, 1);
        table.force_adaptation(50, 50);
        let all = take_beside(&table, |writer| {
            for at in 0..OBJECTS {
                // The test inserts many objects under one key of a bag.
                let key = if kind.is_bag() {
                    at % 10
                } else {
                    at * WRITERS + writer
                };
                let object = Term::from((key, at * WRITERS + writer));
                let mut work = Workspace::new();
                patiently(|| table.insert(&object, &mut work));
            }
        });
        let mut numbers: Vec<i64> = all.iter().map(|object| int(object, 1)).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..OBJECTS * WRITERS), "{kind:?}");
    }
}

/// Counters change in place, without a lock: a change of a drained store must be in the objects
/// that are read from it.
#[test]
fn no_increment_is_lost_or_counted_twice() {
    const INCREMENTS: i64 = 200_000;
    for kind in [TableType::Set, TableType::OrderedSet] {
        let table = TermTable::new(kind, 1);
        let op = CounterOp {
            position: 2,
            increment: 1.into(),
            wrap: None,
        };
        let all = take_beside(&table, |_| {
            let zero = Term::from((0, 0));
            for at in 0..INCREMENTS {
                let key = Term::from(at % 4);
                let mut work = Workspace::new();
                patiently(|| table.update_one_counter(&key, &op, Some(&zero), &mut work));
            }
        });
        let mut sums = HashMap::new();
        for object in &all {
            *sums.entry(int(object, 0)).or_insert(0) += int(object, 1);
        }
        let each = INCREMENTS * WRITERS / 4;
        assert_eq!(sums, (0..4).map(|key| (key, each)).collect());
    }
}

/// One call returns all objects of a list that was inserted as one.
#[test]
fn lists_are_not_torn() {
    let table = TermTable::new(TableType::OrderedSet, 1);
    let running = AtomicUsize::new(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20_000 {
                let list: Vec<Term> = (0..3).map(|key| Term::from((key, round))).collect();
                let mut work = Workspace::new();
                patiently(|| table.insert_many(list.iter(), &mut work));
            }
            running.store(0, Ordering::Release);
        });
        while running.load(Ordering::Acquire) > 0 {
            let objects = take_all(&table);
            assert!(objects.is_empty() || objects.len() == 3, "{objects:?}");
            assert!(
                objects
                    .windows(2)
                    .all(|two| int(&two[0], 1) == int(&two[1], 1))
            );
        }
    });
}

#[test]
fn taking_waits_for_guards_and_can_be_given_up() {
    let table = TermTable::new(TableType::Set, 1);
    let (old, new) = (Term::from((1, 2)), Term::from((3, 4)));
    let mut work = Workspace::new();
    assert_eq!(table.insert(&old, &mut work), Ok(()));
    table.fix();
    let guard = ats::terms::pin();
    let taken = table.take_all().expect("memory does not fail");
    assert!(taken.when_at_rest().is_none(), "somebody may be in it");
    assert!(table.is_empty().unwrap());
    // The fixation stays with the table, and applies to the new objects.
    assert_eq!(table.insert(&new, &mut work), Ok(()));
    assert!(table.unfix());
    drop(table.take_all().expect("memory does not fail"));
    drop(guard);
    assert_eq!(everything(await_rest(&taken)), [old]);
    assert!(table.is_empty().unwrap());
}

/// Draining must not wait for readers of a moment, which may read for any time.
#[test]
fn taking_waits_for_no_moment() -> Result<(), Error> {
    for kind in ALL_TYPES {
        let table = TermTable::new(kind, 1);
        let mut work = Workspace::new();
        for key in 0..100 {
            table.insert(&Term::from((key, key)), &mut work)?;
        }
        let all = everything(&table);
        let (read_point, snapshot) = (table.begin()?, table.snapshot()?);
        assert!(read_point.is_some());
        let taken = table.take_all()?;
        assert_eq!(everything(await_rest(&taken)), all, "{kind:?}");
        assert_eq!(everything(&snapshot), all, "{kind:?}");
        drop(taken);
        assert_eq!(everything(&snapshot), all, "{kind:?}");
        assert!(table.is_empty()?);
    }
    Ok(())
}

/// A long list does not hold one guard throughout, so draining must wait for its end.
#[test]
fn taking_waits_for_long_lists() {
    const LONG: i64 = 2_000;
    let table = TermTable::new(TableType::Bag, 1);
    let running = AtomicUsize::new(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..200 {
                let list: Vec<Term> = (0..LONG).map(|key| Term::from((key, round))).collect();
                let mut work = Workspace::new();
                patiently(|| table.insert_many(list.iter(), &mut work));
            }
            running.store(0, Ordering::Release);
        });
        let mut objects = 0;
        let mut take_whole = || {
            let taken = take_all(&table).len();
            assert!(taken.is_multiple_of(LONG as usize), "{taken}");
            objects += taken;
        };
        while running.load(Ordering::Acquire) > 0 {
            take_whole();
        }
        take_whole();
        assert_eq!(objects, 200 * LONG as usize, "each object is taken once");
    });
}
