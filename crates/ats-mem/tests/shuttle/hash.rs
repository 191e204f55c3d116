//! The hash table.

use crate::*;
use ats_mem::HashTable;
use shuttle::rand::Rng;
use std::sync::Mutex;

/// Returns the first number of a hash table: each one gives another distribution over the buckets,
/// and in some of them buckets overflow.
fn base() -> u64 {
    1000 * shuttle::rand::thread_rng().gen_range(0..1000)
}

/// Number of records that fill eight buckets: the next one makes the table grow.
pub(crate) const FULL: u64 = 32;

#[test]
fn readers_meet_buckets_that_split() {
    explore(|| {
        let base = base();
        let end = base + FULL;
        let table = fill::<HashTable<Plain>>(base..end);
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

/// Buckets are joined, and split again before a reader may have continued.
#[test]
fn readers_meet_buckets_that_join() {
    explore(|| {
        let base = base();
        // The table has grown to ten buckets, and is nearly empty enough for nine.
        let table = fill::<HashTable<Plain>>(base..base + FULL + 8);
        quietly(|| (base + 20..base + FULL + 8).for_each(|number| remove(&*table, number)));
        let stay = move || base..base + 14;
        together! {
            table => {
                (base + 14..base + 20).for_each(|number| remove(&*table, number));
                (base + 14..base + FULL + 8).for_each(|number| put(&*table, number, number));
            }
            table => {
                for number in stay() {
                    assert_eq!(get(&*table, number), Some(number));
                }
            }
            table => { scan_meets(&*table, stay()); put(&*table, base + 3, base + 3) }
        }
        scan_meets(&*table, base..base + FULL + 8);
        assert_eq!(table.len() as u64, FULL + 8);
    });
}

/// Returns numbers for which some bucket of a table has more than one line: such a table is larger
/// than others with as many records.
fn find_crowded() -> Vec<u64> {
    let crowded = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&crowded);
    Runner::new(RandomScheduler::new(1), config(TIME)).run(move || {
        let bytes = |base| fill::<HashTable<Plain>>(base..base + FULL).bytes();
        let sizes: Vec<(u64, usize)> = (0..60).map(|n| (1000 * n, bytes(1000 * n))).collect();
        let least = sizes.iter().map(|(_, size)| *size).min();
        let large = sizes.iter().filter(|(_, size)| Some(*size) > least);
        *found.lock().expect("one thread") = large.map(|(base, _)| *base).collect();
    });
    let crowded = crowded.lock().expect("one thread").clone();
    assert!(crowded.len() > 5, "hardly a table has a chain");
    crowded
}

/// Records that stay in a split bucket move to the front of its chain, to slots that a reader may
/// have passed. Only the count of moves shows that.
#[test]
fn a_search_meets_a_chain_that_is_compacted() {
    let crowded = find_crowded();
    explore(move || {
        let mut random = shuttle::rand::thread_rng();
        let base = crowded[random.gen_range(0..crowded.len())];
        let wanted = base + random.gen_range(0..FULL);
        let table = fill::<HashTable<Plain>>(base..base + FULL);
        together! {
            table => {
                (base + FULL..base + FULL + 17).for_each(|number| put(&*table, number, 0));
            }
            table => { assert_eq!(get(&*table, wanted), Some(wanted)) }
        }
    });
}

/// A key that a walk has reached in a fixed table stays known, for any interleaving of removals,
/// growth and the begin of the fixation.
#[test]
fn walks_of_fixed_tables_are_not_lost() {
    explore(|| {
        let table = fill::<HashTable<Plain>>(0..3);
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
        let table = fill::<HashTable<Plain>>(0..3);
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
