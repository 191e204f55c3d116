//! Models for `loom`: every interleaving of two threads with a few switches, and every value that
//! the memory model allows a load to return, while base nodes are split and joined.
//!
//! They run the tree itself, with small nodes, including locks and epochs. The heads of keys are no
//! atomics of the model checker, but the words that make them visible are: the number of keys, and
//! the links.

mod histories;
mod transactions;

use super::split_graft::SplitPoint;
use super::{CaTree, Records};
use crate::When;
use crate::change::Change;
use crate::explore::{check, check_long};
use crate::provided::Provided;
use crate::read_points::ReadPoint;
use crate::record::{Plain, RecordBox};
use crate::records::Skipped;
use ats_store::{Direction, KeyRange};
use ats_sync::shim::atomic::quietly;
use ats_sync::{collect, pin};
use loom::sync::Arc;
use loom::thread;
use std::ops::ControlFlow;
use std::sync::Mutex;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn put(tree: &CaTree<Plain>, number: u64, value: u64) {
    let key = key(number);
    let done = tree.put(&key, RecordBox::new(&key, &[value], false), &pin());
    assert!(done.is_ok());
}

fn remove(tree: &CaTree<Plain>, number: u64) {
    let done = tree.remove(&key(number), &pin());
    assert!(done.is_ok());
}

/// Keeps two ascending keys unchanged in one batch.
fn keep_both(tree: &CaTree<Plain>, numbers: [u64; 2]) -> [bool; 2] {
    let keys = numbers.map(key);
    let keys = [&keys[0][..], &keys[1][..]];
    let mut found = [false; 2];
    let done = tree.update_many(&keys, &pin(), &mut |index, current| {
        found[index] = current.is_some();
        Change::Keep
    });
    assert_eq!(done, Ok(true));
    found
}

/// Puts one value under two ascending keys in one batch.
fn put_both(tree: &CaTree<Plain>, numbers: [u64; 2], value: u64) {
    let keys = numbers.map(key);
    let keys = [&keys[0][..], &keys[1][..]];
    let done = tree.update_many(&keys, &pin(), &mut |index, _| {
        Change::Put(RecordBox::new(keys[index], &[value], false))
    });
    assert_eq!(done, Ok(true));
}

fn get(tree: &CaTree<Plain>, number: u64) -> Option<u64> {
    tree.get(&key(number), &pin())
        .map(|record| record.value()[0])
}

fn numbers(tree: &CaTree<Plain>) -> Vec<u64> {
    let mut met = Vec::new();
    let scanned = tree.scan(None, When::NOW, &pin(), &mut |record| {
        let number = record.key().try_into().expect("keys of eight bytes");
        met.push(u64::from_be_bytes(number));
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    met
}

/// Splits the base node of a key in the middle, unless another thread is adapting.
fn split(tree: &CaTree<Plain>, number: u64) {
    let (key, guard) = (key(number), pin());
    let locked = tree.lock_leaf(&key, &guard);
    tree.routes
        .split(locked.base, &locked.held, SplitPoint::Middle, &key, &guard);
}

/// Joins the base node of a key with a neighbour, unless another thread is adapting, or holds the
/// neighbour.
fn join(tree: &CaTree<Plain>, number: u64) {
    let (key, guard) = (key(number), pin());
    let locked = tree.lock_leaf(&key, &guard);
    tree.routes.join(locked.base, &locked.held, &key, &guard);
}

fn bases(tree: &CaTree<Plain>) -> usize {
    tree.estimate_nodes().adaptation.base_nodes
}

type Tree = Arc<CaTree<Plain>>;

const EVEN: [u64; 4] = [2, 4, 6, 8];

/// Creates a tree of these numbers, as keys and values, in one base node.
fn one_base(numbers: &[u64]) -> Tree {
    let tree = CaTree::new();
    quietly(|| {
        for number in numbers {
            put(&tree, *number, *number);
        }
    });
    Arc::new(tree)
}

/// Creates the same tree in two base nodes.
fn two_bases(numbers: &[u64]) -> Tree {
    let tree = one_base(numbers);
    quietly(|| split(&tree, numbers[0]));
    assert_eq!(tree.routes.splits(), 1);
    tree
}

/// Runs both functions concurrently.
fn together(
    tree: &Tree,
    one: impl FnOnce(&CaTree<Plain>) + 'static,
    other: impl FnOnce(&CaTree<Plain>),
) {
    let thread = {
        let tree = Arc::clone(tree);
        thread::spawn(move || one(&tree))
    };
    other(tree);
    thread.join().expect("thread");
}

#[test]
fn a_writer_meets_a_split() {
    check(2, || {
        let tree = one_base(&EVEN);
        together(
            &tree,
            |tree| split(tree, 4),
            |tree| {
                put(tree, 7, 7);
                remove(tree, 2);
            },
        );
        assert_eq!(numbers(&tree), [4, 6, 7, 8]);
        assert_eq!((bases(&tree), tree.len()), (2, 4));
    });
}

#[test]
fn a_writer_meets_a_join() {
    check_long(|| {
        let tree = two_bases(&EVEN);
        together(
            &tree,
            |tree| join(tree, 4),
            |tree| {
                put(tree, 7, 7);
                remove(tree, 2);
            },
        );
        assert_eq!(numbers(&tree), [4, 6, 7, 8]);
        assert_eq!(tree.len(), 4);
    });
}

/// Checks that a replaced node, or a replaced record of `puts`, is not freed while a reader uses
/// it.
fn a_reader_meets(
    prepare: fn(&[u64]) -> Tree,
    change: fn(&CaTree<Plain>, u64),
    puts: &'static [(u64, u64)],
) {
    check_long(move || {
        let tree = prepare(&[2, 6]);
        together(
            &tree,
            move |tree| {
                change(tree, 2);
                for (number, value) in puts {
                    put(tree, *number, *value);
                }
                collect();
            },
            |tree| {
                assert_eq!(numbers(tree), [2, 6]);
            },
        );
        for (number, value) in puts {
            assert_eq!(get(&tree, *number), Some(*value));
        }
    });
}

#[test]
fn a_reader_meets_a_split_and_its_remains() {
    a_reader_meets(one_base, split, &[(6, 66)]);
}

#[test]
fn a_reader_meets_a_join_and_its_remains() {
    // Further writes would double the exploration, and meet an ordinary tree.
    a_reader_meets(two_bases, join, &[]);
}

/// Keys between others are added to the tail of a leaf, and then to a copy, beside a reader.
#[test]
fn a_reader_meets_new_keys_of_a_leaf() {
    check(2, || {
        let tree = one_base(&EVEN);
        together(
            &tree,
            |tree| {
                for number in [5, 3, 7] {
                    put(tree, number, number);
                }
            },
            |tree| {
                let met = numbers(tree);
                assert!(met.windows(2).all(|pair| pair[0] < pair[1]), "{met:?}");
                assert!(EVEN.iter().all(|number| met.contains(number)), "{met:?}");
                // The keys arrived in this order, and the scan began before those it has met.
                let seen = [5, 3, 7].map(|number| met.contains(&number));
                assert!(seen[0] || !seen[1] && !seen[2], "{met:?}");
                assert_eq!(get(tree, 6), Some(6));
                if met.contains(&3) {
                    assert_eq!(get(tree, 5), Some(5));
                }
            },
        );
        assert_eq!(numbers(&tree), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(tree.len(), 7);
    });
}

/// A writer that does not read records still waits for a batch that holds its key.
#[test]
fn a_writer_meets_a_key_that_a_batch_keeps() {
    check_long(|| {
        let tree = one_base(&[2, 6]);
        together(
            &tree,
            |tree| {
                let found = keep_both(tree, [2, 6]);
                // The first stays until the batch has ended, and the second goes after it.
                assert_ne!(found, [true, false]);
            },
            |tree| {
                remove(tree, 2);
                remove(tree, 6);
            },
        );
        assert_eq!(numbers(&tree), []);
        assert_eq!(tree.len(), 0);
    });
}

/// Two neighbours join each other: no thread waits for ever, and no record is lost.
#[test]
fn two_joins_meet() {
    check_long(|| {
        let tree = two_bases(&EVEN);
        together(&tree, |tree| join(tree, 2), |tree| join(tree, 8));
        assert_eq!(numbers(&tree), [2, 4, 6, 8]);
        assert_eq!(tree.len(), 4);
    });
}

#[test]
fn a_split_meets_a_join() {
    check_long(|| {
        let tree = two_bases(&EVEN);
        together(&tree, |tree| split(tree, 2), |tree| join(tree, 8));
        assert_eq!(numbers(&tree), [2, 4, 6, 8]);
        put(&tree, 5, 5);
        put(&tree, 7, 7);
        assert_eq!(numbers(&tree), [2, 4, 5, 6, 7, 8]);
    });
}

#[test]
fn two_splits_meet() {
    check(2, || {
        let tree = two_bases(&EVEN);
        together(&tree, |tree| split(tree, 2), |tree| split(tree, 8));
        assert_eq!(numbers(&tree), [2, 4, 6, 8]);
        assert_eq!(tree.len(), 4);
    });
}

/// Runs a batch whose keys move to other base nodes meanwhile.
fn a_batch_meets(prepare: fn(&[u64]) -> Tree, change: fn(&CaTree<Plain>, u64)) {
    check_long(move || {
        let tree = prepare(&[2, 6]);
        together(
            &tree,
            |tree| put_both(tree, [3, 6], 10),
            move |tree| change(tree, 2),
        );
        assert_eq!(numbers(&tree), [2, 3, 6]);
        assert_eq!([3, 6].map(|number| get(&tree, number)), [Some(10); 2]);
        assert_eq!(tree.len(), 3);
    });
}

#[test]
fn a_batch_meets_a_split() {
    a_batch_meets(one_base, split);
}

#[test]
fn a_batch_meets_a_join() {
    a_batch_meets(two_bases, join);
}

/// A reader that sees one record of a batch sees the others.
#[test]
fn a_reader_meets_a_batch() {
    check_long(|| {
        let tree = one_base(&[2, 6]);
        together(
            &tree,
            |tree| put_both(tree, [2, 6], 10),
            |tree| {
                let found = [2, 6, 2].map(|number| get(tree, number));
                let seen = found.map(|value| value == Some(10));
                assert!(seen.is_sorted(), "{found:?}");
            },
        );
        assert_eq!([2, 6].map(|number| get(&tree, number)), [Some(10); 2]);
    });
}

/// Two writers both want to replace a leaf by a copy.
#[test]
fn two_writers_meet_in_a_leaf() {
    check(2, || {
        let tree = one_base(&EVEN);
        together(
            &tree,
            |tree| put(tree, 3, 3),
            |tree| {
                put(tree, 5, 5);
                put(tree, 6, 66);
            },
        );
        assert_eq!(numbers(&tree), [2, 3, 4, 5, 6, 8]);
        assert_eq!((get(&tree, 6), tree.len()), (Some(66), 6));
    });
}

/// Keys are appended to a leaf in place.
#[test]
fn a_reader_meets_a_row() {
    check(2, || {
        let tree = one_base(&EVEN);
        together(
            &tree,
            |tree| {
                put(tree, 9, 9);
                put(tree, 10, 10);
            },
            |tree| {
                let first = get(tree, 10);
                assert!(first.is_none() || get(tree, 9) == Some(9));
                let met = numbers(tree);
                assert!(
                    [2, 4, 6, 8, 9, 10].starts_with(&met) && met.len() >= 4,
                    "{met:?}"
                );
                assert!(first.is_none() || met.len() == 6);
                let guard = pin();
                let next = tree.next(&key(9), &guard).expect("any key will do");
                assert!(next.is_none_or(|record| record.value()[0] == 10));
            },
        );
    });
}

/// Checks that a walk continues in its leaf, unless that has been replaced before.
fn a_walk_meets(change: impl Fn(&CaTree<Plain>) + Copy + Send + Sync + 'static) {
    check(2, move || {
        let tree = one_base(&EVEN);
        let next = |tree: &CaTree<Plain>, number| {
            let guard = pin();
            let next = tree.next(&key(number), &guard).expect("any key will do");
            next.map(|record| record.value()[0])
        };
        together(&tree, change, move |tree| {
            assert_eq!(next(tree, 2), Some(4));
            let seen = get(tree, 5).is_some();
            let next = next(tree, 4);
            assert!(
                next == Some(5) || (next == Some(6) && !seen),
                "{next:?}, {seen}"
            );
        });
    });
}

#[test]
fn a_walk_meets_a_leaf_that_is_replaced() {
    a_walk_meets(|tree| put(tree, 5, 5));
}

#[test]
fn a_walk_meets_a_leaf_that_is_cut() {
    a_walk_meets(|tree| {
        split(tree, 4);
        put(tree, 5, 5);
    });
}

/// Numbers that fill an inner node with leaves.
const MANY: std::ops::Range<u64> = 0..17;

fn count(tree: &CaTree<Plain>, below: u64) -> usize {
    let below = key(below);
    let key_range = KeyRange {
        low: None,
        high: Some(&below),
    };
    let go_on = &mut || ControlFlow::Continue(());
    match tree.skip(key_range, Direction::Up, usize::MAX, &pin(), go_on) {
        Skipped::All(count) => count,
        _ => panic!("there are fewer records"),
    }
}

/// Checks that a count, which stores missing subtree counts, and writers, which maintain those they
/// find, do not undo each other's changes.
fn a_count_meets(
    prepare: fn(&[u64]) -> Tree,
    counted_before: bool,
    change: fn(&CaTree<Plain>),
    after: usize,
) {
    check_long(move || {
        let tree = prepare(&MANY.map(|number| 2 * number).collect::<Vec<_>>());
        if counted_before {
            quietly(|| assert_eq!(count(&tree, 100), MANY.count()));
        }
        together(&tree, change, |tree| {
            let counted = count(tree, 100);
            assert!((MANY.count() - 1..=MANY.count() + 1).contains(&counted));
        });
        quietly(|| {
            assert_eq!((count(&tree, 100), tree.len()), (after, after));
            assert_eq!(
                count(&tree, 16),
                numbers(&tree).iter().filter(|it| **it < 16).count()
            );
        });
    });
}

/// Writes in place, by a copy of the leaf, or by another leaf.
fn write(tree: &CaTree<Plain>) {
    put(tree, 35, 35);
    remove(tree, 4);
    put(tree, 9, 9);
}

#[test]
fn a_count_meets_a_writer() {
    a_count_meets(one_base, false, write, MANY.count() + 1);
}

#[test]
fn a_count_with_known_totals_meets_a_writer() {
    a_count_meets(one_base, true, write, MANY.count() + 1);
}

#[test]
fn a_count_meets_a_split() {
    let change = |tree: &CaTree<Plain>| {
        split(tree, 16);
        put(tree, 9, 9);
    };
    a_count_meets(one_base, false, change, MANY.count() + 1);
    a_count_meets(one_base, true, change, MANY.count() + 1);
}

#[test]
fn a_count_meets_a_join() {
    let change = |tree: &CaTree<Plain>| {
        join(tree, 2);
        remove(tree, 4);
    };
    a_count_meets(two_bases, false, change, MANY.count() - 1);
    a_count_meets(two_bases, true, change, MANY.count() - 1);
}

/// A batch is aborted while its leaf moves to another base node.
#[test]
fn an_aborted_batch_meets_a_split() {
    check_long(|| {
        let tree = one_base(&[2, 6]);
        together(
            &tree,
            |tree| {
                let keys = [3, 6].map(key);
                let keys = [&keys[0][..], &keys[1]];
                let done = tree.update_many(&keys, &pin(), &mut |index, _| match index {
                    1 => Change::Abort,
                    _ => Change::Put(RecordBox::new(keys[index], &[10], false)),
                });
                assert_eq!(done, Ok(false));
            },
            |tree| {
                split(tree, 2);
                assert_eq!((get(tree, 3), get(tree, 6)), (None, Some(6)));
            },
        );
        assert_eq!(numbers(&tree), [2, 6]);
        assert_eq!((bases(&tree), tree.len()), (2, 2));
    });
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the model calls this and `size_at_once`"
)]
fn size(tree: &CaTree<Plain>) -> Option<i64> {
    let totals = tree.totals().expect("threads of models may wait");
    Some(totals.objects)
}

/// Returns the size as a rank, if no batch is in the way.
fn size_at_once(tree: &CaTree<Plain>) -> Option<i64> {
    match tree.skip_at_once(KeyRange::default(), Direction::Up, usize::MAX, &pin()) {
        Some(Skipped::All(size)) => Some(size as i64),
        None => None,
        _ => panic!("there are fewer records"),
    }
}

/// Checks that a size belongs to one moment while base nodes are split or joined, and counts a
/// batch completely or not at all.
fn size_beside(
    prepare: fn() -> Tree,
    adapt: fn(&CaTree<Plain>),
    size: fn(&CaTree<Plain>) -> Option<i64>,
) {
    check(1, move || {
        let tree = prepare();
        together(
            &tree,
            move |tree| {
                adapt(tree);
                put_both(tree, [1, 7], 0);
            },
            move |tree| {
                let before = get(tree, 7).is_some();
                let Some(size) = size(tree) else {
                    return;
                };
                let after = get(tree, 1).is_some();
                assert!(size == 4 || size == 6);
                assert!(size == 6 || !before, "what was seen is counted");
                assert!(size == 4 || after, "what is counted is seen");
            },
        );
        assert_eq!(tree.totals().map(|totals| totals.objects), Ok(6));
    });
}

#[test]
fn a_size_beside_a_split_and_a_batch() {
    size_beside(|| one_base(&EVEN), |tree| split(tree, 4), size);
}

#[test]
fn a_size_at_once_beside_a_split_and_a_batch() {
    size_beside(|| one_base(&EVEN), |tree| split(tree, 4), size_at_once);
}

#[test]
fn a_size_beside_a_join_and_a_batch() {
    size_beside(|| two_bases(&EVEN), |tree| join(tree, 4), size);
}

#[test]
fn a_size_at_once_beside_a_join_and_a_batch() {
    size_beside(|| two_bases(&EVEN), |tree| join(tree, 4), size_at_once);
}

/// The first keys of a tree are added in place to an empty leaf, after the first key, and in a leaf
/// that replaces the small one. A walk meets a prefix of the row, and a later lookup finds each key
/// that it met.
#[test]
fn a_small_leaf_is_filled_and_replaced() {
    check(2, || {
        let tree = one_base(&[]);
        let writing = Arc::clone(&tree);
        let writer =
            thread::spawn(move || (1..=3).for_each(|number| put(&writing, number, number)));
        let met = numbers(&tree);
        assert!([1, 2, 3].starts_with(&met), "{met:?}");
        if let Some(last) = met.last() {
            assert_eq!(get(&tree, *last), Some(*last));
        }
        writer.join().expect("no panic");
        assert_eq!(numbers(&tree), [1, 2, 3]);
    });
}

/// Two writers start in the same empty leaf, and the keys of both must be found.
#[test]
fn two_writers_meet_in_a_small_leaf() {
    check(2, || {
        let tree = one_base(&[]);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || put(&other, 2, 2));
        put(&tree, 1, 1);
        assert_eq!(get(&tree, 1), Some(1));
        writer.join().expect("no panic");
        assert_eq!(numbers(&tree), [1, 2]);
    });
}

/// A lookup of a lasting key meets a leaf that loses all other keys, and becomes small.
#[test]
fn a_leaf_becomes_a_small_one() {
    check(2, || {
        let tree = one_base(&[1, 2, 3]);
        let writing = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            remove(&writing, 1);
            remove(&writing, 3);
        });
        assert_eq!(get(&tree, 2), Some(2));
        writer.join().expect("no panic");
        assert_eq!(numbers(&tree), [2]);
    });
}

/// Returns the contents at a read point.
fn pairs(tree: &CaTree<Plain>, when: When) -> Vec<(u64, u64)> {
    let mut met = Vec::new();
    let scanned = tree.scan(None, when, &pin(), &mut |record| {
        let number = record.key().try_into().expect("keys of eight bytes");
        met.push((u64::from_be_bytes(number), record.value()[0]));
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    met
}

fn begin(tree: &CaTree<Plain>) -> ReadPoint {
    let read_point = tree
        .begin(&mut || Ok(true))
        .expect("threads of models may wait");
    read_point.expect("a tree has moments")
}

/// Runs a query that reads twice; `check` must accept both results.
fn query(tree: &CaTree<Plain>, check: impl Fn(&[(u64, u64)])) {
    let read_point = begin(tree);
    let first = pairs(tree, read_point.when());
    check(&first);
    assert_eq!(first.len() as i64, read_point.objects, "{first:?}");
    assert_eq!(pairs(tree, read_point.when()), first);
    tree.end(read_point);
}

/// Reclaims all versions after the last query, and checks that no record leads to one.
fn reclaim_all(tree: &CaTree<Plain>) {
    quietly(|| {
        while !tree.reclaim(100, &pin()) {}
        let guard = pin();
        let scanned = tree.scan(None, When::NOW, &guard, &mut |record| {
            assert!(record.version(&guard).is_none(), "{:?}", record.key());
            ControlFlow::Continue(())
        });
        assert_eq!(scanned, Ok(()));
    });
}

/// Checks that a query that sees the later of two writes of one thread sees the earlier.
fn a_query_meets_two_writes(prepare: fn(&[u64]) -> Tree) {
    check_long(move || {
        let tree = prepare(&[2, 6]);
        together(
            &tree,
            |tree| {
                put(tree, 2, 22);
                put(tree, 6, 66);
            },
            |tree| {
                query(tree, |met| {
                    let expected = [[(2, 2), (6, 6)], [(2, 22), (6, 6)], [(2, 22), (6, 66)]];
                    assert!(expected.iter().any(|pairs| pairs == met), "{met:?}");
                });
            },
        );
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(2, 22), (6, 66)]);
    });
}

#[test]
fn a_query_meets_two_writes_under_one_lock() {
    a_query_meets_two_writes(one_base);
}

#[test]
fn a_query_meets_two_writes_under_two_locks() {
    a_query_meets_two_writes(two_bases);
}

/// Begins a query, and continues, in the middle of another thread's change. That thread runs first,
/// so one preemption is enough.
fn begin_beside(
    tree: &Tree,
    go_on: fn(&CaTree<Plain>),
    other: impl FnOnce(&CaTree<Plain>),
) -> ReadPoint {
    let begun = std::sync::Arc::new(Mutex::new(None));
    let read_point = std::sync::Arc::clone(&begun);
    let one = move |tree: &CaTree<Plain>| {
        *read_point.lock().expect("no panic") = Some(begin(tree));
        go_on(tree);
    };
    together(tree, one, other);
    let read_point = begun.lock().expect("no panic").take();
    read_point.expect("it has begun")
}

/// A query that begins beside a batch sees all of it, or nothing, even after the batch has ended.
/// An older query sees nothing of it.
#[test]
fn a_query_meets_a_batch() {
    check(1, || {
        let tree = one_base(&[2, 6]);
        let old = quietly(|| begin(&tree));
        let read_point = begin_beside(&tree, |_| {}, |tree| put_both(tree, [2, 6], 10));
        quietly(|| {
            let met = pairs(&tree, read_point.when());
            let expected = [[(2, 2), (6, 6)], [(2, 10), (6, 10)]];
            assert!(expected.iter().any(|pairs| *pairs == met[..]), "{met:?}");
            assert_eq!(pairs(&tree, old.when()), expected[0]);
            tree.end(read_point);
            tree.end(old);
        });
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(2, 10), (6, 10)]);
    });
}

#[test]
fn a_query_meets_removals() {
    check(1, || {
        let tree = one_base(&[2, 6]);
        together(
            &tree,
            |tree| {
                remove(tree, 6);
                remove(tree, 2);
            },
            |tree| {
                query(tree, |met| {
                    assert!([(2, 2), (6, 6)].starts_with(met), "{met:?}");
                });
            },
        );
        reclaim_all(&tree);
        assert_eq!((pairs(&tree, When::NOW), tree.len()), (vec![], 0));
    });
}

/// A reclaiming thread may have checked for queries before there was one.
#[test]
fn a_query_begins_beside_a_cut() {
    check(1, || {
        let tree = one_base(&[2, 6]);
        quietly(|| {
            let read_point = begin(&tree);
            put(&tree, 6, 66);
            tree.end(read_point);
        });
        let reclaim = |tree: &CaTree<Plain>| {
            tree.reclaim(100, &pin());
        };
        let read_point = begin_beside(&tree, |tree| put(tree, 2, 22), reclaim);
        assert_eq!(pairs(&tree, read_point.when()), [(2, 2), (6, 66)]);
        tree.end(read_point);
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(2, 22), (6, 66)]);
    });
}

/// Checks that a writer can take over a version that another thread reclaims, because the query has
/// just ended.
fn the_last_query_ends_beside(change: fn(&CaTree<Plain>), after: &'static [(u64, u64)]) {
    check(1, move || {
        let tree = one_base(&[2, 6]);
        let read_point = quietly(|| {
            let read_point = begin(&tree);
            put(&tree, 2, 22);
            remove(&tree, 6);
            read_point
        });
        let end = move |tree: &CaTree<Plain>| {
            tree.end(read_point);
            tree.reclaim(100, &pin());
            collect();
        };
        together(&tree, end, change);
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), after);
        assert_eq!(tree.len(), after.len());
    });
}

#[test]
fn the_last_query_ends_beside_a_put() {
    the_last_query_ends_beside(|tree| put(tree, 2, 23), &[(2, 23)]);
}

#[test]
fn the_last_query_ends_beside_a_removal() {
    the_last_query_ends_beside(|tree| remove(tree, 2), &[]);
}

#[test]
fn the_last_query_ends_beside_a_put_of_a_removed_key() {
    the_last_query_ends_beside(|tree| put(tree, 6, 67), &[(2, 22), (6, 67)]);
}

#[test]
fn the_last_query_ends_beside_a_batch() {
    the_last_query_ends_beside(|tree| put_both(tree, [2, 6], 9), &[(2, 9), (6, 9)]);
}

/// A record between two queries is removed while the older one looks through it.
#[test]
fn a_query_meets_a_record_that_is_passed_over() {
    check(1, || {
        let tree = one_base(&[2, 6]);
        let [old, new] = quietly(|| {
            let old = begin(&tree);
            put(&tree, 2, 22);
            remove(&tree, 6);
            let new = begin(&tree);
            put(&tree, 2, 23);
            put(&tree, 6, 63);
            assert!(tree.reclaim(100, &pin()));
            [old, new]
        });
        together(
            &tree,
            |tree| {
                tree.end(new);
                tree.reclaim(100, &pin());
                collect();
            },
            |tree| assert_eq!(pairs(tree, old.when()), [(2, 2), (6, 6)]),
        );
        assert_eq!(pairs(&tree, old.when()), [(2, 2), (6, 6)]);
        tree.end(old);
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(2, 23), (6, 63)]);
    });
}

/// A query that changes the records it sees keeps no old records for itself, but those that
/// another, concurrently begun query sees: it sees all changes up to its read point, and none of
/// the later ones.
#[test]
fn a_query_meets_changes_of_another() {
    check_long(|| {
        let tree = one_base(&[2, 6]);
        let read_point = quietly(|| begin(&tree));
        let by = read_point.query();
        together(
            &tree,
            move |tree| {
                let guard = pin();
                for (number, new) in [(2, None), (6, Some(66))] {
                    let key = key(number);
                    let done = tree.update_by(&key, by, &guard, &mut |current| {
                        assert!(current.is_some());
                        match new {
                            None => Change::Remove,
                            Some(value) => Change::Put(RecordBox::new(&key, &[value], false)),
                        }
                    });
                    assert_eq!(done, Ok(()));
                }
            },
            |tree| {
                query(tree, |met| {
                    let expected: [&[(u64, u64)]; 3] = [&[(2, 2), (6, 6)], &[(6, 6)], &[(6, 66)]];
                    assert!(expected.contains(&met), "{met:?}");
                });
            },
        );
        tree.end(read_point);
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(6, 66)]);
    });
}
