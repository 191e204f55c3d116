//! Base nodes of the tree as it was published, that are split and joined by force: what the threads
//! find that stand on a route node which is spliced out.

use crate::exploring::*;
use ats_mem::When;
use ats_mem::{Adaptive, Backend, Change, Ordered, Plain};
use ats_rivals::PaperTree;
use ats_sync::pin;
use ats_sync::shim::atomic::quietly;
use std::ops::ControlFlow;
use std::sync::Arc;

type Tree = PaperTree<Plain>;

/// A tree with a base node for each of these numbers, in the order in which they are put: each cuts
/// a base node of one record, so the first one is alone.
fn split(numbers: &[u64]) -> Arc<Tree> {
    let tree = Tree::new();
    quietly(|| {
        tree.force_adaptation(1, 0);
        numbers
            .iter()
            .for_each(|number| put(&tree, *number, *number));
        tree.force_adaptation(0, 1);
        assert_eq!(tree.adaptation().base_nodes, numbers.len());
    });
    Arc::new(tree)
}

/// Writes nothing, and has the base node of this number joined.
fn join(tree: &Tree, number: u64) {
    let done = tree.update(&key(number), &pin(), &mut |_| Change::Keep);
    assert_eq!(done, Ok(()));
}

fn joins(tree: &Tree) -> u64 {
    quietly(|| tree.adaptation().joins)
}

/// The numbers met from the last one below a number, or of all, down.
fn numbers_down(tree: &Tree, below: Option<u64>) -> Vec<u64> {
    let (mut met, below) = (Vec::new(), below.map(key));
    tree.scan_down(below.as_deref(), When::NOW, &pin(), &mut |record| {
        met.push(number(record.key()));
        ControlFlow::Continue(())
    });
    met
}

/// Asserts that the tree is all right, without threads.
fn is_whole(tree: &Tree, mut expected: Vec<u64>) {
    quietly(|| {
        let adaptation = tree.adaptation();
        let joined = adaptation.splits - adaptation.joins;
        assert_eq!(adaptation.route_nodes as u64, joined, "{adaptation:?}");
        assert_eq!(adaptation.base_nodes as u64, joined + 1, "{adaptation:?}");
        assert_eq!(numbers(tree), expected);
        assert!(
            expected
                .iter()
                .all(|number| get(tree, *number) == Some(*number))
        );
        expected.reverse();
        assert_eq!(numbers_down(tree, None), expected);
    });
}

/// Number 10 comes to the base node of 7, to the left, while a walk upwards stands above 10.
#[test]
fn a_walk_up_meets_what_has_come_from_the_right() {
    explore_reaching(|| {
        let tree = split(&[1, 4, 10, 7]);
        together! {
            tree => { join(&tree, 10) }
            tree => { assert_eq!(numbers(&*tree), [1, 4, 7, 10]) }
        }
        is_whole(&tree, vec![1, 4, 7, 10]);
        joins(&tree) > 0
    });
}

/// Number 1 comes to the base node of 4, to the right, while a walk downwards stands above 1.
#[test]
fn a_walk_down_meets_what_has_come_from_the_left() {
    explore_reaching(|| {
        let tree = split(&[1, 4, 7]);
        together! {
            tree => { join(&tree, 1) }
            tree => { assert_eq!(numbers_down(&tree, Some(7)), [4, 1]) }
        }
        is_whole(&tree, vec![1, 4, 7]);
        joins(&tree) > 0
    });
}

/// Two route nodes, one of which is the parent of the other, are spliced out at the same time, with
/// four different base nodes.
#[test]
fn a_route_goes_together_with_the_one_above_it() {
    explore_reaching(|| {
        let tree = split(&[1, 4, 10, 7]);
        together! {
            tree => { join(&tree, 10) }
            tree => { join(&tree, 1) }
            tree => { assert_eq!([4, 10].map(|it| get(&*tree, it)), [Some(4), Some(10)]) }
        }
        is_whole(&tree, vec![1, 4, 7, 10]);
        joins(&tree) == 2
    });
}

/// A base node is chosen as a neighbour by two others, while it chooses one itself.
#[test]
fn neighbours_on_both_sides_join() {
    explore_reaching(|| {
        let tree = split(&[1, 4, 7]);
        together! {
            tree => { join(&tree, 1) }
            tree => { join(&tree, 4) }
            tree => { join(&tree, 7) }
        }
        is_whole(&tree, vec![1, 4, 7]);
        joins(&tree) > 0
    });
}

/// A node that was just joined is split again before the thread that has joined it is done.
#[test]
fn writers_and_readers_meet_all_at_once() {
    for (splits, joins) in [(2, 2), (3, 2), (2, 3)] {
        explore(move || {
            let tree = split(&[10, 20, 50, 30, 40]);
            tree.force_adaptation(splits, joins);
            together! {
                tree => { put(&*tree, 25, 25); remove(&*tree, 25); put(&*tree, 55, 55) }
                tree => { put(&*tree, 15, 15); put(&*tree, 35, 35); remove(&*tree, 15) }
                tree => {
                    let stay = [10, 20, 30, 40, 50];
                    assert_eq!(get(&*tree, 30), Some(30));
                    are_ascending_with(&numbers(&*tree), stay.into_iter());
                    let mut down = numbers_down(&tree, None);
                    down.reverse();
                    are_ascending_with(&down, stay.into_iter());
                }
            }
            is_whole(&tree, vec![10, 20, 30, 35, 40, 50, 55]);
        });
    }
}
