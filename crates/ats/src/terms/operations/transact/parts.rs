//! The parts of a transaction, its results, and its failure.

use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::operations::counter::CounterOp;
use crate::terms::operations::merge::{MergedValue, Merging};
use crate::terms::table::Table;
use ats_term::image::Host;
use std::fmt;

/// A condition of a [transaction](Table::transact) on a key of the table. `T` is the type of terms.
pub enum Condition<'a, H: Host, T> {
    /// The key has no object.
    Absent(T),
    /// The key has an object.
    Present(T),
    /// The table has exactly this object.
    Equals(T),
    /// The key has an object, and a function returns `true` for the objects of the key. It may be
    /// called several times, and must not use the table.
    Holds(T, &'a Accepts<'a, H>),
}

/// A function that tests the objects of a key, or fails, after which the transaction has changed
/// nothing.
pub type Accepts<'a, H> = dyn Fn(&LookupResult<'_, H>) -> Result<bool, Error> + 'a;

/// A step of a [transaction](Table::transact): the operation of the table that has this name. `T`
/// is the type of terms.
#[derive(Clone, Copy)]
pub enum Step<'a, T> {
    /// [`Table::insert`] of an object.
    Insert(T),
    /// [`Table::insert_new`] of an object.
    InsertNew(T),
    /// [`Table::delete`] of a key.
    Delete(T),
    /// [`Table::delete_object`] of an object.
    DeleteObject(T),
    /// [`Table::update_element`] of a key.
    UpdateElement {
        /// The key.
        key: T,
        /// The positions, from 1, and the new values.
        values: &'a [(usize, T)],
        /// The object that is inserted first if the key is missing.
        default: Option<T>,
    },
    /// [`Table::update_counter`] of a key.
    UpdateCounter {
        /// The key.
        key: T,
        /// The changes.
        ops: &'a [CounterOp],
        /// The object that is inserted first if the key is missing.
        default: Option<T>,
    },
    /// [`Table::merge`].
    Merge(Merging<'a, T>),
    /// [`Table::lookup`] of a key.
    Lookup(T),
    /// [`Table::take`] of a key.
    Take(T),
}

/// The part of a transaction over [several tables](Table::transact_all) that concerns one of them.
pub struct TablePart<'a, 't, H: Host> {
    /// The table.
    pub table: &'a Table<H>,
    /// The conditions on keys of the table.
    pub conditions: &'a [Condition<'a, H, H::Term<'t>>],
    /// The steps that are carried out if all conditions of all parts hold.
    pub then: &'a [Step<'a, H::Term<'t>>],
    /// The steps that are carried out otherwise.
    pub otherwise: &'a [Step<'a, H::Term<'t>>],
}

/// The result of a [`Step`].
pub enum StepResult<'a, H: Host> {
    /// The answer of `insert_new` and `update_element`; `true` for `insert`, `delete` and
    /// `delete_object`.
    Done(bool),
    /// The answer of `lookup` and `take`.
    Objects(Option<LookupResult<'a, H>>),
    /// The new values of `update_counter`.
    Counters(&'a [ats_term::Integer]),
    /// The merged value of `merge`.
    Merged(MergedValue<'a, H>),
}

/// The reason why a [transaction](Table::transact) was not done, and the place of it. Nothing has
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotDone {
    /// The part that failed, by its index from 0, in a transaction over several tables; `None` if
    /// there is one table, or if the whole failed.
    pub table: Option<usize>,
    /// The condition or the step that failed; `None` if the whole failed.
    pub place: Option<Place>,
    /// The reason.
    pub error: Error,
}

/// A part of a [transaction](Table::transact), by its index from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A condition.
    Condition(usize),
    /// A step of the first branch.
    Then(usize),
    /// A step of the second branch.
    Otherwise(usize),
}

impl From<Error> for NotDone {
    fn from(error: Error) -> Self {
        NotDone {
            table: None,
            place: None,
            error,
        }
    }
}

impl NotDone {
    pub(super) fn of_part(self, index: usize) -> Self {
        NotDone {
            table: Some(index),
            ..self
        }
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = self.table {
            write!(f, "table {}: ", table + 1)?;
        }
        let (what, index) = match self.place {
            None => return self.error.fmt(f),
            Some(Place::Condition(index)) => ("condition", index),
            Some(Place::Then(index)) => ("step", index),
            Some(Place::Otherwise(index)) => ("step of the second branch,", index),
        };
        write!(f, "{what} {}: {}", index + 1, self.error)
    }
}

impl std::error::Error for NotDone {}

/// Returns a function that gives an error a place.
pub(super) fn at(place: Place) -> impl Fn(Error) -> NotDone {
    move |error| NotDone {
        place: Some(place),
        ..error.into()
    }
}
