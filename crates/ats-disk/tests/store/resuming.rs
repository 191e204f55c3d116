//! Merges that go on after they were interrupted.

use crate::append::Append;
use crate::directory::Directory;
use crate::golden::files;
use crate::hooked::{Call, HookedFs};
use crate::{Records, all, open};
use ats_disk::{DiskStore, Error, Options};
use ats_store::KeyRange;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn options(file_bytes: u64) -> Options {
    Options::new()
        .operator(Arc::new(Append))
        .background(false)
        .block_bytes(256)
        .file_bytes(file_bytes)
}

fn key(number: u32) -> Vec<u8> {
    format!("key/{number:06}").into_bytes()
}

/// Writes two runs. Each has keys that the other has not, so that some of their files can be taken
/// as they are.
fn write(store: &DiskStore, keys: u32, with_deletes: bool) {
    for number in 0..2 * keys {
        store.put(&key(number), b"older").expect("written");
    }
    store.flush().expect("flushed");
    for number in keys..3 * keys {
        match number % 5 {
            0 => store.delete(&key(number)).expect("written"),
            1 => store.merge(&key(number), b"+").expect("written"),
            2 => store.put(&key(number), b"newer").expect("written"),
            _ => {}
        }
    }
    if with_deletes {
        for number in (0..3 * keys).step_by(97) {
            let range = KeyRange {
                low: Some(&key(number)),
                high: Some(&key(number + 20)),
            };
            store.delete_range(range).expect("written");
        }
    }
    store.flush().expect("flushed");
    assert_eq!(store.info().runs.len(), 2);
}

/// Returns a file system in which so many files of runs can be made, as many as is set.
pub(crate) fn interrupting() -> (Arc<HookedFs>, Arc<AtomicU32>) {
    let left = Arc::new(AtomicU32::new(u32::MAX));
    let files_left = Arc::clone(&left);
    let file_system = HookedFs::new(move |call, path| {
        let is_run = path.to_string_lossy().contains("run-");
        if call == Call::Create && is_run && left.fetch_sub(1, Ordering::Relaxed) == 0 {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    });
    (file_system, files_left)
}

/// Returns a store of which a merge was begun, in which so many files could be made.
fn make_interrupted(directory: &Path, files: u32, with_deletes: bool) -> Records {
    let (file_system, files_left) = interrupting();
    let options = options(1000).file_system(file_system);
    let store = open(directory, &options);
    // The merge makes more files than any test lets it make, beside those that it takes as they
    // are.
    write(&store, 900, with_deletes);
    files_left.store(files, Ordering::Relaxed);
    assert!(matches!(store.compact(), Err(Error::Io { .. })));
    all(&store)
}

fn check_resumed(begun_files: u32, with_deletes: bool, file_bytes: u64) {
    let directory = Directory::new();
    let expected = make_interrupted(directory.path(), begun_files, with_deletes);
    let store = open(directory.path(), &options(file_bytes));
    assert_eq!(all(&store), expected);
    assert_eq!(store.work(), Ok(true), "the merge goes on");
    let info = store.info();
    assert_eq!((info.runs.len(), info.compactions), (1, 1));
    assert_eq!(store.work(), Ok(true), "files are removed");
    assert_eq!(store.work(), Ok(false));
    assert_eq!(all(&store), expected);
    assert_eq!(store.verify(), Ok(()));
    for (key, value) in expected {
        assert_eq!(store.get(&key), Ok(Some(value)));
    }
    let there = files(directory.path(), "run-").len();
    assert_eq!(there, info.runs[0].files);
}

#[test]
fn a_merge_goes_on_after_the_process_ended() {
    // The last of the begun files is not noted as complete.
    for begun_files in 2..8 {
        for with_deletes in [false, true] {
            check_resumed(begun_files, with_deletes, 1000);
        }
    }
}

/// Then other files are worth being taken as they are.
#[test]
fn a_merge_goes_on_with_another_size_of_files() {
    // The last of the begun files is not noted as complete.
    for begun_files in 2..8 {
        for file_bytes in [100, 3000, 50_000] {
            check_resumed(begun_files, false, file_bytes);
        }
    }
}

#[test]
fn a_merge_that_is_broken_off_goes_on_later() {
    let directory = Directory::new();
    let store = open(directory.path(), &options(4000));
    write(&store, 6000, true);
    let expected = all(&store);
    let mut calls = 0;
    let broken_off = store.compact_with(&mut |progress| {
        assert!(progress.done <= progress.total);
        calls += 1;
        if progress.done > progress.total / 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(broken_off, Ok(()));
    assert!(calls > 1);
    let info = store.info();
    assert_eq!(
        (info.runs.len(), info.compactions, info.compacting),
        (2, 0, 0)
    );
    assert_eq!(all(&store), expected);
    drop(store);
    let store = open(directory.path(), &options(4000));
    assert_eq!(store.work(), Ok(true));
    assert_eq!(store.info().runs.len(), 1);
    assert_eq!(all(&store), expected);
    assert_eq!(store.verify(), Ok(()));
}
