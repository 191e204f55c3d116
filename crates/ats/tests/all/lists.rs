//! Tests of lists that are inserted as one: the state that a list has found must hold until it
//! takes effect, and a long list must not block other operations.

use crate::checker::{Clock, Event, linearizable};
use crate::common::{ALL_TYPES, TermTable, everything, objects, of_round, patiently};
use ats::terms::{CounterOp, Error, Integer, TableType, Workspace};
use ats_term::Term;
use fastrand::Rng;
use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const KEYS: usize = 3;
const ROUNDS: u64 = 100;
/// Number of lists of one thread, and of calls of each other thread.
const LISTS: u64 = 3;
const CALLS: u64 = 16;
/// Number of objects of a list between two of the keys. No other call uses their keys; they only
/// make the list take longer.
const BETWEEN: usize = 60;

/// Number of objects between two of the keys in a long list.
const LONG_BETWEEN: usize = 150;
/// Number of objects of one key that is too large for a change under a lock.
const MANY_OF_ONE: usize = 20;

/// The values of each key, oldest first.
type State = [Vec<i64>; KEYS];

#[derive(Clone, Debug)]
enum What {
    Insert(usize, i64),
    /// Inserted these values under these keys, in this order.
    InsertList(Vec<(usize, i64)>),
    /// Inserted these values if no key was present, and whether that was so.
    InsertListNew(Vec<(usize, i64)>, bool),
    DeleteObject(usize, i64),
    Lookup(usize, Vec<i64>),
    Take(usize, Vec<i64>),
    /// Added one to the value of a key, if the key was present, and returned this value.
    Count(usize, Option<i64>),
    Clear,
    TakeAll(State),
}

fn add(kind: TableType, values: &mut Vec<i64>, value: i64) {
    match kind {
        _ if kind.is_distinct_bag() && values.contains(&value) => return,
        TableType::Set | TableType::OrderedSet => values.clear(),
        _ => {}
    }
    values.push(value);
}

fn apply(kind: TableType, state: &State, what: &What) -> Option<State> {
    let mut after = state.clone();
    let mut possible = true;
    let mut add_all = |list: &[(usize, i64)]| {
        for (key, value) in list {
            add(kind, &mut after[*key], *value);
        }
    };
    match what {
        What::Insert(key, value) => add(kind, &mut after[*key], *value),
        What::InsertList(list) => add_all(list),
        What::InsertListNew(list, done) => {
            possible = *done == list.iter().all(|(key, _)| state[*key].is_empty());
            if *done {
                add_all(list);
            }
        }
        What::DeleteObject(key, value) => after[*key].retain(|other| other != value),
        What::Lookup(key, found) => possible = state[*key] == *found,
        What::Take(key, found) => {
            possible = state[*key] == *found;
            after[*key].clear();
        }
        What::Count(key, counted) => {
            possible = state[*key].first().map(|value| value + 1) == *counted;
            after[*key] = Vec::from_iter(*counted);
        }
        What::Clear => after = State::default(),
        What::TakeAll(found) => {
            possible = state == found;
            after = State::default();
        }
    }
    possible.then_some(after)
}

/// Returns a key of the histories. There is room for other keys between two of them.
fn key_of(index: usize) -> usize {
    1000 * index
}

fn value_of(object: &Term) -> i64 {
    let value = object.as_tuple().and_then(|object| object[1].as_int());
    value.expect("an integer")
}

/// A list, and its objects: two of one key, one of the next, in some lists one of the last or many
/// of the first, and others that are not part of the histories.
struct List {
    known: Vec<(usize, i64)>,
    objects: Vec<Term>,
}

impl List {
    fn of(choice: u64) -> Self {
        let (index, value) = (choice as usize % KEYS, (choice / 4) as i64 % 2);
        let (next, last) = ((index + 1) % KEYS, (index + 2) % KEYS);
        let mut known = vec![(index, value), (next, value), (index, 1 - value)];
        if (choice / 8).is_multiple_of(2) {
            known.push((last, value));
        }
        if (choice / 16).is_multiple_of(4) {
            known.extend([(index, value); MANY_OF_ONE]);
        }
        let between = match choice / 64 % 4 {
            0 => LONG_BETWEEN,
            _ => BETWEEN,
        };
        let others = (0..KEYS).flat_map(|index| (1..=between).map(move |at| key_of(index) + at));
        let objects = (known.iter())
            .map(|(index, value)| (key_of(*index), *value))
            .chain(others.map(|key| (key, 0)))
            .map(Term::from)
            .collect();
        List { known, objects }
    }

    fn insert(&self, table: &TermTable, clock: &Clock) -> Event<What> {
        let mut work = Workspace::new();
        clock.record(
            || patiently(|| table.insert_many(self.objects.iter(), &mut work)),
            |()| What::InsertList(self.known.clone()),
        )
    }
}

/// Makes and records the call that a random number selects. There are few different values, so that
/// calls meet the values of lists.
fn call(table: &TermTable, clock: &Clock, choice: u64) -> Event<What> {
    let (index, value) = ((choice / 16) as usize % KEYS, (choice / 64) as i64 % 2);
    let key = Term::from(key_of(index));
    let object = Term::from((key_of(index), value));
    let mut work = Workspace::new();
    match choice % 16 {
        0 => clock.record(
            || patiently(|| table.insert(&object, &mut work)),
            |()| What::Insert(index, value),
        ),
        1 => {
            let known = [(index, value), ((index + 1) % KEYS, value)];
            let list = known.map(|(index, value)| Term::from((key_of(index), value)));
            clock.record(
                || patiently(|| table.insert_many_new(list.iter(), &mut work)),
                |done| What::InsertListNew(known.to_vec(), done),
            )
        }
        2..7 => clock.record(
            || patiently(|| table.delete_object(&object, &mut work)),
            |()| What::DeleteObject(index, value),
        ),
        7 => clock.record(
            || {
                let guard = ats::terms::pin();
                let taken = patiently(|| table.take(&key, &mut work, &guard));
                taken.map_or(Vec::new(), |taken| taken.to_terms())
            },
            |found| What::Take(index, found.iter().map(value_of).collect()),
        ),
        8 if !table.table_type().is_bag() => {
            let op = CounterOp {
                position: 2,
                increment: 1.into(),
                wrap: None,
            };
            let mut count = || match table.update_one_counter(&key, &op, None, &mut work) {
                Err(Error::BadKey) => Ok(None),
                counted => counted.map(Some),
            };
            clock.record(
                || patiently(&mut count),
                |counted| What::Count(index, counted.as_ref().and_then(Integer::as_small)),
            )
        }
        9 if (choice / 128).is_multiple_of(4) => clock.record(
            || table.clear().expect("memory does not fail"),
            |_| What::Clear,
        ),
        10 if (choice / 128).is_multiple_of(4) => {
            clock.record(|| take_all_objects(table), What::TakeAll)
        }
        _ => look_up(table, clock, index),
    }
}

/// Returns the history of one thread that inserts lists, and two others that make other calls. The
/// last calls read all keys.
fn history(table: &TermTable, round: u64) -> Vec<Event<What>> {
    let (clock, start) = (&Clock::default(), &Barrier::new(3));
    let random = |thread: u64| Rng::with_seed(round * 3 + thread);
    let mut first = random(0);
    let lists: Vec<List> = (0..LISTS).map(|_| List::of(first.u64(..1 << 24))).collect();
    let calls = &|thread: u64| {
        start.wait();
        let mut random = random(thread);
        let one = |_| {
            let choice = random.u64(..1 << 24);
            // Random delays let calls meet each moment of a list.
            (0..choice / 512 % 256).for_each(|_| std::hint::spin_loop());
            call(table, clock, choice)
        };
        (0..CALLS).map(one).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let others = [1, 2].map(|number| scope.spawn(move || calls(number)));
        start.wait();
        let mut events: Vec<_> = (lists.iter())
            .map(|list| list.insert(table, clock))
            .collect();
        for other in others {
            events.extend(other.join().expect("a thread"));
        }
        events.extend((0..KEYS).map(|index| look_up(table, clock, index)));
        events
    })
}

fn look_up(table: &TermTable, clock: &Clock, index: usize) -> Event<What> {
    clock.record(
        || objects(table, &Term::from(key_of(index))),
        |found| What::Lookup(index, found.iter().map(value_of).collect()),
    )
}

/// Takes all objects out of a table.
fn take_all_objects(table: &TermTable) -> State {
    let taken = patiently(|| table.take_all());
    let settled = loop {
        match taken.when_at_rest() {
            Some(settled) => break settled,
            None => thread::yield_now(),
        }
    };
    let mut state = State::default();
    for object in everything(settled) {
        let key = object.as_tuple().and_then(|object| object[0].as_int());
        let key = key.expect("an integer") as usize;
        if key.is_multiple_of(1000) {
            state[key / 1000].push(value_of(&object));
        }
    }
    state
}

#[test]
fn lists_are_linearizable() {
    for kind in ALL_TYPES {
        for round in 0..ROUNDS {
            let table = of_round(kind, round);
            // The first list finds objects under its first key, and none under the others.
            let mut state = State::default();
            for value in [0, 1] {
                let what = What::Insert(0, value);
                let object = Term::from((key_of(0), value));
                assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
                state = apply(kind, &state, &what).expect("always possible");
            }
            let events = history(&table, round);
            let explained = linearizable(state, &events, |state, what| apply(kind, state, what));
            assert!(explained, "{kind:?} {round}: no order explains {events:#?}");
        }
    }
}

/// An iterator over the objects of a list. It notes the epochs in which the thread is pinned when
/// the list asks for an object.
struct Watched<'a> {
    terms: std::slice::Iter<'a, Term>,
    epochs: &'a mut HashSet<u64>,
}

impl<'a> Iterator for Watched<'a> {
    type Item = &'a Term;

    fn next(&mut self) -> Option<&'a Term> {
        let guard = ats::terms::pin();
        let epoch = guard.epoch();
        let deadline = Instant::now() + Duration::from_secs(60);
        // The next epoch can begin, but no further one until the thread pins again.
        while self.epochs.insert(epoch) || guard.is_still(epoch) {
            let _ = guard.grace().is_over();
            assert!(Instant::now() < deadline, "another thread stays pinned");
            thread::yield_now();
        }
        self.terms.next()
    }
}

#[test]
fn a_long_list_is_not_pinned_while_it_is_encoded() {
    let list: Vec<Term> = (0..20 * 256).map(|key| Term::from((key, 0))).collect();
    let table = TermTable::new(TableType::OrderedSet, 1);
    let mut epochs = HashSet::new();
    let terms = Watched {
        terms: list.iter(),
        epochs: &mut epochs,
    };
    assert_eq!(table.insert_many(terms, &mut Workspace::new()), Ok(()));
    assert_eq!(table.len().unwrap(), list.len());
    assert!(epochs.len() >= 20, "{} epochs", epochs.len());
}

/// A list, or a deletion, with many objects of one key does not block writers of other keys.
#[test]
fn many_objects_of_one_key_are_in_the_way_of_no_other_key() {
    const MANY: usize = 60_000;
    for kind in ALL_TYPES.into_iter().filter(|kind| kind.is_bag()) {
        let different: Vec<Term> = (0..MANY).map(|at| Term::from((0, at))).collect();
        let equal = vec![Term::from((0, 0)); MANY];
        let goes_on = (0..5).any(|_| {
            let table = TermTable::new(kind, 1);
            let mut work = Workspace::new();
            let list =
                |list: &[Term]| patiently(|| table.insert_many(list.iter(), &mut Workspace::new()));
            let inserting = longest_beside(&table, || list(&different));
            assert_eq!(objects(&table, &Term::from(0)).len(), MANY);
            if !kind.is_distinct_bag() {
                list(&equal);
            }
            let deleting = longest_beside(&table, || {
                patiently(|| table.delete_object(&equal[0], &mut work));
            });
            assert_eq!(objects(&table, &Term::from(0)).len(), MANY - 1);
            let is_short = |(longest, whole): (Duration, Duration)| longest < whole / 4;
            is_short(inserting) && (kind.is_distinct_bag() || is_short(deleting))
        });
        assert!(
            goes_on,
            "{kind:?}: writers of another key wait for the whole of a call"
        );
    }
}

/// Runs a call beside a writer of another key. Returns the time of the longest write, and the time
/// of the call.
fn longest_beside(table: &TermTable, call: impl FnOnce()) -> (Duration, Duration) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut longest, mut work) = (Duration::ZERO, Workspace::new());
            let (key, object) = (Term::from(1), Term::from((1, 1)));
            while !stop.load(Ordering::Acquire) {
                let start = Instant::now();
                patiently(|| table.insert(&object, &mut work));
                patiently(|| table.delete(&key, &mut work));
                longest = longest.max(start.elapsed());
            }
            longest
        });
        let start = Instant::now();
        call();
        let whole = start.elapsed();
        stop.store(true, Ordering::Release);
        (writer.join().expect("a writer"), whole)
    })
}
