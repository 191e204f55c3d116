//! Transactions: steps mean the same as the operations of their names, all of them are seen
//! together, and a failure changes nothing.

use super::common::{expiring_on_disk, on_disk, portable};
use ats::terms::{
    Condition, CounterOp, Error, Integer, Locking, Merge, MergedValue, Merging, NotDone, Place,
    Step, StepResult, Table, TableType, TermHost, Ttl, Workspace, advance_clock,
};
use ats_term::{Atom, Term};
use fastrand::Rng;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

type TermTable = Table<TermHost>;
type Work = Workspace<TermHost>;

const TYPES: [TableType; 6] = [
    TableType::Set,
    TableType::OrderedSet,
    TableType::Bag,
    TableType::DuplicateBag,
    TableType::OrderedBag,
    TableType::OrderedDuplicateBag,
];

fn small(value: &Integer) -> Term {
    Term::from(value.as_small().expect("a small number"))
}

/// Returns a result as a term.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the functions that read results may fail"
)]
fn result_term(result: StepResult<'_, TermHost>) -> Result<Term, Error> {
    Ok(match result {
        StepResult::Done(done) => Term::from(i64::from(done)),
        StepResult::Objects(found) => {
            Term::from(found.map_or(Vec::new(), |found| found.to_terms()))
        }
        StepResult::Counters(values) => Term::from(values.iter().map(small).collect::<Vec<_>>()),
        StepResult::Merged(MergedValue::Small(value)) => Term::from(value),
        StepResult::Merged(MergedValue::Term(value)) => {
            Term::from(value.as_small().expect("a small number"))
        }
    })
}

fn transact(
    table: &TermTable,
    conditions: &[Condition<'_, TermHost, &Term>],
    then: &[Step<'_, &Term>],
    otherwise: &[Step<'_, &Term>],
) -> Result<(bool, Vec<Term>), NotDone> {
    loop {
        let done = table.transact(conditions, then, otherwise, &mut Work::new(), result_term);
        match done {
            Err(not) if not.error == Error::Busy => std::thread::yield_now(),
            done => return done,
        }
    }
}

/// Returns all objects, those of a key in their order.
fn all_objects(table: &TermTable) -> Vec<Term> {
    let mut objects = Vec::new();
    let scanned = table.scan(None, &ats::terms::pin(), &mut |found| {
        objects.extend(found.to_terms());
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    objects
}

/// Returns all objects; in a table without order, ordered by their texts.
fn objects(table: &TermTable) -> Vec<Term> {
    let mut objects = all_objects(table);
    if !table.table_type().is_ordered() {
        objects.sort_by_key(|object| format!("{object:?}"));
    }
    objects
}

/// Carries out a step by the operation of its name.
fn by_operation(table: &TermTable, step: &Step<'_, &Term>) -> Result<Term, Error> {
    let (mut work, guard) = (Work::new(), ats::terms::pin());
    let work = &mut work;
    let done = match *step {
        Step::Insert(object) => table.insert(object, work).map(|()| true)?,
        Step::InsertNew(object) => table.insert_new(object, work)?,
        Step::Delete(key) => table.delete(key, work).map(|()| true)?,
        Step::DeleteObject(object) => table.delete_object(object, work).map(|()| true)?,
        Step::UpdateElement {
            key,
            values,
            default,
        } => table.update_element(key, values, default, work)?,
        Step::UpdateCounter { key, ops, default } => {
            let values = table.update_counter(key, ops, default, work)?;
            return result_term(StepResult::Counters(&values));
        }
        Step::Merge(merging) => {
            return table.merge(merging, work, |value| {
                result_term(StepResult::Merged(value))
            })?;
        }
        Step::Lookup(key) => {
            return result_term(StepResult::Objects(table.lookup(key, work, &guard)?));
        }
        Step::Take(key) => return result_term(StepResult::Objects(table.take(key, work, &guard)?)),
    };
    result_term(StepResult::Done(done))
}

/// Terms that the steps of a test refer to.
struct Terms {
    keys: Vec<Term>,
    objects: Vec<Term>,
    values: Vec<Term>,
    sum: Merge,
    adds: Vec<[CounterOp; 1]>,
}

impl Terms {
    fn new() -> Self {
        let mut objects = Vec::new();
        for key in 0..6 {
            objects.extend((0..4).map(|value| Term::from((key, value))));
            objects.push(Term::from((key, "text")));
        }
        let add = |by: i64| {
            [CounterOp {
                position: 2,
                increment: by.into(),
                wrap: None,
            }]
        };
        Terms {
            keys: (0..6).map(Term::from).collect(),
            objects,
            values: (0..4)
                .map(Term::from)
                .chain([Term::from(vec![Term::from(1)])])
                .collect(),
            sum: Merge::from_term(&Term::from(Atom::new("sum").expect("short"))).expect("a merge"),
            adds: [1, -2].map(add).into(),
        }
    }

    fn step<'a>(
        &'a self,
        random: &mut Rng,
        changes: &'a [Vec<(usize, &'a Term)>],
    ) -> Step<'a, &'a Term> {
        let key = random.choice(&self.keys).expect("there are keys");
        let object = random.choice(&self.objects).expect("there are objects");
        let default = random.bool().then_some(object);
        match random.u8(..11) {
            0 | 1 => Step::Insert(object),
            2 => Step::InsertNew(object),
            3 => Step::Delete(key),
            4 => Step::DeleteObject(object),
            5 => Step::UpdateCounter {
                key,
                ops: random.choice(&self.adds).expect("there are changes"),
                default,
            },
            6 => Step::Merge(Merging {
                key,
                position: 2,
                operand: random.choice(&self.values).expect("there are values"),
                merge: &self.sum,
                default,
                locking: Locking::First,
            }),
            7 => Step::Take(key),
            8 => Step::UpdateElement {
                key,
                values: random.choice(changes).expect("there are values"),
                default,
            },
            _ => Step::Lookup(key),
        }
    }

    fn condition<'a>(&'a self, random: &mut Rng) -> Condition<'a, TermHost, &'a Term> {
        let key = random.choice(&self.keys).expect("there are keys");
        match random.u8(..4) {
            0 => Condition::Absent(key),
            1 => Condition::Present(key),
            2 => Condition::Equals(random.choice(&self.objects).expect("there are objects")),
            _ => Condition::Holds(key, &|found| Ok(found.count() == 1)),
        }
    }
}

/// Returns `true` if a condition holds in a table that no other thread changes.
fn holds(table: &TermTable, condition: &Condition<'_, TermHost, &Term>) -> bool {
    let guard = ats::terms::pin();
    let find = |key| {
        table
            .lookup(key, &mut Work::new(), &guard)
            .expect("in memory")
    };
    match condition {
        Condition::Absent(key) => find(key).is_none(),
        Condition::Present(key) => find(key).is_some(),
        Condition::Holds(key, accepts) => {
            find(key).is_some_and(|found| accepts(&found) == Ok(true))
        }
        Condition::Equals(object) => objects(table).iter().any(|other| other == *object),
    }
}

/// Runs random transactions, and the same steps one by one on a copy, which is the old state again
/// if a step fails.
fn random_transactions(make: impl Fn(TableType) -> TermTable) {
    compare_with_operations(&make, &make, 1500);
}

/// Runs so many random transactions on a table, and the same steps on copies of another kind.
fn compare_with_operations(
    make: impl Fn(TableType) -> TermTable,
    make_copy: impl Fn(TableType) -> TermTable,
    rounds: usize,
) {
    let terms = Terms::new();
    let change = |value| (2, value);
    let mut changes: Vec<_> = terms
        .values
        .iter()
        .map(|value| vec![change(value)])
        .collect();
    changes.push(vec![(2, &terms.values[0]), (3, &terms.values[1])]);
    changes.push(vec![(1, &terms.values[0])]);
    for (seed, table_type) in TYPES.into_iter().enumerate() {
        let mut random = Rng::with_seed(seed as u64);
        let table = make(table_type);
        let (mut held, mut failed) = (0, 0);
        for _ in 0..rounds {
            let copy = make_copy(table_type);
            let before = objects(&table);
            copy.insert_many(all_objects(&table).iter(), &mut Work::new())
                .expect("in memory");
            let conditions: Vec<_> = (0..random.u8(..3))
                .map(|_| terms.condition(&mut random))
                .collect();
            let mut branch = || -> Vec<_> {
                (0..random.u8(..5))
                    .map(|_| terms.step(&mut random, &changes))
                    .collect()
            };
            let branches: [Vec<Step<'_, &Term>>; 2] = [branch(), branch()];
            let holds = conditions.iter().all(|condition| holds(&copy, condition));
            let steps = &branches[usize::from(!holds)];
            let mut results = Vec::new();
            let mut failure = None;
            for (index, step) in steps.iter().enumerate() {
                match by_operation(&copy, step) {
                    Ok(result) => results.push(result),
                    Err(error) => {
                        failure = Some((index, error));
                        break;
                    }
                }
            }
            let done = transact(&table, &conditions, &branches[0], &branches[1]);
            match failure {
                None => {
                    assert_eq!(done, Ok((holds, results)));
                    assert_eq!(objects(&table), objects(&copy));
                    held += 1;
                }
                Some((index, error)) => {
                    let place = if holds { Place::Then } else { Place::Otherwise };
                    let place = Some(place(index));
                    assert_eq!(
                        done,
                        Err(NotDone {
                            table: None,
                            place,
                            error
                        })
                    );
                    assert_eq!(objects(&table), before, "nothing has changed");
                    failed += 1;
                }
            }
            assert_eq!(table.len(), Ok(objects(&table).len()));
        }
        assert!(
            held > rounds * 2 / 15 && failed > rounds / 30,
            "{held} {failed}"
        );
        table.clear().expect("in memory");
        assert_eq!(table.len(), Ok(0));
    }
}

#[test]
fn steps_are_the_operations_of_their_names() {
    random_transactions(|table_type| TermTable::new(table_type, 1));
}

#[test]
fn steps_are_the_operations_in_compressed_tables() {
    random_transactions(|table_type| TermTable::new(table_type, 1).compressed(true));
}

#[test]
fn steps_are_the_operations_in_tables_whose_objects_expire() {
    random_transactions(|table_type| {
        let table = TermTable::new(table_type, 1);
        let ttl = Ttl::Written(Duration::from_secs(3600));
        table.expiring(ttl).expect("in memory")
    });
}

fn in_memory(table_type: TableType) -> TermTable {
    TermTable::new(table_type, 1)
}

#[test]
fn steps_are_the_operations_in_a_store_of_bytes() {
    compare_with_operations(|table_type| portable(table_type, 1), in_memory, 1500);
}

/// The store writes and compacts files all the time, and is opened anew now and then.
#[test]
fn steps_are_the_operations_on_disk() {
    compare_with_operations(|table_type| on_disk(table_type, 1), in_memory, 300);
    compare_with_operations(|table_type| expiring_on_disk(table_type, 1), in_memory, 150);
}

/// Steps and conditions see no object whose time has passed, and objects keep their time or get a
/// new one as by single operations.
#[test]
fn expired_objects_are_absent() {
    let table = TermTable::new(TableType::Set, 1);
    let table = table
        .expiring(Ttl::Written(Duration::from_secs(100)))
        .expect("in memory");
    let [one, two] = [("one", 1), ("two", 2)].map(Term::from);
    let [key_one, key_two] = ["one", "two"].map(Term::from);
    for object in [&one, &two] {
        table.insert(object, &mut Work::new()).expect("in memory");
    }
    advance_clock(Duration::from_secs(60));
    let [three] = [&Term::from(3)];
    let values = [(2, three)];
    let steps = [
        // Keeps its time.
        Step::UpdateElement {
            key: &key_one,
            values: &values,
            default: None,
        },
        // Gets a new time, by the first of its steps.
        Step::Insert(&two),
        Step::UpdateElement {
            key: &key_two,
            values: &values,
            default: None,
        },
    ];
    assert_eq!(
        transact(&table, &[Condition::Present(&key_one)], &steps, &[]).map(|done| done.0),
        Ok(true)
    );
    advance_clock(Duration::from_secs(60));
    let conditions = [Condition::Absent(&key_one), Condition::Present(&key_two)];
    let steps = [Step::Take(&key_one), Step::Take(&key_two)];
    let taken = [vec![], vec![Term::from(("two", 3))]].map(Term::from);
    assert_eq!(
        transact(&table, &conditions, &steps, &[]),
        Ok((true, taken.to_vec()))
    );
    assert_eq!(table.len(), Ok(0));
}

/// A transaction that fails after it has deleted objects of a key with very many leaves all of them
/// where they can be found.
#[test]
fn an_undone_deletion_from_a_large_bag_leaves_its_objects() {
    let many: Vec<Term> = (0..20_000)
        .map(|value| Term::from(("key", value)))
        .collect();
    let (missing, work) = (Term::from("missing"), &mut Work::new());
    let add = [CounterOp {
        position: 2,
        increment: 1.into(),
        wrap: None,
    }];
    for table_type in [
        TableType::Bag,
        TableType::DuplicateBag,
        TableType::OrderedBag,
    ] {
        let table = TermTable::new(table_type, 1);
        table.insert_many(many.iter(), work).expect("in memory");
        let fails = Step::UpdateCounter {
            key: &missing,
            ops: &add,
            default: None,
        };
        let mut steps: Vec<_> = many[..500].iter().map(Step::DeleteObject).collect();
        steps.push(fails);
        let place = Some(Place::Then(500));
        let refused = Err(NotDone {
            table: None,
            place,
            error: Error::TableType,
        });
        assert_eq!(transact(&table, &[], &steps, &[]), refused);
        assert_eq!(table.len(), Ok(many.len()));
        steps.pop();
        assert_eq!(
            transact(&table, &[], &steps[..250], &[]).map(|done| done.0),
            Ok(true)
        );
        assert_eq!(table.len(), Ok(many.len() - 250));
        for object in &many {
            table.delete_object(object, work).expect("in memory");
        }
        assert_eq!(table.len(), Ok(0));
    }
}

/// Money moves between accounts by transactions, which now and then close an account and open it
/// again; deposits are counters that change in place. Snapshots see every coin that was paid in
/// before them, and none that came after.
fn a_bank(table_type: TableType) {
    const ACCOUNTS: i64 = 8;
    let table = TermTable::new(table_type, 1);
    table.force_adaptation(5, 5);
    let vault = Term::from(("vault", 0));
    table.insert(&vault, &mut Work::new()).expect("in memory");
    for account in 0..ACCOUNTS {
        table
            .insert(&Term::from((account, 100)), &mut Work::new())
            .expect("in memory");
    }
    let (paid, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
    let balance = |key: &Term| -> Option<i64> {
        let guard = ats::terms::pin();
        let found = table
            .lookup(key, &mut Work::new(), &guard)
            .expect("in memory")?;
        Some(amount(&found.to_terms()[0]))
    };
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (table, is_over) = (&table, &is_over);
            scope.spawn(move || {
                let mut random = Rng::with_seed(thread);
                while !is_over.load(Ordering::Relaxed) {
                    let [from, to] = [(); 2].map(|()| random.i64(..ACCOUNTS));
                    let [from_key, to_key] = [from, to].map(Term::from);
                    let (Some(all), false) = (balance(&from_key), from == to) else {
                        continue;
                    };
                    let add = |by: i64| {
                        [CounterOp {
                            position: 2,
                            increment: by.into(),
                            wrap: None,
                        }]
                    };
                    let whole = Term::from((from, all));
                    let empty = Term::from((to, 0));
                    let closes = random.u8(..4) == 0;
                    let part = if closes { all } else { random.i64(0..10) };
                    let (less, more) = (add(-part), add(part));
                    let pay = Step::UpdateCounter {
                        key: &to_key,
                        ops: &more,
                        default: Some(&empty),
                    };
                    let take = if closes {
                        Step::Delete(&from_key)
                    } else {
                        Step::UpdateCounter {
                            key: &from_key,
                            ops: &less,
                            default: None,
                        }
                    };
                    // A deposit may come between.
                    let otherwise = [Step::Lookup(&from_key)];
                    let done = transact(
                        table,
                        &[Condition::Equals(&whole)],
                        &[take, pay],
                        &otherwise,
                    );
                    assert!(done.is_ok(), "{done:?}");
                }
            });
        }
        scope.spawn(|| {
            let one = CounterOp {
                position: 2,
                increment: 1.into(),
                wrap: None,
            };
            let mut account = 0;
            while !is_over.load(Ordering::Relaxed) {
                let key = Term::from(account % ACCOUNTS);
                account += 1;
                match table.update_one_counter(&key, &one, None, &mut Work::new()) {
                    Ok(_) => drop(paid.fetch_add(1, Ordering::SeqCst)),
                    Err(Error::BadKey | Error::Busy) => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        });
        for _ in 0..400 {
            let least = paid.load(Ordering::SeqCst);
            let snapshot = table.snapshot().expect("in memory");
            // One deposit may be made and not noted.
            let most = paid.load(Ordering::SeqCst) + 1;
            let sum: i64 = objects(&snapshot).iter().map(amount).sum();
            let deposits = sum - 100 * ACCOUNTS;
            assert!(
                (least..=most).contains(&deposits),
                "{least} {deposits} {most}"
            );
            assert_eq!(snapshot.len(), Ok(objects(&snapshot).len()));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let sum: i64 = objects(&table).iter().map(amount).sum();
    assert_eq!(sum, 100 * ACCOUNTS + paid.load(Ordering::SeqCst));
}

fn amount(account: &Term) -> i64 {
    match account {
        Term::Tuple(parts) => match &parts[1] {
            Term::Int(value) => *value,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bank_in_a_set() {
    a_bank(TableType::Set);
}

#[test]
fn a_bank_in_an_ordered_set() {
    a_bank(TableType::OrderedSet);
}
