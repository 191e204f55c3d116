//! Callers that must not wait.
//!
//! A thread that serves others, as a scheduler of the Erlang VM does, wants an answer from memory or none. What would
//! wait asks here first: the rest of the engine does not know of such callers.

use crate::error::Error;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    static ALLOWED: Cell<bool> = const { Cell::new(true) };
}

/// The time for which a lock is waited for that another thread holds while it works in memory. Less
/// than the way to another thread takes.
const SHORT: Duration = Duration::from_micros(20);

/// Calls `work`, in which functions of stores return [`Error::WouldWait`] where they would read
/// what the system does not have in memory, sync a file, wait to be let through by back-pressure,
/// pass thousands of deleted keys, or wait for a thread that does. Nothing has changed then. So the
/// same call can be made again where waiting harms no other work.
///
/// A write still hands its bytes to the system, which keeps them in memory, and may make a process wait that writes more
/// than its disk can take.
pub fn without_waiting<R>(work: impl FnOnce() -> R) -> R {
    /// Restores what was, also after a panic.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ALLOWED.set(self.0);
        }
    }
    let _restore = Restore(ALLOWED.replace(false));
    work()
}

/// Returns `true` if this thread may wait.
#[inline]
pub(crate) fn is_allowed() -> bool {
    ALLOWED.get()
}

/// # Errors
/// [`Error::WouldWait`] if this thread may not.
#[inline]
pub(crate) fn check() -> Result<(), Error> {
    match is_allowed() {
        true => Ok(()),
        false => Err(Error::WouldWait),
    }
}

/// Takes a lock that other threads may hold while they wait.
///
/// # Errors
/// As those of [`check`], if it is held for more than a short time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Error> {
    match is_allowed() {
        true => Ok(mutex.lock()),
        false => mutex.try_lock_for(SHORT).ok_or(Error::WouldWait),
    }
}

/// Waits for what other threads tell of.
///
/// # Errors
/// As those of [`check`], if they do not within a short time.
pub(crate) fn wait<T>(told: &Condvar, guard: &mut MutexGuard<'_, T>) -> Result<(), Error> {
    if is_allowed() {
        told.wait(guard);
        return Ok(());
    }
    match told.wait_for(guard, SHORT).timed_out() {
        true => Err(Error::WouldWait),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_thread_may_wait_again_when_the_work_is_done() {
        assert_eq!(check(), Ok(()));
        without_waiting(|| {
            assert_eq!(check(), Err(Error::WouldWait));
            without_waiting(|| assert_eq!(check(), Err(Error::WouldWait)));
            assert_eq!(check(), Err(Error::WouldWait));
            std::thread::spawn(|| assert_eq!(check(), Ok(())))
                .join()
                .unwrap();
        });
        assert_eq!(check(), Ok(()));
        let panicked = catch_unwind(|| without_waiting(|| panic!("in the work")));
        assert!(panicked.is_err());
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn a_lock_that_is_held_is_not_waited_for() {
        let mutex = Mutex::new(1);
        without_waiting(|| {
            let held = lock(&mutex).unwrap();
            assert_eq!(lock(&mutex).map(|number| *number), Err(Error::WouldWait));
            drop(held);
            assert_eq!(lock(&mutex).map(|number| *number), Ok(1));
        });
    }
}
