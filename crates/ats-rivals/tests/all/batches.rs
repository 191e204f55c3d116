//! Tests that batches end cleanly when something fails in the middle of them.

use crate::stores::batches::*;
use ats_mem::Plain;
use ats_rivals::{LockFreeTree, LockedHashMap, SkipList};

#[test]
fn a_panic_undoes_the_batch_of_a_skip_list() {
    a_panic_undoes_the_batch(SkipList::new());
}

#[test]
fn a_panic_undoes_the_batch_in_the_lock_free_tree() {
    a_panic_undoes_the_batch(LockFreeTree::new());
}

#[test]
fn a_panic_undoes_the_batch_in_a_locked_hash_map() {
    a_panic_undoes_the_batch(LockedHashMap::new());
}

#[test]
fn records_of_batches_are_released_once() {
    let expected = every_way_out_releases_once(SkipList::<Units>::new())
        + every_way_out_releases_once(LockFreeTree::<Units>::new())
        + every_way_out_releases_once(LockedHashMap::<Units>::new());
    wait_until_released(expected);
}

/// The stores run one after the other, since each waits for the guards of the others.
#[test]
fn long_batches_pin_anew() {
    a_long_batch_pins_anew::<SkipList<Looking>>();
    a_long_batch_pins_anew::<LockFreeTree<Looking>>();
    a_long_batch_pins_anew::<LockedHashMap<Looking>>();
}

#[test]
fn records_kept_by_a_batch_stay_in_all_stores() {
    records_kept_by_a_batch_stay::<SkipList<Plain>>();
    records_kept_by_a_batch_stay::<LockFreeTree<Plain>>();
    records_kept_by_a_batch_stay::<LockedHashMap<Plain>>();
}

#[test]
fn only_the_key_is_held_in_a_skip_list() {
    only_the_key_is_held::<SkipList<Plain>>();
}

#[test]
fn only_the_key_is_held_in_the_lock_free_tree() {
    only_the_key_is_held::<LockFreeTree<Plain>>();
}

#[test]
fn only_the_key_is_held_in_a_locked_hash_map() {
    only_the_key_is_held::<LockedHashMap<Plain>>();
}

/// A batch of one key can remove it after a long decision. A walk that is at the key goes on.
#[test]
fn a_key_that_was_held_is_removed_as_any_other() {
    for is_fixed in [false, true] {
        a_held_key_is_removed::<SkipList<Plain>>(is_fixed);
        a_held_key_is_removed::<LockFreeTree<Plain>>(is_fixed);
        a_held_key_is_removed::<LockedHashMap<Plain>>(is_fixed);
    }
}
