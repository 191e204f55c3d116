//! Interleavings of few threads in the places where the structure changes, chosen by a scheduler that
//! looks for trouble. Runs under `RUSTFLAGS="--cfg shuttle"`.
//!
//! Each test builds a store that is one write away from a change of its structure, lets writers make
//! the change, and readers look at keys that nobody touches. An access to an atomic is where the
//! scheduler can switch. It does not show the effects of weak memory orders; `loom`, which does, is
//! too slow for structures of this size.
#![cfg(shuttle)]

use ats_mem::{Backend, Busy, CaTree, Change, HashTable, Plain, RecordBox};
use ats_sync::pin;
use ats_sync::shim::atomic::quietly;
use shuttle::rand::Rng;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner, thread};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long each scheduler may try, for each test.
const TIME: Duration = Duration::from_millis(1000);
/// More would not be reached in the time.
const ITERATIONS: usize = 1_000_000;

/// Runs a scenario under a scheduler that switches at random, and under one that switches rarely but
/// with a guaranteed chance of finding bugs that need few switches (Burckhardt and others, ASPLOS
/// 2010).
fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    let scenario = Arc::new(scenario);
    let again = Arc::clone(&scenario);
    Runner::new(RandomScheduler::new(ITERATIONS), config()).run(move || scenario());
    Runner::new(PctScheduler::new(3, ITERATIONS), config()).run(move || again());
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.max_steps = MaxSteps::FailAfter(1_000_000);
    config.max_time = Some(TIME);
    config.silence_warnings = true;
    config
}

/// Runs all of these at once, and ends with them.
fn together(threads: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = threads.into_iter().map(thread::spawn).collect();
    for thread in threads {
        thread.join().expect("a thread of the scenario");
    }
}

macro_rules! together {
    ($($share:ident => $body:block)*) => {
        together(vec![$({
            let $share = Arc::clone(&$share);
            Box::new(move || $body)
        }),*])
    };
}

/// Keys of this number and above are so long that the tree keeps no tombstones of them, and merges
/// leaves before they are empty.
const LONG: u64 = 1 << 32;

fn key(number: u64) -> Vec<u8> {
    let tail = if number < LONG { 0 } else { 16 };
    [&number.to_be_bytes()[..], &[1; 16][..tail]].concat()
}

/// Where the numbers of a hash table begin: each begin is another distribution over the buckets, and
/// in some of them buckets overflow.
fn base() -> u64 {
    1000 * shuttle::rand::thread_rng().gen_range(0..1000)
}

fn put(store: &impl Backend<Plain>, number: u64, value: u64) {
    let key = key(number);
    let guard = pin();
    let put = || {
        store.update(&key, &guard, &mut |_| {
            Change::Put(RecordBox::new(&key, &[value], false))
        })
    };
    while put() == Err(Busy) {
        thread::yield_now();
    }
}

fn remove(store: &impl Backend<Plain>, number: u64) {
    let guard = pin();
    while store.update(&key(number), &guard, &mut |_| Change::Remove) == Err(Busy) {
        thread::yield_now();
    }
}

/// Puts `value` under all of these numbers, which ascend, as one.
fn put_all(store: &impl Backend<Plain>, numbers: &[u64], value: u64) {
    let keys: Vec<Vec<u8>> = numbers.iter().map(|number| key(*number)).collect();
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let guard = pin();
    let put = || {
        store.update_many(&keys, &guard, &mut |index, _| {
            Change::Put(RecordBox::new(keys[index], &[value], false))
        })
    };
    while put() != Ok(true) {
        thread::yield_now();
    }
}

fn get(store: &impl Backend<Plain>, number: u64) -> Option<u64> {
    store
        .get(&key(number), &pin())
        .map(|record| record.value()[0])
}

/// The numbers a scan meets, in its order.
fn numbers(store: &impl Backend<Plain>) -> Vec<u64> {
    let mut met = Vec::new();
    let scanned = store.scan(None, &pin(), &mut |record| {
        let number = record
            .key()
            .first_chunk()
            .expect("keys of eight bytes or more");
        met.push(u64::from_be_bytes(*number));
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    met
}

/// Asserts that a scan meets each of `stay` once, and of the others none twice.
fn scan_meets(store: &impl Backend<Plain>, stay: impl Iterator<Item = u64>) {
    let mut met = numbers(store);
    met.sort_unstable();
    assert!(met.windows(2).all(|pair| pair[0] < pair[1]), "{met:?}");
    for number in stay {
        assert!(met.contains(&number), "{number} is not in {met:?}");
    }
}

fn filled<S: Backend<Plain> + Default>(numbers: impl Iterator<Item = u64>) -> Arc<S> {
    let store = S::default();
    quietly(|| numbers.for_each(|number| put(&store, number, number)));
    Arc::new(store)
}

/// Even numbers, so that odd ones fall between them.
fn evens(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|number| 2 * number)
}

/// The keys of a full leaf: the next splits it.
const LEAF: u64 = 32;

#[test]
fn readers_meet_a_leaf_that_splits() {
    explore(|| {
        let tree = filled::<CaTree<Plain>>(evens(LEAF));
        together! {
            tree => { put(&*tree, 33, 33) }
            tree => {
                for number in [0, 30, 32, 34, 62] {
                    assert_eq!(get(&*tree, number), Some(number));
                }
            }
            tree => { scan_meets(&*tree, evens(LEAF)) }
        }
        assert_eq!((get(&*tree, 33), tree.len()), (Some(33), 33));
    });
}

#[test]
fn two_writers_split_the_same_leaf() {
    explore(|| {
        let tree = filled::<CaTree<Plain>>(evens(LEAF));
        together! {
            tree => { put(&*tree, 33, 1) }
            tree => { put(&*tree, 1, 2); remove(&*tree, 1) }
            tree => { remove(&*tree, 62); put(&*tree, 62, 3) }
        }
        let mut expected: Vec<u64> = evens(LEAF).chain([33]).collect();
        expected.sort_unstable();
        assert_eq!(numbers(&*tree), expected);
        assert_eq!(tree.len(), 33);
        assert_eq!(get(&*tree, 62), Some(3));
    });
}

/// A full leaf and one of few keys, which goes while others change and read the full one.
fn leaves_merge(base: u64, few: u64) {
    explore(move || {
        let tree = filled::<CaTree<Plain>>((0..LEAF + few).map(|number| base + 2 * number));
        let stay = move || (10..LEAF).map(move |number| base + 2 * number);
        // Makes room in the full leaf for those of the other.
        quietly(|| (1..9).for_each(|number| remove(&*tree, base + 2 * number)));
        together! {
            tree => {
                for number in LEAF..LEAF + few {
                    remove(&*tree, base + 2 * number);
                }
            }
            tree => { put(&*tree, base, 7); put(&*tree, base + 61, 7); put(&*tree, base + 62, 62) }
            tree => {
                for number in stay() {
                    assert!(get(&*tree, number).is_some());
                }
                scan_meets(&*tree, stay());
            }
        }
        assert_eq!(
            (get(&*tree, base), get(&*tree, base + 61)),
            (Some(7), Some(7))
        );
        assert_eq!(get(&*tree, base + 2 * LEAF), None);
        assert_eq!(tree.len() as u64, LEAF - 8 + 1);
        scan_meets(&*tree, stay());
    });
}

#[test]
fn readers_meet_an_empty_leaf_that_goes() {
    leaves_merge(0, 2);
}

#[test]
fn readers_meet_leaves_that_merge() {
    leaves_merge(LONG, 4);
}

/// A reader that has seen a batch under one key sees it under all others.
fn reads_all_or_nothing(store: &impl Backend<Plain>, one: u64, other: u64) {
    let first = get(store, one);
    let second = get(store, other);
    assert!(
        second >= first,
        "{first:?} under {one}, then {second:?} under {other}"
    );
}

fn batches_against_readers<S: Backend<Plain> + Default + 'static>(fill: u64) {
    explore(move || {
        let store = filled::<S>(evens(fill));
        // In the store, or in the way of a split; two batches take the keys in the same order.
        put_all(&*store, &[0, 33, 62], 100);
        together! {
            store => { put_all(&*store, &[0, 33, 62], 101) }
            store => { put_all(&*store, &[0, 33, 35, 62], 101) }
            store => {
                reads_all_or_nothing(&*store, 62, 0);
                reads_all_or_nothing(&*store, 0, 33);
                assert_eq!(get(&*store, 4), Some(4));
            }
        }
        assert_eq!(
            [0, 33, 35, 62].map(|number| get(&*store, number)),
            [Some(101); 4]
        );
    });
}

#[test]
fn batches_against_readers_of_the_tree() {
    batches_against_readers::<CaTree<Plain>>(LEAF);
}

#[test]
fn batches_against_readers_of_the_hash_table() {
    batches_against_readers::<HashTable<Plain>>(LEAF);
}

/// A batch that is undone while a writer waits for it, and while another one changes the leaf.
fn an_aborted_batch<S: Backend<Plain> + Default + 'static>() {
    explore(|| {
        let store = filled::<S>(evens(LEAF));
        together! {
            store => {
                let (first, second) = (key(33), key(40));
                let keys = [&first[..], &second[..]];
                let done = store.update_many(&keys, &pin(), &mut |index, _| match index {
                    0 => Change::Put(RecordBox::new(&first, &[1000], false)),
                    _ => Change::Abort,
                });
                assert_ne!(done, Ok(true));
            }
            store => { put(&*store, 33, 3); put(&*store, 35, 5) }
            store => {
                let found = get(&*store, 33);
                assert!(found.is_none() || found == Some(3), "{found:?}");
                scan_meets(&*store, evens(LEAF));
            }
        }
        assert_eq!(
            [33, 35, 40].map(|number| get(&*store, number)),
            [3, 5, 40].map(Some)
        );
        assert_eq!(store.len(), 34);
    });
}

#[test]
fn an_aborted_batch_leaves_the_tree() {
    an_aborted_batch::<CaTree<Plain>>();
}

#[test]
fn an_aborted_batch_leaves_the_hash_table() {
    an_aborted_batch::<HashTable<Plain>>();
}

/// Records in eight buckets that are as full as can be: the next one makes the table grow.
const BUCKETS: u64 = 32;

#[test]
fn readers_meet_buckets_that_split() {
    explore(|| {
        let base = base();
        let end = base + BUCKETS;
        let table = filled::<HashTable<Plain>>(base..end);
        together! {
            table => { (end..end + 6).for_each(|number| put(&*table, number, number)) }
            table => {
                for number in base..end {
                    assert_eq!(get(&*table, number), Some(number));
                }
            }
            table => { scan_meets(&*table, base..end) }
        }
        scan_meets(&*table, base..end + 6);
    });
}

/// Buckets are joined, and split again before a reader may have gone on.
#[test]
fn readers_meet_buckets_that_join() {
    explore(|| {
        let base = base();
        // Grown to ten buckets, and nearly empty enough for nine.
        let table = filled::<HashTable<Plain>>(base..base + BUCKETS + 8);
        quietly(|| (base + 20..base + BUCKETS + 8).for_each(|number| remove(&*table, number)));
        let stay = move || base..base + 14;
        together! {
            table => {
                (base + 14..base + 20).for_each(|number| remove(&*table, number));
                (base + 14..base + BUCKETS + 8).for_each(|number| put(&*table, number, number));
            }
            table => {
                for number in stay() {
                    assert_eq!(get(&*table, number), Some(number));
                }
            }
            table => { scan_meets(&*table, stay()); put(&*table, base + 3, base + 3) }
        }
        scan_meets(&*table, base..base + BUCKETS + 8);
        assert_eq!(table.len() as u64, BUCKETS + 8);
    });
}

/// Numbers with which some bucket of a table has more than one line: such a table is larger than
/// others with as many records.
fn crowded() -> Vec<u64> {
    let crowded = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&crowded);
    Runner::new(RandomScheduler::new(1), config()).run(move || {
        let bytes = |base| filled::<HashTable<Plain>>(base..base + BUCKETS).bytes();
        let sizes: Vec<(u64, usize)> = (0..60).map(|n| (1000 * n, bytes(1000 * n))).collect();
        let least = sizes.iter().map(|(_, size)| *size).min();
        let large = sizes.iter().filter(|(_, size)| Some(*size) > least);
        *found.lock().expect("one thread") = large.map(|(base, _)| *base).collect();
    });
    let crowded = crowded.lock().expect("one thread").clone();
    assert!(crowded.len() > 5, "hardly a table has a chain");
    crowded
}

/// What stays in a split bucket moves to the front of its chain, to slots that a reader may have passed.
/// Only the count of moves tells it.
#[test]
fn a_search_meets_a_chain_that_is_compacted() {
    let crowded = crowded();
    explore(move || {
        let mut random = shuttle::rand::thread_rng();
        let base = crowded[random.gen_range(0..crowded.len())];
        let wanted = base + random.gen_range(0..BUCKETS);
        let table = filled::<HashTable<Plain>>(base..base + BUCKETS);
        together! {
            table => {
                (base + BUCKETS..base + BUCKETS + 17).for_each(|number| put(&*table, number, 0));
            }
            table => { assert_eq!(get(&*table, wanted), Some(wanted)) }
        }
    });
}

/// A key that a walk has reached in a fixed table stays known, however removals, growing and the
/// beginning of the fixation fall together.
#[test]
fn walks_of_fixed_tables_are_not_lost() {
    explore(|| {
        let table = filled::<HashTable<Plain>>(0..3);
        together! {
            table => { (0..3).for_each(|number| remove(&*table, number)) }
            table => { put(&*table, 1, 1) }
            table => {
                let guard = pin();
                table.fix();
                let mut met = table.first(&guard);
                while let Some(record) = met {
                    met = table.next(record.key(), &guard).expect("the table is fixed");
                }
                table.unfix();
            table.tidy(usize::MAX, &guard);
            }
        }
        assert!(table.len() <= 1);
    });
}

#[test]
fn fixations_and_removals_leave_nothing_behind() {
    explore(|| {
        let table = filled::<HashTable<Plain>>(0..3);
        let empty = HashTable::<Plain>::new().bytes();
        let fixed = |table: &HashTable<Plain>| {
            table.fix();
            remove(table, 1);
            table.unfix();
            table.tidy(usize::MAX, &pin());
        };
        together! {
            table => { fixed(&table) }
            table => { fixed(&table); remove(&*table, 0) }
            table => { remove(&*table, 2) }
        }
        assert_eq!((table.len(), table.bytes()), (0, empty));
    });
}

/// Runs something once that needs no scheduler, only small nodes.
fn once(act: impl Fn() + Send + Sync + 'static) {
    Runner::new(RandomScheduler::new(1), config()).run(move || quietly(&act));
}

/// A tree that grows and shrinks over and over, but never to nothing, must not become higher each time.
#[test]
fn nodes_do_not_rise() {
    once(|| {
        let tree = CaTree::<Plain>::new();
        let mut random = shuttle::rand::thread_rng();
        let mut present = BTreeSet::new();
        for _ in 0..400 {
            for _ in 0..600 {
                let number = random.gen_range(0..1 << 30);
                put(&tree, number, number);
                present.insert(number);
            }
            for number in numbers(&tree) {
                if random.gen_range(0..20) > 0 {
                    remove(&tree, number);
                    present.remove(&number);
                }
            }
        }
        assert!(numbers(&tree).into_iter().eq(present));
    });
}

/// The same for the nodes above the base nodes.
#[test]
fn routes_do_not_rise() {
    const KEYS: u64 = 1000;
    once(|| {
        let tree = CaTree::<Plain>::new();
        let mut random = shuttle::rand::thread_rng();
        (0..KEYS).for_each(|number| put(&tree, number, number));
        let bases = |tree: &CaTree<Plain>| tree.adaptation().map_or(0, |it| it.base_nodes);
        for _ in 0..400 {
            tree.provoke(1, 0);
            while bases(&tree) < 200 {
                put(&tree, random.gen_range(0..KEYS), 1);
            }
            tree.provoke(0, 1);
            while bases(&tree) > 20 {
                put(&tree, random.gen_range(0..KEYS), 1);
            }
        }
        assert!(numbers(&tree).into_iter().eq(0..KEYS));
        let depth = tree.adaptation().map(|it| it.depth);
        assert!(depth <= Some(6), "{depth:?}");
    });
}

/// A key that is appended to a leaf while a walk looks for its beginning there is not met if it does not
/// come after that beginning.
#[test]
fn walks_begin_in_a_leaf_that_grows() {
    explore(|| {
        let tree = filled::<CaTree<Plain>>(evens(3));
        together! {
            tree => { put(&*tree, 7, 7); put(&*tree, 8, 8); put(&*tree, 9, 9) }
            tree => {
                let guard = pin();
                for from in [7, 8] {
                    let next = tree.next(&key(from), &guard).expect("ordered stores take any key");
                    assert!(next.is_none_or(|record| *record.key() > *key(from)), "next({from})");
                }
            }
            tree => {
                let scanned = tree.scan(Some(&key(8)), &pin(), &mut |record| {
                    assert!(*record.key() > *key(8), "met {:?}", record.key());
                    ControlFlow::Continue(())
                });
                assert_eq!(scanned, Ok(()));
            }
        }
    });
}
