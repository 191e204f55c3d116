//! Tests of ranks in ordered tables. Objects are counted, even if a key has several.

use crate::common::{ALL_TYPES, TermTable, everything, patiently, portable};
use ats::terms::Direction::{Down, Up};
use ats::terms::{Error, KeyRange, LookupResult, TableType, UnpackBuffer, Workspace};
use ats_term::Term;
use ats_term::image::{Scratch, decode_object};
use ats_term::term::TermBuilder;
use fastrand::Rng;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of keys, which is too large for one leaf.
const KEYS: i64 = 2_000;

fn ordered_types() -> impl Iterator<Item = TableType> {
    ALL_TYPES.into_iter().filter(|kind| kind.is_ordered())
}

fn key_of(object: &Term) -> i64 {
    let key = object.as_tuple().and_then(|object| object[0].as_int());
    key.expect("an integer")
}

fn bytes_of(table: &TermTable, key: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.key_bytes(&Term::from(key), &mut bytes);
    bytes
}

fn term(
    (found, before): (LookupResult<'_, ats::terms::TermHost>, usize),
    direction: ats::terms::Direction,
) -> Term {
    let (mut room, mut builder) = (UnpackBuffer::new(), TermBuilder::new());
    let object = found.nth(before, direction, &mut room);
    let built = decode_object(object, &mut builder, &mut Scratch::new());
    builder.finish(built).expect("a term")
}

/// Compares counts and ranks in the range between two keys with the results of a walk.
fn check(table: &TermTable, low: i64, high: i64, ranks: impl Iterator<Item = usize>) {
    let (low_bytes, high_bytes) = (bytes_of(table, low), bytes_of(table, high));
    let range = KeyRange {
        low: Some(&low_bytes),
        high: Some(&high_bytes),
    };
    let mut inside = everything(table);
    inside.retain(|object| (low..high).contains(&key_of(object)));
    assert_eq!(table.count(range), Ok(inside.len()));
    for rank in ranks {
        let guard = ats::terms::pin();
        for direction in [Up, Down] {
            let at = table.nth(range, direction, rank, &guard).expect("there");
            let expected = match direction {
                Up => inside.get(rank),
                Down => inside.iter().nth_back(rank),
            };
            assert_eq!(at.map(|at| term(at, direction)).as_ref(), expected);
        }
    }
}

fn write(table: &TermTable, numbers: &mut Rng) {
    let mut work = Workspace::new();
    let (key, number) = (numbers.i64(..KEYS), numbers.i64(..6));
    let object = Term::from((key, number));
    let some = |count: i64, numbers: &mut Rng| {
        let pair = |_| Term::from((numbers.i64(..KEYS), numbers.i64(..400)));
        (0..count).map(pair).collect::<Vec<_>>()
    };
    match numbers.i64(..16) {
        0..5 => patiently(|| table.insert(&object, &mut Workspace::new())),
        5..7 => {
            let list = some(10, numbers);
            patiently(|| table.insert_many(list.iter(), &mut Workspace::new()));
        }
        // Most of these lists are undone, because one of their keys is present.
        7..9 => {
            let list = some(3, numbers);
            let _new = patiently(|| table.insert_many_new(list.iter(), &mut Workspace::new()));
        }
        // A list of this length is inserted while only the key is held.
        9 => {
            let list: Vec<_> = (0..300).map(|number| Term::from((key, number))).collect();
            patiently(|| table.insert_many(list.iter(), &mut Workspace::new()));
        }
        10..13 => patiently(|| table.delete_object(&object, &mut Workspace::new())),
        13 => patiently(|| table.delete(&Term::from(key), &mut Workspace::new())),
        14 => drop(patiently(|| {
            let guard = ats::terms::pin();
            let taken = table.take(&Term::from(key), &mut work, &guard);
            taken.map(|taken| taken.is_some())
        })),
        _ => patiently(|| table.insert(&Term::from((key % 3, number)), &mut Workspace::new())),
    }
}

#[test]
fn ranks_are_those_of_a_list() {
    for kind in ordered_types() {
        for (table, writes) in [(TermTable::new(kind, 1), 3_000), (portable(kind, 1), 600)] {
            table.force_adaptation(3, 8);
            let mut numbers = Rng::with_seed(7);
            for turn in 0..writes {
                write(&table, &mut numbers);
                if turn % 200 == 0 {
                    let (low, high) = (numbers.i64(..KEYS), numbers.i64(..KEYS));
                    let ranks = [0, 1, numbers.usize(..50), numbers.usize(..5_000)];
                    check(&table, low, high, ranks.into_iter());
                    check(&table, 0, KEYS, ranks.into_iter());
                }
            }
            check(&table, 0, 3, 0..20);
        }
    }
}

/// Counts are exact after concurrent writers, and a concurrent thread that counts, have finished.
#[test]
fn ranks_are_exact_after_writers_beside_each_other() {
    for kind in ordered_types() {
        let table = TermTable::new(kind, 1);
        table.force_adaptation(3, 8);
        std::thread::scope(|scope| {
            for seed in 1..4 {
                let table = &table;
                scope.spawn(move || {
                    let mut numbers = Rng::with_seed(seed);
                    (0..1_500).for_each(|_| write(table, &mut numbers));
                });
            }
            for _ in 0..300 {
                table.count(KeyRange::default()).expect("it has an order");
            }
        });
        assert_eq!(table.count(KeyRange::default()), table.len());
        let mut numbers = Rng::with_seed(9);
        for _ in 0..20 {
            let (low, high) = (numbers.i64(..KEYS), numbers.i64(..KEYS));
            check(&table, low, high, [numbers.usize(..5_000)].into_iter());
        }
    }
}

#[test]
fn tables_without_order_have_no_ranks() {
    for kind in ALL_TYPES.into_iter().filter(|kind| !kind.is_ordered()) {
        let table = TermTable::new(kind, 1);
        assert_eq!(table.count(KeyRange::default()), Err(Error::TableType));
    }
}

/// A count includes all objects of a list or none, while two threads insert lists of five new
/// objects, and one of them clears the table now and then.
#[test]
fn counts_have_lists_whole() {
    for (kind, adapts) in ordered_types().flat_map(|kind| [(kind, 0), (kind, 30)]) {
        let table = TermTable::new(kind, 1);
        table.force_adaptation(adapts, adapts);
        let writing = AtomicUsize::new(2);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let (table, writing) = (&table, &writing);
                scope.spawn(move || {
                    for round in 0..4_000 {
                        let number = 2 * round + writer;
                        let list: Vec<_> = (0..5)
                            .map(|part| Term::from((number + 100_000 * part, number)))
                            .collect();
                        patiently(|| table.insert_many(list.iter(), &mut Workspace::new()));
                        if number % 1_000 == 999 {
                            patiently(|| table.clear().map(|_objects| ()));
                        }
                    }
                    writing.fetch_sub(1, Relaxed);
                });
            }
            while writing.load(Relaxed) > 0 {
                let count = table.count(KeyRange::default()).expect("it has an order");
                assert_eq!(count % 5, 0, "{count} objects of lists of 5");
            }
        });
        assert_eq!(table.count(KeyRange::default()), table.len());
    }
}
