//! Ordered stores against a model, and under many threads.

use crate::stores::ordered::*;
use ats_mem::{Plain, Records};
use ats_rivals::{LockFreeTree, SkipList};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_skip_list_behaves_as_a_sorted_map(ops in ops()) {
        behave_as_a_sorted_map(&SkipList::<Plain>::new(), ops)?;
    }

    /// The tree is split and joined as often as possible, seldom, or never.
    #[test]
    fn the_lock_free_tree_behaves_as_a_sorted_map(
        ops in ops(),
        splits in 0u32..10,
        joins in 0u32..10,
    ) {
        let tree = LockFreeTree::<Plain>::new();
        tree.force_adaptation(splits, joins);
        behave_as_a_sorted_map(&tree, ops)?;
    }
}

#[test]
fn many_threads_never_lose_or_leak_a_record_of_a_skip_list() {
    drop(many_threads::<SkipList<_>>(8, 0));
    wait_until_all_are_released(8);
}

#[test]
fn many_threads_never_lose_or_leak_a_record_of_the_lock_free_tree() {
    drop(many_threads::<LockFreeTree<_>>(6, 0));
    wait_until_all_are_released(6);
}

#[test]
fn many_threads_never_lose_or_leak_a_record_while_the_lock_free_tree_adapts() {
    drop(many_threads::<LockFreeTree<_>>(7, 8));
    wait_until_all_are_released(7);
}

#[test]
fn readers_of_a_skip_list_never_see_half_a_batch() {
    readers_never_see_half_a_batch(&SkipList::new());
}

#[test]
fn readers_of_the_lock_free_tree_never_see_half_a_batch() {
    let tree = LockFreeTree::new();
    tree.force_adaptation(7, 5);
    readers_never_see_half_a_batch(&tree);
}

#[test]
fn batches_of_a_skip_list_do_not_lose_updates() {
    batches_do_not_lose_updates(&SkipList::new());
}

#[test]
fn batches_of_the_lock_free_tree_do_not_lose_updates() {
    let tree = LockFreeTree::new();
    tree.force_adaptation(7, 5);
    batches_do_not_lose_updates(&tree);
}
