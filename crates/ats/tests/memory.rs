//! Tests that a large table gives its memory back to the system without any call that asks for it.
#![cfg(not(any(miri, fuzzing, watched, tsan)))]

use ats::terms::{Table, TableType, TermHost, Workspace};
use ats_mem::slab::statistics;
use ats_term::Term;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Bytes that may stay reserved: blocks in the cache of this thread keep their chunks.
const KEPT: usize = 8 << 20;

/// Ensures that one test runs at a time, because the process has one slab.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fill_table(table_type: TableType) -> Table<TermHost> {
    let table = Table::new(table_type, 1);
    for number in 0..400_000_i64 {
        let object = Term::from((number, "some text of a few words for this number"));
        table.insert(&object, &mut Workspace::new()).unwrap();
    }
    assert!(statistics().used > 400_000 * 48, "{:?}", statistics());
    assert!(statistics().reserved > 3 * KEPT, "{:?}", statistics());
    table
}

fn assert_memory_returns() {
    let deadline = Instant::now() + Duration::from_secs(30);
    while statistics().reserved > KEPT {
        assert!(Instant::now() < deadline, "{:?}", statistics());
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn large_tables_give_their_memory_back() {
    let _alone = alone();
    for table_type in [TableType::OrderedSet, TableType::Set] {
        drop(fill_table(table_type));
        assert_memory_returns();
        let table = fill_table(table_type);
        table.clear().expect("memory does not fail");
        assert_memory_returns();
    }
}

/// A table that was emptied object by object gives its memory back, too, and is as small as a new
/// one.
#[test]
fn emptied_tables_give_their_memory_back() {
    let _alone = alone();
    for table_type in [TableType::OrderedSet, TableType::Set] {
        let empty = Table::<TermHost>::new(table_type, 1).bytes().unwrap();
        let table = fill_table(table_type);
        assert!(table.bytes().unwrap() > 100 * empty);
        // The thread ends after the deletions. Otherwise some hundred blocks of each size, which
        // may lie far apart, would stay in the cache of a thread.
        scope(|scope| {
            scope.spawn(|| {
                for number in 0..400_000_i64 {
                    let deleted = table.delete(&Term::from(number), &mut Workspace::new());
                    deleted.unwrap();
                }
            });
        });
        assert_eq!(table.len().unwrap(), 0);
        assert!(
            table.bytes().unwrap() < 2 * empty + 4096,
            "{}",
            table.bytes().unwrap()
        );
        if let Some(buckets) = table.buckets() {
            assert_eq!(buckets.lines, 0, "{buckets:?}");
            assert!(buckets.buckets <= 16, "{buckets:?}");
        }
        assert_memory_returns();
    }
}
