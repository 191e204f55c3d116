//! Slow changes, which hold one key.

use crate::*;
use ats_mem::HashTable;

/// Adds one in a change that takes long. Returns `true` if it was not busy.
fn add_alone(store: &impl Records<Plain>, number: u64) -> bool {
    let key = key(number);
    let done = store.update_alone(&key, &pin(), &mut |current| {
        let old = current.map_or(0, |record| record.value()[0]);
        Change::Put(RecordBox::new(&key, &[old + 1], false))
    });
    done.is_ok()
}

/// Adds one under the lock. Returns `true` if it was not busy.
fn add(store: &impl Records<Plain>, number: u64) -> bool {
    let key = key(number);
    let done = store.update(&key, &pin(), &mut |current| {
        let old = current.map_or(0, |record| record.value()[0]);
        Change::Put(RecordBox::new(&key, &[old + 1], false))
    });
    done.is_ok()
}

/// Tests that no addition to a key is lost while the structure around the key changes, in each way
/// of adding.
fn no_addition_is_lost<S: Records<Plain> + Default + 'static>(keys: u64, splits: u32, joins: u32) {
    let [new, there] = [keys + 1, keys];
    explore(move || {
        let store = fill::<S>(evens(keys));
        store.force_adaptation(splits, joins);
        let shared = Arc::new((store, [0; 2].map(AtomicUsize::new)));
        together! {
            shared => {
                shared.1[0].fetch_add(add_alone(&*shared.0, new).into(), Relaxed);
                shared.1[1].fetch_add(add_alone(&*shared.0, there).into(), Relaxed);
            }
            shared => {
                shared.1[1].fetch_add(add_alone(&*shared.0, there).into(), Relaxed);
                shared.1[0].fetch_add(add(&*shared.0, new).into(), Relaxed);
            }
            shared => {
                // Neighbours are added and removed; present keys stay.
                put(&*shared.0, keys + 3, 1);
                remove(&*shared.0, keys + 3);
                let found = get(&*shared.0, there);
                assert!(found >= Some(there), "{found:?}");
                scan_meets(&*shared.0, evens(keys).filter(|number| *number != there));
            }
        }
        let [of_new, of_old] = [0, 1].map(|at: usize| shared.1[at].load(Relaxed) as u64);
        let expected_new = (of_new > 0).then_some(of_new);
        assert_eq!(get(&*shared.0, new), expected_new);
        assert_eq!(get(&*shared.0, there), Some(there + of_old));
        assert_eq!(shared.0.len() as u64, keys + u64::from(of_new > 0));
    });
}

#[test]
fn no_addition_to_the_tree_is_lost() {
    no_addition_is_lost::<CaTree<Plain>>(LEAF, 0, 0);
}

#[test]
fn no_addition_to_a_tree_that_adapts_is_lost() {
    no_addition_is_lost::<CaTree<Plain>>(3 * LEAF, 2, 3);
}

#[test]
fn no_addition_to_the_hash_table_is_lost() {
    no_addition_is_lost::<HashTable<Plain>>(hash::FULL, 2, 3);
}
