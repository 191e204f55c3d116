//! Tests of merges into objects: stored values, refused values, and many threads.

use crate::common::{TermTable, objects, patiently};
use ats::terms::{Error, Locking, Merge, MergedValue, Merging, TableType, TermHost, Workspace};
use ats_term::image::{Scratch, decode};
use ats_term::term::TermBuilder;
use ats_term::{Atom, Term};
use std::{iter, thread};

const SETS: [TableType; 2] = [TableType::Set, TableType::OrderedSet];

fn atom(text: &str) -> Term {
    Term::Atom(Atom::new(text).expect("a short text"))
}

fn merge_by_name(name: &str) -> Merge {
    Merge::from_term(&atom(name)).expect("the name of a merge")
}

fn with(name: &str, argument: Term) -> Merge {
    Merge::from_term(&Term::from((atom(name), argument))).expect("a merge")
}

fn term(value: MergedValue<'_, TermHost>) -> Term {
    let image = match value {
        MergedValue::Small(value) => return Term::from(value),
        MergedValue::Term(image) => image,
    };
    let mut builder = TermBuilder::new();
    let built = decode(image, &mut builder, &mut Scratch::new());
    builder.finish(built).expect("a term")
}

fn merge_in_table(
    table: &TermTable,
    key: i64,
    position: usize,
    operand: &Term,
    merge: &Merge,
    default: Option<&Term>,
) -> Result<Term, Error> {
    let merging = Merging {
        key: &Term::from(key),
        position,
        operand,
        merge,
        default,
        locking: Locking::First,
    };
    table.merge(merging, &mut Workspace::new(), term)
}

fn merge_large(table: &TermTable, key: i64, operand: &Term, merge: &Merge) -> Result<Term, Error> {
    let merging = Merging {
        key: &Term::from(key),
        position: 2,
        operand,
        merge,
        default: None,
        locking: Locking::AfterMerging,
    };
    table.merge(merging, &mut Workspace::new(), term)
}

fn numbers(numbers: impl DoubleEndedIterator<Item = i64>) -> Term {
    Term::list_with_tail(numbers.map(Term::from), Term::Nil)
}

#[test]
fn merges_return_the_new_element() {
    for (kind, compressed) in SETS.into_iter().zip([false, true]) {
        let table = TermTable::new(kind, 1).compressed(compressed);
        let list = |elements: &[i64]| {
            Term::list_with_tail(elements.iter().map(|it| Term::from(*it)), Term::Nil)
        };
        let append = merge_by_name("append");
        for (operand, expected) in [
            (&[1, 2][..], &[1, 2][..]),
            (&[3], &[1, 2, 3]),
            (&[], &[1, 2, 3]),
        ] {
            let result = merge_in_table(&table, 1, 2, &list(operand), &append, None);
            assert_eq!(result, Ok(list(expected)));
            let stored = objects(&table, &Term::from(1));
            assert_eq!(stored, [Term::from((1, list(expected)))]);
        }
        // The sum goes from counters to large integers, back, and to floats.
        for (operand, expected) in [
            (Term::from(1), Term::from(1)),
            (Term::from(1), Term::from(2)),
            (Term::from(1i64 << 61), Term::from((1i64 << 61) + 2)),
            (Term::from(-(1i64 << 61)), Term::from(2)),
            (
                Term::try_from(0.5).expect("finite"),
                Term::try_from(2.5).expect("finite"),
            ),
        ] {
            assert_eq!(
                merge_in_table(&table, 2, 2, &operand, &merge_by_name("sum"), None),
                Ok(expected.clone())
            );
            assert_eq!(objects(&table, &Term::from(2)), [Term::from((2, expected))]);
        }
        assert_eq!(table.len().unwrap(), 2);
    }
}

#[test]
fn failed_merges_change_nothing() {
    let table = TermTable::new(TableType::Set, 1);
    let (sum, one) = (merge_by_name("sum"), Term::from(1));
    let object = Term::from((1, atom("a"), 5));
    let mut work = Workspace::new();
    assert_eq!(table.insert(&object, &mut work), Ok(()));
    let default = Term::from((atom("x"), atom("y"), 10));
    let calls = [
        (1, 2, &one, None, Error::Element),
        (1, 3, &object, None, Error::Operand),
        (7, 2, &object, None, Error::Operand),
        (1, 1, &one, None, Error::KeyPosition),
        (1, 0, &one, None, Error::Position),
        (1, 4, &one, None, Error::Position),
        (7, 3, &one, None, Error::BadKey),
        (7, 2, &one, Some(&default), Error::Element),
        (7, 4, &one, Some(&default), Error::Position),
        (7, 2, &one, Some(&one), Error::NotATuple),
    ];
    for (key, position, operand, default, error) in calls {
        let result = merge_in_table(&table, key, position, operand, &sum, default);
        assert_eq!(result, Err(error), "{key} {position} {operand}");
    }
    assert_eq!(crate::common::everything(&table), [object]);
    // The counter changes in place again after a failed merge.
    for expected in 6..10 {
        assert_eq!(
            merge_in_table(&table, 1, 3, &one, &sum, None),
            Ok(Term::from(expected))
        );
        let refused = merge_in_table(&table, 1, 3, &default, &sum, None);
        assert_eq!(refused, Err(Error::Operand));
    }
    let result = merge_in_table(&table, 7, 3, &one, &sum, Some(&default));
    assert_eq!(result, Ok(Term::from(11)));
    let stored = objects(&table, &Term::from(7));
    assert_eq!(stored, [Term::from((7, atom("y"), 11))]);
    let bag = TermTable::new(TableType::Bag, 1);
    assert_eq!(
        merge_in_table(&bag, 1, 2, &one, &sum, None),
        Err(Error::TableType)
    );
}

#[test]
fn merges_before_locking_as_well() {
    for (kind, compressed) in SETS.into_iter().zip([false, true]) {
        let table = TermTable::new(kind, 1).compressed(compressed);
        let union = merge_by_name("union");
        let has = |expected: &Term| {
            let stored = objects(&table, &Term::from(1));
            assert_eq!(stored, [Term::from((1, expected.clone()))]);
        };
        // The object is missing, stays the same, and changes.
        for (operand, expected) in [(0..5_000, 0..5_000), (7..9, 0..5_000), (-9..1, -9..5_000)] {
            let expected = numbers(expected);
            let result = merge_large(&table, 1, &numbers(operand), &union);
            assert_eq!(result, Ok(expected.clone()));
            has(&expected);
        }
        let refused = merge_large(&table, 1, &numbers([2, 1].into_iter()), &union);
        assert_eq!(refused, Err(Error::Operand));
        has(&numbers(-9..5_000));
        // The object has a counter that changes in place.
        assert_eq!(
            merge_large(&table, 2, &Term::from(1), &merge_by_name("sum")),
            Ok(Term::from(1))
        );
        assert_eq!(
            merge_large(&table, 2, &Term::from(2), &merge_by_name("sum")),
            Ok(Term::from(3))
        );
        let later = merge_large(&table, 2, &numbers(iter::once(1)), &merge_by_name("max"));
        assert_eq!(later, Ok(numbers(iter::once(1))));
    }
}

/// A merge removes an object whose value counts as missing, with either time of locking, and also
/// if it has a counter that changes in place.
#[test]
fn absent_values_are_removed() {
    let prune = |name| with("prune", atom(name));
    for (kind, compressed) in SETS.into_iter().zip([false, true]) {
        let table = TermTable::new(kind, 1).compressed(compressed);
        let merged_as = [
            |table: &_, operand: &_, merge: &_| merge_in_table(table, 1, 2, operand, merge, None),
            |table: &_, operand: &_, merge: &_| merge_large(table, 1, operand, merge),
        ];
        for merged_as in merged_as {
            for (operand, expected) in [(1, 1), (1, 2), (-2, 0), (0, 0), (5, 5), (-5, 0)] {
                let result = merged_as(&table, &Term::from(operand), &prune("sum"));
                assert_eq!(result, Ok(Term::from(expected)));
                let rest: &[Term] = match expected {
                    0 => &[],
                    left => &[Term::from((1, left))],
                };
                assert_eq!(objects(&table, &Term::from(1)), rest);
                assert_eq!(table.len(), Ok(rest.len()));
            }
            let mut work = Workspace::new();
            let object = Term::from((1, 1, atom("rest")));
            assert_eq!(table.insert(&object, &mut work), Ok(()));
            assert_eq!(
                merged_as(&table, &Term::from(1), &merge_by_name("sum")),
                Ok(Term::from(2))
            );
            let gone = merged_as(&table, &Term::from(-2), &prune("sum"));
            assert_eq!(gone, Ok(Term::from(0)));
            assert_eq!(crate::common::everything(&table), []);
        }
        // The default is not inserted if the merged value counts as missing.
        let default = Term::from((9, Term::Nil, atom("x")));
        let append = prune("append");
        let result = merge_in_table(&table, 7, 2, &Term::Nil, &append, Some(&default));
        assert_eq!(result, Ok(Term::Nil));
        assert_eq!(table.len(), Ok(0));
        let result = merge_in_table(&table, 7, 2, &numbers(1..2), &append, Some(&default));
        assert_eq!(result, Ok(numbers(1..2)));
        let object = Term::from((7, numbers(1..2), atom("x")));
        assert_eq!(objects(&table, &Term::from(7)), [object]);
    }
}

/// A number is expanded to statistics even if no other value is merged with it.
#[test]
fn a_number_becomes_statistics() {
    for kind in SETS {
        let table = TermTable::new(kind, 1);
        let statistics = merge_by_name("statistics");
        for (number, expected) in [(5, (5, 5, 5, 1)), (7, (5, 7, 12, 2)), (-1, (-1, 7, 11, 3))] {
            let expected = Term::from(expected);
            let result = merge_in_table(&table, 1, 2, &Term::from(number), &statistics, None);
            assert_eq!(result, Ok(expected.clone()));
            let stored = objects(&table, &Term::from(1));
            assert_eq!(stored, [Term::from((1, expected))]);
        }
        let default = Term::from((0, 4));
        let result = merge_in_table(&table, 2, 2, &Term::from(5), &statistics, Some(&default));
        assert_eq!(result, Ok(Term::from((4, 5, 9, 2))));
    }
}

#[test]
fn no_operand_is_lost() {
    const EACH: i64 = 5_000;
    for kind in SETS {
        let table = TermTable::new(kind, 1);
        table.force_adaptation(20, 20);
        let work = |number: i64| {
            let pair = Merge::Vector(vec![merge_by_name("sum"), merge_by_name("max")]);
            let value_of = |at| at * 3 + number;
            for at in 0..EACH {
                let value = Term::from(value_of(at));
                let both = Term::from((at * 3 + number, at * 3 + number));
                patiently(|| merge_in_table(&table, 0, 2, &value, &merge_by_name("sum"), None));
                patiently(|| merge_in_table(&table, 1, 2, &value, &merge_by_name("min"), None));
                patiently(|| merge_in_table(&table, 2, 2, &value, &merge_by_name("max"), None));
                patiently(|| merge_in_table(&table, 3, 2, &both, &pair, None));
                if at % 50 == 0 {
                    patiently(|| {
                        merge_large(
                            &table,
                            4,
                            &numbers(iter::once(value_of(at))),
                            &merge_by_name("union"),
                        )
                    });
                }
            }
        };
        thread::scope(|scope| {
            (0..3).for_each(|number| drop(scope.spawn(move || work(number))));
        });
        let last = EACH * 3 - 1;
        let sum = last * (last + 1) / 2;
        let expected = [
            Term::from(sum),
            Term::from(0),
            Term::from(last),
            Term::from((sum, last)),
            numbers((0..EACH * 3).filter(|value| value / 3 % 50 == 0)),
        ];
        for (key, value) in expected.into_iter().enumerate() {
            let key = Term::from(key as i64);
            assert_eq!(objects(&table, &key), [Term::from((key, value))]);
        }
    }
}
