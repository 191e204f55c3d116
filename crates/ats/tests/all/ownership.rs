//! Tests that resources of objects are released exactly once, on every way out of a table.

use crate::common::{ALL_TYPES, TermTable, objects, soon};
use ats::terms::{CounterOp, End, Error, Integer, TableType, Workspace};
use ats_term::Term;
use ats_term::term::Bits;
use std::sync::Arc;

/// Returns a binary that is shared and not copied, and whose owners can be counted.
fn shared_binary(byte: u8) -> (Arc<[u8]>, Term) {
    let bytes: Arc<[u8]> = vec![byte; 4000].into();
    let term = Term::Bits(Bits::from_shared(Arc::clone(&bytes)));
    (bytes, term)
}

/// Runs `work` with a term that owns memory; afterwards only the test may own it.
fn check_balance(kind: TableType, work: impl Fn(&TermTable, &Term)) {
    for compressed in [false, true] {
        let (bytes, term) = shared_binary(7);
        let table = TermTable::new(kind, 1).compressed(compressed);
        work(&table, &term);
        drop(table);
        drop(term);
        let free = soon(|| Arc::strong_count(&bytes) == 1);
        assert!(free, "{} owners in a {kind:?}", Arc::strong_count(&bytes));
    }
}

fn object(key: i64, term: &Term) -> Term {
    // The text makes the object worth packing.
    let text: Vec<Term> = (65..91).map(Term::from).collect();
    Term::from((key, term.clone(), 0i64, text))
}

#[test]
fn a_dropped_table_gives_back() {
    for kind in ALL_TYPES {
        check_balance(kind, |table, term| {
            for key in 0..100 {
                let object = object(key, term);
                assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
            }
            // The binary is shared, so a hundred objects have not copied it.
            assert!(table.bytes().unwrap() < 100 * 4000);
        });
    }
}

#[test]
fn a_large_dropped_table_gives_back_in_the_background() {
    for kind in ALL_TYPES {
        check_balance(kind, |table, term| {
            for key in 0..5000 {
                let object = object(key, term);
                assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
            }
        });
    }
}

#[test]
fn a_cleared_table_gives_back_while_it_lives() {
    for kind in ALL_TYPES {
        for count in [10, 5000] {
            let (bytes, term) = shared_binary(8);
            let table = TermTable::new(kind, 1);
            for key in 0..count {
                let object = object(key, &term);
                assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
            }
            drop(term);
            table.clear().expect("memory does not fail");
            assert!(soon(|| Arc::strong_count(&bytes) == 1), "{kind:?}");
            assert_eq!(table.len().unwrap(), 0);
        }
    }
}

#[test]
fn replacing_and_removing_give_back() {
    for kind in ALL_TYPES {
        check_balance(kind, |table, term| {
            let (one, same, other) = (object(1, term), object(1, term), object(2, term));
            let with_more = Term::from((1i64, term.clone(), one.clone(), term.clone()));
            let many = [
                one.clone(),
                with_more.clone(),
                other.clone(),
                with_more.clone(),
            ];
            let key = Term::from(1);
            let mut work = Workspace::new();
            for _ in 0..3 {
                assert_eq!(table.insert(&one, &mut work), Ok(()));
                assert_eq!(table.insert_new(&same, &mut work), Ok(false));
                assert_eq!(table.insert_many(many.iter(), &mut work), Ok(()));
                assert_eq!(table.insert_many_new(many.iter(), &mut work), Ok(false));
                assert_eq!(table.delete_object(&with_more, &mut work), Ok(()));
                assert_eq!(table.delete_object(&with_more, &mut work), Ok(()));
                let guard = ats::terms::pin();
                let taken = table
                    .take(&key, &mut work, &guard)
                    .expect("nobody else is here");
                // A set is empty: the object with more elements had replaced all others, and was
                // deleted.
                assert_eq!(taken.is_some(), kind.is_bag());
                assert_eq!(objects(table, &key), []);
            }
        });
    }
}

#[test]
fn updates_give_back_also_when_they_fail() {
    for kind in [TableType::Set, TableType::OrderedSet] {
        check_balance(kind, |table, term| {
            let (key, default) = (Term::from(1), object(9, term));
            let count = |position| CounterOp {
                position,
                increment: 1.into(),
                wrap: None,
            };
            let mut work = Workspace::new();
            for _ in 0..3 {
                let done = table.update_counter(&key, &[count(3)], Some(&default), &mut work);
                assert!(done.is_ok());
                let values = [(2, &default), (2, term)];
                assert_eq!(
                    table.update_element(&key, &values, None, &mut work),
                    Ok(true)
                );
                let failed = table.update_counter(&key, &[count(3), count(2)], None, &mut work);
                assert_eq!(failed, Err(Error::NotAnInteger));
                let failed = table.update_element(&key, &[(7, term)], Some(&default), &mut work);
                assert_eq!(failed, Err(Error::Position));
            }
            assert_eq!(table.delete(&key, &mut work), Ok(()));
            let failed = table.update_element(&key, &[(7, term)], Some(&default), &mut work);
            assert_eq!(failed, Err(Error::Position));
            let done = table.update_element(&key, &[], Some(&default), &mut work);
            assert_eq!((done, table.len().unwrap()), (Ok(true), 1));
        });
    }
}

#[test]
fn objects_removed_while_fixed_are_freed_by_the_unfix() {
    let (bytes, term) = shared_binary(9);
    let table = TermTable::new(TableType::Set, 1);
    let object = object(1, &term);
    assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
    drop(term);
    table.fix();
    assert_eq!(table.delete(&Term::from(1), &mut Workspace::new()), Ok(()));
    drop(object);
    table.unfix();
    assert!(soon(|| Arc::strong_count(&bytes) == 1));
    assert_eq!(table.len().unwrap(), 0);
}

#[test]
fn a_panic_in_the_middle_of_a_list_changes_nothing() {
    for kind in ALL_TYPES {
        check_balance(kind, |table, term| {
            let objects: Vec<Term> = (0..4).map(|key| object(key, term)).collect();
            let mut work = Workspace::new();
            let list = objects
                .iter()
                .inspect(|object| assert_ne!(**object, objects[2]));
            let call = std::panic::AssertUnwindSafe(|| table.insert_many(list, &mut work));
            assert!(std::panic::catch_unwind(call).is_err());
            assert_eq!(table.len().unwrap(), 0);
            assert_eq!(table.insert_many(objects.iter(), &mut work), Ok(()));
            assert_eq!(table.len().unwrap(), 4);
        });
    }
}

/// An unfix without a fix must not affect later walks.
#[test]
fn an_unfix_without_a_fix_does_nothing() {
    let table = TermTable::new(TableType::Set, 1);
    table.unfix();
    let object = Term::from((1, 2));
    assert_eq!(table.insert(&object, &mut Workspace::new()), Ok(()));
    let empty = TermTable::new(TableType::Set, 1).bytes().unwrap();
    assert_eq!(table.delete(&Term::from(1), &mut Workspace::new()), Ok(()));
    assert_eq!(table.bytes().unwrap(), empty, "nothing is kept for a walk");
    let mut key = Vec::new();
    table.key_bytes(&Term::from(1), &mut key);
    assert_eq!(
        table.next(&key, &ats::terms::pin()).err(),
        Some(Error::BadKey)
    );
}

#[test]
fn too_large_inserts_change_nothing() {
    for kind in ALL_TYPES {
        check_balance(kind, |table, term| {
            let mut work = Workspace::new();
            let (first, second) = (object(1, term), object(2, term));
            work.limit(20);
            assert_eq!(table.insert(&first, &mut work), Err(Error::TooLarge));
            assert_eq!(table.insert_new(&first, &mut work), Err(Error::TooLarge));
            assert!(table.is_empty().unwrap());
            // Each object is within the limit, but both together are not.
            let both = [&first, &second];
            work.limit(50);
            assert_eq!(table.insert(&first, &mut work), Ok(()));
            let many = table.insert_many(both.into_iter(), &mut work);
            assert_eq!(many, Err(Error::TooLarge));
            assert_eq!(objects(table, &Term::from(2)), []);
            work.limit(usize::MAX);
            assert_eq!(table.insert_many(both.into_iter(), &mut work), Ok(()));
            assert_eq!(
                objects(table, &Term::from(2)),
                std::slice::from_ref(&second)
            );
        });
    }
}

/// Returns a workspace with this limit of words.
fn limited_workspace(words: usize) -> Workspace<ats::terms::TermHost> {
    let mut work = Workspace::new();
    work.limit(words);
    work
}

#[test]
fn too_large_objects_are_not_taken() {
    for kind in ALL_TYPES {
        check_balance(kind, |table, term| {
            let (key, there) = (Term::from(1), object(1, term));
            assert_eq!(table.insert(&there, &mut Workspace::new()), Ok(()));
            let guard = ats::terms::pin();
            let taken = table.take(&key, &mut limited_workspace(2), &guard);
            assert_eq!(taken.err(), Some(Error::TooLarge));
            for end in [End::First, End::Last] {
                let taken = table.take_end(end, &mut limited_workspace(2), &guard);
                assert_eq!(taken.err(), Some(Error::TooLarge));
            }
            assert_eq!(objects(table, &key), std::slice::from_ref(&there));
            let taken = table.take(&key, &mut Workspace::new(), &guard).unwrap();
            assert_eq!(taken.expect("it is there").to_terms(), [there]);
            assert!(table.is_empty().unwrap());
        });
    }
}

#[test]
fn too_large_updates_change_nothing() {
    let key = Term::from(1);
    let op = CounterOp {
        position: 3,
        increment: Integer::Small(1),
        wrap: None,
    };
    let ops = [op.clone(), op.clone()];
    for kind in [TableType::Set, TableType::OrderedSet] {
        check_balance(kind, |table, term| {
            let insert = |object| assert_eq!(table.insert(object, &mut Workspace::new()), Ok(()));
            let change = |values: &[(usize, &Term)], default, words| {
                table.update_element(&key, values, default, &mut limited_workspace(words))
            };
            let (small, large) = (Term::from((1, 0, 0)), object(1, term));
            let too_large = Error::TooLarge;
            // The value follows another value that owns memory.
            insert(&small);
            let values = [(2, term), (3, &large)];
            assert_eq!(change(&values, None, 20), Err(too_large));
            assert_eq!(objects(table, &key), std::slice::from_ref(&small));
            assert_eq!(change(&values[..1], None, 20), Ok(true));
            // The object exceeds the limit.
            insert(&large);
            assert_eq!(change(&[(2, &key)], None, 2), Err(too_large));
            let counted = table.update_one_counter(&key, &op, None, &mut limited_workspace(2));
            assert_eq!(counted, Err(too_large));
            let counted = table.update_counter(&key, &ops, None, &mut limited_workspace(2));
            assert_eq!(counted, Err(too_large));
            assert_eq!(objects(table, &key), std::slice::from_ref(&large));
            // The default object exceeds the limit.
            assert_eq!(table.delete(&key, &mut Workspace::new()), Ok(()));
            assert_eq!(change(&[(2, &key)], Some(&large), 2), Err(too_large));
            assert!(table.is_empty().unwrap());
            assert_eq!(change(&[(2, term)], Some(&large), usize::MAX), Ok(true));
            assert_eq!(objects(table, &key), [large]);
        });
    }
}
