//! Tests that the garbage of an operation is freed soon, without a call for that.

use crate::common::{ALL_TYPES, TermTable, objects, soon};
use ats::terms::{CounterOp, Error, Integer, Locking, Merge, Merging, TableType, Workspace};
use ats_term::term::Bits;
use ats_term::{Atom, Term};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Returns a binary that is shared and not copied, and whose owners can be counted.
fn shared_binary(bytes: usize) -> (Arc<[u8]>, Term) {
    let bytes: Arc<[u8]> = vec![7; bytes].into();
    let term = Term::Bits(Bits::from_shared(Arc::clone(&bytes)));
    (bytes, term)
}

/// Retires objects that refer to large binaries. No other thread works on tables, and no call asks
/// for them to be freed.
#[test]
fn objects_retired_by_idle_threads_are_freed() {
    for kind in ALL_TYPES {
        let table = TermTable::new(kind, 1);
        let all: Vec<(Arc<[u8]>, Term)> = (0..50).map(|_| shared_binary(100_000)).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                for (key, (_, term)) in (0_i64..).zip(&all) {
                    let object = Term::from((key, term.clone()));
                    assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
                }
                for key in 0..50_i64 {
                    assert_eq!(
                        table.delete(&Term::from(key), &mut Workspace::new()),
                        Ok(())
                    );
                }
            });
        });
        let bytes: Vec<Arc<[u8]>> = all.into_iter().map(|(bytes, _)| bytes).collect();
        assert!(
            soon(|| bytes.iter().all(|bytes| Arc::strong_count(bytes) == 1)),
            "{kind:?}"
        );
    }
}

/// Only a few large objects wait to be freed at a time, while one thread retires many.
#[test]
fn retired_objects_count_with_their_binaries() {
    let table = TermTable::new(TableType::Set, 1);
    let mut all: Vec<Arc<[u8]>> = Vec::new();
    let mut most = 0;
    for _ in 0..400 {
        let (bytes, term) = shared_binary(1 << 20);
        all.push(bytes);
        let object = Term::from((1_i64, term));
        assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
        all.retain(|bytes| Arc::strong_count(bytes) > 1);
        most = most.max(all.len());
    }
    // Threads of other tests are pinned now and then, but not all the time.
    assert!(most < 200, "{most} of 400 MB were kept");
}

/// An operation releases all objects that it has built and not stored.
#[test]
fn workspaces_keep_nothing() {
    let key = Term::from(1_i64);
    for compressed in [false, true] {
        for kind in ALL_TYPES {
            let table = TermTable::new(kind, 1).compressed(compressed);
            let (bytes, term) = shared_binary(100_000);
            let object = Term::from((1_i64, term.clone(), 2_i64));
            let with_key = Term::from((term.clone(), 1_i64));
            let large: Vec<Term> = (0_i64..100).map(Term::from).collect();
            let large = Term::from((1_i64, term.clone(), large));
            let small = Term::from((1_i64, 2_i64, 3_i64));
            let absent = Term::from(2_i64);
            let mut work = Workspace::new();
            let free = |what: &str| {
                // The test owns the bytes, the term, and three objects that contain the term.
                let owners = Arc::strong_count(&bytes);
                assert_eq!(owners, 5, "{what}, {kind:?}, compressed: {compressed}");
            };
            assert_eq!(table.insert(&small, &mut work), Ok(()));
            assert_eq!(table.insert_new(&object, &mut work), Ok(false));
            free("insert_new");
            assert_eq!(table.delete_object(&object, &mut work), Ok(()));
            assert_eq!(table.delete_object(&with_key, &mut work), Ok(()));
            free("delete_object");
            let list = [&object, &object];
            assert_eq!(
                table.insert_many_new(list.into_iter(), &mut work),
                Ok(false)
            );
            free("insert_many_new");
            let no_objects = [&object, &key];
            assert!(
                table
                    .insert_many(no_objects.into_iter(), &mut work)
                    .is_err()
            );
            free("insert_many");
            work.limit(10);
            assert_eq!(table.insert(&large, &mut work), Err(Error::TooLarge));
            work.limit(usize::MAX);
            free("insert that is too large");
            let _ = table.update_element(&key, &[(2, &term), (9, &term)], None, &mut work);
            free("update_element");
            let op = CounterOp {
                position: 2,
                increment: Integer::from(1),
                wrap: None,
            };
            let _ = table.update_counter(&absent, &[op], Some(&object), &mut work);
            free("update_counter");
            let sum = Merge::from_term(&Term::Atom(Atom::new("sum").unwrap())).unwrap();
            let merging = Merging {
                key: &key,
                position: 2,
                operand: &term,
                merge: &sum,
                default: None,
                locking: Locking::First,
            };
            assert!(table.merge(merging, &mut work, |_| ()).is_err());
            free("merge");
            assert_eq!(objects(&table, &key), std::slice::from_ref(&small));
        }
    }
}

/// Returns the number of grace periods that end while another thread does `work`. Only one such
/// thread runs at a time.
fn graces_during(work: impl FnOnce() + Send) -> usize {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let works = &AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            work();
            works.store(false, Ordering::Relaxed);
        });
        let mut graces = 0;
        while works.load(Ordering::Relaxed) {
            let grace = ats::terms::pin().grace();
            while !grace.is_over() && works.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            graces += 1;
        }
        graces
    })
}

/// Returns the most grace periods in one of a few attempts, and stops at more than `enough`. Other
/// programs may keep the counting thread from running.
fn most_graces(enough: usize, work: impl Fn() + Sync) -> usize {
    let mut most = 0;
    for _ in 0..5 {
        most = most.max(graces_during(&work));
        if most > enough {
            break;
        }
    }
    most
}

const LARGE: i64 = 1 << 19;

fn large() -> Term {
    (0..LARGE).map(Term::from).collect::<Vec<_>>().into()
}

/// A thread that builds a large object is not pinned meanwhile, so the epoch advances.
#[test]
fn making_a_large_object_lets_the_epoch_advance() {
    let object = Term::from((1_i64, large()));
    for (at, kind) in ALL_TYPES.into_iter().enumerate() {
        let table = TermTable::new(kind, 1).compressed(at % 2 == 1);
        let graces = most_graces(40, || {
            let mut work = Workspace::new();
            // A thread that is always pinned would allow at most one grace period for each
            // operation.
            for _ in 0..8 {
                assert_eq!(table.insert(&object, &mut work), Ok(()));
                assert_eq!(table.delete_object(&object, &mut work), Ok(()));
            }
        });
        assert!(graces > 40, "{graces} graces, {kind:?}");
    }
}

/// A thread that puts a large value into an object is not pinned meanwhile, so the epoch advances.
#[test]
fn changing_to_a_large_value_lets_the_epoch_advance() {
    let (key, one, large) = (Term::from(1_i64), Term::from(1_i64), large());
    let default = Term::from((1_i64, large.clone()));
    let append = Term::Atom(Atom::new("append").expect("an atom"));
    let append = Merge::from_term(&append).expect("a merge");
    for kind in [TableType::Set, TableType::OrderedSet] {
        let table = TermTable::new(kind, 1);
        let mut work = Workspace::new();
        let small = Term::from((1_i64, 1_i64));
        assert_eq!(table.insert(&small, &mut work), Ok(()));
        let graces = most_graces(40, || {
            let mut work = Workspace::new();
            for _ in 0..8 {
                let changed = table.update_element(&key, &[(2, &large)], None, &mut work);
                assert_eq!(changed, Ok(true));
                assert_eq!(table.delete(&key, &mut work), Ok(()));
                let values = [(2, &one)];
                let changed = table.update_element(&key, &values, Some(&default), &mut work);
                assert_eq!(changed, Ok(true));
            }
        });
        assert!(graces > 40, "{graces} graces, {kind:?}");
        assert_eq!(table.delete(&key, &mut work), Ok(()));
        let graces = most_graces(32, || {
            let mut work = Workspace::new();
            for _ in 0..8 {
                let merging = Merging {
                    key: &key,
                    position: 2,
                    operand: &large,
                    merge: &append,
                    default: None,
                    locking: Locking::AfterMerging,
                };
                assert_eq!(table.merge(merging, &mut work, |_| ()), Ok(()));
                assert_eq!(table.delete(&key, &mut work), Ok(()));
            }
        });
        assert!(graces > 32, "{graces} graces, {kind:?}");
    }
}
