//! The keys of a table: which of them are the same, and the bytes by which the table knows them.

use crate::error::Error;
use ats_mem::ShortKey;
use ats_sync::count::atomic::{AtomicBool, Ordering};
use ats_term::{Kind, TermRef, exact, order};

/// The rule of a table for keys.
pub(crate) struct Keys {
    /// `true` if keys are the same if `==`, and in Erlang's standard order; else they are the same
    /// if `=:=`.
    is_ordered: bool,
    exact: exact::Options,
    /// `true` if a key of a table with order has been a float. Set before such a key is in the
    /// store, and never cleared: a number without fraction has the same bytes as an integer and as
    /// a float.
    has_met_float: AtomicBool,
}

impl Keys {
    /// The rule of a table without objects.
    pub(crate) fn new(is_ordered: bool, exact: exact::Options) -> Self {
        Keys {
            is_ordered,
            exact,
            has_met_float: AtomicBool::new(false),
        }
    }

    /// The same rule, for a table that takes over objects, to which writers may still add some.
    pub(crate) fn for_taken_objects(&self) -> Self {
        Keys {
            has_met_float: AtomicBool::new(true),
            ..*self
        }
    }

    /// The options of exact keys.
    pub(crate) fn exact_options(&self) -> exact::Options {
        self.exact
    }

    /// Appends the bytes of a key to `out`, unless that takes longer than to copy about so many
    /// words: then it appends nothing.
    #[inline]
    pub(crate) fn write_within<T: TermRef>(
        &self,
        key: T,
        out: &mut Vec<u8>,
        words: usize,
    ) -> Result<(), Error> {
        let most = words.saturating_mul(size_of::<u64>());
        let made = match self.is_ordered {
            true => {
                self.meet(key);
                order::order_key_within(key, out, self.exact.zeros, most)
            }
            false => exact::exact_key_within(key, out, self.exact, most),
        };
        made.map(|_| ()).ok_or(Error::TooLarge)
    }

    /// Notes whether a key is a float.
    #[inline]
    fn meet<T: TermRef>(&self, key: T) {
        if key.immediate().is_none()
            && matches!(key.kind(), Kind::Float(_))
            && !self.has_met_float.load(Ordering::Relaxed)
        {
            self.has_met_float.store(true, Ordering::Relaxed);
        }
    }

    /// The integer that has these bytes as a key of a table with order, which has just been found
    /// there; none if it may be another term.
    #[inline]
    pub(crate) fn integer_at(&self, key: &ShortKey) -> Option<i64> {
        let (bytes, len) = key.to_bytes();
        let number = order::number_of_order_key(&bytes[..len])?;
        // After the key was found: a float that is there had been met before.
        (!self.has_met_float.load(Ordering::Relaxed)).then_some(number)
    }
}
