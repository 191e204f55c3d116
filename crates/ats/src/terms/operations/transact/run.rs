//! The course of a transaction: it holds the keys of its tables, decides, and changes them.

use super::parts::{Condition, NotDone, Place, Step, StepResult, TablePart, at};
use crate::terms::cells::{self, Stopped};
use crate::terms::error::Error;
use crate::terms::operations::merge::Merging;
use crate::terms::store::overlay::Overlay;
use crate::terms::store::records::TableRecords;
use crate::terms::store::{Records, Store};
use crate::terms::table::{CurrentStore, Table};
use crate::terms::value::{Rec, Values};
use crate::terms::workspace::Workspace;
use ats_mem::batch::{Decision, MOST_STORES, Part, transact_all};
use ats_mem::{Change, Transaction};
use ats_sync::Guard;
use ats_term::TermRef;
use ats_term::image::{Host, image_eq};
use smallvec::SmallVec;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::Arc;

/// The number of equal objects that a caller with a limit removes at most.
const FEW_EQUAL: usize = 256;

/// A value for each table, or for each part. There is mostly one.
pub(super) type Each<T> = SmallVec<[T; 1]>;

/// Runs a transaction: see [`Table::transact_all`].
pub(super) fn run<H: Host, R>(
    parts: &[TablePart<'_, '_, H>],
    work: &mut Workspace<H>,
    read: &impl Fn(StepResult<'_, H>) -> Result<R, Error>,
    confirm: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(bool, Each<Vec<R>>), NotDone> {
    let mut tables: Each<OneTable<'_, H>> = Each::new();
    let mut table_of: Each<usize> = Each::new();
    for (index, part) in parts.iter().enumerate() {
        let of_part = |not: NotDone| not.of_part(index);
        let known = tables.iter().position(|one| ptr::eq(one.table, part.table));
        let table = known.unwrap_or(tables.len());
        if known.is_none() {
            if table == MOST_STORES {
                return Err(NotDone::from(Error::TooManyTables).of_part(index));
            }
            tables.push(OneTable {
                table: part.table,
                part: index,
                keys: Vec::new(),
            });
        }
        table_of.push(table);
        let keys = &mut tables[table].keys;
        part.table.collect_keys(part, keys, work).map_err(of_part)?;
    }
    // Each store lives until its batch ends.
    let spans = tables.len() > 1;
    let batches = tables
        .iter()
        .map(|one| one.table.store.long_batch_of(spans));
    let batches: Each<_> = batches.collect::<Result<_, _>>()?;
    let (first_parts, drafts): (Each<usize>, Each<Draft<'_, H>>) = tables
        .into_iter()
        .map(|one| (one.part, Draft::new(one)))
        .unzip();
    let keys = drafts.iter().map(|draft| draft.overlay.keys());
    let keys: Each<Vec<&[u8]>> = keys
        .map(|keys| keys.iter().map(|key| &**key).collect())
        .collect();
    let mut plans = Each::new();
    for ((draft, batch), keys) in drafts.iter().zip(&batches).zip(&keys) {
        plans.push(Plan {
            store: batch.store(),
            keys,
            draft,
            stopped: Vec::new(),
            changes: None,
            is_larger: false,
        });
    }
    let mut deciding = Deciding {
        parts,
        table_of: &table_of,
        drafts: &drafts,
        work,
        read,
        confirm,
        decided: Err(Error::Busy.into()),
    };
    let mut held: Each<Part<'_, Values<H>>> = Each::new();
    let done = match &mut plans[..] {
        [plan] if plan.draft.table.has_byte_store => {
            let (store, keys) = (plan.store, plan.keys);
            let decision = &mut deciding;
            store.transact(keys, &mut OfBytes { plan, decision })
        }
        plans => {
            for (plan, first_part) in plans.iter_mut().zip(&first_parts) {
                let of_part = |error| NotDone::from(error).of_part(*first_part);
                held.push(Part {
                    store: plan.store.stepwise().map_err(of_part)?,
                    keys: plan.keys,
                    plan,
                });
            }
            transact_all(&mut held, &mut deciding).map_err(Error::from)
        }
    };
    let decided = deciding.decided;
    drop(held);
    done?;
    for (plan, first_part) in plans.iter().zip(first_parts) {
        let of_part = |error| NotDone::from(error).of_part(first_part);
        plan.store.after_held(plan.is_larger).map_err(of_part)?;
    }
    decided
}

impl<H: Host> Table<H> {
    /// Adds the keys of a transaction, and `true` for each that a step may change.
    fn collect_keys(
        &self,
        part: &TablePart<'_, '_, H>,
        keys: &mut Vec<(Box<[u8]>, bool)>,
        work: &mut Workspace<H>,
    ) -> Result<(), NotDone> {
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

/// The keys of a table, and `true` for each that a step may change.
struct OneTable<'a, H: Host> {
    table: &'a Table<H>,
    /// The index of the first part.
    part: usize,
    keys: Vec<(Box<[u8]>, bool)>,
}

/// A draft of a table.
struct Draft<'a, H: Host> {
    table: &'a Table<H>,
    /// A table with the options of that one, on the records of the overlay.
    draft: Table<H>,
    overlay: Arc<Overlay<H>>,
    /// `true` for each key that a step may change.
    writes: Vec<bool>,
}

impl<'a, H: Host> Draft<'a, H> {
    fn new(one: OneTable<'a, H>) -> Self {
        let OneTable {
            table, mut keys, ..
        } = one;
        // A use of a key that writes counts more than one that reads.
        keys.sort_by(|one, other| (&one.0, other.1).cmp(&(&other.0, one.1)));
        keys.dedup_by(|next, kept| next.0 == kept.0);
        let (keys, writes): (Vec<Box<[u8]>>, Vec<bool>) = keys.into_iter().unzip();
        let overlay = Overlay::new(keys, table.table_type.is_ordered(), table.expires);
        let overlay = Arc::new(overlay);
        Draft {
            table,
            draft: table.draft(&overlay),
            overlay,
            writes,
        }
    }
}

/// The decision of a transaction.
struct Deciding<'a, 'p, 't, H: Host, R, F> {
    parts: &'a [TablePart<'p, 't, H>],
    /// The index of the table of each part.
    table_of: &'a [usize],
    drafts: &'a [Draft<'p, H>],
    work: &'a mut Workspace<H>,
    read: &'a F,
    confirm: &'a mut dyn FnMut() -> Result<(), Error>,
    decided: Result<(bool, Each<Vec<R>>), NotDone>,
}

impl<H: Host, R, F> Deciding<'_, '_, '_, H, R, F>
where
    F: Fn(StepResult<'_, H>) -> Result<R, Error>,
{
    fn run(&mut self) -> Result<(bool, Each<Vec<R>>), NotDone> {
        let holds = self.do_all_hold()?;
        let mut results = Each::with_capacity(self.parts.len());
        for (index, part) in self.parts.iter().enumerate() {
            let (steps, place) = if holds {
                (part.then, Place::Then as fn(usize) -> Place)
            } else {
                (part.otherwise, Place::Otherwise as fn(usize) -> Place)
            };
            let draft = &self.drafts[self.table_of[index]].draft;
            let mut of_part = Vec::with_capacity(steps.len());
            for (step, number) in steps.iter().zip(0..) {
                let result = carry_out(draft, step, self.work, self.read);
                of_part.push(result.map_err(|error| at(place(number))(error).of_part(index))?);
            }
            results.push(of_part);
        }
        for Draft { table, draft, .. } in self.drafts {
            if draft.cells_gate.is_there() {
                table.cells_gate.make();
            }
        }
        Ok((holds, results))
    }

    fn do_all_hold(&mut self) -> Result<bool, NotDone> {
        let guard = ats_sync::pin();
        for (index, part) in self.parts.iter().enumerate() {
            let draft = &self.drafts[self.table_of[index]].draft;
            for (condition, number) in part.conditions.iter().zip(0..) {
                let holds = holds_in(draft, condition, self.work, &guard);
                let failed = |error| at(Place::Condition(number))(error).of_part(index);
                if !holds.map_err(failed)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl<H: Host, R, F> Decision for Deciding<'_, '_, '_, H, R, F>
where
    F: Fn(StepResult<'_, H>) -> Result<R, Error>,
{
    fn decide(&mut self) -> bool {
        self.decided = self.run();
        self.decided.is_ok()
    }

    fn confirm(&mut self) -> bool {
        let confirmed = (self.confirm)();
        confirmed
            .map_err(|error| self.decided = Err(error.into()))
            .is_ok()
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

/// The part of a transaction that concerns one table.
struct Plan<'a, 'p, H: Host> {
    store: &'a Store<H>,
    keys: &'a [&'a [u8]],
    draft: &'a Draft<'p, H>,
    /// The cells of the record of each key before, which do not change until the keys are released
    /// (CELLS-3), and `true` if the key gets another record.
    stopped: Vec<Option<(Stopped<'static>, bool)>>,
    /// The changes of the keys that are not made yet, from the last key on.
    changes: Option<Vec<Change<Values<H>>>>,
    /// `true` if a new record is larger than the bound of the table.
    is_larger: bool,
}

impl<H: Host> Transaction<Values<H>> for Plan<'_, '_, H> {
    fn may_change(&self, index: usize) -> bool {
        self.draft.writes[index]
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Rec<H>>) -> bool {
        let store = self.store;
        let living = |index| store.living(found(index));
        let stop = |index| {
            // SAFETY: the records of a transaction live until `release`, which drops all
            // references to this one.
            let record = unsafe { &*ptr::from_ref(living(index)?) };
            Some((cells::stop(record), false))
        };
        self.stopped = (0..self.keys.len()).map(stop).collect();
        // SAFETY: the records live until `release`. The draft is used after this
        // only in the decision about all tables, which is made before.
        unsafe { self.draft.overlay.begin(&living) };
        true
    }

    fn change(&mut self, index: usize, found: Option<&Rec<H>>) -> Change<Values<H>> {
        let overlay = &self.draft.overlay;
        let changes = self.changes.get_or_insert_with(|| {
            let mut changes = overlay.finish();
            changes.reverse();
            changes
        });
        // A key that no step may change has a change, too, which keeps it.
        changes.truncate(self.keys.len() - index);
        let change = changes.pop().unwrap_or(Change::Abort);
        if let (Change::Put(_) | Change::Remove, Some((_, goes))) =
            (&change, &mut self.stopped[index])
        {
            *goes = true;
        }
        let dated = self.store.dated_if_it_fits(self.keys[index], found, change);
        self.is_larger |= dated.is_none();
        dated.unwrap_or(Change::Abort)
    }

    fn release(&mut self, has_committed: bool) {
        for (stopped, goes) in self.stopped.drain(..).flatten() {
            if has_committed && goes {
                stopped.for_ever();
            }
        }
    }
}

/// The plan of a transaction of one table on a store of bytes, which has the decision about the
/// whole.
struct OfBytes<'a, 'b, 'p, H: Host> {
    plan: &'a mut Plan<'b, 'p, H>,
    decision: &'a mut dyn Decision,
}

impl<H: Host> Transaction<Values<H>> for OfBytes<'_, '_, '_, H> {
    fn may_change(&self, index: usize) -> bool {
        self.plan.may_change(index)
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Rec<H>>) -> bool {
        self.plan.decide(found) && self.decision.decide() && self.decision.confirm()
    }

    fn change(&mut self, index: usize, found: Option<&Rec<H>>) -> Change<Values<H>> {
        self.plan.change(index, found)
    }

    fn release(&mut self, has_committed: bool) {
        self.plan.release(has_committed);
    }
}
