//! Tests of queries of one moment.

use crate::common::{ALL_TYPES, TermTable};
use crate::failing::{query_for_all, select_a_slice};
use ats::terms::select::{Cursor, Progress};
use ats::terms::{Direction, Error, TableReadPoint, TermHost, Workspace};
use ats_term::Term;
use std::ops::ControlFlow;

const KEYS: i64 = 1_000;

/// Counts the results of a query of all objects, whose slices have one each. After the first slice
/// the upper half of the keys is deleted.
fn selected(
    table: &TermTable,
    read_point: Option<&TableReadPoint<TermHost>>,
) -> Result<usize, Error> {
    let (query, mut cursor) = (query_for_all(table), Cursor::new(Direction::Up));
    let mut results = 0;
    loop {
        let progress = select_a_slice(table, &query, &mut cursor, read_point, || {
            results += 1;
            ControlFlow::Break(())
        })?;
        if progress == Progress::Done {
            return Ok(results);
        }
        let doomed = if results == 1 { KEYS / 2..KEYS } else { 0..0 };
        for key in doomed {
            table.delete(&Term::from(key), &mut Workspace::new())?;
        }
    }
}

/// A query that is given a moment shows the table as it was then; another one goes on with what it
/// finds.
#[test]
fn selects_of_a_moment_are_snapshots() -> Result<(), Error> {
    for kind in ALL_TYPES {
        let of_moment = |has_moment: bool| {
            let table = TermTable::new(kind, 1);
            for key in 0..KEYS {
                table.insert(&Term::from((key, key)), &mut Workspace::new())?;
            }
            let read_point = if has_moment { table.begin()? } else { None };
            assert_eq!(read_point.is_some(), has_moment);
            selected(&table, read_point.as_ref())
        };
        assert_eq!(of_moment(true)?, 1_000, "{kind:?}");
        // The first slice may have come to a key of the upper half.
        assert!((500..=501).contains(&of_moment(false)?), "{kind:?}");
    }
    Ok(())
}
