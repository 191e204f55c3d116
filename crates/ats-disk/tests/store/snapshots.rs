//! Snapshots: the files and the memory that they keep, and their end.

use crate::append::Append;
use crate::directory::Directory;
use crate::golden::files;
use crate::hooked::HookedFs;
use crate::{Records, collect, open};
use ats_disk::{DiskStore, Error, Options, Snapshot};
use ats_store::{Direction, KeyRange};
use std::sync::Arc;
use std::time::Duration;

fn options() -> Options {
    Options::new()
        .operator(Arc::new(Append))
        .background(false)
        .file_bytes(1000)
}

/// Writes some keys to some runs, and to the memtable.
fn write(store: &DiskStore, value: &[u8]) {
    for round in 0..3_u8 {
        for number in 0..50_u8 {
            store.merge(&[number, round], value).expect("written");
        }
        store.flush().expect("flushed");
    }
    store.put(b"last", value).expect("written");
}

fn all_of(snapshot: &Snapshot) -> Records {
    let scan = snapshot.scan_lending(KeyRange::default(), Direction::Up);
    collect(scan.expect("a scan"))
}

#[test]
fn files_are_kept_for_as_long_as_they_are_read() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    write(&store, b"old");
    let snapshot = store.snapshot();
    let before = all_of(&snapshot);
    assert_eq!(before.len(), 151);
    let count = files(directory.path(), "run-").len();
    let info = store.info();
    assert_eq!((info.snapshots, info.pinned_files), (1, 0));
    assert_eq!((info.pinned_bytes, info.pinned_memory), (0, 0));

    write(&store, b"new");
    store.compact().expect("compacted");
    let info = store.info();
    assert_eq!(info.pinned_files, count);
    assert!(info.pinned_bytes > 0 && info.pinned_memory > 0, "{info:?}");
    assert!(files(directory.path(), "run-").len() > count);
    assert_eq!(all_of(&snapshot), before);
    assert_eq!(snapshot.get(b"last"), Ok(Some(b"old".to_vec())));
    assert_eq!(snapshot.get(&[7, 1]), Ok(Some(b"old".to_vec())));
    assert_eq!(store.get(&[7, 1]), Ok(Some(b"oldnew".to_vec())));

    // A clone and a walk keep them, too.
    let clone = snapshot.clone();
    let mut scan = clone.scan_lending(KeyRange::default(), Direction::Down);
    drop((snapshot, clone));
    assert_eq!(store.work(), Ok(false));
    assert_eq!(store.info().pinned_files, count);
    let scan = scan.as_mut().expect("a scan");
    let last = scan.next().expect("scanned");
    assert_eq!(last, Some((&b"last"[..], &b"old"[..])));
}

#[test]
fn files_are_removed_when_they_are_not_read_any_more() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    write(&store, b"old");
    let snapshot = store.snapshot();
    write(&store, b"new");
    store.compact().expect("compacted");
    assert!(store.info().pinned_files > 0);
    drop(snapshot);
    assert_eq!(store.work(), Ok(true));
    let info = store.info();
    assert_eq!((info.snapshots, info.pinned_files), (0, 0));
    assert_eq!((info.pinned_bytes, info.pinned_memory), (0, 0));
    let there = files(directory.path(), "run-");
    assert_eq!(there.len(), info.runs[0].files);
    let bytes: usize = there.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(info.file_bytes, bytes as u64);
    assert_eq!(store.work(), Ok(false));
}

#[test]
fn snapshots_expire() {
    let directory = Directory::new();
    let clock = HookedFs::new(|_, _| Ok(()));
    let options = options()
        .file_system(Arc::clone(&clock) as Arc<dyn ats_disk::fs::FileSystem>)
        .snapshot_age(Duration::from_secs(60));
    let store = open(directory.path(), &options);
    write(&store, b"old");
    let snapshot = store.snapshot();
    let mut scan = store
        .scan_lending(KeyRange::default(), Direction::Up)
        .expect("a scan");
    assert!(scan.next().is_ok_and(|record| record.is_some()));
    write(&store, b"new");
    store.compact().expect("compacted");
    let pass = |seconds| {
        clock.pass(Duration::from_secs(seconds));
        store.work().expect("worked");
    };
    let old = Ok(Some(b"old".to_vec()));
    pass(50);
    // A snapshot that is read does not expire, however long ago it was taken.
    assert_eq!(snapshot.get(b"last"), old);
    pass(50);
    let young = store.snapshot();
    pass(11);
    assert_eq!(scan.next(), Err(Error::Expired));
    assert_eq!(snapshot.get(b"last"), old);
    assert_eq!(young.get(b"last"), Ok(Some(b"new".to_vec())));
    assert!(store.info().pinned_files > 0);
    pass(1);
    pass(50);
    assert_eq!(store.info().snapshots, 2);
    assert_eq!(young.get(b"last"), Ok(Some(b"new".to_vec())));
    pass(11);
    assert_eq!(snapshot.get(b"last"), Err(Error::Expired));
    let expired = snapshot.scan_lending(KeyRange::default(), Direction::Up);
    assert_eq!(expired.err(), Some(Error::Expired));
    assert_eq!(young.get(b"last"), Ok(Some(b"new".to_vec())));
    // A snapshot that has expired keeps nothing, although it is there. A scan has its cursors.
    drop(scan);
    pass(0);
    assert_eq!((store.info().snapshots, store.info().pinned_files), (1, 0));
    assert_eq!(all_of(&young).len(), 151);
    drop(snapshot);
    assert_eq!(all_of(&young).len(), 151);
}

#[test]
fn writers_do_not_wait_for_snapshots() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    let mut snapshots = Vec::new();
    for number in 0..200_u32 {
        store.merge(b"k", b"x").expect("written");
        store
            .put(b"number", &number.to_be_bytes())
            .expect("written");
        snapshots.push((store.snapshot(), number));
        if number % 50 == 49 {
            store.flush().expect("flushed");
        }
    }
    store.compact().expect("compacted");
    assert_eq!(store.info().snapshots, 200);
    for (snapshot, number) in snapshots {
        let value = vec![b'x'; number as usize + 1];
        assert_eq!(snapshot.get(b"k"), Ok(Some(value)));
        let value = number.to_be_bytes().to_vec();
        assert_eq!(snapshot.get(b"number"), Ok(Some(value)));
    }
    assert_eq!(store.info().snapshots, 0);
}
