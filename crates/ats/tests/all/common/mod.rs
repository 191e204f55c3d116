//! Functions that several tests need.

pub(crate) mod histories;
pub(crate) mod model;
mod on_disk;

pub(crate) use on_disk::{Directory, expiring_on_disk, on_disk};

use ats::terms::{BTreeStore, Error, Store, Table, TableType, TermCodec, TermHost, Ttl, Workspace};
use ats_term::{Term, Zeros};
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

pub(crate) type TermTable = Table<TermHost>;

pub(crate) const ALL_TYPES: [TableType; 6] = [
    TableType::Set,
    TableType::OrderedSet,
    TableType::Bag,
    TableType::DuplicateBag,
    TableType::OrderedBag,
    TableType::OrderedDuplicateBag,
];

/// Returns a table on a store of bytes.
pub(crate) fn on_store(
    store: impl Store + 'static,
    kind: TableType,
    key_position: usize,
) -> TermTable {
    let zeros = Zeros::Distinct;
    let codec = Arc::new(TermCodec { zeros });
    TermTable::on_store(Box::new(store), || true, codec, kind, key_position, zeros)
}

/// Returns a table on the plain B-tree.
pub(crate) fn portable(kind: TableType, key_position: usize) -> TermTable {
    on_store(BTreeStore::new(), kind, key_position)
}

/// Returns a table whose objects expire, after the test.
pub(crate) fn expiring(kind: TableType, key_position: usize) -> TermTable {
    let table = TermTable::new(kind, key_position);
    let ttl = Ttl::Written(Duration::from_secs(3600));
    table.expiring(ttl).expect("it is in memory")
}

/// Returns a table for a round of a test of histories: some are compressed, some have objects that
/// expire, and some are on a store of bytes, in memory or on disk.
pub(crate) fn of_round(kind: TableType, round: u64) -> TermTable {
    match round % 8 {
        1 => portable(kind, 1),
        5 => on_disk(kind, 1),
        2 | 7 => expiring(kind, 1).compressed(round % 16 == 7),
        remainder => TermTable::new(kind, 1).compressed(remainder % 4 == 3),
    }
}

/// Returns `true` if two keys are the same in a table of this type.
pub(crate) fn same_key(kind: TableType, a: &Term, b: &Term) -> bool {
    if kind.is_ordered() {
        a.compare(b) == Ordering::Equal
    } else {
        a == b
    }
}

/// Returns the objects of a key, oldest first.
pub(crate) fn objects(table: &TermTable, key: &Term) -> Vec<Term> {
    let guard = ats::terms::pin();
    let found = table
        .lookup(key, &mut Workspace::new(), &guard)
        .expect("memory does not fail");
    found.map_or(Vec::new(), |found| found.to_terms())
}

/// Returns all objects in the order of a scan.
pub(crate) fn everything(table: &TermTable) -> Vec<Term> {
    let guard = ats::terms::pin();
    let mut all = Vec::new();
    let scanned = table.scan(None, &guard, &mut |found| {
        all.extend(found.to_terms());
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    all
}

/// Repeats an operation while it is [`Error::Busy`].
pub(crate) fn patiently<R>(mut operation: impl FnMut() -> Result<R, Error>) -> R {
    loop {
        match operation() {
            Ok(result) => return result,
            Err(Error::Busy) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until `done` returns `true`. Memory is freed in the background, which other tests of the
/// program can delay.
pub(crate) fn soon(mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..2000 {
        if done() {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    false
}
