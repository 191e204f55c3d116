//! A batch as a transaction: threads move money between accounts, and none gets lost.
//!
//! An `AtomicStore` reads several keys, decides, and writes them as one change: no other writer
//! comes between, every reader sees all of it or none, and so does the next opening after a crash.

use ats_disk::{AtomicStore, Batch, DiskStore, Durability, MayBlock, Options};
use ats_store::{Change, Store};
use std::thread;

const ACCOUNTS: u8 = 8;
const START: u64 = 100;
const TRANSFERS: u8 = 200;
const THREADS: u8 = 3;

fn amount(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("values have eight bytes"))
}

/// Moves money from an account to another. Returns `false` if there is not enough.
fn transfer(store: &AtomicStore, from: u8, to: u8, sum: u64) -> Result<bool, ats_store::Error> {
    // The keys of a change ascend.
    let (first, second) = ([from.min(to)], [from.max(to)]);
    let keys = [&first[..], &second[..]];
    store.update(Some(MayBlock::here()), &keys, &mut |index: usize,
                                                      current: Option<
        &[u8],
    >| {
        let there = current.map_or(0, amount);
        let changed = if keys[index] == [from] {
            there.checked_sub(sum)
        } else {
            Some(there + sum)
        };
        match changed {
            Some(changed) => Change::Put(changed.to_le_bytes().to_vec()),
            // Nothing of the change happens.
            None => Change::Abort,
        }
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("ats-transfer-{}", std::process::id()));
    let store = DiskStore::open(&directory, Options::new())?;

    // Independent changes need no more than a batch. This one is on disk when it returns.
    let mut batch = Batch::new();
    for account in 0..ACCOUNTS {
        batch.put(&[account], &START.to_le_bytes())?;
    }
    store.write_with(&batch, Durability::Always)?;

    let atomic = AtomicStore::new(store.clone());
    assert!(!transfer(&atomic, 0, 1, START + 1)?, "too much");
    assert!(transfer(&atomic, 0, 1, START)?);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let atomic = &atomic;
                scope.spawn(move || {
                    (0..TRANSFERS).try_for_each(|round| {
                        let from = (round + number) % ACCOUNTS;
                        let to = (from + 1 + number) % ACCOUNTS;
                        transfer(atomic, from, to, u64::from(round % 7)).map(drop)
                    })
                })
            })
            .collect();
        let mut results = threads.into_iter().map(|thread| thread.join());
        results.try_for_each(|result| result.expect("no thread panics"))
    })?;

    let (mut accounts, mut total) = (0, 0);
    for record in store.scan(..) {
        let (_, value) = record?;
        accounts += 1;
        total += amount(&value);
    }
    assert_eq!((accounts, total), (ACCOUNTS, u64::from(ACCOUNTS) * START));
    println!("{accounts} accounts have {total} after all transfers");
    store.close()?;
    std::fs::remove_dir_all(&directory).ok();
    Ok(())
}
