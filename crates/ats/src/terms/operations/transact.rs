//! Transactions: several keys are read, tested and changed as one step.
//!
//! The keys of all conditions and steps are held first ([`Provided::transact`]). Then the steps run
//! as operations of a draft of the table, whose records are an [overlay](Overlay) on those of the
//! held keys, so they mean exactly the same as elsewhere. The commit makes the records of the
//! overlay visible together. A transaction over several tables holds the keys of all of them, and
//! has a draft of each.
//!
//! [`Provided::transact`]: ats_mem::Provided::transact

mod run;

pub use ats_mem::batch::MOST_STORES as MOST_TABLES;

use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::operations::counter::CounterOp;
use crate::terms::operations::merge::{MergedValue, Merging};
use crate::terms::store::overlay::Overlay;
use crate::terms::store::records::TableRecords;
use crate::terms::store::{Records, Store};
use crate::terms::table::{CurrentStore, Table};
use crate::terms::workspace::Workspace;
use ats_store::Error as StoreError;
use ats_term::TermRef;
use ats_term::image::Host;
use std::fmt;
use std::sync::Arc;

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
    fn of_part(self, index: usize) -> Self {
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

impl<H: Host> Table<H> {
    /// Tests conditions on keys, and carries out the steps of `then` if all of them hold, else
    /// those of `otherwise`, all as one: every reader and every other writer sees all changes or
    /// none, and no other writer changes a key of the conditions or the steps in between. Returns
    /// `true` if the conditions held, and the values that `read` makes of the results of the steps,
    /// in order.
    ///
    /// Steps on the same key see the changes of earlier steps. All keys of the conditions and of
    /// both branches are held meanwhile: their other writers wait, or get [`Error::Busy`], and
    /// their readers see the objects before. `read` may be called several times for a step, and
    /// must not use the table.
    ///
    /// O(m log m) for m conditions and steps, besides the operations, and three visits to the lock
    /// of each key that a step may change.
    ///
    /// ```
    /// use ats::terms::{Condition, CounterOp, Step, StepResult, Table, TableType, TermHost, Workspace};
    /// use ats_term::Term;
    ///
    /// let table = Table::<TermHost>::new(TableType::Set, 1);
    /// let mut work = Workspace::new();
    /// for (name, euros) in [("anna", 50), ("ben", 0)] {
    ///     table.insert(&Term::from((name, euros)), &mut work)?;
    /// }
    /// let (anna, ben) = (Term::from("anna"), Term::from("ben"));
    /// let has_fifty = Term::from(("anna", 50));
    /// let add = |number: i64| [CounterOp { position: 2, increment: number.into(), wrap: None }];
    /// let (less, more) = (add(-30), add(30));
    /// let counters = |key, ops| Step::UpdateCounter { key, ops, default: None };
    /// let (held, values) = table.transact(
    ///     &[Condition::Equals(&has_fifty), Condition::Present(&ben)],
    ///     &[counters(&anna, &less[..]), counters(&ben, &more[..])],
    ///     &[],
    ///     &mut work,
    ///     |result| match result {
    ///         StepResult::Counters(values) => Ok(values.to_vec()),
    ///         _ => Ok(Vec::new()),
    ///     },
    /// )?;
    /// assert!(held);
    /// assert_eq!(values, [[20.into()], [30.into()]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The error of the first condition or step that fails, with its place; a step of the branch
    /// that is not taken fails only if it has no key. [`Error::Bound`] if an object is larger than
    /// the bound of the table; an error that `read` returns; [`Error::Busy`];
    /// [`Error::Snapshot`]; [`Error::Storage`] with [`StoreError::Unsupported`] if the table is not
    /// in memory. A failed call changes nothing.
    pub fn transact<'t, R>(
        &self,
        conditions: &[Condition<'_, H, H::Term<'t>>],
        then: &[Step<'_, H::Term<'t>>],
        otherwise: &[Step<'_, H::Term<'t>>],
        work: &mut Workspace<H>,
        read: impl Fn(StepResult<'_, H>) -> Result<R, Error>,
    ) -> Result<(bool, Vec<R>), NotDone> {
        let part = TablePart {
            table: self,
            conditions,
            then,
            otherwise,
        };
        let done = run::run(&[part], work, &read, &mut || Ok(()));
        let not_done = |not: NotDone| NotDone { table: None, ..not };
        done.map(|(held, mut results)| (held, results.pop().unwrap_or_default()))
            .map_err(not_done)
    }

    /// Tests conditions on the keys of several tables, and carries out the steps of all of them,
    /// like [`transact`](Table::transact): those of `then` if all conditions of all tables hold,
    /// else those of `otherwise`. Returns `true` if the conditions held, and the results of each
    /// part. A table may have several parts: first all conditions are tested, in order, and then
    /// all steps are carried out, in order.
    ///
    /// All of it is one step for every reader and every other writer, in whatever order they look
    /// at the tables: once a look-up has shown a change in one table, every later look-up in
    /// another table shows the changes there. Snapshots of two tables are of two moments; but if
    /// one shows the changes in its table, a later one of another table does, too.
    ///
    /// `confirm` is called last, when all steps are carried out and before anybody sees a change.
    /// If it fails, nothing has changed.
    ///
    /// O(m log m) for m conditions and steps, besides the operations, as for one table.
    ///
    /// ```
    /// use ats::terms::{Condition, Step, StepResult, Table, TablePart, TableType, TermHost};
    /// use ats::terms::Workspace;
    /// use ats_term::Term;
    ///
    /// let waiting = Table::<TermHost>::new(TableType::OrderedSet, 1);
    /// let done = Table::<TermHost>::new(TableType::Set, 1);
    /// let mut work = Workspace::new();
    /// let (job, number) = (Term::from((1, "print")), Term::from(1));
    /// waiting.insert(&job, &mut work)?;
    /// let parts = [
    ///     TablePart {
    ///         table: &waiting,
    ///         conditions: &[Condition::Present(&number)],
    ///         then: &[Step::Delete(&number)],
    ///         otherwise: &[],
    ///     },
    ///     TablePart {
    ///         table: &done,
    ///         conditions: &[Condition::Absent(&number)],
    ///         then: &[Step::Insert(&job)],
    ///         otherwise: &[],
    ///     },
    /// ];
    /// let is_done = |result: StepResult<'_, _>| Ok(matches!(result, StepResult::Done(true)));
    /// let moved = Table::transact_all(&parts, &mut work, is_done, || Ok(()))?;
    /// assert_eq!(moved, (true, vec![vec![true], vec![true]]));
    /// assert_eq!((waiting.len()?, done.len()?), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`transact`](Table::transact), with the index of the part; the error that `confirm`
    /// returns; [`Error::TooManyTables`] if there are more than [`MOST_TABLES`]. A failed call
    /// changes nothing.
    pub fn transact_all<'t, R>(
        parts: &[TablePart<'_, 't, H>],
        work: &mut Workspace<H>,
        read: impl Fn(StepResult<'_, H>) -> Result<R, Error>,
        mut confirm: impl FnMut() -> Result<(), Error>,
    ) -> Result<(bool, Vec<Vec<R>>), NotDone> {
        let done = run::run(parts, work, &read, &mut confirm)?;
        Ok((done.0, done.1.into_vec()))
    }

    /// Adds the keys of a transaction, and `true` for each that a step may change.
    fn collect_keys(
        &self,
        part: &TablePart<'_, '_, H>,
        keys: &mut Vec<(Box<[u8]>, bool)>,
        work: &mut Workspace<H>,
    ) -> Result<(), NotDone> {
        if self.has_byte_store {
            return Err(Error::Storage(StoreError::Unsupported).into());
        }
        for (index, condition) in part.conditions.iter().enumerate() {
            let key = self.key_of_condition(condition, work);
            keys.push((key.map_err(at(Place::Condition(index)))?, false));
        }
        for (steps, place) in [
            (part.then, Place::Then as fn(usize) -> Place),
            (part.otherwise, Place::Otherwise),
        ] {
            for (index, step) in steps.iter().enumerate() {
                let key = self.key_of_step(step, work);
                let writes = !matches!(step, Step::Lookup(_));
                keys.push((key.map_err(at(place(index)))?, writes));
            }
        }
        Ok(())
    }

    fn key_of_condition(
        &self,
        condition: &Condition<'_, H, H::Term<'_>>,
        work: &mut Workspace<H>,
    ) -> Result<Box<[u8]>, Error> {
        match condition {
            Condition::Absent(key) | Condition::Present(key) | Condition::Holds(key, _) => {
                self.boxed_key(*key, work)
            }
            Condition::Equals(object) => self.boxed_key_of_object(*object, work),
        }
    }

    fn key_of_step(
        &self,
        step: &Step<'_, H::Term<'_>>,
        work: &mut Workspace<H>,
    ) -> Result<Box<[u8]>, Error> {
        match step {
            Step::Insert(object) | Step::InsertNew(object) | Step::DeleteObject(object) => {
                self.boxed_key_of_object(*object, work)
            }
            Step::Delete(key)
            | Step::UpdateElement { key, .. }
            | Step::UpdateCounter { key, .. }
            | Step::Merge(Merging { key, .. })
            | Step::Lookup(key)
            | Step::Take(key) => self.boxed_key(*key, work),
        }
    }

    fn boxed_key(&self, key: H::Term<'_>, work: &mut Workspace<H>) -> Result<Box<[u8]>, Error> {
        let work = work.lend();
        self.make_key(key, work)?;
        let boxed = Box::from(&work.key[..]);
        work.tidy_key();
        Ok(boxed)
    }

    fn boxed_key_of_object(
        &self,
        object: H::Term<'_>,
        work: &mut Workspace<H>,
    ) -> Result<Box<[u8]>, Error> {
        self.check_object(object)?;
        self.boxed_key(object.element(self.key_index), work)
    }

    /// Returns a table with the options of this one, on the records of a transaction.
    fn draft(&self, overlay: &Arc<Overlay<H>>) -> Self {
        let records: Arc<dyn TableRecords<H>> = Arc::<Overlay<H>>::clone(overlay);
        let store = Store::new(Records::Past(records));
        let mut draft = self.with_store(CurrentStore::new(store));
        draft.is_draft = true;
        draft
    }
}

/// Returns a function that gives an error a place.
fn at(place: Place) -> impl Fn(Error) -> NotDone {
    move |error| NotDone {
        place: Some(place),
        ..error.into()
    }
}
