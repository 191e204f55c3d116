//! What several tests need.

pub(crate) mod histories;
pub(crate) mod model;

use ats::{Error, Table, TableType, TermHost, Workspace};
use ats_term::Term;
use std::cmp::Ordering;
use std::ops::ControlFlow;

pub(crate) type TermTable = Table<TermHost>;

pub(crate) const ALL_TYPES: [TableType; 4] = [
    TableType::Set,
    TableType::OrderedSet,
    TableType::Bag,
    TableType::DuplicateBag,
];

/// Whether two keys are the same in a table of this type.
pub(crate) fn same_key(kind: TableType, a: &Term, b: &Term) -> bool {
    match kind {
        TableType::OrderedSet => a.compare(b) == Ordering::Equal,
        _ => a == b,
    }
}

/// The objects of a key, oldest first.
pub(crate) fn objects(table: &TermTable, key: &Term) -> Vec<Term> {
    let guard = ats::pin();
    let found = table.lookup(key, &mut Workspace::new(), &guard);
    found.map_or(Vec::new(), |found| found.to_terms())
}

/// All objects in the order of a scan.
pub(crate) fn everything(table: &TermTable) -> Vec<Term> {
    let guard = ats::pin();
    let mut all = Vec::new();
    let scanned = table.scan(None, &guard, &mut |found| {
        all.extend(found.to_terms());
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    all
}

/// Calls an operation until no batch is in its way.
pub(crate) fn patiently<R>(mut operation: impl FnMut() -> Result<R, Error>) -> R {
    loop {
        match operation() {
            Ok(result) => return result,
            Err(Error::Busy) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until `done`: for what is freed in the background, which other tests of the program can delay.
pub(crate) fn soon(mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..2000 {
        if done() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    false
}
