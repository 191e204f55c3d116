//! Interleavings of few threads at changes of the structure, chosen by a scheduler that searches
//! for bugs. Runs under `RUSTFLAGS="--cfg shuttle"`.
//!
//! Most tests build a store that is one write away from a change of its structure, let writers make
//! the change, and let readers read keys that no writer touches; they fail if the change is not
//! reached. Nodes are small here: eight keys in a leaf, eight children of an inner node. The
//! scheduler can switch at each access to an atomic. It does not show the effects of weak memory
//! orders; `loom`, which does, is too slow for structures of this size.
//!
//! | module | subject |
//! |---|---|
//! | [`leaves`] | leaves and inner nodes of the tree that split, share, merge and go |
//! | [`adapting`] | base nodes that are split and joined |
//! | [`batches`] | atomic writes of several keys |
//! | [`claims`] | slow changes, which hold one key |
//! | [`anything`] | random operations of any kind while the tree adapts |
//! | [`hash`] | buckets of the hash table that split and join, and fixations |
//! | [`hashing`] | random operations of any kind while the hash table adapts |
//! | [`read_points`] | snapshot queries |
//! | [`transactions`] | transactions of several keys |
#![cfg(shuttle)]

// Declared before the modules that use its macro.
#[macro_use]
#[path = "../stores/exploring.rs"]
mod exploring;

mod adapting;
mod anything;
mod batches;
mod claims;
mod hash;
mod hashing;
mod leaves;
mod read_points;
mod transactions;

use ats_mem::When;
use ats_mem::{
    Busy, CaTree, Change, Direction, KeyRange, Plain, Provided, RecordBox, Records, Skipped,
};
use ats_sync::pin;
use ats_sync::shim::atomic::quietly;
use exploring::*;
use shuttle::scheduler::RandomScheduler;
use shuttle::{Runner, thread};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs a function once that needs small nodes, but no scheduler.
fn once(act: impl Fn() + Send + Sync + 'static) {
    Runner::new(RandomScheduler::new(1), config(TIME)).run(move || quietly(&act));
}

/// Puts `value` under all of these numbers, which ascend, as one.
fn put_all(store: &impl Records<Plain>, numbers: &[u64], value: u64) {
    let keys: Vec<Vec<u8>> = numbers.iter().map(|number| key(*number)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let guard = pin();
    let put = || {
        store.update_many(&keys, &guard, &mut |index, _| {
            Change::Put(RecordBox::new(keys[index], &[value], false))
        })
    };
    while put() != Ok(true) {
        thread::yield_now();
    }
}

/// Returns the numbers that a chain of `next` or `prev` calls meets.
fn walk_numbers(tree: &CaTree<Plain>, upwards: bool) -> Vec<u64> {
    let mut met = Vec::new();
    let guard = pin();
    let mut here = if upwards {
        tree.first(&guard)
    } else {
        tree.last(&guard)
    };
    while let Some(record) = here {
        met.push(number(record.key()));
        let step = if upwards {
            tree.next(record.key(), &guard)
        } else {
            tree.prev(record.key(), &guard)
        };
        here = step.expect("ordered stores take any key");
    }
    met
}

/// Returns the result of skipping records.
fn skip(
    tree: &CaTree<Plain>,
    range: Range<u64>,
    direction: Direction,
    most: usize,
) -> Result<u64, usize> {
    let (low, high) = (key(range.start), key(range.end));
    let key_range = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let guard = pin();
    match tree.skip(key_range, direction, most, &guard, &mut || {
        ControlFlow::Continue(())
    }) {
        Skipped::At(record, _) => Ok(number(record.key())),
        Skipped::All(skipped) => Err(skipped),
        Skipped::Paused { .. } => panic!("nobody said so"),
    }
}

/// Returns the number of records.
fn count(tree: &CaTree<Plain>, range: Range<u64>) -> usize {
    skip(tree, range, Direction::Up, usize::MAX).expect_err("not so many")
}

/// Asserts that these ascending numbers are counted and found by rank.
fn are_counted(tree: &CaTree<Plain>, numbers: &[u64]) {
    let all = || 0..u64::MAX;
    assert_eq!(count(tree, all()), numbers.len());
    for (rank, number) in numbers.iter().enumerate() {
        assert_eq!(count(tree, 0..*number), rank);
        assert_eq!(skip(tree, all(), Direction::Up, rank), Ok(*number));
        let behind = numbers.len() - rank - 1;
        assert_eq!(skip(tree, all(), Direction::Down, behind), Ok(*number));
    }
}

/// Asserts that a scan meets each of `stay` once, and of the others none twice.
fn scan_meets(store: &impl Records<Plain>, stay: impl Iterator<Item = u64>) {
    let mut met = numbers(store);
    met.sort_unstable();
    are_ascending_with(&met, stay);
}

/// Asserts that a scan, and walks in both directions, meet each of `stay` in order.
fn walks_meet(tree: &CaTree<Plain>, stay: impl Iterator<Item = u64> + Clone) {
    are_ascending_with(&numbers(tree), stay.clone());
    are_ascending_with(&walk_numbers(tree, true), stay.clone());
    let mut down = walk_numbers(tree, false);
    down.reverse();
    are_ascending_with(&down, stay);
}

fn fill<S: Records<Plain> + Default>(numbers: impl Iterator<Item = u64>) -> Arc<S> {
    let store = S::default();
    quietly(|| numbers.for_each(|number| put(&store, number, number)));
    Arc::new(store)
}

/// Returns even numbers, so that odd ones fall between them. They fill leaf after leaf of the tree.
fn evens(count: u64) -> impl Iterator<Item = u64> + Clone {
    (0..count).map(|number| 2 * number)
}

/// Number of keys of a full leaf of the tree.
const LEAF: u64 = 8;

/// Returns the bytes of the nodes of a tree, without records.
fn structure(tree: &CaTree<Plain>) -> usize {
    let mut records = 0;
    quietly(|| {
        let scanned = tree.scan(None, When::NOW, &pin(), &mut |record| {
            records += record.bytes();
            ControlFlow::Continue(())
        });
        assert_eq!(scanned, Ok(()));
        tree.bytes() - records
    })
}
