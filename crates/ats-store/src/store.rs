//! The interface of stores that keep their records as bytes.
//!
//! The interface is small: read a key, change several keys atomically, scan a range. Each
//! further ability is a trait of its own, which a store [offers](Store::merges) or not.

use crate::bags::AddRule;
use crate::change::{BatchPlan, Change};
use crate::error::Error;
use crate::lifetime::Lifetime;
use crate::may_block::MayBlock;
use crate::merge::MergeOperator;
use crate::range::{Direction, End, KeyRange};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A visitor of records, called with the key and the value of each. `Break` ends the scan.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;
/// The decision about the record at an end. Its argument is the key and the value of the record, or
/// `None` if the store is empty.
pub type DecideEnd<'a> = dyn FnMut(Option<(&[u8], &[u8])>) -> Change<Vec<u8>> + 'a;

/// An ordered store of records. A record is a key and a value, both byte strings.
///
/// [`get`](Store::get) and all changes are linearizable. A [`scan`](Store::scan) need not be a
/// snapshot, but it visits each record that is present throughout exactly once, visits no record
/// that is absent throughout, and sees every write that had returned before it began.
///
/// All functions may be called from any thread at any time. A function that takes an
/// `Option<MayBlock>` may wait for the system and for other calls if it gets a [`MayBlock`]; with
/// `None`, it returns [`Error::WouldBlock`] where it would have to wait. Closures run in the
/// caller's thread, perhaps under a lock, and must not call the store. If a closure panics, nothing
/// has changed.
///
/// # Errors
/// Each function returns [`Error::Io`] or [`Error::Corrupt`] if the store cannot read or write its
/// data.
pub trait Store: Send + Sync {
    /// Calls `read` with the value of a key, if the key is present. Returns `true` if it is.
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error>;

    /// Changes several keys atomically: every reader sees all of the changes or none. `keys` are
    /// distinct and ascending. Returns `Ok(false)` if the plan has answered
    /// [`Abort`](Change::Abort); then nothing has changed.
    ///
    /// No other writer changes a key between the decision about it and the moment at which the
    /// changes become visible, even if the decision is [`Keep`](Change::Keep). So all decisions
    /// hold at that moment. Changes that the plan [defers](Change::Later) are built when it has
    /// decided about all keys, and may be any change.
    fn update(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error>;

    /// Changes the record that is at an end of the store at the moment of the change. The store may
    /// call `decide` again if another writer was faster.
    fn update_end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), Error>;

    /// Visits the records of a range, in a direction, until `visit` breaks.
    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error>;

    /// Returns a bound that divides the records of a range into two parts of about the same size,
    /// or `None` if there are none or the store cannot tell. The bound need not be a key. It lies
    /// below the high end of the range, and above its low end or its first key.
    fn median(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let _ = (may_block, key_range);
        Ok(None)
    }

    /// Returns the number of records, exact if no update is running. O(1), or O(records) in a store
    /// that does not count them.
    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, Error>;

    /// Returns `true` if the store has no record.
    fn is_empty(&self, may_block: Option<MayBlock>) -> Result<bool, Error> {
        Ok(self.len(may_block)? == 0)
    }

    /// Returns the approximate memory use in bytes. O(1).
    fn bytes(&self) -> usize;

    /// Returns the maximum length in bytes of a key, and of a value.
    fn most_bytes(&self) -> usize {
        usize::MAX
    }

    /// Returns the sum of `weigh` over all values, exact if no update is running. O(records).
    fn sum(
        &self,
        may_block: Option<MayBlock>,
        weigh: &dyn Fn(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        let mut sum = 0;
        self.scan(
            may_block,
            KeyRange::default(),
            Direction::Up,
            &mut |_, value| {
                sum += weigh(value);
                ControlFlow::Continue(())
            },
        )?;
        Ok(sum)
    }

    /// Removes all records, at one moment for every reader and writer, and returns them as a store
    /// of their own, which does not change. O(1).
    fn take_all(&self, may_block: Option<MayBlock>) -> Result<Box<dyn Store>, Error>;

    /// Returns the ability to merge, if the store has it.
    fn merges(&self) -> Option<&dyn Merges> {
        None
    }

    /// Returns the ability to let records expire, if the store has it.
    fn expires(&self) -> Option<&dyn Expires> {
        None
    }

    /// Returns the ability to change single values of keys, if the store has it.
    fn bags(&self) -> Option<&dyn Bags> {
        None
    }
}

/// The ability of a store to accept operands as writes.
pub trait Merges: Store {
    /// Returns the operator that merges.
    fn operator(&self) -> &dyn MergeOperator;

    /// Merges an operand with the value of a key, or writes it if the key is absent. Linearizable.
    ///
    /// # Errors
    /// Returns the errors of [`Store`], and [`Error::Merge`] if the operator refuses the operand. A
    /// store may accept such an operand, and return the error when the key is read.
    fn merge(&self, may_block: Option<MayBlock>, key: &[u8], operand: &[u8]) -> Result<(), Error>;
}

/// The ability of a store to add values to a key, and to remove them, without touching the key's
/// other values.
///
/// # Errors
/// Each function returns the errors of [`Store`] and of [`BagValues`](crate::BagValues).
pub trait Bags: Store {
    /// Adds values to keys, all at one moment. `values` are pairs of a key and a value, sorted by
    /// key. Returns `false` if the rule forbids the call; then nothing has changed. Linearizable.
    /// O(log n) for each value, and its bytes.
    fn add(
        &self,
        may_block: Option<MayBlock>,
        values: &[(&[u8], &[u8])],
        rule: AddRule,
    ) -> Result<bool, Error>;

    /// Removes the values of a key that equal `value`, unless there are more than `most`. Returns
    /// their number, or `None` if there are too many; then nothing has changed. Linearizable.
    /// O(log n) for each.
    fn remove(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        value: &[u8],
        most: usize,
    ) -> Result<Option<usize>, Error>;

    /// Returns the number of values of all keys, exact if no update is running. O(1), or O(n) in a
    /// store that does not count them.
    fn values(&self, may_block: Option<MayBlock>) -> Result<usize, Error>;
}

/// The ability of a store to let records expire.
///
/// A value that is written to such a store begins with its [`Lifetime`], and a value that is read
/// begins behind it. A record past its deadline is absent for every function, at once.
///
/// # Errors
/// Each function returns the errors of [`Store`].
pub trait Expires: Store {
    /// Returns the time that is left to a record: [`Lifetime::For`] or [`Lifetime::Forever`];
    /// `None` if the key is absent. O(log n).
    fn time_left(&self, may_block: Option<MayBlock>, key: &[u8])
    -> Result<Option<Lifetime>, Error>;

    /// Gives a record another lifetime. Returns `false` if the key is absent. Linearizable.
    /// O(log n), and the bytes of the value.
    fn set_lifetime(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        lifetime: Lifetime,
    ) -> Result<bool, Error>;

    /// Returns the number of expired records that the store has met while it gave their room back,
    /// since it was opened.
    fn expired(&self) -> u64;
}

/// A handle on a store, which keeps the store alive. Each table has one.
pub trait StoreHandle: Send + Sync {
    /// Returns the store.
    fn store(&self) -> &dyn Store;
}

impl<S: Store> StoreHandle for S {
    fn store(&self) -> &dyn Store {
        self
    }
}

impl StoreHandle for Box<dyn Store> {
    fn store(&self) -> &dyn Store {
        &**self
    }
}

impl<H: StoreHandle + ?Sized> StoreHandle for Arc<H> {
    fn store(&self) -> &dyn Store {
        (**self).store()
    }
}
