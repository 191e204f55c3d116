//! Tests of objects that expire. They put the clock of the process ahead, so they are a program of
//! their own, and run one at a time.
#![cfg(not(any(miri, fuzzing, watched, tsan)))]

use ats::terms::{
    CounterOp, Error, ExistingKey, Gone, Integer, Lifetime, Limits, LookupResult, OnGone, Table,
    TableType, TermHost, TimeLeft, Ttl, UnpackBuffer, Workspace, advance_clock,
};
use ats_term::Term;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const ALL_TYPES: [TableType; 6] = [
    TableType::Set,
    TableType::OrderedSet,
    TableType::Bag,
    TableType::DuplicateBag,
    TableType::OrderedBag,
    TableType::OrderedDuplicateBag,
];

/// The unit of the model: so long that the test does not take as long.
const UNIT: Duration = Duration::from_secs(1000);

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn table(kind: TableType, ttl: Ttl) -> Table<TermHost> {
    Table::new(kind, 1).expiring(ttl).expect("it is in memory")
}

/// Returns a time of some units and a half.
fn units(number: u32) -> Duration {
    UNIT * number + UNIT / 2
}

/// The objects of a key, and the number of steps of the clock after which they are gone.
#[derive(Clone, Debug)]
struct Objects {
    values: Vec<i64>,
    gone_at: u64,
    is_fixed: bool,
}

struct Model {
    kind: TableType,
    ttl: Option<(u32, bool)>,
    now: u64,
    keys: BTreeMap<i64, Objects>,
}

const FOREVER: u64 = u64::MAX;

impl Model {
    fn alive(&mut self, key: i64) -> Option<&mut Objects> {
        let now = self.now;
        self.keys
            .get_mut(&key)
            .filter(|objects| objects.gone_at > now)
    }

    /// Returns the number of steps after which objects with a time of the table are gone.
    fn of_table(&self) -> (u64, bool) {
        let gone_at = self
            .ttl
            .map_or(FOREVER, |(units, _)| self.now + u64::from(units) + 1);
        (gone_at, false)
    }

    fn is_idle(&self) -> bool {
        matches!(self.ttl, Some((_, true)))
    }

    fn insert(&mut self, key: i64, value: i64, lifetime: Lifetime) {
        let kept = self.alive(key).map(|old| (old.gone_at, old.is_fixed));
        let of_table = self.of_table();
        let (gone_at, is_fixed) = match (lifetime, kept) {
            (Lifetime::Kept, Some(kept)) if kept.1 || !self.is_idle() => kept,
            (Lifetime::OfTable | Lifetime::Kept, _) => of_table,
            (Lifetime::Forever, _) => (FOREVER, true),
            (Lifetime::For(time), _) => (
                self.now + u64::from((time.as_secs() / UNIT.as_secs()) as u32) + 1,
                true,
            ),
        };
        let mut values = self.alive(key).map_or(Vec::new(), |old| old.values.clone());
        if !self.kind.is_bag() {
            values.clear();
        }
        let is_new = !(self.kind == TableType::Bag || self.kind == TableType::OrderedBag)
            || !values.contains(&value);
        if is_new {
            values.push(value);
        } else if kept.is_some() {
            // Nothing is written.
            return;
        }
        self.keys.insert(
            key,
            Objects {
                values,
                gone_at,
                is_fixed,
            },
        );
    }

    fn read(&mut self, key: i64) {
        let (gone_at, _) = self.of_table();
        if self.is_idle()
            && let Some(objects) = self.alive(key)
            && !objects.is_fixed
        {
            objects.gone_at = gone_at;
        }
    }

    fn all(&self) -> Vec<(i64, i64)> {
        let alive = self
            .keys
            .iter()
            .filter(|(_, objects)| objects.gone_at > self.now);
        alive
            .flat_map(|(key, objects)| objects.values.iter().map(|value| (*key, *value)))
            .collect()
    }
}

fn pair(term: &Term) -> (i64, i64) {
    let text = format!("{term:?}");
    let numbers: Vec<i64> = text
        .split(|c: char| !c.is_ascii_digit() && c != '-')
        .filter_map(|number| number.parse().ok())
        .collect();
    (numbers[0], numbers[1])
}

fn scanned(table: &Table<TermHost>) -> Vec<(i64, i64)> {
    let mut all = Vec::new();
    let scanned = table.scan(None, &ats::terms::pin(), &mut |found| {
        all.extend(found.to_terms().iter().map(pair));
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    // Objects of a key stay in their order.
    all.sort_by_key(|(key, _)| *key);
    all
}

fn lifetime(random: &mut fastrand::Rng) -> Lifetime {
    match random.u8(0..4) {
        0 => Lifetime::OfTable,
        1 => Lifetime::Kept,
        2 => Lifetime::Forever,
        _ => Lifetime::For(units(random.u32(0..5))),
    }
}

fn insert_some(
    table: &Table<TermHost>,
    model: &mut Model,
    random: &mut fastrand::Rng,
    which: u8,
    (number, value): (i64, i64),
) -> Result<(), Error> {
    let mut work = Workspace::new();
    let object = Term::from((number, value));
    match which {
        0 | 1 => {
            table.insert(&object, &mut work)?;
            model.insert(number, value, Lifetime::OfTable);
        }
        2 | 3 => {
            let time = lifetime(random);
            let done = table.insert_for(&object, time, ExistingKey::Accepted, &mut work)?;
            assert!(done);
            model.insert(number, value, time);
        }
        4 => {
            let time = lifetime(random);
            let done = table.insert_for(&object, time, ExistingKey::Refused, &mut work)?;
            assert_eq!(done, model.alive(number).is_none());
            if done {
                model.insert(number, value, time);
            }
        }
        _ => {
            let time = lifetime(random);
            let list: Vec<Term> = (number..number + 3)
                .map(|key| Term::from((key, value)))
                .collect();
            table.insert_many_for(list.iter(), time, ExistingKey::Accepted, &mut work)?;
            (number..number + 3).for_each(|key| model.insert(key, value, time));
        }
    }
    Ok(())
}

fn step(
    table: &Table<TermHost>,
    model: &mut Model,
    random: &mut fastrand::Rng,
) -> Result<(), Error> {
    let mut work = Workspace::new();
    let (number, value) = (random.i64(0..20), random.i64(0..5));
    let (key, object) = (Term::from(number), Term::from((number, value)));
    match random.u8(0..14) {
        which @ 0..6 => insert_some(table, model, random, which, (number, value))?,
        6 => {
            table.delete(&key, &mut work)?;
            model.keys.remove(&number);
        }
        7 => {
            table.delete_object(&object, &mut work)?;
            let is_idle = model.is_idle();
            let (gone_at, _) = model.of_table();
            if let Some(objects) = model.alive(number) {
                let before = objects.values.len();
                objects.values.retain(|other| *other != value);
                if objects.values.is_empty() {
                    model.keys.remove(&number);
                } else if is_idle && !objects.is_fixed && objects.values.len() < before {
                    objects.gone_at = gone_at;
                }
            }
        }
        8 if !model.kind.is_bag() => {
            let op = CounterOp {
                position: 2,
                increment: Integer::from(1),
                wrap: None,
            };
            let default = random.bool().then(|| Term::from((number, 7)));
            let done = table.update_counter(&key, &[op], default.as_ref(), &mut work);
            let is_there = model.alive(number).is_some();
            assert_eq!(done.is_ok(), is_there || default.is_some(), "{done:?}");
            if is_there || default.is_some() {
                let old = model.alive(number).map_or(7, |objects| objects.values[0]);
                model.insert(number, old + 1, Lifetime::Kept);
            }
        }
        9 => {
            let time = lifetime(random);
            let done = table.touch(&key, time, &mut work)?;
            assert_eq!(done, model.alive(number).is_some());
            if let Some(values) = model.alive(number).map(|objects| objects.values.clone()) {
                model.insert(number, -1, time);
                if let Some(objects) = model.alive(number) {
                    objects.values = values;
                }
            }
        }
        10 => {
            let guard = ats::terms::pin();
            let found = table.take(&key, &mut work, &guard)?;
            assert_eq!(found.is_some(), model.alive(number).is_some());
            model.keys.remove(&number);
        }
        11 => {
            let left = table.time_left(&key, &mut work)?;
            let now = model.now;
            match (left, model.alive(number)) {
                (None, None) => {}
                (Some(TimeLeft::Forever), Some(objects)) => assert_eq!(objects.gone_at, FOREVER),
                (Some(TimeLeft::Time(time)), Some(objects)) => {
                    let steps = time.as_secs() / UNIT.as_secs() + 1;
                    assert_eq!(steps, objects.gone_at - now);
                }
                (left, objects) => panic!("{left:?}, but {objects:?}"),
            }
        }
        _ => {
            let guard = ats::terms::pin();
            let found = table.lookup(&key, &mut work, &guard)?;
            let values: Vec<i64> = found.map_or(Vec::new(), |found| {
                found.to_terms().iter().map(|term| pair(term).1).collect()
            });
            let expected = model
                .alive(number)
                .map_or(Vec::new(), |old| old.values.clone());
            assert_eq!(values, expected);
            model.read(number);
        }
    }
    Ok(())
}

#[test]
fn tables_behave_as_lists_of_objects_with_deadlines() -> Result<(), Error> {
    let _alone = alone();
    for kind in ALL_TYPES {
        for (seed, ttl) in [(1, None), (2, Some((2, false))), (3, Some((4, true)))] {
            let mut random = fastrand::Rng::with_seed(seed);
            let time = ttl.map(|(number, is_idle)| {
                let time = units(number);
                if is_idle {
                    Ttl::Idle(time)
                } else {
                    Ttl::Written(time)
                }
            });
            for round in 0..20 {
                let table = table(kind, time.unwrap_or(Ttl::Never)).compressed(round % 3 == 0);
                let mut model = Model {
                    kind,
                    ttl,
                    now: 0,
                    keys: BTreeMap::new(),
                };
                let mut kept: Vec<(_, Vec<(i64, i64)>)> = Vec::new();
                for _ in 0..150 {
                    step(&table, &mut model, &mut random)?;
                    if random.u8(0..8) == 0 {
                        let number = random.u32(1..4);
                        advance_clock(UNIT * number);
                        model.now += u64::from(number);
                    }
                    if random.u8(0..8) == 0 {
                        assert_eq!(table.len()?, model.all().len(), "{kind:?} {ttl:?}");
                    }
                    if random.u8(0..8) == 0 {
                        assert_eq!(scanned(&table), model.all(), "{kind:?} {ttl:?}");
                    }
                    if random.u8(0..20) == 0 {
                        kept.push((table.snapshot()?, model.all()));
                    }
                }
                // Nothing that expires meanwhile changes a snapshot.
                for (snapshot, all) in &kept {
                    assert_eq!(snapshot.len()?, all.len());
                    assert_eq!(scanned(snapshot), *all);
                }
            }
        }
    }
    Ok(())
}

#[test]
fn memory_comes_back_without_a_call() -> Result<(), Error> {
    let _alone = alone();
    for kind in [TableType::Set, TableType::OrderedSet, TableType::Bag] {
        let table = table(kind, Ttl::Written(Duration::from_secs(2)));
        let empty = table.about_bytes();
        let mut work = Workspace::new();
        for number in 0..20_000_i64 {
            table.insert(
                &Term::from((number, "a text that takes some room")),
                &mut work,
            )?;
        }
        assert!(table.about_bytes() > empty + 20_000 * 60);
        let deadline = Instant::now() + Duration::from_secs(20);
        while table.expired() < 20_000 {
            assert!(
                Instant::now() < deadline,
                "{} have expired",
                table.expired()
            );
            thread::sleep(Duration::from_millis(5));
        }
        assert!(
            table.about_bytes() < empty + 200_000,
            "{} bytes",
            table.about_bytes()
        );
    }
    Ok(())
}

/// A record that is written again and again has one entry in the list of deadlines, and entries of
/// keys that were deleted are removed.
#[test]
fn entries_do_not_pile_up() -> Result<(), Error> {
    let _alone = alone();
    let an_hour = Ttl::Written(Duration::from_secs(3600));
    for (ttl, objects) in [
        (an_hour, None),
        (Ttl::Never, Some(1000)),
        (an_hour, Some(1000)),
    ] {
        let table = Table::<TermHost>::new(TableType::Set, 1).limited(Limits {
            ttl,
            objects,
            bytes: None,
        })?;
        let mut work = Workspace::new();
        let object = Term::from((1, 2));
        for _ in 0..100_000 {
            table.insert(&object, &mut work)?;
        }
        let bytes = table.about_bytes();
        assert!(bytes < 20_000, "{bytes} bytes");
        for _ in 0..200_000 {
            table.insert(&object, &mut work)?;
            table.delete(&Term::from(1), &mut work)?;
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while table.about_bytes() > 500_000 {
            assert!(Instant::now() < deadline, "{} bytes", table.about_bytes());
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// Checks that an insert into a table in which all was read does not look at all of it.
#[test]
fn something_goes_where_all_was_read() -> Result<(), Error> {
    let _alone = alone();
    let most = 200_000;
    let table = bounded(TableType::Set, most);
    let mut work = Workspace::new();
    for key in 0..most as i64 {
        table.insert(&Term::from((key, 1)), &mut work)?;
    }
    let read_all = |work: &mut Workspace<TermHost>| -> Result<(), Error> {
        for key in 0..most as i64 {
            let guard = ats::terms::pin();
            for _ in 0..3 {
                table.lookup(&Term::from(key), work, &guard)?;
            }
        }
        Ok(())
    };
    // The first insert after all was read, beside the time that reading took.
    let mut ratios = Vec::new();
    for key in 0..5_i64 {
        let begin = Instant::now();
        read_all(&mut work)?;
        let read = begin.elapsed();
        let begin = Instant::now();
        table.insert(&Term::from((1_000_000 + key, 1)), &mut work)?;
        ratios.push(begin.elapsed().as_secs_f64() / read.as_secs_f64());
    }
    assert_eq!((table.len()?, table.evicted()), (most, 5));
    let least = ratios.iter().copied().fold(f64::MAX, f64::min);
    assert!(least < 0.05, "{ratios:?}");
    Ok(())
}

/// Checks that a read puts the deadline of an idle object off also where reads are counted.
#[test]
fn idle_objects_of_a_table_with_a_bound_stay() -> Result<(), Error> {
    let _alone = alone();
    let limits = Limits {
        ttl: Ttl::Idle(units(1)),
        objects: Some(10),
        bytes: None,
    };
    let table = Table::<TermHost>::new(TableType::Set, 1).limited(limits)?;
    let mut work = Workspace::new();
    table.insert(&Term::from((1, 1)), &mut work)?;
    for _ in 0..9 {
        advance_clock(UNIT);
        let guard = ats::terms::pin();
        assert!(table.lookup(&Term::from(1), &mut work, &guard)?.is_some());
    }
    advance_clock(UNIT * 2);
    assert_eq!(table.len()?, 0);
    Ok(())
}

/// A collector that keeps what it is told.
#[derive(Default)]
struct Kept {
    noted: Mutex<Vec<(Gone, Term)>>,
    told: AtomicUsize,
}

impl OnGone<TermHost> for Kept {
    fn note(&self, why: Gone, objects: LookupResult<'_, TermHost>) {
        let objects = objects.to_terms().into_iter();
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.extend(objects.map(|object| (why, object)));
    }

    fn tell(&self) {
        self.told.fetch_add(1, Ordering::Relaxed);
    }
}

/// Checks that each object that is gone is noted once, with its reason, and those that a program
/// removes are not.
#[test]
fn objects_that_are_gone_are_told() -> Result<(), Error> {
    let _alone = alone();
    for kind in ALL_TYPES {
        let kept = Arc::new(Kept::default());
        let limits = Limits {
            ttl: Ttl::Written(UNIT),
            objects: Some(10),
            ..Limits::default()
        };
        let table = Table::<TermHost>::new(kind, 1).telling(limits, Arc::clone(&kept) as _)?;
        let mut work = Workspace::new();
        for number in 0..15 {
            table.insert(&Term::from((number, "old")), &mut work)?;
        }
        let first: Vec<_> = std::mem::take(&mut *kept.noted.lock().expect("nothing fails"));
        assert_eq!(first.len(), 5, "{kind:?}");
        assert!(first.iter().all(|(why, _)| *why == Gone::Objects));
        advance_clock(UNIT);
        for number in 0..15 {
            table.insert(&Term::from((number, "new")), &mut work)?;
            table.delete(&Term::from(number), &mut work)?;
        }
        assert_eq!(table.len()?, 0);
        let second: Vec<_> = std::mem::take(&mut *kept.noted.lock().expect("nothing fails"));
        assert_eq!(second.len(), 10, "{kind:?}: {second:?}");
        assert!(second.iter().all(|(why, _)| *why == Gone::Expired));
        let all: Vec<_> = first.into_iter().chain(second).collect();
        for number in 0..15 {
            let object = Term::from((number, "old"));
            let times = all.iter().filter(|(_, told)| *told == object).count();
            assert_eq!(times, 1, "{kind:?}: {object:?}");
        }
        while kept.told.load(Ordering::Relaxed) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Checks that no record loses its entry, whatever the order of inserts and removals.
#[test]
fn nothing_stays_after_races_of_inserts_and_expiry() -> Result<(), Error> {
    let _alone = alone();
    for kind in [
        TableType::Set,
        TableType::OrderedSet,
        TableType::DuplicateBag,
    ] {
        let table = table(kind, Ttl::Written(Duration::from_millis(1)));
        let (stop, inserted) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            for seed in 0..3 {
                let (table, stop, inserted) = (&table, &stop, &inserted);
                scope.spawn(move || {
                    let (mut random, mut work) = (fastrand::Rng::with_seed(seed), Workspace::new());
                    while !stop.load(Ordering::Relaxed) {
                        let key = random.i64(0..500);
                        let time = Lifetime::For(Duration::from_millis(random.u64(1..4)));
                        let done = match random.u8(0..4) {
                            0 => table.insert(&Term::from((key, 1)), &mut work),
                            1 => table.touch(&Term::from(key), time, &mut work).map(drop),
                            2 => table.delete(&Term::from(key), &mut work),
                            _ => {
                                let object = Term::from((key, 1));
                                let existing = ExistingKey::Accepted;
                                table
                                    .insert_for(&object, time, existing, &mut work)
                                    .map(drop)
                            }
                        };
                        assert!(matches!(done, Ok(()) | Err(Error::Busy)), "{done:?}");
                        inserted.fetch_add(1, Ordering::Relaxed);
                        if random.u8(0..50) == 0 {
                            assert!(table.len().is_ok());
                        }
                    }
                });
            }
            let deadline = Instant::now() + Duration::from_secs(60);
            while inserted.load(Ordering::Relaxed) < 300_000 && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert!(inserted.load(Ordering::Relaxed) >= 300_000);
        thread::sleep(Duration::from_millis(10));
        assert_eq!(table.len()?, 0);
        let deadline = Instant::now() + Duration::from_secs(20);
        while table.len()? > 0 {
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

#[test]
fn a_count_misses_no_object_that_has_expired() -> Result<(), Error> {
    let _alone = alone();
    let table = table(TableType::OrderedSet, Ttl::Never);
    let mut work = Workspace::new();
    for number in 0..3000_i64 {
        let time = Lifetime::For(Duration::from_millis(500 + number as u64 % 7));
        table.insert_for(
            &Term::from((number, 1)),
            time,
            ExistingKey::Accepted,
            &mut work,
        )?;
    }
    advance_clock(Duration::from_millis(500));
    let mut last = 3000;
    while last > 0 {
        let len = table.len()?;
        assert!(len <= last);
        last = len;
    }
    assert_eq!(table.expired(), 3000);
    Ok(())
}

#[test]
fn tables_that_do_not_expire_refuse_times() {
    let table = Table::<TermHost>::new(TableType::Set, 1);
    let mut work = Workspace::new();
    let object = Term::from((1, 2));
    let key = Term::from(1);
    let refused = table.insert_for(&object, Lifetime::Forever, ExistingKey::Accepted, &mut work);
    assert_eq!(refused, Err(Error::NoTtl));
    assert_eq!(
        table.touch(&key, Lifetime::Forever, &mut work),
        Err(Error::NoTtl)
    );
    assert_eq!(table.time_left(&key, &mut work), Ok(None));
    assert_eq!(table.insert(&object, &mut work), Ok(()));
    assert_eq!(
        table.time_left(&key, &mut work),
        Ok(Some(TimeLeft::Forever))
    );
    assert_eq!(table.limits(), None);
    let guard = ats::terms::pin();
    let found = table.lookup(&key, &mut work, &guard).unwrap().unwrap();
    assert_eq!(found.first(&mut UnpackBuffer::new()).arity(), 2);
}

fn bounded(kind: TableType, objects: usize) -> Table<TermHost> {
    let limits = Limits {
        objects: Some(objects),
        ..Limits::default()
    };
    Table::new(kind, 1)
        .limited(limits)
        .expect("it is in memory")
}

#[test]
fn bounds_hold_when_an_insert_returns() -> Result<(), Error> {
    let _alone = alone();
    for kind in ALL_TYPES {
        for most in [1, 2, 10, 100, 1000] {
            let table = bounded(kind, most);
            let (mut random, mut work) = (fastrand::Rng::with_seed(5), Workspace::new());
            for round in 0..5000_i64 {
                let key = random.i64(0..3 * most as i64);
                let list: Vec<Term> = (key..key + 7).map(|key| Term::from((key, round))).collect();
                match random.u8(0..20) {
                    0 => table.insert_many(list.iter(), &mut work)?,
                    1 => table.delete(&Term::from(key), &mut work)?,
                    2 => drop(table.insert_new(&Term::from((key, round)), &mut work)?),
                    3 => {
                        let guard = ats::terms::pin();
                        table.lookup(&Term::from(key), &mut work, &guard)?;
                    }
                    4 => {
                        let time = Lifetime::For(Duration::from_secs(random.u64(1..9)));
                        let existing = ExistingKey::Accepted;
                        table.insert_for(&list[0], time, existing, &mut work)?;
                    }
                    _ => table.insert(&Term::from((key, round)), &mut work)?,
                }
                let len = table.len()?;
                assert!(len <= most, "{len} objects of {most} in a {kind:?}");
            }
            if !kind.is_bag() {
                assert!(table.len()? >= most * 9 / 10, "{} of {most}", table.len()?);
            }
            assert!(table.evicted() > 1000);
            assert_eq!(scanned(&table).len(), table.len()?);
            table.clear()?;
            table.insert(&Term::from((1, 1)), &mut work)?;
            assert_eq!(table.len()?, 1);
        }
    }
    Ok(())
}

/// Objects that are read stay while a scan passes that nobody reads again.
#[test]
fn scans_do_not_drive_out_what_is_read() -> Result<(), Error> {
    let _alone = alone();
    for kind in [TableType::Set, TableType::OrderedSet] {
        let table = bounded(kind, 1000);
        let mut work = Workspace::new();
        let read = |key: i64, work: &mut Workspace<TermHost>| {
            let guard = ats::terms::pin();
            let found = table.lookup(&Term::from(key), work, &guard);
            found.map(|found| found.is_some())
        };
        for key in 0..500 {
            table.insert(&Term::from((key, "hot")), &mut work)?;
            assert!(read(key, &mut work)? && read(key, &mut work)?);
        }
        for cold in 1000..50_000 {
            table.insert(&Term::from((cold, "cold")), &mut work)?;
            if cold % 100 == 0 {
                for key in 0..500 {
                    read(key, &mut work)?;
                }
            }
        }
        let mut left = 0;
        for key in 0..500 {
            left += usize::from(read(key, &mut work)?);
        }
        assert_eq!(left, 500);
        // An object that was evicted and comes again is one that is asked for.
        assert_eq!(table.len()?, 1000);
    }
    Ok(())
}

/// Returns how many of 100 look-ups of keys find an object, where a missing one is inserted.
fn hits_of_100(
    mut get: impl FnMut(u64) -> bool,
    mut put: impl FnMut(u64),
    exponent: f64,
    keys: usize,
) -> f64 {
    let mut random = fastrand::Rng::with_seed(11);
    let mut sums = Vec::with_capacity(keys);
    let mut sum = 0.0;
    for rank in 1..=keys {
        sum += (rank as f64).powf(-exponent);
        sums.push(sum);
    }
    let (mut hits, rounds) = (0, 400_000);
    for _ in 0..rounds {
        let wanted = random.f64() * sum;
        let key = sums.partition_point(|sum| *sum < wanted) as u64;
        if get(key) {
            hits += 1;
        } else {
            put(key);
        }
    }
    f64::from(hits) * 100.0 / f64::from(rounds)
}

/// Checks the ratio of hits against an exact LRU of the same size in the same run.
#[test]
fn more_look_ups_hit_than_with_an_lru() {
    let _alone = alone();
    let (keys, most) = (100_000, 1000);
    for exponent in [0.9, 1.0] {
        let table = bounded(TableType::Set, most);
        let get = |key: u64| {
            let guard = ats::terms::pin();
            let found = table.lookup(&Term::from(key as i64), &mut Workspace::new(), &guard);
            found.expect("memory does not fail").is_some()
        };
        let put = |key: u64| {
            let object = Term::from((key as i64, "value"));
            let done = table.insert(&object, &mut Workspace::new());
            done.expect("memory does not fail");
        };
        let ours = hits_of_100(get, put, exponent, keys);
        // The time of the last use of each key, and the keys by it.
        let lru = std::cell::RefCell::new((BTreeMap::new(), BTreeMap::new(), 0_u64));
        let touch = |key: u64| {
            let (uses, order, time) = &mut *lru.borrow_mut();
            *time += 1;
            let last = uses.insert(key, *time);
            last.map(|last| order.remove(&last));
            order.insert(*time, key);
            if uses.len() > most
                && let Some((_, oldest)) = order.pop_first()
            {
                uses.remove(&oldest);
            }
        };
        let get = |key: u64| {
            let is_there = lru.borrow().0.contains_key(&key);
            if is_there {
                touch(key);
            }
            is_there
        };
        let theirs = hits_of_100(get, touch, exponent, keys);
        println!("Zipf {exponent}: {ours:.1} of 100, LRU {theirs:.1}");
        assert!(ours > theirs + 3.0, "{ours} of 100, LRU {theirs}");
    }
}

#[test]
fn bounds_hold_beside_other_writers() -> Result<(), Error> {
    let _alone = alone();
    for kind in [TableType::Set, TableType::OrderedSet, TableType::Bag] {
        let (most, threads) = (500, 3);
        let table = bounded(kind, most);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for seed in 0..threads {
                let (table, stop) = (&table, &stop);
                scope.spawn(move || {
                    let (mut random, mut work) = (fastrand::Rng::with_seed(seed), Workspace::new());
                    while !stop.load(Ordering::Relaxed) {
                        let key = Term::from(random.i64(0..5000));
                        let object = Term::from((random.i64(0..5000), 1));
                        let done = match random.u8(0..4) {
                            0 => table.delete(&key, &mut work),
                            1 => {
                                let guard = ats::terms::pin();
                                table.lookup(&key, &mut work, &guard).map(drop)
                            }
                            _ => table.insert(&object, &mut work),
                        };
                        assert!(matches!(done, Ok(()) | Err(Error::Busy)), "{done:?}");
                    }
                });
            }
            for _ in 0..20_000 {
                let len = table.len().expect("the thread may wait");
                assert!(len <= most + threads as usize, "{len} objects");
            }
            stop.store(true, Ordering::Relaxed);
        });
        let mut work = Workspace::new();
        for key in 10_000..20_000 {
            table.insert(&Term::from((key, 1)), &mut work)?;
            let guard = ats::terms::pin();
            for _ in 0..2 {
                table.lookup(&Term::from(key), &mut work, &guard)?;
            }
        }
        assert_eq!(table.len()?, most);
        // Each record has an entry of a queue: objects that are read drive out all others.
        assert!(scanned(&table).iter().all(|(key, _)| *key >= 10_000));
    }
    Ok(())
}

/// Checks that a table that has no room for any object says so, and that one with room keeps it.
#[test]
fn small_bounds_of_memory_are_refused_or_hold() -> Result<(), Error> {
    let _alone = alone();
    for kind in ALL_TYPES {
        let mut kept = 0;
        for most in (0..20_000).step_by(500) {
            let limits = Limits {
                bytes: Some(most),
                ..Limits::default()
            };
            let table = Table::<TermHost>::new(kind, 1).limited(limits)?;
            let mut work = Workspace::new();
            for key in 0..3 {
                match table.insert(&Term::from((key, "some text")), &mut work) {
                    Ok(()) => assert!(table.len()? > 0, "{most} bytes in a {kind:?}"),
                    Err(error) => assert_eq!((error, table.len()?), (Error::Bound, 0)),
                }
            }
            kept += usize::from(table.len()? == 3);
        }
        assert!(kept > 10, "{kept} bounds had room in a {kind:?}");
    }
    Ok(())
}

#[test]
fn memory_stays_within_its_bound() -> Result<(), Error> {
    let _alone = alone();
    let an_hour = Ttl::Written(Duration::from_secs(3600));
    for kind in ALL_TYPES {
        for (ttl, most) in [(Ttl::Never, 500_000), (an_hour, 500_000), (an_hour, 50_000)] {
            let limits = Limits {
                ttl,
                objects: None,
                bytes: Some(most),
            };
            let table = Table::<TermHost>::new(kind, 1).limited(limits)?;
            let (mut random, mut work) = (fastrand::Rng::with_seed(3), Workspace::new());
            let mut least = usize::MAX;
            for round in 0..30_000_i64 {
                let key = random.i64(0..1_000_000);
                let text = vec![b'x'; random.usize(0..60)];
                table.insert(&Term::from((key, Term::binary(&text))), &mut work)?;
                let bytes = table.about_bytes();
                assert!(bytes <= most + most / 100, "{bytes} bytes in a {kind:?}");
                if round % 100 == 0 {
                    let exact = table.bytes()?;
                    assert!(exact <= most + most / 100, "{exact} bytes in a {kind:?}");
                }
                if round > 20_000 {
                    least = least.min(bytes);
                }
            }
            assert!(
                least > most * 8 / 10,
                "{least} of {most} bytes in a {kind:?}"
            );
            assert!(table.len()? > most / 300, "{} objects", table.len()?);
            assert!(table.evicted() > 10_000);
            // Objects that are larger by themselves are refused, and change nothing.
            let len = table.len()?;
            let large = Term::from((1, vec![Term::from(7); most / 4]));
            let list = [Term::from((2, 2)), large.clone()];
            assert_eq!(table.insert(&large, &mut work), Err(Error::Bound));
            assert_eq!(table.insert_new(&large, &mut work), Err(Error::Bound));
            let refused = table.insert_many(list.iter(), &mut work);
            assert_eq!(refused, Err(Error::Bound));
            assert_eq!(table.len()?, len);
            if kind.is_bag() {
                continue;
            }
            // An object that a long change makes too large stays as it was.
            let (key, small) = (Term::from(1), Term::from((1, 1)));
            table.insert(&small, &mut work)?;
            let value = Term::from(vec![Term::from(7); most / 4]);
            let changed = table.update_element(&key, &[(2, &value)], None, &mut work);
            assert_eq!(changed, Err(Error::Bound));
            let exchanged = table.exchange(Some(&small), Some(&large), &mut work);
            assert_eq!(exchanged, Err(Error::Bound));
            assert!(table.exchange(Some(&small), None, &mut work)?);
        }
    }
    Ok(())
}
