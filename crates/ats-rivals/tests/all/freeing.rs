//! Records are freed with no lock held, and with no key held by a batch: it can take long.

use crate::stores::freeing::*;
use ats_rivals::{LockFreeTree, LockedHashMap, PaperTree, SingleLock, SkipList};

#[test]
fn a_single_lock_frees_without_it() {
    is_freed_without_locks::<SingleLock<Probing>>();
}

#[test]
fn a_skip_list_frees_without_locks() {
    is_freed_without_locks::<SkipList<Probing>>();
}

#[test]
fn the_paper_tree_frees_without_locks() {
    is_freed_without_locks::<PaperTree<Probing>>();
}

#[test]
fn the_lock_free_tree_frees_without_locks() {
    is_freed_without_locks::<LockFreeTree<Probing>>();
}

#[test]
fn a_locked_hash_map_frees_without_its_lock() {
    is_freed_without_locks::<LockedHashMap<Probing>>();
}
