//! Tests of maps with a bound.

use crate::alone;
use ats::{HashMap, Limited, OrderedMap};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn of_len(pairs: usize) -> HashMap<u64, u64, Limited> {
    HashMap::builder().max_len(pairs).build()
}

#[test]
fn a_bound_of_pairs_holds_when_an_insert_returns() {
    let _alone = alone();
    let hash = of_len(100);
    let ordered: OrderedMap<u64, u64, Limited> = OrderedMap::builder().max_len(100).build();
    for key in 0..1_000 {
        let most = 100.min(key as usize + 1);
        hash.insert(key, key);
        ordered.put(key, key);
        assert_eq!((hash.len(), ordered.len()), (most, most));
    }
    for key in 1_000..2_000 {
        hash.get_or_insert_with(key, || key);
        ordered.compute(key, |_| Some(key));
        hash.insert_new(key + 10_000, key);
        ordered.merge(key + 10_000, key, |_, _| 0);
        assert_eq!((hash.len(), ordered.len()), (100, 100));
    }
    assert_eq!((hash.evicted(), ordered.evicted()), (2_900, 2_900));
    hash.insert_many((0..1_000).map(|key| (key, key)));
    ordered.insert_many_new((50_000..51_000).map(|key| (key, key)));
    assert_eq!((hash.len(), ordered.len()), (100, 100));
    assert_eq!(ordered.snapshot().iter().count(), 100);
}

#[test]
fn a_map_for_nothing_keeps_nothing() {
    let _alone = alone();
    let map = of_len(0);
    assert_eq!((map.insert(1, 1), map.get(1), map.len()), (None, None, 0));
    assert_eq!(map.get_or_insert_with(1, || 7), 7);
    assert_eq!((map.evicted(), map.insert_new(1, 1)), (2, true));
}

#[test]
fn memory_stays_within_its_bound() {
    let _alone = alone();
    let most = 1 << 20;
    let hash: HashMap<u64, String, Limited> = HashMap::builder().max_bytes(most).build();
    let ordered: OrderedMap<u64, String, Limited> = OrderedMap::builder().max_bytes(most).build();
    let mut random = fastrand::Rng::with_seed(5);
    for key in 0..20_000 {
        let text = "x".repeat(random.usize(..2_000));
        hash.insert(key, &text);
        ordered.insert(key, &text);
        assert!(hash.memory() <= most && ordered.memory() <= most);
    }
    assert!(
        hash.len() > 500 && ordered.len() > 500,
        "{} {}",
        hash.len(),
        ordered.len()
    );
}

/// A pair that is too large leaves nothing behind, and no other pair goes for it.
#[test]
fn a_pair_that_is_too_large_is_not_kept() {
    let _alone = alone();
    let map: OrderedMap<u64, Vec<u8>, Limited> = OrderedMap::builder().max_bytes(100_000).build();
    let (small, large) = (vec![1; 10], vec![2; 200_000]);
    for key in 0..10 {
        map.insert(key, &small);
    }
    assert_eq!(map.insert(0, &large), Some(small.clone()));
    assert_eq!((map.get(0), map.evicted(), map.len()), (None, 1, 9));
    assert!(map.put(1, &large));
    assert!(map.insert_new(100, &large));
    assert_eq!(map.update(2, |_| large.clone()), Some(large.clone()));
    assert_eq!(map.get_or_insert_with(101, || large.clone()), large);
    assert_eq!((map.evicted(), map.len()), (5, 7));
    map.insert_many([(3, &large), (4, &small), (102, &large), (103, &small)]);
    assert_eq!(
        (map.get(3), map.get(4), map.get(102)),
        (None, Some(small.clone()), None)
    );
    assert_eq!((map.get(103), map.len()), (Some(small.clone()), 7));
    assert!(!map.insert_many_new([(104, &large), (4, &small)]));
    assert!(map.insert_many_new([(104, &large), (105, &small)]));
    assert_eq!(
        (map.get(104), map.get(105), map.len()),
        (None, Some(small), 8)
    );
}

#[test]
fn bounds_hold_beside_other_writers() {
    let _alone = alone();
    let (map, ordered) = (
        of_len(200),
        OrderedMap::<u64, u64>::builder().max_len(200).build(),
    );
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..4 {
            let (map, ordered, stop) = (&map, &ordered, &stop);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..30_000 {
                    let key = random.u64(..2_000);
                    match random.u32(..4) {
                        0 => drop(map.remove(key)),
                        1 => drop(map.get(key)),
                        2 => map.insert_many([(key, 1), (key + 1, 1)]),
                        _ => drop(map.insert(key, key)),
                    }
                    ordered.put(key, key);
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        while !stop.load(Ordering::Relaxed) {
            let (len, of_ordered) = (map.len(), ordered.len());
            assert!(len <= 208 && of_ordered <= 204, "{len} {of_ordered}");
        }
    });
    assert_eq!((map.len(), ordered.len()), (200, 200));
}

/// Returns how many of 100 look-ups find a pair, where a missing one is inserted.
fn hits_of_100(exponent: f64, mut get: impl FnMut(u64) -> bool) -> f64 {
    let (mut sums, mut sum) = (Vec::new(), 0.0);
    for rank in 1..=100_000 {
        sum += f64::from(rank).powf(-exponent);
        sums.push(sum);
    }
    let (mut random, mut hits, rounds) = (fastrand::Rng::with_seed(11), 0, 400_000);
    for _ in 0..rounds {
        let wanted = random.f64() * sum;
        hits += u32::from(get(sums.partition_point(|sum| *sum < wanted) as u64));
    }
    f64::from(hits) * 100.0 / f64::from(rounds)
}

/// Checks the ratio of hits against an exact LRU of the same size in the same run.
#[test]
fn more_look_ups_hit_than_with_an_lru() {
    let _alone = alone();
    for exponent in [0.9, 1.0] {
        let map = of_len(1_000);
        let ours = hits_of_100(exponent, |key| {
            let is_there = map.get(key).is_some();
            if !is_there {
                map.put(key, key);
            }
            is_there
        });
        // The time of the last use of each key, and the keys by it.
        let lru = RefCell::new((BTreeMap::new(), BTreeMap::new(), 0_u64));
        let theirs = hits_of_100(exponent, |key| {
            let (uses, order, time) = &mut *lru.borrow_mut();
            *time += 1;
            let last = uses.insert(key, *time);
            last.map(|last| order.remove(&last));
            order.insert(*time, key);
            if uses.len() > 1_000
                && let Some((_, oldest)) = order.pop_first()
            {
                uses.remove(&oldest);
            }
            last.is_some()
        });
        println!("Zipf {exponent}: {ours:.1} of 100, LRU {theirs:.1}");
        assert!(ours > theirs + 3.0, "{ours} of 100, LRU {theirs}");
    }
}
