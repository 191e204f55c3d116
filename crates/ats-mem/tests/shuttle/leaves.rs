//! Leaves and inner nodes below one base node.

use crate::*;
use shuttle::rand::Rng;
use std::collections::BTreeSet;

type Tree = CaTree<Plain>;

/// Returns the approximate bytes of a leaf and an inner node: the cost of splitting a single leaf.
fn leaf_and_inner() -> usize {
    quietly(|| structure(&fill::<Tree>(evens(LEAF + 1))) - structure(&fill(evens(LEAF))))
}

#[test]
fn readers_meet_a_leaf_that_splits() {
    explore_reaching(|| {
        let tree = fill::<Tree>(evens(LEAF));
        let before = structure(&tree);
        together! {
            tree => { put(&*tree, 9, 9) }
            tree => {
                for number in [0, 6, 8, 10, 14] {
                    assert_eq!(get(&*tree, number), Some(number));
                }
            }
            tree => { walks_meet(&tree, evens(LEAF)) }
        }
        assert_eq!((get(&*tree, 9), tree.len()), (Some(9), 9));
        structure(&tree) > before
    });
}

#[test]
fn two_writers_split_the_same_leaf() {
    explore_reaching(|| {
        let tree = fill::<Tree>(evens(LEAF));
        let before = structure(&tree);
        together! {
            tree => { put(&*tree, 9, 1) }
            tree => { put(&*tree, 1, 2); remove(&*tree, 1) }
            tree => { remove(&*tree, 14); put(&*tree, 14, 3) }
        }
        let mut expected: Vec<u64> = evens(LEAF).chain([9]).collect();
        expected.sort_unstable();
        assert_eq!(numbers(&*tree), expected);
        assert_eq!((tree.len(), get(&*tree, 14)), (9, Some(3)));
        structure(&tree) > before
    });
}

/// A full leaf moves records to its neighbour, to which others write.
#[test]
fn readers_meet_leaves_that_share() {
    explore_reaching(|| {
        let tree = fill::<Tree>(evens(LEAF + 3));
        let before = structure(&tree);
        together! {
            tree => { put(&*tree, 9, 9) }
            tree => { put(&*tree, 17, 17); put(&*tree, 22, 22); remove(&*tree, 17) }
            tree => { walks_meet(&tree, evens(LEAF + 3)) }
        }
        let mut expected: Vec<u64> = evens(LEAF + 4).chain([9]).collect();
        expected.sort_unstable();
        assert_eq!(numbers(&*tree), expected);
        // A split would have made another leaf.
        structure(&tree) < before + leaf_and_inner() / 4
    });
}

/// Merges a leaf of few keys into a full one while others change and read the full one.
fn leaves_merge(base: u64, few: u64) {
    explore_reaching(move || {
        let tree = fill::<Tree>((0..LEAF + few).map(|number| base + 2 * number));
        let stay = move || [0, 10, 12, 14].map(|number| base + number).into_iter();
        // Makes room in the full leaf for the keys of the other.
        quietly(|| (1..5).for_each(|number| remove(&*tree, base + 2 * number)));
        let before = structure(&tree);
        together! {
            tree => {
                for number in LEAF..LEAF + few {
                    remove(&*tree, base + 2 * number);
                }
            }
            tree => { put(&*tree, base, 7); put(&*tree, base + 11, 7); put(&*tree, base + 14, 14) }
            tree => {
                for number in stay() {
                    assert!(get(&*tree, number).is_some());
                }
                walks_meet(&tree, stay());
            }
        }
        assert_eq!(
            (get(&*tree, base), get(&*tree, base + 11)),
            (Some(7), Some(7))
        );
        assert_eq!(get(&*tree, base + 2 * LEAF), None);
        assert_eq!(tree.len(), 5);
        scan_meets(&*tree, stay());
        structure(&tree) < before
    });
}

#[test]
fn readers_meet_an_empty_leaf_that_goes() {
    leaves_merge(0, 2);
}

#[test]
fn readers_meet_leaves_that_merge() {
    leaves_merge(LONG, 3);
}

/// Full leaves below a full inner node: when one of them splits, so does the node, and a new one is
/// made above.
#[test]
fn readers_meet_an_inner_node_that_splits() {
    const KEYS: u64 = 8 * LEAF;
    explore_reaching(|| {
        let tree = fill::<Tree>(evens(KEYS));
        let before = structure(&tree);
        together! {
            tree => { put(&*tree, 65, 65) }
            tree => { put(&*tree, 33, 33); remove(&*tree, 33); put(&*tree, 35, 35) }
            tree => {
                assert_eq!(get(&*tree, 64), Some(64));
                are_ascending_with(&walk_numbers(&tree, true), evens(KEYS));
                assert_eq!(get(&*tree, 126), Some(126));
            }
        }
        assert_eq!(tree.len() as u64, KEYS + 2);
        are_ascending_with(&numbers(&*tree), evens(KEYS).chain([35, 65]));
        // The tree has two more leaves and two more inner nodes.
        structure(&tree) > before + 3 * leaf_and_inner() / 2
    });
}

/// An inner node with one leaf left is replaced by the leaf.
#[test]
fn readers_meet_an_inner_node_that_goes() {
    const KEYS: u64 = 8 * LEAF + 1;
    explore_reaching(|| {
        let tree = fill::<Tree>(evens(KEYS));
        let before = structure(&tree);
        let stay = || evens(KEYS - 1);
        together! {
            tree => { remove(&*tree, 2 * (KEYS - 1)) }
            tree => { put(&*tree, 126, 7); remove(&*tree, 125) }
            tree => {
                are_ascending_with(&numbers(&*tree), stay());
                let mut down = walk_numbers(&tree, false);
                down.reverse();
                are_ascending_with(&down, stay());
            }
        }
        assert!(numbers(&*tree).into_iter().eq(stay()));
        assert_eq!(get(&*tree, 126), Some(7));
        structure(&tree) + leaf_and_inner() * 3 / 4 < before
    });
}

/// A tree that grows and shrinks repeatedly, but never becomes empty, must not become higher each
/// time.
#[test]
fn nodes_do_not_rise() {
    once(|| {
        let tree = Tree::new();
        let mut random = shuttle::rand::thread_rng();
        let mut present = BTreeSet::new();
        for _ in 0..400 {
            for _ in 0..600 {
                let number = random.gen_range(0..1 << 30);
                put(&tree, number, number);
                present.insert(number);
            }
            for number in numbers(&tree) {
                if random.gen_range(0..20) > 0 {
                    remove(&tree, number);
                    present.remove(&number);
                }
            }
        }
        assert!(numbers(&tree).into_iter().eq(present));
    });
}

/// A key that is appended to a leaf while a walk searches for its start there is not met if it is
/// not after that start.
#[test]
fn walks_begin_in_a_leaf_that_grows() {
    explore(|| {
        let tree = fill::<Tree>(evens(3));
        together! {
            tree => { put(&*tree, 7, 7); put(&*tree, 8, 8); put(&*tree, 9, 9) }
            tree => {
                let guard = pin();
                for from in [7, 8] {
                    let next = tree.next(&key(from), &guard).expect("ordered stores take any key");
                    assert!(next.is_none_or(|record| *record.key() > *key(from)), "next({from})");
                }
            }
            tree => {
                let met = scan_from(&*tree, Some(8));
                assert!(met.iter().all(|(number, _)| *number > 8), "{met:?}");
            }
        }
    });
}
