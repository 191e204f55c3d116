//! Short histories of three threads on a whole table, checked for linearizability. They include
//! clearing, taking all objects and taking objects from the ends.

use crate::checker::{Clock, Event, linearizable};
use crate::common::{ALL_TYPES, TermTable, everything, histories, objects, of_round, patiently};
use ats::terms::{End, TableType, Workspace};
use ats_term::Term;

const KEYS: usize = 3;
const ROUNDS: u64 = 500;

/// The values of each key, oldest first.
type State = [Vec<i64>; KEYS];

#[derive(Clone, Debug)]
enum What {
    Insert(usize, i64),
    /// Inserts one value under all keys.
    InsertAll(i64),
    /// Inserts one value under all keys if none of them was present, and whether that was so.
    InsertAllNew(i64, bool),
    Lookup(usize, Vec<i64>),
    Take(usize, Vec<i64>),
    Clear,
    TakeAll(State),
    /// Took the oldest value of a key, or if the table has an order the value at an end.
    TakeEnd(End, Option<(usize, i64)>),
    /// Found this number of objects.
    Size(usize),
}

fn add(kind: TableType, values: &mut Vec<i64>, value: i64) {
    if !kind.is_bag() {
        values.clear();
    }
    values.push(value);
}

fn apply(kind: TableType, state: &State, what: &What) -> Option<State> {
    let mut after = state.clone();
    let mut possible = true;
    match what {
        What::Insert(key, value) => add(kind, &mut after[*key], *value),
        What::InsertAll(value) => after.iter_mut().for_each(|all| add(kind, all, *value)),
        What::InsertAllNew(value, done) => {
            possible = *done == state.iter().all(Vec::is_empty);
            if *done {
                for all in &mut after {
                    add(kind, all, *value);
                }
            }
        }
        What::Lookup(key, found) => possible = state[*key] == *found,
        What::Take(key, found) => {
            possible = state[*key] == *found;
            after[*key].clear();
        }
        What::Size(size) => possible = *size == state.iter().map(Vec::len).sum::<usize>(),
        What::Clear => after = State::default(),
        What::TakeAll(found) => {
            possible = state == found;
            after = State::default();
        }
        What::TakeEnd(end, taken) => {
            let mut there = (0..KEYS).filter(|key| !state[*key].is_empty());
            let outermost = match end {
                End::First => there.next(),
                End::Last => there.next_back(),
            };
            if kind.is_ordered() {
                possible = outermost == taken.map(|(key, _)| key);
            }
            if let Some((key, value)) = *taken {
                let at = match (kind.is_ordered(), end) {
                    (true, End::Last) => state[key].len().saturating_sub(1),
                    _ => 0,
                };
                possible &= state[key].get(at) == Some(&value);
                if possible {
                    after[key].remove(at);
                }
            }
        }
    }
    possible.then_some(after)
}

fn values(objects: &[Term]) -> Vec<i64> {
    let value = |object: &Term| object.as_tuple()?[1].as_int();
    objects.iter().filter_map(value).collect()
}

/// Takes all objects out of a table.
fn take_all_objects(table: &TermTable) -> State {
    let taken = patiently(|| table.take_all());
    let settled = loop {
        match taken.when_at_rest() {
            Some(settled) => break settled,
            None => std::thread::yield_now(),
        }
    };
    let mut state = State::default();
    for object in everything(settled) {
        let key = object.as_tuple().and_then(|object| object[0].as_int());
        state[key.expect("an integer") as usize].extend(values(&[object]));
    }
    state
}

fn take_end(table: &TermTable, end: End) -> Option<(usize, i64)> {
    let (guard, mut work) = (ats::terms::pin(), Workspace::<ats::terms::TermHost>::new());
    let taken = patiently(|| table.take_end(end, &mut work, &guard))?.to_term();
    let key = taken.as_tuple()?[0].as_int()?;
    Some((key as usize, values(&[taken])[0]))
}

/// Makes and records the call that a random number selects.
fn call(table: &TermTable, clock: &Clock, choice: u64, value: i64) -> Event<What> {
    let index = (choice / 15) as usize % KEYS;
    let key = Term::from(index);
    let object = Term::from((index, value));
    let all: Vec<Term> = (0..KEYS).map(|key| Term::from((key, value))).collect();
    let mut work = Workspace::new();
    match choice % 15 {
        0 | 1 => clock.record(
            || patiently(|| table.insert(&object, &mut work)),
            |()| What::Insert(index, value),
        ),
        2 => clock.record(
            || patiently(|| table.insert_many(all.iter(), &mut work)),
            |()| What::InsertAll(value),
        ),
        3 => clock.record(
            || patiently(|| table.insert_many_new(all.iter(), &mut work)),
            |done| What::InsertAllNew(value, done),
        ),
        4 | 5 => clock.record(
            || objects(table, &key),
            |found| What::Lookup(index, values(&found)),
        ),
        6 => clock.record(
            || {
                let guard = ats::terms::pin();
                let taken = patiently(|| table.take(&key, &mut work, &guard));
                taken.map_or(Vec::new(), |taken| taken.to_terms())
            },
            |found| What::Take(index, values(&found)),
        ),
        7 => clock.record(|| take_all_objects(table), What::TakeAll),
        8 | 9 => clock.record(
            || take_end(table, End::First),
            |taken| What::TakeEnd(End::First, taken),
        ),
        10 => clock.record(
            || take_end(table, End::Last),
            |taken| What::TakeEnd(End::Last, taken),
        ),
        11..=13 => clock.record(|| patiently(|| table.len()), What::Size),
        _ => clock.record(
            || table.clear().expect("memory does not fail"),
            |_| What::Clear,
        ),
    }
}

fn history(kind: TableType, round: u64) -> Vec<Event<What>> {
    let table = of_round(kind, round);
    histories::history(round, |clock, choice, value| {
        call(&table, clock, choice, value)
    })
}

#[test]
fn tables_are_linearizable() {
    for kind in ALL_TYPES {
        for round in 0..ROUNDS {
            let events = history(kind, round);
            let explained = linearizable(State::default(), &events, |state, what| {
                apply(kind, state, what)
            });
            assert!(explained, "{kind:?} {round}: no order explains {events:#?}");
        }
    }
}
