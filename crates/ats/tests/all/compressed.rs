//! Tests of the memory that compressed tables save. The tests of other tables cover their
//! behaviour.

use crate::common::{ALL_TYPES, TermTable, everything, objects};
use ats::terms::{CounterOp, Integer, Workspace};
use ats_term::Term;

const KEYS: i64 = 1000;

fn text(len: i64) -> Term {
    let characters: Vec<Term> = (0..len).map(|at| Term::from(97 + at % 26)).collect();
    Term::from(characters)
}

fn object(key: i64) -> Term {
    Term::from((key, 0, text(40)))
}

/// Returns the bytes of memory for each of `objects` inserted objects.
fn bytes_for_each(table: &TermTable, objects: usize) -> usize {
    let empty = TermTable::new(table.table_type(), 1).bytes().unwrap();
    (table.bytes().unwrap() - empty) / objects
}

#[test]
fn text_takes_less_memory() {
    for kind in ALL_TYPES {
        let [plain, packed] = [false, true].map(|compressed| {
            let table = TermTable::new(kind, 1).compressed(compressed);
            assert_eq!(table.is_compressed(), compressed);
            for key in 0..KEYS {
                assert_eq!(table.insert(&object(key), &mut Workspace::new()), Ok(()));
            }
            table
        });
        let bytes = [&plain, &packed].map(|table| bytes_for_each(table, KEYS as usize));
        assert!(bytes[0] > 45 * 8 && bytes[1] < 20 * 8, "{kind:?} {bytes:?}");
        let mut contents = [&plain, &packed].map(everything);
        for content in &mut contents {
            content.sort_by(Term::compare);
        }
        assert_eq!(contents[0], contents[1]);
    }
}

#[test]
fn bags_pack_each_object() {
    for kind in ALL_TYPES.into_iter().filter(|kind| kind.is_bag()) {
        let table = TermTable::new(kind, 1).compressed(true);
        let of_key = |key: i64| (0..20).map(move |at| Term::from((key, at, text(40))));
        for key in 0..100 {
            let all: Vec<Term> = of_key(key).collect();
            let (some, others) = all.split_at(10);
            assert_eq!(
                table.insert_many(some.iter(), &mut Workspace::new()),
                Ok(())
            );
            for other in others {
                assert_eq!(table.insert(other, &mut Workspace::new()), Ok(()));
            }
            assert_eq!(table.delete_object(&all[3], &mut Workspace::new()), Ok(()));
            assert_eq!(table.insert(&all[3], &mut Workspace::new()), Ok(()));
        }
        assert!(
            bytes_for_each(&table, 2000) < 15 * 8,
            "{}",
            table.bytes().unwrap()
        );
        let mut expected: Vec<Term> = of_key(7).collect();
        let moved = expected.remove(3);
        expected.push(moved);
        assert_eq!(objects(&table, &Term::from(7)), expected);
    }
}

#[test]
fn objects_are_packed_again_after_counting() {
    for kind in ALL_TYPES.into_iter().filter(|kind| !kind.is_bag()) {
        let table = TermTable::new(kind, 1).compressed(true);
        let count = CounterOp {
            position: 2,
            increment: Integer::from(1),
            wrap: None,
        };
        for key in 0..KEYS {
            assert_eq!(table.insert(&object(key), &mut Workspace::new()), Ok(()));
        }
        let packed = table.bytes().unwrap();
        for key in (0..KEYS).map(Term::from) {
            for value in 1..4 {
                let counted = table.update_one_counter(&key, &count, None, &mut Workspace::new());
                assert_eq!(counted, Ok(Integer::from(value)));
            }
            let expected = Term::from((key.clone(), 3, text(40)));
            assert_eq!(objects(&table, &key), [expected]);
        }
        for key in (0..KEYS).map(Term::from) {
            let zero = Term::from(0);
            let replaced = table.update_element(&key, &[(2, &zero)], None, &mut Workspace::new());
            assert_eq!(replaced, Ok(true));
        }
        assert_eq!(everything(&table).len(), KEYS as usize);
        assert_eq!(table.bytes().unwrap(), packed);
    }
}
