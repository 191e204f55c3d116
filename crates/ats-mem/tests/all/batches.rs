//! Batches end cleanly after any event in the middle of them.

use crate::stores::batches::*;
use ats_mem::{CaTree, HashTable, Plain};

#[test]
fn a_panic_undoes_the_batch_in_the_tree() {
    a_panic_undoes_the_batch(CaTree::new());
}

#[test]
fn a_panic_undoes_the_batch_in_the_hash_table() {
    a_panic_undoes_the_batch(HashTable::new());
}

#[test]
fn records_of_batches_are_released_once() {
    let expected = every_way_out_releases_once(CaTree::<Units>::new())
        + every_way_out_releases_once(HashTable::<Units>::new());
    wait_until_released(expected);
}

/// The stores are tested one after the other, because the tests wait for each other's guards.
#[test]
fn long_batches_pin_anew() {
    a_long_batch_pins_anew::<CaTree<Looking>>();
    a_long_batch_pins_anew::<HashTable<Looking>>();
}

#[test]
fn records_kept_by_a_batch_stay_in_all_stores() {
    records_kept_by_a_batch_stay::<CaTree<Plain>>();
    records_kept_by_a_batch_stay::<HashTable<Plain>>();
}

#[test]
fn only_the_key_is_held_in_the_tree() {
    only_the_key_is_held::<CaTree<Plain>>();
}

#[test]
fn only_the_key_is_held_in_the_hash_table() {
    only_the_key_is_held::<HashTable<Plain>>();
}

/// A batch of one key can remove it after a long decision; a walk that is at the key continues.
#[test]
fn a_key_that_was_held_is_removed_as_any_other() {
    for is_fixed in [false, true] {
        a_held_key_is_removed::<CaTree<Plain>>(is_fixed);
        a_held_key_is_removed::<HashTable<Plain>>(is_fixed);
    }
}
