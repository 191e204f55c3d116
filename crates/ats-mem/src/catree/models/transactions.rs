//! Transactions, which remove keys, beside readers, writers, queries, splits and joins.
//!
//! Mostly, the transaction runs in the thread that begins, so that one preemption lets the other
//! thread run in the middle of it.

use super::*;
use crate::Transaction;
use crate::record::Record;

/// A transaction over two keys, which puts 10 under the second and removes the first if it has its
/// number as the value, and otherwise changes nothing.
pub(super) struct Move {
    numbers: [u64; 2],
    is_done: bool,
}

impl Transaction<Plain> for Move {
    fn may_change(&self, _index: usize) -> bool {
        true
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<Plain>>) -> bool {
        self.is_done = found(0).is_some_and(|first| first.value()[0] == self.numbers[0]);
        true
    }

    fn change(&mut self, index: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
        let key = key(self.numbers[index]);
        match (self.is_done, index) {
            (false, _) => Change::Keep,
            (true, 0) => Change::Remove,
            (true, _) => Change::Put(RecordBox::new(&key, &[10], false)),
        }
    }

    fn release(&mut self, _has_committed: bool) {}
}

/// Moves a value from one key to another. Returns `true` if the first had its value.
fn move_value(tree: &CaTree<Plain>, numbers: [u64; 2]) -> bool {
    let keys = numbers.map(key);
    let keys = [&keys[0][..], &keys[1][..]];
    let is_done = false;
    let mut plan = Move { numbers, is_done };
    assert_eq!(tree.transact(&keys, Some(&pin()), &mut plan), Ok(true));
    plan.is_done
}

/// A reader that sees one change of a transaction sees the other.
#[test]
fn a_reader_meets_a_transaction() {
    check_long(|| {
        let tree = one_base(&[2, 6]);
        together(
            &tree,
            |tree| {
                let seen = [get(tree, 6) == Some(10), get(tree, 2).is_none()];
                let again = [seen[1], get(tree, 6) == Some(10)];
                assert!(seen.is_sorted() && again.is_sorted(), "{seen:?} {again:?}");
                assert!([&[2, 6][..], &[6]].contains(&&numbers(tree)[..]));
            },
            |tree| assert!(move_value(tree, [2, 6])),
        );
        assert_eq!((numbers(&tree), get(&tree, 6)), (vec![6], Some(10)));
        assert_eq!(tree.len(), 1);
    });
}

/// A transaction decides by the writes of others before it; all others are after it.
#[test]
fn a_transaction_meets_a_writer() {
    check_long(|| {
        let tree = one_base(&[2, 6]);
        let is_done = std::sync::Arc::new(Mutex::new(false));
        let done = std::sync::Arc::clone(&is_done);
        together(
            &tree,
            move |tree| *done.lock().expect("no panic") = move_value(tree, [2, 6]),
            |tree| put(tree, 2, 22),
        );
        let is_done = *is_done.lock().expect("no panic");
        let expected = [(2, 22), (6, if is_done { 10 } else { 6 })];
        assert_eq!(pairs(&tree, When::NOW), expected);
        assert_eq!(tree.len(), 2);
    });
}

#[test]
fn two_transactions_meet() {
    check_long(|| {
        let tree = one_base(&[2, 6]);
        let is_done = std::sync::Arc::new(Mutex::new(0));
        let [one, other] = [(); 2].map(|()| std::sync::Arc::clone(&is_done));
        let count = |tree: &CaTree<Plain>, done: &Mutex<i32>| {
            let moved = move_value(tree, [2, 6]);
            *done.lock().expect("no panic") += i32::from(moved);
        };
        together(
            &tree,
            move |tree| count(tree, &one),
            |tree| count(tree, &other),
        );
        assert_eq!(*is_done.lock().expect("no panic"), 1);
        assert_eq!(pairs(&tree, When::NOW), [(6, 10)]);
    });
}

fn a_transaction_meets(prepare: fn(&[u64]) -> Tree, change: fn(&CaTree<Plain>, u64)) {
    check_long(move || {
        let tree = prepare(&EVEN);
        together(
            &tree,
            move |tree| change(tree, 2),
            |tree| assert!(move_value(tree, [2, 8])),
        );
        assert_eq!(pairs(&tree, When::NOW), [(4, 4), (6, 6), (8, 10)]);
        assert_eq!(tree.len(), 3);
    });
}

#[test]
fn a_transaction_meets_a_split() {
    a_transaction_meets(one_base, split);
}

#[test]
fn a_transaction_meets_a_join() {
    a_transaction_meets(two_bases, join);
}

#[test]
fn a_transaction_meets_a_batch() {
    check_long(|| {
        let tree = one_base(&[2, 4, 6]);
        together(
            &tree,
            |tree| {
                move_value(tree, [2, 6]);
            },
            |tree| put_both(tree, [2, 6], 7),
        );
        // Either way the batch has the last word: the transaction is before it, or does nothing.
        assert_eq!(pairs(&tree, When::NOW), [(2, 7), (4, 4), (6, 7)]);
        assert_eq!(tree.len(), 3);
    });
}

/// A query that begins beside a transaction sees all of it, or nothing, even after it has ended. An
/// older query sees nothing of it.
fn a_query_meets_a_transaction(has_older: bool) {
    check(1, move || {
        let tree = one_base(&[2, 6]);
        let old = quietly(|| has_older.then(|| begin(&tree)));
        let read_point = begin_beside(
            &tree,
            |_| {},
            |tree| {
                assert!(move_value(tree, [2, 6]));
            },
        );
        quietly(|| {
            let met = pairs(&tree, read_point.when());
            let expected: [&[(u64, u64)]; 2] = [&[(2, 2), (6, 6)], &[(6, 10)]];
            assert!(expected.contains(&&met[..]), "{met:?}");
            assert_eq!(met.len() as i64, read_point.objects);
            if let Some(old) = old {
                assert_eq!(pairs(&tree, old.when()), expected[0]);
                tree.end(old);
            }
            assert_eq!(pairs(&tree, read_point.when()), met);
            tree.end(read_point);
        });
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(6, 10)]);
        assert_eq!(tree.len(), 1);
    });
}

#[test]
fn a_first_query_meets_a_transaction() {
    a_query_meets_a_transaction(false);
}

#[test]
fn another_query_meets_a_transaction() {
    a_query_meets_a_transaction(true);
}

/// A query that begins and reads while a transaction runs meets one moment.
#[test]
fn a_query_reads_beside_a_transaction() {
    check(1, || {
        let tree = one_base(&[2, 6]);
        together(
            &tree,
            |tree| {
                query(tree, |met| {
                    let expected: [&[(u64, u64)]; 2] = [&[(2, 2), (6, 6)], &[(6, 10)]];
                    assert!(expected.contains(&met), "{met:?}");
                });
            },
            |tree| assert!(move_value(tree, [2, 6])),
        );
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(6, 10)]);
    });
}

#[test]
fn the_last_query_ends_beside_a_transaction() {
    the_last_query_ends_beside(
        |tree| {
            quietly(|| put(tree, 2, 2));
            assert!(move_value(tree, [2, 6]));
        },
        &[(6, 10)],
    );
}

/// Checks that a size counts a transaction completely or not at all.
fn size_beside(size: fn(&CaTree<Plain>) -> Option<i64>) {
    check(1, move || {
        let tree = one_base(&EVEN);
        together(
            &tree,
            move |tree| {
                let before = get(tree, 8) == Some(10);
                let Some(size) = size(tree) else {
                    return;
                };
                let after = get(tree, 2).is_none();
                assert!(size == 4 || size == 3);
                assert!(size == 3 || !before, "what was seen is counted");
                assert!(size == 4 || after, "what is counted is seen");
            },
            |tree| assert!(move_value(tree, [2, 8])),
        );
        assert_eq!(tree.totals().map(|totals| totals.objects), Ok(3));
        assert_eq!(size_at_once(&tree), Some(3));
    });
}

#[test]
fn a_size_beside_a_transaction() {
    size_beside(size);
}

#[test]
fn a_size_at_once_beside_a_transaction() {
    size_beside(size_at_once);
}
