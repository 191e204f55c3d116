//! Tests of transactions of maps whose pairs expire, and of maps with a bound.

use crate::{UNIT, alone, units};
use ats::terms::advance_clock;
use ats::{HashMap, Limited, OrderedMap, TimeLeft, TransactError};
use std::convert::Infallible;
use std::thread;
use std::time::Duration;

fn done<T>(result: Result<T, TransactError<Infallible>>) -> T {
    result.expect("no other thread is there")
}

macro_rules! tests {
    ($module:ident, $map:ident) => {
        mod $module {
            use super::*;

            type Map<V> = $map<u64, V, Limited>;

            #[test]
            fn a_bound_of_pairs_holds_when_a_transaction_returns() {
                let _alone = alone();
                let map: Map<u64> = $map::builder().max_len(100).build();
                for round in 0..50 {
                    done(map.transact(|view| {
                        for key in 0..10 {
                            assert_eq!(view.insert(10 * round + key, key), None);
                        }
                        Ok(())
                    }));
                    assert_eq!(map.len() as u64, 100.min(10 * round + 10));
                    let newest = map.transact(|view| Ok(view.get(10 * round + 9)));
                    assert_eq!(done(newest), Some(9));
                }
                assert_eq!(map.evicted(), 400);
                // More than there is room for, as one step.
                done(map.transact(|view| {
                    (1_000..1_300).for_each(|key| view.put(key, key));
                    Ok(())
                }));
                assert_eq!((map.len(), map.evicted()), (100, 700));
                let none: Map<u64> = $map::builder().max_len(0).build();
                done(none.transact(|view| Ok(view.put(1, 1))));
                assert_eq!((none.len(), none.get(1)), (0, None));
            }

            /// A pair that is too large leaves nothing behind; the other changes are made.
            #[test]
            fn a_pair_that_is_too_large_is_not_kept() {
                let _alone = alone();
                let map: Map<Vec<u8>> = $map::builder().max_bytes(100_000).build();
                let (small, large) = (vec![1; 10], vec![2; 200_000]);
                map.insert_many((0..4).map(|key| (key, &small)));
                done(map.transact(|view| {
                    assert_eq!(view.insert(0, &large), Some(small.clone()));
                    assert_eq!(view.get(0).as_ref(), Some(&large));
                    view.put(8, &large);
                    view.put(9, &small);
                    view.remove(1);
                    Ok(())
                }));
                let left = [0, 1, 2, 3, 8, 9].map(|key| map.contains_key(key));
                assert_eq!(left, [false, false, true, true, false, true]);
                assert_eq!((map.len(), map.evicted()), (3, 2));
            }

            #[test]
            fn new_pairs_get_the_time_of_the_map() {
                let _alone = alone();
                let map: Map<u64> = $map::builder().ttl(units(3)).build();
                map.insert_for(1, 1, units(1));
                map.insert_for(2, 2, units(1));
                map.insert_for(3, 3, units(1));
                done(map.transact(|view| {
                    view.put(1, 10);
                    view.update(2, |value| value + 10);
                    view.remove(3);
                    view.put(3, 30);
                    view.insert(4, 40);
                    view.update(4, |value| value + 1);
                    Ok(())
                }));
                let is_of_map = |key: u64| match map.time_left(key) {
                    Some(TimeLeft::Time(left)) => left > units(2),
                    other => panic!("{other:?}"),
                };
                assert_eq!([1, 2, 3, 4].map(is_of_map), [true, false, true, true]);
                advance_clock(UNIT * 2);
                let found = done(map.transact(|view| Ok([1, 2, 3, 4].map(|key| view.get(key)))));
                assert_eq!(found, [Some(10), None, Some(30), Some(41)]);
                advance_clock(UNIT * 2);
                let found = done(map.transact(|view| Ok([1, 2, 3, 4].map(|key| view.get(key)))));
                assert_eq!((found, map.len(), map.expired()), ([None; 4], 0, 4));
            }

            /// A pair that was read and then expires is a reason for another attempt, in which it
            /// is missing; one that had expired before is missing from the beginning.
            #[test]
            fn a_pair_expires_during_a_transaction() {
                let _alone = alone();
                for (writes, removes) in [(false, false), (true, false), (true, true)] {
                    let map: Map<u64> = $map::builder().ttl(units(3)).build();
                    map.insert_for(1, 1, units(1));
                    map.insert(2, 2);
                    let mut attempts = 0;
                    let found = done(map.transact(|view| {
                        attempts += 1;
                        let found = [1, 2].map(|key| view.get(key));
                        if attempts == 1 {
                            advance_clock(UNIT * 2);
                        }
                        if writes {
                            view.put(3, 3);
                        }
                        if removes {
                            assert_eq!(view.remove(1), found[0]);
                        }
                        Ok(found)
                    }));
                    assert_eq!((attempts, found), (2, [None, Some(2)]));
                    assert_eq!((map.len(), map.expired()), (1 + usize::from(writes), 1));
                    done(
                        map.transact(|view| Ok(view.insert(1, 7)).map(|old| assert_eq!(old, None))),
                    );
                    assert_eq!(map.get(1), Some(7));
                }
            }

            /// Reading an idle pair in a transaction puts its deadline off.
            #[test]
            fn reads_count() {
                let _alone = alone();
                let map: Map<u64> = $map::builder().idle(units(3)).build();
                map.insert_many([(1, 1), (2, 2)]);
                for _ in 0..4 {
                    advance_clock(UNIT * 2);
                    assert_eq!(done(map.transact(|view| Ok(view.get(1)))), Some(1));
                }
                assert_eq!((map.get(1), map.get(2)), (Some(1), None));
            }

            /// Pairs that were inserted together are evicted one by one, but never differ.
            #[test]
            fn transactions_go_on_beside_evictions() {
                let _alone = alone();
                let map: Map<u64> = $map::builder()
                    .max_len(20)
                    .ttl(Duration::from_secs(3600))
                    .build();
                thread::scope(|scope| {
                    for from in 0..4 {
                        let map = &map;
                        scope.spawn(move || {
                            let mut random = fastrand::Rng::with_seed(from);
                            for round in 0..3_000 {
                                let key = 2 * random.u64(..20);
                                let value = 10_000 * from + round;
                                let found = map.transact(|view| {
                                    let found = [key, key + 1].map(|key| view.get(key));
                                    if round % 2 == 0 {
                                        view.put(key, value);
                                        view.put(key + 1, value);
                                    }
                                    Ok::<_, Infallible>(found)
                                });
                                if let Ok([Some(one), Some(other)]) = found {
                                    assert_eq!(one, other);
                                }
                            }
                        });
                    }
                });
                assert!(map.len() <= 20 && map.evicted() > 0);
            }
        }
    };
}

tests!(ordered, OrderedMap);
tests!(hash, HashMap);
