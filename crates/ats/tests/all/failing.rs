//! Tests of tables on a store that cannot read or write: every operation fails, and changes
//! nothing.

use crate::common::{ALL_TYPES, TermTable, everything, on_store};
use ats::terms::select::{Changed, Cursor, Progress, Query, Runner, Selection, Slice};
use ats::terms::{
    BTreeStore, CounterOp, Direction, End, Error, Integer, KeyRange, Locking, Merge, Merging,
    Store, TableReadPoint, TableType, TermHost, Workspace,
};
use ats_match::{Environment, FunctionSet, Program, Words, parse};
use ats_store::store::{DecideEnd, Visit};
use ats_store::{BatchPlan, MayBlock};
use ats_term::image::atom_word;
use ats_term::term::Bits;
use ats_term::{Atom, Term, Zeros};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const FAILED: ats_store::Error = ats_store::Error::Io(ats_store::SystemError {
    kind: ErrorKind::StorageFull,
    code: None,
});

/// A store that refuses some calls.
struct Failing {
    records: Arc<BTreeStore>,
    calls: Arc<AtomicUsize>,
    /// The number of the call that fails.
    fails_at: usize,
    most_bytes: usize,
    /// The keys whose values must be merged before they can be read.
    unmerged: Arc<Mutex<BTreeSet<Vec<u8>>>>,
}

impl Failing {
    /// Returns a store that refuses no call.
    fn healthy() -> Self {
        Failing {
            records: Arc::default(),
            calls: Arc::default(),
            fails_at: usize::MAX,
            most_bytes: usize::MAX,
            unmerged: Arc::default(),
        }
    }

    fn check(&self, key: &[u8]) -> Result<(), ats_store::Error> {
        if self.unmerged.lock().expect("no panic").contains(key) {
            Err(ats_store::Error::Pending)
        } else {
            Ok(())
        }
    }

    fn call(&self) -> Result<(), ats_store::Error> {
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.fails_at {
            Err(FAILED)
        } else {
            Ok(())
        }
    }
}

impl Store for Failing {
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, ats_store::Error> {
        self.call()?;
        self.check(key)?;
        self.records.get(may_block, key, read)
    }

    fn update(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, ats_store::Error> {
        self.call()?;
        self.records.update(may_block, keys, plan)
    }

    fn update_end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), ats_store::Error> {
        self.call()?;
        self.records.update_end(may_block, end, decide)
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), ats_store::Error> {
        self.call()?;
        let mut checked = Ok(());
        self.records
            .scan(may_block, key_range, direction, &mut |key, value| {
                checked = self.check(key);
                match checked {
                    Ok(()) => visit(key, value),
                    Err(_) => ControlFlow::Break(()),
                }
            })?;
        checked
    }

    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, ats_store::Error> {
        self.records.len(may_block)
    }

    fn sum(
        &self,
        may_block: Option<MayBlock>,
        weigh: &dyn Fn(&[u8]) -> usize,
    ) -> Result<usize, ats_store::Error> {
        self.records.sum(may_block, weigh)
    }

    fn bytes(&self) -> usize {
        self.records.bytes()
    }

    fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    fn take_all(&self, may_block: Option<MayBlock>) -> Result<Box<dyn Store>, ats_store::Error> {
        self.call()?;
        self.records.take_all(may_block)
    }
}

const ZEROS: Zeros = Zeros::Distinct;

/// Returns a table with three keys, and the counter of its store's calls.
fn fill_table(kind: TableType, fails_at: usize) -> (TermTable, Arc<AtomicUsize>) {
    let store = Failing::healthy();
    let (records, calls) = (Arc::clone(&store.records), Arc::clone(&store.calls));
    let healthy = on_store(store, kind, 1);
    for key in 1..4_i64 {
        let object = Term::from((key, key));
        assert_eq!(healthy.insert(&object, &mut Workspace::new()), Ok(()));
    }
    calls.store(0, Ordering::Relaxed);
    let store = Failing {
        records,
        calls: Arc::clone(&calls),
        fails_at,
        ..Failing::healthy()
    };
    (on_store(store, kind, 1), calls)
}

struct Nowhere;

// SAFETY: the words are atoms of the host of terms.
unsafe impl Environment for Nowhere {
    fn self_word(&self) -> Option<u64> {
        None
    }

    fn node_word(&self) -> u64 {
        word("nowhere")
    }

    fn atom_word(&self, text: &str) -> Option<u64> {
        Some(word(text))
    }
}

fn word(text: &str) -> u64 {
    atom_word(Atom::new(text).expect("a short text").id())
}

/// Returns a query for all objects, as `[{'_', [], [true]}]`.
pub(crate) fn query_for_all(table: &TermTable) -> Query<TermHost> {
    let atom = |text| Term::Atom(Atom::new(text).expect("a short text"));
    let body: Term = vec![atom("true")].into();
    let clause = Term::from((atom("_"), Term::Nil, body));
    let options = ats_match::Options {
        zeros: ZEROS,
        functions: FunctionSet::ALL,
        whole_bytes: true,
        // SAFETY: the words are atoms of the host of terms.
        words: unsafe { Words::new(word("true"), word("false"), word("EXIT")) },
    };
    let spec = parse(&vec![clause].into(), &options).expect("a specification");
    Query::new(Arc::new(Program::new(spec)), table)
}

/// Passes the results of a query to a closure, until it ends the slice, or the slice ends.
pub(crate) fn select_a_slice(
    table: &TermTable,
    query: &Query<TermHost>,
    cursor: &mut Cursor,
    read_point: Option<&TableReadPoint<TermHost>>,
    mut each: impl FnMut() -> ControlFlow<()>,
) -> Result<Progress, Error> {
    let mut selection = Selection {
        query,
        cursor,
        runner: &mut Runner::new(ZEROS),
        environment: &Nowhere,
        slice: &Slice::new(),
        guard: &ats::terms::pin(),
        read_point,
    };
    table.select(&mut selection, &mut |_| each())
}

/// Deletes the objects of a query, until a slice ends.
fn delete_a_slice(
    table: &TermTable,
    query: &Query<TermHost>,
    cursor: &mut Cursor,
) -> Result<Changed, Error> {
    table.select_delete(&mut Selection {
        query,
        cursor,
        runner: &mut Runner::new(ZEROS),
        environment: &Nowhere,
        slice: &Slice::new(),
        guard: &ats::terms::pin(),
        read_point: None,
    })
}

/// A function that uses a table, of whose store one call may fail.
type Operation = fn(&TermTable) -> Result<(), Error>;

/// The operations, each with its name, and `true` if bags have it.
const OPERATIONS: [(&str, bool, Operation); 22] = [
    ("insert", true, |table| {
        table.insert(&Term::from((9, 9)), &mut Workspace::new())
    }),
    ("insert_new", true, |table| {
        let large = Term::binary(&[7; 20_000]);
        let object = Term::from((9, large));
        table.insert_new(&object, &mut Workspace::new()).map(drop)
    }),
    ("insert_many", true, |table| {
        let objects = [(1, 8), (9, 9)].map(Term::from);
        table.insert_many(objects.iter(), &mut Workspace::new())
    }),
    ("insert_many_new", true, |table| {
        let objects = [(8, 8), (9, 9)].map(Term::from);
        let done = table.insert_many_new(objects.iter(), &mut Workspace::new());
        done.map(drop)
    }),
    ("lookup", true, |table| {
        let guard = ats::terms::pin();
        let found = table.lookup(&Term::from(1), &mut Workspace::new(), &guard);
        found.map(|found| assert!(found.is_some()))
    }),
    ("lookup_within", true, |table| {
        let guard = ats::terms::pin();
        let found = table.lookup_within(&Term::from(1), &mut Workspace::new(), &guard);
        found.map(|found| assert!(found.is_some()))
    }),
    ("delete", true, |table| {
        table.delete(&Term::from(1), &mut Workspace::new())
    }),
    ("take", true, |table| {
        let guard = ats::terms::pin();
        let taken = table.take(&Term::from(1), &mut Workspace::new(), &guard);
        taken.map(|taken| assert!(taken.is_some()))
    }),
    ("take_end", true, |table| {
        let guard = ats::terms::pin();
        let taken = table.take_end(
            End::Last,
            &mut Workspace::<ats::terms::TermHost>::new(),
            &guard,
        );
        taken.map(|taken| assert!(taken.is_some()))
    }),
    ("delete_object", true, |table| {
        table.delete_object(&Term::from((1, 1)), &mut Workspace::new())
    }),
    ("update_element", false, |table| {
        let (key, value) = (Term::from(1), Term::from(7));
        let done = table.update_element(&key, &[(2, &value)], None, &mut Workspace::new());
        done.map(drop)
    }),
    ("update_counter", false, |table| {
        let op = CounterOp {
            position: 2,
            increment: Integer::from(1),
            wrap: None,
        };
        let key = Term::from(1);
        let done = table.update_counter(&key, &[op], None, &mut Workspace::new());
        done.map(drop)
    }),
    ("merge", false, |table| {
        let sum = Term::Atom(Atom::new("sum").expect("a short text"));
        let merging = Merging {
            key: &Term::from(1),
            position: 2,
            operand: &Term::from(5),
            merge: &Merge::from_term(&sum).expect("the name of a merge"),
            default: None,
            locking: Locking::AfterMerging,
        };
        table.merge(merging, &mut Workspace::new(), |_| ())
    }),
    ("first", true, |table| {
        let guard = ats::terms::pin();
        table.first(&guard).map(|found| assert!(found.is_some()))
    }),
    ("last", true, |table| {
        let guard = ats::terms::pin();
        table.last(&guard).map(|found| assert!(found.is_some()))
    }),
    ("next and prev", true, |table| {
        let guard = ats::terms::pin();
        let mut key = Vec::new();
        table.key_bytes(&Term::from(2), &mut key);
        table
            .next(&key, &guard)
            .map(|found| assert!(found.is_some()))?;
        table
            .prev(&key, &guard)
            .map(|found| assert!(found.is_some()))
    }),
    ("scan", true, |table| {
        let mut keys = 0;
        table.scan(None, &ats::terms::pin(), &mut |_| {
            keys += 1;
            ControlFlow::Continue(())
        })?;
        assert_eq!(keys, 3);
        Ok(())
    }),
    ("slot", true, |table| {
        table.slot(1, &ats::terms::pin(), &mut |_| {}).map(drop)
    }),
    ("select", true, |table| {
        let (query, mut cursor) = (query_for_all(table), Cursor::new(Direction::Up));
        let mut objects = 0;
        let progress = select_a_slice(table, &query, &mut cursor, None, || {
            objects += 1;
            ControlFlow::Continue(())
        })?;
        assert_eq!((progress, objects), (Progress::Done, 3));
        Ok(())
    }),
    ("select_delete", true, |table| {
        let (query, mut cursor) = (query_for_all(table), Cursor::new(Direction::Up));
        let (mut deleted, mut progress) = (0, Progress::More);
        while progress == Progress::More {
            let changed = delete_a_slice(table, &query, &mut cursor)?;
            deleted += changed.objects;
            progress = changed.progress;
            assert_eq!(table.len().unwrap(), 3 - deleted);
        }
        Ok(())
    }),
    ("clear", true, |table| table.clear().map(drop)),
    ("take_all", true, |table| table.take_all().map(drop)),
];

#[test]
fn a_store_that_fails_fails_operations_and_loses_nothing() {
    for kind in ALL_TYPES {
        for (name, has_bag, operation) in OPERATIONS {
            if kind.is_bag() && !has_bag {
                continue;
            }
            let mut failures = 0;
            loop {
                let (table, calls) = fill_table(kind, failures);
                let done = operation(&table);
                if calls.load(Ordering::Relaxed) <= failures {
                    assert_eq!(done, Ok(()), "{name}, {kind:?}");
                    break;
                }
                failures += 1;
                if name == "select_delete" && done.is_ok() {
                    // The slice ended before the call that fails, and the next slice has deleted
                    // the rest.
                    assert!(table.is_empty().unwrap());
                    continue;
                }
                assert_eq!(done, Err(Error::Storage(FAILED)), "{name}, {kind:?}");
                let expected = [(1_i64, 1_i64), (2, 2), (3, 3)].map(Term::from);
                let mut left = everything(&table);
                left.sort_by(Term::compare);
                assert_eq!(left, expected, "{name}, {kind:?}");
            }
            assert!(failures > 0, "{name} does not use the store");
        }
        let (table, _) = fill_table(kind, 0);
        let counted = table.count(KeyRange::default());
        let expected = if kind.is_ordered() {
            Error::Storage(FAILED)
        } else {
            Error::TableType
        };
        assert_eq!(counted, Err(expected));
    }
}

/// A slice reports the objects that it has deleted before a call of the store fails, even late in
/// the slice.
#[test]
fn a_failed_slice_reports_its_deletions() {
    const KEYS: usize = 100;
    for kind in ALL_TYPES {
        let mut fails_at = 0;
        loop {
            let (table, calls) = fill_table(kind, usize::MAX);
            let more: Vec<_> = (4..=KEYS as i64)
                .map(|key| Term::from((key, key)))
                .collect();
            let inserted = table.insert_many(more.iter(), &mut Workspace::new());
            assert_eq!(inserted, Ok(()));
            // The counter starts just below the number of the call that fails.
            calls.store(usize::MAX - fails_at, Ordering::Relaxed);
            let (query, mut cursor) = (query_for_all(&table), Cursor::new(Direction::Up));
            let (mut deleted, mut failed) = (0, false);
            loop {
                let before = cursor.clone();
                let changed = delete_a_slice(&table, &query, &mut cursor);
                match changed {
                    Ok(changed) => deleted += changed.objects,
                    Err(error) => {
                        assert_eq!(error, Error::Storage(FAILED));
                        (cursor, failed) = (before, true);
                    }
                }
                assert_eq!(table.len().unwrap(), KEYS - deleted, "{kind:?}, {fails_at}");
                if changed.is_ok_and(|changed| changed.progress == Progress::Done) {
                    break;
                }
            }
            assert_eq!(deleted, KEYS);
            let is_over = calls.load(Ordering::Relaxed) > usize::MAX / 2;
            assert!(!(is_over && failed));
            if is_over {
                break;
            }
            fails_at += 1;
        }
        assert!(fails_at > KEYS);
    }
}

/// Bytes that no table has written cause an error, and no panic.
#[test]
fn bytes_that_are_no_object_are_an_error() {
    let list = [6, 0, 0, 0, 131, 108, 0, 0, 0, 1];
    for value in [
        &[][..],
        &[1],
        &[9, 0, 0, 0, 131],
        &[0, 0, 0, 0],
        &[2, 0, 0, 0, 131, 106],
        &list,
    ] {
        for kind in ALL_TYPES {
            let store = BTreeStore::new();
            let mut bytes = Vec::new();
            TermTable::new(kind, 1).key_bytes(&Term::from(1), &mut bytes);
            let mut plan = |_: usize, _: Option<&[u8]>| ats_store::Change::Put(value.to_vec());
            assert_eq!(
                store.update(Some(MayBlock::here()), &[&bytes], &mut plan),
                Ok(true)
            );
            let table = on_store(store, kind, 1);
            let mut work = Workspace::new();
            let corrupt = Error::Storage(ats_store::Error::Corrupt);
            let key = Term::from(1);
            let guard = ats::terms::pin();
            let found = table.lookup(&key, &mut work, &guard);
            assert_eq!(found.map(|_| ()), Err(corrupt), "{value:?}");
            let taken = table.take(&key, &mut work, &guard);
            assert_eq!(taken.map(|_| ()), Err(corrupt));
            let first = table.first(&guard);
            assert_eq!(first.map(|_| ()), Err(corrupt));
            let end = table.take_end(End::First, &mut work, &guard);
            assert_eq!(end.map(|_| ()), Err(corrupt));
            if !kind.is_bag() {
                assert_eq!(table.len().unwrap(), 1);
            }
        }
    }
}

#[test]
fn objects_that_are_longer_than_the_store_can_keep_are_refused() {
    let long = Term::Bits(Bits::from_shared(Arc::from(vec![7; 10_000])));
    let store = Failing {
        most_bytes: 25_000,
        ..Failing::healthy()
    };
    let table = on_store(store, TableType::Bag, 1);
    let insert = |number: i64| {
        let object = Term::from((1_i64, number, long.clone()));
        table.insert(&object, &mut Workspace::new())
    };
    assert_eq!((insert(1), insert(2)), (Ok(()), Ok(())));
    let refused = insert(3);
    let is_too_long = matches!(
        refused,
        Err(Error::Storage(ats_store::Error::TooLong {
            len: 30_000..,
            limit: 25_000
        }))
    );
    assert!(is_too_long, "{refused:?}");
    assert_eq!(everything(&table).len(), 2);
}

/// A query that stops at pending keys and continues after their merge returns the same objects as a
/// query that meets no pending key.
#[test]
fn a_query_goes_on_behind_keys_that_were_to_be_merged() {
    const OBJECTS: i64 = 20;
    for kind in [TableType::Set, TableType::OrderedSet] {
        for (direction, share) in [Direction::Up, Direction::Down]
            .into_iter()
            .flat_map(|direction| [(direction, 1), (direction, 3)])
        {
            let store = Failing::healthy();
            let keys = Arc::clone(&store.unmerged);
            let table = on_store(store, kind, 1);
            let mut to_merge = Vec::new();
            for key in 0..OBJECTS {
                let object = Term::from((key, key));
                assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
                if key % share == 0 {
                    let mut bytes = Vec::new();
                    table.key_bytes(&Term::from(key), &mut bytes);
                    to_merge.push(bytes);
                }
            }
            let count = to_merge.len();
            keys.lock().expect("no panic").extend(to_merge);
            let query = query_for_all(&table);
            let mut cursor = Cursor::new(direction);
            let (mut objects, mut stops) = (0, 0);
            loop {
                let mut selection = Selection {
                    query: &query,
                    cursor: &mut cursor,
                    runner: &mut Runner::new(ZEROS),
                    environment: &Nowhere,
                    slice: &Slice::new(),
                    guard: &ats::terms::pin(),
                    read_point: None,
                };
                let progress = table.select(&mut selection, &mut |_| {
                    objects += 1;
                    ControlFlow::Continue(())
                });
                match progress.expect("the store does not fail") {
                    Progress::Done => break,
                    Progress::More => {}
                    Progress::Pending => {
                        stops += 1;
                        let mut keys = keys.lock().expect("no panic");
                        let _merged = if direction == Direction::Down && kind.is_ordered() {
                            keys.pop_last()
                        } else {
                            keys.pop_first()
                        };
                    }
                }
            }
            assert_eq!(
                (objects, stops),
                (OBJECTS, count),
                "{kind:?}, {direction:?}, {share}"
            );
        }
    }
}
