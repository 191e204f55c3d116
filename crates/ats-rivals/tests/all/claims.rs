//! Tests that a long change holds only its key, and ends cleanly when something fails in it.

use crate::stores::claims::*;
use ats_rivals::{LockFreeTree, LockedHashMap, SkipList};

#[test]
fn others_go_on_in_a_skip_list() {
    others_go_on(SkipList::new());
}

#[test]
fn others_go_on_in_the_lock_free_tree() {
    others_go_on(LockFreeTree::new());
}

#[test]
fn others_go_on_in_a_locked_hash_map() {
    others_go_on(LockedHashMap::new());
}

#[test]
fn each_way_out_of_a_skip_list() {
    each_way_out(SkipList::new());
}

#[test]
fn each_way_out_of_the_lock_free_tree() {
    each_way_out(LockFreeTree::new());
}

#[test]
fn each_way_out_of_a_locked_hash_map() {
    each_way_out(LockedHashMap::new());
}

#[test]
fn a_walk_of_a_locked_hash_map_goes_on() {
    a_walk_goes_on_from_a_key_that_is_removed(LockedHashMap::new());
}

#[test]
fn the_end_of_a_skip_list_is_held() {
    the_end_is_held(SkipList::new(), true);
}

#[test]
fn the_end_of_the_lock_free_tree_is_held() {
    the_end_is_held(LockFreeTree::new(), true);
}

#[test]
fn a_record_of_a_locked_hash_map_is_held() {
    the_end_is_held(LockedHashMap::new(), false);
}

#[test]
fn records_are_released_once() {
    let expected = each_record_is_released_once(SkipList::<Units>::new())
        + each_record_is_released_once(LockFreeTree::<Units>::new())
        + each_record_is_released_once(LockedHashMap::<Units>::new());
    wait_until_released(expected);
}
