//! Snapshots that are kept: their ends, the memory that they hold, and differences between two.

use crate::append::Append;
use crate::directory::Directory;
use crate::hooked::HookedFs;
use crate::{Records, collect, open, random, wait_for};
use ats_disk::{Batch, DiskStore, Ending, Error, Options, Snapshot};
use ats_store::{Direction, KeyRange};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn options() -> Options {
    Options::new()
        .operator(Arc::new(Append))
        .background(false)
        .file_bytes(2000)
        .fan_in(3)
}

fn all_of(snapshot: &Snapshot) -> Records {
    let scan = snapshot.scan_lending(KeyRange::default(), Direction::Up);
    collect(scan.expect("a scan"))
}

/// A key with its values in two snapshots.
type Differences = Vec<(Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>)>;

fn differences(first: &Snapshot, second: &Snapshot, range: KeyRange<'_>) -> Differences {
    let diff = first.diff(second, range).expect("a walk");
    let mut diff = diff.expect("they are of one store");
    let mut all = Vec::new();
    while let Some(difference) = diff.next().expect("walked") {
        let [first, second] = [difference.first, difference.second];
        all.push((
            difference.key.to_vec(),
            first.map(<[u8]>::to_vec),
            second.map(<[u8]>::to_vec),
        ));
    }
    all
}

/// The same, from all records.
fn expected(first: &Snapshot, second: &Snapshot, range: KeyRange<'_>) -> Differences {
    let [first, second] = [first, second].map(|snapshot| {
        let all = all_of(snapshot).into_iter();
        all.collect::<BTreeMap<_, _>>()
    });
    let mut keys: Vec<_> = first.keys().chain(second.keys()).collect();
    keys.sort();
    keys.dedup();
    let is_in = |key: &&Vec<u8>| {
        range.low.is_none_or(|low| &key[..] >= low) && range.high.is_none_or(|high| &key[..] < high)
    };
    keys.into_iter()
        .filter(is_in)
        .map(|key| {
            (
                key.clone(),
                first.get(key).cloned(),
                second.get(key).cloned(),
            )
        })
        .filter(|(_, first, second)| first != second)
        .collect()
}

/// Makes some change that depends on the number.
fn change(store: &DiskStore, round: u64) {
    let key = |salt: u64| {
        let number = random((round, salt)) % 400;
        format!("key {number:04}").into_bytes()
    };
    let value = format!(
        "value {round} {}",
        "x".repeat((random(round) % 60) as usize)
    );
    match random((round, "what")) % 40 {
        0..14 => store.put(&key(1), value.as_bytes()).expect("written"),
        14..20 => store.merge(&key(1), b"+").expect("written"),
        20..28 => store.delete(&key(1)).expect("written"),
        28..31 => {
            let mut batch = Batch::new();
            for salt in 0..20 {
                batch.put(&key(salt), value.as_bytes()).expect("added");
            }
            store.write(&batch).expect("written");
        }
        31..33 => {
            let (low, high) = (key(1).min(key(2)), key(1).max(key(2)));
            let range = KeyRange {
                low: Some(&low),
                high: Some(&high),
            };
            store.delete_range(range).expect("written");
        }
        33..37 => store.flush().expect("flushed"),
        37 => store.compact().expect("compacted"),
        _ => {
            store.work().expect("worked");
        }
    }
}

#[test]
fn differences_are_those_of_all_records() {
    for seed in 0..6 {
        let directory = Directory::new();
        let store = open(directory.path(), &options());
        let mut snapshots = Vec::new();
        for round in 0..700 {
            change(&store, seed * 10_000 + round);
            if round % 60 == 59 {
                snapshots.push(store.keep_snapshot(None));
            }
        }
        let check = || {
            for first in &snapshots {
                for second in &snapshots {
                    for (low, high) in [(None, None), (Some("key 0100"), Some("key 0200"))] {
                        let range = KeyRange {
                            low: low.map(str::as_bytes),
                            high: high.map(str::as_bytes),
                        };
                        let found = differences(first, second, range);
                        assert_eq!(found, expected(first, second, range), "seed {seed}");
                    }
                }
            }
        };
        check();
        store.flush().expect("flushed");
        check();
        store.compact().expect("compacted");
        snapshots.push(store.keep_snapshot(None));
        for snapshot in &snapshots {
            let mut scan = snapshot.scan_lending(KeyRange::default(), Direction::Up);
            let scan = scan.as_mut().expect("a scan");
            assert!(scan.next().is_ok());
        }
    }
}

/// Moments that follow each other closely: their differences come from logs of recent keys, also
/// while memtables are written to runs, and runs are compacted.
#[test]
fn differences_of_moments_that_follow_each_other_are_those_of_all_records() {
    for seed in 100..112 {
        let directory = Directory::new();
        let store = open(directory.path(), &options());
        let mut last = store.keep_snapshot(None);
        let mut older = last.clone();
        for round in 0..600_u64 {
            change(&store, seed * 10_000 + round);
            if !random((seed, round)).is_multiple_of(4) {
                continue;
            }
            let next = store.keep_snapshot(None);
            for (first, second) in [(&last, &next), (&next, &last), (&older, &next)] {
                let (low, high) = (Some(&b"key 0100"[..]), Some(&b"key 0200"[..]));
                for range in [KeyRange::default(), KeyRange { low, high }] {
                    let found = differences(first, second, range);
                    assert_eq!(found, expected(first, second, range), "{seed}, {round}");
                }
            }
            assert!(next.is_current(0));
            assert!(
                !last.is_current(0) || differences(&last, &next, KeyRange::default()).is_empty()
            );
            if round.is_multiple_of(5) {
                older = last;
            }
            last = next;
        }
    }
}

/// A compaction may leave no trace of the records that it has removed: no file of its own, or no
/// run at all.
#[test]
fn differences_have_the_records_that_a_compaction_has_removed() {
    for stays in [false, true] {
        let directory = Directory::new();
        let store = open(directory.path(), &options());
        for number in 0..500_u32 {
            let value = format!("{number:0>40}");
            store
                .put(&number.to_be_bytes(), value.as_bytes())
                .expect("written");
        }
        store.compact().expect("compacted");
        let before = store.keep_snapshot(None);
        let low = if stays { 250_u32 } else { 0 };
        let low = low.to_be_bytes();
        store.delete_range(&low[..]..).expect("deleted");
        store.compact().expect("compacted");
        let after = store.keep_snapshot(None);
        let removed = if stays { 250 } else { 500 };
        for (first, second) in [(&before, &after), (&after, &before)] {
            let found = differences(first, second, KeyRange::default());
            assert_eq!(found.len(), removed, "{stays}");
            assert_eq!(found, expected(first, second, KeyRange::default()));
        }
    }
}

#[test]
fn few_writes_are_found_without_a_walk_over_a_memtable() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    for number in 0..20_000_u32 {
        store.put(&number.to_be_bytes(), b"old").expect("written");
    }
    let mut last = store.keep_snapshot(None);
    // The first difference begins the log.
    for number in 0..20_u32 {
        assert!(last.is_current(0));
        store.put(&number.to_be_bytes(), b"new").expect("written");
        assert!(!last.is_current(0));
        let next = store.keep_snapshot(None);
        let mut diff = last.diff(&next, ..).expect("a walk").expect("of one store");
        let mut steps = 0;
        while diff.step().expect("read") {
            steps += 1;
            assert_eq!(diff.key(), number.to_be_bytes());
        }
        assert_eq!(steps, 1);
        assert_eq!(diff.first_deadline(), 0);
        last = next;
    }
    // Writes from before the earlier moment are passed, wherever they are now.
    store.flush().expect("flushed");
    store.put(b"one", b"1").expect("written");
    let next = store.keep_snapshot(None);
    store.compact().expect("compacted");
    let compacted = store.keep_snapshot(None);
    let reads = store.info().reads;
    assert_eq!(differences(&last, &next, KeyRange::default()).len(), 1);
    assert_eq!(differences(&next, &compacted, KeyRange::default()), []);
    assert_eq!(store.info().reads - reads, 2);
}

#[test]
fn shared_files_are_not_read() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    for number in 0..20_000_u32 {
        store.put(&number.to_be_bytes(), b"old").expect("written");
    }
    store.compact().expect("compacted");
    let before = store.keep_snapshot(None);
    store.put(&7_u32.to_be_bytes(), b"new").expect("written");
    store.flush().expect("flushed");
    let after = store.keep_snapshot(None);
    let reads = store.info().reads;
    assert_eq!(differences(&before, &after, KeyRange::default()).len(), 1);
    assert_eq!(store.info().reads - reads, 2);
    let other = open(Directory::new().path(), &options());
    let of_other = before.diff(&other.snapshot(), KeyRange::default());
    assert!(of_other.is_ok_and(|diff| diff.is_none()));
}

#[test]
fn they_end_when_they_are_old() {
    let directory = Directory::new();
    let clock = HookedFs::new(|_, _| Ok(()));
    let options = options()
        .file_system(Arc::clone(&clock) as Arc<dyn ats_disk::fs::FileSystem>)
        .snapshot_age(Duration::from_secs(1));
    let store = open(directory.path(), &options);
    store.put(b"key", b"old").expect("written");
    let minute = store.keep_snapshot(Some(Duration::from_secs(60)));
    let hour = store.keep_snapshot(Some(Duration::from_secs(3600)));
    let ever = store.keep_snapshot(None);
    store.put(b"key", b"new").expect("written");
    store.flush().expect("flushed");
    let old = Ok(Some(b"old".to_vec()));
    clock.pass(Duration::from_secs(59));
    store.work().expect("worked");
    assert_eq!(minute.get(b"key"), old);
    assert_eq!(store.kept_snapshots().count, 3);
    assert!(store.kept_snapshots().oldest >= Duration::from_secs(59));
    // A read finds out, and so does the background.
    clock.pass(Duration::from_secs(1));
    assert_eq!(minute.get(b"key"), Err(Error::Expired));
    assert_eq!(minute.ending(), Some(Ending::Age));
    assert_eq!(store.kept_snapshots().count, 2);
    clock.pass(Duration::from_secs(3600));
    store.work().expect("worked");
    assert_eq!(hour.ending(), Some(Ending::Age));
    assert_eq!((ever.get(b"key"), ever.ending()), (old, None));
    ever.end();
    assert_eq!(ever.ending(), Some(Ending::Ended));
    store.work().expect("worked");
    assert_eq!(store.info().pinned_memory, 0);
}

#[test]
fn threads_find_out_that_they_are_old() {
    let directory = Directory::new();
    let options = options().background(true);
    let store = open(directory.path(), &options);
    store.put(b"key", b"old").expect("written");
    let snapshot = store.keep_snapshot(Some(Duration::from_millis(20)));
    assert!(wait_for(|| snapshot.ending() == Some(Ending::Age)));
}

#[test]
fn the_oldest_end_when_all_hold_too_much() {
    let directory = Directory::new();
    let options = options().snapshot_memory(1 << 20);
    let store = open(directory.path(), &options);
    let snapshots: Vec<_> = (0..20_u8)
        .map(|round| {
            for number in 0..200_u8 {
                let value = vec![round; 1000];
                store.put(&[number], &value).expect("written");
            }
            let snapshot = store.keep_snapshot(None);
            store.flush().expect("flushed");
            snapshot
        })
        .collect();
    let kept = store.kept_snapshots();
    assert!(kept.memory > 0 && kept.memory <= 1 << 20, "{kept:?}");
    assert!(kept.count > 1 && kept.count < 20, "{kept:?}");
    let (ended, alive) = snapshots.split_at(20 - kept.count);
    for snapshot in ended {
        assert_eq!(snapshot.ending(), Some(Ending::Memory));
    }
    for (round, snapshot) in (0..20).skip(ended.len()).zip(alive) {
        assert_eq!(snapshot.get(&[9]), Ok(Some(vec![round; 1000])));
    }
    // Others are not counted.
    let walk = store.snapshot();
    drop(snapshots);
    assert_eq!(store.kept_snapshots().count, 0);
    assert!(walk.get(&[9]).is_ok());
}
