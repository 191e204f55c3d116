//! Tests of bags with many objects under one key.

use crate::common::model::Model;
use crate::common::{TermTable, everything, objects, patiently, soon};
use ats::terms::{LookupResult, TableType, TermHost, Workspace};
use ats_term::Term;
use ats_term::term::Bits;
use proptest::collection::vec;
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BAGS: [TableType; 4] = [
    TableType::Bag,
    TableType::DuplicateBag,
    TableType::OrderedBag,
    TableType::OrderedDuplicateBag,
];

/// Number of objects that makes a large bag, even of small objects.
const MANY: i64 = 400;

fn insert(table: &TermTable, object: &Term) {
    patiently(|| table.insert(object, &mut Workspace::new()));
}

fn insert_many(table: &TermTable, objects: &[Term]) {
    patiently(|| table.insert_many(objects.iter(), &mut Workspace::new()));
}

fn delete_object(table: &TermTable, object: &Term) {
    patiently(|| table.delete_object(object, &mut Workspace::new()));
}

fn with_found<R>(
    table: &TermTable,
    key: i64,
    look: impl FnOnce(Option<LookupResult<'_, TermHost>>) -> R,
) -> R {
    let guard = ats::terms::pin();
    look(
        table
            .lookup(&Term::from(key), &mut Workspace::new(), &guard)
            .expect("memory does not fail"),
    )
}

fn is_large(table: &TermTable, key: i64) -> bool {
    with_found(table, key, |found| {
        found.is_some_and(|found| found.is_large())
    })
}

/// Returns distinct terms: integers, floats that are `==` to some of them, and tuples with a text.
fn near(number: i64) -> Term {
    match number % 5 {
        0 => Term::try_from((number / 5) as f64).expect("finite"),
        1 => Term::try_from(-((number / 5) as f64)).expect("finite"),
        2 => Term::from((number, "a text that is not short enough for one word")),
        _ => Term::from(number),
    }
}

fn object(key: i64, number: i64) -> Term {
    Term::from((key, near(number)))
}

#[derive(Clone, Debug)]
enum Op {
    /// Inserts objects with these numbers, one by one.
    Insert(i64, std::ops::Range<i64>),
    /// Inserts objects with these numbers under two keys, as one list.
    InsertMany([i64; 2], std::ops::Range<i64>),
    InsertManyNew([i64; 2], std::ops::Range<i64>),
    DeleteObjects(i64, std::ops::Range<i64>),
    /// Deletes present objects, from a position on.
    DeletePresent(i64, usize, usize),
    Take(i64),
    Clear,
    Fix(bool),
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..3i64;
    let keys = || (0..2i64, 1..3i64).prop_map(|(a, b)| [a, b.max(a + 1)]);
    let few = || (0..500i64, 1..20i64).prop_map(|(from, count)| from..from + count);
    let many = || (0..500i64, 50..300i64).prop_map(|(from, count)| from..from + count);
    prop_oneof![
        6 => (key(), few()).prop_map(|(key, numbers)| Op::Insert(key, numbers)),
        3 => (key(), many()).prop_map(|(key, numbers)| Op::Insert(key, numbers)),
        2 => (keys(), few()).prop_map(|(keys, numbers)| Op::InsertMany(keys, numbers)),
        2 => (keys(), many()).prop_map(|(keys, numbers)| Op::InsertMany(keys, numbers)),
        1 => (keys(), many()).prop_map(|(keys, numbers)| Op::InsertManyNew(keys, numbers)),
        3 => (key(), many()).prop_map(|(key, numbers)| Op::DeleteObjects(key, numbers)),
        4 => (key(), any::<usize>(), 0..300usize)
            .prop_map(|(key, from, count)| Op::DeletePresent(key, from, count)),
        1 => key().prop_map(Op::Take),
        1 => Just(Op::Clear),
        1 => any::<bool>().prop_map(Op::Fix),
    ]
}

fn list_objects(keys: &[i64], numbers: &std::ops::Range<i64>) -> Vec<Term> {
    let of_key = |key: &i64| numbers.clone().map(|number| object(*key, number)).collect();
    let all: Vec<Vec<Term>> = keys.iter().map(of_key).collect();
    // The kinds of operations are mixed, as in a program.
    let mixed = (0..all[0].len()).flat_map(|at| all.iter().map(move |of_key| of_key[at].clone()));
    mixed.collect()
}

fn apply(table: &TermTable, model: &mut Model, op: &Op) {
    let mut work = Workspace::new();
    match op {
        Op::Insert(key, numbers) => {
            for object in list_objects(&[*key], numbers) {
                assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
                assert_eq!(model.insert(&[object], false), Ok(true));
            }
        }
        Op::InsertMany(keys, numbers) => {
            let list = list_objects(keys, numbers);
            assert_eq!(
                table.insert_many(list.iter(), &mut Workspace::new()),
                Ok(())
            );
            assert_eq!(model.insert(&list, false), Ok(true));
        }
        Op::InsertManyNew(keys, numbers) => {
            let list = list_objects(keys, numbers);
            let done = table.insert_many_new(list.iter(), &mut Workspace::new());
            assert_eq!(done, model.insert(&list, true));
        }
        Op::DeleteObjects(key, numbers) => {
            for object in list_objects(&[*key], numbers) {
                delete_object(table, &object);
                assert_eq!(model.delete_object(&object), Ok(()));
            }
        }
        Op::DeletePresent(key, from, count) => {
            let present = model.lookup(&Term::from(*key));
            let from = from % present.len().max(1);
            for object in present.into_iter().skip(from).take(*count) {
                delete_object(table, &object);
                assert_eq!(model.delete_object(&object), Ok(()));
            }
        }
        Op::Take(key) => {
            let (key, guard) = (Term::from(*key), ats::terms::pin());
            let taken = table.take(&key, &mut work, &guard).expect("nobody else");
            let taken = taken.map_or(Vec::new(), |taken| taken.to_terms());
            assert_eq!(taken, model.take(&key));
        }
        Op::Clear => {
            table.clear().expect("memory does not fail");
            model.clear();
        }
        Op::Fix(true) => {
            table.fix();
            model.fix();
        }
        Op::Fix(false) => {
            table.unfix();
            model.unfix();
        }
    }
}

fn compare(table: &TermTable, model: &Model) {
    assert_eq!(table.len().unwrap(), model.objects.len());
    for key in 0..3 {
        let expected = model.lookup(&Term::from(key));
        assert_eq!(objects(table, &Term::from(key)), expected);
        with_found(table, key, |found| {
            assert_eq!(found.is_some(), !expected.is_empty());
            let Some(found) = found else { return };
            assert_eq!(found.count(), expected.len());
            let mut room = ats::terms::UnpackBuffer::new();
            assert_eq!(found.only(&mut room).is_some(), expected.len() == 1);
            let first = found.first(&mut room);
            assert_eq!(first.arity(), 2);
        });
    }
    assert_eq!(everything(table).len(), model.objects.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn large_bags_behave_as_lists_of_objects(ops in vec(op(), 1..25), compressed: bool) {
        for kind in BAGS {
            let table = TermTable::new(kind, 1).compressed(compressed);
            let empty = table.bytes().unwrap();
            let mut model = Model::new(kind, 0);
            for op in &ops {
                apply(&table, &mut model, op);
                compare(&table, &model);
            }
            // The memory must be that of an empty table after all fixations have ended and all keys
            // were deleted.
            for _ in &ops {
                table.unfix();
            }
            for key in 0..3 {
                patiently(|| table.delete(&Term::from(key), &mut Workspace::new()));
            }
            while !table.tidy() {}
            prop_assert_eq!(table.len().unwrap(), 0);
            prop_assert_eq!(table.bytes().unwrap(), empty);
        }
    }
}

/// A bag becomes large only when its key has many objects, and stays large until the last one is
/// removed.
#[test]
fn a_bag_is_large_from_many_objects_to_none() {
    for kind in BAGS {
        let table = TermTable::new(kind, 1);
        for number in 0..4 {
            insert(&table, &Term::from((1, number)));
            assert!(!is_large(&table, 1));
        }
        for number in 4..MANY {
            insert(&table, &Term::from((1, number)));
        }
        assert!(is_large(&table, 1) && table.bytes().unwrap() > MANY as usize * 16);
        for number in 1..MANY {
            delete_object(&table, &Term::from((1, number)));
        }
        assert!(is_large(&table, 1));
        assert_eq!(objects(&table, &Term::from(1)), [Term::from((1, 0))]);
        delete_object(&table, &Term::from((1, 0)));
        assert!(table.is_empty().unwrap());
        insert(&table, &Term::from((1, 0)));
        assert!(!is_large(&table, 1));
    }
}

/// `delete_object` removes all equal objects of a `duplicate_bag`, and only one of nearly equal
/// objects.
#[test]
fn equal_objects_are_deleted_together() {
    let table = TermTable::new(TableType::DuplicateBag, 1);
    let float = |value: f64| Term::try_from(value).expect("finite");
    for number in 0..MANY {
        insert(&table, &Term::from((1, 7)));
        insert(&table, &Term::from((1, float(7.0))));
        insert(
            &table,
            &Term::from((1, Term::from((float(0.0), number % 2)))),
        );
    }
    delete_object(&table, &Term::from((1, 7)));
    assert_eq!(table.len().unwrap(), 2 * MANY as usize);
    delete_object(&table, &Term::from((1, Term::from((float(0.0), 1)))));
    assert_eq!(table.len().unwrap(), 3 * MANY as usize / 2);
    delete_object(&table, &Term::from((1, Term::from((float(-0.0), 0)))));
    assert_eq!(
        table.len().unwrap(),
        3 * MANY as usize / 2,
        "these zeros differ"
    );
    assert!(!objects(&table, &Term::from(1)).contains(&Term::from((1, 7))));
}

#[test]
fn very_many_are_not_deleted_in_a_hurry() {
    let table = TermTable::new(TableType::DuplicateBag, 1);
    let object = Term::from((1, "once more"));
    insert_many(&table, &vec![object.clone(); 5_000]);
    insert(&table, &Term::from((1, "other")));
    let mut work = Workspace::new();
    assert_eq!(
        table.delete_object_if_few(&object, 4_999, &mut work),
        Ok(false)
    );
    assert_eq!(table.len().unwrap(), 5_001);
    assert_eq!(
        table.delete_object_if_few(&object, 5_000, &mut work),
        Ok(true)
    );
    assert_eq!(objects(&table, &Term::from(1)), [Term::from((1, "other"))]);
}

/// A walk that continues at its position visits each object that stays exactly once, while others
/// are inserted and deleted.
#[test]
fn a_walk_within_a_key_goes_on_by_position() {
    for kind in BAGS {
        let table = TermTable::new(kind, 1);
        for number in 0..2_000 {
            insert(&table, &Term::from((1, number)));
        }
        let (mut met, mut from, mut round) = (Vec::new(), Some(0), 0);
        while let Some(position) = from.take() {
            with_found(&table, 1, |found| {
                let mut left = 37;
                let _part = found.expect("the key stays").each_from(
                    position,
                    &mut ats::terms::UnpackBuffer::new(),
                    |at, object| {
                        if left == 0 {
                            from = Some(at);
                            return ControlFlow::Break(());
                        }
                        left -= 1;
                        met.push(object.element(1).as_small().expect("a number"));
                        ControlFlow::Continue(())
                    },
                );
            });
            // Objects with every third number are deleted. New objects come behind the walk, and
            // half of them are deleted again.
            let gone = (round * 1_111 % 2_000) / 3 * 3;
            delete_object(&table, &Term::from((1, gone)));
            if round < 60 {
                insert(&table, &Term::from((1, 10_000 + round)));
                insert(&table, &Term::from((1, 20_000 + round)));
                delete_object(&table, &Term::from((1, 20_000 + round)));
            }
            round += 1;
        }
        assert!(met.is_sorted(), "in the order of insertion");
        assert!(met.windows(2).all(|pair| pair[0] != pair[1]), "once");
        let stay = (0..2_000).filter(|number| number % 3 != 0);
        let met_of_those = met
            .iter()
            .copied()
            .filter(|number| number % 3 != 0 && *number < 2_000);
        assert!(met_of_those.eq(stay));
        let new: Vec<i64> = met
            .iter()
            .copied()
            .filter(|number| *number >= 2_000)
            .collect();
        assert!(new.len() >= 40 && new.iter().copied().eq((10_000..).take(new.len())));
    }
}

#[test]
fn readers_see_whole_versions() {
    const WINDOW: i64 = 3_000;
    let time = Duration::from_millis(400);
    for kind in BAGS {
        let table = TermTable::new(kind, 1);
        let done = AtomicBool::new(false);
        let all: Vec<Term> = (0..WINDOW).map(|number| Term::from((1, number))).collect();
        insert_many(&table, &all);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let numbers: Vec<i64> = with_found(&table, 1, |found| {
                            let mut numbers = Vec::new();
                            let found = found.expect("the key stays");
                            let _all = found.each_from(
                                0,
                                &mut ats::terms::UnpackBuffer::new(),
                                |_, object| {
                                    numbers.push(object.element(1).as_small().expect("a number"));
                                    ControlFlow::Continue(())
                                },
                            );
                            numbers
                        });
                        let last = numbers[0] + numbers.len() as i64;
                        assert!((WINDOW..=WINDOW + 10).contains(&(numbers.len() as i64)));
                        assert!(numbers.iter().copied().eq(numbers[0]..last));
                    }
                });
            }
            let start = Instant::now();
            let mut next = WINDOW;
            while start.elapsed() < time {
                // Objects are inserted one by one, or ten as one list.
                if next % 20 == 0 {
                    let ten: Vec<Term> = (next..next + 10)
                        .map(|number| Term::from((1, number)))
                        .collect();
                    insert_many(&table, &ten);
                    next += 10;
                } else {
                    insert(&table, &Term::from((1, next)));
                    next += 1;
                }
                while table.len().unwrap() as i64 > WINDOW {
                    let oldest = next - table.len().unwrap() as i64;
                    delete_object(&table, &Term::from((1, oldest)));
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(table.len().unwrap() as i64, WINDOW);
    }
}

/// Inserts lists over two contended keys: a reader that has seen a list under one key must see it
/// under the other.
#[test]
fn lists_over_large_bags_are_whole() {
    let time = Duration::from_millis(400);
    let table = TermTable::new(TableType::Bag, 1);
    for key in 1..3 {
        let all: Vec<Term> = (0..MANY).map(|number| Term::from((key, -number))).collect();
        insert_many(&table, &all);
    }
    let done = AtomicBool::new(false);
    let newest = |key, writer| {
        with_found(&table, key, |found| {
            let (mut newest, mut count) = (0, 0);
            let _all = found.expect("the key stays").each_from(
                0,
                &mut ats::terms::UnpackBuffer::new(),
                |_, object| {
                    let number = object.element(1).as_small().expect("a number");
                    if number > 0 && number % 3 == writer {
                        assert!(number > newest, "in their order");
                        (newest, count) = (number, count + 1);
                    }
                    ControlFlow::Continue(())
                },
            );
            (newest, count)
        })
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for writer in 0..3 {
                    let second = newest(2, writer);
                    assert!(newest(1, writer) >= second);
                }
            }
        });
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let table = &table;
                scope.spawn(move || {
                    let start = Instant::now();
                    let mut rounds = 0;
                    while start.elapsed() < time && rounds < 2_000 {
                        rounds += 1;
                        let number = 3 * rounds + writer;
                        let list = [1, 2, 2, 1].map(|key| Term::from((key, number)));
                        insert_many(table, &list);
                    }
                    rounds
                })
            })
            .collect();
        let rounds = writers
            .into_iter()
            .map(|writer| writer.join().expect("writer"));
        let rounds: Vec<i64> = rounds.collect();
        done.store(true, Ordering::Relaxed);
        for key in 1..3 {
            for (writer, rounds) in (0..3).zip(&rounds) {
                assert_eq!(newest(key, writer), (3 * rounds + writer, *rounds));
            }
        }
    });
    // Entries left by batches that were undone must not affect the result.
    let all = objects(&table, &Term::from(1));
    for object in &all {
        delete_object(&table, object);
    }
    assert_eq!(objects(&table, &Term::from(1)), []);
}

fn shared_binary(byte: u8) -> (Arc<[u8]>, Term) {
    let bytes: Arc<[u8]> = vec![byte; 4000].into();
    let term = Term::Bits(Bits::from_shared(Arc::clone(&bytes)));
    (bytes, term)
}

#[test]
fn memory_of_removed_objects_is_freed() {
    let ways: [fn(&TermTable, &[Term]); 5] = [
        |table, all| {
            for object in all {
                insert(table, object);
            }
            all.iter()
                .rev()
                .for_each(|object| delete_object(table, object));
        },
        |table, all| {
            insert_many(table, &all[..10]);
            insert_many(table, all);
            for object in all {
                insert(table, object);
            }
            patiently(|| table.delete(&Term::from(1), &mut Workspace::new()));
        },
        |table, all| {
            for object in all {
                insert(table, object);
            }
            let news = [&[Term::from((0, all[0].clone()))][..], &all[..300]].concat();
            let done = patiently(|| table.insert_many_new(news.iter(), &mut Workspace::new()));
            assert!(!done);
            table.clear().expect("memory does not fail");
        },
        |table, all| {
            table.fix();
            insert_many(table, all);
            let guard = ats::terms::pin();
            let taken = table.take(&Term::from(1), &mut Workspace::new(), &guard);
            assert!(taken.is_ok_and(|taken| taken.is_some()));
            drop(guard);
            insert_many(table, &all[..20]);
            while !table.unfix() {}
            while !table.tidy() {}
            patiently(|| table.delete(&Term::from(1), &mut Workspace::new()));
        },
        // The objects are dropped with the table.
        |table, all| insert_many(table, all),
    ];
    for kind in BAGS {
        for (number, way) in ways.iter().enumerate() {
            let (bytes, term) = shared_binary(7);
            let table = TermTable::new(kind, 1);
            let all: Vec<Term> = (0..3_000)
                .map(|n| Term::from((1, term.clone(), n)))
                .collect();
            way(&table, &all);
            drop((all, term));
            if number < 4 {
                assert!(soon(|| Arc::strong_count(&bytes) == 1), "{kind:?} {number}");
                assert!(table.is_empty().unwrap());
            }
            drop(table);
            let given_back = soon(|| Arc::strong_count(&bytes) == 1);
            let owners = Arc::strong_count(&bytes);
            assert!(given_back, "{owners} owners, {kind:?}, way {number}");
        }
    }
}

/// Returns the time for inserting so many objects under one key, and deleting each of them in
/// another order.
fn time_for(kind: TableType, count: i64) -> Duration {
    let table = TermTable::new(kind, 1);
    let mut work = Workspace::new();
    let all: Vec<Term> = (0..count).map(|number| Term::from((1, number))).collect();
    let start = Instant::now();
    for object in &all {
        assert_eq!(table.insert(object, &mut work), Ok(()));
    }
    for number in 0..count {
        // The factor is a prime that does not divide the number of objects, so that each object
        // comes once.
        let object = &all[(number * 7_919 % count) as usize];
        assert_eq!(table.delete_object(object, &mut work), Ok(()));
    }
    let time = start.elapsed();
    assert!(table.is_empty().unwrap());
    time
}

/// Four times as many objects must take about four times as long, and not sixteen times. Other
/// programs disturb some measurements, but not all.
#[test]
fn a_change_does_not_cost_a_scan() {
    for kind in BAGS {
        let is_linear = || time_for(kind, 32_000) < 9 * time_for(kind, 8_000);
        assert!((0..10).any(|_| is_linear()), "{kind:?}");
    }
}
