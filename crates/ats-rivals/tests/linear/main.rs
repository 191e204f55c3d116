//! Short histories of stores for comparison, checked for linearizability.
#![cfg(not(loom))]

#[path = "../../../ats-mem/tests/stores/checker.rs"]
mod checker;
#[path = "../../../ats-mem/tests/stores/histories.rs"]
mod histories;

use ats_mem::Plain;
use ats_rivals::{LockFreeTree, LockedHashMap, SkipList};
use histories::{HASH_TABLE, POOL, QUEUE, TREE, histories};

#[test]
fn a_skip_list_is_linearizable() {
    histories::<SkipList<Plain>>(TREE, None);
}

#[test]
fn the_ends_of_a_skip_list_are_linearizable() {
    histories::<SkipList<Plain>>(QUEUE, None);
}

#[test]
fn the_lock_free_tree_is_linearizable() {
    histories::<LockFreeTree<Plain>>(TREE, None);
}

#[test]
fn a_locked_hash_map_is_linearizable() {
    histories::<LockedHashMap<Plain>>(HASH_TABLE, None);
}

#[test]
fn the_ends_of_the_lock_free_tree_are_linearizable() {
    histories::<LockFreeTree<Plain>>(QUEUE, None);
}

#[test]
fn taking_any_record_of_a_locked_hash_map_is_linearizable() {
    histories::<LockedHashMap<Plain>>(POOL, None);
}
