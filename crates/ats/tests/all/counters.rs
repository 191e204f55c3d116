//! Tests of counters and other elements that change in place, while other threads read, replace and
//! remove their objects.

use crate::checker::{Clock, Event, linearizable};
use crate::common::{TermTable, everything, histories, objects, patiently};
use ats::terms::{CounterOp, Error, Integer, TableType, Workspace};
use ats_term::Term;
use ats_term::term::Tuple;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

const KINDS: [TableType; 2] = [TableType::Set, TableType::OrderedSet];

fn add(position: usize, increment: i64) -> CounterOp {
    CounterOp {
        position,
        increment: increment.into(),
        wrap: None,
    }
}

fn numbers(object: &Term) -> [i64; 2] {
    let parts = object.as_tuple().expect("an object is a tuple");
    [&parts[1], &parts[2]].map(|part| part.as_int().expect("a counter is an integer"))
}

/// Changes one counter of the object of a key, with the default `{Key, 0, 0}`.
fn count(table: &TermTable, key: &Term, op: CounterOp) -> i64 {
    let default = Term::from((key.clone(), 0, 0));
    let mut work = Workspace::new();
    let value = patiently(|| table.update_one_counter(key, &op, Some(&default), &mut work));
    value.as_small().expect("a small number")
}

/// Changes both counters of the object of a key, with the default `{Key, 0, 0}`.
fn count_both(table: &TermTable, key: &Term, by: [i64; 2]) -> [i64; 2] {
    let default = Term::from((key.clone(), 0, 0));
    let mut work = Workspace::new();
    let ops = [add(2, by[0]), add(3, by[1])];
    let values = patiently(|| table.update_counter(key, &ops, Some(&default), &mut work));
    [0, 1].map(|at| values[at].as_small().expect("a small number"))
}

fn take(table: &TermTable, key: &Term) -> Vec<Term> {
    let guard = ats::terms::pin();
    let taken = patiently(|| table.take(key, &mut Workspace::new(), &guard));
    taken.map_or(Vec::new(), |taken| taken.to_terms())
}

#[test]
fn a_counter_has_no_bounds() {
    const LARGEST: i64 = (1 << 59) - 1;
    for (kind, compressed) in KINDS
        .into_iter()
        .flat_map(|kind| [(kind, false), (kind, true)])
    {
        let table = TermTable::new(kind, 1).compressed(compressed);
        let mut work = Workspace::new();
        let (key, object) = (Term::from(1), Term::from((1, LARGEST - 1, 7)));
        assert_eq!(table.insert(&object, &mut work), Ok(()));
        for (increment, value) in [
            (0, LARGEST - 1),
            (1, LARGEST),
            // The value leaves the range of counters that change in place, and comes back.
            (1, LARGEST + 1),
            (-1, LARGEST),
            (i64::MIN, LARGEST + i64::MIN),
            (i64::MAX, LARGEST - 1),
            (1, LARGEST),
            (-2, LARGEST - 2),
        ] {
            let changed = table.update_one_counter(&key, &add(2, increment), None, &mut work);
            assert_eq!(changed, Ok(value.into()), "{kind:?} {increment}");
            assert_eq!(objects(&table, &key), [Term::from((1, value, 7))]);
        }
        let huge = table.update_one_counter(&key, &add(2, i64::MAX), None, &mut work);
        assert_eq!(huge.as_ref().map(|value| value.as_small()), Ok(None));
        let back = table.update_one_counter(&key, &add(2, -i64::MAX), None, &mut work);
        assert_eq!(back, Ok((LARGEST - 2).into()));
    }
}

#[test]
fn limits_hold_in_place() {
    for kind in KINDS {
        let table = TermTable::new(kind, 1);
        let mut work = Workspace::new();
        let (key, object) = (Term::from(1), Term::from((1, 0, 0)));
        assert_eq!(table.insert(&object, &mut work), Ok(()));
        let op = |increment: i64, limit: i64, reset: i64| CounterOp {
            position: 2,
            increment: increment.into(),
            wrap: Some((limit.into(), reset.into())),
        };
        let steps = [
            (op(2, 5, 0), 2),
            (op(2, 5, 0), 4),
            (op(2, 5, 1), 1),
            (op(-3, -2, 9), -2),
            (op(-1, -2, 9), 9),
            (op(0, 5, 3), 3),
            (op(0, -5, 4), 4),
            // The reset value is too large to be changed in place.
            (op(1, 0, i64::MAX), i64::MAX),
            (op(-1, i64::MAX, 6), 6),
        ];
        for (op, value) in steps {
            let changed = table.update_one_counter(&key, &op, None, &mut work);
            assert_eq!(changed, Ok(value.into()), "{kind:?} {op:?}");
        }
    }
}

/// Every change is in a removed object or in the remaining object.
#[test]
fn no_change_is_lost() {
    for kind in KINDS {
        let table = &TermTable::new(kind, 1);
        let key = &Term::from(1);
        let (counted, taken) = (
            &[const { AtomicI64::new(0) }; 2],
            &[const { AtomicI64::new(0) }; 2],
        );
        let collect = |object: &Term| {
            for (sum, number) in taken.iter().zip(numbers(object)) {
                sum.fetch_add(number, Ordering::Relaxed);
            }
        };
        let end = Instant::now() + Duration::from_millis(500);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    let mut round = thread;
                    while Instant::now() < end {
                        // The same counter is changed for a while, so that it changes in place.
                        let at = usize::from(round % 50 == 0);
                        round += 1;
                        count(table, key, add(2 + at, 1));
                        counted[at].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(move || {
                let mut work = Workspace::new();
                let default = Term::from((1, 0, 0));
                for round in 0.. {
                    if Instant::now() > end {
                        break;
                    }
                    if round % 3 == 0 {
                        take(table, key).iter().for_each(collect);
                    } else if round % 3 == 1 {
                        let both = [add(2, 10), add(3, -10)];
                        patiently(|| table.update_counter(key, &both, Some(&default), &mut work));
                        counted[0].fetch_add(10, Ordering::Relaxed);
                        counted[1].fetch_add(-10, Ordering::Relaxed);
                    } else {
                        // The call fails, but stops the counter meanwhile.
                        let failed = table.update_element(key, &[(9, key)], None, &mut work);
                        assert!(matches!(
                            failed,
                            Err(Error::Position | Error::Busy) | Ok(false)
                        ));
                    }
                }
            });
        });
        take(table, key).iter().for_each(collect);
        for (counted, taken) in counted.iter().zip(taken) {
            let sums = [counted, taken].map(|sum| sum.load(Ordering::Relaxed));
            assert_eq!(sums[0], sums[1], "{kind:?}");
        }
    }
}

/// Threads change two elements together, by all calls that can, so that their sum stays 0: lookups,
/// elements, scans, snapshots and the objects that are taken never show another sum.
#[test]
fn several_elements_change_at_one_moment() {
    for kind in KINDS {
        let table = &TermTable::new(kind, 1);
        let key = &Term::from(1);
        let end = Instant::now() + Duration::from_millis(700);
        let check = |object: &Term| assert_eq!(numbers(object).iter().sum::<i64>(), 0);
        let seen = &AtomicI64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    let mut work = Workspace::new();
                    for round in 0.. {
                        if Instant::now() > end {
                            break;
                        }
                        let new = [round, -round].map(Term::from);
                        match (thread, round % 64) {
                            (0, 0) => take(table, key).iter().for_each(check),
                            (0, _) => {
                                let object = Term::from((1, round, -round));
                                patiently(|| table.insert(&object, &mut work));
                            }
                            (1, _) => {
                                count_both(table, key, [1, -1]);
                            }
                            _ => {
                                let values = [(2, &new[0]), (3, &new[1])];
                                patiently(|| table.update_element(key, &values, None, &mut work));
                            }
                        }
                    }
                });
            }
            scope.spawn(move || {
                while Instant::now() < end {
                    for object in objects(table, key) {
                        check(&object);
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                    everything(table).iter().for_each(check);
                }
            });
            scope.spawn(move || {
                for round in 0.. {
                    if Instant::now() > end {
                        break;
                    }
                    // Elements change by new records now and then, and in place most of the time.
                    std::thread::sleep(Duration::from_micros(20 << (round % 10)));
                    let snapshot = patiently(|| table.snapshot());
                    let before = objects(&snapshot, key);
                    before.iter().for_each(check);
                    std::thread::sleep(Duration::from_millis(1));
                    assert_eq!(objects(&snapshot, key), before);
                }
            });
        });
        assert!(seen.load(Ordering::Relaxed) > 0);
    }
}

/// Objects that differ in the words of a list or a float: only elements change in place.
#[test]
fn parts_of_elements_are_no_cells() {
    for kind in KINDS {
        let table = &TermTable::new(kind, 1);
        let (key, mut work) = (Term::from(1), Workspace::new());
        for round in 0..200 {
            let list = Term::from(vec![Term::from(1), Term::from(round)]);
            let float = Term::try_from(f64::from(round)).expect("finite");
            let object = Term::from((1, if round % 40 < 20 { list } else { float }));
            assert_eq!(table.insert(&object, &mut work), Ok(()));
            assert_eq!(objects(table, &key), [object]);
            for position in 3..=6 {
                let ops = [add(position, 1), add(position, 1)];
                for ops in [&ops[..], &ops[..1]] {
                    let refused = table.update_counter(&key, ops, None, &mut work);
                    assert_eq!(refused, Err(Error::Position));
                }
                let refused = table.update_element(&key, &[(position, &key)], None, &mut work);
                assert_eq!(refused, Err(Error::Position));
            }
        }
    }
}

/// Elements of all kinds beside those that change in place, and cells that become more: objects are
/// as after the same changes one by one.
#[test]
fn cells_become_more() {
    for kind in KINDS {
        let table = &TermTable::new(kind, 1);
        let mut work = Workspace::new();
        let list = Term::from(vec![Term::from(1), Term::from(2)]);
        let mut elements = vec![Term::from(1)];
        elements.extend((2..=20).map(|at| {
            if at == 5 || at == 10 {
                list.clone()
            } else {
                Term::from(at)
            }
        }));
        let object = Term::Tuple(Tuple::new(elements.clone()));
        assert_eq!(table.insert(&object, &mut work), Ok(()));
        let key = Term::from(1);
        // Positions of immediate elements, close together and far apart.
        let pairs = [
            [3, 2],
            [4, 6],
            [3, 4],
            [4, 2],
            [2, 3],
            [9, 8],
            [8, 11],
            [19, 18],
            [3, 4],
            [19, 3],
            [4, 3],
        ];
        for (round, positions) in pairs.into_iter().enumerate() {
            let new = Term::from(1000 + round as i64);
            let values = positions.map(|position| (position, &new));
            let used = if round % 2 == 0 {
                &values[..1]
            } else {
                &values[..]
            };
            for (position, value) in used {
                elements[position - 1] = (*value).clone();
            }
            assert_eq!(table.update_element(&key, used, None, &mut work), Ok(true));
            assert_eq!(
                objects(table, &key),
                [Term::Tuple(Tuple::new(elements.clone()))]
            );
            // A counter that is not an integer, or out of range, changes nothing.
            let none = [add(3, 1), add(5, 1)];
            assert_eq!(
                table.update_counter(&key, &none, None, &mut work),
                Err(Error::NotAnInteger)
            );
            let wide = [add(3, 1), add(4, i64::MAX)];
            let sums = table.update_counter(&key, &wide, None, &mut work);
            let before = [2, 3].map(|index: usize| elements[index].as_int().expect("an integer"));
            let expected = [
                Integer::from(before[0] + 1),
                Integer::from(before[1])
                    .checked_add(&Integer::from(i64::MAX))
                    .expect("small enough"),
            ];
            assert_eq!(sums, Ok(expected.to_vec()));
            let back = [2, 3].map(|index: usize| (index + 1, &elements[index]));
            assert_eq!(table.update_element(&key, &back, None, &mut work), Ok(true));
            assert_eq!(
                objects(table, &key),
                [Term::Tuple(Tuple::new(elements.clone()))]
            );
        }
        // A list between cells becomes a number, by itself and with a cell, and a list again.
        for used in [vec![5], vec![4, 5], vec![6, 5, 4]] {
            for new in [Term::from(7), list.clone()] {
                for position in [4, 6] {
                    elements[position - 1] = Term::from(position as i64);
                }
                let cells = [4, 6].map(|position| (position, &elements[position - 1]));
                assert_eq!(
                    table.update_element(&key, &cells, None, &mut work),
                    Ok(true)
                );
                let values: Vec<_> = used.iter().map(|position| (*position, &new)).collect();
                assert_eq!(
                    table.update_element(&key, &values, None, &mut work),
                    Ok(true)
                );
                for position in &used {
                    elements[position - 1] = new.clone();
                }
                assert_eq!(
                    objects(table, &key),
                    [Term::Tuple(Tuple::new(elements.clone()))]
                );
            }
        }
    }
}

const KEYS: usize = 2;
const ROUNDS: u64 = 1000;

/// The object of each key.
type State = [Option<[i64; 2]>; KEYS];

#[derive(Clone, Debug)]
enum What {
    /// Key, counter, increment, new value.
    Count(usize, usize, i64, i64),
    Insert(usize, [i64; 2]),
    /// Inserts the same numbers under all keys.
    InsertAll([i64; 2]),
    Lookup(usize, Option<[i64; 2]>),
    Take(usize, Option<[i64; 2]>),
    DeleteObject(usize, [i64; 2]),
    /// Key, counter, value, and whether the key had an object.
    Set(usize, usize, i64, bool),
    /// Key, and the new values of both counters, each of which was incremented by one.
    CountBoth(usize, [i64; 2]),
    /// Key, both values, and whether the key had an object.
    SetBoth(usize, [i64; 2], bool),
}

fn apply(state: &State, what: &What) -> Option<State> {
    let mut after = *state;
    let mut possible = true;
    match *what {
        What::Count(key, at, increment, value) => {
            let object = after[key].get_or_insert_default();
            object[at] += increment;
            possible = object[at] == value;
        }
        What::Insert(key, object) => after[key] = Some(object),
        What::InsertAll(object) => after = [Some(object); KEYS],
        What::Lookup(key, found) => possible = state[key] == found,
        What::Take(key, found) => possible = after[key].take() == found,
        What::DeleteObject(key, object) => {
            after[key].take_if(|found| *found == object);
        }
        What::Set(key, at, value, found) => {
            possible = found == after[key].is_some();
            if let Some(object) = &mut after[key] {
                object[at] = value;
            }
        }
        What::CountBoth(key, values) => {
            let object = after[key].get_or_insert_default();
            *object = object.map(|number| number + 1);
            possible = *object == values;
        }
        What::SetBoth(key, values, found) => {
            possible = found == after[key].is_some();
            after[key] = after[key].map(|_| values);
        }
    }
    possible.then_some(after)
}

/// Makes and records the call that a random number selects.
fn call(table: &TermTable, clock: &Clock, choice: u64, value: i64) -> Event<What> {
    let index = (choice / 16) as usize % KEYS;
    let at = (choice / 64) as usize % 2;
    let key = &Term::from(index);
    let few = value % 3;
    // Often it differs in one element from the object that is there, or in both.
    let pair = [[few, 0], [0, few], [few, few]][(choice / 128) as usize % 3];
    let object = Term::from((index, pair[0], pair[1]));
    let found = |terms: Vec<Term>| terms.first().map(numbers);
    let mut work = Workspace::new();
    match choice % 16 {
        0 | 1 if at == 1 => clock.record(
            || count_both(table, key, [1, 1]),
            |values| What::CountBoth(index, values),
        ),
        2 | 3 if at == 1 => {
            let new = [few, value].map(Term::from);
            let values = [(2, &new[0]), (3, &new[1])];
            clock.record(
                || patiently(|| table.update_element(key, &values, None, &mut work)),
                |found| What::SetBoth(index, [few, value], found),
            )
        }
        0..=3 => clock.record(
            || count(table, key, add(2 + at, 1)),
            |value| What::Count(index, at, 1, value),
        ),
        4..=6 => clock.record(
            || patiently(|| table.insert(&object, &mut work)),
            |()| What::Insert(index, pair),
        ),
        7 => {
            let all: Vec<Term> = (0..KEYS).map(|key| Term::from((key, few, few))).collect();
            clock.record(
                || patiently(|| table.insert_many(all.iter(), &mut work)),
                |()| What::InsertAll([few, few]),
            )
        }
        8..=11 => clock.record(
            || objects(table, key),
            |terms| What::Lookup(index, found(terms)),
        ),
        12 | 13 => clock.record(|| take(table, key), |terms| What::Take(index, found(terms))),
        14 => clock.record(
            || patiently(|| table.delete_object(&object, &mut work)),
            |()| What::DeleteObject(index, pair),
        ),
        _ => {
            let new = Term::from(value);
            clock.record(
                || patiently(|| table.update_element(key, &[(2 + at, &new)], None, &mut work)),
                |found| What::Set(index, at, value, found),
            )
        }
    }
}

fn history(kind: TableType, round: u64) -> (State, Vec<Event<What>>) {
    let table = &TermTable::new(kind, 1).compressed(round % 4 >= 2);
    // One or both counters already change in place in two thirds of the rounds.
    let state = match round % 3 {
        0 => State::default(),
        1 => {
            for key in 0..KEYS {
                for _ in 0..2 {
                    count(table, &Term::from(key), add(2, 1));
                }
            }
            [Some([2, 0]); KEYS]
        }
        _ => {
            for key in 0..KEYS {
                count_both(table, &Term::from(key), [1, 1]);
            }
            [Some([1, 1]); KEYS]
        }
    };
    let events = histories::history(round, |clock, choice, value| {
        call(table, clock, choice, value)
    });
    (state, events)
}

#[test]
fn changes_in_place_are_linearizable() {
    for kind in KINDS {
        for round in 0..ROUNDS {
            let (state, events) = history(kind, round);
            let explained = linearizable(state, &events, apply);
            assert!(explained, "{kind:?} {round}: no order explains {events:#?}");
        }
    }
}
