//! Tests of the lock.

use super::*;
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

#[test]
fn is_eight_bytes() {
    assert_eq!(std::mem::size_of::<Lock>(), 8);
}

#[test]
fn uncontended_counts_down_and_saturates() {
    let lock = Lock::new();
    drop(lock.lock());
    assert_eq!(lock.statistics(), -1);
    for _ in 0..2 * STATISTICS_LIMIT {
        drop(lock.lock());
    }
    assert_eq!(lock.statistics(), -STATISTICS_LIMIT);
    lock.lock().reset_statistics();
    assert_eq!(lock.statistics(), 0);
    lock.lock().count(i32::MAX);
    assert_eq!(lock.statistics(), STATISTICS_LIMIT);
}

#[test]
fn try_lock_fails_while_held_and_does_not_count() {
    let lock = Lock::new();
    let held = lock.try_lock().expect("free");
    assert!(held.holds(&lock) && lock.is_locked());
    assert!(lock.try_lock().is_none());
    drop(held);
    assert!(!lock.is_locked());
    assert!(lock.try_lock().is_some());
    assert_eq!(lock.statistics(), 0);
}

#[test]
fn waiting_counts_as_contention() {
    let lock = Lock::new();
    let asked = AtomicBool::new(false);
    thread::scope(|scope| {
        let held = lock.lock();
        let waiter = scope.spawn(|| {
            asked.store(true, Ordering::Release);
            lock.lock().statistics()
        });
        while !asked.load(Ordering::Acquire) {
            thread::yield_now();
        }
        // Long enough for the waiter to reach the kernel, so that waking is tested, too.
        thread::sleep(Duration::from_millis(30));
        drop(held);
        let seen = waiter.join().expect("waiter");
        assert_eq!(seen, UNCONTENDED_COST + CONTENDED_COST);
    });
}

#[test]
fn a_thread_gives_up_at_its_limit_and_takes_a_free_lock() {
    let lock = Lock::new();
    let held = lock.lock();
    let begin = Instant::now();
    assert!(!lock.wait_within(|| Some(Duration::from_millis(5))));
    assert!(begin.elapsed() >= Duration::from_millis(5));
    assert_eq!(held.statistics(), UNCONTENDED_COST);
    drop(held);
    assert!(lock.wait_within(|| Some(Duration::ZERO)));
    drop(Held { lock: &lock });
    assert!(!lock.is_locked());
    assert!(matches!(lock.lock_within_limit(), Some((_, false))));
}

/// Threads that give up do not lose a wake-up that another thread needs.
#[test]
fn giving_up_loses_no_wakeup() {
    const ROUNDS: u64 = 3_000;
    let (lock, shared) = (&Lock::new(), &Shared(UnsafeCell::new(0)));
    let given_up = &std::sync::atomic::AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let limit = (thread % 2 == 0).then(|| Duration::from_micros(round % 60));
                    if !lock.wait_within(|| limit) {
                        given_up.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let _held = Held { lock };
                    // SAFETY: the lock is held.
                    unsafe { *shared.0.get() += 1 };
                    if round % 8 == 0 {
                        thread::sleep(Duration::from_micros(50));
                    }
                }
            });
        }
    });
    let _held = lock.lock();
    let given_up = given_up.load(Ordering::Relaxed);
    assert!(given_up > 0, "nothing was tested");
    // SAFETY: the lock is held.
    assert_eq!(unsafe { *shared.0.get() } + given_up, 6 * ROUNDS);
}

struct Shared(UnsafeCell<u64>);
// SAFETY: the test accesses the cell only while it holds the lock.
unsafe impl Sync for Shared {}

#[test]
fn excludes_and_loses_no_wakeup() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 20_000;
    let lock = Lock::new();
    let shared = Shared(UnsafeCell::new(0));
    let shared = &shared;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let _held = lock.lock();
                    // SAFETY: the lock is held.
                    unsafe { *shared.0.get() += 1 };
                    if round % 1000 == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
    });
    let _held = lock.lock();
    // SAFETY: the lock is held.
    assert_eq!(unsafe { *shared.0.get() }, THREADS * ROUNDS);
}

#[test]
fn panic_unlocks() {
    let lock = Lock::new();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = lock.lock();
        panic!("in the critical section");
    }));
    assert!(result.is_err());
    assert!(lock.try_lock().is_some());
}
