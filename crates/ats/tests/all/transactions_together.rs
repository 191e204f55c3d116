//! Transactions over several tables: all of their changes are seen together, and a failure changes
//! nothing in any of them.

use ats::terms::{
    Condition, CounterOp, Error, Limits, MOST_TABLES, NotDone, Place, Step, StepResult, Table,
    TablePart, TableType, TermHost, Workspace,
};
use ats_term::Term;
use fastrand::Rng;
use std::sync::atomic::{AtomicBool, Ordering};

type TermTable = Table<TermHost>;
type Work = Workspace<TermHost>;
type Part<'a, 't> = TablePart<'a, 't, TermHost>;

/// Returns `true` for a step that is done, and for one that finds objects.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the functions that read results may fail"
)]
fn is_done(result: StepResult<'_, TermHost>) -> Result<bool, Error> {
    Ok(match result {
        StepResult::Done(done) => done,
        StepResult::Objects(found) => found.is_some(),
        StepResult::Counters(_) | StepResult::Merged(_) => true,
    })
}

fn run(parts: &[Part<'_, '_>]) -> Result<(bool, Vec<Vec<bool>>), NotDone> {
    loop {
        match Table::transact_all(parts, &mut Work::new(), is_done, || Ok(())) {
            Err(not) if not.error == Error::Busy => std::thread::yield_now(),
            done => return done,
        }
    }
}

fn insert<'a>(table: &'a TermTable, then: &'a [Step<'a, &'a Term>]) -> Part<'a, 'a> {
    TablePart {
        table,
        conditions: &[],
        then,
        otherwise: &[],
    }
}

fn number(table: &TermTable, key: &Term) -> i64 {
    let guard = ats::terms::pin();
    let found = table.lookup(key, &mut Work::new(), &guard);
    let found = found.expect("in memory").expect("the key stays");
    match &found.to_terms()[0] {
        Term::Tuple(parts) => match parts[1] {
            Term::Int(number) => number,
            ref other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// A transaction that is refused at its end, for whatever reason, leaves all tables as they were.
#[test]
fn a_failure_changes_no_table() {
    let [set, tree] = [TableType::Set, TableType::OrderedSet].map(|kind| TermTable::new(kind, 1));
    let small = TermTable::new(TableType::Set, 1).limited(Limits {
        bytes: Some(20_000),
        ..Limits::default()
    });
    let small = small.expect("in memory");
    let (key, object) = (Term::from("a"), Term::from(("a", 1)));
    let large = Term::from(("b", vec![Term::from(1); 20_000]));
    let steps = [Step::Insert(&object)];
    let fails = |parts: &[Part<'_, '_>], confirmed: Result<(), Error>| {
        let done = Table::transact_all(parts, &mut Work::new(), is_done, || confirmed);
        assert!(
            [&set, &tree, &small]
                .iter()
                .all(|table| table.is_empty() == Ok(true))
        );
        done.expect_err("it fails")
    };
    let good = || [insert(&set, &steps), insert(&tree, &steps)];

    let not = fails(&good(), Err(Error::Ended));
    assert_eq!(not, Error::Ended.into());

    let large = [Step::Insert(&object), Step::Insert(&large)];
    let [first, second] = good();
    let not = fails(&[first, second, insert(&small, &large)], Ok(()));
    let (table, place, error) = (Some(2), None, Error::Bound);
    assert_eq!(
        not,
        NotDone {
            table,
            place,
            error
        }
    );

    let values = [(2, &object)];
    let missing = Term::from("missing");
    let update = [
        Step::Insert(&object),
        Step::UpdateCounter {
            key: &missing,
            ops: &[],
            default: None,
        },
    ];
    let [first, _] = good();
    let not = fails(&[first, insert(&tree, &update)], Ok(()));
    let (table, place, error) = (Some(1), Some(Place::Then(1)), Error::BadKey);
    assert_eq!(
        not,
        NotDone {
            table,
            place,
            error
        }
    );
    assert_eq!(
        not.to_string(),
        "table 2: step 2: there is no object with this key"
    );

    let snapshot = tree.snapshot().expect("in memory");
    let [first, _] = good();
    let not = fails(&[first, insert(&snapshot, &steps)], Ok(()));
    let (table, place, error) = (Some(1), None, Error::Snapshot);
    assert_eq!(
        not,
        NotDone {
            table,
            place,
            error
        }
    );

    // Tables are cleared or given up only when the transaction has ended.
    let busy = || match (set.clear(), tree.delete_all(), tree.close()) {
        (Err(Error::Busy), Err(Error::Busy), Err(Error::Busy)) => Err(Error::Ended),
        _ => Ok(()),
    };
    let not = Table::transact_all(&good(), &mut Work::new(), is_done, busy);
    assert_eq!(not, Err(Error::Ended.into()));
    assert_eq!((set.clear(), tree.delete_all()), (Ok(0), Ok(())));

    // All keys are free.
    let update = [Step::UpdateElement {
        key: &key,
        values: &values,
        default: Some(&object),
    }];
    let done = run(&[insert(&set, &update), insert(&tree, &steps)]);
    assert_eq!(done, Ok((true, vec![vec![true], vec![true]])));
}

#[test]
fn a_table_may_have_several_parts() {
    let table = TermTable::new(TableType::Set, 1);
    let (key, object) = (Term::from("a"), Term::from(("a", 1)));
    let (put, take) = ([Step::InsertNew(&object)], [Step::Take(&key)]);
    let absent = [Condition::Absent(&key)];
    let tested = |then| TablePart {
        conditions: &absent,
        ..insert(&table, then)
    };
    // All conditions are tested before the first step.
    let done = run(&[tested(&put), tested(&put), tested(&take)]);
    assert_eq!(done, Ok((true, vec![vec![true], vec![false], vec![true]])));
    assert_eq!(table.len(), Ok(0));
    assert_eq!(run(&[]), Ok((true, vec![])));
}

#[test]
fn there_is_a_limit_of_tables() {
    let make = |_| TermTable::new(TableType::OrderedSet, 1);
    let tables: Vec<TermTable> = (0..=MOST_TABLES).map(make).collect();
    let object = Term::from(("a", 1));
    let steps = [Step::InsertNew(&object)];
    let parts: Vec<_> = tables.iter().map(|table| insert(table, &steps)).collect();
    let (table, place, error) = (Some(MOST_TABLES), None, Error::TooManyTables);
    assert_eq!(
        run(&parts),
        Err(NotDone {
            table,
            place,
            error
        })
    );
    let done = run(&parts[1..]);
    assert_eq!(done, Ok((true, vec![vec![true]; MOST_TABLES])));
    let sizes = tables.iter().map(|table| table.len().expect("in memory"));
    assert_eq!(sizes.sum::<usize>(), MOST_TABLES);
}

/// Threads count in all tables at once, and others look at them one after the other, in any order:
/// by a look-up, or in a snapshot. No number is smaller than one seen before.
#[test]
fn what_is_seen_in_one_table_is_seen_in_all() {
    let types = [TableType::Set, TableType::OrderedSet, TableType::Set];
    let tables = types.map(|table_type| TermTable::new(table_type, 1));
    let [first, last] = ["a", "z"].map(Term::from);
    for table in &tables {
        table.force_adaptation(5, 5);
        for key in [&first, &last] {
            let object = Term::from((key.clone(), 0));
            table.insert(&object, &mut Work::new()).expect("in memory");
        }
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for turn in 0..2 {
            let (tables, is_over, first, last) = (&tables, &is_over, &first, &last);
            scope.spawn(move || {
                let one = [CounterOp {
                    position: 2,
                    increment: 1.into(),
                    wrap: None,
                }];
                let steps = [first, last].map(|key| Step::UpdateCounter {
                    key,
                    ops: &one,
                    default: None,
                });
                while !is_over.load(Ordering::Relaxed) {
                    let mut parts: Vec<_> =
                        tables.iter().map(|table| insert(table, &steps)).collect();
                    parts.rotate_left(turn);
                    assert_eq!(run(&parts), Ok((true, vec![vec![true, true]; 3])));
                }
            });
        }
        let mut random = Rng::with_seed(1);
        let mut seen = 0;
        for _ in 0..4000 {
            let table = &tables[random.usize(..3)];
            let key = if random.bool() { &first } else { &last };
            let now = if random.u8(..4) == 0 {
                let snapshot = table.snapshot().expect("in memory");
                let now = number(&snapshot, key);
                assert_eq!([&first, &last].map(|key| number(&snapshot, key)), [now; 2]);
                now
            } else {
                number(table, key)
            };
            assert!(now >= seen, "{now} {seen}");
            seen = now;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let all = tables
        .each_ref()
        .map(|table| [&first, &last].map(|key| number(table, key)));
    assert_eq!(all, [[all[0][0]; 2]; 3]);
}
