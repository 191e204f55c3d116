//! Batches end cleanly, whatever happens in the middle of them.

use ats_mem::{Backend, CaTree, Change, HashTable, Plain, Record, RecordBox, Release};
use ats_sync::{Guard, pin};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, Ordering};

fn value<R: Release>(store: &impl Backend<R>, key: &[u8]) -> Option<u64> {
    store.get(key, &pin()).map(|record| record.value()[0])
}

fn put<R: Release>(store: &impl Backend<R>, key: &[u8], value: u64, owns: bool) {
    let put = store.update(key, &pin(), &mut |_| {
        Change::Put(RecordBox::new(key, &[value], owns))
    });
    assert_eq!(put, Ok(()));
}

/// Puts `new` under each key, but answers the key with index `stop` by `last`.
fn batch<'g, R: Release>(
    store: &'g impl Backend<R>,
    keys: &[&[u8]],
    new: u64,
    owns: bool,
    guard: &'g Guard,
    stop: usize,
    mut last: impl FnMut() -> Change<R>,
) -> Result<bool, ats_mem::Busy> {
    store.update_many(
        keys,
        guard,
        &mut |index, _: Option<&Record<R>>| match index == stop {
            true => last(),
            false => Change::Put(RecordBox::new(keys[index], &[new], owns)),
        },
    )
}

/// Counts what is owned: each record owns as many units as its value says.
struct Units;

static UNITS: AtomicI64 = AtomicI64::new(0);

impl Release for Units {
    unsafe fn release(value: &[u64]) {
        UNITS.fetch_add(value[0] as i64, Ordering::Relaxed);
    }
}

const KEYS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

fn a_panic_undoes_the_batch(store: impl Backend<Plain>) {
    put(&store, b"b", 1, false);
    put(&store, b"d", 1, false);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        batch(&store, &KEYS, 2, false, &pin(), 2, || {
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    let found: Vec<Option<u64>> = KEYS.iter().map(|key| value(&store, key)).collect();
    assert_eq!(found, [None, Some(1), None, Some(1)]);
    assert_eq!(store.len(), 2);
    // No key is held any more, and batches work as before.
    for key in KEYS {
        put(&store, key, 3, false);
    }
    let done = batch(&store, &KEYS, 4, false, &pin(), 2, || Change::Keep);
    assert_eq!(done, Ok(true));
    assert_eq!(KEYS.map(|key| value(&store, key)), [4, 4, 3, 4].map(Some));
}

#[test]
fn a_panic_undoes_the_batch_in_the_tree() {
    a_panic_undoes_the_batch(CaTree::new());
}

#[test]
fn a_panic_undoes_the_batch_in_the_hash_table() {
    a_panic_undoes_the_batch(HashTable::new());
}

fn every_way_out_releases_once(store: impl Backend<Units>) -> i64 {
    let mut expected = 0;
    for key in KEYS {
        put(&store, key, 1, true);
        expected += 1;
    }
    let aborted = batch(&store, &KEYS, 10, true, &pin(), 3, || Change::Abort);
    assert_eq!(aborted, Ok(false));
    expected += 3 * 10;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        batch(&store, &KEYS, 100, true, &pin(), 1, || {
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    expected += 100;
    let done = batch(&store, &KEYS, 1000, true, &pin(), 9, || Change::Keep);
    assert_eq!(done, Ok(true));
    expected += 4 * 1000;
    drop(store);
    expected
}

#[test]
fn records_of_batches_release_what_they_own_once() {
    let expected = every_way_out_releases_once(CaTree::<Units>::new())
        + every_way_out_releases_once(HashTable::<Units>::new());
    // Other tests of this program may keep the epoch back for a moment.
    for _ in 0..1000 {
        ats_sync::collect();
        if UNITS.load(Ordering::Relaxed) >= expected {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(UNITS.load(Ordering::Relaxed), expected);
}
