//! The keys of a table: their equality, and their encoding as bytes.

use crate::terms::error::Error;
use ats_mem::ShortKey;
use ats_sync::count::atomic::{AtomicBool, Ordering};
use ats_term::{Kind, TermRef, exact, order};

/// The rule of a table for keys.
pub(crate) struct Keys {
    /// `true` if keys are compared by `==`, and in Erlang's standard order; `false` if they are
    /// compared by `=:=`.
    is_ordered: bool,
    exact: exact::Options,
    /// `true` if a key of a table with order has been a float. The flag is set before such a key is
    /// in the store, and never cleared. It is needed because a number without fraction has the same
    /// bytes as an integer and as a float.
    has_met_float: AtomicBool,
}

impl Keys {
    /// Returns the rule of a table without objects.
    pub(crate) fn new(is_ordered: bool, exact: exact::Options) -> Self {
        Keys {
            is_ordered,
            exact,
            has_met_float: AtomicBool::new(false),
        }
    }

    /// Returns the same rule for a table that takes over objects, and to which writers may still
    /// add some.
    pub(crate) fn for_taken_objects(&self) -> Self {
        Keys {
            has_met_float: AtomicBool::new(true),
            ..*self
        }
    }

    /// Returns the options of exact keys.
    pub(crate) fn exact_options(&self) -> exact::Options {
        self.exact
    }

    /// Appends the bytes of a key to `out`, unless that takes longer than copying about `words`
    /// words: then it appends nothing.
    #[inline]
    pub(crate) fn write_within<T: TermRef>(
        &self,
        key: T,
        out: &mut Vec<u8>,
        words: usize,
    ) -> Result<(), Error> {
        let most = words.saturating_mul(size_of::<u64>());
        let made = if self.is_ordered {
            self.meet(key);
            order::order_key_within(key, out, self.exact.zeros, most)
        } else {
            exact::exact_key_within(key, out, self.exact, most)
        };
        made.map(|_| ()).ok_or(Error::TooLarge)
    }

    /// Notes that keys include a float, if this key is one.
    #[inline]
    fn meet<T: TermRef>(&self, key: T) {
        if key.immediate().is_none()
            && matches!(key.kind(), Kind::Float(_))
            && !self.has_met_float.load(Ordering::Relaxed)
        {
            self.has_met_float.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the integer with these bytes, which were just found as a key of a table with order;
    /// `None` if the key may be another term.
    #[inline]
    pub(crate) fn integer_at(&self, key: &ShortKey) -> Option<i64> {
        let (bytes, len) = key.to_bytes();
        let number = order::number_of_order_key(&bytes[..len])?;
        // The flag is read after the key was found, so it is set if the key is a float.
        (!self.has_met_float.load(Ordering::Relaxed)).then_some(number)
    }
}
