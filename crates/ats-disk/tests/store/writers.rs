//! Writers that write at the same time, and the moments at which their writes are durable.

use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use crate::{open, wait_for};
use ats_disk::{Batch, Durability, Error, Options};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Returns a batch of three keys.
fn batch_of(writer: u8, number: u32) -> Batch {
    let mut batch = Batch::new();
    for part in 0..3 {
        let put = batch.put(&key_of(writer, number, part), &number.to_be_bytes());
        put.expect("short");
    }
    batch
}

fn key_of(writer: u8, number: u32, part: u8) -> Vec<u8> {
    [&[writer], &number.to_be_bytes()[..], &[part]].concat()
}

#[test]
fn writers_share_syncs() {
    const WRITERS: u8 = 8;
    const BATCHES: u32 = 50;
    // The file system is slow, like a disk.
    let file_system = HookedFs::new(|call, _| {
        if call == Call::Sync {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });
    let directory = Directory::new();
    let options = Options::new()
        .file_system(file_system)
        .durability(Durability::Always)
        .background(false);
    let store = open(directory.path(), &options);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for number in 0..BATCHES {
                    store.write(&batch_of(writer, number)).expect("written");
                }
            });
        }
    });
    let info = store.info();
    assert_eq!(info.batches, u64::from(WRITERS) * u64::from(BATCHES));
    assert!(info.groups < info.batches, "{info:?}");
    assert!(info.syncs < info.batches, "{info:?}");
    // The last write is durable, too.
    assert_eq!(store.sync(), Ok(()));
    assert_eq!(store.info().syncs, info.syncs);
    drop(store);
    let store = open(directory.path(), &options);
    for writer in 0..WRITERS {
        for (number, part) in (0..BATCHES).flat_map(|number| (0..3).map(move |part| (number, part)))
        {
            let value = store.get(&key_of(writer, number, part));
            assert_eq!(value, Ok(Some(number.to_be_bytes().to_vec())));
        }
    }
}

#[test]
fn a_write_can_be_more_durable_than_others() {
    let directory = Directory::new();
    let options = Options::new().background(false);
    let store = open(directory.path(), &options);
    let batch = batch_of(0, 0);
    let syncs = || store.info().syncs;
    assert_eq!(syncs(), 0);
    store.write(&batch).expect("written");
    assert_eq!(syncs(), 0);
    store
        .write_with(&batch, Durability::Always)
        .expect("written");
    assert_eq!(syncs(), 1);
    store.sync().expect("there is nothing to do");
    assert_eq!(syncs(), 1);
    store
        .write_with(&batch, Durability::System)
        .expect("written");
    store.sync().expect("synced");
    assert_eq!(syncs(), 2);
}

#[test]
fn writes_are_synced_at_intervals() {
    let directory = Directory::new();
    let options = Options::new()
        .durability(Durability::Interval(Duration::from_millis(5)))
        .background(true);
    let store = open(directory.path(), &options);
    for number in 0..3 {
        let before = store.info().syncs;
        store.write(&batch_of(0, number)).expect("written");
        assert!(wait_for(|| store.info().syncs > before));
    }
    // Nothing is synced while nothing is written.
    let mut before = store.info().syncs;
    let is_quiet = wait_for(|| {
        thread::sleep(Duration::from_millis(50));
        std::mem::replace(&mut before, store.info().syncs) == before
    });
    assert!(is_quiet);
}

/// A write that was acknowledged before a store was closed is there, and one that was refused is
/// not.
#[test]
fn a_store_is_closed_while_others_write() {
    const WRITERS: u8 = 3;
    for round in 0..20 {
        let directory = Directory::new();
        let options = Options::new()
            .background(round % 2 == 1)
            .memtable_bytes(if round % 3 == 0 { 20_000 } else { 1 << 20 });
        let store = open(directory.path(), &options);
        let written: Vec<u32> = thread::scope(|scope| {
            let write = |writer: u8| {
                let store = store.clone();
                move || {
                    let mut numbers = 0..;
                    let refused = numbers.find_map(|number| {
                        let written = store.write(&batch_of(writer, number));
                        written.err().map(|error| (number, error))
                    });
                    let (number, error) = refused.expect("the store is closed in the end");
                    assert!(matches!(error, Error::ReadOnly(_)), "{error:?}");
                    number
                }
            };
            let writers = (0..WRITERS).map(|writer| scope.spawn(write(writer)));
            let writers: Vec<_> = writers.collect();
            thread::sleep(Duration::from_micros(700 * round as u64));
            store.close().expect("closed");
            let numbers = writers.into_iter().map(|writer| writer.join());
            numbers.map(|number| number.expect("no panic")).collect()
        });
        // The closed one is there still.
        let reopened = open(directory.path(), &options);
        for (writer, count) in (0..WRITERS).zip(written) {
            for (number, part) in
                (0..=count).flat_map(|number| (0..3).map(move |part| (number, part)))
            {
                let value = reopened.get(&key_of(writer, number, part)).expect("read");
                assert_eq!(value.is_some(), number < count, "{number} of {count}");
            }
        }
        assert!(matches!(store.put(b"k", b"v"), Err(Error::ReadOnly(_))));
        assert_eq!(reopened.get(b"k"), Ok(None));
    }
}

/// Records in runs are durable, so the journal that had them is not synced, which would write all
/// of them once more.
#[test]
fn only_journals_that_are_needed_are_synced() {
    let synced: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
    let seen = Arc::clone(&synced);
    let file_system = HookedFs::new(move |call, path| {
        if call == Call::Sync {
            seen.lock().expect("no panic").push(path.to_owned());
        }
        Ok(())
    });
    let directory = Directory::new();
    let options = Options::new()
        .file_system(file_system)
        .durability(Durability::System)
        .background(false);
    let store = open(directory.path(), &options);
    for number in 0..3 {
        store.write(&batch_of(1, number)).expect("written");
        store.flush().expect("flushed");
    }
    store.write(&batch_of(1, 3)).expect("written");
    synced.lock().expect("no panic").clear();
    let durable = store.write_with(&batch_of(1, 4), Durability::Always);
    assert_eq!(durable, Ok(()));
    let synced = synced.lock().expect("no panic").clone();
    assert_eq!(synced.len(), 1, "{synced:?}");
    assert!(synced[0].exists(), "{synced:?}");
}

/// A flush does not wait for later writes, even if they come faster than they can be flushed.
#[test]
fn a_flush_ends_while_others_write() {
    // The file system is slow, like a disk.
    let file_system = HookedFs::new(|call, path| {
        if call == Call::Create && path.to_string_lossy().contains("run-") {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    });
    let directory = Directory::new();
    let options = Options::new()
        .file_system(file_system)
        .memtable_bytes(2_000)
        .background(false);
    let store = open(directory.path(), &options);
    let start = Instant::now();
    let ended = AtomicBool::new(false);
    let is_time = || start.elapsed() > Duration::from_secs(30);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = 0..;
            while !ended.load(Ordering::Relaxed) && !is_time() {
                let number = numbers.next().expect("endless");
                store.write(&batch_of(1, number)).expect("written");
                // Faster than memtables are written, but not so fast that thousands wait when the
                // flush begins.
                thread::sleep(Duration::from_micros(50));
            }
        });
        assert!(wait_for(|| store.info().sealed_memtables > 20));
        store.flush().expect("flushed");
        ended.store(true, Ordering::Relaxed);
    });
    assert!(!is_time(), "it took {:?}", start.elapsed());
}
