//! A store can be closed beside any work of its other threads.

use crate::append::Append;
use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use crate::open;
use ats_disk::{DiskStore, Error, Options};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn options() -> Options {
    Options::new()
        .operator(Arc::new(Append))
        .background(false)
        .file_bytes(1000)
}

fn number(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Three runs with the same keys.
fn write(store: &DiskStore) {
    for value in [b"1", b"2", b"3"] {
        for key in 0..500 {
            store.put(&number(key), value).expect("written");
        }
        store.flush().expect("flushed");
    }
}

/// A thread that merges runs makes and removes files. When another store opens the directory it
/// must have ended.
#[test]
fn closing_waits_for_a_merge_of_another_thread() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    write(&store);
    let has_ended = AtomicBool::new(false);
    let (merges, merging) = mpsc::channel();
    thread::scope(|scope| {
        let merged = scope.spawn(|| {
            let merged = store.compact_with(&mut |_| {
                let _first = merges.send(());
                thread::sleep(Duration::from_millis(200));
                ControlFlow::Continue(())
            });
            thread::sleep(Duration::from_millis(50));
            has_ended.store(true, Ordering::SeqCst);
            merged
        });
        merging.recv().expect("it merges");
        store.close().expect("closed");
        let closed = Error::ReadOnly("it was closed".into());
        let other = open(directory.path(), &options());
        write(&other);
        assert_eq!(merged.join().expect("no panic"), Err(closed.clone()));
        assert!(has_ended.load(Ordering::SeqCst));
        for again in [store.flush(), store.compact(), store.close()] {
            assert_eq!(again, Err(closed.clone()));
        }
        assert_eq!(store.put(b"key", b"value"), Err(closed));
        other.compact().expect("compacted");
        other.verify().expect("sound");
        assert_eq!(other.get(&number(7)), Ok(Some(b"3".to_vec())));
    });
}

/// A thread that settles the store works in the directory, like one that compacts.
#[test]
fn closing_waits_for_another_thread_that_settles() {
    let directory = Directory::new();
    let is_closed = Arc::new(AtomicBool::new(false));
    let is_late = Arc::new(AtomicBool::new(false));
    let (makes, making) = mpsc::channel();
    let settling = "settling";
    let hook = {
        let (is_closed, is_late) = (Arc::clone(&is_closed), Arc::clone(&is_late));
        move |call, _: &Path| {
            if thread::current().name() == Some(settling) {
                if call == Call::Create {
                    let _first = makes.send(());
                    thread::sleep(Duration::from_millis(200));
                }
                is_late.fetch_or(is_closed.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            Ok(())
        }
    };
    let options = options().file_system(HookedFs::new(hook));
    let store = open(directory.path(), &options);
    write(&store);
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(settling.into());
        let settled = thread.spawn_scoped(scope, || store.settle());
        making.recv().expect("it merges");
        store.close().expect("closed");
        is_closed.store(true, Ordering::SeqCst);
        let _closed_meanwhile = settled.expect("a thread").join().expect("no panic");
    });
    assert!(!is_late.load(Ordering::SeqCst));
}

#[test]
fn a_progress_callback_can_close_the_store() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    write(&store);
    let mut closed = None;
    let merged = store.compact_with(&mut |_| {
        closed.get_or_insert_with(|| store.close());
        ControlFlow::Continue(())
    });
    assert_eq!(closed, Some(Ok(())));
    assert!(merged.is_err());
    let other = open(directory.path(), &options());
    assert_eq!(other.get(&number(7)), Ok(Some(b"3".to_vec())));
}

/// A write that has returned is there, however close it was to the end.
#[test]
fn closing_loses_nothing_that_was_written() {
    for round in 0..20 {
        let directory = Directory::new();
        let options = options().background(true).memtable_bytes(1 << 20);
        let store = open(directory.path(), &options);
        let written = thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|writer| {
                    let store = store.clone();
                    scope.spawn(move || {
                        let key = |count: u32| [number(writer), number(count)].concat();
                        (0..u32::MAX)
                            .take_while(|count| store.put(&key(*count), b"v").is_ok())
                            .count()
                    })
                })
                .collect();
            thread::sleep(Duration::from_micros(500 + 100 * round));
            store.close().expect("closed");
            let written = writers.into_iter().map(|writer| writer.join());
            written
                .map(|count| count.expect("no panic"))
                .collect::<Vec<_>>()
        });
        drop(store);
        let store = open(directory.path(), &options);
        for (writer, count) in (0..).zip(written) {
            for count in 0..count as u32 {
                let key = [number(writer), number(count)].concat();
                assert_eq!(store.get(&key), Ok(Some(b"v".to_vec())));
            }
        }
    }
}
