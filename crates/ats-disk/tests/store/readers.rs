//! Readers while others write, memtables become runs, and runs are merged.

use crate::directory::Directory;
use crate::{Records, collect, open, random};
use ats_disk::{Batch, DiskStore, Info, Options};
use ats_store::{Direction, Error, KeyRange, MergeOperator, Merged};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Adds numbers.
struct Sum;

fn number(value: &[u8]) -> Result<i64, Error> {
    let bytes = value.try_into().map_err(|_| Error::Merge)?;
    Ok(i64::from_le_bytes(bytes))
}

impl MergeOperator for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        let sum = number(earlier)?.wrapping_add(number(later)?);
        Ok(Merged::New(sum.to_le_bytes().to_vec()))
    }
}

/// Options with which much happens while little is written.
fn options() -> Options {
    Options::new()
        .operator(Arc::new(Sum))
        .memtable_bytes(20_000)
        .cache_bytes(100_000)
        .block_bytes(256)
        .file_bytes(4_000)
        .fan_in(2)
        .background(true)
}

/// Runs these functions again and again, each in a thread, until enough has happened in the store.
/// They get numbers that count their calls.
fn run(store: &DiskStore, functions: &[&(dyn Fn(u64) + Sync)], is_enough: impl Fn(&Info) -> bool) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for function in functions {
            let is_over = &is_over;
            scope.spawn(move || {
                // A failure ends the other threads, too.
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    for call in 0.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        function(call);
                    }
                }));
                is_over.store(true, Ordering::Relaxed);
                if let Err(panic) = result {
                    std::panic::resume_unwind(panic);
                }
            });
        }
        let start = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            let elapsed = start.elapsed();
            let is_enough = elapsed > Duration::from_millis(500) && is_enough(&store.info());
            if is_enough || elapsed > Duration::from_secs(30) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let info = store.info();
    assert!(is_enough(&info), "{info:?}");
    assert_eq!((info.last_error, info.read_only), (None, None));
}

const ACCOUNTS: u8 = 12;
const EACH: i64 = 1000;

/// Returns a batch that makes all accounts anew.
fn open_accounts() -> Batch {
    let mut batch = Batch::new();
    batch.delete_range(KeyRange::default()).expect("short");
    for account in 0..ACCOUNTS {
        batch.put(&[account], &EACH.to_le_bytes()).expect("short");
    }
    batch
}

fn total(records: &[(Vec<u8>, Vec<u8>)]) -> i64 {
    assert_eq!(records.len(), usize::from(ACCOUNTS));
    let numbers = records.iter().map(|(_, value)| number(value));
    numbers.map(|number| number.expect("a number")).sum()
}

/// Money goes from one account to another in one batch, by operands. However it is looked at, none
/// is lost.
#[test]
fn transfers_keep_their_sum() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    store.write(&open_accounts()).expect("written");
    let write = |seed: u64| {
        let store = &store;
        move |call: u64| {
            let mut batch = Batch::new();
            let amount = (random((seed, call)) % 100) as i64;
            let account = |which| (random((seed, call, which)) % u64::from(ACCOUNTS)) as u8;
            let (from, to) = (account("from"), account("to"));
            batch
                .merge(&[from], &(-amount).to_le_bytes())
                .expect("short");
            batch.merge(&[to], &amount.to_le_bytes()).expect("short");
            match call % 200 {
                199 => store.write(&open_accounts()),
                _ => store.write(&batch),
            }
            .expect("written");
        }
    };
    let scan = |call: u64| {
        let direction = match call % 2 {
            0 => Direction::Up,
            _ => Direction::Down,
        };
        let scan = store
            .scan_lending(KeyRange::default(), direction)
            .expect("a scan");
        assert_eq!(total(&collect(scan)), i64::from(ACCOUNTS) * EACH);
    };
    let take_snapshot = |_: u64| {
        let snapshot = store.snapshot();
        let read = || -> Records {
            let keys = (0..ACCOUNTS).map(|account| vec![account]);
            let values = keys.map(|key| (snapshot.get(&key).expect("read"), key));
            values
                .map(|(value, key)| (key, value.expect("an account")))
                .collect()
        };
        let before = read();
        assert_eq!(total(&before), i64::from(ACCOUNTS) * EACH);
        let scan = snapshot.scan_lending(KeyRange::default(), Direction::Up);
        assert_eq!(collect(scan.expect("a scan")), before);
        thread::yield_now();
        assert_eq!(read(), before);
    };
    run(
        &store,
        &[&write(1), &write(2), &scan, &take_snapshot],
        |info| info.flushes > 3 && info.compactions > 1,
    );
    store.compact().expect("compacted");
    scan(0);
    drop(store);
    let store = open(directory.path(), &options());
    let scan = store.scan_lending(KeyRange::default(), Direction::Down);
    let records = collect(scan.expect("a scan"));
    assert_eq!(total(&records), i64::from(ACCOUNTS) * EACH);
}

/// A batch writes the same number to two keys. A reader that has found it at one finds it, or a
/// newer one, at the other.
#[test]
fn keys_of_a_batch_are_seen_together() {
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    let write = |call: u64| {
        let mut batch = Batch::new();
        let value = (call as i64).to_le_bytes();
        match call % 3 {
            0 => {
                batch.put(b"one", &value).expect("short");
                batch.put(b"other", &value).expect("short");
            }
            1 => {
                batch.delete_range(KeyRange::default()).expect("short");
                batch.put(b"other", &value).expect("short");
                batch.put(b"one", &value).expect("short");
            }
            _ => {
                batch.merge(b"one", &1_i64.to_le_bytes()).expect("short");
                batch.merge(b"other", &1_i64.to_le_bytes()).expect("short");
            }
        }
        // Something else, so that memtables are filled.
        batch.put(&call.to_be_bytes(), &[0; 100]).expect("short");
        store.write(&batch).expect("written");
    };
    let get = |key: &[u8]| {
        let value = store.get(key).expect("read");
        value.map_or(-1, |value| number(&value).expect("a number"))
    };
    let last = std::sync::Mutex::new(-1);
    let read = |call: u64| {
        let (first, second): (&[u8], &[u8]) = match call % 2 {
            0 => (b"one", b"other"),
            _ => (b"other", b"one"),
        };
        let first = get(first);
        let second = get(second);
        assert!(first <= second, "{first} and then {second}");
        let mut last = last.lock().expect("no panic");
        assert!(*last <= first, "{last} and then {first}");
        *last = second;
    };
    run(&store, &[&write, &read], |info| {
        info.flushes > 3 && info.compactions > 1
    });
}

/// Keys that are not written are found exactly once by each walk, among writes of other keys.
#[test]
fn walks_find_lasting_keys_exactly_once() {
    const KEYS: u32 = 2000;
    let directory = Directory::new();
    let store = open(directory.path(), &options());
    let key = |number: u32| number.to_be_bytes().to_vec();
    let mut stable = BTreeMap::new();
    for round in 1..4_i64 {
        for number in (0..KEYS).step_by(2) {
            let value = round.to_le_bytes();
            match number % 6 {
                0 if round < 3 => store.put(&key(number), &value).expect("written"),
                2 => store.merge(&key(number), &value).expect("written"),
                4 if round == 2 => store.delete(&key(number)).expect("written"),
                4 => store.put(&key(number), &value).expect("written"),
                _ => {}
            }
            let value = match number % 6 {
                0 => 2,
                2 => 6,
                _ => 3_i64,
            };
            stable.insert(key(number), value.to_le_bytes().to_vec());
        }
        store.flush().expect("flushed");
    }
    let churn = |call: u64| {
        let number = (random(call) as u32 % KEYS) | 1;
        let value = 1_i64.to_le_bytes();
        match call % 4 {
            0 => store.delete(&key(number)),
            1 => store.merge(&key(number), &value),
            2 => store.delete_range(KeyRange {
                low: Some(&key(number)),
                high: Some(&key(number + 1)),
            }),
            _ => store.put(&key(number), &value),
        }
        .expect("written");
    };
    let walk = |call: u64| {
        let mut bounds = ["low", "high"].map(|which| key(random((call, which)) as u32 % KEYS));
        bounds.sort();
        let range = match call % 3 {
            0 => KeyRange::default(),
            _ => KeyRange {
                low: Some(&bounds[0]),
                high: Some(&bounds[1]),
            },
        };
        let direction = match call % 2 {
            0 => Direction::Up,
            _ => Direction::Down,
        };
        let mut found = collect(store.scan_lending(range, direction).expect("a scan"));
        if direction == Direction::Down {
            found.reverse();
        }
        assert!(found.is_sorted_by(|(a, _), (b, _)| a < b));
        assert!(found.iter().all(|(key, _)| range.has(key)));
        found.retain(|(key, _)| key[3].is_multiple_of(2));
        let expected = stable.iter().filter(|(key, _)| range.has(key));
        assert!(expected.eq(found.iter().map(|(key, value)| (key, value))));
    };
    run(&store, &[&churn, &walk, &walk], |info| {
        info.flushes > 5 && info.compactions > 2
    });
    assert_eq!(store.verify(), Ok(()));
}
