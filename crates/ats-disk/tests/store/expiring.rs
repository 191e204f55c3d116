//! Records that expire.

use crate::append::Append;
use crate::cases;
use crate::directory::Directory;
use crate::hooked::HookedFs;
use crate::{BLOCK, Records, collect};
use ats_disk::fault_injection::{InjectedFault, inject};
use ats_disk::{AtomicStore, Batch, DiskStore, Error, Lifetime, Options, Snapshot};
use ats_store::{Change, Direction, End, Expires, KeyRange, Merges, Store};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The lifetime of the store, in milliseconds.
const TTL: u64 = 100;
/// The time of day at which a test begins.
const BEGIN: u64 = 1_000_000;

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn lasts(time: u64) -> Lifetime {
    Lifetime::For(ms(time))
}

/// A store whose clock stands still until it is set.
struct Clocked {
    fs: Arc<HookedFs>,
    directory: Directory,
}

impl Clocked {
    fn new() -> Self {
        let fs = HookedFs::new(|_, _| Ok(()));
        fs.set_wall_clock(BEGIN);
        Clocked {
            fs,
            directory: Directory::new(),
        }
    }

    fn options(&self) -> Options {
        let file_system = Arc::clone(&self.fs);
        Options::new()
            .file_system(file_system)
            .lifetime(lasts(TTL))
            .block_bytes(128)
            .file_bytes(600)
            .background(false)
    }

    fn open(&self) -> AtomicStore {
        self.open_with(self.options())
    }

    fn open_with(&self, options: Options) -> AtomicStore {
        let store = DiskStore::open(self.directory.path(), options);
        AtomicStore::new(store.expect("opened"))
    }
}

fn put(store: &AtomicStore, key: &[u8], value: &[u8], lifetime: Lifetime) {
    let value = lifetime.before(value);
    store.put_unread(BLOCK, key, &value).expect("written");
}

fn get(store: &AtomicStore, key: &[u8]) -> Option<Vec<u8>> {
    store.store().get(key).expect("read")
}

fn left(store: &AtomicStore, key: &[u8]) -> Option<Lifetime> {
    store.time_left(BLOCK, key).expect("read")
}

#[test]
fn a_record_is_gone_at_its_deadline() {
    let clocked = Clocked::new();
    let store = clocked.open();
    put(&store, b"a", b"1", Lifetime::OfStore);
    put(&store, b"b", b"2", lasts(1));
    put(&store, b"c", b"3", Lifetime::Forever);
    assert_eq!(left(&store, b"a"), Some(lasts(TTL)));
    assert_eq!(left(&store, b"c"), Some(Lifetime::Forever));
    clocked.fs.set_wall_clock(BEGIN + TTL - 1);
    assert_eq!(get(&store, b"a"), Some(b"1".to_vec()));
    assert_eq!(get(&store, b"b"), None);
    assert_eq!(left(&store, b"a"), Some(lasts(1)));
    clocked.fs.set_wall_clock(BEGIN + TTL);
    assert_eq!((get(&store, b"a"), left(&store, b"a")), (None, None));
    assert_eq!(store.store().len(), Ok(1));
    let first = store.store().scan(..).next().expect("a record");
    assert_eq!(first, Ok((b"c".to_vec(), b"3".to_vec())));
    assert_eq!(
        store.set_lifetime(BLOCK, b"a", Lifetime::Forever),
        Ok(false)
    );
    assert_eq!(store.set_lifetime(BLOCK, b"c", lasts(5)), Ok(true));
    assert_eq!(left(&store, b"c"), Some(lasts(5)));
}

/// A compaction of newer runs only must leave a delete in the place of an expired value: without
/// it, the older value would be back.
#[test]
fn an_expired_value_hides_the_older_one_for_ever() {
    for (fault, brought_back) in [
        (None, None),
        (Some(InjectedFault::EarlyDrop), Some(b"older".to_vec())),
    ] {
        let clocked = Clocked::new();
        let store = clocked.open_with(clocked.options().fan_in(2));
        for number in 0..40 {
            put(
                &store,
                format!("x{number}").as_bytes(),
                &[7; 90],
                Lifetime::Forever,
            );
        }
        put(&store, b"a", b"older", Lifetime::Forever);
        store.store().flush().expect("flushed");
        put(&store, b"a", b"newer", lasts(1));
        store.store().flush().expect("flushed");
        // Keys on both sides: a file that overlaps with no other would be taken as it is.
        put(&store, b"A", b"", Lifetime::Forever);
        put(&store, b"b", b"", Lifetime::Forever);
        store.store().flush().expect("flushed");
        let before = store.store().snapshot();
        clocked.fs.set_wall_clock(BEGIN + 1);
        inject(fault);
        while store.store().work().expect("worked") {}
        inject(None);
        let info = store.store().info();
        assert_eq!((info.runs.len(), info.compactions, info.expired), (2, 1, 1));
        assert_eq!(get(&store, b"a"), brought_back);
        assert_eq!(before.get(b"a"), Ok(Some(b"newer".to_vec())));
    }
}

#[test]
fn compactions_give_the_room_of_expired_records_back() {
    let clocked = Clocked::new();
    let store = clocked.open();
    for number in 0..100_u32 {
        put(&store, &number.to_be_bytes(), &[7; 200], Lifetime::OfStore);
    }
    store.store().compact().expect("compacted");
    assert_eq!(store.store().info().runs[0].entries, 100);
    clocked.fs.set_wall_clock(BEGIN + TTL);
    assert_eq!(store.store().info().expired, 0);
    store.store().compact().expect("compacted");
    let info = store.store().info();
    assert!(info.runs.is_empty(), "{:?}", info.runs);
    assert_eq!(info.expired, 100);
    assert_eq!(Expires::expired(&store), 100);
    assert_eq!(store.store().verify(), Ok(()));
}

#[test]
fn a_clock_that_goes_back_brings_nothing_back() {
    let clocked = Clocked::new();
    let store = clocked.open();
    put(&store, b"a", b"1", Lifetime::OfStore);
    clocked.fs.set_wall_clock(BEGIN + TTL);
    assert_eq!(get(&store, b"a"), None);
    clocked.fs.set_wall_clock(BEGIN);
    assert_eq!(get(&store, b"a"), None);
    put(&store, b"b", b"1", lasts(1));
    clocked.fs.set_wall_clock(BEGIN + TTL);
    assert_eq!(get(&store, b"b"), Some(b"1".to_vec()), "time stood still");
    clocked.fs.set_wall_clock(1);
    // The manifest tells the time at which the store was closed, and a read-only one knows it.
    store.store().close().expect("closed");
    drop(store);
    let reading = clocked.open_with(clocked.options().read_only(true));
    assert_eq!(get(&reading, b"a"), None);
    drop(reading);
    let store = clocked.open();
    assert_eq!(get(&store, b"a"), None);
    put(&store, b"c", b"1", Lifetime::OfStore);
    assert_eq!(left(&store, b"c"), Some(lasts(TTL)));
    // A process that ends with writes in the journal: it tells the time of the last one, not much
    // later than a second.
    clocked.fs.set_wall_clock(BEGIN + 5000);
    put(&store, b"d", b"1", Lifetime::OfStore);
    assert_eq!(get(&store, b"c"), None);
    clocked.fs.set_wall_clock(1);
    drop(store);
    let store = clocked.open();
    assert_eq!(get(&store, b"c"), None);
    assert_eq!(left(&store, b"d"), Some(lasts(TTL)));
}

#[test]
fn a_store_is_opened_with_a_lifetime_if_it_was_made_with_one() {
    let wrong = |opened: Result<DiskStore, Error>| match opened {
        Err(Error::Option { name, why }) => (name, why),
        other => panic!("{:?}", other.err()),
    };
    let clocked = Clocked::new();
    let store = clocked.open();
    put(&store, b"a", b"1", Lifetime::OfStore);
    store.store().close().expect("closed");
    let without = Options::new().background(false);
    let path = clocked.directory.path();
    let opened = wrong(DiskStore::open(path, without.clone()));
    assert_eq!(opened, ("lifetime", "the records of the store expire"));
    drop(store);
    // Another time holds for new records.
    let store = clocked.open_with(clocked.options().lifetime(lasts(7)));
    put(&store, b"b", b"1", Lifetime::OfStore);
    assert_eq!(left(&store, b"a"), Some(lasts(TTL)));
    assert_eq!(left(&store, b"b"), Some(lasts(7)));
    let plain = Directory::new();
    drop(DiskStore::open(plain.path(), without.clone()).expect("made"));
    let with = without.lifetime(Lifetime::Forever);
    let opened = wrong(DiskStore::open(plain.path(), with));
    assert_eq!(opened, ("lifetime", "the store was made without it"));
    for lifetime in [
        Lifetime::OfStore,
        Lifetime::Kept,
        Lifetime::For(ms(0)),
        Lifetime::Until(ms(1)),
    ] {
        let options = clocked.options().lifetime(lifetime);
        let opened = wrong(DiskStore::open(Path::new("/nowhere"), options));
        assert_eq!(opened, ("lifetime", "is no time"));
    }
}

/// A value without a deadline would be read as another one.
#[test]
fn values_without_deadlines_are_refused() {
    let clocked = Clocked::new();
    let store = clocked.open_with(clocked.options().operator(Arc::new(Append)));
    for value in [&b""[..], b"12345", &Lifetime::Kept.before(b"value")] {
        let refused = store.store().put(b"a", value);
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    }
    assert!(store.put_unread(BLOCK, b"a", b"12345").is_err());
    let mut batch = Batch::new();
    batch
        .put(b"a", &Lifetime::Forever.before(b"1"))
        .expect("short");
    batch
        .merge(b"a", &Lifetime::Forever.before(b"1"))
        .expect("short");
    assert_eq!(store.store().write(&batch), Err(Error::NoOperator));
    assert_eq!(store.store().len(), Ok(0));
    store
        .store()
        .put(b"a", &Lifetime::Forever.before(b"1"))
        .expect("written");
    assert_eq!(get(&store, b"a"), Some(b"1".to_vec()));
}

#[test]
fn takes_from_an_end_pass_expired_records() {
    let clocked = Clocked::new();
    let store = clocked.open();
    for number in 0..20_u8 {
        let lifetime = if number % 2 == 0 {
            lasts(1)
        } else {
            Lifetime::Forever
        };
        put(&store, &[number], &[number], lifetime);
    }
    clocked.fs.set_wall_clock(BEGIN + 1);
    let mut taken = Vec::new();
    for end in [End::First, End::Last, End::First] {
        let mut take = |record: Option<(&[u8], &[u8])>| {
            taken.extend(record.map(|(key, _)| key[0]));
            Change::Remove
        };
        store.update_end(BLOCK, end, &mut take).expect("taken");
    }
    assert_eq!(taken, [1, 19, 3]);
}

/// A change of a record, or of the clock.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8, Lifetime),
    /// Change of the value that is there, which keeps its deadline.
    Extend(u8, u8),
    Merge(u8, u8, Lifetime),
    Touch(u8, Lifetime),
    Delete(u8),
    DeleteRange(u8, u8),
    TakeFirst,
    TakeAll,
    /// All records are replaced by these, which have the lifetime of the store.
    ReplaceAll(u8, u8),
    /// The clock is set so many milliseconds ahead.
    Ahead(u64),
    /// The clock is set so many milliseconds back.
    Back(u64),
    Flush,
    Compact,
    Work,
    Snapshot,
    Diff,
    Close,
    /// The store is left with its last writes in the journal, which the clock does not fall behind.
    Leave,
}

fn lifetime() -> impl Strategy<Value = Lifetime> {
    prop_oneof![
        Just(Lifetime::OfStore),
        Just(Lifetime::Kept),
        Just(Lifetime::Forever),
        (1..300_u64).prop_map(lasts),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..12_u8;
    prop_oneof![
        8 => (key(), any::<u8>(), lifetime()).prop_map(|(k, v, l)| Step::Put(k, v, l)),
        3 => (key(), any::<u8>()).prop_map(|(k, v)| Step::Extend(k, v)),
        3 => (key(), any::<u8>(), lifetime()).prop_map(|(k, v, l)| Step::Merge(k, v, l)),
        2 => (key(), lifetime()).prop_map(|(k, l)| Step::Touch(k, l)),
        1 => key().prop_map(Step::Delete),
        1 => (key(), key()).prop_map(|(low, high)| Step::DeleteRange(low, high)),
        1 => Just(Step::TakeFirst),
        1 => Just(Step::TakeAll),
        1 => (key(), key()).prop_map(|(low, high)| Step::ReplaceAll(low, high)),
        5 => select(vec![1, 20, 90, 150, 3000]).prop_map(Step::Ahead),
        2 => select(vec![1, 150, 5000]).prop_map(Step::Back),
        3 => Just(Step::Flush),
        1 => Just(Step::Compact),
        3 => Just(Step::Work),
        2 => Just(Step::Snapshot),
        2 => Just(Step::Diff),
        1 => Just(Step::Close),
        1 => Just(Step::Leave),
    ]
}

/// The records of the model, each with its deadline.
type State = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

const NEVER: u64 = u64::MAX;

fn alive(state: &State, now: u64) -> Records {
    let alive = state.iter().filter(|(_, (_, deadline))| *deadline > now);
    alive
        .map(|(key, (value, _))| (key.clone(), value.clone()))
        .collect()
}

struct Program {
    clocked: Clocked,
    store: Option<AtomicStore>,
    state: State,
    /// The clock of the store.
    now: u64,
    wall: u64,
    snapshots: Vec<(Snapshot, Records)>,
}

impl Program {
    fn new() -> Self {
        let mut program = Program {
            clocked: Clocked::new(),
            store: None,
            state: State::new(),
            now: BEGIN,
            wall: BEGIN,
            snapshots: Vec::new(),
        };
        program.open();
        program
    }

    fn open(&mut self) {
        let options = self.clocked.options().operator(Arc::new(Append));
        self.store = Some(
            self.clocked
                .open_with(options.memtable_bytes(2000).fan_in(2)),
        );
    }

    fn store(&self) -> &AtomicStore {
        self.store.as_ref().expect("it is open")
    }

    fn deadline(&self, key: &[u8], lifetime: Lifetime) -> u64 {
        let old = self.state.get(key).map(|(_, deadline)| *deadline);
        match (lifetime, old.filter(|deadline| *deadline > self.now)) {
            (Lifetime::Forever, _) => NEVER,
            (Lifetime::For(time), _) => self.now + time.as_millis() as u64,
            (Lifetime::Kept, Some(deadline)) => deadline,
            _ => self.now + TTL,
        }
    }

    fn value(&self, key: &[u8]) -> Option<&[u8]> {
        let (value, deadline) = self.state.get(key)?;
        (*deadline > self.now).then_some(value)
    }

    /// Replaces or removes the record of a key.
    fn set(&mut self, key: &[u8], value: Option<Vec<u8>>, lifetime: Lifetime) {
        let deadline = self.deadline(key, lifetime);
        match value.filter(|value| !value.is_empty()) {
            Some(value) => drop(self.state.insert(key.to_vec(), (value, deadline))),
            None => drop(self.state.remove(key)),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Put(key, value, lifetime) => {
                put(self.store(), &[key], &[value], lifetime);
                self.set(&[key], Some(vec![value]), lifetime);
            }
            Step::Extend(key, more) => {
                let mut seen = None;
                let mut plan = |_: usize, current: Option<&[u8]>| {
                    seen = current.map(<[u8]>::to_vec);
                    match current {
                        Some(value) => {
                            Change::Put(Lifetime::Kept.before(&[value, &[more]].concat()))
                        }
                        None => Change::Remove,
                    }
                };
                let updated = self.store().update(BLOCK, &[&[key]], &mut plan);
                prop_assert_eq!(updated, Ok(true));
                prop_assert_eq!(seen.as_deref(), self.value(&[key]));
                let extended = seen.map(|value| [&value[..], &[more]].concat());
                self.set(&[key], extended, Lifetime::Kept);
            }
            Step::Merge(key, operand, lifetime) => {
                let written = lifetime.before(&[operand]);
                self.store().merge(BLOCK, &[key], &written).expect("merged");
                let merged = match self.value(&[key]) {
                    Some(_) if operand == b'!' => vec![operand],
                    Some(value) => [value, &[operand]].concat(),
                    None => vec![operand],
                };
                self.set(&[key], Some(merged), lifetime);
            }
            Step::Touch(key, lifetime) => {
                let touched = self.store().set_lifetime(BLOCK, &[key], lifetime);
                let value = self.value(&[key]).map(<[u8]>::to_vec);
                prop_assert_eq!(touched, Ok(value.is_some()));
                if value.is_some() {
                    self.set(&[key], value, lifetime);
                }
            }
            Step::Delete(key) => {
                self.store().delete_unread(BLOCK, &[key]).expect("written");
                self.state.remove(&[key][..]);
            }
            Step::DeleteRange(low, high) => {
                let range = [low]..[high];
                self.store()
                    .store()
                    .delete_range(range.clone())
                    .expect("written");
                self.state.retain(|key, _| !range.contains(&[key[0]]));
            }
            Step::TakeFirst => self.take_first()?,
            Step::TakeAll => self.take_all()?,
            Step::ReplaceAll(low, high) => self.replace_all(low, high)?,
            Step::Ahead(time) => self.set_clock(self.wall + time),
            Step::Back(time) => self.set_clock(self.wall - time.min(self.wall - 1)),
            Step::Flush => self.store().store().flush().expect("flushed"),
            Step::Compact => self.store().store().compact().expect("compacted"),
            Step::Work => drop(self.store().store().work().expect("worked")),
            Step::Snapshot => {
                let snapshot = self.store().store().keep_snapshot(None);
                prop_assert_eq!(snapshot.known_len(), None);
                self.snapshots
                    .push((snapshot, alive(&self.state, self.now)));
            }
            Step::Diff => self.check_diffs()?,
            Step::Close => {
                self.snapshots.clear();
                self.store().store().close().expect("closed");
                self.store = None;
                self.open();
            }
            Step::Leave => {
                self.snapshots.clear();
                self.store = None;
                self.set_clock(self.wall.max(self.now));
                self.open();
            }
        }
        self.check()
    }

    fn take_first(&mut self) -> Result<(), TestCaseError> {
        let mut taken = None;
        let mut take = |record: Option<(&[u8], &[u8])>| {
            taken = record.map(|(key, value)| (key.to_vec(), value.to_vec()));
            Change::Remove
        };
        let took = self.store().update_end(BLOCK, End::First, &mut take);
        prop_assert_eq!(took, Ok(()));
        let first = alive(&self.state, self.now).into_iter().next();
        prop_assert_eq!(&taken, &first);
        if let Some((key, _)) = first {
            self.state.remove(&key);
        }
        Ok(())
    }

    fn take_all(&mut self) -> Result<(), TestCaseError> {
        let taken = self.store().take_all(BLOCK).expect("taken");
        let mut found = Vec::new();
        let mut visit = |key: &[u8], value: &[u8]| {
            found.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        let all = KeyRange::default();
        let scanned = taken.scan(BLOCK, all, Direction::Up, &mut visit);
        prop_assert_eq!(scanned, Ok(()));
        prop_assert_eq!(found, alive(&self.state, self.now));
        self.state.clear();
        Ok(())
    }

    fn replace_all(&mut self, low: u8, high: u8) -> Result<(), TestCaseError> {
        let replaced = self.store().replace_all(BLOCK, |visit| {
            for key in low..high {
                let _flow = visit(&[key], b"replaced");
            }
            Ok::<_, Error>(())
        });
        prop_assert_eq!(replaced, Ok(()));
        self.state.clear();
        for key in low..high {
            let value = Some(b"replaced".to_vec());
            self.set(&[key], value, Lifetime::OfStore);
        }
        Ok(())
    }

    fn set_clock(&mut self, wall: u64) {
        self.wall = wall;
        self.now = self.now.max(wall);
        self.clocked.fs.set_wall_clock(wall);
    }

    /// Checks the differences between neighbours, each walk with the deadline that the last has
    /// found.
    fn check_diffs(&self) -> Result<(), TestCaseError> {
        let mut deadline = 0;
        for pair in self.snapshots.windows(2) {
            let [(first, before), (second, after)] = pair else {
                continue;
            };
            let diff = first.diff_before(second, .., deadline);
            let mut diff = diff.expect("made").expect("of one store");
            let mut found = Vec::new();
            while let Some(next) = diff.next().expect("read") {
                let [first, second] = [next.first, next.second].map(|v| v.map(<[u8]>::to_vec));
                found.push((next.key.to_vec(), first, second));
            }
            let [before, after]: [BTreeMap<_, _>; 2] =
                [before, after].map(|records| records.iter().cloned().collect());
            let keys: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
            let expected: Vec<_> = keys
                .into_iter()
                .map(|key| {
                    (
                        key.clone(),
                        before.get(key).cloned(),
                        after.get(key).cloned(),
                    )
                })
                .filter(|(_, before, after)| before != after)
                .collect();
            prop_assert_eq!(found, expected);
            deadline = diff.first_deadline();
        }
        if let Some((snapshot, records)) = self.snapshots.last() {
            let is_same = *records == alive(&self.state, self.now);
            prop_assert!(is_same || !snapshot.is_current(deadline));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let expected = alive(&self.state, self.now);
        let store = self.store().store();
        for direction in [Direction::Up, Direction::Down] {
            let mut found = collect(store.scan_lending(.., direction).expect("a scan"));
            if direction == Direction::Down {
                found.reverse();
            }
            prop_assert_eq!(&found, &expected);
        }
        prop_assert_eq!(store.len(), Ok(expected.len()));
        for key in 0..12 {
            prop_assert_eq!(
                store.get(&[key]),
                Ok(self.value(&[key]).map(<[u8]>::to_vec))
            );
            let rest = self
                .state
                .get(&[key][..])
                .and_then(|(_, deadline)| match *deadline {
                    NEVER => Some(Lifetime::Forever),
                    deadline if deadline > self.now => Some(lasts(deadline - self.now)),
                    _ => None,
                });
            prop_assert_eq!(left(self.store(), &[key]), rest);
        }
        for (snapshot, expected) in &self.snapshots {
            let found = collect(snapshot.scan_lending(.., Direction::Up).expect("a scan"));
            prop_assert_eq!(&found, expected);
            for key in 0..12_u8 {
                let value = expected.iter().find(|(other, _)| *other == [key]);
                let value = value.map(|(_, value)| value.clone());
                prop_assert_eq!(snapshot.get(&[key]), Ok(value));
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases::config(150))]

    /// Random programs, whose clock jumps forward and back, beside a map with deadlines.
    #[test]
    fn stores_agree_with_a_map_with_deadlines(steps in prop::collection::vec(step(), 1..60)) {
        let mut program = Program::new();
        for step in &steps {
            program.step(step)?;
        }
    }
}
