//! Transactions of maps on disk, beside other threads.

use crate::disk::Folder;
use ats::DiskMap;
use ats_disk::{Error, Options};
use fastrand::Rng;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

type Accounts = DiskMap<u8, i64>;

const ACCOUNTS: u8 = 6;
const SUM: i64 = ACCOUNTS as i64 * 100;

/// Returns a map with money on its accounts. Its memtables are small.
fn bank(folder: &Folder) -> Result<Accounts, Error> {
    let map = DiskMap::open_with(folder.path(), Options::new().memtable_bytes(4000))?;
    for account in 0..ACCOUNTS {
        map.put(account, 100)?;
    }
    Ok(map)
}

/// Moves money between two accounts. A closed account has no pair.
fn transfer(map: &Accounts, random: &mut Rng) -> Result<(), Error> {
    let (from, to) = (random.u8(..ACCOUNTS), random.u8(..ACCOUNTS));
    let part = random.bool();
    map.transact(|view| {
        let Some(all) = view.get(from)? else {
            return Ok(());
        };
        let amount = if part { all / 2 } else { all };
        if amount == all {
            view.delete(from);
        } else {
            view.put(from, all - amount)?;
        }
        let other = view.get(to)?.unwrap_or(0);
        view.put(to, other + amount)
    })
}

/// Returns the sum that a transaction sees.
fn sum_seen(map: &Accounts) -> Result<i64, Error> {
    map.transact(|view| {
        let mut sum = 0;
        for account in 0..ACCOUNTS {
            sum += view.get(account)?.unwrap_or(0);
        }
        Ok(sum)
    })
}

/// Money moves between accounts, beside threads that write other keys under the same locks. All
/// sums are the same: those of transactions and of scans, and that of the map when it is opened
/// again.
#[test]
fn no_money_is_made_or_lost() -> Result<(), Error> {
    let folder = Folder::new();
    let map = bank(&folder)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (map, is_over) = (&map, &is_over);
        let mut movers = Vec::new();
        for seed in 0..3 {
            movers.push(scope.spawn(move || {
                let mut random = Rng::with_seed(seed);
                for _ in 0..1000 {
                    transfer(map, &mut random).expect("it is written");
                }
            }));
        }
        scope.spawn(move || {
            let mut random = Rng::with_seed(7);
            while !is_over.load(Ordering::Relaxed) {
                let other = random.u8(100..);
                map.put(other, 1).expect("it is written");
                map.delete(other).expect("it is written");
            }
        });
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(sum_seen(map), Ok(SUM));
                let scanned = map.range(..ACCOUNTS);
                let sum: i64 = scanned.map(|pair| pair.expect("it is read").1).sum();
                assert_eq!(sum, SUM);
            }
        });
        let moved: Vec<_> = movers
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(moved.iter().all(Result::is_ok));
    });
    map.close()?;
    drop(map);
    let map: Accounts = DiskMap::open(folder.path())?;
    assert_eq!(sum_seen(&map)?, SUM);
    Ok(())
}

/// A function whose key was written meanwhile runs again and sees the new value; one whose key is
/// written each time fails. Keys that it only writes, or does not use, do not matter.
#[test]
fn a_function_runs_again_if_its_keys_have_changed() -> Result<(), Error> {
    let folder = Folder::new();
    let map = bank(&folder)?;
    let runs = AtomicUsize::new(0);
    map.transact(|view| {
        let seen = view.get(0)?;
        match runs.fetch_add(1, Ordering::Relaxed) {
            0 => map.put(0, 7)?,
            1 => map.delete(0)?,
            2 => map.put(0, 8)?,
            _ => assert_eq!(seen, Some(8)),
        }
        // The view is of one moment.
        assert_eq!(view.get(0)?, seen);
        map.put(2, 5)?;
        view.put(2, 6)?;
        view.put(1, seen.unwrap_or(0) + 1)
    })?;
    assert_eq!(runs.load(Ordering::Relaxed), 4);
    assert_eq!(
        [0, 1, 2].map(|account| map.get(account)),
        [8, 9, 6].map(|n| Ok(Some(n)))
    );

    runs.store(0, Ordering::Relaxed);
    let contended = map.transact(|view| {
        let seen = view.get(0)?.unwrap_or(0);
        runs.fetch_add(1, Ordering::Relaxed);
        map.put(0, seen + 1)?;
        view.put(1, 0)
    });
    assert_eq!(contended, Err(Error::Contended));
    assert_eq!(runs.load(Ordering::Relaxed), 1000);
    assert_eq!(map.get(1)?, Some(9));
    Ok(())
}

/// Errors of the function have any type that those of the map can become, and leave all as it was.
#[test]
fn an_error_abandons_a_transaction() -> Result<(), Error> {
    #[derive(Debug, PartialEq)]
    enum Refusal {
        Poor(i64),
        Map(Error),
    }

    impl From<Error> for Refusal {
        fn from(error: Error) -> Self {
            Refusal::Map(error)
        }
    }

    let folder = Folder::new();
    let map = bank(&folder)?;
    let poor: Result<(), _> = map.transact(|view| {
        view.delete(1);
        let amount = view.remove(0)?.unwrap_or(0);
        Err(Refusal::Poor(amount))
    });
    assert_eq!(poor, Err(Refusal::Poor(100)));
    assert_eq!(sum_seen(&map)?, SUM);
    map.close()?;
    let closed = map.transact(|view| Ok::<_, Refusal>(view.put(0, 1)?));
    assert!(matches!(closed, Err(Refusal::Map(_))), "{closed:?}");
    Ok(())
}
