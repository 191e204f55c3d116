//! Models for `loom`: a transaction over two stores beside readers, queries, and another one.
//!
//! The transaction runs in the thread that begins, so that one preemption lets the other thread run
//! in the middle of it.

use super::{Decision, Part, Transaction, transact_all};
use crate::change::{Busy, Change};
use crate::explore::check_long;
use crate::provided::Provided;
use crate::record::{Plain, Record, RecordBox};
use crate::{CaTree, HashTable, Records, When};
use ats_sync::pin;
use ats_sync::shim::atomic::quietly;
use loom::sync::Arc;
use loom::thread;

const KEY: [u8; 8] = [7; 8];

/// Stores that can be explored.
trait Explored: Records<Plain> + Default + 'static {}

impl<S: Records<Plain> + Default + 'static> Explored for S {}

/// Two stores with the value 1 under the key.
fn stores<S: Explored>() -> Arc<[S; 2]> {
    let stores = <[S; 2]>::default();
    quietly(|| {
        for store in &stores {
            let put = store.put(&KEY, RecordBox::new(&KEY, &[1], false), &pin());
            assert!(put.is_ok());
        }
    });
    Arc::new(stores)
}

fn value(store: &impl Records<Plain>, when: When) -> u64 {
    let guard = pin();
    let found = store.get_at(&KEY, when, &guard);
    found.expect("the key stays").value()[0]
}

fn values(stores: &[impl Records<Plain>; 2]) -> [u64; 2] {
    stores.each_ref().map(|store| value(store, When::NOW))
}

/// The part of a transaction that doubles the value of a store.
struct Double(u64);

impl Transaction<Plain> for Double {
    fn may_change(&self, _index: usize) -> bool {
        true
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<Plain>>) -> bool {
        self.0 = found(0).expect("the key stays").value()[0] * 2;
        true
    }

    fn change(&mut self, _index: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
        Change::Put(RecordBox::new(&KEY, &[self.0], false))
    }

    fn release(&mut self, _has_committed: bool) {}
}

/// A decision that is confirmed, or not.
struct Confirmed(bool);

impl Decision for Confirmed {
    fn decide(&mut self) -> bool {
        true
    }

    fn confirm(&mut self) -> bool {
        self.0
    }
}

/// Doubles the values of both stores, or tries to, named in this order.
fn double(
    stores: &[impl Records<Plain>; 2],
    order: [usize; 2],
    is_confirmed: bool,
) -> Result<bool, Busy> {
    let (mut plans, keys) = ([Double(0), Double(0)], [&KEY[..]]);
    let parts = order.into_iter().zip(&mut plans).map(|(index, plan)| Part {
        store: &stores[index],
        keys: &keys,
        plan,
    });
    let mut parts: Vec<_> = parts.collect();
    transact_all(&mut parts, &mut Confirmed(is_confirmed))
}

/// Runs both functions concurrently.
fn together<S: Explored>(
    stores: &Arc<[S; 2]>,
    one: impl FnOnce(&[S; 2]) + 'static,
    other: impl FnOnce(&[S; 2]),
) {
    let thread = {
        let stores = Arc::clone(stores);
        thread::spawn(move || one(&stores))
    };
    other(stores);
    thread.join().expect("thread");
}

fn double_both(stores: &[impl Records<Plain>; 2]) {
    assert_eq!(double(stores, [0, 1], true), Ok(true));
}

/// A reader that sees the change of one store sees that of the other.
fn a_reader_looks<S: Explored>(first: usize, then: usize) {
    check_long(move || {
        let stores = stores::<S>();
        let read = move |stores: &[S; 2]| {
            let seen = [first, then].map(|index| value(&stores[index], When::NOW));
            assert!([[1, 1], [1, 2], [2, 2]].contains(&seen), "{seen:?}");
        };
        together(&stores, read, double_both);
        assert_eq!(values(&stores), [2, 2]);
    });
}

#[test]
fn a_reader_looks_at_the_first_store_first() {
    a_reader_looks::<HashTable<Plain>>(0, 1);
    a_reader_looks::<CaTree<Plain>>(0, 1);
}

#[test]
fn a_reader_looks_at_the_last_store_first() {
    a_reader_looks::<HashTable<Plain>>(1, 0);
    a_reader_looks::<CaTree<Plain>>(1, 0);
}

/// A query of one moment of a store that sees the change is followed by look-ups in the other that
/// see it, and one that does not, by none before it.
fn a_query_looks<S: Explored>(queried: usize, other: usize) {
    check_long(move || {
        let stores = stores::<S>();
        let read = move |stores: &[S; 2]| {
            let before = value(&stores[other], When::NOW);
            let query = stores[queried].begin(&mut || Ok(true)).expect("it waits");
            let query = query.expect("the store has moments");
            let seen = value(&stores[queried], query.when());
            assert!(before <= seen, "{before} {seen}");
            let after = value(&stores[other], When::NOW);
            assert!(seen <= after, "{seen} {after}");
            assert_eq!(value(&stores[queried], query.when()), seen);
            stores[queried].end(query);
        };
        together(&stores, read, double_both);
    });
}

#[test]
fn a_query_looks_at_the_first_store() {
    a_query_looks::<HashTable<Plain>>(0, 1);
    a_query_looks::<CaTree<Plain>>(0, 1);
}

#[test]
fn a_query_looks_at_the_last_store() {
    a_query_looks::<HashTable<Plain>>(1, 0);
    a_query_looks::<CaTree<Plain>>(1, 0);
}

/// Two transactions that name the stores in different orders come one after the other.
#[test]
fn two_transactions_over_the_same_stores() {
    check_long(|| {
        let stores = stores::<HashTable<Plain>>();
        let other = |stores: &_| assert_eq!(double(stores, [1, 0], true), Ok(true));
        together(&stores, other, double_both);
        assert_eq!(values(&stores), [4, 4]);
    });
}

/// A transaction that is not confirmed is seen by nobody.
#[test]
fn an_undone_transaction() {
    check_long(|| {
        let stores = stores::<HashTable<Plain>>();
        let read = |stores: &[HashTable<Plain>; 2]| {
            for index in [1, 0, 1] {
                assert_eq!(value(&stores[index], When::NOW), 1);
            }
        };
        let undo = |stores: &_| assert_eq!(double(stores, [0, 1], false), Ok(false));
        together(&stores, read, undo);
        assert_eq!(values(&stores), [1, 1]);
    });
}
