//! Transactions: several keys of one table, or of several, are tested and changed as one step.

use super::access::{find_writable, with_writable};
use super::arguments::{ListTerms, proper_length};
use super::counters::{Few, counter_op, element_spec, integer, is_list, parse_list};
use super::merge::{element_and_merge, needs_time};
use super::object_terms::{has_many, object_list_unlimited};
use crate::atoms::{KnownAtom, boolean};
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::query::Caller;
use crate::scratch::{self, ReadBuffers};
use crate::vm_host::VmHost;
use crate::vm_sink::make_term;
use crate::vm_term::VmTerm;
use crate::{nif, process, spec_shapes, sys};
use ats::terms::{
    Condition, CounterOp, Error, Integer, Locking, LookupResult, Merge, MergedValue, Merging,
    NotDone, Place, Step, StepResult, Table, TablePart, Workspace,
};
use std::cell::Cell;
use std::ptr;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("transact", transact, 4),
        nif!("transact", transact_all, 1),
        nif!("exchange", exchange, 3),
    ]
}

/// `exchange(Table, Seen, New)`: `true` if the object of `Seen` was replaced by that of `New`. Both
/// are lists of at most one object.
fn exchange<'e>(env: Env<'e>, [table, seen, new]: [VmTerm<'e>; 3]) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        let [seen, new] = [seen, new].map(|list| ListTerms(list).next());
        let done = scratch::with_workspace(|work| shared.table.exchange(seen, new, work))?;
        Ok(boolean(done))
    })
}

/// Number of tables, conditions, steps and parts of steps above which a transaction runs on a dirty
/// scheduler: this many take well under a millisecond.
const FEW: usize = 64;
/// Number of tables, conditions and steps of a transaction at most: its keys are held meanwhile.
const MOST: usize = 10_000;
/// Number of steps that cost a percent of the caller's time slice.
const STEPS_OF_A_PERCENT: usize = 4;

/// `transact(Table, Conditions, Then, Else)`: `{true | false, Results}`, or `{condition | then |
/// else, N, Cause}` if the N-th part fails.
pub(super) fn transact<'e>(
    env: Env<'e>,
    [table, conditions, then, otherwise]: [VmTerm<'e>; 4],
) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        let mut left = MOST;
        let lists = [conditions, then, otherwise];
        take_lengths(lists, &mut left).map_err(|(_, cause)| cause)?;
        check_work(MOST - left)?;
        let parsed = match OfTable::parse(shared, lists, env) {
            Ok(parsed) => [parsed],
            Err(Failed::At(answer)) => return Ok(answer),
            Err(Failed::NoReply(no_reply)) => return Err(no_reply),
        };
        count_work(&parsed, MOST - left, env)?;
        match run(env, &parsed, &|| Ok(())) {
            Ok((holds, results)) => Ok(env.tuple(&[boolean(holds), results[0]])),
            Err((failed, NoReply::Refused(cause))) => match failed.place {
                Some(place) => Ok(at_place(env, place, cause)),
                None => Err(cause.into()),
            },
            Err((_, no_reply)) => Err(no_reply),
        }
    })
}

/// `transact([{Table, Conditions, Then, Else}])`: `{true | false, [Results]}`, or `{N, Failed}` if
/// the N-th element fails: with a cause, if the table does, or like the other function; a part that
/// is no proper list has the number 0.
fn transact_all<'e>(env: Env<'e>, [list]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let len = proper_length(list, MOST + 1).ok_or(KnownAtom::None)?;
    let mut left = MOST.checked_sub(len).ok_or(KnownAtom::Steps)?;
    check_work(len)?;
    let of_element =
        |index: usize, failed: VmWord<'e>| Ok(env.tuple(&[env.uint(index as u64 + 1), failed]));
    let guard = ats_sync::pin();
    let mut found = Vec::with_capacity(len);
    for (index, element) in ListTerms(list).enumerate() {
        let words = element.tuple_words().unwrap_or_default();
        let Ok([table, lists @ ..]) = <[VmWord<'e>; 4]>::try_from(words) else {
            return of_element(index, KnownAtom::Table.word());
        };
        let table = VmTerm::of(env, table);
        let shared = match find_writable(env, table, &guard) {
            Ok(shared) if shared.table.has_byte_store() => Err(KnownAtom::Disk),
            found => found,
        };
        let shared = match shared {
            Ok(shared) => shared,
            Err(cause) => return of_element(index, cause.word()),
        };
        let lists = lists.map(|word| VmTerm::of(env, word));
        if let Err((name, cause)) = take_lengths(lists, &mut left) {
            return match cause {
                KnownAtom::None => {
                    let failed = [name.word(), env.uint(0), cause.word()];
                    of_element(index, env.tuple(&failed))
                }
                cause => Err(cause.into()),
            };
        }
        found.push((table, shared, lists));
    }
    check_work(MOST - left)?;
    if !process::on_dirty_scheduler() {
        let found = found
            .iter()
            .map(|(table, shared, lists)| (*table, *shared, *lists));
        return transact_found(env, found, MOST - left);
    }
    // A long call must not delay the reclamation of memory that other calls retire.
    let owned = found
        .into_iter()
        .map(|(table, shared, lists)| (table, shared.to_arc(), lists));
    let owned: Vec<_> = owned.collect();
    drop(guard);
    let found = owned
        .iter()
        .map(|(table, shared, lists)| (*table, &**shared, *lists));
    transact_found(env, found, MOST - left)
}

/// Runs a transaction over tables, each with its term and its lists of parts.
fn transact_found<'e, 's>(
    env: Env<'e>,
    found: impl Iterator<Item = (VmTerm<'e>, &'s Shared, [VmTerm<'e>; 3])> + Clone,
    parts: usize,
) -> NifResult<'e> {
    let of_element =
        |index: usize, failed: VmWord<'e>| Ok(env.tuple(&[env.uint(index as u64 + 1), failed]));
    let mut parsed = Vec::new();
    for (index, (_, shared, lists)) in found.clone().enumerate() {
        match OfTable::parse(shared, lists, env) {
            Ok(of_table) => parsed.push(of_table),
            Err(Failed::At(answer)) => return of_element(index, answer),
            Err(Failed::NoReply(no_reply)) => return Err(no_reply),
        }
    }
    count_work(&parsed, parts, env)?;
    // A table that ended meanwhile, or that the caller may not write any more, fails the whole.
    let ended = Cell::new(None);
    let confirm = || {
        let guard = ats_sync::pin();
        for (index, (table, shared, _)) in found.clone().enumerate() {
            let cause = match find_writable(env, table, &guard) {
                Ok(now) if ptr::eq(now, shared) => continue,
                Ok(_) => KnownAtom::Id,
                Err(cause) => cause,
            };
            ended.set(Some((index, cause)));
            return Err(Error::Ended);
        }
        Ok(())
    };
    let done = run(env, &parsed, &confirm);
    if let Some((index, cause)) = ended.get() {
        return of_element(index, cause.word());
    }
    match done {
        Ok((holds, results)) => Ok(env.tuple(&[boolean(holds), env.list(&results)])),
        Err((failed, NoReply::Refused(cause))) => match (failed.table, failed.place) {
            (Some(index), Some(place)) => of_element(index, at_place(env, place, cause)),
            (Some(index), None) => of_element(index, cause.word()),
            (None, _) => Err(cause.into()),
        },
        Err((_, no_reply)) => Err(no_reply),
    }
}

/// Subtracts the lengths of the lists of a table from `left`. Returns the name of a list that is
/// none, or which has too many elements.
fn take_lengths(lists: [VmTerm<'_>; 3], left: &mut usize) -> Result<(), (KnownAtom, KnownAtom)> {
    for (list, name) in lists.into_iter().zip(PARTS) {
        let len = proper_length(list, *left + 1).ok_or((name, KnownAtom::None))?;
        *left = left.checked_sub(len).ok_or((name, KnownAtom::Steps))?;
    }
    Ok(())
}

/// Has the VM make the call on a dirty scheduler if it is long.
fn check_work(work: usize) -> Result<(), NoReply> {
    if work > FEW && !process::on_dirty_scheduler() {
        return Err(NoReply::DirtyCpu);
    }
    Ok(())
}

/// Like [`check_work`], for a number of tables, conditions and steps that were parsed. Counts the
/// time of the call.
fn count_work(parsed: &[OfTable<'_, '_>], mut work: usize, env: Env<'_>) -> Result<(), NoReply> {
    let steps = parsed
        .iter()
        .flat_map(|of_table| of_table.branches.iter().flatten());
    work += steps.map(Change::parts).fold(0, usize::saturating_add);
    check_work(work)?;
    process::consume(env, (work / STEPS_OF_A_PERCENT).max(1) as u128);
    Ok(())
}

/// The names of the lists of a table.
const PARTS: [KnownAtom; 3] = [KnownAtom::Condition, KnownAtom::Then, KnownAtom::Else];

/// The conditions and steps on a table.
struct OfTable<'e, 's> {
    shared: &'s Shared,
    tests: Vec<Test<'e>>,
    branches: [Vec<Change<'e>>; 2],
}

impl<'e, 's> OfTable<'e, 's> {
    fn parse(
        shared: &'s Shared,
        [conditions, then, otherwise]: [VmTerm<'e>; 3],
        env: Env<'e>,
    ) -> Result<Self, Failed<'e>> {
        let [condition_name, then_name, else_name] = PARTS;
        let tests = parse_parts(shared, conditions, condition_name, env, Test::parse)?;
        let then = parse_parts(shared, then, then_name, env, Change::parse)?;
        let otherwise = parse_parts(shared, otherwise, else_name, env, Change::parse)?;
        Ok(OfTable {
            shared,
            tests,
            branches: [then, otherwise],
        })
    }

    /// Returns the number of conditions and steps.
    fn len(&self) -> usize {
        self.tests.len() + self.branches.iter().map(Vec::len).sum::<usize>()
    }
}

/// The end of the parsing: the answer for a part that is wrong, or a reschedule.
enum Failed<'e> {
    At(VmWord<'e>),
    NoReply(NoReply),
}

/// Parses each element of a list, which has a name.
fn parse_parts<'e, T>(
    shared: &Shared,
    list: VmTerm<'e>,
    name: KnownAtom,
    env: Env<'e>,
    parse: impl Fn(&Shared, Env<'e>, VmTerm<'e>) -> Result<T, NoReply>,
) -> Result<Vec<T>, Failed<'e>> {
    let parts = ListTerms(list).enumerate().map(|(index, term)| {
        parse(shared, env, term).map_err(|no_reply| match no_reply {
            NoReply::Refused(cause) => Failed::At(at(env, name, index, cause)),
            no_reply => Failed::NoReply(no_reply),
        })
    });
    parts.collect()
}

/// Returns the answer for a part that fails.
fn at(env: Env<'_>, name: KnownAtom, index: usize, cause: KnownAtom) -> VmWord<'_> {
    env.tuple(&[name.word(), env.uint(index as u64 + 1), cause.word()])
}

/// A condition.
enum Test<'e> {
    Absent(VmTerm<'e>),
    Present(VmTerm<'e>),
    Equals(VmTerm<'e>),
    /// A key, and a specification that has its objects.
    Match(VmTerm<'e>, VmTerm<'e>),
}

impl<'e> Test<'e> {
    fn parse(shared: &Shared, env: Env<'e>, term: VmTerm<'e>) -> Result<Self, NoReply> {
        let (name, rest) = name_and_rest(env, term)?;
        Ok(match *rest {
            [key] if KnownAtom::Absent.is(name) => Test::Absent(key),
            [key] if KnownAtom::Present.is(name) => Test::Present(key),
            [object] if KnownAtom::Equals.is(name) => Test::Equals(object),
            [key, pattern, guards] if KnownAtom::Match.is(name) => {
                let body = env.list(&[KnownAtom::True.word()]);
                let clause = env.tuple(&[pattern.word(), guards.word(), body]);
                let spec = VmTerm::of(env, env.list(&[clause]));
                let known = spec_shapes::with_prepared(&shared.table, spec, |_prepared| Ok(()));
                known.map_err(|no_reply| match no_reply {
                    NoReply::Refused(_) => KnownAtom::Pattern.into(),
                    no_reply => no_reply,
                })?;
                Test::Match(key, spec)
            }
            _ => return Err(KnownAtom::NoSuchPart.into()),
        })
    }
}

/// Returns the first element of a tuple and the others.
fn name_and_rest<'e>(
    env: Env<'e>,
    term: VmTerm<'e>,
) -> Result<(VmWord<'e>, Few<VmTerm<'e>>), KnownAtom> {
    let words = term.tuple_words().ok_or(KnownAtom::NoSuchPart)?;
    let mut parts = words.iter().map(|word| VmTerm::of(env, *word));
    let name = parts.next().ok_or(KnownAtom::NoSuchPart)?;
    Ok((name.word(), parts.take(4).collect()))
}

/// A step.
enum Change<'e> {
    Plain(Step<'e, VmTerm<'e>>),
    UpdateElement(VmTerm<'e>, Few<(usize, VmTerm<'e>)>, Option<VmTerm<'e>>),
    UpdateCounter {
        key: VmTerm<'e>,
        ops: Few<CounterOp>,
        default: Option<VmTerm<'e>>,
        /// `true` if the answer is a list.
        is_list: bool,
    },
    Merge {
        key: VmTerm<'e>,
        operand: VmTerm<'e>,
        position: usize,
        merge: Merge,
        default: Option<VmTerm<'e>>,
    },
}

impl<'e> Change<'e> {
    fn parse(shared: &Shared, env: Env<'e>, term: VmTerm<'e>) -> Result<Self, NoReply> {
        let (name, rest) = name_and_rest(env, term)?;
        let is = |atom: KnownAtom| atom.is(name);
        Ok(match *rest {
            [object] if is(KnownAtom::Insert) => Change::Plain(Step::Insert(object)),
            [object] if is(KnownAtom::InsertNew) => Change::Plain(Step::InsertNew(object)),
            [key] if is(KnownAtom::Delete) => Change::Plain(Step::Delete(key)),
            [object] if is(KnownAtom::DeleteObject) => Change::Plain(Step::DeleteObject(object)),
            [key] if is(KnownAtom::Lookup) => Change::Plain(Step::Lookup(key)),
            [key] if is(KnownAtom::Take) => Change::Plain(Step::Take(key)),
            [key, values, ref default @ ..] if is(KnownAtom::UpdateElement) => {
                let mut parsed = Few::new();
                if is_list(values) {
                    parse_list(values, element_spec, &mut parsed)?;
                } else {
                    parsed.push(element_spec(values)?);
                }
                Change::UpdateElement(key, parsed, only(default)?)
            }
            [key, ops, ref default @ ..] if is(KnownAtom::UpdateCounter) => {
                let (is_list, mut parsed) = (is_list(ops), Few::new());
                if is_list {
                    parse_list(ops, counter_op, &mut parsed)?;
                } else if let Some(increment) = Integer::from_term(ops) {
                    parsed.push(CounterOp {
                        position: shared.table.key_position() + 1,
                        increment,
                        wrap: None,
                    });
                } else {
                    parsed.push(counter_op(ops)?);
                }
                Change::UpdateCounter {
                    key,
                    ops: parsed,
                    default: only(default)?,
                    is_list,
                }
            }
            [key, operand, how, ref default @ ..] if is(KnownAtom::Merge) => {
                let (position, merge) = element_and_merge(shared, how)?;
                if needs_time(&merge) && !process::on_dirty_scheduler() {
                    return Err(NoReply::DirtyCpu);
                }
                Change::Merge {
                    key,
                    operand,
                    position,
                    merge,
                    default: only(default)?,
                }
            }
            _ => return Err(KnownAtom::NoSuchPart.into()),
        })
    }

    /// Returns the number of parts of the step.
    fn parts(&self) -> usize {
        match self {
            Change::UpdateElement(_, values, _) => values.len(),
            Change::UpdateCounter { ops, .. } => ops.len(),
            _ => 0,
        }
    }

    fn step(&self) -> Step<'_, VmTerm<'e>> {
        match self {
            Change::Plain(step) => *step,
            Change::UpdateElement(key, values, default) => Step::UpdateElement {
                key: *key,
                values,
                default: *default,
            },
            Change::UpdateCounter {
                key, ops, default, ..
            } => Step::UpdateCounter {
                key: *key,
                ops,
                default: *default,
            },
            Change::Merge {
                key,
                operand,
                position,
                merge,
                default,
            } => Step::Merge(Merging {
                key: *key,
                position: *position,
                operand: *operand,
                merge,
                default: *default,
                locking: Locking::First,
            }),
        }
    }
}

/// Returns the only element of the rest of a step, if there is one.
fn only<'e>(rest: &[VmTerm<'e>]) -> Result<Option<VmTerm<'e>>, KnownAtom> {
    match rest {
        [] => Ok(None),
        [default] => Ok(Some(*default)),
        _ => Err(KnownAtom::NoSuchPart),
    }
}

/// The result of a step.
enum Answer<'e> {
    Term(VmWord<'e>),
    Counters(Few<VmWord<'e>>),
}

/// Returns the result of a step, if it is not larger than its share of the words that this
/// scheduler may copy.
fn answer<'e>(
    env: Env<'e>,
    result: StepResult<'_, VmHost>,
    share: usize,
) -> Result<Answer<'e>, Error> {
    Ok(Answer::Term(match result {
        StepResult::Done(done) => boolean(done),
        StepResult::Objects(None) => VmWord::NIL,
        StepResult::Objects(Some(found)) if has_many(&found) || found.len_words() > share => {
            return Err(Error::TooLarge);
        }
        StepResult::Objects(Some(found)) => object_list_unlimited(env, &found),
        StepResult::Counters(values) => {
            let values = values.iter().map(|value| integer(env, value));
            return Ok(Answer::Counters(values.collect()));
        }
        StepResult::Merged(MergedValue::Small(value)) => env.int(value),
        StepResult::Merged(MergedValue::Term(term)) => {
            scratch::with_read_buffers(|ReadBuffers { scratch, .. }| make_term(env, term, scratch))
        }
    }))
}

/// A workspace with a limit of its own, until this is dropped.
struct SharedLimit<'w>(&'w mut Workspace<VmHost>);

impl<'w> SharedLimit<'w> {
    fn new(work: &'w mut Workspace<VmHost>, words: usize) -> Self {
        work.limit(words);
        SharedLimit(work)
    }
}

impl Drop for SharedLimit<'_> {
    fn drop(&mut self) {
        self.0.limit(scratch::limit());
    }
}

/// Returns the answer for a part that fails.
fn at_place(env: Env<'_>, place: Place, cause: KnownAtom) -> VmWord<'_> {
    let (name, index) = match place {
        Place::Condition(index) => (KnownAtom::Condition, index),
        Place::Then(index) => (KnownAtom::Then, index),
        Place::Otherwise(index) => (KnownAtom::Else, index),
    };
    at(env, name, index, cause)
}

/// Runs a transaction. Returns `true` if the conditions held, and the results of each table.
fn run<'e>(
    env: Env<'e>,
    parsed: &[OfTable<'e, '_>],
    confirm: &dyn Fn() -> Result<(), Error>,
) -> Result<(bool, Few<VmWord<'e>>), (NotDone, NoReply)> {
    // All parts together may copy as much as one operation elsewhere.
    let parts = parsed.iter().map(OfTable::len).sum::<usize>();
    let share = match scratch::limit() {
        usize::MAX => usize::MAX,
        limit => limit / parts.max(1),
    };
    let tests = parsed.iter().flat_map(|of_table| {
        let table = &of_table.shared.table;
        of_table.tests.iter().map(move |test| (table, test))
    });
    let accepts: Vec<_> = tests
        .map(|(table, test)| {
            move |found: &LookupResult<'_, VmHost>| match test {
                Test::Match(_, _) if has_many(found) => Err(Error::TooLarge),
                Test::Match(_, spec) => {
                    let accepts = spec_shapes::with_prepared(table, *spec, |prepared| {
                        Ok(scratch::with_select_buffers(|buffers| {
                            (buffers.runner).accepts(&prepared.query, found, &Caller(env), share)
                        }))
                    });
                    // The specification was prepared before: it can only be too large here.
                    accepts.unwrap_or(Err(Error::TooLarge))
                }
                _ => Ok(true),
            }
        })
        .collect();
    let mut next_accepts = accepts.iter();
    let conditions: Few<Vec<_>> = parsed
        .iter()
        .map(|of_table| {
            let tests = of_table.tests.iter().zip(&mut next_accepts);
            let conditions = tests.map(|(test, accepts)| match test {
                Test::Absent(key) => Condition::Absent(*key),
                Test::Present(key) => Condition::Present(*key),
                Test::Equals(object) => Condition::Equals(*object),
                Test::Match(key, _) => Condition::Holds(*key, accepts),
            });
            conditions.collect()
        })
        .collect();
    let steps = parsed.iter().map(|of_table| {
        [0, 1].map(|branch: usize| {
            let steps = of_table.branches[branch].iter().map(Change::step);
            steps.collect::<Vec<_>>()
        })
    });
    let steps: Few<_> = steps.collect();
    let of_tables = parsed.iter().zip(&conditions).zip(&steps);
    let of_tables: Few<_> = of_tables
        .map(|((of_table, conditions), [then, otherwise])| TablePart {
            table: &of_table.shared.table,
            conditions,
            then,
            otherwise,
        })
        .collect();
    let not_done = Cell::new(None);
    let done = scratch::with_workspace(|work| {
        let read = |result: StepResult<'_, VmHost>| answer(env, result, share);
        let work = SharedLimit::new(work, share);
        Table::transact_all(&of_tables, work.0, read, confirm).map_err(|failed: NotDone| {
            not_done.set(Some(failed));
            failed.error
        })
    });
    match (done, not_done.get()) {
        (Ok((holds, answers)), _) => {
            let taken = parsed
                .iter()
                .map(|of_table| &of_table.branches[usize::from(!holds)]);
            let results = answers
                .into_iter()
                .zip(taken)
                .map(|(answers, taken)| results(env, answers, taken));
            Ok((holds, results.collect()))
        }
        (Err(no_reply), failed) => {
            let failed = failed.unwrap_or_else(|| Error::Busy.into());
            Err((failed, no_reply))
        }
    }
}

/// Returns the list of the results of steps.
fn results<'e>(env: Env<'e>, answers: Vec<Answer<'e>>, taken: &[Change<'e>]) -> VmWord<'e> {
    let results = answers
        .into_iter()
        .zip(taken)
        .map(|(answer, step)| match answer {
            Answer::Term(term) => term,
            Answer::Counters(values) => match (step, &values[..]) {
                (Change::UpdateCounter { is_list: false, .. }, [value]) => *value,
                _ => env.list(&values),
            },
        });
    let results: Vec<_> = results.collect();
    env.list(&results)
}
