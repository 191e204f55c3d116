//! A large table that goes gives its memory back to the system without anybody asking.
#![cfg(not(any(miri, fuzzing, watched, tsan)))]

use ats::{Table, TableType, TermHost, Workspace};
use ats_mem::slab::statistics;
use ats_term::Term;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Blocks in the cache of this thread stay, and so may the runs they are in.
const KEPT: usize = 8 << 20;

fn filled(table_type: TableType) -> Table<TermHost> {
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
    for table_type in [TableType::OrderedSet, TableType::Set] {
        drop(filled(table_type));
        assert_memory_returns();
        let table = filled(table_type);
        table.clear();
        assert_memory_returns();
    }
}
