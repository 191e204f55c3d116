//! Records taken from the ends of stores: one after the other, and by many threads.
#![cfg(not(shuttle))]

use ats_mem::{Busy, Change, End, Plain, Provided, RecordBox, Records};
use ats_sync::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

pub(crate) fn put(store: &impl Records<Plain>, number: u64) {
    let key = number.to_be_bytes();
    let done = store.update(&key, &pin(), &mut |_| {
        Change::Put(RecordBox::new(&key, &[number], false))
    });
    assert_eq!(done, Ok(()));
}

pub(crate) fn take(store: &impl Records<Plain>, end: End) -> Option<u64> {
    loop {
        let (guard, mut taken) = (pin(), None);
        let done = store.update_end(end, &guard, &mut |current| match current {
            None => Change::Keep,
            Some(record) => {
                taken = Some(record.value()[0]);
                Change::Remove
            }
        });
        // A neighbour to be joined may be held for long by a thread that sleeps.
        match done {
            Ok(()) => return taken,
            Err(Busy) => assert_eq!(taken, None),
        }
    }
}

/// Consumers that never meet: each number comes out once, and to each consumer in ascending order,
/// since nothing smaller is ever put.
pub(crate) fn each_number_goes_to_one(store: impl Records<Plain> + Default, ordered: bool) {
    const NUMBERS: u64 = 20_000;
    const CONSUMERS: usize = 3;
    store.force_adaptation(3, 5);
    let produced = AtomicU64::new(0);
    let taken: Vec<Vec<u64>> = thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=NUMBERS {
                put(&store, number);
                produced.store(number, Ordering::Release);
            }
        });
        let consumer = || {
            let mut mine = Vec::new();
            loop {
                let done = produced.load(Ordering::Acquire) == NUMBERS;
                match take(&store, End::First) {
                    Some(number) => mine.push(number),
                    None if done => return mine,
                    None => thread::yield_now(),
                }
            }
        };
        let consumers: Vec<_> = (0..CONSUMERS).map(|_| scope.spawn(consumer)).collect();
        let join =
            |consumer: thread::ScopedJoinHandle<'_, Vec<u64>>| consumer.join().expect("a consumer");
        consumers.into_iter().map(join).collect()
    });
    if ordered {
        let ascends = |numbers: &Vec<u64>| numbers.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(taken.iter().all(ascends));
    }
    let mut all = taken.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(1..=NUMBERS));
    assert_eq!(store.len(), 0);
}
