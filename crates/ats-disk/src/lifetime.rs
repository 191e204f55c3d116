//! Records that expire: their lifetimes, and the clock that ends them.
//!
//! In a store with the option [`lifetime`](crate::Options::lifetime) each value begins with six
//! bytes. In files they are the deadline of the record; a value that is being written may have
//! another [`Lifetime`] there, of which an [`AtomicStore`](crate::AtomicStore) makes a deadline. A
//! value that is read begins behind them.
//!
//! A deadline belongs to a version of a record, never to its key. Past it, the version is to a
//! reader as if it were a delete; compactions make a delete of it, so that no older version comes
//! back.
//!
//! There are no operands in such a store. Whether an operand finds a value depends on the time at
//! which it is written, so two operands cannot be merged before it is known what is below them.
//!
//! # Invariants
//! - LIFETIME-1. The clock of a store does not go back while it is open. It begins at the latest
//!   time that the manifest and the journals tell, or later.
//! - LIFETIME-2. A reader asks for the time after it has the version that it reads, and a
//!   compaction before it begins. So no record is missing in a version that a reader would see.

use crate::error::Error;
use crate::fs::FileSystem;
use crate::operator_id::OperatorId;
use ats_store::lifetime::{LIFETIME_BYTES, NEVER_MS, mark_operator, milliseconds, unmark_operator};
use ats_store::{Lifetime, MergeOperator, Merged};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The clock of a store whose records expire, and the lifetime of those without one of their own.
pub(crate) struct Lifetimes {
    of_store: Lifetime,
    /// The operator that the store was opened with.
    operator: Option<Arc<dyn MergeOperator>>,
    file_system: Arc<dyn FileSystem>,
    /// The latest time that anybody was told, in milliseconds since 1970.
    latest: AtomicU64,
    /// The latest time that a journal or the manifest tells.
    noted: AtomicU64,
}

/// The interval at which journals tell the time, in milliseconds.
const NOTE_MS: u64 = 1000;

impl Lifetimes {
    /// Makes a clock that begins now, and not before this time.
    pub(crate) fn new(
        of_store: Lifetime,
        operator: Option<Arc<dyn MergeOperator>>,
        file_system: Arc<dyn FileSystem>,
        latest: u64,
    ) -> Self {
        let lifetimes = Lifetimes {
            of_store,
            operator,
            file_system,
            latest: AtomicU64::new(latest),
            noted: AtomicU64::new(latest),
        };
        lifetimes.now();
        lifetimes
    }

    /// Returns the operator that merges contents of values.
    pub(crate) fn operator(&self) -> Option<&dyn MergeOperator> {
        self.operator.as_deref()
    }

    /// Returns the time in milliseconds since 1970. Does not go back.
    pub(crate) fn now(&self) -> u64 {
        let time = self.file_system.wall_clock().as_millis();
        let time = u64::try_from(time).unwrap_or(NEVER_MS).min(NEVER_MS - 1);
        let latest = self.latest.load(Ordering::Relaxed);
        // A fence is not needed: of one number, all threads see the changes in the same order.
        if time <= latest {
            return latest;
        }
        self.latest.fetch_max(time, Ordering::Relaxed).max(time)
    }

    /// Returns the time if a journal should tell it: if the last time that one has told is old.
    pub(crate) fn time_to_note(&self) -> Option<u64> {
        let now = self.now();
        let noted = self.noted.load(Ordering::Relaxed);
        (now >= noted.saturating_add(NOTE_MS)).then_some(now)
    }

    /// Remembers that a journal tells the time.
    pub(crate) fn on_noted(&self, time: u64) {
        self.noted.fetch_max(time, Ordering::Relaxed);
    }

    /// Makes a deadline of the lifetime of a value that is to replace one with `old` as its
    /// lifetime, if the key has any.
    ///
    /// # Errors
    /// [`Error::Refused`] if the value has no lifetime.
    pub(crate) fn resolve(&self, value: &mut [u8], old: Option<Lifetime>) -> Result<(), Error> {
        let (lifetime, _) = Lifetime::split(value).ok_or_else(no_lifetime)?;
        let lifetime = match (lifetime, old) {
            (Lifetime::Kept, Some(old)) => old,
            (Lifetime::Kept | Lifetime::OfStore, _) => self.of_store,
            (own, _) => own,
        };
        let deadline = match lifetime {
            Lifetime::For(time) => {
                let deadline = self
                    .now()
                    .saturating_add(milliseconds(time))
                    .min(NEVER_MS - 1);
                Lifetime::Until(Duration::from_millis(deadline))
            }
            deadline => deadline,
        };
        value[..LIFETIME_BYTES].copy_from_slice(&deadline.to_bytes());
        Ok(())
    }

    /// Returns the time that is left until a deadline.
    pub(crate) fn left(&self, lifetime: Lifetime) -> Lifetime {
        match lifetime {
            Lifetime::Until(deadline) => {
                Lifetime::For(deadline.saturating_sub(Duration::from_millis(self.now())))
            }
            other => other,
        }
    }
}

/// Returns `true` if a value as it is in files expires at this time, in milliseconds, or before.
/// One that is too short for a deadline is a fault that readers find.
#[inline]
pub(crate) fn is_over(value: &[u8], time: u64) -> bool {
    match Lifetime::split(value) {
        Some((Lifetime::Until(deadline), _)) => deadline.as_millis() <= u128::from(time),
        _ => false,
    }
}

/// Returns a value as it is in files without its deadline.
///
/// # Errors
/// [`Error::Corrupt`] if it has none.
pub(crate) fn content(value: &[u8]) -> Result<&[u8], Error> {
    match Lifetime::split(value) {
        Some((lifetime, content)) if is_deadline(lifetime) => Ok(content),
        _ => Err(Error::corrupt("a value has no deadline")),
    }
}

/// Returns `true` if a lifetime can be in a file.
fn is_deadline(lifetime: Lifetime) -> bool {
    matches!(lifetime, Lifetime::Until(_) | Lifetime::Forever)
}

/// Returns `true` if a store can be opened with a lifetime.
pub(crate) fn is_of_store(lifetime: Lifetime) -> bool {
    matches!(lifetime, Lifetime::Forever)
        || matches!(lifetime, Lifetime::For(time) if time > Duration::ZERO)
}

/// Returns the error of a value without a lifetime.
pub(crate) fn no_lifetime() -> Error {
    Error::Refused("the records of the store expire, and the value has no deadline".into())
}

/// Checks a value that is written to a store whose records expire.
///
/// # Errors
/// [`Error::Refused`] if it has no deadline.
pub(crate) fn check(value: &[u8]) -> Result<(), Error> {
    content(value).map(drop).map_err(|_| no_lifetime())
}

/// Returns `true` if this is the operator of a store whose records expire.
pub(crate) fn is_marked(operator: Option<&OperatorId>) -> bool {
    operator.is_some_and(|(name, _)| unmark_operator(name).is_some())
}

/// The operator of a store whose records expire. The files tell its name, so that no store is
/// opened without deadlines that has some, or the other way round.
pub(crate) struct Deadlines {
    name: String,
    content: Option<Arc<dyn MergeOperator>>,
}

impl Deadlines {
    /// Makes the operator of values behind their deadlines.
    pub(crate) fn new(content: Option<Arc<dyn MergeOperator>>) -> Self {
        let name = mark_operator(content.as_deref().map(MergeOperator::name));
        Deadlines { name, content }
    }
}

impl MergeOperator for Deadlines {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.content.as_ref().map_or(1, |content| content.version())
    }

    /// Returns an error: there are no operands.
    fn merge(&self, _: &[u8], _: &[u8], _: &[u8]) -> Result<Merged, ats_store::Error> {
        Err(ats_store::Error::Merge)
    }

    fn is_absent(&self, key: &[u8], value: &[u8]) -> bool {
        let content = self.content.as_ref().zip(content(value).ok());
        content.is_some_and(|(operator, value)| operator.is_absent(key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_expires_at_its_deadline() {
        let value = Lifetime::Until(Duration::from_millis(7)).before(b"");
        assert_eq!(
            [6, 7, 8].map(|time| is_over(&value, time)),
            [false, true, true]
        );
        assert!(!is_over(&Lifetime::Forever.before(b""), u64::MAX));
    }
}
