//! Transactions: several keys are read, tested and changed as one step.
//!
//! The keys of all conditions and steps are held first ([`Provided::transact`]). Then the steps run
//! as operations of a draft of the table, whose records are an overlay on those of the
//! held keys, so they mean exactly the same as elsewhere. The commit makes the records of the
//! overlay visible together. A transaction over several tables holds the keys of all of them, and
//! has a draft of each.
//!
//! [`Provided::transact`]: ats_mem::Provided::transact

mod parts;
mod run;

pub use ats_mem::batch::MOST_STORES as MOST_TABLES;
pub use parts::{Accepts, Condition, NotDone, Place, Step, StepResult, TablePart};

use crate::terms::error::Error;
use crate::terms::table::Table;
use crate::terms::workspace::Workspace;
use ats_term::image::Host;

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
    /// of each key that a step may change. A table [on a store of bytes](Table::on_store) reads all
    /// objects of each key, and writes the changes as one batch, which a crash undoes as a whole.
    ///
    /// ```
    /// use ats::terms::{Condition, CounterOp, Step, StepResult, Table, TableType, TermHost, Workspace};
    /// use ats::terms::Term;
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
    /// [`Error::Snapshot`]; [`Error::Storage`]. A failed call changes nothing.
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
    /// use ats::terms::Term;
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
    /// The errors of [`transact`](Table::transact), with the index of the part; the error that
    /// `confirm` returns; [`Error::TooManyTables`] if there are more than [`MOST_TABLES`];
    /// [`Error::Storage`] with [`StoreError::Unsupported`](ats_store::Error::Unsupported) if one of
    /// several is on a store of bytes. A failed call changes nothing.
    pub fn transact_all<R>(
        parts: &[TablePart<'_, '_, H>],
        work: &mut Workspace<H>,
        read: impl Fn(StepResult<'_, H>) -> Result<R, Error>,
        mut confirm: impl FnMut() -> Result<(), Error>,
    ) -> Result<(bool, Vec<Vec<R>>), NotDone> {
        let done = run::run(parts, work, &read, &mut confirm)?;
        Ok((done.0, done.1.into_vec()))
    }
}
