//! Records are freed while no lock, and no key, is held: freeing can take long.

use crate::stores::freeing::*;
use ats_mem::{CaTree, HashTable};

#[test]
fn the_tree_frees_without_locks() {
    is_freed_without_locks::<CaTree<Probing>>();
}

#[test]
fn the_hash_table_frees_without_locks() {
    is_freed_without_locks::<HashTable<Probing>>();
}
