//! Splits and joins of base nodes, forced and by contention.

use crate::*;
use ats_mem::{Adaptation, OnFirstSplit};
use shuttle::rand::Rng;
use std::sync::Weak;

type Tree = CaTree<Plain>;

fn adaptation(tree: &Tree) -> Adaptation {
    quietly(|| tree.adaptation())
}

/// Creates a tree of `keys` even numbers, with `splits` forced splits.
fn split(keys: u64, splits: u64) -> Arc<Tree> {
    let tree = fill::<Tree>(evens(keys));
    quietly(|| {
        tree.force_adaptation(1, 0);
        for at in 0..splits {
            let number = 2 * (keys * at / splits);
            put(&*tree, number, number);
        }
        tree.force_adaptation(0, 0);
    });
    let adaptation = adaptation(&tree);
    assert_eq!(adaptation.base_nodes as u64, splits + 1, "{adaptation:?}");
    tree
}

/// Runs writers in all parts of a tree, some of whose writes adapt it, and readers of lasting keys.
fn writers_and_readers(tree: &Arc<Tree>, keys: u64) {
    let end = 2 * keys;
    together! {
        tree => { put(&*tree, 1, 1); remove(&*tree, 1); put(&*tree, end / 2, 7) }
        tree => { put(&*tree, end - 2, 7); put(&*tree, end / 2 + 1, 2); put(&*tree, end, 3) }
        tree => {
            assert_eq!(get(&*tree, 4), Some(4));
            are_ascending_with(&numbers(&*tree), evens(keys));
            let mut down = walk_numbers(&tree, false);
            down.reverse();
            are_ascending_with(&down, evens(keys));
        }
        tree => {
            // Two of the writers' three new numbers stay.
            let counted = count(&tree, 0..end + 1) as u64;
            assert!((keys..=keys + 3).contains(&counted), "{counted}");
        }
    }
    assert_eq!(tree.len() as u64, keys + 2);
    let mut expected: Vec<u64> = evens(keys + 1).chain([end / 2 + 1]).collect();
    expected.sort_unstable();
    assert_eq!(numbers(&**tree), expected);
    quietly(|| are_counted(tree, &expected));
    assert_eq!([end / 2, end - 2].map(|it| get(&**tree, it)), [Some(7); 2]);
    assert_eq!(get(&**tree, end / 2 + 1), Some(2));
}

fn they_meet_splits(keys: u64) {
    explore_reaching(move || {
        let tree = fill::<Tree>(evens(keys));
        tree.force_adaptation(2, 0);
        writers_and_readers(&tree, keys);
        adaptation(&tree).splits > 0
    });
}

#[test]
fn writers_and_readers_meet_a_leaf_that_is_cut() {
    they_meet_splits(LEAF);
}

#[test]
fn writers_and_readers_meet_an_inner_node_that_is_cut() {
    they_meet_splits(4 * LEAF);
}

#[test]
fn writers_and_readers_meet_a_tree_that_is_cut() {
    they_meet_splits(9 * LEAF);
}

fn they_meet_joins(keys: u64, splits: u64) {
    explore_reaching(move || {
        let tree = split(keys, splits);
        tree.force_adaptation(0, 2);
        writers_and_readers(&tree, keys);
        adaptation(&tree).joins > 0
    });
}

#[test]
fn writers_and_readers_meet_leaves_that_are_joined() {
    they_meet_joins(LEAF, 2);
}

#[test]
fn writers_and_readers_meet_trees_that_are_joined() {
    they_meet_joins(9 * LEAF, 3);
}

/// Splits and joins of the same base nodes, and of full route nodes.
#[test]
fn splits_and_joins_meet_under_full_route_nodes() {
    const KEYS: u64 = 4 * LEAF;
    explore_reaching(|| {
        let tree = split(KEYS, 8);
        let before = adaptation(&tree);
        tree.force_adaptation(2, 2);
        writers_and_readers(&tree, KEYS);
        let after = adaptation(&tree);
        after.splits > before.splits && after.joins > before.joins
    });
}

/// A thread that writes nothing joins base nodes, while writers write to them.
#[test]
fn joins_of_idle_parts_meet_writers() {
    explore_reaching(|| {
        let tree = split(2 * LEAF, 3);
        // The next visit finds base nodes that have been idle for long enough.
        quietly(|| (0..3).for_each(|_| assert!(!tree.join_idle(&pin()))));
        let joining = Arc::clone(&tree);
        let joining = thread::spawn(move || {
            joining.join_idle(&pin());
            joining.join_idle(&pin());
        });
        writers_and_readers(&tree, 2 * LEAF);
        joining.join().expect("no panic");
        adaptation(&tree).joins > 0
    });
}

/// Without force, writers that wait for each other split the base node that they contend for.
#[test]
fn a_base_node_that_is_fought_for_splits() {
    let splits = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&splits);
    explore(move || {
        struct Told(AtomicUsize);
        impl OnFirstSplit for Told {
            fn has_split(self: Arc<Self>) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let told = Arc::new(Told(AtomicUsize::new(0)));
        let mut tree = fill::<Tree>(evens(2 * LEAF));
        let notice: Weak<Told> = Arc::downgrade(&told);
        let alone = Arc::get_mut(&mut tree).expect("no other thread has it yet");
        alone.on_first_split(notice);
        let write = |tree: &Tree, from: u64| {
            for number in 0..6 {
                put(tree, from + number % 3, number);
            }
        };
        together! {
            tree => { write(&tree, 0) }
            tree => { write(&tree, 14) }
            tree => { write(&tree, 24) }
        }
        are_ascending_with(&numbers(&*tree), evens(2 * LEAF));
        let adaptation = adaptation(&tree);
        assert_eq!(adaptation.splits > 0, told.0.load(Relaxed) > 0);
        counting.fetch_add(adaptation.splits as usize, Relaxed);
    });
    assert!(splits.load(Relaxed) > 0);
}

/// A tree that is split and joined repeatedly must not get a level of route nodes each time.
#[test]
fn routes_do_not_rise() {
    const KEYS: u64 = 1000;
    once(|| {
        let tree = Tree::new();
        let mut random = shuttle::rand::thread_rng();
        (0..KEYS).for_each(|number| put(&tree, number, number));
        let bases = |tree: &Tree| tree.adaptation().base_nodes;
        for _ in 0..400 {
            tree.force_adaptation(1, 0);
            while bases(&tree) < 200 {
                put(&tree, random.gen_range(0..KEYS), 1);
            }
            tree.force_adaptation(0, 1);
            while bases(&tree) > 20 {
                put(&tree, random.gen_range(0..KEYS), 1);
            }
        }
        assert!(numbers(&tree).into_iter().eq(0..KEYS));
        let depth = tree.adaptation().depth;
        assert!(depth <= 6, "{depth:?}");
    });
}
