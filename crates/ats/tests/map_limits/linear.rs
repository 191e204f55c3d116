//! Short histories of three threads on maps whose pairs expire, checked for linearizability. Each
//! map has two histories: the clock jumps between them, so all pairs of the first one are gone in
//! the second one, while the background thread may still remove them.

use crate::checker::{Event, linearizable};
use crate::{UNIT, alone, histories};
use ats::terms::advance_clock;
use ats::{HashMap, Limited, MapView, OrderedMap};
use std::convert::Infallible;

const KEYS: u64 = 3;
const ROUNDS: u64 = 1_000;

type State = [Option<i64>; KEYS as usize];

#[derive(Clone, Debug)]
enum What {
    Insert(usize, i64, Option<i64>),
    Get(usize, Option<i64>),
    Remove(usize, Option<i64>),
    /// A value, and the value that the call has returned.
    GetOrInsert(usize, i64, i64),
    /// Added one to the value of a key, if it had one.
    Update(usize, Option<i64>),
    Touch(usize, bool),
    Len(usize),
    /// Exchanged the values of two keys, which were these, in a transaction.
    Swap([usize; 2], [Option<i64>; 2]),
    /// All values, read in a transaction.
    All(State),
    /// A transaction that had too many conflicts.
    Nothing,
}

fn apply(state: &State, what: &What) -> Option<State> {
    let mut after = *state;
    let is_possible = match what {
        What::Insert(key, value, old) => after[*key].replace(*value) == *old,
        What::Get(key, found) => after[*key] == *found,
        What::Remove(key, old) => after[*key].take() == *old,
        What::GetOrInsert(key, value, got) => after[*key].get_or_insert(*value) == got,
        What::Update(key, new) => {
            after[*key] = after[*key].map(|value| value + 1);
            after[*key] == *new
        }
        What::Touch(key, is_there) => after[*key].is_some() == *is_there,
        What::Len(len) => after.iter().flatten().count() == *len,
        What::Swap([one, other], values) => {
            after.swap(*one, *other);
            [state[*one], state[*other]] == *values
        }
        What::All(all) => state == all,
        What::Nothing => true,
    };
    is_possible.then_some(after)
}

macro_rules! call {
    ($map:expr, $clock:expr, $choice:expr, $value:expr) => {{
        let (map, clock, value) = (&$map, $clock, $value);
        let key = $choice / 16 % KEYS;
        let index = key as usize;
        match $choice % 16 {
            0..=2 => clock.record(
                || map.insert(key, value),
                |old| What::Insert(index, value, old),
            ),
            3..=5 => clock.record(|| map.get(key), |found| What::Get(index, found)),
            6 => clock.record(|| map.remove(key), |old| What::Remove(index, old)),
            7..=9 => clock.record(
                || map.get_or_insert_with(key, || value),
                |got| What::GetOrInsert(index, value, got),
            ),
            10 => clock.record(
                || map.update(key, |value| value + 1),
                |new| What::Update(index, new),
            ),
            11 => clock.record(|| map.touch(key), |is_there| What::Touch(index, is_there)),
            12 => {
                let keys = [key, $choice / 64 % KEYS];
                let swap = |view: &mut MapView<'_, u64, i64>| {
                    let values = keys.map(|key| view.get(key));
                    for (key, value) in [(keys[0], values[1]), (keys[1], values[0])] {
                        match value {
                            Some(value) => view.put(key, value),
                            None => drop(view.remove(key)),
                        }
                    }
                    Ok::<_, Infallible>(values)
                };
                let indices = keys.map(|key| key as usize);
                clock.record(
                    || map.transact(swap),
                    |done| done.map_or(What::Nothing, |values| What::Swap(indices, values)),
                )
            }
            13 => clock.record(
                || map.transact(|view| Ok::<_, Infallible>([0, 1, 2].map(|key| view.get(key)))),
                |done| done.map_or(What::Nothing, What::All),
            ),
            _ => clock.record(|| map.len(), What::Len),
        }
    }};
}

fn check(round: u64, events: &[Event<What>]) {
    let explained = linearizable(State::default(), events, apply);
    assert!(explained, "{round}: no order explains {events:#?}");
}

#[test]
fn maps_whose_pairs_expire_are_linearizable() {
    let _alone = alone();
    for round in 0..ROUNDS {
        let hash: HashMap<u64, i64, Limited> = HashMap::builder().ttl(UNIT / 2).build();
        let ordered: OrderedMap<u64, i64, Limited> = OrderedMap::builder().idle(UNIT / 2).build();
        for part in 0..2 {
            let seed = 2 * round + part;
            let events = histories::history(seed, |clock, choice, value| {
                call!(hash, clock, choice, value)
            });
            check(seed, &events);
            let events = histories::history(seed, |clock, choice, value| {
                call!(ordered, clock, choice, value)
            });
            check(seed, &events);
            advance_clock(UNIT);
        }
    }
}
