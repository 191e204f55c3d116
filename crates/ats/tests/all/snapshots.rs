//! Tests that snapshots show the table as of their moment during later writes, and that they end on
//! request.

use crate::common::{ALL_TYPES, patiently};
use ats::terms::{
    CounterOp, Ending, Error, Table, TableType, TermHost, Ttl, Workspace, advance_clock,
};
use ats_term::Term;
use ats_term::term::Bits;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Returns all objects, as text, in order.
fn objects(table: &Table<TermHost>) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    table.scan(None, &ats::terms::pin(), &mut |found| {
        all.extend(found.to_terms().iter().map(|object| format!("{object:?}")));
        ControlFlow::Continue(())
    })?;
    all.sort();
    Ok(all)
}

fn change(table: &Table<TermHost>, random: &mut fastrand::Rng, round: i64) -> Result<(), Error> {
    let mut work = Workspace::new();
    let key = random.i64(0..200);
    match random.u8(0..6) {
        0 => table.delete(&Term::from(key), &mut work)?,
        1 => {
            let list: Vec<Term> = (0..20)
                .map(|_| Term::from((random.i64(0..200), round)))
                .collect();
            table.insert_many(list.iter(), &mut work)?;
        }
        _ => table.insert(&Term::from((key, round)), &mut work)?,
    }
    Ok(())
}

#[test]
fn snapshots_equal_the_table_of_their_moment() -> Result<(), Error> {
    for table_type in ALL_TYPES {
        let mut random = fastrand::Rng::with_seed(7);
        let table = Table::<TermHost>::new(table_type, 1);
        let mut kept = Vec::new();
        for round in 0..60 {
            for _ in 0..40 {
                change(&table, &mut random, round)?;
            }
            if round % 17 == 16 {
                table.clear()?;
            }
            let snapshot = table.snapshot()?;
            kept.push((snapshot, objects(&table)?));
            if kept.len() > 5 {
                kept.swap_remove(random.usize(0..kept.len()));
            }
            for (snapshot, was) in &kept {
                assert_eq!(objects(snapshot)?, *was, "{table_type:?}, round {round}");
                assert_eq!(snapshot.len()?, was.len());
            }
        }
        drop(kept);
        let kept = table.kept_snapshots();
        assert_eq!((kept.count, kept.queries), (0, 0));
    }
    Ok(())
}

/// A change of a table.
type Change<'a> = dyn Fn(&mut Workspace<TermHost>) -> Result<(), Error> + 'a;

#[test]
fn a_quick_look_finds_each_change() -> Result<(), Error> {
    for table_type in ALL_TYPES {
        let table = Table::<TermHost>::new(table_type, 1);
        let mut work = Workspace::new();
        let list = |value| (0..50).map(move |key| Term::from((key, value)));
        let [list, others]: [Vec<Term>; 2] = [list(0).collect(), list(2).collect()];
        table.insert_many(list.iter(), &mut work)?;
        let changes: [&Change<'_>; 6] = [
            &|work| table.insert(&Term::from((7, 1)), work),
            &|work| table.insert(&Term::from((70, 1)), work),
            &|work| table.delete(&Term::from(70), work),
            &|work| table.insert_many(others.iter().rev(), work),
            &|work| table.delete(&Term::from(7), work),
            &|_| table.clear().map(|_| ()),
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let snapshot = table.snapshot()?;
            // Another call of the tests may hold the look up.
            while table.may_have_changed(snapshot.read_point())? {
                thread::yield_now();
            }
            let _ = table.lookup(&Term::from(7), &mut work, &ats::terms::pin())?;
            table.delete(&Term::from(1000), &mut work)?;
            while table.may_have_changed(snapshot.read_point())? {
                thread::yield_now();
            }
            change(&mut work)?;
            let is_found = table.may_have_changed(snapshot.read_point())?;
            assert!(is_found, "{table_type:?}, change {index}");
            let other = table.snapshot()?;
            while table.may_have_changed(other.read_point())? {
                thread::yield_now();
            }
            assert!(table.may_have_changed(snapshot.read_point())?);
            other.read_point().end(Ending::Released);
            assert!(table.may_have_changed(other.read_point())?);
        }
        let stranger = Table::<TermHost>::new(table_type, 1);
        assert!(table.may_have_changed(stranger.snapshot()?.read_point())?);
    }
    Ok(())
}

/// Threads replace each other's records, one by one and in lists. Each finds its own change.
#[test]
fn a_quick_look_finds_changes_beside_writers() {
    for table_type in [TableType::Set, TableType::OrderedSet] {
        let table = Table::<TermHost>::new(table_type, 1);
        thread::scope(|scope| {
            for writer in 0..3 {
                let table = &table;
                scope.spawn(move || {
                    let mut work = Workspace::new();
                    let mut random = fastrand::Rng::with_seed(writer);
                    for round in 0..3_000_i64 {
                        let snapshot = patiently(|| table.snapshot());
                        let value = i64::try_from(writer).unwrap_or(0) + 3 * round + 1;
                        let mut object = || Term::from((random.i64(0..4), value));
                        let (first, second) = (object(), object());
                        patiently(|| match round % 2 {
                            0 => table.insert(&first, &mut work),
                            _ => table.insert_many([&first, &second].into_iter(), &mut work),
                        });
                        assert!(patiently(|| table.may_have_changed(snapshot.read_point())));
                    }
                });
            }
        });
    }
}

#[test]
fn a_quick_look_finds_expired_objects() -> Result<(), Error> {
    for table_type in ALL_TYPES {
        // Other tests move the clock, too.
        let time = Duration::from_secs(1_000_000);
        let table = Table::<TermHost>::new(table_type, 1).expiring(Ttl::Written(time))?;
        let mut work = Workspace::new();
        table.insert(&Term::from((1, 1)), &mut work)?;
        let snapshot = table.snapshot()?;
        while table.may_have_changed(snapshot.read_point())? {
            thread::yield_now();
        }
        advance_clock(time);
        assert!(table.may_have_changed(snapshot.read_point())?);
        let later = table.snapshot()?;
        assert_eq!((snapshot.len()?, later.len()?), (1, 0));
    }
    Ok(())
}

#[test]
fn keys_that_changed_are_found() -> Result<(), Error> {
    for table_type in ALL_TYPES {
        let mut random = fastrand::Rng::with_seed(11);
        let table = Table::<TermHost>::new(table_type, 1);
        for round in 0..40 {
            let earlier = table.snapshot()?;
            let was = objects(&table)?;
            for _ in 0..round {
                change(&table, &mut random, round)?;
            }
            if round % 13 == 12 {
                table.clear()?;
            }
            let later = table.snapshot()?;
            let is = objects(&table)?;
            for _ in 0..100 {
                change(&table, &mut random, -1)?;
            }
            let keys = earlier.read_point().changed_keys(later.read_point())?;
            assert_eq!(later.read_point().changed_keys(earlier.read_point())?, keys);
            let guard = ats::terms::pin();
            let mut changed = BTreeSet::new();
            for key in &keys {
                for snapshot in [&earlier, &later] {
                    let found = snapshot.lookup_bytes(key, &guard)?;
                    let terms = found.map_or(Vec::new(), |found| found.to_terms());
                    changed.extend(terms.iter().map(|object| format!("{object:?}")));
                }
            }
            let (was, is) = (BTreeSet::from_iter(was), BTreeSet::from_iter(is));
            let missed: Vec<_> = was.symmetric_difference(&is).collect();
            assert!(missed.iter().all(|object| changed.contains(*object)));
        }
    }
    Ok(())
}

#[test]
fn a_snapshot_that_has_ended_is_refused() -> Result<(), Error> {
    let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    let mut work = Workspace::new();
    table.insert(&Term::from((1, 1)), &mut work)?;
    let snapshot = table.snapshot()?;
    assert!(matches!(snapshot.snapshot(), Err(Error::Snapshot)));
    assert_eq!(snapshot.clear(), Err(Error::Snapshot));
    snapshot.read_point().end(Ending::Released);
    assert_eq!(snapshot.read_point().ending(), Some(Ending::Released));
    let guard = ats::terms::pin();
    let found = snapshot.lookup(&Term::from(1), &mut work, &guard);
    assert!(matches!(found, Err(Error::Ended)));
    assert!(matches!(snapshot.first(&guard), Err(Error::Ended)));
    assert_eq!(objects(&snapshot), Err(Error::Ended));
    let aged = table.snapshot()?;
    aged.read_point().keep_for(Duration::from_millis(1));
    while aged.read_point().ending().is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(aged.read_point().ending(), Some(Ending::Age));
    Ok(())
}

/// A read of a snapshot that ends meanwhile is right, or refused.
#[test]
fn readers_of_a_snapshot_that_ends() -> Result<(), Error> {
    for table_type in [TableType::Set, TableType::OrderedSet] {
        let table = &Table::<TermHost>::new(table_type, 1);
        let mut work = Workspace::new();
        for key in 0..500 {
            table.insert(&Term::from((key, 0)), &mut work)?;
        }
        for round in 0..100_i64 {
            let snapshot = &table.snapshot()?;
            let was = &objects(table)?;
            std::thread::scope(|scope| {
                let reader = scope.spawn(move || {
                    loop {
                        match objects(snapshot) {
                            Ok(all) => assert_eq!(all, *was),
                            Err(error) => return assert_eq!(error, Error::Ended),
                        }
                    }
                });
                let mut work = Workspace::new();
                for key in 0..500_i64 {
                    let object = Term::from((key, round + 1));
                    table.insert(&object, &mut work).expect("it can be written");
                    if key == 100 + round {
                        snapshot.read_point().end(Ending::Released);
                    }
                }
                reader.join().expect("what is read is right");
            });
        }
    }
    Ok(())
}

thread_local! {
    static MUST_NOT_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// The begin of a query waits for pinned threads, because any of them may be changing a counter in
/// place.
#[test]
fn a_guard_that_never_goes_is_not_waited_for_too_long() -> Result<(), Error> {
    ats_sync::lock::set_may_wait(|| !MUST_NOT_WAIT.get());
    let table = Table::<TermHost>::new(TableType::Set, 1);
    let op = CounterOp {
        position: 2,
        increment: 1.into(),
        wrap: None,
    };
    let (key, zero) = (Term::from(1), Term::from((1, 0)));
    let mut count = || table.update_one_counter(&key, &op, Some(&zero), &mut Workspace::new());
    for _ in 0..2 {
        patiently(&mut count);
    }
    thread::scope(|scope| {
        let (send, is_pinned) = mpsc::channel();
        let (unpin, receive) = mpsc::channel::<()>();
        scope.spawn(move || {
            let _guard = ats::terms::pin();
            send.send(()).expect("the test waits");
            receive.recv().expect("the test says when");
        });
        is_pinned.recv().expect("it is pinned");
        MUST_NOT_WAIT.set(true);
        let begun = table.begin().map(|read_point| read_point.is_some());
        MUST_NOT_WAIT.set(false);
        unpin.send(()).expect("it waits");
        assert_eq!(begun, Err(Error::Busy));
    });
    assert!(table.begin()?.is_some());
    Ok(())
}

/// Memory that snapshots hold back includes the binaries of objects. A shared binary counts once.
#[test]
fn memory_of_snapshots_includes_binaries() -> Result<(), Error> {
    const LARGE: usize = 100_000;
    let binary = || Term::Bits(Bits::from_bytes(&vec![7; LARGE]));
    let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    let mut work = Workspace::new();
    // The background thread may not be done yet.
    let is_held = |least: usize, most: usize| {
        let is_held = || (least..=most).contains(&table.kept_snapshots().bytes);
        let mut waits = (0..500).map(|_| std::thread::sleep(Duration::from_millis(10)));
        is_held() || waits.any(|()| is_held())
    };
    let object = |count: i64| Term::from((1, count, binary()));
    table.insert(&object(0), &mut work)?;
    let mut snapshots = Vec::new();
    for count in 1..=10 {
        snapshots.push(table.snapshot()?);
        table.insert(&object(count), &mut work)?;
    }
    assert!(is_held(10 * LARGE, 11 * LARGE));
    for left in (0..10).rev() {
        // The test drops snapshots between others, and at both ends.
        snapshots.remove(left / 2);
        assert!(is_held(left * LARGE, (left + 1) * LARGE), "{left}");
    }
    Ok(())
}
