//! Walks over deleted records.

use crate::directory::Directory;
use crate::{all, open, random};
use ats_disk::{DiskStore, Options};
use ats_store::{Direction, KeyRange};
use std::thread;

const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

fn options(background: bool) -> Options {
    Options::new()
        .background(background)
        .memtable_bytes(64 << 10)
}

fn key(queue: u8, number: u32) -> [u8; 6] {
    let [a, b, c, d] = number.to_be_bytes();
    [b'q', queue, a, b, c, d]
}

fn prefix(queue: u8) -> [[u8; 2]; 2] {
    [[b'q', queue], [b'q', queue + 1]]
}

/// Returns the first record of a queue in a direction.
fn first(store: &DiskStore, queue: u8, direction: Direction) -> Option<Vec<u8>> {
    let [low, high] = prefix(queue);
    let range = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let mut scan = store.scan_lending(range, direction).expect("a scan");
    let record = scan.next().expect("scanned");
    record.map(|(key, _)| key.to_vec())
}

/// Fills three queues, which are neighbours.
fn fill(store: &DiskStore, records: u32) {
    for queue in 0..3 {
        for number in 0..records {
            store.put(&key(queue, number), b"value").expect("written");
        }
    }
}

/// Returns `true` if a walk over the middle queue comes to a key.
fn is_found(store: &DiskStore, key: &[u8], direction: Direction) -> bool {
    let [low, high] = prefix(1);
    let range = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let mut scan = store.scan_lending(range, direction).expect("a scan");
    while let Some((other, _)) = scan.next().expect("scanned") {
        if other == key {
            return true;
        }
    }
    false
}

/// Takes records from the middle queue. Returns the number of keys that were passed for each.
fn take(store: &DiskStore, numbers: impl Iterator<Item = u32>, direction: Direction) -> f64 {
    let before = store.info().passed_keys;
    let mut taken = 0;
    for number in numbers {
        let found = first(store, 1, direction);
        assert_eq!(found.as_deref(), Some(&key(1, number)[..]));
        store.delete(&key(1, number)).expect("deleted");
        taken += 1;
    }
    (store.info().passed_keys - before) as f64 / f64::from(taken)
}

#[test]
fn a_queue_in_the_middle_passes_each_delete_once() {
    const RECORDS: u32 = 3000;
    for direction in DIRECTIONS {
        let directory = Directory::new();
        let store = open(directory.path(), &options(false));
        fill(&store, RECORDS);
        let number = |taken| match direction {
            Direction::Up => taken,
            Direction::Down => RECORDS - 1 - taken,
        };
        // Taken in memory, with runs, and after all are compacted.
        let passed = take(&store, (0..1000).map(number), direction);
        assert!(passed < 20.0, "{passed} a record");
        store.flush().expect("flushed");
        let passed = take(&store, (1000..2000).map(number), direction);
        assert!(passed < 20.0, "{passed} a record");
        store.compact().expect("compacted");
        let passed = take(&store, (2000..RECORDS).map(number), direction);
        assert!(passed < 20.0, "{passed} a record");
        assert_eq!(first(&store, 1, direction), None);
        // The queue is filled again, at both ends and in the midst.
        for filled in [1500, 0, RECORDS - 1] {
            store.put(&key(1, filled), b"again").expect("written");
            for direction in DIRECTIONS {
                let found = first(&store, 1, direction);
                assert_eq!(found.as_deref(), Some(&key(1, filled)[..]));
            }
            store.delete(&key(1, filled)).expect("deleted");
        }
        assert_eq!(all(&store).len(), 2 * RECORDS as usize);
    }
}

/// Each record is put before those that were taken.
#[test]
fn a_stack_in_the_middle_passes_each_delete_once() {
    let directory = Directory::new();
    let store = open(directory.path(), &options(false));
    fill(&store, 2000);
    take(&store, 0..2000, Direction::Up);
    let before = store.info().passed_keys;
    for round in 0..1000_u32 {
        let at = random(round) as u32 % 2000;
        store.put(&key(1, at), b"again").expect("written");
        let found = first(&store, 1, Direction::Up);
        assert_eq!(found.as_deref(), Some(&key(1, at)[..]));
        store.delete(&key(1, at)).expect("deleted");
        assert_eq!(first(&store, 1, Direction::Down), None);
    }
    let passed = store.info().passed_keys - before;
    assert!(passed < 40_000, "{passed} keys");
}

#[test]
fn deleted_ranges_that_are_neighbours_are_passed_once() {
    for memtable_bytes in [64 << 10, 64 << 20] {
        let directory = Directory::new();
        let options = options(false).memtable_bytes(memtable_bytes);
        let store = open(directory.path(), &options);
        fill(&store, 2000);
        for number in 0..2000 {
            let (low, high) = (key(1, number), key(1, number + 1));
            let range = KeyRange {
                low: Some(&low),
                high: Some(&high),
            };
            store.delete_range(range).expect("deleted");
            let found = first(&store, 1, Direction::Up);
            let next = key(1, number + 1);
            assert_eq!(found.as_deref(), (number < 1999).then_some(&next[..]));
        }
        let passed = store.info().passed_keys;
        assert!(passed < 40_000, "{passed} keys");
    }
}

#[test]
fn snapshots_read_records_from_before_a_gap() {
    let directory = Directory::new();
    let store = open(directory.path(), &options(false));
    fill(&store, 100);
    let before = store.snapshot();
    take(&store, 0..100, Direction::Up);
    let empty = store.snapshot();
    store.put(&key(1, 50), b"again").expect("written");
    let after = store.snapshot();
    store.delete(&key(1, 50)).expect("deleted");
    for _ in 0..3 {
        assert_eq!(first(&store, 1, Direction::Up), None);
        for direction in DIRECTIONS {
            for (snapshot, records) in [(&before, 300), (&empty, 200), (&after, 201)] {
                let mut scan = snapshot
                    .scan_lending(KeyRange::default(), direction)
                    .expect("a scan");
                let mut found = 0;
                while scan.next().expect("scanned").is_some() {
                    found += 1;
                }
                assert_eq!(found, records);
            }
        }
        store.flush().expect("flushed");
    }
}

/// Other threads put records before and behind the rest of a queue that is taken from, and look for
/// them.
#[test]
fn later_walks_find_written_records() {
    const ROUNDS: u32 = 20_000;
    let directory = Directory::new();
    let store = open(directory.path(), &options(true));
    fill(&store, 500);
    thread::scope(|scope| {
        let writers = [0, 1].map(|writer: u32| {
            let store = &store;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // Keys that no other thread writes.
                    let number = (random((writer, round)) as u32 % 1000) * 2 + writer;
                    let key = key(1, number + 1000);
                    store.put(&key, b"new").expect("written");
                    for direction in DIRECTIONS {
                        assert!(is_found(store, &key, direction), "{key:?} {direction:?}");
                    }
                    store.delete(&key).expect("deleted");
                }
            })
        });
        for number in 0..500 {
            store.delete(&key(1, number)).expect("deleted");
        }
        while writers.iter().any(|writer| !writer.is_finished()) {
            for direction in DIRECTIONS {
                let _any = first(&store, 1, direction);
            }
        }
    });
    assert_eq!(all(&store).len(), 1000);
}

#[test]
fn the_first_walk_after_deletes_of_neighbours_passes_few() {
    const RECORDS: u32 = 5000;
    for is_flushed in [false, true] {
        for direction in DIRECTIONS {
            let directory = Directory::new();
            let store = open(directory.path(), &options(false));
            fill(&store, RECORDS);
            if is_flushed {
                store.flush().expect("flushed");
                // Blocks that are not in memory are not read for the sake of a gap.
                assert_eq!(all(&store).len(), 3 * RECORDS as usize);
            }
            for taken in 0..RECORDS - 1 {
                let number = match direction {
                    Direction::Up => taken,
                    Direction::Down => RECORDS - 1 - taken,
                };
                store.delete(&key(1, number)).expect("deleted");
            }
            let left = match direction {
                Direction::Up => key(1, RECORDS - 1),
                Direction::Down => key(1, 0),
            };
            let before = store.info().passed_keys;
            for direction in DIRECTIONS {
                let found = first(&store, 1, direction);
                assert_eq!(found.as_deref(), Some(&left[..]));
            }
            let passed = store.info().passed_keys - before;
            assert!(passed < 300, "{passed} keys, {is_flushed} {direction:?}");
        }
    }
}
