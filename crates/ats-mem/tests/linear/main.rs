//! Short histories of three threads on a few keys, recorded many times and checked for
//! linearizability. The threads are those of the system or, under `RUSTFLAGS="--cfg shuttle"`, of a
//! scheduler that switches between them at any access to an atomic.
//!
//! The keys lie among others that no thread touches, so many that one key more or less splits a
//! leaf, or makes the hash table grow. The tree is made to split and to join its base nodes all the
//! time, too. Reads that are no snapshot (`next`, `prev`, `scan`, and walks by many steps) are
//! checked as what they promise to be: one read for each key they passed, each between the call and
//! the return.
#![cfg(not(loom))]

#[path = "../stores/checker.rs"]
mod checker;
#[path = "../stores/histories.rs"]
mod histories;

use ats_mem::{CaTree, HashTable, Plain};
use histories::{HASH_TABLE, POOL, QUEUE, TREE, histories};

#[test]
fn the_tree_is_linearizable() {
    histories::<CaTree<Plain>>(TREE);
}

#[test]
fn the_hash_table_is_linearizable() {
    histories::<HashTable<Plain>>(HASH_TABLE);
}

#[test]
fn the_ends_of_the_tree_are_linearizable() {
    histories::<CaTree<Plain>>(QUEUE);
}

#[test]
fn taking_any_record_of_the_hash_table_is_linearizable() {
    histories::<HashTable<Plain>>(POOL);
}
