//! Many threads on one unordered store: guarantees for readers while others write and the table
//! changes its layout.

use ats_mem::When;
use ats_mem::{Busy, Change, Plain, Provided, Record, RecordBox, Records, Release, SlotAnswer};
use ats_sync::{Guard, collect, pin};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const TIME: Duration = Duration::from_millis(400);

pub(crate) fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Calls `update`, and repeats it as long as a batch is in the way.
pub(crate) fn update<'g, R: Release>(
    table: &'g impl Records<R>,
    key: &[u8],
    guard: &'g Guard,
    mut decide: impl FnMut(Option<&'g Record<R>>) -> Change<R>,
) {
    while table.update(key, guard, &mut decide) == Err(Busy) {
        thread::yield_now();
    }
}

pub(crate) fn put<R: Release>(table: &impl Records<R>, key: &[u8], value: u64) {
    update(table, key, &pin(), |_| {
        Change::Put(RecordBox::new(key, &[value], true))
    });
}

pub(crate) fn remove<R: Release>(table: &impl Records<R>, key: &[u8]) {
    update(table, key, &pin(), |_| Change::Remove);
}

/// Runs `work` in each of `threads` threads repeatedly until the time is over or one panics. `work`
/// gets the number of the thread and of the round.
pub(crate) fn hammer(threads: usize, work: impl Fn(usize, u64) + Sync) {
    let stop = AtomicBool::new(false);
    let end = Instant::now() + TIME;
    thread::scope(|scope| {
        for number in 0..threads {
            let (work, stop) = (&work, &stop);
            scope.spawn(move || {
                let panicking = StopOnPanic(stop);
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) && Instant::now() < end {
                    work(number, round);
                    round += 1;
                }
                drop(panicking);
            });
        }
    });
}

pub(crate) struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Adds a wave of keys of its own for each writer and takes them away, so that the table grows and
/// shrinks by a factor of several.
pub(crate) fn wave<R: Release>(table: &impl Records<R>, writer: usize, round: u64) {
    let base = 1_000_000 * (writer as u64 + 1);
    let size = 50 << (round % 6);
    for number in base..base + size {
        put(table, &key(number), number);
    }
    for number in base..base + size {
        remove(table, &key(number));
    }
}

pub(crate) const STABLE: u64 = 300;

pub(crate) fn with_stable_keys<S: Records<Plain> + Default>() -> S {
    let table = S::default();
    for number in 0..STABLE {
        put(&table, &key(number), number);
    }
    table
}

pub(crate) fn a_lookup_never_misses_a_key_that_stays<S: Records<Plain> + Default>() {
    let table = with_stable_keys::<S>();
    hammer(4, |thread, round| match thread {
        0 | 1 => wave(&table, thread, round),
        _ => {
            for number in 0..STABLE {
                let guard = pin();
                let record = table.get(&key(number), &guard);
                assert_eq!(record.expect("a stable key").value(), [number]);
            }
        }
    });
    assert_eq!(table.len() as u64, STABLE);
}

pub(crate) fn a_key_that_is_replaced_is_never_missed<S: Records<Plain> + Default>() {
    let table = with_stable_keys::<S>();
    hammer(4, |thread, round| match thread {
        0 => wave(&table, thread, round),
        1 => (0..STABLE).for_each(|number| put(&table, &key(number), number + STABLE * round)),
        _ => {
            for number in 0..STABLE {
                let guard = pin();
                let record = table.get(&key(number), &guard);
                assert_eq!(record.expect("a stable key").value()[0] % STABLE, number);
            }
        }
    });
}

pub(crate) fn a_scan_meets_every_key_that_stays_once<S: Records<Plain> + Default>() {
    let table = with_stable_keys::<S>();
    hammer(4, |thread, round| match thread {
        0 | 1 => wave(&table, thread, round),
        _ => {
            let mut met = HashSet::new();
            let guard = pin();
            let done = table.scan(None, When::NOW, &guard, &mut |record| {
                assert!(met.insert(record.key()), "a key twice");
                ControlFlow::Continue(())
            });
            assert_eq!(done, Ok(()));
            assert!((0..STABLE).all(|number| met.contains(&key(number)[..])));
        }
    });
}

pub(crate) fn a_fixed_walk_goes_on_from_deleted_keys<S: Records<Plain> + Default>() {
    let table = with_stable_keys::<S>();
    hammer(4, |thread, round| match thread {
        0 | 1 => wave(&table, thread, round),
        _ => {
            table.fix();
            let mut met = HashSet::new();
            let mut here = table.first(&pin()).map(|record| record.key().to_vec());
            while let Some(key) = here {
                // Each step has its own guard: only the key is carried over.
                let guard = pin();
                let next = table.next(&key, &guard).expect("fixed");
                here = next.map(|record| record.key().to_vec());
                assert!(met.insert(key), "a key twice");
            }
            table.unfix();
            table.tidy(usize::MAX, &pin());
            assert!((0..STABLE).all(|number| met.contains(&key(number)[..])));
        }
    });
    assert_eq!(table.len() as u64, STABLE);
}

/// The keys of all slots, in their order.
pub(crate) fn slots<R: Release>(table: &impl Records<R>) -> Vec<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    loop {
        let mut keys = Vec::new();
        match table.slot(all.len(), &pin(), &mut |record| {
            keys.push(record.key().to_vec());
        }) {
            SlotAnswer::Here => all.push(keys),
            SlotAnswer::End => break,
            SlotAnswer::Beyond => unreachable!("the end comes first"),
        }
    }
    let behind = table.slot(all.len() + 1, &pin(), &mut |_| panic!("there is nothing"));
    assert_eq!(behind, SlotAnswer::Beyond);
    all
}

pub(crate) fn slots_divide_the_table<S: Records<Plain> + Default>() {
    let table = S::default();
    for count in [0, 1, 100, 10_000] {
        for number in 0..count {
            put(&table, &key(number), number);
        }
        let mut keys: Vec<_> = slots(&table).into_iter().flatten().collect();
        keys.sort_unstable();
        let expected: Vec<_> = (0..count).map(|number| key(number).to_vec()).collect();
        assert_eq!(keys, expected);
    }
}

pub(crate) fn slots_of_a_fixed_table_stay<S: Records<Plain> + Default>() {
    let table = S::default();
    for number in 0..1000 {
        put(&table, &key(number), number);
    }
    table.fix();
    let before = slots(&table);
    let stays = |slots: &[Vec<Vec<u8>>]| -> Vec<Vec<Vec<u8>>> {
        let stays = |keys: &Vec<Vec<u8>>| {
            let stays = keys.iter().filter(|own| **own < key(100).to_vec());
            stays.cloned().collect()
        };
        slots.iter().map(stays).collect()
    };
    for number in 1000..50_000 {
        put(&table, &key(number), number);
    }
    assert_eq!(stays(&slots(&table)), stays(&before), "after growing");
    for number in 100..50_000 {
        remove(&table, &key(number));
    }
    assert_eq!(slots(&table), stays(&before), "after shrinking");
    table.unfix();
    assert!(table.tidy(usize::MAX, &pin()));
    for number in 0..100 {
        put(&table, &key(number), number);
    }
    assert!(slots(&table).len() != before.len());
}

pub(crate) fn updates_of_one_key_are_atomic<S: Records<Plain> + Default>() {
    const COUNTERS: u64 = 4;
    let table = S::default();
    let added = AtomicUsize::new(0);
    hammer(4, |thread, round| {
        if thread == 0 {
            wave(&table, thread, round);
        }
        for number in 0..100 {
            let key = key(number % COUNTERS);
            update(&table, &key, &pin(), |current| {
                let value = current.map_or(0, |record| record.value()[0]);
                Change::Put(RecordBox::new(&key, &[value + 1], false))
            });
            added.fetch_add(1, Ordering::Relaxed);
        }
    });
    let guard = pin();
    let value = |number| table.get(&key(number), &guard).map_or(0, |r| r.value()[0]);
    let sum: u64 = (0..COUNTERS).map(value).sum();
    assert_eq!(sum as usize, added.into_inner());
}

pub(crate) fn of_two_that_insert_a_key_one_wins<S: Records<Plain> + Default>() {
    let table = S::default();
    let (won, lost) = (AtomicI64::new(0), AtomicI64::new(0));
    hammer(3, |_, round| {
        for number in 0..64 {
            let key = key(round % 8 * 64 + number);
            update(&table, &key, &pin(), |current| match current {
                None => {
                    won.fetch_add(1, Ordering::Relaxed);
                    Change::Put(RecordBox::new(&key, &[0], false))
                }
                Some(_) => {
                    lost.fetch_add(1, Ordering::Relaxed);
                    Change::Remove
                }
            });
        }
    });
    assert_eq!(
        table.len() as i64,
        won.into_inner() - lost.into_inner(),
        "a key was inserted twice or removed twice"
    );
}

/// Each batch writes one number to all keys. Numbers ascend, so a reader that has read a number
/// from one key must not read a smaller one from another afterwards.
pub(crate) fn a_batch_is_never_half_seen<S: Records<Plain> + Default>() {
    const KEYS: u64 = 12;
    let table = S::default();
    let keys: Vec<_> = (0..KEYS).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    let turn = AtomicUsize::new(1);
    let committed = AtomicUsize::new(0);
    hammer(5, |thread, round| match thread {
        0 => wave(&table, thread, round),
        1 | 2 => {
            let guard = pin();
            let mut value = 0;
            let abort = round % 5 == 4;
            let done = table.update_many(&keys, &guard, &mut |index, current| {
                let old = current.map_or(0, |record| record.value()[0]);
                // A batch holds all keys from the first one on, so the next value is safe.
                value = if index == 0 { old + 1 } else { value };
                assert_eq!(old + 1, value, "another batch came between");
                if abort && index == KEYS as usize - 1 {
                    Change::Abort
                } else {
                    Change::Put(RecordBox::new(keys[index], &[value], false))
                }
            });
            match done {
                Ok(true) => committed.fetch_max(value as usize, Ordering::Relaxed),
                Ok(false) => {
                    assert!(abort);
                    0
                }
                Err(Busy) => 0,
            };
        }
        _ => {
            let order = |index: u64| {
                if turn.load(Ordering::Relaxed).is_multiple_of(2) {
                    index
                } else {
                    KEYS - 1 - index
                }
            };
            turn.fetch_add(1, Ordering::Relaxed);
            let (mut last, mut seen) = (0, false);
            for index in 0..KEYS {
                let guard = pin();
                let record = table.get(&key(order(index)), &guard);
                let value = record.map_or(0, |record| record.value()[0]);
                assert!(value >= last, "{value} after {last}");
                assert!(record.is_some() || !seen, "absent after present");
                (last, seen) = (value, record.is_some());
            }
        }
    });
    let guard = pin();
    let last = committed.into_inner() as u64;
    assert!(last > 0);
    for key in keys {
        assert_eq!(table.get(key, &guard).expect("written").value(), [last]);
    }
}

/// Values that count the live ones.
pub(crate) struct Counted<const TEST: usize>;

/// Number of live values, for each of the tests that count.
pub(crate) static ALIVE: [AtomicI64; 2] = [const { AtomicI64::new(0) }; 2];

impl<const TEST: usize> Release for Counted<TEST> {
    unsafe fn release(value: &[u64]) {
        assert_eq!(value.len(), 1, "a released value is intact");
        ALIVE[TEST].fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn counted_record<const TEST: usize>(key: &[u8]) -> RecordBox<Counted<TEST>> {
    ALIVE[TEST].fetch_add(1, Ordering::Relaxed);
    RecordBox::new(key, &[7], true)
}

pub(crate) fn every_record_is_released_once<
    S: Records<Counted<TEST>> + Default,
    const TEST: usize,
>() {
    let table = S::default();
    hammer(4, |thread, round| {
        let keys: Vec<_> = (0..8).map(|n| key(round % 50 * 8 + n)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
        match thread {
            0 => {
                let guard = pin();
                // Values that were not taken, for example because of `Busy`, are dropped.
                let _ = table.update_many(&keys, &guard, &mut |index, _| {
                    if round % 3 == 0 && index == 7 {
                        Change::Abort
                    } else {
                        Change::Put(counted_record(keys[index]))
                    }
                });
            }
            1 => {
                table.fix();
                for key in keys {
                    remove(&table, key);
                }
                table.unfix();
                table.tidy(usize::MAX, &pin());
            }
            2 => keys.iter().for_each(|key| remove(&table, key)),
            _ => keys
                .iter()
                .for_each(|key| update(&table, key, &pin(), |_| Change::Put(counted_record(key)))),
        }
    });
    let live = table.len() as i64;
    wait_until_alive::<TEST>(live);
    drop(table);
    wait_until_alive::<TEST>(0);
}

/// Waits until this many values are alive. Other tests of this process hold guards now and then,
/// which delay the freeing of garbage.
pub(crate) fn wait_until_alive<const TEST: usize>(expected: i64) {
    let end = Instant::now() + Duration::from_secs(20);
    while ALIVE[TEST].load(Ordering::Relaxed) != expected && Instant::now() < end {
        collect();
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(ALIVE[TEST].load(Ordering::Relaxed), expected);
}

/// The tests, for each store.
macro_rules! tests_of {
    ($module:ident, $store:ident, $number:literal) => {
        mod $module {
            use super::$store;
            use crate::stores::unordered as checks;
            use ats_mem::Plain;

            #[test]
            fn a_lookup_never_misses_a_key_that_stays() {
                checks::a_lookup_never_misses_a_key_that_stays::<$store<Plain>>();
            }

            #[test]
            fn a_key_that_is_replaced_is_never_missed() {
                checks::a_key_that_is_replaced_is_never_missed::<$store<Plain>>();
            }

            #[test]
            fn a_scan_meets_every_key_that_stays_once() {
                checks::a_scan_meets_every_key_that_stays_once::<$store<Plain>>();
            }

            #[test]
            fn a_fixed_walk_goes_on_from_deleted_keys() {
                checks::a_fixed_walk_goes_on_from_deleted_keys::<$store<Plain>>();
            }

            #[test]
            fn slots_divide_the_table() {
                checks::slots_divide_the_table::<$store<Plain>>();
            }

            #[test]
            fn slots_of_a_fixed_table_stay() {
                checks::slots_of_a_fixed_table_stay::<$store<Plain>>();
            }

            #[test]
            fn updates_of_one_key_are_atomic() {
                checks::updates_of_one_key_are_atomic::<$store<Plain>>();
            }

            #[test]
            fn of_two_that_insert_a_key_one_wins() {
                checks::of_two_that_insert_a_key_one_wins::<$store<Plain>>();
            }

            #[test]
            fn a_batch_is_never_half_seen() {
                checks::a_batch_is_never_half_seen::<$store<Plain>>();
            }

            #[test]
            fn every_record_is_released_once() {
                type Counted = checks::Counted<$number>;
                checks::every_record_is_released_once::<$store<Counted>, $number>();
            }
        }
    };
}

pub(crate) use tests_of;
