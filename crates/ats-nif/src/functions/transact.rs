//! Transactions: several keys are tested and changed as one step.

use super::access::with_writable;
use super::arguments::{ListTerms, proper_length};
use super::counters::{Few, counter_op, element_spec, integer, is_list, parse_list};
use super::merge::{element_and_merge, needs_time};
use super::object_terms::{has_many, object_list_unlimited};
use crate::atoms::{KnownAtom, boolean};
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::handle::Shared;
use crate::query::{Caller, Prepared, prepare};
use crate::scratch::{self, ReadBuffers};
use crate::vm_host::VmHost;
use crate::vm_sink::make_term;
use crate::vm_term::VmTerm;
use crate::{nif, process, sys};
use ats::terms::{
    Condition, CounterOp, Error, Integer, Locking, LookupResult, Merge, MergedValue, Merging,
    NotDone, Place, Step, StepResult, Workspace,
};
use std::cell::Cell;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![nif!("transact", transact, 4)]
}

/// Number of conditions, steps and parts of steps above which a transaction runs on a dirty
/// scheduler: this many take well under a millisecond.
const FEW: usize = 64;
/// Number of conditions and steps of a transaction at most: its keys are held meanwhile.
const MOST: usize = 10_000;
/// Number of steps that cost a percent of the caller's time slice.
const STEPS_OF_A_PERCENT: usize = 4;

/// `transact(Table, Conditions, Then, Else)`: `{true | false, Results}`, or `{condition | then |
/// else, N, Cause}` if the N-th part fails.
fn transact<'e>(
    env: Env<'e>,
    [table, conditions, then, otherwise]: [VmTerm<'e>; 4],
) -> NifResult<'e> {
    with_writable(env, table, |shared, _| {
        let mut left = MOST;
        for list in [conditions, then, otherwise] {
            let len = proper_length(list, left + 1).ok_or(KnownAtom::None)?;
            left = left.checked_sub(len).ok_or(KnownAtom::Steps)?;
        }
        let mut work = MOST - left;
        let parsed = parse_parts(shared, conditions, KnownAtom::Condition, env, Test::parse)
            .and_then(|tests| {
                let then = parse_parts(shared, then, KnownAtom::Then, env, Change::parse)?;
                let otherwise =
                    parse_parts(shared, otherwise, KnownAtom::Else, env, Change::parse)?;
                Ok((tests, [then, otherwise]))
            });
        let (tests, branches) = match parsed {
            Ok(parsed) => parsed,
            Err(Failed::At(answer)) => return Ok(answer),
            Err(Failed::NoReply(no_reply)) => return Err(no_reply),
        };
        let parts = branches.iter().flatten().map(Change::parts);
        work += parts.fold(0, usize::saturating_add);
        if work > FEW && !process::on_dirty_scheduler() {
            return Err(NoReply::DirtyCpu);
        }
        process::consume(env, (work / STEPS_OF_A_PERCENT).max(1) as u128);
        run(env, shared, &tests, &branches)
    })
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
    Match(VmTerm<'e>, Prepared),
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
                let prepared = prepare(&shared.table, spec).map_err(|no_reply| match no_reply {
                    NoReply::Refused(_) => KnownAtom::Pattern.into(),
                    no_reply => no_reply,
                })?;
                Test::Match(key, prepared.0)
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

fn run<'e>(
    env: Env<'e>,
    shared: &Shared,
    tests: &[Test<'e>],
    branches: &[Vec<Change<'e>>; 2],
) -> NifResult<'e> {
    // All parts together may copy as much as one operation elsewhere.
    let parts = tests.len() + branches.iter().map(Vec::len).sum::<usize>();
    let share = match scratch::limit() {
        usize::MAX => usize::MAX,
        limit => limit / parts.max(1),
    };
    let accepts: Vec<_> = tests
        .iter()
        .map(|test| {
            move |found: &LookupResult<'_, VmHost>| match test {
                Test::Match(_, _) if has_many(found) => Err(Error::TooLarge),
                Test::Match(_, prepared) => scratch::with_select_buffers(|buffers| {
                    (buffers.runner).accepts(&prepared.query, found, &Caller(env), share)
                }),
                _ => Ok(true),
            }
        })
        .collect();
    let conditions = tests
        .iter()
        .zip(&accepts)
        .map(|(test, accepts)| match test {
            Test::Absent(key) => Condition::Absent(*key),
            Test::Present(key) => Condition::Present(*key),
            Test::Equals(object) => Condition::Equals(*object),
            Test::Match(key, _) => Condition::Holds(*key, accepts),
        });
    let conditions: Vec<_> = conditions.collect();
    let [then, otherwise] = [0, 1].map(|branch: usize| {
        let steps = branches[branch].iter().map(Change::step);
        steps.collect::<Vec<_>>()
    });
    let not_done = Cell::new(None);
    let done = scratch::with_workspace(|work| {
        let read = |result: StepResult<'_, VmHost>| answer(env, result, share);
        let work = SharedLimit::new(work, share);
        let done = (shared.table).transact(&conditions, &then, &otherwise, work.0, read);
        done.map_err(|failed: NotDone| {
            not_done.set(failed.place);
            failed.error
        })
    });
    match (done, not_done.get()) {
        (Ok((holds, answers)), _) => {
            let taken = &branches[usize::from(!holds)];
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
            Ok(env.tuple(&[boolean(holds), env.list(&results)]))
        }
        (Err(NoReply::Refused(cause)), Some(place)) => {
            let (name, index) = match place {
                Place::Condition(index) => (KnownAtom::Condition, index),
                Place::Then(index) => (KnownAtom::Then, index),
                Place::Otherwise(index) => (KnownAtom::Else, index),
            };
            Ok(at(env, name, index, cause))
        }
        (Err(no_reply), _) => Err(no_reply),
    }
}
