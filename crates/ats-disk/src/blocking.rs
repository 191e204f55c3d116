//! Locks and condition variables for callers that may not block.
//!
//! A thread that serves others, as a scheduler of the Erlang VM does, wants an answer from memory
//! or none. So each function that may block takes an `Option<`[`MayBlock`]`>`, from the interface
//! down to the file.

use crate::error::Error;
use ats_store::MayBlock;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The time for which a caller that may not block waits for a lock that another thread holds while
/// it works in memory. Less than the way to another thread takes.
const SHORT: Duration = Duration::from_micros(20);

/// Checks that the caller may block.
///
/// # Errors
/// [`Error::WouldBlock`] if it may not.
#[inline]
pub(crate) fn check(may_block: Option<MayBlock>) -> Result<(), Error> {
    match may_block {
        Some(_) => Ok(()),
        None => Err(Error::WouldBlock),
    }
}

/// Takes a lock that other threads may hold while they block.
///
/// # Errors
/// The errors of [`check`], if it is held for more than a short time.
pub(crate) fn lock<T>(
    may_block: Option<MayBlock>,
    mutex: &Mutex<T>,
) -> Result<MutexGuard<'_, T>, Error> {
    match may_block {
        Some(_) => Ok(mutex.lock()),
        None => mutex.try_lock_for(SHORT).ok_or(Error::WouldBlock),
    }
}

/// Waits until another thread notifies a condition variable.
///
/// # Errors
/// The errors of [`check`], if none does within a short time.
pub(crate) fn wait<T>(
    may_block: Option<MayBlock>,
    changed: &Condvar,
    guard: &mut MutexGuard<'_, T>,
) -> Result<(), Error> {
    if may_block.is_some() {
        changed.wait(guard);
        return Ok(());
    }
    if changed.wait_for(guard, SHORT).timed_out() {
        Err(Error::WouldBlock)
    } else {
        Ok(())
    }
}

/// The capability of tests, which may block.
#[cfg(test)]
pub(crate) const BLOCK: Option<MayBlock> = Some(MayBlock::here());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_is_not_waited_for() {
        let mutex = Mutex::new(1);
        let held = lock(None, &mutex).unwrap();
        assert_eq!(
            lock(None, &mutex).map(|number| *number),
            Err(Error::WouldBlock)
        );
        drop(held);
        assert_eq!(lock(None, &mutex).map(|number| *number), Ok(1));
    }
}
