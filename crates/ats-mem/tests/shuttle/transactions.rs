//! Transactions: several keys that are held, then read, and then changed as one.

use crate::*;
use ats_mem::{HashTable, Record, Transaction};

/// The sum of the values of the two accounts.
const MONEY: u64 = 2;

/// A transaction over two accounts, of which a missing one has nothing. It moves money from the
/// first to the second, if `moves`; an account with nothing is removed.
struct Accounts {
    numbers: [u64; 2],
    moves: bool,
    found: [u64; 2],
}

impl Transaction<Plain> for Accounts {
    fn may_change(&self, _index: usize) -> bool {
        self.moves
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<Plain>>) -> bool {
        self.found = [0, 1].map(|index| found(index).map_or(0, |record| record.value()[0]));
        true
    }

    fn change(&mut self, index: usize, found: Option<&Record<Plain>>) -> Change<Plain> {
        let [from, to] = self.found;
        assert_eq!(
            found.map_or(0, |record| record.value()[0]),
            self.found[index]
        );
        match [from.saturating_sub(1), to + from.min(1)][index] {
            0 => Change::Remove,
            left => Change::Put(RecordBox::new(&key(self.numbers[index]), &[left], false)),
        }
    }

    fn release(&mut self, _has_committed: bool) {}
}

/// Returns the money of two accounts, before some is moved if `moves`.
fn transact(store: &impl Records<Plain>, numbers: [u64; 2], moves: bool) -> [u64; 2] {
    let mut order = [0, 1];
    order.sort_by_key(|at| numbers[*at]);
    let keys = order.map(|at| key(numbers[at]));
    let keys = keys.each_ref().map(Vec::as_slice);
    let mut plan = InOrder {
        order,
        plan: Accounts {
            numbers,
            moves,
            found: [0; 2],
        },
    };
    while store.transact(&keys, None, &mut plan) != Ok(true) {
        thread::yield_now();
    }
    plan.plan.found
}

/// A transaction whose keys are in another order than those of its plan.
struct InOrder {
    order: [usize; 2],
    plan: Accounts,
}

impl Transaction<Plain> for InOrder {
    fn may_change(&self, index: usize) -> bool {
        self.plan.may_change(self.order[index])
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<Plain>>) -> bool {
        // The order of two is its own reverse.
        let order = self.order;
        self.plan.decide(&|index| found(order[index]))
    }

    fn change(&mut self, index: usize, found: Option<&Record<Plain>>) -> Change<Plain> {
        self.plan.change(self.order[index], found)
    }

    fn release(&mut self, has_committed: bool) {
        self.plan.release(has_committed);
    }
}

/// Transactions in both directions, of which one empties an account and removes it, beside inserts
/// that adapt the store, and a transaction that only reads. Returns the store.
fn money_moves_beside_inserts<S: Records<Plain> + Default + 'static>(
    keys: u64,
    splits: u32,
    joins: u32,
) -> Arc<S> {
    let accounts = [1, 2 * keys - 1];
    let [low, high] = accounts;
    let store = fill::<S>(evens(keys));
    quietly(|| {
        accounts
            .iter()
            .for_each(|number| put(&*store, *number, MONEY / 2))
    });
    store.force_adaptation(splits, joins);
    together! {
        store => { transact(&*store, [low, high], true); }
        store => { transact(&*store, [high, low], true); }
        store => { put(&*store, 3, 3); put(&*store, keys + 1, 5); put(&*store, 2 * keys, 7) }
        store => {
            let found = transact(&*store, [low, high], false);
            assert_eq!(found.iter().sum::<u64>(), MONEY, "{found:?}");
            assert_eq!(get(&*store, 4), Some(4));
            scan_meets(&*store, evens(keys));
        }
    }
    assert_eq!(
        accounts.map(|number| get(&*store, number)),
        [Some(MONEY / 2); 2]
    );
    let new = [3, keys + 1, 2 * keys].map(|number| get(&*store, number));
    assert_eq!(new, [3, 5, 7].map(Some));
    assert_eq!(store.len() as u64, keys + 5);
    store
}

#[test]
fn transactions_beside_inserts_into_a_tree() {
    explore(|| drop(money_moves_beside_inserts::<CaTree<Plain>>(LEAF, 0, 0)));
}

#[test]
fn transactions_beside_inserts_into_a_tree_that_adapts() {
    explore_reaching(|| {
        let tree = money_moves_beside_inserts::<CaTree<Plain>>(2 * LEAF, 3, 2);
        quietly(|| tree.adaptation()).splits > 0
    });
}

#[test]
fn transactions_beside_inserts_into_a_hash_table() {
    explore(|| {
        drop(money_moves_beside_inserts::<HashTable<Plain>>(
            hash::FULL,
            0,
            0,
        ))
    });
}
