//! The interface of stores that keep their records as bytes.
//!
//! It is small: read a key, change several keys as one, go through a range. Each further ability of
//! a store is a trait of its own that the store [offers](Store::merges) or does not.

use crate::bags::AddRule;
use crate::change::{BatchPlan, Change};
use crate::error::Error;
use crate::may_block::MayBlock;
use crate::merge::MergeOperator;
use crate::range::{Direction, End, KeyRange};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Called with the key and the value of a record.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;
/// Decides about a record, of which it gets key and value, or about nothing if the store is empty.
pub type DecideEnd<'a> = dyn FnMut(Option<(&[u8], &[u8])>) -> Change<Vec<u8>> + 'a;

/// An ordered store of records, each a key and a value of bytes.
///
/// [`get`](Store::get) and changes are linearizable. A [`scan`](Store::scan) need not be a
/// snapshot, but a record that is there throughout is visited exactly once, one that is missing
/// throughout is not, and all writes that had returned before it began are seen.
///
/// All functions may be called from any thread at any time. Those that take an `Option<MayBlock>`
/// wait for each other and for the system if they are given [`MayBlock`], and return
/// [`Error::WouldBlock`] where they would have to if they are not. They call the closures that they
/// are given in the thread of the caller, perhaps under a lock; a closure must not call the store.
/// If it panics, nothing has changed.
///
/// # Errors
/// Each function gives [`Error::Io`] or [`Error::Corrupt`] if the store cannot read or write what
/// it must.
pub trait Store: Send + Sync {
    /// Lends the value of a key to `read`. Returns `true` if there is one.
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error>;

    /// Changes several keys as one: every reader sees all of the changes or none. `keys` are
    /// distinct and ascending. `Ok(false)` if the plan answered [`Abort`](Change::Abort), after
    /// which nothing has changed.
    ///
    /// From the decision about a key until the changes are visible no other writer changes it, also
    /// if it is kept: so all decisions are right at the moment at which the changes become visible.
    fn update(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error>;

    /// Changes the record at an end of the store, as it is at the moment of the change. `decide`
    /// may be called again, if another writer was faster.
    fn update_end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), Error>;

    /// Visits the records of a range in a direction until `visit` breaks.
    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error>;

    /// A bound that divides the records of a range in two parts of about the same size; `None` if
    /// there are none, or the store cannot tell. It is above the low end of the range, or the key
    /// of the first record, and below the high end. It need not be a key.
    fn median(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let _ = (may_block, key_range);
        Ok(None)
    }

    /// Number of records: exact when no update is running. O(1), or O(records) in a store that does
    /// not count.
    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, Error>;

    /// Returns `true` if there is no record.
    fn is_empty(&self, may_block: Option<MayBlock>) -> Result<bool, Error> {
        Ok(self.len(may_block)? == 0)
    }

    /// Bytes of memory that the store takes, about. O(1).
    fn bytes(&self) -> usize;

    /// The most bytes of a key, and of a value.
    fn most_bytes(&self) -> usize {
        usize::MAX
    }

    /// Sum of the weights of all values by `weigh`. Exact when no update is running. O(records).
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

    /// Removes all records, at one moment for every reader and writer, and gives them as a store of
    /// their own, which nothing changes. O(1).
    fn take_all(&self, may_block: Option<MayBlock>) -> Result<Box<dyn Store>, Error>;

    /// The ability to merge, if the store has it.
    fn merges(&self) -> Option<&dyn Merges> {
        None
    }

    /// The ability to change single values of keys that have several, if the store has it.
    fn bags(&self) -> Option<&dyn Bags> {
        None
    }
}

/// The ability of a store to take operands as writes.
pub trait Merges: Store {
    /// The operator that merges.
    fn operator(&self) -> &dyn MergeOperator;

    /// Merges an operand with what is there, or writes it if nothing is. Linearizable.
    ///
    /// # Errors
    /// As the functions of [`Store`], and [`Error::Merge`] if the operator refuses. A store may
    /// take the operand and find that out when the key is read.
    fn merge(&self, may_block: Option<MayBlock>, key: &[u8], operand: &[u8]) -> Result<(), Error>;
}

/// The ability of a store to add values to a key, and to remove them, without the others of the
/// key.
///
/// # Errors
/// Each function gives the errors of [`Store`], and of [`BagValues`](crate::BagValues).
pub trait Bags: Store {
    /// Adds values to keys, all at one moment. They are given with their keys, in the order of the
    /// keys. Returns `false` if the rule forbids it; nothing has changed then. Linearizable.
    /// O(log n) for each value, and its bytes.
    fn add(
        &self,
        may_block: Option<MayBlock>,
        values: &[(&[u8], &[u8])],
        rule: AddRule,
    ) -> Result<bool, Error>;

    /// Removes the values of a key that are equal to this one, unless they are more than `most`.
    /// Returns their number; `None` if they are too many, and nothing has changed. Linearizable.
    /// O(log n) for each.
    fn remove(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        value: &[u8],
        most: usize,
    ) -> Result<Option<usize>, Error>;

    /// Number of values of all keys: exact when no update is running. O(1), or O(n) in a store that
    /// does not count.
    fn values(&self, may_block: Option<MayBlock>) -> Result<usize, Error>;
}

/// A handle on a store, which keeps it alive. A table has one.
pub trait StoreHandle: Send + Sync {
    /// The store.
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
