//! Keys of which a few fill a file.

use crate::directory::Directory;
use crate::resuming::interrupting;
use crate::{Records, all, open};
use ats_disk::fs::RealFs;
use ats_disk::offline::{Salvage, Survey, verify};
use ats_disk::{Compression, DiskStore, Options};
use ats_store::{Direction, KeyRange};
use std::collections::BTreeSet;
use std::fs;
use std::ops::{ControlFlow, RangeBounds};
use std::sync::Arc;

const BYTES: usize = 20_000;

fn options() -> Options {
    Options::new()
        .background(false)
        .compression(Compression::None)
        .file_bytes(3 * BYTES as u64)
}

/// Returns a long key. The bytes that tell it from others are at its beginning, or at its end.
fn key(number: u32, at_end: bool) -> Vec<u8> {
    let (number, fill) = (number.to_be_bytes(), vec![b'k'; BYTES]);
    if at_end {
        [&fill[..], &number].concat()
    } else {
        [&number, &fill[..]].concat()
    }
}

/// Writes two runs. Parts of them overlap.
fn write(store: &DiskStore, at_end: bool) {
    for number in 0..40 {
        store.put(&key(number, at_end), b"older").expect("written");
    }
    store.flush().expect("flushed");
    for number in (20..60).step_by(3) {
        store.put(&key(number, at_end), b"newer").expect("written");
        store.delete(&key(number + 1, at_end)).expect("written");
        let range = KeyRange {
            low: Some(&key(number + 2, at_end)),
            high: Some(&key(number + 3, at_end)),
        };
        if number > 50 {
            store.delete_range(range).expect("written");
        }
    }
    store.flush().expect("flushed");
}

fn check(store: &DiskStore, expected: &Records) {
    assert_eq!(store.verify(), Ok(()));
    assert!(all(store) == *expected, "other records");
    for (key, value) in expected {
        assert_eq!(store.get(key), Ok(Some(value.clone())));
        let range = KeyRange {
            low: Some(key),
            high: None,
        };
        let mut scan = store.scan_lending(range, Direction::Up).expect("a scan");
        let found = scan.next().expect("scanned").map(|(key, _)| key.to_vec());
        assert!(found.as_ref() == Some(key), "another key");
    }
}

fn manifest_bytes(directory: &Directory) -> u64 {
    let manifest = directory.path().join("manifest");
    manifest.metadata().expect("it is there").len()
}

#[test]
fn the_manifest_has_short_bounds_of_long_keys() {
    for at_end in [false, true] {
        let directory = Directory::new();
        let store = open(directory.path(), &options());
        write(&store, at_end);
        let expected = all(&store);
        check(&store, &expected);
        store.compact().expect("compacted");
        let info = store.info();
        assert!((1, 10) < (info.runs.len(), info.runs[0].files));
        check(&store, &expected);
        let written = info.compaction_written_bytes + info.flushed_bytes;
        let most = if at_end {
            // All bytes of them are needed to tell where a file ends.
            2 * written
        } else {
            500_000
        };
        assert!(
            manifest_bytes(&directory) < most,
            "{} {at_end}",
            manifest_bytes(&directory)
        );
        drop(store);
        let store = open(directory.path(), &options());
        check(&store, &expected);
        store.close().expect("closed");
    }
}

#[test]
fn a_merge_of_long_keys_goes_on_after_the_process_ended() {
    for at_end in [false, true] {
        for files in [2, 3, 5, 9] {
            let directory = Directory::new();
            let (file_system, files_left) = interrupting();
            let store = open(directory.path(), &options().file_system(file_system));
            write(&store, at_end);
            let expected = all(&store);
            files_left.store(files, std::sync::atomic::Ordering::Relaxed);
            assert!(store.compact().is_err());
            drop(store);
            let store = open(directory.path(), &options());
            check(&store, &expected);
            // Complete files are noted more seldom if bounds are long.
            let goes_on = store.work().expect("worked");
            assert!(goes_on || at_end, "the merge goes on");
            store.compact().expect("compacted");
            assert_eq!(store.info().runs.len(), 1);
            check(&store, &expected);
        }
    }
}

/// Reads a store that is not open, of which a file may be damaged. Returns the number of records.
fn count_salvaged(directory: &Directory, expected: &Records, is_damaged: bool) -> usize {
    let survey = Survey::new(Arc::new(RealFs), directory.path()).expect("it is surveyed");
    let report = verify(&survey, &mut |_| ControlFlow::Continue(())).expect("it is read");
    assert_eq!(!report.faults.is_empty(), is_damaged);
    let mut salvage = Salvage::new(&survey).expect("it is read");
    let mut found = BTreeSet::new();
    while let Some(record) = salvage.next().expect("it is read") {
        let value = record.value.expect("there are no operands");
        // Records are in the order of their keys.
        let is_there = expected.binary_search(&(record.key.clone(), value));
        assert!(is_there.is_ok(), "another record");
        found.insert(record.key);
    }
    // The missing keys are named.
    for (key, _) in expected {
        let is_named = salvage.faults().iter().any(|fault| {
            let keys = fault.keys.as_ref();
            keys.is_some_and(|keys| (keys.low.as_ref(), keys.high.as_ref()).contains(key))
        });
        assert!(found.contains(key) || is_named, "it is lost without a word");
    }
    found.len()
}

#[test]
fn salvage_finds_records_with_long_keys() {
    for at_end in [false, true] {
        let directory = Directory::new();
        let store = open(directory.path(), &options());
        write(&store, at_end);
        store.compact().expect("compacted");
        let expected = all(&store);
        store.close().expect("closed");
        drop(store);
        assert_eq!(count_salvaged(&directory, &expected, false), expected.len());
        let files = crate::golden::files(directory.path(), "run-");
        assert!(files.len() > 3);
        let (file, whole) = files.last().expect("there are runs");
        let path = directory.path().join(file);
        // Damage in the first block, and once behind it: looking for blocks without their index
        // takes long.
        let offsets = [BYTES / 2, whole.len() * 5 / 8];
        for offset in &offsets[..1 + usize::from(at_end)] {
            let mut damaged = whole.clone();
            damaged[*offset] ^= 1;
            fs::write(&path, &damaged).expect("it is written");
            let found = count_salvaged(&directory, &expected, true);
            // Parts have long keys, too, and nothing else.
            let lost = expected.len() - found;
            assert!(lost < 4 && (lost > 0 || *offset > BYTES), "{lost}");
        }
        fs::write(&path, whole).expect("it is written");
    }
}
