//! Ranges and ranks: temperatures with keys `{Station, Day}` in an ordered set.
//!
//! Keys that begin with the same elements are neighbours, so a station is a range, and so is a
//! sequence of its days. Reading a range takes O(log n) and the time for its objects.

use ats::terms::{Direction, Error, KeyRange, Table, TableType, Term, TermHost, Workspace};
use std::ops::ControlFlow;

/// The bytes by which a table knows a key. They are in the order of the keys.
fn key_bytes(table: &Table<TermHost>, station: &str, day: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.key_bytes(&Term::from((station, day)), &mut bytes);
    bytes
}

/// The objects of a range.
fn objects(table: &Table<TermHost>, range: KeyRange<'_>) -> Result<Vec<Term>, Error> {
    let (guard, mut objects) = (ats::terms::pin(), Vec::new());
    // The first object is found by its rank, and the others are behind it.
    let Some((first, _)) = table.nth(range, Direction::Up, 0, &guard)? else {
        return Ok(objects);
    };
    objects.extend(first.to_terms());
    table.scan(Some(first.key_bytes()), &guard, &mut |found| {
        if !range.has(found.key_bytes()) {
            return ControlFlow::Break(());
        }
        objects.extend(found.to_terms());
        ControlFlow::Continue(())
    })?;
    Ok(objects)
}

fn main() -> Result<(), Error> {
    let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    let mut work = Workspace::new();
    for station in ["bergen", "oslo", "tromso"] {
        for day in 1..=100 {
            let object = Term::from(((station, day), day % 30));
            table.insert(&object, &mut work)?;
        }
    }

    // Three days of a station. The upper bound does not belong to a range.
    let (low, high) = (key_bytes(&table, "oslo", 29), key_bytes(&table, "oslo", 32));
    let days = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    let expected = [(29, 29), (30, 0), (31, 1)];
    let expected = expected.map(|(day, degrees)| Term::from((("oslo", day), degrees)));
    assert_eq!(objects(&table, days)?, expected);
    assert_eq!(table.count(days)?, 3);

    // All days of a station: those from the first possible one on, up to the next station.
    let (low, high) = (
        key_bytes(&table, "oslo", i64::MIN),
        key_bytes(&table, "oslo", i64::MAX),
    );
    let oslo = KeyRange {
        low: Some(&low),
        high: Some(&high),
    };
    assert_eq!(objects(&table, oslo)?.len(), 100);

    // Ranks, in both directions: the rank of a key is the number of keys below it.
    let guard = ats::terms::pin();
    let found = table.nth(oslo, Direction::Down, 0, &guard)?;
    let last = found.map(|(found, _)| found.to_terms());
    assert_eq!(last, Some(vec![Term::from((("oslo", 100), 10))]));
    let key = key_bytes(&table, "oslo", 1);
    let below = KeyRange {
        low: None,
        high: Some(&key),
    };
    assert_eq!(table.count(below)?, 100);
    println!("3 days of 100 of oslo, behind 100 of bergen");
    Ok(())
}
