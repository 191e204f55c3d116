//! Deleted records do not stay, and do not make reads slow.

use crate::append::Append;
use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use crate::{all, open, wait_for};
use ats_disk::{Batch, DiskStore, Options};
use ats_store::{Direction, KeyRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn options() -> Options {
    Options::new()
        .operator(Arc::new(Append))
        .background(false)
        .memtable_bytes(1 << 30)
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn range<'k>(low: &'k [u8], high: &'k [u8]) -> KeyRange<'k> {
    KeyRange {
        low: Some(low),
        high: Some(high),
    }
}

/// Writes these keys, and a run of them.
fn load(store: &DiskStore, keys: std::ops::Range<u32>) {
    let mut batch = Batch::new();
    for number in keys {
        batch.put(&key(number), &[7; 100]).expect("short");
    }
    store.write(&batch).expect("written");
    store.flush().expect("flushed");
}

/// Returns the number of entries of the runs.
fn entries(store: &DiskStore) -> u64 {
    store.info().runs.iter().map(|run| run.entries).sum()
}

/// A file of which no other run has keys is taken as it is, but not with deletes and operands in
/// it.
#[test]
fn deletes_and_operands_of_keys_that_no_other_run_has_vanish() {
    let directory = Directory::new();
    let options = options().file_bytes(1000);
    let store = open(directory.path(), &options);
    load(&store, 0..100);
    for number in 1000..3000 {
        store.delete(&key(number)).expect("written");
    }
    for number in 3000..4000 {
        store.merge(&key(number), b"x").expect("written");
    }
    store.flush().expect("flushed");
    assert_eq!(entries(&store), 3100);
    store.compact().expect("compacted");
    assert_eq!(entries(&store), 1100);
    assert_eq!(all(&store).len(), 1100);
    // An operand stays one in a key of another run.
    store.merge(&key(3000), b"y").expect("written");
    assert_eq!(store.get(&key(3000)), Ok(Some(b"xy".to_vec())));
}

/// A walk does not read records in a deleted range.
#[test]
fn walks_pass_deleted_ranges() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let directory = Directory::new();
    let options = options()
        .file_system(HookedFs::new(move |call, _| {
            counted.fetch_add(usize::from(call == Call::Read), Ordering::Relaxed);
            Ok(())
        }))
        .cache_bytes(0);
    let store = open(directory.path(), &options);
    load(&store, 0..50_000);
    let ends = |expected: Option<(u32, u32)>| {
        let before = reads.load(Ordering::Relaxed);
        let end = |direction| {
            let mut scan = store
                .scan_lending(KeyRange::default(), direction)
                .expect("a scan");
            let record = scan.next().expect("scanned");
            record.map(|(key, _)| u32::from_be_bytes(key.try_into().expect("4 bytes")))
        };
        let ends = end(Direction::Up).zip(end(Direction::Down));
        assert_eq!(ends, expected);
        reads.load(Ordering::Relaxed) - before
    };
    assert!(ends(Some((0, 49_999))) < 10);
    store
        .delete_range(range(&key(0), &key(20_000)))
        .expect("written");
    store
        .delete_range(range(&key(30_000), &key(50_000)))
        .expect("written");
    assert!(ends(Some((20_000, 29_999))) < 20);
    store.flush().expect("flushed");
    assert!(ends(Some((20_000, 29_999))) < 20);
    // A record that is newer than the delete is there, also in the midst of it.
    store.put(&key(100), b"x").expect("written");
    store.put(&key(40_000), b"x").expect("written");
    assert!(ends(Some((100, 40_000))) < 20);
    assert_eq!(all(&store).len(), 10_002);
    store.delete_range(KeyRange::default()).expect("written");
    assert!(ends(None) < 20);
    store.flush().expect("flushed");
    // Nor does a merge.
    let before = reads.load(Ordering::Relaxed);
    store.compact().expect("compacted");
    assert!(reads.load(Ordering::Relaxed) - before < 50);
    assert_eq!(entries(&store), 0);
}

/// Deletes are small beside the records that they delete; still they are a reason to compact.
#[test]
fn deleted_records_are_compacted_away() {
    let whole = KeyRange::default();
    for by_range in [true, false] {
        let directory = Directory::new();
        let options = options().background(true);
        let store = open(directory.path(), &options);
        load(&store, 0..20_000);
        if by_range {
            store.delete_range(whole).expect("written");
        } else {
            let mut batch = Batch::new();
            for number in 0..20_000 {
                batch.delete(&key(number)).expect("short");
            }
            store.write(&batch).expect("written");
        }
        store.flush().expect("flushed");
        assert!(wait_for(|| store.info().file_bytes == 0), "{by_range}");
        assert!(all(&store).is_empty());
    }
}

/// Merging runs with very many deleted ranges takes as long as sorting them.
#[test]
fn many_deleted_ranges_are_merged_quickly() {
    const RANGES: u32 = 40_000;
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    load(&store, 0..10);
    for run in 0..4 {
        let mut batch = Batch::new();
        for number in 0..RANGES {
            let low = 100 + 40 * number + 10 * run;
            let (low, high) = (key(low), key(low + 5));
            batch.delete_range(range(&low, &high)).expect("short");
        }
        store.write(&batch).expect("written");
        store.put(&key(run), b"new").expect("written");
        store.flush().expect("flushed");
    }
    let start = Instant::now();
    while store.work().expect("merged") {}
    store.compact().expect("compacted");
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(all(&store).len(), 10);
}
