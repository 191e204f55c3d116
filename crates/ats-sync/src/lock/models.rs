//! Models for `loom`: every interleaving of two threads that take a lock.

use super::*;
use crate::shim::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

#[test]
fn two_threads_exclude_each_other() {
    loom::model(|| {
        let shared = Arc::new((Lock::new(), UnsafeCell::new(0)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || increment(&shared))
        };
        increment(&shared);
        other.join().expect("thread");
        let _held = shared.0.lock();
        // SAFETY: the lock is held.
        shared.1.with_mut(|value| unsafe { assert_eq!(*value, 2) });
    });
}

#[test]
fn try_lock_excludes_too() {
    loom::model(|| {
        let shared = Arc::new((Lock::new(), UnsafeCell::new(0)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if let Some(_held) = shared.0.try_lock() {
                    // SAFETY: the lock is held.
                    shared.1.with_mut(|value| unsafe { *value += 1 });
                }
            })
        };
        increment(&shared);
        other.join().expect("thread");
    });
}

#[test]
fn one_that_gives_up_has_not_entered() {
    loom::model(|| {
        let shared = Arc::new((Lock::new(), UnsafeCell::new(0)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                // The time limit ends after the first check, so the model does not depend on the
                // clock.
                let entered = shared.0.wait_within(|| Some(Duration::ZERO));
                if entered {
                    let _held = Held { lock: &shared.0 };
                    // SAFETY: the lock is held.
                    shared.1.with_mut(|value| unsafe { *value += 1 });
                }
                entered
            })
        };
        increment(&shared);
        let entered = other.join().expect("thread");
        let _held = shared.0.lock();
        // SAFETY: the lock is held.
        shared
            .1
            .with_mut(|value| unsafe { assert_eq!(*value, 1 + i32::from(entered)) });
    });
}

fn increment(shared: &(Lock, UnsafeCell<i32>)) {
    let _held = shared.0.lock();
    // SAFETY: the lock is held.
    shared.1.with_mut(|value| unsafe { *value += 1 });
}
