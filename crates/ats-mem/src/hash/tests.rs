//! Unit tests of the structure: after every kind of change it must be consistent.

use super::directory::{MIN_BUCKETS, bucket_of};
use super::resize::steps;
use super::stripes::Advice;
use super::*;
use crate::When;
use crate::record::{Plain, RecordBox, Weight};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};

type Table = HashTable<Plain>;

impl<R: Release> HashTable<R> {
    /// Checks all invariants that hold while no thread writes.
    fn check(&self) {
        let guard = pin();
        let active = self.directory.active();
        let (mut records, mut bytes, mut lines) = (0, 0, 0);
        let mut keys = HashSet::new();
        for bucket in 0..active {
            let first = self.active_bucket(bucket, &guard);
            first.check();
            lines += first.lines_behind();
            first.for_each(|_, word| {
                let record = word.record();
                let hash = self.seed.hash(record.key());
                assert_eq!(bucket_of(hash, active), bucket, "record in a wrong bucket");
                assert!(word.may_be(hash), "wrong tag");
                assert!(
                    !word.is_deleted() || self.is_fixed(),
                    "deleted record was not purged"
                );
                if word.is_counted() {
                    records += 1;
                    assert!(keys.insert(record.key()), "key twice");
                }
                bytes += record.bytes() as i64;
            });
        }
        let weight = Weight {
            objects: records,
            bytes,
        };
        assert_eq!(self.stripes.records(&guard) as i64, records);
        assert_eq!(self.stripes.weight(&guard), weight);
        assert_eq!(self.lines(), lines);
        assert!(self.stripes.count(&guard) * stripes::MIN_BUCKETS_PER_STRIPE <= active);
    }

    /// Changes the number of locks like contention.
    fn adapt_locks(&self, advice: Advice) {
        let _resizing = self.rare().resizing.lock();
        self.stripes.adapt(advice, self.directory.active(), &pin());
    }
}

fn put(table: &Table, key: &[u8], value: u64) {
    let record = &mut Some(RecordBox::new(key, &[value], false));
    let done = table.update(key, &pin(), &mut |_| {
        Change::Put(record.take().expect("decide is called once"))
    });
    assert_eq!(done, Ok(()));
}

fn remove(table: &Table, key: &[u8]) {
    assert_eq!(table.update(key, &pin(), &mut |_| Change::Remove), Ok(()));
}

fn get(table: &Table, key: &[u8]) -> Option<u64> {
    table.get(key, &pin()).map(|record| record.value()[0])
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Returns the keys that a walk by `next` meets from one end to the other.
fn walk_keys(table: &Table) -> Vec<Vec<u8>> {
    let guard = pin();
    let mut keys = Vec::new();
    let mut here = table.first(&guard);
    while let Some(record) = here {
        keys.push(record.key().to_vec());
        here = table.next(record.key(), &guard).expect("the key is there");
    }
    keys
}

fn scan_keys(table: &Table, after: Option<&[u8]>) -> Result<Vec<Vec<u8>>, NoSuchKey> {
    let mut keys = Vec::new();
    table.scan(after, When::NOW, &pin(), &mut |record| {
        keys.push(record.key().to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}

#[derive(Clone, Debug)]
enum Action {
    Put(u8, u64),
    Keep(u8),
    Remove(u8),
    Batch(Vec<(u8, bool)>, u64, Option<usize>),
    Fix,
    Unfix,
    Next(u8),
    Scan(u8),
    Bulk(u16),
    Unbulk,
    Locks(bool),
}

fn action() -> impl Strategy<Value = Action> {
    let name = 0..40u8;
    prop_oneof![
        8 => (name.clone(), any::<u64>()).prop_map(|(key, value)| Action::Put(key, value)),
        1 => name.clone().prop_map(Action::Keep),
        6 => name.clone().prop_map(Action::Remove),
        3 => (
            proptest::collection::vec((name.clone(), any::<bool>()), 0..6),
            any::<u64>(),
            proptest::option::of(0..6usize),
        )
            .prop_map(|(keys, value, abort)| Action::Batch(keys, value, abort)),
        1 => Just(Action::Fix),
        1 => Just(Action::Unfix),
        2 => name.clone().prop_map(Action::Next),
        2 => name.prop_map(Action::Scan),
        1 => (0..600u16).prop_map(Action::Bulk),
        1 => Just(Action::Unbulk),
        1 => any::<bool>().prop_map(Action::Locks),
    ]
}

/// Returns keys of all lengths, including the empty one and long ones.
fn name(number: u8) -> Vec<u8> {
    let len = usize::from(number) * 7 % 45;
    let mut name = vec![b'x'; len];
    if let Some(last) = name.last_mut() {
        *last = number;
    }
    name
}

/// The expected content of the table.
#[derive(Default)]
struct Model {
    records: HashMap<Vec<u8>, u64>,
    /// Keys deleted since the table was fixed.
    ghosts: HashSet<Vec<u8>>,
    fixed: usize,
    bulk: u64,
}

impl Model {
    fn put(&mut self, key: Vec<u8>, value: u64) {
        self.records.insert(key, value);
    }

    fn remove(&mut self, key: &[u8]) {
        if self.records.remove(key).is_some() && self.fixed > 0 {
            self.ghosts.insert(key.to_vec());
        }
    }

    fn knows(&self, key: &[u8]) -> bool {
        self.records.contains_key(key) || self.ghosts.contains(key)
    }

    fn run(&mut self, table: &Table, action: Action) {
        match action {
            Action::Put(number, value) => {
                put(table, &name(number), value);
                self.put(name(number), value);
            }
            Action::Keep(number) => {
                let expected = self.records.get(&name(number)).copied();
                let guard = pin();
                let done = table.update(&name(number), &guard, &mut |current| {
                    assert_eq!(current.map(|record| record.value()[0]), expected);
                    Change::Keep
                });
                assert_eq!(done, Ok(()));
            }
            Action::Remove(number) => {
                remove(table, &name(number));
                self.remove(&name(number));
            }
            Action::Batch(keys, value, abort) => self.batch(table, &keys, value, abort),
            Action::Fix => {
                table.fix();
                self.fixed += 1;
            }
            Action::Unfix if self.fixed > 0 => {
                table.unfix();
                table.tidy(usize::MAX, &pin());
                self.fixed -= 1;
                if self.fixed == 0 {
                    self.ghosts.clear();
                }
            }
            Action::Unfix => {}
            Action::Next(number) => {
                let guard = pin();
                let next = table.next(&name(number), &guard);
                assert_eq!(next.is_ok(), self.knows(&name(number)));
                if let Ok(next) = next {
                    let rest = scan_keys(table, Some(&name(number))).expect("the key is known");
                    assert_eq!(next.map(Record::key), rest.first().map(Vec::as_slice));
                }
            }
            Action::Scan(number) => self.scan(table, &name(number)),
            Action::Bulk(count) => {
                for number in self.bulk..self.bulk + u64::from(count) {
                    put(table, &key(number), number);
                    self.put(key(number).to_vec(), number);
                }
                self.bulk += u64::from(count);
            }
            Action::Unbulk => {
                for number in 0..self.bulk {
                    remove(table, &key(number));
                    self.remove(&key(number));
                }
                self.bulk = 0;
            }
            Action::Locks(double) => {
                table.adapt_locks(if double {
                    Advice::Double
                } else {
                    Advice::Halve
                });
            }
        }
    }

    fn batch(&mut self, table: &Table, keys: &[(u8, bool)], value: u64, abort: Option<usize>) {
        let wanted: BTreeMap<Vec<u8>, bool> =
            keys.iter().map(|(key, put)| (name(*key), *put)).collect();
        let keys: Vec<&[u8]> = wanted.keys().map(Vec::as_slice).collect();
        let changes: Vec<bool> = wanted.values().copied().collect();
        let guard = pin();
        let done = table.update_many(&keys, &guard, &mut |index, current| {
            assert_eq!(
                current.map(|record| record.value()[0]),
                self.records.get(keys[index]).copied()
            );
            if abort == Some(index) {
                Change::Abort
            } else if changes[index] {
                Change::Put(RecordBox::new(keys[index], &[value], false))
            } else {
                Change::Keep
            }
        });
        let aborted = abort.is_some_and(|index| index < keys.len());
        assert_eq!(done, Ok(!aborted));
        if !aborted {
            for (key, put) in wanted {
                if put {
                    self.put(key, value);
                }
            }
        }
    }

    fn scan(&self, table: &Table, from: &[u8]) {
        match scan_keys(table, Some(from)) {
            Err(NoSuchKey) => assert!(!self.knows(from)),
            Ok(rest) => {
                assert!(self.knows(from));
                let all = scan_keys(table, None).expect("no key to be missing");
                assert!(
                    all.ends_with(&rest),
                    "the order does not depend on the start"
                );
            }
        }
    }

    fn check(&self, table: &Table) {
        table.check();
        assert_eq!(table.len(), self.records.len());
        for number in 0..40 {
            let expected = self.records.get(&name(number)).copied();
            assert_eq!(get(table, &name(number)), expected);
        }
        for number in 0..self.bulk {
            let expected = self.records.get(&key(number)[..]).copied();
            assert_eq!(get(table, &key(number)), expected);
        }
        let walked = walk_keys(table);
        assert_eq!(walked.len(), self.records.len());
        assert!(walked.iter().all(|key| self.records.contains_key(key)));
        assert_eq!(scan_keys(table, None), Ok(walked));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_a_map(actions in proptest::collection::vec(action(), 0..60)) {
        let table = Table::new();
        let mut model = Model::default();
        for action in actions {
            model.run(&table, action);
            // Steps go on in buckets whose order was remembered before the action.
            if model.records.len() < 100 {
                prop_assert_eq!(scan_keys(&table, None), Ok(walk_keys(&table)));
            }
        }
        model.check(&table);
        while model.fixed > 0 {
            model.run(&table, Action::Unfix);
        }
        model.check(&table);
    }
}

#[test]
fn grows_to_the_intended_load_and_gives_memory_back() {
    const RECORDS: u64 = if cfg!(miri) { 300 } else { 100_000 };
    let table = Table::new();
    let empty = table.bytes();
    for number in 0..RECORDS {
        put(&table, &key(number), number);
    }
    table.check();
    let buckets = table.directory.active() as u64;
    assert!(
        (RECORDS / 4..=RECORDS / 4 + 16).contains(&buckets),
        "{buckets} buckets"
    );
    for number in 0..RECORDS {
        assert_eq!(get(&table, &key(number)), Some(number));
        remove(&table, &key(number));
    }
    table.check();
    assert_eq!(table.directory.active(), MIN_BUCKETS);
    assert!(table.is_empty());
    assert!(table.bytes() <= empty + 1024, "{} bytes", table.bytes());
}

/// Removals that a query looks through occupy slots, and long buckets make each step slow.
#[test]
fn removals_that_a_query_needs_keep_their_buckets() {
    const RECORDS: u64 = 10_000;
    let table = Table::new();
    for number in 0..RECORDS {
        put(&table, &key(number), number);
    }
    let buckets = table.directory.active();
    let read_point = table.begin(&mut || Ok(true)).ok().flatten();
    let read_point = read_point.expect("a table has moments, and nothing holds its locks");
    for number in 0..RECORDS {
        remove(&table, &key(number));
    }
    assert_eq!((table.len(), table.directory.active()), (0, buckets));
    // A key that comes back takes the slot of its removal.
    for number in 0..RECORDS / 2 {
        put(&table, &key(number), number);
        remove(&table, &key(number));
    }
    assert_eq!(table.directory.active(), buckets);
    table.end(read_point);
    while !table.reclaim(100, &pin()) {}
    for number in 0..RECORDS {
        put(&table, &key(number), number);
        remove(&table, &key(number));
    }
    table.check();
    assert_eq!(table.directory.active(), MIN_BUCKETS);
}

#[test]
fn batches_make_the_table_grow_and_undone_ones_shrink() {
    let table = Table::new();
    let keys: Vec<_> = (0..5000).map(key).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
    let guard = pin();
    let put = |index: usize| Change::Put(RecordBox::new(keys[index], &[1], false));
    let undone = table.update_many(&keys, &guard, &mut |index, current| {
        assert!(current.is_none());
        if index == 4999 {
            Change::Abort
        } else {
            put(index)
        }
    });
    assert_eq!(undone, Ok(false));
    table.check();
    assert!(table.is_empty() && table.first(&guard).is_none());
    let done = table.update_many(&keys, &guard, &mut |index, _| put(index));
    assert_eq!(done, Ok(true));
    table.check();
    assert_eq!(table.len(), 5000);
    assert!(table.directory.active() >= 5000 / 4);
}

#[test]
fn an_open_batch_is_not_seen_and_holds_its_keys() {
    let table = Table::new();
    put(&table, b"old", 1);
    let keys: [&[u8]; 2] = [b"new", b"old"];
    let guard = pin();
    let done = table.update_many(&keys, &guard, &mut |index, current| {
        if index == 1 {
            // `new` is installed by now, and this runs inside the batch.
            assert!(table.get(b"new", &guard).is_none());
            assert_eq!(table.next(b"new", &guard).err(), Some(NoSuchKey));
            assert_eq!(current.map(|record| record.value()), Some(&[1][..]));
        }
        Change::Put(RecordBox::new(keys[index], &[2], false))
    });
    assert_eq!(done, Ok(true));
    assert_eq!(
        (get(&table, b"new"), get(&table, b"old")),
        (Some(2), Some(2))
    );
}

#[test]
fn a_fixed_table_remembers_deleted_keys() {
    let table = Table::new();
    for number in 0..1000 {
        put(&table, &key(number), number);
    }
    table.fix();
    let guard = pin();
    let mut met = HashSet::new();
    let mut here = table.first(&guard);
    while let Some(record) = here {
        assert!(met.insert(record.key()));
        remove(&table, record.key());
        here = table.next(record.key(), &guard).expect("fixed");
    }
    assert_eq!(met.len(), 1000);
    assert!(table.is_empty());
    put(&table, &key(1), 11);
    assert_eq!(get(&table, &key(1)), Some(11));
    table.unfix();
    table.tidy(usize::MAX, &guard);
    table.check();
    assert_eq!(table.next(&key(2), &guard).err(), Some(NoSuchKey));
    assert!(matches!(table.next(&key(1), &guard), Ok(None)));
}

#[test]
fn a_walk_goes_on_while_the_table_grows_and_shrinks() {
    let table = Table::new();
    for number in 0..100 {
        put(&table, &key(number), number);
    }
    let mut met = HashSet::new();
    let guard = pin();
    let mut here = table.first(&guard);
    while let Some(record) = here {
        let number = record.value()[0];
        if number < 100 {
            assert!(met.insert(number), "{number} twice");
        }
        for extra in 0..200 {
            let extra = key(1000 + number * 200 + extra);
            if met.len() < 50 {
                put(&table, &extra, 1000);
            } else {
                remove(&table, &extra);
            }
        }
        here = table.next(&key(number), &guard).unwrap_or(None);
        // Added keys are skipped: only the first hundred count.
        while let Some(added) = here.filter(|record| record.value()[0] >= 100) {
            here = table.next(added.key(), &guard).expect("present");
        }
    }
    assert_eq!(met.len(), 100);
    table.check();
}

#[test]
fn locks_follow_contention() {
    let table = Table::new();
    for number in 0..1000 {
        put(&table, &key(number), number);
    }
    let guard = pin();
    assert_eq!(table.stripes.count(&guard), 1);
    for _ in 0..4 {
        table.stripes.lock(7, &guard).contend(2000);
        put(&table, &key(7), 7);
    }
    assert!(table.stripes.count(&guard) > 1);
    table.check();
    for _ in 0..10 {
        for stripe in 0..16 {
            table.stripes.lock(stripe, &guard).contend(-40_000);
        }
        for number in 0..1000 {
            put(&table, &key(number), number);
        }
    }
    assert_eq!(table.stripes.count(&guard), 1);
    table.check();
}

/// Removes a key and puts another, `times` times, as if the table had one record more or less each
/// time. Returns the number of changes of the number of buckets.
fn churn(table: &Table, keys: &mut std::ops::Range<u64>, times: usize) -> usize {
    let mut changes = 0;
    let mut buckets = table.directory.active();
    let mut note = || {
        let now = table.directory.active();
        changes += now.abs_diff(buckets);
        buckets = now;
    };
    for _ in 0..times {
        remove(table, &key(keys.start));
        note();
        put(table, &key(keys.end), keys.end);
        note();
        *keys = keys.start + 1..keys.end + 1;
    }
    changes
}

/// After any growth or shrinkage, a table of stable size with as many locks as possible does not
/// change: it does not take one stripe, which by chance has more records than another, for the
/// whole.
#[test]
fn a_table_with_many_locks_rests() {
    const KEYS: u64 = if cfg!(miri) { 600 } else { 60_000 };
    for left in [KEYS, KEYS / 4, KEYS / 20, KEYS / 100] {
        let table = Table::new();
        let mut keys = 0..KEYS;
        for number in keys.clone() {
            put(&table, &key(number), number);
            if number.is_multiple_of(100) {
                table.adapt_locks(Advice::Double);
            }
        }
        while keys.end - keys.start > left {
            remove(&table, &key(keys.start));
            keys.start += 1;
        }
        // The table may be about to change.
        churn(&table, &mut keys, left as usize);
        let (buckets, locks) = (table.directory.active(), table.stripes.count(&pin()));
        let changes = churn(&table, &mut keys, 4 * left as usize);
        table.check();
        assert!(
            changes <= 2 * steps(buckets, locks),
            "{left} records, {buckets} buckets, {locks} locks: {changes} changes"
        );
        let load = left as usize / table.directory.active();
        assert!(
            (1..=4).contains(&load) || left < 16,
            "{load} records a bucket"
        );
    }
}

#[test]
fn can_be_freed_in_slices_and_used_in_between() {
    let mut table = Table::new();
    for number in 0..10_000 {
        put(&table, &key(number), number);
    }
    let mut slices = 0;
    while !table.free_some(100) {
        slices += 1;
        table.check();
        if slices == 50 {
            put(&table, &key(1), 1);
        }
        assert!(slices < 1000);
    }
    assert!(slices >= 90, "{slices} slices");
    assert!(table.is_empty());
    assert_eq!(scan_keys(&table, None), Ok(vec![]));
    put(&table, &key(5), 5);
    assert_eq!(get(&table, &key(5)), Some(5));
}
