//! Records taken from the ends of stores: one after the other, and by many threads.
#![cfg(not(shuttle))]

use crate::stores::pop::*;
use ats_mem::{
    CaTree, Change, Direction, End, HashTable, KeyRange, Plain, Provided, RecordBox, Records,
    Skipped,
};
use ats_sync::pin;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Creates a tree of these numbers with many base nodes.
fn split_tree(numbers: impl Iterator<Item = u64>) -> CaTree<Plain> {
    let tree = CaTree::new();
    tree.force_adaptation(5, 0);
    numbers.for_each(|number| put(&tree, number));
    tree.force_adaptation(0, 0);
    assert!(tree.adaptation().base_nodes > 10);
    tree
}

#[test]
fn both_ends_come_in_order_across_base_nodes() {
    let tree = split_tree((0..3000).map(|i| i * 7919 % 3001));
    let mut left: BTreeSet<u64> = (0..3000).map(|i| i * 7919 % 3001).collect();
    for turn in 0.. {
        let (end, expected) = match turn % 3 {
            0 => (End::Last, left.pop_last()),
            _ => (End::First, left.pop_first()),
        };
        assert_eq!(take(&tree, end), expected);
        if expected.is_none() {
            break;
        }
        assert_eq!(tree.len(), left.len());
    }
    assert_eq!(tree.adaptation().base_nodes, 1);
}

/// Once a thread has counted the records, each record taken must change the count, even when base
/// nodes are joined.
#[test]
fn those_that_are_left_are_counted() {
    let tree = split_tree(0..2000);
    let counted = || {
        let (guard, go_on) = (pin(), &mut || ControlFlow::Continue(()));
        match tree.skip(
            KeyRange::default(),
            Direction::Up,
            usize::MAX,
            &guard,
            go_on,
        ) {
            Skipped::All(records) => records,
            _ => panic!("there are not so many"),
        }
    };
    assert_eq!(counted(), 2000);
    for left in (0..2000).rev() {
        let end = if left % 3 == 0 { End::Last } else { End::First };
        assert!(take(&tree, end).is_some());
        assert!(left % 100 != 0 || counted() == left);
    }
    assert_eq!(take(&tree, End::First), None);
}

/// The remaining records may be anywhere.
#[test]
fn records_behind_empty_base_nodes_are_found() {
    for end in [End::First, End::Last] {
        for survivor in [0, 1, 700, 1999] {
            let tree = split_tree(0..2000);
            for number in (0..2000u64).filter(|number| *number != survivor) {
                let removed = tree.update(&number.to_be_bytes(), &pin(), &mut |_| Change::Remove);
                assert_eq!(removed, Ok(()));
            }
            assert_eq!(take(&tree, end), Some(survivor));
            assert_eq!(take(&tree, end), None);
            put(&tree, 5);
            assert_eq!(take(&tree, end), Some(5));
        }
    }
}

#[test]
fn a_record_at_an_end_can_be_replaced_or_kept() {
    let tree = split_tree(0..500);
    let guard = pin();
    let done = tree.update_end(End::First, &guard, &mut |current| {
        let key = current.expect("the tree is not empty").key();
        Change::Put(RecordBox::new(key, &[77], false))
    });
    assert_eq!(done, Ok(()));
    let done = tree.update_end(End::First, &guard, &mut |_| Change::Keep);
    assert_eq!(done, Ok(()));
    assert_eq!(tree.len(), 500);
    assert_eq!(take(&tree, End::First), Some(77));
    assert_eq!(take(&tree, End::First), Some(1));
}

#[test]
fn a_hash_table_gives_everything_away_in_linear_time() {
    let table = HashTable::new();
    const NUMBERS: u64 = 30_000;
    (0..NUMBERS).for_each(|number| put(&table, number));
    let taken: BTreeSet<u64> = std::iter::from_fn(|| take(&table, End::First)).collect();
    assert!(taken.into_iter().eq(0..NUMBERS));
    // A record before the position of the last one is found, too.
    put(&table, 1);
    put(&table, 2);
    assert_eq!(
        [take(&table, End::Last), take(&table, End::First)]
            .into_iter()
            .flatten()
            .sum::<u64>(),
        3
    );
    assert_eq!(take(&table, End::First), None);
}

#[test]
fn consumers_of_a_tree_share_a_queue() {
    each_number_goes_to_one(CaTree::new(), true);
}

#[test]
fn consumers_of_a_hash_table_share_a_pool() {
    each_number_goes_to_one(HashTable::new(), false);
}
