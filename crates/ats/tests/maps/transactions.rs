//! Tests of transactions of maps in memory.

use crate::checker::{Clock, Event, linearizable};
use crate::histories;
use crate::threads::{THREADS, in_threads};
use ats::{MapView, TransactError, Value};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of attempts after which a transaction gives up.
const ATTEMPTS: u64 = 64;

/// Calls a transaction again as long as it only fails for conflicts.
fn again<T, E>(mut call: impl FnMut() -> Result<T, TransactError<E>>) -> Result<T, E> {
    loop {
        match call() {
            Ok(done) => return Ok(done),
            Err(TransactError::Abandoned(error)) => return Err(error),
            Err(TransactError::Conflict) => {}
        }
    }
}

/// Calls a transaction that never fails itself.
fn surely<T>(call: impl FnMut() -> Result<T, TransactError<Infallible>>) -> T {
    again(call).unwrap_or_else(|never| match never {})
}

/// Makes the same random steps on a view and on a model, and compares the answers.
fn random_steps<V: Value + Clone + PartialEq + Debug>(
    view: &mut MapView<'_, u64, V>,
    model: &mut BTreeMap<u64, V>,
    random: &mut Rng,
    make: &impl Fn(&mut Rng) -> V,
) {
    for _ in 0..random.usize(..12) {
        let (key, value) = (random.u64(..8), make(random));
        match random.u32(..6) {
            0 => assert_eq!(view.get(key), model.get(&key).cloned()),
            1 => assert_eq!(view.contains_key(key), model.contains_key(&key)),
            2 => assert_eq!(view.insert(key, &value), model.insert(key, value)),
            3 => {
                view.put(key, &value);
                model.insert(key, value);
            }
            4 => assert_eq!(view.remove(key), model.remove(&key)),
            _ => {
                let old = model.get_mut(&key);
                let new = view.update(key, |found| {
                    assert_eq!(Some(&found), old.as_deref());
                    value.clone()
                });
                assert_eq!(new.as_ref(), old.is_some().then_some(&value));
                if let Some(old) = old {
                    *old = value.clone();
                }
            }
        }
    }
}

/// The end of a random transaction.
#[derive(Debug, PartialEq)]
struct GivenUp(u32);

#[derive(Clone, Debug)]
enum What {
    Get(usize, Option<i64>),
    Insert(usize, i64, Option<i64>),
    Remove(usize, Option<i64>),
    InsertMany(i64),
    /// Exchanged the values of two keys, which were these.
    Swap([usize; 2], [Option<i64>; 2]),
    /// Gave up after these values were read.
    GivenUp([usize; 2], [Option<i64>; 2]),
    All(State),
    /// A transaction that had too many conflicts.
    Nothing,
}

type State = [Option<i64>; 3];

fn apply(state: &State, what: &What) -> Option<State> {
    let mut after = *state;
    let is_possible = match what {
        What::Get(key, found) => state[*key] == *found,
        What::Insert(key, value, old) => after[*key].replace(*value) == *old,
        What::Remove(key, old) => after[*key].take() == *old,
        What::InsertMany(value) => {
            after = [Some(*value); 3];
            true
        }
        What::Swap([one, other], values) => {
            after.swap(*one, *other);
            [state[*one], state[*other]] == *values
        }
        What::GivenUp([one, other], values) => [state[*one], state[*other]] == *values,
        What::All(all) => state == all,
        What::Nothing => true,
    };
    is_possible.then_some(after)
}

/// Sets the value of a key, or removes it.
fn set(view: &mut MapView<'_, u64, i64>, key: usize, value: Option<i64>) {
    match value {
        Some(value) => view.put(key as u64, value),
        None => drop(view.remove(key as u64)),
    }
}

fn exchange(view: &mut MapView<'_, u64, i64>, keys: [usize; 2]) -> [Option<i64>; 2] {
    let values = keys.map(|key| view.get(key as u64));
    set(view, keys[0], values[1]);
    set(view, keys[1], values[0]);
    values
}

macro_rules! tests {
    ($module:ident, $map:ident) => {
        mod $module {
            use super::*;
            use ats::$map as Map;

            /// Random transactions, some of which give up or panic, beside a model.
            fn check_values<V: Value + Clone + PartialEq + Debug>(make: impl Fn(&mut Rng) -> V) {
                let mut random = Rng::with_seed(7);
                let (map, mut model) = (Map::<u64, V>::new(), BTreeMap::new());
                for _ in 0..2_000 {
                    let mut draft = model.clone();
                    let end = random.u32(..6);
                    let done = catch_unwind(AssertUnwindSafe(|| {
                        map.transact(|view| {
                            random_steps(view, &mut draft, &mut random, &make);
                            assert!(map.iter().all(|(key, value)| model[&key] == value));
                            match end {
                                0 => Err(GivenUp(end)),
                                1 => std::panic::resume_unwind(Box::new("on purpose")),
                                _ => Ok(end),
                            }
                        })
                    }));
                    match done {
                        Ok(Ok(told)) => {
                            assert_eq!(told, end);
                            model = draft;
                        }
                        Ok(Err(error)) => {
                            assert_eq!(error, TransactError::Abandoned(GivenUp(0)));
                        }
                        Err(panic) => {
                            assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
                        }
                    }
                    assert_eq!(map.iter().collect::<BTreeMap<_, _>>(), model);
                    assert_eq!(map.len(), model.len());
                }
            }

            #[test]
            fn transactions_behave_as_a_model() {
                check_values(|random| random.u64(..));
                check_values(|_| ());
                check_values(|random| random.bool().then(|| random.u8(..)));
                check_values(|random| "x".repeat(random.usize(..100)));
                check_values(|random| (random.i16(..), vec![random.u8(..); random.usize(..9)]));
            }

            /// A change of a value that a transaction has read, in its first attempt, leads to a
            /// second one, however the transaction ends. A change that is undone does not.
            #[test]
            fn a_value_that_changes_leads_to_another_attempt() {
                type Changes = fn(&Map<u64, u64>);
                // Keys 1 and 2 are there, and 3 and 4 are not.
                let others: [(bool, Changes); 9] = [
                    (true, |map| _ = map.insert(1, 12)),
                    (true, |map| _ = map.remove(2)),
                    (true, |map| _ = map.insert(3, 1)),
                    (true, |map| map.insert_many([(2, 7), (9, 9)])),
                    (true, |map| map.clear()),
                    (false, |map| _ = map.insert(1, 1)),
                    (false, |map| {
                        map.remove(2);
                        map.insert(2, 2);
                    }),
                    (false, |map| {
                        map.insert(4, 4);
                        map.remove(4);
                    }),
                    (false, |map| _ = map.insert(5, 5)),
                ];
                for ((changes, act), end, keys) in others.into_iter().flat_map(|other| {
                    let keys = [&[1, 2, 3, 4][..], &[4, 3, 2, 1], &[3, 1, 2]];
                    let ends = [0, 1, 2].into_iter();
                    ends.flat_map(move |end| keys.map(|keys| (other, end, keys)))
                }) {
                    let map: Map<u64, u64> = [(1, 1), (2, 2)].into();
                    let (mut attempts, mut values) = (0, Vec::new());
                    let done = map.transact(|view| {
                        attempts += 1;
                        values = keys.iter().map(|key| view.get(*key)).collect();
                        if attempts == 1 {
                            act(&map);
                        }
                        match end {
                            0 => view.put(10, 10),
                            1 => {}
                            _ => return Err(GivenUp(1)),
                        }
                        Ok(())
                    });
                    let expected = if changes { 2 } else { 1 };
                    assert_eq!(attempts, expected, "{end} {keys:?}");
                    let given_up = Err(TransactError::Abandoned(GivenUp(1)));
                    assert_eq!(done, if end == 2 { given_up } else { Ok(()) });
                    let now: Vec<_> = keys.iter().map(|key| map.get(*key)).collect();
                    assert_eq!(values, now);
                    assert_eq!(map.contains_key(10), end == 0);
                }
            }

            #[test]
            fn attempts_are_bounded() {
                let map: Map<u64, u64> = [(1, 0)].into();
                let done = map.transact(|view| {
                    view.get(1);
                    map.merge(1, 1, |count, more| count + more);
                    view.put(2, 2);
                    Ok::<_, GivenUp>(())
                });
                assert_eq!(done, Err(TransactError::Conflict));
                assert_eq!((map.get(1), map.get(2)), (Some(ATTEMPTS), None));
                let text = "keys that the transaction reads were changed during all its attempts";
                assert_eq!(TransactError::<String>::Conflict.to_string(), text);
            }

            /// A key that is only written cannot conflict.
            #[test]
            fn a_value_that_was_not_read_may_change() {
                let (map, mut attempts) = (Map::<u64, u64>::new(), 0);
                let done: Result<(), TransactError<GivenUp>> = map.transact(|view| {
                    attempts += 1;
                    view.put(1, 1);
                    assert_eq!(view.get(1), Some(1));
                    map.put(1, 2);
                    assert_eq!(view.insert(1, 3), Some(1));
                    Ok(())
                });
                assert_eq!((done, attempts, map.get(1)), (Ok(()), 1, Some(3)));
            }

            #[test]
            fn a_transaction_may_have_many_keys() {
                let map: Map<u64, u64> = (0..5_000).map(|key| (key, key)).collect();
                let sum = |view: &mut MapView<'_, u64, u64>| {
                    (0..6_000).filter_map(|key| view.get(key)).sum::<u64>()
                };
                let all = surely(|| map.transact(|view| Ok(sum(view))));
                surely(|| {
                    map.transact(|view| {
                        assert_eq!(sum(view), all);
                        for key in 0..3_000 {
                            let moved = view.remove(key).expect("it is there");
                            view.put(key + 10_000, moved);
                        }
                        Ok(())
                    })
                });
                assert_eq!(map.len(), 5_000);
                assert_eq!(map.iter().map(|(_, value)| value).sum::<u64>(), all);
                assert!((0..3_000).all(|key| map.get(key + 10_000) == Some(key)));
            }

            /// Everything that a function may do with the map while it runs.
            #[test]
            fn a_function_may_use_the_map() {
                let map: Map<u64, u64> = (0..100).map(|key| (key, 1)).collect();
                in_threads(|thread| {
                    for round in 0..200 {
                        surely(|| {
                            map.transact(|view| {
                                view.update(thread, |count| count + 1);
                                map.put(1_000 + thread, round);
                                map.insert_many([(2_000 + thread, round), (3_000, thread)]);
                                let inner = map.transact(|view| {
                                    view.put(4_000 + thread, round);
                                    view.get(3_000).ok_or(GivenUp(1))
                                });
                                assert!(!matches!(inner, Err(TransactError::Abandoned(_))));
                                map.get_or_insert_with(5_000 + thread, || round);
                                map.compute(6_000, |count| Some(count.unwrap_or(0) + 1));
                                assert!(map.snapshot().len() >= 100);
                                assert!(map.iter().take(50).count() == 50);
                                map.retain(|key, _| *key != 1_000 + thread);
                                Ok(())
                            })
                        });
                    }
                });
                assert!((0..THREADS).all(|thread| map.get(thread) == Some(201)));
            }

            #[test]
            fn no_increment_is_lost() {
                let map = Map::<u64, u64>::new();
                let attempts = AtomicU64::new(0);
                in_threads(|_| {
                    for _ in 0..3_000 {
                        surely(|| {
                            map.transact(|view| {
                                attempts.fetch_add(1, Ordering::Relaxed);
                                let count = view.get(1).unwrap_or(0);
                                view.insert(1, count + 1);
                                Ok(())
                            })
                        });
                    }
                });
                assert_eq!(map.get(1), Some(3_000 * THREADS));
                assert!(attempts.load(Ordering::Relaxed) >= 3_000 * THREADS);
            }

            /// Accounts, which are removed when they are empty, have the same sum at each moment.
            #[test]
            fn money_stays_in_the_bank() {
                const ACCOUNTS: u64 = 6;
                const EACH: u64 = 3;
                let map: Map<String, u64> = (0..ACCOUNTS).map(|n| (n.to_string(), EACH)).collect();
                let running = AtomicU64::new(2);
                in_threads(|thread| {
                    let mut random = Rng::with_seed(thread);
                    if thread < 2 {
                        for _ in 0..4_000 {
                            let (from, to) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS));
                            let amount = random.u64(1..=EACH);
                            let moved = again(|| {
                                map.transact(|view| {
                                    let had = view.get(from.to_string()).unwrap_or(0);
                                    match had.checked_sub(amount) {
                                        None => return Err(had),
                                        Some(0) => drop(view.remove(from.to_string())),
                                        Some(left) => view.put(from.to_string(), left),
                                    }
                                    let had = view.get(to.to_string()).unwrap_or(0);
                                    view.put(to.to_string(), had + amount);
                                    Ok(())
                                })
                            });
                            assert!(moved.is_ok() || moved < Err(amount));
                        }
                        running.fetch_sub(1, Ordering::Relaxed);
                    }
                    while running.load(Ordering::Relaxed) > 0 {
                        let sum: u64 = map.snapshot().iter().map(|(_, money)| money).sum();
                        assert_eq!(sum, ACCOUNTS * EACH);
                        // A wrong sum would be a reason to give up.
                        let seen = again(|| {
                            map.transact(|view| {
                                let accounts = (0..ACCOUNTS).map(|n| n.to_string());
                                let sum: u64 = accounts.filter_map(|name| view.get(name)).sum();
                                match sum {
                                    right if right == ACCOUNTS * EACH => Ok(()),
                                    wrong => Err(wrong),
                                }
                            })
                        });
                        assert_eq!(seen, Ok(()));
                    }
                });
                let sum: u64 = map.iter().map(|(_, money)| money).sum();
                assert_eq!(sum, ACCOUNTS * EACH);
            }

            /// Two doctors are on call. Each may leave if the other one stays.
            #[test]
            fn writes_do_not_skew() {
                let map: Map<u64, bool> = [(0, true), (1, true)].into();
                in_threads(|thread| {
                    let mine = thread % 2;
                    for _ in 0..3_000 {
                        let are_there = surely(|| {
                            map.transact(|view| {
                                let are_there = [0, 1].map(|key| view.get(key) == Some(true));
                                view.put(mine, !are_there.iter().all(|is_there| *is_there));
                                Ok(are_there)
                            })
                        });
                        assert_ne!(are_there, [false; 2]);
                    }
                });
                assert!(map.iter().any(|(_, is_there)| is_there));
            }

            /// A value moves between two keys, one of which is always missing.
            #[test]
            fn one_of_two_keys_is_there() {
                let map: Map<u64, u64> = [(0, 7)].into();
                let running = AtomicU64::new(1);
                in_threads(|thread| {
                    if thread == 0 {
                        for round in 0..10_000 {
                            surely(|| {
                                map.transact(|view| {
                                    let value = view.remove(round % 2).expect("only this moves it");
                                    view.put(1 - round % 2, value);
                                    Ok(())
                                })
                            });
                        }
                        running.store(0, Ordering::Relaxed);
                    }
                    while running.load(Ordering::Relaxed) > 0 {
                        let read = [[0, 1], [1, 0]][thread as usize % 2];
                        let found = surely(|| {
                            map.transact(|view| Ok(read.map(|key| view.contains_key(key))))
                        });
                        assert_ne!(found[0], found[1]);
                    }
                });
            }

            /// Two values that always differ are exchanged again and again, so that a reader who
            /// has mixed two moments soon finds both of its values again.
            #[test]
            fn values_that_come_back_are_not_mixed() {
                let map: Map<u64, u64> = [(0, 0), (1, 1)].into();
                let running = AtomicU64::new(1);
                in_threads(|thread| {
                    if thread == 0 {
                        for round in 0..40_000 {
                            map.insert_many([(0, round % 2), (1, 1 - round % 2)]);
                        }
                        running.store(0, Ordering::Relaxed);
                    }
                    while running.load(Ordering::Relaxed) > 0 {
                        let keys = [[0, 1], [1, 0]][thread as usize % 2];
                        let read = |view: &mut MapView<'_, u64, u64>| {
                            let first = view.get(keys[0]);
                            (0..100).for_each(|_| std::hint::spin_loop());
                            Ok([first, view.get(keys[1])])
                        };
                        let found = surely(|| map.transact(read));
                        assert_ne!(found[0], found[1]);
                    }
                });
            }

            #[test]
            fn histories_are_linearizable() {
                for round in 0..1_000 {
                    let map = Map::<u64, i64>::new();
                    let call = |clock: &Clock, choice: u64, value: i64| -> Event<What> {
                        let keys = [choice / 16 % 3, choice / 64 % 3].map(|key| key as usize);
                        let key = keys[0] as u64;
                        match choice % 16 {
                            0..=1 => clock.record(
                                || map.insert(key, value),
                                |old| What::Insert(keys[0], value, old),
                            ),
                            2 => clock.record(|| map.remove(key), |old| What::Remove(keys[0], old)),
                            3..=4 => {
                                clock.record(|| map.get(key), |found| What::Get(keys[0], found))
                            }
                            5 => clock.record(
                                || map.insert_many([0, 1, 2].map(|key| (key, value))),
                                |()| What::InsertMany(value),
                            ),
                            6..=10 => clock.record(
                                || map.transact(|view| Ok::<_, GivenUp>(exchange(view, keys))),
                                |done| {
                                    done.map_or(What::Nothing, |values| What::Swap(keys, values))
                                },
                            ),
                            11..=12 => clock.record(
                                || map.transact(|view| Err::<(), _>(exchange(view, keys))),
                                |done| match done {
                                    Err(TransactError::Abandoned(values)) => {
                                        What::GivenUp(keys, values)
                                    }
                                    _ => What::Nothing,
                                },
                            ),
                            _ => clock.record(
                                || {
                                    map.transact(|view| {
                                        Ok::<_, GivenUp>([0, 1, 2].map(|key| view.get(key)))
                                    })
                                },
                                |done| done.map_or(What::Nothing, What::All),
                            ),
                        }
                    };
                    let events = histories::history(round, call);
                    let explained = linearizable(State::default(), &events, apply);
                    assert!(explained, "{round}: no order explains {events:#?}");
                }
            }
        }
    };
}

tests!(ordered, OrderedMap);
tests!(hash, HashMap);
