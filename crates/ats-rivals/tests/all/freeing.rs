//! Tests that records are freed while no lock and no key is held, since freeing can take long.

use crate::stores::freeing::*;
use ats_rivals::{LockFreeTree, LockedHashMap, SkipList};

#[test]
fn a_skip_list_frees_without_locks() {
    is_freed_without_locks::<SkipList<Probing>>();
}

#[test]
fn the_lock_free_tree_frees_without_locks() {
    is_freed_without_locks::<LockFreeTree<Probing>>();
}

#[test]
fn a_locked_hash_map_frees_without_its_lock() {
    is_freed_without_locks::<LockedHashMap<Probing>>();
}
