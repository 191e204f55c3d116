//! Snapshot queries beside writers.

use ats_mem::{
    CaTree, Change, Direction, End, HashTable, KeyRange, Plain, Provided, RecordBox, Records,
    Skipped, When,
};
use ats_sync::pin;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

type Content = BTreeMap<u64, u64>;

fn put(store: &impl Records<Plain>, key: u64, value: u64) {
    let bytes = key.to_be_bytes();
    let guard = pin();
    while store
        .put(&bytes, RecordBox::new(&bytes, &[value], false), &guard)
        .is_err()
    {}
}

fn remove(store: &impl Records<Plain>, key: u64) {
    while store.remove(&key.to_be_bytes(), &pin()).is_err() {}
}

/// Writes the values of several keys, ascending, as one.
fn put_all(store: &impl Records<Plain>, pairs: &[(u64, u64)]) -> bool {
    let keys: Vec<_> = pairs.iter().map(|(key, _)| key.to_be_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let done = store.update_many(&keys, &pin(), &mut |at, _| {
        Change::Put(RecordBox::new(keys[at], &[pairs[at].1], false))
    });
    done.is_ok()
}

fn read(store: &impl Records<Plain>, when: When) -> Content {
    let mut content = Content::new();
    let scanned = store.scan(None, when, &pin(), &mut |record| {
        let key = u64::from_be_bytes(record.key().try_into().expect("a key of this test"));
        let other = content.insert(key, record.value()[0]);
        assert_eq!(other, None, "a key is met once");
        ControlFlow::Continue(())
    });
    scanned.expect("a scan of all keys");
    content
}

fn reclaim_all(store: &impl Records<Plain>) {
    while !store.reclaim(100, &pin()) {}
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// One thread writes at random, begins and ends queries, and checks that each query shows the
/// records of its beginning.
fn a_query_sees_records_of_its_beginning(store: &impl Records<Plain>, seed: u64) {
    let mut random = Random(seed);
    let mut content = Content::new();
    let mut queries = Vec::new();
    let mut fixed = false;
    for step in 0..3000 {
        let key = random.below(80);
        match random.below(20) {
            0..8 => {
                put(store, key, step);
                content.insert(key, step);
            }
            8..13 => {
                remove(store, key);
                content.remove(&key);
            }
            13 => {
                let pairs: Vec<_> = (key..key + 5).map(|key| (key, step)).collect();
                assert!(put_all(store, &pairs));
                content.extend(pairs);
            }
            14 if queries.len() < 6 => {
                let read_point = store.begin(&mut || Ok(true)).expect("no thread is inside");
                let read_point = read_point.expect("the store has moments");
                assert_eq!(read_point.objects, content.len() as i64);
                queries.push((read_point, content.clone()));
            }
            15 if !queries.is_empty() => {
                let at = random.below(queries.len() as u64) as usize;
                let (read_point, _) = queries.swap_remove(at);
                store.end(read_point);
            }
            16 => {
                store.reclaim(random.below(30) as usize, &pin());
            }
            17 if fixed => {
                fixed = false;
                store.unfix();
                while !store.tidy(100, &pin()) {}
            }
            17 => {
                fixed = true;
                store.fix();
            }
            _ => {
                for (read_point, then) in &queries {
                    assert_eq!(read(store, read_point.when()), *then);
                    let bytes = key.to_be_bytes();
                    let guard = pin();
                    let found = store.get_at(&bytes, read_point.when(), &guard);
                    assert_eq!(
                        found.map(|record| record.value()[0]),
                        then.get(&key).copied()
                    );
                }
                assert_eq!(read(store, When::NOW), content);
                assert_eq!(store.len(), content.len());
                let found = store
                    .get(&key.to_be_bytes(), &pin())
                    .map(|record| record.value()[0]);
                assert_eq!(found, content.get(&key).copied());
            }
        }
    }
    if fixed {
        store.unfix();
        while !store.tidy(100, &pin()) {}
    }
    for (read_point, then) in queries {
        assert_eq!(read(store, read_point.when()), then);
        store.end(read_point);
    }
    reclaim_all(store);
    assert_eq!(read(store, When::NOW), content);
    for key in 0..100 {
        remove(store, key);
    }
    assert_eq!(store.len(), 0);
    assert_eq!(store.memory().records, 0, "all that was kept has gone");
}

#[test]
fn a_query_of_a_tree_sees_records_of_its_beginning() {
    for seed in 0..8 {
        a_query_sees_records_of_its_beginning(&CaTree::new(), seed);
        a_query_sees_records_of_its_beginning(&CaTree::of_many_objects(), seed);
    }
}

#[test]
fn a_query_of_a_hash_table_sees_records_of_its_beginning() {
    for seed in 0..8 {
        a_query_sees_records_of_its_beginning(&HashTable::new(), seed);
    }
}

/// Returns the record of each key that a query sees, by its address.
fn seen<'g>(
    store: &'g impl Records<Plain>,
    when: When,
    guard: &'g ats_sync::Guard,
) -> Vec<&'g ats_mem::Record<Plain>> {
    let mut records = Vec::new();
    let scanned = store.scan(None, when, guard, &mut |record| {
        records.push(record);
        ControlFlow::Continue(())
    });
    scanned.expect("a scan of all keys");
    records
}

fn number(record: &ats_mem::Record<Plain>) -> u64 {
    u64::from_be_bytes(record.key().try_into().expect("a key of this test"))
}

/// Queries of one moment replace or remove the records that they see unless they have been written
/// since. Others write between them, and other queries still show the records of their beginning.
fn a_query_changes_unwritten_records(store: &impl Records<Plain>, seed: u64) {
    let mut random = Random(seed);
    let mut content = Content::new();
    let mut queries = Vec::new();
    for round in 0..150 {
        for _ in 0..random.below(40) {
            let key = random.below(80);
            put(store, key, round);
            content.insert(key, round);
        }
        match random.below(4) {
            0 if queries.len() < 4 => queries.push((begin(store), content.clone())),
            1 if !queries.is_empty() => store.end(queries.swap_remove(0).0),
            2 => drop(store.reclaim(random.below(30) as usize, &pin())),
            _ => {}
        }
        let then = content.clone();
        let read_point = begin(store);
        let guard = pin();
        let met = seen(store, read_point.when(), &guard);
        assert_eq!(met.len(), then.len());
        for record in met {
            let key = number(record);
            assert_eq!(then.get(&key), Some(&record.value()[0]));
            let other = random.below(80);
            match random.below(12) {
                0 => {
                    put(store, other, round);
                    content.insert(other, round);
                }
                1 => {
                    remove(store, other);
                    content.remove(&other);
                }
                2 => queries.push((begin(store), content.clone())),
                3 if !queries.is_empty() => store.end(queries.swap_remove(0).0),
                _ => {}
            }
            let removes = random.below(2) == 0;
            let bytes = key.to_be_bytes();
            let mut is_changed = false;
            let done = store.update_by(&bytes, read_point.query(), &guard, &mut |current| {
                is_changed = current.is_some_and(|current| std::ptr::eq(current, record));
                match (is_changed, removes) {
                    (false, _) => Change::Keep,
                    (true, true) => Change::Remove,
                    (true, false) => {
                        Change::Put(RecordBox::new(&bytes, &[record.value()[0] + 1000], false))
                    }
                }
            });
            done.expect("no key is held");
            match (is_changed, removes) {
                (false, _) => {}
                (true, true) => drop(content.remove(&key)),
                (true, false) => drop(content.insert(key, record.value()[0] + 1000)),
            }
        }
        drop(guard);
        assert_eq!(read(store, When::NOW), content);
        for (other, then) in &queries {
            assert_eq!(read(store, other.when()), *then);
        }
        store.end(read_point);
    }
    for (read_point, then) in queries {
        assert_eq!(read(store, read_point.when()), then);
        store.end(read_point);
    }
    reclaim_all(store);
    assert_eq!(read(store, When::NOW), content);
    (0..80).for_each(|key| remove(store, key));
    assert_eq!(store.len(), 0);
    assert_eq!(store.memory().records, 0, "all that was kept has gone");
}

#[test]
fn a_query_changes_unwritten_records_of_a_tree() {
    for seed in 0..4 {
        let trees = [CaTree::new(), CaTree::of_many_objects()];
        for tree in trees {
            let [splits, joins] = [[0, 0], [20, 20]][seed as usize % 2];
            ats_mem::Records::force_adaptation(&tree, splits, joins);
            a_query_changes_unwritten_records(&tree, seed);
        }
    }
}

#[test]
fn a_query_changes_unwritten_records_of_a_hash_table() {
    for seed in 0..4 {
        let table = HashTable::new();
        let [splits, joins] = [[0, 0], [20, 20]][seed as usize % 2];
        ats_mem::Records::force_adaptation(&table, splits, joins);
        a_query_changes_unwritten_records(&table, seed);
    }
}

/// A query that removes, or replaces, keeps no old records if no other one runs, and all if one
/// does.
#[test]
fn own_changes_keep_nothing_for_a_query_alone() {
    fn change(store: &impl Records<Plain>, is_alone: bool) {
        (0..1000).for_each(|key| put(store, key, key));
        let older = (!is_alone).then(|| begin(store));
        let read_point = begin(store);
        let guard = pin();
        for record in seen(store, read_point.when(), &guard) {
            let key = number(record);
            let done = store.update_by(
                record.key(),
                read_point.query(),
                &guard,
                &mut |_| match key % 2 {
                    0 => Change::Remove,
                    _ => Change::Put(RecordBox::new(record.key(), &[key + 1], false)),
                },
            );
            done.expect("no key is held");
        }
        drop(guard);
        let held = || {
            store.reclaim(0, &pin());
            store.reclaim(10_000, &pin());
            store
                .read_points()
                .expect("the store has moments")
                .held_bytes()
        };
        assert_eq!(held() == 0, is_alone);
        store.end(read_point);
        if let Some(older) = older {
            assert_eq!(read(store, older.when()).len(), 1000);
            store.end(older);
        }
        reclaim_all(store);
        assert_eq!(held(), 0);
        assert_eq!(store.len(), 500);
    }
    for is_alone in [true, false] {
        change(&CaTree::new(), is_alone);
        change(&HashTable::new(), is_alone);
    }
}

/// Pairs of keys come as one, and never change until a query takes them: it takes whole pairs.
fn pairs_are_taken_whole(store: &impl Records<Plain>) {
    let over = AtomicBool::new(false);
    let mut taken = 0;
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let over = &over;
            scope.spawn(move || {
                let mut pair = thread;
                while !over.load(Ordering::Relaxed) {
                    let keys = [pair, pair + (1 << 40)].map(|key| (key, pair));
                    while !put_all(store, &keys) {}
                    pair += 2;
                }
            });
        }
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 700 {
            let Ok(Some(read_point)) = store.begin(&mut || Ok(true)) else {
                continue;
            };
            let guard = pin();
            let mut removed = 0;
            for record in seen(store, read_point.when(), &guard) {
                let mut is_there = false;
                let mut take = || {
                    store.update_by(record.key(), read_point.query(), &guard, &mut |current| {
                        is_there = current.is_some_and(|current| std::ptr::eq(current, record));
                        if is_there {
                            Change::Remove
                        } else {
                            Change::Keep
                        }
                    })
                };
                while take().is_err() {}
                assert!(is_there, "no other thread removes it");
                removed += 1;
            }
            assert_eq!(removed % 2, 0);
            taken += removed;
            drop(guard);
            store.end(read_point);
            store.reclaim(1000, &pin());
        }
        over.store(true, Ordering::Relaxed);
    });
    reclaim_all(store);
    assert_eq!(store.len() % 2, 0);
    assert!(taken > 0);
}

#[test]
fn pairs_in_a_tree_are_taken_whole() {
    for splits in [0, 20] {
        let tree = CaTree::new();
        ats_mem::Records::force_adaptation(&tree, splits, splits);
        pairs_are_taken_whole(&tree);
    }
}

#[test]
fn pairs_in_a_hash_table_are_taken_whole() {
    for splits in [0, 20] {
        let table = HashTable::new();
        ats_mem::Records::force_adaptation(&table, splits, splits);
        pairs_are_taken_whole(&table);
    }
}

const ACCOUNTS: u64 = 500;
const BALANCE: u64 = 1000;

/// Writers move money between two accounts each time, and put and remove accounts whose balances
/// count for nothing; queries always find the same sum.
fn sums_stay(store: &impl Records<Plain>) {
    for account in 0..ACCOUNTS {
        put(store, 2 * account, BALANCE);
    }
    let over = AtomicBool::new(false);
    let queries = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let over = &over;
            scope.spawn(move || {
                let mut random = Random(seed);
                while !over.load(Ordering::Relaxed) {
                    transfer(store, &mut random);
                    let key = 2 * random.below(ACCOUNTS) + 1;
                    match random.below(2) {
                        0 => put(store, key, 0),
                        _ => remove(store, key),
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !over.load(Ordering::Relaxed) {
                    let Ok(read_point) = store.begin(&mut || Ok(true)) else {
                        continue;
                    };
                    let read_point = read_point.expect("the store has moments");
                    for _ in 0..2 {
                        let content = read(store, read_point.when());
                        let sum: u64 = content.values().sum();
                        assert_eq!(sum, ACCOUNTS * BALANCE);
                        assert_eq!(read_point.objects, content.len() as i64);
                        last += 1;
                    }
                    store.end(read_point);
                    store.reclaim(1000, &pin());
                }
                queries.fetch_add(last, Ordering::Relaxed);
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(700));
        over.store(true, Ordering::Relaxed);
    });
    reclaim_all(store);
    assert!(queries.into_inner() > 0);
}

/// Moves money, unless another thread is at it.
fn transfer(store: &impl Records<Plain>, random: &mut Random) {
    let from = random.below(ACCOUNTS - 1);
    let to = from + 1 + random.below(ACCOUNTS - 1 - from);
    let keys = [from, to].map(|account| (2 * account).to_be_bytes());
    let keys = [&keys[0][..], &keys[1][..]];
    let amount = random.below(5);
    let mut moved = 0;
    let _busy = store.update_many(&keys, &pin(), &mut |at, current| {
        let balance = current.expect("accounts stay").value()[0];
        let new = match at {
            0 => {
                moved = amount.min(balance);
                balance - moved
            }
            _ => balance + moved,
        };
        Change::Put(RecordBox::new(keys[at], &[new], false))
    });
}

#[test]
fn sums_in_a_tree_stay() {
    sums_stay(&CaTree::new());
}

#[test]
fn sums_in_a_hash_table_stay() {
    sums_stay(&HashTable::new());
}

#[test]
fn sums_in_a_tree_that_adapts_stay() {
    let tree = CaTree::new();
    ats_mem::Records::force_adaptation(&tree, 20, 20);
    sums_stay(&tree);
}

#[test]
fn sums_in_a_hash_table_that_adapts_stay() {
    let table = HashTable::new();
    ats_mem::Records::force_adaptation(&table, 20, 20);
    sums_stay(&table);
}

fn begin(store: &impl Records<Plain>) -> ats_mem::ReadPoint {
    let read_point = store.begin(&mut || Ok(true)).expect("no thread is inside");
    read_point.expect("the store has moments")
}

/// A walk of a fixed table continues from a key that was removed since, and from no other removed
/// key.
#[test]
fn a_key_that_was_removed_before_a_fixation_is_not_known() {
    use ats_mem::{NoSuchKey, Provided, Records};
    let table = HashTable::new();
    (0..3).for_each(|key| put(&table, key, key));
    let read_point = begin(&table);
    let next = |key: u64| table.next(&key.to_be_bytes(), &pin()).map(|_| ());
    remove(&table, 0);
    table.fix();
    remove(&table, 1);
    assert_eq!([0, 1, 2].map(next), [Err(NoSuchKey), Ok(()), Ok(())]);
    table.end(read_point);
    reclaim_all(&table);
    assert_eq!([0, 1, 2].map(next), [Err(NoSuchKey), Ok(()), Ok(())]);
    table.unfix();
    while !table.tidy(1, &pin()) {}
    assert_eq!(
        [0, 1, 2].map(next),
        [Err(NoSuchKey), Err(NoSuchKey), Ok(())]
    );
}

/// A query may pass more versions of a key than a call stack has room for.
#[test]
fn a_query_goes_back_a_long_way() {
    fn go_back(store: &impl Records<Plain>) {
        put(store, 1, 0);
        let first = begin(store);
        let mut read_points = Vec::new();
        for value in 1..20_000 {
            put(store, 1, value);
            read_points.push(begin(store));
        }
        let found = std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(128 << 10);
            let read = || read(store, first.when());
            let reader = small.spawn_scoped(scope, read).expect("a thread");
            reader.join().expect("the reader")
        });
        assert_eq!(found, Content::from([(1, 0)]));
        // Each query finds its record without a walk over all the others.
        for (read_point, value) in read_points.iter().zip(1..) {
            let guard = pin();
            let found = store.get_at(&1u64.to_be_bytes(), read_point.when(), &guard);
            assert_eq!(found.map(|record| record.value()[0]), Some(value));
        }
        for read_point in read_points {
            store.end(read_point);
        }
        store.end(first);
        reclaim_all(store);
    }
    go_back(&CaTree::new());
    go_back(&HashTable::new());
}

/// Records kept for queries are freed with the store, in slices or at once, and may be reclaimed in
/// between.
#[test]
fn a_store_is_freed_while_queries_run() {
    fn fill(store: &impl Records<Plain>) {
        (0..200).for_each(|key| put(store, key, key));
        let read_point = begin(store);
        (0..100).for_each(|key| put(store, key, 0));
        (50..150).for_each(|key| remove(store, key));
        (120..130).for_each(|key| put(store, key, 1));
        let _endless = std::mem::ManuallyDrop::new(read_point);
    }
    for slices in 0..3 {
        let mut tree = CaTree::<Plain>::new();
        fill(&tree);
        for _ in 0..slices {
            tree.free_some(30);
            tree.reclaim(20, &pin());
        }
        let mut table = HashTable::<Plain>::new();
        fill(&table);
        for _ in 0..slices {
            table.free_some(30);
            table.reclaim(20, &pin());
        }
    }
}

/// Slices are freed after the last query, so a reclaimed version leads to records freed before.
#[test]
fn versions_reclaimed_in_slices_lead_to_no_freed_record() {
    fn fill(store: &impl Records<Plain>) {
        (0..200).for_each(|key| put(store, key, key));
        let read_point = begin(store);
        (0..100).for_each(|key| put(store, key, 0));
        (50..150).for_each(|key| remove(store, key));
        store.end(read_point);
    }
    let reuse = || (0..300).map(|key| RecordBox::<Plain>::new(&u64::to_be_bytes(key), &[7], false));
    let mut tree = CaTree::<Plain>::new();
    fill(&tree);
    tree.free_some(usize::MAX);
    let reused: Vec<_> = reuse().collect();
    reclaim_all(&tree);
    assert!(reused.iter().all(|record| record.value() == [7]));
    let mut table = HashTable::<Plain>::new();
    fill(&table);
    table.free_some(usize::MAX);
    let reused: Vec<_> = reuse().collect();
    reclaim_all(&table);
    assert!(reused.iter().all(|record| record.value() == [7]));
}

/// Values that count their number.
struct Counted;

static LIVE: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(0);

impl ats_mem::Release for Counted {
    unsafe fn release(_: &[u64]) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until at most `count` values exist. Other tests of this program hold guards now and then.
fn at_most(count: i64) {
    let start = std::time::Instant::now();
    while LIVE.load(Ordering::Relaxed) > count {
        let left = LIVE.load(Ordering::Relaxed);
        assert!(start.elapsed().as_secs() < 20, "{left} values are left");
        ats_sync::collect();
        std::thread::yield_now();
    }
}

/// Records that only short queries need go when they end, although a query runs that is older than
/// all of them, and one that began between.
fn short_queries_beside_a_long_one(store: impl Records<Counted>) {
    const KEYS: u64 = 10;
    let guarded = |key: u64, value: Option<u64>| {
        let (bytes, guard) = (key.to_be_bytes(), pin());
        let done = match value {
            None => store.remove(&bytes, &guard),
            Some(value) => {
                LIVE.fetch_add(1, Ordering::Relaxed);
                store.put(&bytes, RecordBox::new(&bytes, &[value], true), &guard)
            }
        };
        assert!(done.is_ok());
    };
    let begin = || {
        store
            .begin(&mut || Ok(true))
            .expect("no writer")
            .expect("it has moments")
    };
    let see = |when: When| {
        let mut met = Content::new();
        let scanned = store.scan(None, when, &pin(), &mut |record| {
            let key = u64::from_be_bytes(record.key().try_into().expect("a key"));
            met.insert(key, record.value()[0]);
            ControlFlow::Continue(())
        });
        assert!(scanned.is_ok());
        met
    };
    let reclaim = || while !store.reclaim(7, &pin()) {};
    (0..KEYS).for_each(|key| guarded(key, Some(key)));
    let mut long = vec![(begin(), see(When::NOW))];
    let mut short = Vec::new();
    for round in 0..300 {
        if round == 150 {
            long.push((begin(), see(When::NOW)));
        }
        short.push((begin(), see(When::NOW)));
        for key in 0..KEYS {
            guarded(key, (round % 3 > 0 || key % 2 > 0).then_some(round));
        }
        if short.len() == 4 {
            // The first one, one between, and so on.
            for at in [1, 0, 0] {
                let (read_point, then) = short.remove(at);
                assert_eq!(see(read_point.when()), then);
                store.end(read_point);
                reclaim();
                long.iter().chain(&short).for_each(|(read_point, then)| {
                    assert_eq!(see(read_point.when()), *then);
                });
            }
        }
    }
    // One value of each key at most for the present and for each query, and the values that the
    // last query ends with.
    at_most((KEYS * (1 + long.len() + short.len()) as u64) as i64);
    for (read_point, then) in long.into_iter().chain(short) {
        assert_eq!(see(read_point.when()), then);
        store.end(read_point);
        reclaim();
    }
    at_most(KEYS as i64);
    drop(store);
    at_most(0);
}

#[test]
fn a_long_query_keeps_only_versions_it_may_read() {
    short_queries_beside_a_long_one(CaTree::new());
    short_queries_beside_a_long_one(HashTable::new());
}

/// Checks counts of ranges, and records found by rank, while removals are kept.
fn ranks_do_not_count_removals(tree: &CaTree<Plain>, seed: u64, adapts: u32) {
    ats_mem::Records::force_adaptation(tree, adapts, adapts);
    let mut random = Random(seed);
    let mut content = Content::new();
    let mut queries = Vec::new();
    let skip = |from: u64, direction, most: usize| {
        let (low, guard) = (from.to_be_bytes(), pin());
        let range = KeyRange {
            low: Some(&low),
            high: None,
        };
        let go_on = &mut || ControlFlow::Continue(());
        let object = |skipped: Skipped<'_, Plain>| match skipped {
            Skipped::At(record, 0) => Ok(record.value()[0]),
            Skipped::All(count) => Err(count),
            _ => panic!("each record is one object, and no thread pauses"),
        };
        let found = object(tree.skip(range, direction, most, &guard, go_on));
        let at_once = tree.skip_at_once(range, direction, most, &guard);
        assert_eq!(at_once.map(object), Some(found));
        found
    };
    for step in 0..2000 {
        let key = random.below(200);
        match random.below(12) {
            0..4 => {
                put(tree, key, step);
                content.insert(key, step);
            }
            4..7 => {
                remove(tree, key);
                content.remove(&key);
            }
            7 => {
                let pairs: Vec<_> = (key..key + 4).map(|key| (key, step)).collect();
                assert!(put_all(tree, &pairs));
                content.extend(pairs);
            }
            8 => {
                // An aborted batch restores removals.
                let keys = [key, key + 1].map(u64::to_be_bytes);
                let keys = [&keys[0][..], &keys[1][..]];
                let done = tree.update_many(&keys, &pin(), &mut |at, _| match at {
                    0 => Change::Put(RecordBox::new(keys[at], &[step], false)),
                    _ => Change::Abort,
                });
                assert_eq!(done, Ok(false));
            }
            9 => {
                let (end, outermost) = match random.below(2) {
                    0 => (End::First, content.pop_first()),
                    _ => (End::Last, content.pop_last()),
                };
                let mut taken = None;
                let done = tree.update_end(end, &pin(), &mut |current| {
                    taken = current.map(|record| record.value()[0]);
                    current.map_or(Change::Keep, |_| Change::Remove)
                });
                assert_eq!((done, taken), (Ok(()), outermost.map(|(_, value)| value)));
            }
            10 if queries.len() < 3 => queries.push((begin(tree), content.clone())),
            10 => {
                let (read_point, _) = queries.remove(random.below(3) as usize);
                tree.end(read_point);
                tree.reclaim(random.below(60) as usize, &pin());
            }
            _ => {
                let above = content.range(key..).count();
                assert_eq!(skip(key, Direction::Up, usize::MAX), Err(above));
                let rank = random.below(40) as usize;
                let there = content.range(key..).nth(rank);
                let there = there.map_or(Err(above), |(_, value)| Ok(*value));
                assert_eq!(skip(key, Direction::Up, rank), there);
                let there = content.range(key..).nth_back(rank);
                let there = there.map_or(Err(above), |(_, value)| Ok(*value));
                assert_eq!(skip(key, Direction::Down, rank), there);
                let first = tree.first(&pin()).map(|record| record.value()[0]);
                assert_eq!(first, content.first_key_value().map(|(_, value)| *value));
                for (read_point, then) in &queries {
                    assert_eq!(read(tree, read_point.when()), *then);
                }
            }
        }
    }
    for (read_point, _) in queries {
        tree.end(read_point);
    }
    reclaim_all(tree);
    assert_eq!(read(tree, When::NOW), content);
    assert_eq!(skip(0, Direction::Up, usize::MAX), Err(content.len()));
}

#[test]
fn ranks_in_a_tree_do_not_count_removals() {
    for seed in 0..6 {
        let adapts = 20 * (seed as u32 % 2);
        ranks_do_not_count_removals(&CaTree::new(), seed, adapts);
        ranks_do_not_count_removals(&CaTree::of_many_objects(), seed, adapts);
    }
}
