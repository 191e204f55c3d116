//! Tables of terms on a store whose records expire.

use crate::common::Directory;
use ats::terms::{
    ExistingKey, Lifetime, Table, TableType, TermCodec, TermHost, TimeLeft, Workspace, Zeros,
};
use ats_disk::fs::advance_wall_clock;
use ats_disk::{AtomicStore, DiskStore, Options};
use ats_term::Term;
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns a table on disk whose objects are there for a minute.
fn table(directory: &Directory, table_type: TableType) -> Table<TermHost> {
    let options = Options::new()
        .lifetime(ats_disk::Lifetime::For(MINUTE))
        .background(false);
    let store = DiskStore::open(directory.path(), options).expect("opened");
    let zeros = Zeros::Distinct;
    let codec = Arc::new(TermCodec { zeros });
    let store = Box::new(AtomicStore::new(store));
    Table::on_store(store, || true, codec, table_type, 1, zeros)
}

fn pass(time: Duration) {
    advance_wall_clock(time.as_millis() as u64);
}

#[test]
fn objects_have_the_times_that_they_are_given() {
    for table_type in [TableType::Set, TableType::OrderedSet, TableType::Bag] {
        let directory = Directory::new();
        let table = table(&directory, table_type);
        assert!(table.expires());
        let mut work = Workspace::new();
        let pear = Term::from(("pear", 40));
        let key = Term::from("pear");
        table.insert(&pear, &mut work).expect("inserted");
        let left = table.time_left(&key, &mut work);
        assert!(matches!(left, Ok(Some(TimeLeft::Time(time))) if time <= MINUTE));
        pass(MINUTE);
        assert_eq!(table.time_left(&key, &mut work), Ok(None));
        assert_eq!(table.len(), Ok(0));
        for lifetime in [Lifetime::Forever, Lifetime::Kept] {
            let existing = ExistingKey::Accepted;
            let inserted = table.insert_for(&pear, lifetime, existing, &mut work);
            assert_eq!(inserted, Ok(true));
            let left = table.time_left(&key, &mut work);
            assert_eq!(left, Ok(Some(TimeLeft::Forever)), "{lifetime:?}");
        }
        let touched = table.touch(&key, Lifetime::For(2 * MINUTE), &mut work);
        assert_eq!(touched, Ok(true));
        pass(MINUTE);
        assert_ne!(table.len(), Ok(0));
        pass(MINUTE);
        assert_eq!(table.touch(&key, Lifetime::OfTable, &mut work), Ok(false));
        assert_eq!(table.clear(), Ok(0));
    }
}

/// A walk of a fixed table without order goes on behind a key that has expired meanwhile.
#[test]
fn walks_go_on_behind_expired_keys() {
    let directory = Directory::new();
    let table = table(&directory, TableType::Set);
    let mut work = Workspace::new();
    for number in 0..9 {
        let lifetime = if number == 4 {
            Lifetime::OfTable
        } else {
            Lifetime::Forever
        };
        let object = Term::from((number, "object"));
        let inserted = table.insert_for(&object, lifetime, ExistingKey::Refused, &mut work);
        assert_eq!(inserted, Ok(true));
    }
    let mut key = Vec::new();
    table.key_bytes(&Term::from(4), &mut key);
    table.fix();
    pass(MINUTE);
    let guard = ats::terms::pin();
    let mut walked = 0;
    let mut step = table.next(&key, &guard).expect("it goes on");
    while let Some(found) = step {
        walked += 1;
        step = table.next(found.key_bytes(), &guard).expect("it is there");
    }
    assert_eq!(walked, 4);
    table.unfix();
    assert!(table.next(&key, &guard).is_err());
}

#[test]
fn pairs_of_maps_do_not_expire() {
    let directory = Directory::new();
    let options = Options::new().lifetime(ats_disk::Lifetime::Forever);
    let opened = ats::DiskMap::<u32, u32>::open_with(directory.path(), options);
    let Err(ats_disk::Error::Option { name, .. }) = opened else {
        panic!("it was opened");
    };
    assert_eq!(name, "lifetime");
    assert!(!directory.path().join("manifest").exists());
}
