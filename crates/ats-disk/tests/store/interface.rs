//! The functions of a store, one after the other, and their errors.

use crate::append::Append;
use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use crate::{all, collect, open};
use ats_disk::{Batch, Durability, Error, MAX_BYTES, Options};
use ats_store::{Direction, KeyRange};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn options() -> Options {
    Options::new().operator(Arc::new(Append)).background(false)
}

#[test]
fn long_keys_and_values_are_refused() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    // Pages that are never touched.
    let long = vec![0; MAX_BYTES + 1];
    let range = KeyRange {
        low: None,
        high: Some(&long),
    };
    let empty = KeyRange {
        low: Some(b"a"),
        high: Some(b"a"),
    };
    let too_long = |what| {
        let (len, limit) = (long.len(), MAX_BYTES);
        Err(Error::TooLong { what, len, limit })
    };
    assert_eq!(store.put(&long, b""), too_long("a key"));
    assert_eq!(store.put(b"k", &long), too_long("a value"));
    assert_eq!(store.merge(b"k", &long), too_long("a value"));
    assert_eq!(store.delete(&long), too_long("a key"));
    let text = too_long("a value").unwrap_err().to_string();
    assert_eq!(text, "a value has 2147418113 bytes, more than 2147418112");
    let mut batch = Batch::new();
    batch.put(b"k", b"v").expect("short");
    assert_eq!(batch.put(&long, b""), too_long("a key"));
    let half = &long[..MAX_BYTES / 2 + (1 << 15)];
    let (what, len, limit) = (
        "a batch",
        batch.bytes() + MAX_BYTES + (1 << 16),
        MAX_BYTES + (1 << 15),
    );
    assert_eq!(
        batch.put(half, half),
        Err(Error::TooLong { what, len, limit })
    );
    assert_eq!(batch.delete_range(empty), Ok(()));
    // A refused change is not part of the batch, and neither is an empty one.
    assert_eq!(batch.len(), 1);
    assert_eq!(store.write(&batch), Ok(()));
    assert_eq!(all(&store), [(b"k".to_vec(), b"v".to_vec())]);
    assert_eq!(store.delete_range(range), too_long("a bound of a range"));
    assert_eq!(store.get(&long), Ok(None));
}

#[test]
fn operands_need_an_operator() {
    let directory = Directory::new();
    let mut options = options();
    options.operator = None;
    let store = open(directory.path(), &options);
    assert_eq!(store.merge(b"k", b"v"), Err(Error::NoOperator));
    let mut batch = Batch::new();
    batch.put(b"other", b"v").expect("short");
    batch.merge(b"k", b"v").expect("short");
    assert_eq!(store.write(&batch), Err(Error::NoOperator));
    assert_eq!(all(&store), []);
    batch.clear();
    assert!(batch.is_empty());
    assert_eq!(store.write(&batch), Ok(()));
    assert_eq!(store.info().batches, 0);
}

#[test]
fn borrowed_keys_can_be_compared_with_others() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    for key in [b"a", b"b"] {
        store.put(key, key).expect("written");
        store.merge(key, b"+").expect("written");
        store.flush().expect("flushed");
        store.merge(key, b"+").expect("written");
    }
    let mut calls = 0;
    let found = store.get_with(b"a", &mut |a| {
        assert_eq!(a, b"a++");
        let inner = store.get_with(b"b", &mut |b| {
            assert_eq!((a, b), (&b"a++"[..], &b"b++"[..]));
            calls += 1;
        });
        assert_eq!(inner, Ok(true));
        assert_eq!(all(&store).len(), 2);
    });
    assert_eq!((found, calls), (Ok(true), 1));
    let missing = store.get_with(b"c", &mut |_| panic!("there is nothing to lend"));
    assert_eq!(missing, Ok(false));
}

#[test]
fn long_values_and_long_batches_are_kept() {
    let directory = Directory::new();
    let options = options()
        .memtable_bytes(1 << 20)
        .block_bytes(1000)
        .file_bytes(100_000)
        .cache_bytes(200_000);
    let store = open(directory.path(), &options);
    let value = |number: u8| vec![number; 700_000 + usize::from(number)];
    let mut batch = Batch::new();
    for number in 0..5 {
        batch.put(&[number], &value(number)).expect("short");
    }
    assert!(batch.bytes() > 3 << 20);
    store.write(&batch).expect("written");
    store
        .put(&vec![9; 300_000], b"a long key")
        .expect("written");
    let check = |store: &ats_disk::DiskStore| {
        for number in 0..5 {
            assert_eq!(store.get(&[number]), Ok(Some(value(number))));
        }
        assert_eq!(
            store.get(&vec![9; 300_000]),
            Ok(Some(b"a long key".to_vec()))
        );
        assert_eq!(all(store).len(), 6);
        assert_eq!(store.verify(), Ok(()));
    };
    check(&store);
    drop(store);
    let store = open(directory.path(), &options);
    check(&store);
    store.merge(&[1], b"more").expect("written");
    store.put(&[1], &value(1)).expect("written");
    store.compact().expect("compacted");
    check(&store);
}

#[test]
fn walks_go_on_when_the_store_is_left() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    for number in 0..100_u8 {
        store.put(&[number], &[number]).expect("written");
        if number % 30 == 0 {
            store.flush().expect("flushed");
        }
    }
    let up = store.scan_lending(KeyRange::default(), Direction::Up);
    let snapshot = store.snapshot();
    drop(store);
    let down = snapshot.scan_lending(KeyRange::default(), Direction::Down);
    // Another store removes the files that they read.
    let other = open(directory.path(), &options());
    for number in 0..100_u8 {
        other.delete(&[number]).expect("written");
    }
    other.compact().expect("compacted");
    assert_eq!(all(&other), []);
    assert_eq!(other.info().file_bytes, 0);
    let mut expected: Vec<_> = (0..100_u8).map(|key| (vec![key], vec![key])).collect();
    assert_eq!(collect(up.expect("a scan")), expected);
    expected.reverse();
    assert_eq!(collect(down.expect("a scan")), expected);
    assert_eq!(snapshot.get(&[7]), Ok(Some(vec![7])));
}

#[test]
fn a_batch_is_made_in_its_order() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    let everything = KeyRange::default();
    store.put(b"old", b"1").expect("written");
    let mut batch = Batch::new();
    batch.put(b"a", b"1").expect("short");
    batch.merge(b"a", b"2").expect("short");
    batch.put(b"b", b"1").expect("short");
    batch.delete_range(everything).expect("short");
    batch.merge(b"b", b"2").expect("short");
    batch.merge(b"b", b"3").expect("short");
    batch.put(b"c", b"1").expect("short");
    batch.delete(b"c").expect("short");
    store.write(&batch).expect("written");
    let expected = [(b"b".to_vec(), b"23".to_vec())];
    assert_eq!(all(&store), expected);
    drop(store);
    let store = open(directory.path(), &options());
    assert_eq!(all(&store), expected);
    assert_eq!(store.delete_range(everything), Ok(()));
    assert_eq!(all(&store), []);
}

#[test]
fn after_a_failed_sync_a_store_is_read_only() {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let file_system = HookedFs::new(move |call, path| {
        let is_journal = path.to_string_lossy().contains("journal-");
        if call == Call::Sync && is_journal && failing.load(Ordering::Relaxed) {
            Err(io::ErrorKind::Other.into())
        } else {
            Ok(())
        }
    });
    let directory = Directory::new();
    let options = options().file_system(file_system);
    let store = open(directory.path(), &options);
    store.put(b"before", b"1").expect("written");
    store.sync().expect("synced");
    fails.store(true, Ordering::Relaxed);
    let mut batch = Batch::new();
    batch.put(b"k", b"v").expect("short");
    let failed = store.write_with(&batch, Durability::Always);
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    fails.store(false, Ordering::Relaxed);
    let refused = [
        store.put(b"after", b"1"),
        store.sync(),
        store.flush(),
        store.compact(),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::ReadOnly(_))), "{refused:?}");
    }
    assert!(matches!(store.info().read_only, Some(Error::ReadOnly(_))));
    assert_eq!(store.get(b"before"), Ok(Some(b"1".to_vec())));
    assert_eq!(store.get(b"after"), Ok(None));
    drop(store);
    let store = open(directory.path(), &options);
    assert_eq!(store.get(b"before"), Ok(Some(b"1".to_vec())));
    assert_eq!(store.put(b"after", b"1"), Ok(()));
    assert_eq!(store.info().read_only, None);
}

#[test]
fn an_empty_store_has_no_run_files() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    store.flush().expect("flushed");
    store.compact().expect("compacted");
    assert_eq!(store.work(), Ok(false));
    store.put(b"k", b"v").expect("written");
    store.delete(b"k").expect("written");
    store.flush().expect("flushed");
    // Nothing is left to delete at the bottom.
    let info = store.info();
    assert_eq!((info.runs.len(), info.flushes), (0, 1));
    assert_eq!(info.sealed_memtables, 0);
    store.close().expect("closed");
    assert_eq!(all(&open(directory.path(), &options())), []);
}
