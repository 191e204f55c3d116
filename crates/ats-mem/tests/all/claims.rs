//! A slow change holds only its key, and ends cleanly after any event in the middle.

use crate::stores::claims::*;
use ats_mem::{CaTree, HashTable};

#[test]
fn others_go_on_in_the_tree() {
    others_go_on(CaTree::new());
}

#[test]
fn others_go_on_in_the_hash_table() {
    others_go_on(HashTable::new());
}

#[test]
fn each_way_out_of_the_tree() {
    each_way_out(CaTree::new());
}

#[test]
fn each_way_out_of_the_hash_table() {
    each_way_out(HashTable::new());
}

#[test]
fn a_walk_of_the_hash_table_goes_on() {
    a_walk_goes_on_from_a_key_that_is_removed(HashTable::new());
}

#[test]
fn the_end_of_the_tree_is_held() {
    the_end_is_held(CaTree::new(), true);
}

#[test]
fn a_record_of_the_hash_table_is_held() {
    the_end_is_held(HashTable::new(), false);
}

#[test]
fn records_are_released_once() {
    let expected = each_record_is_released_once(CaTree::<Units>::new())
        + each_record_is_released_once(HashTable::<Units>::new());
    wait_until_released(expected);
}
