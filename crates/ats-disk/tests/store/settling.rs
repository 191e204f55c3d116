//! Stores that are left alone put themselves in order.

use crate::directory::Directory;
use crate::{all, open, random, wait_for};
use ats_disk::{DiskStore, Options, Progress};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Makes a store without threads, whose runs have several files, with the writes of [`load`].
fn make_loaded() -> (Directory, DiskStore) {
    let directory = Directory::new();
    let options = Options::new().background(false).file_bytes(4000);
    let store = open(directory.path(), &options);
    load(&store);
    (directory, store)
}

/// Writes three runs of about the same size: too few to be merged while there are writes.
fn load(store: &DiskStore) {
    for run in 0..3 {
        for number in 0..1000_u32 {
            let key = random((run, number)).to_be_bytes();
            store.put(&key, &number.to_be_bytes()).unwrap();
        }
        store.flush().unwrap();
    }
}

#[test]
fn a_store_that_was_loaded_settles_when_told_to() {
    let directory = Directory::new();
    let options = Options::new().background(false);
    let store = open(directory.path(), &options);
    load(&store);
    assert_eq!(store.work(), Ok(false));
    assert_eq!(store.info().runs.len(), 3);
    let before = all(&store);
    store.settle().unwrap();
    assert_eq!(store.info().runs.len(), 1);
    assert_eq!(all(&store), before);
    store.put(b"one more", b"value").unwrap();
    store.settle().unwrap();
    let info = store.info();
    // A run of one record is not worth another merge of all.
    assert_eq!(info.runs.len(), 2);
    assert_eq!((info.runs[0].entries, info.runs[1].entries), (1, 3000));
    store.settle().unwrap();
    assert_eq!(store.info().compactions, info.compactions);
    store.delete(b"one more").unwrap();
    assert_eq!(all(&store), before);
    store.close().unwrap();
}

#[test]
fn a_store_settles_where_writes_pause() {
    let directory = Directory::new();
    let store = open(directory.path(), &Options::new());
    load(&store);
    assert_eq!(store.info().runs.len(), 3);
    let before = all(&store);
    assert!(wait_for(|| store.info().runs.len() == 1));
    assert_eq!(all(&store), before);
    store.close().unwrap();
}

/// Returns a progress that writes another run each time it is told. It breaks off after more than
/// any merge needs.
fn write_runs(store: &DiskStore, calls: &mut u32) -> ControlFlow<()> {
    *calls += 1;
    for number in 0..10 {
        let key = random(("meanwhile", *calls, number)).to_be_bytes();
        store.put(&key, b"meanwhile").unwrap();
    }
    store.flush().unwrap();
    if *calls < 200 {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

#[test]
fn runs_that_are_added_meanwhile_are_not_waited_for() {
    let (_directory, store) = make_loaded();
    let mut calls = 0;
    let write = &mut |_: Progress| write_runs(&store, &mut calls);
    store.compact_with(write).unwrap();
    assert!((2..50).contains(&calls), "{calls} calls");
    let info = store.info();
    let oldest = info.runs.last().unwrap();
    assert_eq!(
        (info.runs.len(), oldest.entries),
        (1 + calls as usize, 3000)
    );
    assert_eq!((info.compactions, info.compacting), (1, 0));
    // Writes meanwhile are there at the start of the next.
    store.compact().unwrap();
    assert_eq!(store.info().runs.len(), 1);
    assert_eq!(all(&store).len(), 3000 + 10 * calls as usize);
    store.close().unwrap();
}

#[test]
fn a_merge_that_was_broken_off_goes_on_before_newer_runs_are_merged() {
    let (_directory, store) = make_loaded();
    let mut calls = 0;
    let mut other_calls = 0;
    let on_progress = &mut |_: Progress| {
        calls += 1;
        if calls == 1 {
            store.put(b"newer", b"value").unwrap();
            store.flush().unwrap();
        }
        if calls == 3 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    store.compact_with(on_progress).unwrap();
    assert_eq!((store.info().runs.len(), store.info().compactions), (4, 0));
    store
        .compact_with(&mut |_| {
            other_calls += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(other_calls > 0);
    assert_eq!(store.info().runs.len(), 1);
    assert_eq!(all(&store).len(), 3001);
    assert_eq!(store.verify(), Ok(()));
    store.close().unwrap();
}

/// Threads of the store merge, too, and two threads ask for it.
#[test]
fn a_store_is_compacted_and_settles_while_others_write() {
    const MOST: u32 = 3_000_000;
    let directory = Directory::new();
    let options = Options::new()
        .background(true)
        .memtable_bytes(16 << 10)
        .file_bytes(16 << 10);
    let store = open(directory.path(), &options);
    load(&store);
    let is_over = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let mut written = 0;
            while !is_over.load(Ordering::Relaxed) && written < MOST {
                let key = random(("meanwhile", written % 50_000)).to_be_bytes();
                store.put(&key, &[7; 60]).unwrap();
                written += 1;
            }
            written
        });
        let others = [0, 1].map(|_| scope.spawn(|| store.compact().unwrap()));
        for _ in 0..3 {
            store.settle().unwrap();
            store.compact().unwrap();
        }
        for other in others {
            other.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        writing.join().unwrap()
    });
    assert!(written < MOST, "it did not end before the writes");
    assert_eq!(store.verify(), Ok(()));
    store.close().unwrap();
}
