//! Tests of changes of large objects, and of changes of many parts, which hold only their key: each
//! is atomic, none is lost, writers of other keys go on, and the time grows linearly with the size.

use crate::checker::{Clock, Event, linearizable};
use crate::common::{TermTable, histories, objects, patiently};
use ats::terms::{
    CounterOp, Error, Integer, Locking, Merge, MergedValue, Merging, TableType, Workspace,
};
use ats_term::term::Tuple;
use ats_term::{Atom, Term};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const SETS: [TableType; 2] = [TableType::Set, TableType::OrderedSet];

/// Number of elements that is too large for a copy under a lock.
const WIDE: usize = 1_500;

fn add(position: usize, increment: i64) -> CounterOp {
    CounterOp {
        position,
        increment: increment.into(),
        wrap: None,
    }
}

/// Returns `{Key, A, B}`, with more elements if `wide`.
fn object(key: usize, [a, b]: [i64; 2], wide: bool) -> Term {
    let mut parts = vec![Term::from(key), Term::from(a), Term::from(b)];
    parts.resize(if wide { WIDE } else { 3 }, Term::Nil);
    Term::Tuple(Tuple::new(parts))
}

fn wide_zeros(elements: usize) -> Term {
    Term::Tuple(Tuple::new(vec![Term::from(0); elements]))
}

fn numbers(object: &Term) -> [i64; 2] {
    let parts = object.as_tuple().expect("an object is a tuple");
    [&parts[1], &parts[2]].map(|part| part.as_int().expect("a number"))
}

fn insert(table: &TermTable, object: &Term) {
    assert_eq!(table.insert(object, &mut Workspace::new()), Ok(()));
}

fn count(
    table: &TermTable,
    key: &Term,
    ops: &[CounterOp],
    default: Option<&Term>,
) -> Result<Vec<Integer>, Error> {
    table.update_counter(key, ops, default, &mut Workspace::new())
}

fn set(table: &TermTable, key: &Term, values: &[(usize, &Term)]) -> Result<bool, Error> {
    table.update_element(key, values, None, &mut Workspace::new())
}

const KEYS: usize = 2;
const ROUNDS: u64 = 700;

/// The numbers of the object of each key, and whether the object is wide.
type State = [Option<([i64; 2], bool)>; KEYS];

#[derive(Clone, Debug)]
enum What {
    /// Key, counter, increment, new value.
    Count(usize, usize, i64, i64),
    /// Key, number of operations on both counters, by one and by minus one, and the last values.
    CountBoth(usize, i64, [i64; 2]),
    Insert(usize, [i64; 2], bool),
    InsertNew(usize, [i64; 2], bool, bool),
    Lookup(usize, Option<([i64; 2], bool)>),
    Take(usize, Option<([i64; 2], bool)>),
    DeleteObject(usize, [i64; 2], bool),
    /// Key, counter, value, and whether the key had an object.
    Set(usize, usize, i64, bool),
}

fn apply(state: &State, what: &What) -> Option<State> {
    let mut after = *state;
    let mut possible = true;
    match *what {
        What::Count(key, at, increment, value) => {
            let (object, _) = after[key].get_or_insert(([0; 2], true));
            object[at] += increment;
            possible = object[at] == value;
        }
        What::CountBoth(key, times, values) => {
            let (object, _) = after[key].get_or_insert(([0; 2], true));
            *object = [object[0] + times, object[1] - times];
            possible = *object == values;
        }
        What::Insert(key, object, wide) => after[key] = Some((object, wide)),
        What::InsertNew(key, object, wide, done) => {
            possible = done == state[key].is_none();
            after[key].get_or_insert((object, wide));
        }
        What::Lookup(key, found) => possible = state[key] == found,
        What::Take(key, found) => possible = after[key].take() == found,
        What::DeleteObject(key, object, wide) => {
            after[key].take_if(|found| *found == (object, wide));
        }
        What::Set(key, at, value, found) => {
            possible = found == after[key].is_some();
            if let Some((object, _)) = &mut after[key] {
                object[at] = value;
            }
        }
    }
    possible.then_some(after)
}

/// Adds one to an element by a merge, under the lock or before the lock is taken.
fn merge_one(table: &TermTable, key: usize, position: usize, locking: Locking) -> i64 {
    let sum = Atom::new("sum").expect("a short text");
    let sum = Merge::from_term(&Term::Atom(sum)).expect("the name of a merge");
    let (key, default) = (Term::from(key), object(key, [0; 2], true));
    let (one, mut work) = (Term::from(1), Workspace::new());
    patiently(|| {
        let merging = Merging {
            key: &key,
            position,
            operand: &one,
            merge: &sum,
            default: Some(&default),
            locking,
        };
        table.merge(merging, &mut work, |value| match value {
            MergedValue::Small(value) => value,
            MergedValue::Term(term) => term.as_small().expect("a small number"),
        })
    })
}

/// Makes and records the call that a random number selects.
fn call(table: &TermTable, clock: &Clock, choice: u64, value: i64) -> Event<What> {
    let index = (choice / 20) as usize % KEYS;
    let at = (choice / 64) as usize % 2;
    let wide = !(choice / 128).is_multiple_of(4);
    let key = &Term::from(index);
    let few = value % 3;
    let new = object(index, [few, few], wide);
    let found = |terms: Vec<Term>| {
        let object = terms.first()?;
        let arity = object.as_tuple().expect("a tuple").len();
        Some((numbers(object), arity == WIDE))
    };
    let default = object(index, [0; 2], true);
    let mut work = Workspace::new();
    match choice % 20 {
        0..=2 => clock.record(
            || {
                let op = add(2 + at, 1);
                let value =
                    patiently(|| table.update_one_counter(key, &op, Some(&default), &mut work));
                value.as_small().expect("a small number")
            },
            |value| What::Count(index, at, 1, value),
        ),
        3..=5 => {
            // The operations are few, or too many for a lock.
            let times = if wide { 2 } else { 100 };
            let ops: Vec<_> = (0..2 * times)
                .map(|i| add(2 + i % 2, 1 - 2 * (i as i64 % 2)))
                .collect();
            clock.record(
                || {
                    let all =
                        patiently(|| table.update_counter(key, &ops, Some(&default), &mut work));
                    assert_eq!(all.len(), ops.len());
                    let last = |back: usize| all[all.len() - back].as_small().expect("small");
                    [last(2), last(1)]
                },
                |values| What::CountBoth(index, times as i64, values),
            )
        }
        6 => clock.record(
            || merge_one(table, index, 2 + at, Locking::First),
            |value| What::Count(index, at, 1, value),
        ),
        7 => clock.record(
            || merge_one(table, index, 2 + at, Locking::AfterMerging),
            |value| What::Count(index, at, 1, value),
        ),
        8 => clock.record(
            || patiently(|| table.insert(&new, &mut work)),
            |()| What::Insert(index, [few, few], wide),
        ),
        9 => clock.record(
            || patiently(|| table.insert_new(&new, &mut work)),
            |done| What::InsertNew(index, [few, few], wide, done),
        ),
        10..=13 => clock.record(
            || objects(table, key),
            |terms| What::Lookup(index, found(terms)),
        ),
        14 | 15 => clock.record(
            || {
                let guard = ats::terms::pin();
                let taken = patiently(|| table.take(key, &mut work, &guard));
                taken.map_or(Vec::new(), |taken| taken.to_terms())
            },
            |terms| What::Take(index, found(terms)),
        ),
        16 => clock.record(
            || patiently(|| table.delete_object(&new, &mut work)),
            |()| What::DeleteObject(index, [few, few], wide),
        ),
        _ => {
            let (old, new) = (Term::from(-1), Term::from(value));
            // The last of many values for an element counts.
            let mut values = vec![(2 + at, &old); if wide { 1 } else { 100 }];
            values.push((2 + at, &new));
            clock.record(
                || patiently(|| table.update_element(key, &values, None, &mut work)),
                |found| What::Set(index, at, value, found),
            )
        }
    }
}

#[test]
fn long_changes_are_linearizable() {
    for kind in SETS {
        for round in 0..ROUNDS {
            let table = &TermTable::new(kind, 1).compressed(round % 8 >= 6);
            if round % 3 == 0 {
                table.force_adaptation(3, 3);
            }
            let mut state = State::default();
            // A counter of a wide object already changes in place in half of the rounds.
            if round.is_multiple_of(2) {
                for (key, state) in state.iter_mut().enumerate() {
                    insert(table, &object(key, [1, 0], true));
                    let counted = count(table, &Term::from(key), &[add(2, 1)], None);
                    assert_eq!(counted, Ok(vec![2.into()]));
                    *state = Some(([2, 0], true));
                }
            }
            let events = histories::history(round, |clock, choice, value| {
                call(table, clock, choice, value)
            });
            let explained = linearizable(state, &events, apply);
            assert!(explained, "{kind:?} {round}: no order explains {events:#?}");
        }
    }
}

/// A wide object contains all additions of all threads in the end, in whichever way they were made.
#[test]
fn no_long_change_is_lost() {
    const EACH: i64 = 400;
    for kind in SETS {
        let table = &TermTable::new(kind, 1);
        insert(table, &object(1, [0, 0], true));
        let key = &Term::from(1);
        thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    let many: Vec<_> = (0..100).map(|_| add(2, 1)).collect();
                    for round in 0..EACH {
                        match (round + thread) % 4 {
                            0 => drop(patiently(|| count(table, key, &[add(2, 100)], None))),
                            1 => drop(patiently(|| count(table, key, &many, None))),
                            2 => (0..100).for_each(|_| {
                                merge_one(table, 1, 2, Locking::AfterMerging);
                            }),
                            _ => {
                                // The change replaces the object, and thus a counter that changes
                                // in place.
                                let value = Term::from(round);
                                let values = [(10 + thread as usize, &value)];
                                assert!(patiently(|| set(table, key, &values)));
                                (0..100).for_each(|_| {
                                    merge_one(table, 1, 2, Locking::First);
                                });
                            }
                        }
                    }
                });
            }
        });
        let found = objects(table, key);
        let parts = found[0].as_tuple().expect("a tuple");
        assert_eq!(parts[1], Term::from(4 * EACH * 100), "{kind:?}");
        assert_eq!(parts.len(), WIDE);
        for thread in 0..4 {
            let last = (0..EACH).rev().find(|round| (round + thread) % 4 > 2);
            assert_eq!(
                parts[9 + thread as usize],
                Term::from(last.expect("one in four"))
            );
        }
    }
}

/// Long changes fail with the errors of short changes, and change nothing.
#[test]
fn a_long_change_that_fails_changes_nothing() {
    for kind in SETS {
        let table = &TermTable::new(kind, 1);
        let (key, zero) = (&Term::from(1), &Term::from(0));
        let many = |position| -> Vec<_> { (0..100).map(|_| add(position, 1)).collect() };
        assert_eq!(count(table, key, &many(2), None), Err(Error::BadKey));
        assert_eq!(set(table, key, &vec![(2, zero); 100]), Ok(false));
        assert_eq!(table.len().unwrap(), 0);
        insert(table, &object(1, [5, 6], true));
        assert_eq!(count(table, key, &many(2)[..1], None), Ok(vec![6.into()]));
        for (position, error) in [(4, Error::NotAnInteger), (WIDE + 1, Error::Position)] {
            // The operations before the failing one succeed, but must not change the table.
            let mut ops = many(3);
            ops.push(add(position, 1));
            assert_eq!(count(table, key, &ops, None), Err(error));
            assert_eq!(count(table, key, &ops[100..], None), Err(error));
        }
        assert_eq!(set(table, key, &[(WIDE + 1, zero)]), Err(Error::Position));
        let old = object(1, [5, 6], true);
        assert_eq!(table.delete_object(&old, &mut Workspace::new()), Ok(()));
        assert_eq!(objects(table, key), [object(1, [6, 6], true)]);
        // The counter that was stopped meanwhile changes in place again.
        assert_eq!(count(table, key, &many(2)[..1], None), Ok(vec![7.into()]));
        // The limit applies to the present object, and to the new value.
        let large = Term::list_with_tail((0..WIDE as i64).map(Term::from), Term::Nil);
        let small = Term::from(2);
        insert(table, &object(2, [0, 0], false));
        let mut work = Workspace::new();
        work.limit(WIDE / 2);
        for (key, value) in [(key, zero), (&small, &large)] {
            let refused = table.update_element(key, &[(3, value)], None, &mut work);
            assert_eq!(refused, Err(Error::TooLarge));
        }
        let last = object(1, [7, 6], true);
        assert_eq!(table.delete_object(&last, &mut Workspace::new()), Ok(()));
        assert_eq!(objects(table, key), []);
        assert_eq!(objects(table, &small), [object(2, [0, 0], false)]);
    }
}

/// Many operations on the same counter are applied in order, each to the result of the previous
/// one.
#[test]
fn many_operations_are_done_in_order() {
    let table = TermTable::new(TableType::Set, 1);
    let key = Term::from(0);
    insert(&table, &wide_zeros(50));
    let wraps = |position, limit: i64| CounterOp {
        wrap: Some((limit.into(), 1.into())),
        ..add(position, 3)
    };
    let position = |at: usize| 2 + at * 31 % 49;
    let ops: Vec<_> = (0..5_000)
        .map(|at| wraps(position(at), 100 + at as i64))
        .collect();
    let values = count(&table, &key, &ops, None).expect("numbers");
    let mut expected = [0; 51];
    for (at, value) in values.iter().enumerate() {
        let counter = &mut expected[position(at)];
        *counter += 3;
        if *counter > 100 + at as i64 {
            *counter = 1;
        }
        assert_eq!(value.as_small(), Some(*counter), "{at}");
    }
    let found = objects(&table, &key);
    let parts = found[0].as_tuple().expect("a tuple");
    for (at, part) in parts.iter().enumerate().skip(1) {
        assert_eq!(part.as_int(), Some(expected[at + 1]), "{at}");
    }
}

/// Eight times as many operations on as many elements must take about eight times as long, and not
/// sixty-four times.
#[test]
fn time_grows_with_the_operations() {
    let time_of = |elements: usize| {
        let table = TermTable::new(TableType::Set, 1);
        insert(&table, &wide_zeros(elements));
        let ops: Vec<_> = (2..=elements).map(|position| add(position, 1)).collect();
        move || {
            let (key, two) = (Term::from(0), Term::from(2));
            let values: Vec<_> = (2..=elements).map(|position| (position, &two)).collect();
            let begin = Instant::now();
            let counted = count(&table, &key, &ops, None);
            assert_eq!(counted.map(|values| values.len()), Ok(elements - 1));
            assert_eq!(set(&table, &key, &values), Ok(true));
            begin.elapsed()
        }
    };
    // The two take turns, because the speed of a machine changes with its other work.
    let (few, many) = (time_of(8_000), time_of(64_000));
    let times: Vec<_> = (0..5).map(|_| (few(), many())).collect();
    let few = times.iter().map(|(few, _)| *few).min().expect("a time");
    let many = times.iter().map(|(_, many)| *many).min().expect("a time");
    assert!(many < 32 * few, "{few:?}, then {many:?}");
}

/// A change of one key blocks a writer of another key with the same lock for only a part of its
/// time. The system may stop either thread, so it suffices to see that in one of many rounds.
#[test]
fn other_keys_go_on() {
    let large = |kind| {
        let table = TermTable::new(kind, 1);
        insert(&table, &wide_zeros(400_000));
        table
    };
    let zero = &Term::from(0);
    let ops: Vec<_> = (2..20_000).map(|position| add(position, 1)).collect();
    let huge = &Term::list_with_tail((0..400_000).map(Term::from), Term::Nil);
    let unwanted = {
        let mut parts = vec![Term::from(0); 399_999];
        parts.push(Term::from(1));
        Term::Tuple(Tuple::new(parts))
    };
    type Long<'a> = &'a dyn Fn(&TermTable);
    let changes: [(&str, Long<'_>); 6] = [
        ("update_counter", &|table| {
            let done = count(table, zero, &ops, None);
            assert!(done.is_ok());
        }),
        ("update_one_counter", &|table| {
            for position in 2..12 {
                let done = count(table, zero, &[add(position, 1)], None);
                assert!(done.is_ok());
            }
        }),
        ("update_element", &|table| {
            assert_eq!(set(table, zero, &[(2, huge)]), Ok(true));
        }),
        ("insert_new", &|table| {
            let mut parts = vec![Term::from(9); 400_000];
            parts.push(huge.clone());
            let done = table.insert_new(&Term::Tuple(Tuple::new(parts)), &mut Workspace::new());
            assert!(done.is_ok());
        }),
        ("delete_object", &|table| {
            for _ in 0..20 {
                let done = table.delete_object(&unwanted, &mut Workspace::new());
                assert_eq!(done, Ok(()));
            }
        }),
        ("merge", &|table| {
            for _ in 0..10 {
                merge_one(table, 0, 3, Locking::First);
                assert_eq!(set(table, zero, &[(2, zero)]), Ok(true));
            }
        }),
    ];
    for kind in SETS {
        for (name, change) in changes {
            let round = |_| waits_little(&large(kind), change);
            assert!((0..200).any(round), "{kind:?}: {name} held the lock");
        }
    }
}

/// Returns `true` if a writer of another key waited for less than a third of the time of the
/// change.
fn waits_little(table: &TermTable, change: &dyn Fn(&TermTable)) -> bool {
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (object, mut work) = (Term::from((-1, 0)), Workspace::new());
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Acquire) {
                let begin = Instant::now();
                patiently(|| table.insert(&object, &mut work));
                longest = longest.max(begin.elapsed());
                begun.store(true, Ordering::Release);
            }
            longest
        });
        while !begun.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let begin = Instant::now();
        change(table);
        let took = begin.elapsed();
        done.store(true, Ordering::Release);
        let longest = writer.join().expect("a writer");
        longest * 3 < took
    })
}
