//! A census beside real threads.

use super::*;
use crate::cache_padded::CachePadded;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::thread;

#[derive(Default)]
struct Account {
    lock: Lock,
    turns: AtomicU64,
    balance: AtomicI64,
}

impl Part for Account {
    fn lock(&self) -> &Lock {
        &self.lock
    }

    fn turns(&self) -> u64 {
        self.turns.load(Ordering::Acquire)
    }
}

#[derive(Default)]
struct Bank {
    gate: Gate,
    census: Census<i64>,
    accounts: [CachePadded<Account>; 16],
}

impl Bank {
    fn pay(&self, account: usize, amount: i64) {
        let account = &self.accounts[account];
        let (_held, _) = self.gate.enter(&account.lock);
        let turns = account.turns.load(Ordering::Relaxed) + 1;
        account.turns.store(turns, Ordering::Release);
        let balance = account.balance.load(Ordering::Relaxed) + amount;
        account.balance.store(balance, Ordering::Release);
    }

    fn parts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter().map(|account| &account.0)
    }

    fn total(&self) -> i64 {
        let sum = (self.census).share(|turn| {
            self.gate
                .close_and_sum(turn, || self.parts(), add, &mut || {})
        });
        sum.expect("this thread may wait")
    }
}

fn add(sum: &mut i64, account: &Account) {
    *sum += account.balance.load(Ordering::Relaxed);
}

/// Each thread pays one unit in, and then takes it out of another account: the total is never
/// negative, nor above one unit for each thread. The plain sum of the accounts is wrong within
/// milliseconds.
#[test]
fn the_total_is_that_of_one_moment() {
    const THREADS: usize = 4;
    let bank = Bank::default();
    let (stop, start) = (AtomicBool::new(false), Barrier::new(THREADS + 1));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (bank, stop, start) = (&bank, &stop, &start);
            scope.spawn(move || {
                start.wait();
                let mut round = thread;
                while !stop.load(Ordering::Relaxed) {
                    bank.pay(round * 7 % 16, 1);
                    bank.pay(round * 5 % 16, -1);
                    round += 1;
                }
            });
        }
        start.wait();
        for _ in 0..20_000 {
            let total = bank.total();
            assert!((0..=THREADS as i64).contains(&total), "{total}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(bank.total(), 0);
}

#[test]
fn a_glance_fails_while_a_thread_is_inside() {
    let bank = Bank::default();
    bank.pay(3, 5);
    assert_eq!(bank.gate.glance(|| bank.parts(), add, None), Some(5));
    let held = bank.accounts[9].lock.lock();
    assert_eq!(bank.gate.glance(|| bank.parts(), add, None), None::<i64>);
    drop(held);
    assert_eq!(bank.gate.glance(|| bank.parts(), add, None), Some(5));
}

/// A census that waits for a thread inside keeps others out, and admits them when it ends.
#[test]
fn the_gate_opens_again() {
    let bank = Bank::default();
    thread::scope(|scope| {
        let inside = bank.accounts[0].lock.lock();
        let total = scope.spawn(|| bank.total());
        while bank.gate.state.load(Ordering::Relaxed) == OPEN {
            thread::yield_now();
        }
        let writer = scope.spawn(|| bank.pay(1, 2));
        // Waits until the thread sleeps at the gate.
        while bank.gate.state.load(Ordering::Relaxed) != AWAITED {
            thread::yield_now();
        }
        assert_eq!(bank.accounts[1].balance.load(Ordering::Relaxed), 0);
        drop(inside);
        assert_eq!(total.join().expect("census"), 0);
        writer.join().expect("writer");
    });
    assert_eq!(bank.total(), 2);
}

/// Concurrent readers do not starve the writers.
#[test]
fn writers_go_on_beside_many_censuses() {
    let bank = Bank::default();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert!(bank.total() >= 0);
                }
            });
        }
        for round in 0..100_000 {
            bank.pay(round % 16, 1);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(bank.total(), 100_000);
}
