//! Tests of expiry beside other threads, and of the memory of what has expired.

use crate::{UNIT, alone, units};
use ats::terms::advance_clock;
use ats::{HashMap, Limited, OrderedMap, TimeLeft};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Waits until a condition holds that the background thread brings about.
fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "it does not come about");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn memory_of_expired_pairs_comes_back_without_a_call() {
    let _alone = alone();
    let map: OrderedMap<u64, String, Limited> = OrderedMap::builder().ttl(UNIT).build();
    let hash: HashMap<u64, String, Limited> = HashMap::builder().ttl(UNIT).build();
    let empty = map.memory() + hash.memory();
    for number in 0..20_000 {
        map.insert(number, "a text that takes some room");
        hash.insert(number, "a text that takes some room");
    }
    assert!(map.memory() + hash.memory() > empty + 2 * 20_000 * 60);
    advance_clock(UNIT);
    wait_until(|| map.expired() + hash.expired() == 40_000);
    assert!(map.memory() + hash.memory() < empty + 400_000);
    assert_eq!((map.evicted(), hash.evicted()), (0, 0));
}

/// Values of a map with limits have a byte before them, so their lengths are tried one by one.
#[test]
fn values_of_all_lengths_come_back() {
    let _alone = alone();
    let map: HashMap<u64, Vec<u8>, Limited> = HashMap::builder().ttl(UNIT).build();
    let (small, numbers): (HashMap<u8, (), Limited>, HashMap<u8, u64, Limited>) =
        (HashMap::builder().build(), HashMap::builder().build());
    for len in (0..70).chain([255, 1_000, 100_000, 3_000_000]) {
        let value: Vec<u8> = (0..len).map(|at| at as u8 ^ 0x5A).collect();
        map.insert(len, &value);
        assert_eq!(map.get(len), Some(value));
    }
    assert_eq!(
        map.iter().map(|(_, value)| value.len()).max(),
        Some(3_000_000)
    );
    small.insert(1, ());
    numbers.insert(1, u64::MAX);
    assert_eq!((small.get(1), numbers.get(1)), (Some(()), Some(u64::MAX)));
    assert_eq!(
        numbers.compute(1, |old| old.map(|old| old - 1)),
        Some(u64::MAX - 1)
    );
}

#[test]
fn short_times_end_by_themselves() {
    let _alone = alone();
    let map: HashMap<u8, u8, Limited> = HashMap::builder().build();
    map.insert(1, 1);
    map.insert_for(2, 2, Duration::ZERO);
    assert_eq!(map.time_left(1), Some(TimeLeft::Forever));
    wait_until(|| map.get(2).is_none());
    assert_eq!((map.len(), map.get(1)), (1, Some(1)));
    assert!(map.touch_for(1, Duration::ZERO));
    wait_until(|| map.is_empty());
    assert!(!map.touch(1));
    assert_eq!(map.time_left(1), None);
}

#[test]
fn a_snapshot_keeps_what_had_not_expired_at_its_moment() {
    let _alone = alone();
    let map: OrderedMap<u8, u8, Limited> = OrderedMap::builder().ttl(units(1)).build();
    map.insert_many([(1, 1), (2, 2)]);
    advance_clock(UNIT);
    map.insert(3, 3);
    let before = map.snapshot();
    advance_clock(UNIT);
    assert_eq!(map.iter().collect::<Vec<_>>(), [(3, 3)]);
    assert_eq!(
        (before.len(), before.iter().count(), before.get(1)),
        (3, 3, Some(1))
    );
    assert_eq!(map.snapshot().iter().collect::<Vec<_>>(), [(3, 3)]);
}

/// A cleared map has the limits that it had before, and its counts begin anew.
#[test]
fn a_cleared_map_keeps_its_limits() {
    let _alone = alone();
    let map: HashMap<u64, u64, Limited> = HashMap::builder().ttl(units(1)).max_len(10).build();
    map.extend_by(0..100);
    assert_eq!((map.len(), map.evicted()), (10, 90));
    map.clear();
    assert_eq!((map.len(), map.evicted(), map.expired()), (0, 0, 0));
    map.extend_by(0..100);
    assert_eq!((map.len(), map.evicted()), (10, 90));
    advance_clock(UNIT * 2);
    assert_eq!((map.len(), map.expired()), (0, 10));
}

trait ExtendBy {
    fn extend_by(&self, keys: std::ops::Range<u64>);
}

impl ExtendBy for HashMap<u64, u64, Limited> {
    fn extend_by(&self, keys: std::ops::Range<u64>) {
        keys.for_each(|key| {
            self.put(key, key);
        });
    }
}

/// Checks that a map is empty at last, whatever writers and readers do while its pairs expire.
#[test]
fn nothing_stays_after_races_of_inserts_and_expiry() {
    let _alone = alone();
    let map: HashMap<u64, u64, Limited> = HashMap::builder().idle(units(2)).max_len(50).build();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (map, stop) = (&map, &stop);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for round in 0..30_000 {
                    let key = random.u64(..100);
                    match random.u32(..6) {
                        0 => drop(map.insert(key, round)),
                        1 => drop(map.remove(key)),
                        2 => drop(map.insert_for(key, round, units(random.u64(..3)))),
                        3 => drop(map.get_or_insert_with(key, || round)),
                        4 => drop(map.touch(key)),
                        _ => drop(map.get(key)),
                    }
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        while !stop.load(Ordering::Relaxed) {
            advance_clock(UNIT / 4);
            assert!(map.len() <= 53);
        }
    });
    advance_clock(UNIT * 4);
    assert_eq!((map.len(), map.iter().count()), (0, 0));
    wait_until(|| map.memory() < 100_000);
}
