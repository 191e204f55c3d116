//! Atomic writes of several keys.

use crate::*;
use ats_mem::HashTable;
use shuttle::rand::Rng;

/// A reader that has seen a batch under one key sees it under all others.
fn reads_all_or_nothing(store: &impl Records<Plain>, one: u64, other: u64) {
    let first = get(store, one);
    let second = get(store, other);
    assert!(
        second >= first,
        "{first:?} under {one}, then {second:?} under {other}"
    );
}

fn batches_against_readers<S: Records<Plain> + Default + 'static>(
    keys: u64,
    splits: u32,
    joins: u32,
) {
    let [low, middle, above, high] = [0, keys + 1, keys + 3, 2 * keys - 2];
    explore(move || {
        let store = fill::<S>(evens(keys));
        // Forced adaptations meet the batches; two batches take the keys in the same order.
        quietly(|| put_all(&*store, &[low, middle, high], 100));
        store.force_adaptation(splits, joins);
        together! {
            store => { put_all(&*store, &[low, middle, high], 101) }
            store => { put_all(&*store, &[low, middle, above, high], 101) }
            store => {
                reads_all_or_nothing(&*store, high, low);
                reads_all_or_nothing(&*store, low, middle);
                assert_eq!(get(&*store, 4), Some(4));
            }
        }
        assert_eq!(
            [low, middle, above, high].map(|number| get(&*store, number)),
            [Some(101); 4]
        );
    });
}

#[test]
fn batches_against_readers_of_the_tree() {
    batches_against_readers::<CaTree<Plain>>(LEAF, 0, 0);
}

#[test]
fn batches_against_readers_of_a_tree_that_adapts() {
    batches_against_readers::<CaTree<Plain>>(3 * LEAF, 2, 3);
}

#[test]
fn batches_against_readers_of_the_hash_table() {
    batches_against_readers::<HashTable<Plain>>(hash::FULL, 0, 0);
}

/// A batch that is undone while a writer waits for it, and while others change the same part.
fn an_aborted_batch<S: Records<Plain> + Default + 'static>(keys: u64, splits: u32, joins: u32) {
    let [low, stays, new] = [keys + 1, keys, keys + 3];
    explore(move || {
        let store = fill::<S>(evens(keys));
        store.force_adaptation(splits, joins);
        together! {
            store => {
                let keys = [2, low, 2 * keys - 2].map(key);
                let keys = keys.each_ref().map(Vec::as_slice);
                let done = store.update_many(&keys, &pin(), &mut |index, _| match index {
                    2 => Change::Abort,
                    _ => Change::Put(RecordBox::new(keys[index], &[1000], false)),
                });
                assert_ne!(done, Ok(true));
            }
            store => { put(&*store, low, 3); put(&*store, new, 5) }
            store => {
                let found = get(&*store, low);
                assert!(found.is_none() || found == Some(3), "{found:?}");
                assert_eq!(get(&*store, 2), Some(2));
                scan_meets(&*store, evens(keys));
            }
        }
        assert_eq!(
            [low, new, stays, 2].map(|number| get(&*store, number)),
            [3, 5, stays, 2].map(Some)
        );
        assert_eq!(store.len() as u64, keys + 2);
    });
}

#[test]
fn an_aborted_batch_leaves_the_tree() {
    an_aborted_batch::<CaTree<Plain>>(LEAF, 0, 0);
}

#[test]
fn an_aborted_batch_leaves_a_tree_that_adapts() {
    an_aborted_batch::<CaTree<Plain>>(3 * LEAF, 2, 3);
}

#[test]
fn an_aborted_batch_leaves_the_hash_table() {
    an_aborted_batch::<HashTable<Plain>>(hash::FULL, 0, 0);
}

/// Batches of distant keys are never in each other's way.
#[test]
fn batches_of_distant_keys_are_never_busy() {
    explore(|| {
        let tree = fill::<CaTree<Plain>>(evens(3 * LEAF));
        tree.force_adaptation(shuttle::rand::thread_rng().gen_range(0..4), 3);
        let batch = |tree: &CaTree<Plain>, from: u64| {
            let keys = [from, from + 1, from + 6].map(key);
            let keys = keys.each_ref().map(Vec::as_slice);
            let done = tree.update_many(&keys, &pin(), &mut |index, _| {
                Change::Put(RecordBox::new(keys[index], &[1], false))
            });
            assert_eq!(done, Ok(true));
        };
        together! {
            tree => { batch(&tree, 0); batch(&tree, 2) }
            tree => { batch(&tree, 16); batch(&tree, 18) }
            tree => { batch(&tree, 32); batch(&tree, 34) }
        }
        assert_eq!(tree.len() as u64, 3 * LEAF + 6);
    });
}
