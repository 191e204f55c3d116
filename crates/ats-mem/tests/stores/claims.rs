//! A slow change holds only its key, and ends cleanly after any event in the middle.

use ats_mem::When;
use ats_mem::{
    Busy, Change, End, Plain, Provided, Record, RecordBox, Records, Release, SlotAnswer,
};
use ats_sync::pin;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, Ordering};

pub(crate) const KEYS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

pub(crate) fn value<R: Release>(store: &impl Records<R>, key: &[u8]) -> Option<u64> {
    store.get(key, &pin()).map(|record| record.value()[0])
}

pub(crate) fn put<R: Release>(store: &impl Records<R>, key: &[u8], value: u64) -> Result<(), Busy> {
    store.update(key, &pin(), &mut |_| {
        Change::Put(RecordBox::new(key, &[value], true))
    })
}

pub(crate) fn scan_all(store: &impl Records<Plain>) -> Vec<(Vec<u8>, u64)> {
    let mut all = Vec::new();
    let walked = store.scan(None, When::NOW, &pin(), &mut |record| {
        all.push((record.key().to_vec(), record.value()[0]));
        ControlFlow::Continue(())
    });
    assert_eq!(walked, Ok(()));
    all.sort();
    all
}

/// Readers of a held key find the old record, and its writers are busy. Other keys go on, even
/// those that share its lock.
pub(crate) fn others_go_on(store: impl Records<Plain>) {
    for key in [b"a", b"c", b"d"] {
        put(&store, key, 1).expect("free");
    }
    let (guard, mut decided) = (pin(), 0);
    let changed = store.update_alone(b"a", &guard, &mut |current| {
        decided += 1;
        assert_eq!(current.map(|record| record.value()[0]), Some(1));
        // All these calls would wait for ever if a lock were held.
        assert_eq!(value(&store, b"a"), Some(1));
        assert_eq!(put(&store, b"a", 7), Err(Busy));
        assert_eq!(
            store.update_alone(b"a", &pin(), &mut |_| Change::Remove),
            Err(Busy)
        );
        let batch = store.update_many(&KEYS[..2], &pin(), &mut |index, _| {
            Change::Put(RecordBox::new(KEYS[index], &[9], false))
        });
        assert_eq!(batch, Err(Busy));
        assert_eq!(put(&store, b"b", 2), Ok(()));
        assert_eq!(put(&store, b"c", 3), Ok(()));
        let removed = store.update(b"d", &pin(), &mut |_| Change::Remove);
        assert_eq!(removed, Ok(()));
        let found = scan_all(&store);
        let found: Vec<_> = found
            .iter()
            .map(|(key, value)| (&key[..], *value))
            .collect();
        assert_eq!(found, [(KEYS[0], 1), (KEYS[1], 2), (KEYS[2], 3)]);
        Change::Put(RecordBox::new(b"a", &[5], false))
    });
    assert_eq!((changed, decided), (Ok(()), 1));
    assert_eq!(
        KEYS.map(|key| value(&store, key)),
        [Some(5), Some(2), Some(3), None]
    );
    assert_eq!(store.len(), 3);
    assert_eq!(put(&store, b"a", 6), Ok(()));
    assert_eq!(value(&store, b"a"), Some(6));
}

/// Checks each decision about a key that is there, or missing.
pub(crate) fn each_way_out(store: impl Records<Plain>) {
    let decide = |key: &[u8], found: Option<u64>, change: fn(&[u8]) -> Change<Plain>| {
        let guard = pin();
        let done = store.update_alone(key, &guard, &mut |current: Option<&Record<Plain>>| {
            assert_eq!(current.map(|record| record.value()[0]), found);
            assert_eq!(value(&store, key), found);
            change(key)
        });
        assert_eq!(done, Ok(()));
    };
    let bytes = store.bytes();
    decide(b"a", None, |_| Change::Keep);
    decide(b"a", None, |_| Change::Remove);
    assert_eq!((value(&store, b"a"), store.len()), (None, 0));
    decide(b"a", None, |key| {
        Change::Put(RecordBox::new(key, &[1], false))
    });
    assert_eq!((value(&store, b"a"), store.len()), (Some(1), 1));
    decide(b"a", Some(1), |_| Change::Keep);
    decide(b"a", Some(1), |key| {
        Change::Put(RecordBox::new(key, &[2; 300], false))
    });
    assert_eq!((value(&store, b"a"), store.len()), (Some(2), 1));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        decide(b"a", Some(2), |_| panic!("in the middle"));
    }));
    assert!(panicked.is_err());
    assert_eq!((value(&store, b"a"), store.len()), (Some(2), 1));
    decide(b"a", Some(2), |_| Change::Remove);
    assert_eq!((value(&store, b"a"), store.len()), (None, 0));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        decide(b"a", None, |_| panic!("in the middle"));
    }));
    assert!(panicked.is_err());
    assert_eq!((value(&store, b"a"), store.len()), (None, 0));
    assert_eq!(store.bytes(), bytes);
}

/// Keys that are removed, and come back, in this way while the store is fixed are known to walks.
pub(crate) fn a_walk_goes_on_from_a_key_that_is_removed(store: impl Records<Plain>) {
    let numbers = || (0..100_u64).map(u64::to_be_bytes);
    for key in numbers() {
        put(&store, &key, 1).expect("free");
    }
    store.fix();
    let guard = pin();
    let mut met = 0;
    let mut next = store.first(&guard);
    while let Some(record) = next {
        met += 1;
        let key = record.key();
        assert_eq!(
            store.update_alone(key, &guard, &mut |_| Change::Remove),
            Ok(())
        );
        if met % 2 == 0 {
            let put = |_: Option<&Record<Plain>>| Change::Put(RecordBox::new(key, &[2], false));
            assert_eq!(store.update_alone(key, &guard, &mut { put }), Ok(()));
        }
        next = store.next(key, &guard).expect("known");
    }
    assert_eq!((met, store.len()), (100, 50));
    store.unfix();
    while !store.tidy(10, &guard) {}
    assert_eq!(store.len(), 50);
    let found = numbers()
        .filter(|key| value(&store, key) == Some(2))
        .count();
    assert_eq!(found, 50);
}

/// A call for the record at an end waits while it is held, and does not take the next one instead.
pub(crate) fn the_end_is_held(store: impl Records<Plain>, ordered: bool) {
    put(&store, b"a", 1).expect("free");
    if ordered {
        put(&store, b"b", 2).expect("free");
    }
    let done = store.update_alone(b"a", &pin(), &mut |_| {
        let taken = store.update_end(End::First, &pin(), &mut |_| Change::Remove);
        assert_eq!(taken, Err(Busy));
        Change::Keep
    });
    assert_eq!(done, Ok(()));
    let mut taken = None;
    let done = store.update_end(End::First, &pin(), &mut |current| {
        taken = current.map(|record| record.value()[0]);
        Change::Remove
    });
    assert_eq!((done, taken), (Ok(()), Some(1)));
    let mut slots = 0;
    while store.slot(slots, &pin(), &mut |_| ()) == SlotAnswer::Here {
        slots += 1;
    }
    assert_eq!(store.len(), usize::from(ordered));
}

/// Values that count owned units: each record owns as many units as its value.
pub(crate) struct Units;

pub(crate) static UNITS: AtomicI64 = AtomicI64::new(0);

impl Release for Units {
    unsafe fn release(value: &[u64]) {
        UNITS.fetch_add(value[0] as i64, Ordering::Relaxed);
    }
}

pub(crate) fn each_record_is_released_once(store: impl Records<Units>) -> i64 {
    let alone = |value: Option<u64>| {
        let done = store.update_alone(b"k", &pin(), &mut |_| match value {
            Some(0) => Change::Keep,
            Some(value) => Change::Put(RecordBox::new(b"k", &[value], true)),
            None => Change::Remove,
        });
        assert_eq!(done, Ok(()));
    };
    // The values are kept, replaced, removed, and dropped with the store.
    for value in [
        Some(1),
        Some(0),
        Some(10),
        None,
        Some(100),
        Some(0),
        Some(1000),
    ] {
        alone(value);
    }
    drop(store);
    1111
}

pub(crate) fn wait_until_released(expected: i64) {
    // Other tests of this program may hold back the epoch for a moment.
    for _ in 0..1000 {
        ats_sync::collect();
        if UNITS.load(Ordering::Relaxed) >= expected {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(UNITS.load(Ordering::Relaxed), expected);
}
