//! Transactions: several keys are read, tested and changed as one step.
//!
//! The keys of all conditions and steps are held first ([`Provided::transact`]). Then the steps run
//! as operations of a draft of the table, whose records are an [overlay](Overlay) on those of the
//! held keys, so they mean exactly the same as elsewhere. The commit makes the records of the
//! overlay visible together.
//!
//! [`Provided::transact`]: ats_mem::Provided::transact

use crate::terms::cells::{self, Stopped};
use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::operations::counter::CounterOp;
use crate::terms::operations::merge::{MergedValue, Merging};
use crate::terms::store::overlay::Overlay;
use crate::terms::store::records::TableRecords;
use crate::terms::store::{Records, Store};
use crate::terms::table::{CurrentStore, Table};
use crate::terms::value::{Rec, Values};
use crate::terms::workspace::Workspace;
use ats_mem::{Change, Transaction};
use ats_store::Error as StoreError;
use ats_sync::Guard;
use ats_term::TermRef;
use ats_term::image::{Host, image_eq};
use std::fmt;
use std::ops::ControlFlow;
use std::ptr;
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
        NotDone { place: None, error }
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// The number of equal objects that a caller with a limit removes at most.
const FEW_EQUAL: usize = 256;

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
        if self.has_byte_store {
            return Err(Error::Storage(StoreError::Unsupported).into());
        }
        let mut keys = Vec::new();
        for (index, condition) in conditions.iter().enumerate() {
            let key = self.key_of_condition(condition, work);
            keys.push((key.map_err(at(Place::Condition(index)))?, false));
        }
        for (steps, place) in [
            (then, Place::Then as fn(usize) -> Place),
            (otherwise, Place::Otherwise),
        ] {
            for (index, step) in steps.iter().enumerate() {
                let key = self.key_of_step(step, work);
                let writes = !matches!(step, Step::Lookup(_));
                keys.push((key.map_err(at(place(index)))?, writes));
            }
        }
        // A use of a key that writes counts more than one that reads.
        keys.sort_by(|one, other| (&one.0, other.1).cmp(&(&other.0, one.1)));
        keys.dedup_by(|next, kept| next.0 == kept.0);
        let (keys, writes): (Vec<Box<[u8]>>, Vec<bool>) = keys.into_iter().unzip();
        let overlay = Overlay::new(keys, self.table_type.is_ordered(), self.expires);
        let overlay = Arc::new(overlay);
        let mut deciding = Deciding {
            table: self,
            conditions,
            then,
            otherwise,
            work,
            read: &read,
            overlay: &overlay,
            writes: &writes,
            stopped: Vec::new(),
            changes: Vec::new(),
            decided: Err(Error::Busy.into()),
        };
        let keys: Vec<&[u8]> = overlay.keys().iter().map(|key| &**key).collect();
        let done = self.store.long_batch()?.transact(&keys, &mut deciding);
        let decided = deciding.decided;
        done?;
        decided
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
        error,
    }
}

/// The decision of a transaction.
struct Deciding<'a, 't, H: Host, R, F> {
    table: &'a Table<H>,
    conditions: &'a [Condition<'a, H, H::Term<'t>>],
    then: &'a [Step<'a, H::Term<'t>>],
    otherwise: &'a [Step<'a, H::Term<'t>>],
    work: &'a mut Workspace<H>,
    read: &'a F,
    overlay: &'a Arc<Overlay<H>>,
    /// `true` for each key that a step may change.
    writes: &'a [bool],
    /// The cells of the record of each key before, which do not change until the keys are released
    /// (CELLS-3), and `true` if the key gets another record.
    stopped: Vec<Option<(Stopped<'static>, bool)>>,
    /// The changes of the keys, until they are made.
    changes: Vec<Change<Values<H>>>,
    decided: Result<(bool, Vec<R>), NotDone>,
}

impl<H: Host, R, F> Deciding<'_, '_, H, R, F>
where
    F: Fn(StepResult<'_, H>) -> Result<R, Error>,
{
    fn run(&mut self) -> Result<(bool, Vec<R>), NotDone> {
        let draft = self.table.draft(self.overlay);
        let guard = ats_sync::pin();
        let mut holds = true;
        for (index, condition) in self.conditions.iter().enumerate() {
            let held = holds_in(&draft, condition, self.work, &guard);
            holds = held.map_err(at(Place::Condition(index)))?;
            if !holds {
                break;
            }
        }
        let (steps, place) = if holds {
            (self.then, Place::Then as fn(usize) -> Place)
        } else {
            (self.otherwise, Place::Otherwise as fn(usize) -> Place)
        };
        let mut results = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let result = carry_out(&draft, step, self.work, self.read);
            results.push(result.map_err(at(place(index)))?);
        }
        if draft.cells_gate.is_there() {
            self.table.cells_gate.make();
        }
        Ok((holds, results))
    }
}

/// Returns `true` if a condition holds.
fn holds_in<H: Host>(
    draft: &Table<H>,
    condition: &Condition<'_, H, H::Term<'_>>,
    work: &mut Workspace<H>,
    guard: &Guard,
) -> Result<bool, Error> {
    let mut find = |key| draft.lookup_within(key, work, guard);
    let object = match condition {
        Condition::Absent(key) => return Ok(find(*key)?.is_none()),
        Condition::Present(key) => return Ok(find(*key)?.is_some()),
        Condition::Holds(key, accepts) => {
            return find(*key)?.map_or(Ok(false), |found| accepts(&found));
        }
        Condition::Equals(object) => *object,
    };
    let Some(found) = find(object.element(draft.key_index))? else {
        return Ok(false);
    };
    let work = work.lend();
    if found.len_words() > work.words_left {
        return Err(Error::TooLarge);
    }
    (work.image).encode_object_within(object, work.words_left)?;
    let (image, unpacked) = (work.image.object(), &mut work.unpacked);
    let found = found.each(unpacked, |object| {
        if image_eq(object, image, draft.zeros) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let is_there = found.is_break();
    work.tidy();
    Ok(is_there)
}

/// Carries out a step on the draft, and reads its result.
fn carry_out<H: Host, R>(
    draft: &Table<H>,
    step: &Step<'_, H::Term<'_>>,
    work: &mut Workspace<H>,
    read: &impl Fn(StepResult<'_, H>) -> Result<R, Error>,
) -> Result<R, Error> {
    // The objects that a step returns live as long as it.
    let guard = ats_sync::pin();
    let done = match *step {
        Step::Insert(object) => draft.insert(object, work).map(|()| true)?,
        Step::InsertNew(object) => draft.insert_new(object, work)?,
        Step::Delete(key) => draft.delete(key, work).map(|()| true)?,
        Step::DeleteObject(object) => {
            let is_limited = work.lend().words_left < usize::MAX;
            let most = if is_limited { FEW_EQUAL } else { usize::MAX };
            if !draft.delete_object_if_few(object, most, work)? {
                return Err(Error::TooLarge);
            }
            true
        }
        Step::UpdateElement {
            key,
            values,
            default,
        } => draft.update_element(key, values, default, work)?,
        Step::UpdateCounter { key, ops, default } => {
            let values = draft.update_counter(key, ops, default, work)?;
            return read(StepResult::Counters(&values));
        }
        Step::Merge(merging) => {
            return draft.merge(merging, work, |value| read(StepResult::Merged(value)))?;
        }
        Step::Lookup(key) => {
            let found = draft.lookup_within(key, work, &guard)?;
            return read(StepResult::Objects(found));
        }
        Step::Take(key) => {
            let taken = draft.take(key, work, &guard)?;
            return read(StepResult::Objects(taken));
        }
    };
    read(StepResult::Done(done))
}

impl<H: Host, R, F> Transaction<Values<H>> for Deciding<'_, '_, H, R, F>
where
    F: Fn(StepResult<'_, H>) -> Result<R, Error>,
{
    fn may_change(&self, index: usize) -> bool {
        self.writes[index]
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Rec<H>>) -> bool {
        let stop = |index| {
            // SAFETY: the key of the record is held, so it lives until `release`, which drops
            // all references to it.
            let record = unsafe { &*ptr::from_ref(found(index)?) };
            Some((cells::stop(record), false))
        };
        self.stopped = (0..self.writes.len()).map(stop).collect();
        // SAFETY: the keys of the records are held at least until `decide` returns, and the overlay
        // is emptied before.
        unsafe { self.overlay.begin(found) };
        self.decided = self.run();
        self.changes = self.overlay.finish();
        self.changes.reverse();
        self.decided.is_ok()
    }

    fn change(&mut self, index: usize, _: Option<&Rec<H>>) -> Change<Values<H>> {
        // A key that no step may change has a change, too, which keeps it.
        self.changes.truncate(self.writes.len() - index);
        let change = self.changes.pop().unwrap_or(Change::Abort);
        if let (Change::Put(_) | Change::Remove, Some((_, goes))) =
            (&change, &mut self.stopped[index])
        {
            *goes = true;
        }
        change
    }

    fn release(&mut self, has_committed: bool) {
        for (stopped, goes) in self.stopped.drain(..).flatten() {
            if has_committed && goes {
                stopped.for_ever();
            }
        }
    }
}
