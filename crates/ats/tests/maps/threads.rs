//! Tests of maps that many threads change.

use ats::{HashMap, OrderedMap};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(crate) const THREADS: u64 = 4;

/// Runs a function in several threads, with the number of each.
pub(crate) fn in_threads<T: Send>(run: impl Fn(u64) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|n| {
                scope.spawn({
                    let run = &run;
                    move || run(n)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .collect()
    })
}

/// Maps are `Send` and `Sync` for all types of keys and values, since they store only bytes.
#[test]
fn maps_go_from_thread_to_thread() {
    fn check<T: Send + Sync>(_: &T) {}
    let (ordered, hash) = (OrderedMap::<u8, u8>::new(), HashMap::<u8, u8>::new());
    check(&ordered);
    check(&ordered.iter());
    check(&ordered.snapshot());
    check(&hash);
    check(&hash.iter());
    check(&hash.snapshot());
}

#[test]
fn no_merge_is_lost() {
    let (ordered, hash) = (OrderedMap::<u64, u64>::new(), HashMap::<String, u64>::new());
    in_threads(|_| {
        for n in 0..20_000 {
            ordered.merge(n % 3, 1, |count, more| count + more);
            hash.update("there", |count| count + 1);
            hash.compute("any", |count| Some(count.unwrap_or(0) + 1));
        }
        hash.insert_new("there", 0);
    });
    let counts: u64 = ordered.iter().map(|(_, count)| count).sum();
    assert_eq!(counts, 20_000 * THREADS);
    assert_eq!(hash.get("any"), Some(20_000 * THREADS));
}

#[test]
fn each_record_is_taken_once() {
    let (jobs, set) = (OrderedMap::new(), HashMap::new());
    for n in 0..40_000_u64 {
        jobs.put(n, ());
        set.put(n, n);
    }
    let taken = in_threads(|n| {
        let mut mine = Vec::new();
        while let Some((job, ())) = if n % 2 == 0 {
            jobs.pop_first()
        } else {
            jobs.pop_last()
        } {
            mine.push(job);
        }
        let mut others = Vec::new();
        while let Some((key, _)) = set.pop() {
            others.push(key);
        }
        (mine, others)
    });
    for kind in [0, 1] {
        let all: Vec<u64> = taken
            .iter()
            .flat_map(|(jobs, others)| if kind == 0 { jobs } else { others })
            .copied()
            .collect();
        assert_eq!(all.len(), 40_000);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 40_000);
    }
    assert!(jobs.is_empty() && set.is_empty());
}

#[test]
fn one_thread_makes_the_value() {
    let map: HashMap<u64, u64> = HashMap::new();
    let seen = in_threads(|thread| {
        (0..5_000)
            .map(|key| map.get_or_insert_with(key, || thread))
            .collect::<Vec<_>>()
    });
    for other in &seen {
        assert_eq!(other, &seen[0]);
    }
}

/// A reader that has seen a part of a batch finds the rest, and a snapshot shows all of a batch or
/// none.
#[test]
fn batches_are_seen_as_a_whole() {
    let map: OrderedMap<u64, u64> = OrderedMap::new();
    map.insert_many((0..100).map(|key| (key, 0)));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..300_u64 {
                map.insert_many((0..100).map(|key| (key, round)));
            }
            stop.store(true, Ordering::Relaxed);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let high = map.get(99);
                    assert!(map.get(0) >= high);
                    let snapshot = map.snapshot();
                    let rounds: BTreeSet<u64> = snapshot.iter().map(|(_, round)| round).collect();
                    assert_eq!((rounds.len(), snapshot.len()), (1, 100));
                }
            });
        }
    });
}

/// A walk visits keys that are present throughout exactly once, in order, and no keys that are
/// absent throughout.
#[test]
fn walks_meet_lasting_keys_once() {
    let map: OrderedMap<u64, u64> = OrderedMap::new();
    let hash: HashMap<u64, u64> = HashMap::new();
    for key in 0..3_000 {
        map.put(key * 2, key);
        hash.put(key * 2, key);
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for from in 0..2 {
            let (map, hash, stop) = (&map, &hash, &stop);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(from);
                while !stop.load(Ordering::Relaxed) {
                    let key = random.u64(0..3_000) * 4 + 1;
                    map.put(key, key);
                    hash.put(key, key);
                    let key = random.u64(0..3_000) * 4 + 1;
                    map.remove(key);
                    hash.remove(key);
                }
            });
        }
        for round in 0..30 {
            let forwards = map.range(..6_000).map(|(key, _)| key);
            let keys: Vec<u64> = match round % 2 {
                0 => forwards.collect(),
                _ => {
                    let mut keys: Vec<u64> = forwards.rev().collect();
                    keys.reverse();
                    keys
                }
            };
            assert!(keys.is_sorted_by(|one, next| one < next));
            assert_eq!(keys.iter().filter(|key| *key % 2 == 0).count(), 3_000);
            assert!(keys.iter().all(|key| key % 2 == 0 || key % 4 == 1));
            let keys: Vec<u64> = hash.iter().map(|(key, _)| key).collect();
            assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
            assert_eq!(keys.iter().filter(|key| *key % 2 == 0).count(), 3_000);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Batches and clears are atomic, so a moment has all keys of a batch or none.
#[test]
fn a_map_is_cleared_at_one_moment() {
    fn check(
        insert: impl Fn(u64) + Sync,
        clear: impl Fn() + Sync,
        values: impl Fn() -> Vec<u64> + Sync,
    ) {
        in_threads(|thread| {
            for round in 0..2_000 {
                match thread {
                    0 => clear(),
                    1 => insert(round),
                    _ => {
                        let values = values();
                        assert!(matches!(values.len(), 0 | 3), "{values:?}");
                        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
                    }
                }
            }
        });
        clear();
        assert!(values().is_empty());
        insert(7);
        assert_eq!(values(), vec![7; 3]);
    }
    let ordered: OrderedMap<u64, u64> = OrderedMap::new();
    check(
        |round| ordered.insert_many([1, 500, 1_000].map(|key| (key, round))),
        || ordered.clear(),
        || ordered.snapshot().iter().map(|(_, value)| value).collect(),
    );
    let hash: HashMap<u64, u64> = HashMap::new();
    check(
        |round| hash.insert_many([1, 500, 1_000].map(|key| (key, round))),
        || hash.clear(),
        || hash.snapshot().iter().map(|(_, value)| value).collect(),
    );
}

/// A clear removes all keys that are present when it begins, and no key that is inserted after it.
#[test]
fn keys_inserted_after_a_clear_stay() {
    let (ordered, hash) = (OrderedMap::<u64, u64>::new(), HashMap::<u64, u64>::new());
    let turn = std::sync::RwLock::new(());
    in_threads(|thread| {
        for round in 0..500 {
            if thread == 0 {
                let _alone = turn.write().expect("no panic");
                ordered.clear();
                hash.clear();
                assert_eq!((ordered.len(), hash.len()), (0, 0));
                assert_eq!((ordered.iter().next(), hash.iter().next()), (None, None));
            } else {
                let _with_others = turn.read().expect("no panic");
                for key in (0..100).map(|n| thread * 1_000_000 + n * 1_000 + round) {
                    ordered.insert(key, thread);
                    hash.insert(key, thread);
                    assert_eq!(
                        (ordered.get(key), hash.get(key)),
                        (Some(thread), Some(thread))
                    );
                    assert_eq!(ordered.remove(key), Some(thread));
                    assert_eq!(hash.remove(key), Some(thread));
                }
            }
        }
    });
}

/// Walks, moments and the memory figure are right after the map was cleared.
#[test]
fn iterators_and_snapshots_outlive_a_clear() {
    let pairs = || (0..100_000_u64).map(|n| (n, n));
    let (ordered, hash): (OrderedMap<_, _>, HashMap<_, _>) = (pairs().collect(), pairs().collect());
    let full = ordered.memory();
    let (mut low, mut some) = (ordered.iter(), hash.iter());
    assert_eq!(low.next(), Some((0, 0)));
    assert!(some.next().is_some());
    let (before, hash_before) = (ordered.snapshot(), hash.snapshot());
    ordered.clear();
    hash.clear();
    assert!(
        ordered.memory() < full / 100,
        "{} of {full}",
        ordered.memory()
    );
    assert!(hash.is_empty());
    ordered.insert(70_000, 1);
    hash.insert(70_000, 1);
    // The walk returns the pieces that it has read before, and later keys.
    let left: Vec<_> = low.collect();
    assert!(left.len() < 1_000, "{}", left.len());
    assert_eq!(left.last(), Some(&(70_000, 1)));
    assert!(some.count() < 1_000);
    assert!(before.iter().eq(pairs()));
    assert_eq!((before.count(10..20), before.rank(50_000)), (10, 50_000));
    assert_eq!(
        (hash_before.iter().count(), hash_before.len()),
        (100_000, 100_000)
    );
    drop((before, hash_before));
    assert_eq!((ordered.len(), hash.len()), (1, 1));
}

#[test]
fn a_closure_may_use_the_map() {
    let map: OrderedMap<u64, u64> = (0..1_000).map(|n| (n, n)).collect();
    in_threads(|_| {
        for (key, _) in &map {
            map.compute(key, |value| {
                map.put(key + 1, 7);
                map.get_or_insert_with(key + 2, || map.len() as u64);
                map.snapshot().get(key);
                value
            });
            map.retain(|other, _| {
                map.remove(other + 1_000_000);
                true
            });
            if key >= 20 {
                return;
            }
        }
    });
    assert!(map.len() >= 1_000);
}

#[test]
fn iterators_outlive_a_clear_by_others() {
    let map: OrderedMap<u64, String> = (0..5_000).map(|n| (n, format!("{n:0>50}"))).collect();
    let mut all = map.iter();
    assert_eq!(all.next().map(|(key, _)| key), Some(0));
    thread::scope(|scope| drop(scope.spawn(|| map.clear())));
    ats::collect();
    for (key, value) in all {
        assert_eq!(value, format!("{key:0>50}"));
    }
    assert_eq!(map.len(), 0);
}

/// A count includes all pairs of a batch or none, and `nth` finds the last counted key, while
/// threads insert batches of five pairs.
#[test]
fn counts_have_batches_whole() {
    let map = OrderedMap::<u64, u64>::new();
    in_threads(|thread| {
        for round in 0..5_000 {
            match thread {
                0 => {
                    let count = map.count(..);
                    assert_eq!(count % 5, 0, "{count} keys of batches of 5");
                    assert!(count == 0 || map.nth(count - 1).is_some());
                }
                _ => {
                    let number = round * THREADS + thread;
                    let keys = (0..5).map(|part| (number + 100_000 * part, number));
                    map.insert_many(keys);
                }
            }
        }
    });
    assert_eq!(map.count(..), map.len());
}
