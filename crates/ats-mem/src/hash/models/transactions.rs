//! Transactions, which remove keys, beside readers, writers, queries, splits and fixed tables.

use super::*;
use crate::Transaction;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A transaction over two keys, which puts the second and removes the first if that is there, and
/// otherwise changes nothing.
struct Move<'a> {
    keys: &'a [&'a [u8]],
    to: u64,
    from_at: usize,
    is_done: bool,
}

impl Transaction<Plain> for Move<'_> {
    fn may_change(&self, _index: usize) -> bool {
        true
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<Plain>>) -> bool {
        self.is_done = found(self.from_at).is_some();
        true
    }

    fn change(&mut self, index: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
        match (self.is_done, index == self.from_at) {
            (false, _) => Change::Keep,
            (true, true) => Change::Remove,
            (true, false) => Change::Put(RecordBox::new(self.keys[index], &[self.to], false)),
        }
    }

    fn release(&mut self, _has_committed: bool) {}
}

/// Replaces a number by another one. Returns `true` if it was there.
fn replace(table: &Table, from: u64, to: u64) -> bool {
    let numbers = sort(&[from, to]);
    let keys = [key(numbers[0]), key(numbers[1])];
    let keys = [&keys[0][..], &keys[1]];
    let mut plan = Move {
        keys: &keys,
        to,
        from_at: usize::from(to < from),
        is_done: false,
    };
    assert_eq!(table.transact(&keys, Some(&pin()), &mut plan), Ok(true));
    plan.is_done
}

/// Returns a number of each of two buckets, and another one of the first.
fn three_numbers() -> [u64; 3] {
    let mut first = ending_in(0, 1);
    let (from, stays) = (first.next(), first.next());
    [from, ending_in(1, 1).next(), stays].map(|number| number.expect("there is one"))
}

/// A reader that sees one change of a transaction sees the other.
#[test]
fn a_reader_meets_a_transaction() {
    let [from, to, stays] = three_numbers();
    check_long(move || {
        let table = fill_table(&[from, stays], 2);
        together(
            &table,
            move |table| {
                let seen = [has(table, to), !has(table, from)];
                let again = [seen[1], has(table, to)];
                assert!(seen.is_sorted() && again.is_sorted(), "{seen:?} {again:?}");
            },
            move |table| assert!(replace(table, from, to)),
        );
        assert_eq!((numbers(&table), table.len()), (sort(&[to, stays]), 2));
    });
}

/// One of two transactions that want to replace the same number does.
#[test]
fn two_transactions_meet() {
    let [from, to, stays] = three_numbers();
    check_long(move || {
        let table = fill_table(&[from], 2);
        let is_done = std::sync::Arc::new(AtomicUsize::new(0));
        let dones = [(); 2].map(|()| std::sync::Arc::clone(&is_done));
        let [one, other] = dones.map(|done| {
            move |table: &Table, to| {
                done.fetch_add(replace(table, from, to).into(), Ordering::Relaxed);
            }
        });
        together(
            &table,
            move |table| one(table, to),
            move |table| other(table, stays),
        );
        assert_eq!(is_done.load(Ordering::Relaxed), 1);
        assert_eq!((numbers(&table).len(), table.len()), (1, 1));
    });
}

#[test]
fn a_transaction_meets_a_split() {
    let [stays, goes] = of_bucket_0(1, 1)[..] else {
        unreachable!("there are two")
    };
    check_long(move || {
        let table = fill_table(&[goes], 2);
        together(&table, split, move |table| {
            assert!(replace(table, goes, stays));
        });
        assert_eq!((numbers(&table), table.len()), (vec![stays], 1));
    });
}

/// A key that a transaction has removed from a fixed table stays known to walks.
#[test]
fn a_transaction_meets_a_fixed_table() {
    let [from, to, stays] = three_numbers();
    check_long(move || {
        let table = fill_table(&[from, stays], 2);
        table.fix();
        together(
            &table,
            move |table| {
                let there = has(table, from);
                assert!(table.next(&key(from), &pin()).is_ok());
                assert!(there || has(table, to));
            },
            move |table| assert!(replace(table, from, to)),
        );
        assert!(table.next(&key(from), &pin()).is_ok());
        assert_eq!((numbers(&table), table.len()), (sort(&[to, stays]), 2));
        table.unfix();
        quietly(|| while !table.tidy(100, &pin()) {});
        assert!(table.next(&key(from), &pin()).is_err());
        let bytes = table.memory().records;
        quietly(|| {
            remove(&table, to);
            remove(&table, stays);
        });
        assert!(bytes > 0);
        assert_eq!(table.memory().records, 0);
    });
}

/// A query that begins beside a transaction sees all of it, or nothing, even after it has ended.
fn a_query_meets_a_transaction(has_older: bool, is_fixed: bool) {
    let [from, to, stays] = three_numbers();
    check(1, move || {
        let table = fill_table(&[from, stays], 2);
        if is_fixed {
            table.fix();
        }
        let old = quietly(|| has_older.then(|| begin(&table)));
        together(
            &table,
            move |table| query(table, &[&sort(&[from, stays]), &sort(&[to, stays])]),
            move |table| assert!(replace(table, from, to)),
        );
        if let Some(old) = old {
            assert_eq!(numbers_at(&table, old.when()), sort(&[from, stays]));
            table.end(old);
        }
        if is_fixed {
            table.unfix();
            quietly(|| while !table.tidy(100, &pin()) {});
        }
        reclaim_all(&table);
        assert_eq!((numbers(&table), table.len()), (sort(&[to, stays]), 2));
        quietly(|| {
            remove(&table, to);
            remove(&table, stays);
        });
        assert_eq!(table.memory().records, 0);
    });
}

#[test]
fn a_first_query_meets_a_transaction() {
    a_query_meets_a_transaction(false, false);
}

#[test]
fn another_query_meets_a_transaction() {
    a_query_meets_a_transaction(true, false);
}

#[test]
fn a_query_meets_a_transaction_in_a_fixed_table() {
    a_query_meets_a_transaction(false, true);
    a_query_meets_a_transaction(true, true);
}
