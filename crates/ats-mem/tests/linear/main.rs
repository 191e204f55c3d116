//! Short histories of three threads on a few keys, recorded many times and checked for
//! linearizability. The threads are those of the system or, under `RUSTFLAGS="--cfg shuttle"`, of a
//! scheduler that switches between them at any access to an atomic.
//!
//! The keys are among others that no thread touches, so many that one key more or less splits a
//! leaf, or makes the hash table grow. The tree is forced to split and join its base nodes all the
//! time, too. Reads that are no snapshot (`next`, `prev`, `scan`, and walks by many steps) are
//! checked against their contract: one read for each key they passed, each between the call and the
//! return.
#![cfg(not(loom))]

#[path = "../stores/checker.rs"]
mod checker;
#[path = "../stores/histories.rs"]
mod histories;

use ats_mem::{CaTree, HashTable, KeyRange, Plain, Records, Skipped};
use ats_sync::pin;
use histories::{HASH_TABLE, POOL, QUEUE, Skip, TREE, histories};
use std::ops::ControlFlow;

fn skip_at_once(tree: &CaTree<Plain>, skip: &Skip) -> Option<Result<u64, usize>> {
    let (low, high) = (skip.range.0.to_be_bytes(), skip.range.1.to_be_bytes());
    let range = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let (direction, most, guard) = (skip.direction, skip.most, pin());
    match tree.skip_at_once(range, direction, most, &guard) {
        Some(Skipped::At(record, _)) => {
            let key = record.key().try_into().expect("a key");
            Some(Ok(u64::from_be_bytes(key)))
        }
        Some(Skipped::All(skipped)) => Some(Err(skipped)),
        Some(Skipped::Paused { .. }) => panic!("it never pauses"),
        None => {
            tree.skip(range, direction, most, &guard, &mut || {
                ControlFlow::Break(())
            });
            None
        }
    }
}

#[test]
fn the_tree_is_linearizable() {
    histories::<CaTree<Plain>>(TREE, Some(skip_at_once));
}

#[test]
fn the_hash_table_is_linearizable() {
    histories::<HashTable<Plain>>(HASH_TABLE, None);
}

#[test]
fn the_ends_of_the_tree_are_linearizable() {
    histories::<CaTree<Plain>>(QUEUE, Some(skip_at_once));
}

#[test]
fn taking_any_record_of_the_hash_table_is_linearizable() {
    histories::<HashTable<Plain>>(POOL, None);
}
