//! Tests that take records from the ends of stores, in sequence and with many threads.
#![cfg(not(shuttle))]

use crate::stores::pop::*;
use ats_rivals::{LockFreeTree, LockedHashMap, SkipList};

#[test]
fn consumers_of_a_skip_list_share_a_queue() {
    each_number_goes_to_one(SkipList::new(), true);
}

#[test]
fn consumers_of_the_lock_free_tree_share_a_queue() {
    each_number_goes_to_one(LockFreeTree::new(), true);
}

#[test]
fn consumers_of_a_locked_hash_map_share_a_pool() {
    each_number_goes_to_one(LockedHashMap::new(), false);
}
