//! The number of records, and the record at an end, as of one moment: in the order of all that
//! readers see.

use crate::BLOCK;
use crate::append::Append;
use crate::directory::Directory;
use crate::open;
use ats_disk::{AtomicStore, Options};
use ats_store::{Change, End, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

fn put(store: &AtomicStore, number: u32) {
    let mut put = |_: usize, _: Option<&[u8]>| Change::Put(b"v".to_vec());
    assert_eq!(
        store.update(BLOCK, &[&number.to_be_bytes()], &mut put),
        Ok(true)
    );
}

fn remove(store: &AtomicStore, number: u32) {
    let mut remove = |_: usize, _: Option<&[u8]>| Change::Remove;
    let removed = store.update(BLOCK, &[&number.to_be_bytes()], &mut remove);
    assert_eq!(removed, Ok(true));
}

fn is_there(store: &AtomicStore, number: u32) -> bool {
    let read = store.get(BLOCK, &number.to_be_bytes(), &mut |_| {});
    read.expect("read")
}

fn len(store: &AtomicStore) -> u32 {
    u32::try_from(store.len(BLOCK).expect("counted")).expect("few")
}

/// One thread adds records and then removes them again, in the order of their keys. Others look
/// which is the last one that came, or went, and ask how many there are.
#[test]
fn the_number_of_records_agrees_with_visible_records() {
    const RECORDS: u32 = 3000;
    let directory = Directory::new();
    let store = AtomicStore::new(open(directory.path(), &Options::new()));
    assert_eq!(len(&store), 0);
    let is_removing = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut next = 0;
                while next < RECORDS && !is_removing.load(Ordering::Relaxed) {
                    while next < RECORDS && is_there(&store, next) {
                        next += 1;
                    }
                    let number = len(&store);
                    if is_removing.load(Ordering::Acquire) {
                        break;
                    }
                    assert!(number >= next, "{next} were seen, of {number}");
                }
                let mut gone = 0;
                while gone < RECORDS {
                    while gone < RECORDS
                        && is_removing.load(Ordering::Acquire)
                        && !is_there(&store, gone)
                    {
                        gone += 1;
                    }
                    let number = len(&store);
                    assert!(
                        number <= RECORDS - gone,
                        "{gone} are gone, {number} are left"
                    );
                }
            });
        }
        (0..RECORDS).for_each(|number| put(&store, number));
        is_removing.store(true, Ordering::Release);
        (0..RECORDS).for_each(|number| remove(&store, number));
    });
    assert_eq!(len(&store), 0);
}

/// All records of a large store are taken out and others come, while they are counted the first
/// time.
#[test]
fn counts_are_of_one_moment() {
    const RECORDS: u32 = 5000;
    for round in 0..20 {
        let directory = Directory::new();
        let options = Options::new().operator(Arc::new(Append));
        let store = AtomicStore::new(open(directory.path(), &options));
        for number in 0..RECORDS {
            let key = number.to_be_bytes();
            store.store().put(&key, b"v").expect("written");
        }
        thread::scope(|scope| {
            let counting = scope.spawn(|| {
                let mut last = RECORDS;
                let mut numbers = Vec::new();
                while last != 3 {
                    last = len(&store);
                    numbers.push(last);
                }
                numbers
            });
            // A moment that comes while they count, in some rounds.
            (0..round * 50).for_each(|_| std::hint::spin_loop());
            drop(store.take_all(BLOCK).expect("taken"));
            (0..3).for_each(|number| put(&store, number));
            let numbers = counting.join().expect("no panic");
            let could_be = |number: &u32| *number == RECORDS || *number <= 3;
            assert!(numbers.iter().all(could_be), "{numbers:?}");
        });
        // An operand says nothing about whether its key was there.
        let merges = store.merges().expect("it has an operator");
        merges
            .merge(BLOCK, &7_u32.to_be_bytes(), b"+")
            .expect("merged");
        merges
            .merge(BLOCK, &1_u32.to_be_bytes(), b"+")
            .expect("merged");
        put(&store, 8);
        assert_eq!(len(&store), 5);
        remove(&store, 8);
        assert_eq!(len(&store), 4);
    }
}

/// One thread puts records before all others, one takes the first. A record that is seen behind one
/// that was there before has not been taken yet.
#[test]
fn takes_from_an_end_take_the_outermost_record() {
    const RECORDS: u32 = 4000;
    let directory = Directory::new();
    let store = AtomicStore::new(open(directory.path(), &Options::new()));
    let lowest = AtomicU32::new(RECORDS);
    let (taken, seen) = thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..RECORDS).rev() {
                put(&store, number);
                lowest.store(number, Ordering::Release);
            }
        });
        let seeing = scope.spawn(|| {
            let mut seen = Vec::new();
            loop {
                let number = lowest.load(Ordering::Acquire);
                if number + 1 < RECORDS && is_there(&store, number + 1) {
                    seen.push(number);
                }
                if number == 0 {
                    return seen;
                }
            }
        });
        let mut taken = Vec::new();
        while taken.len() < RECORDS as usize {
            let take = &mut |record: Option<(&[u8], &[u8])>| match record {
                Some((key, _)) => {
                    taken.push(u32::from_be_bytes(key.try_into().expect("4 bytes")));
                    Change::Remove
                }
                None => Change::Keep,
            };
            store.update_end(BLOCK, End::First, take).expect("taken");
        }
        (taken, seeing.join().expect("no panic"))
    });
    let mut order = vec![0; RECORDS as usize];
    for (index, number) in taken.iter().enumerate() {
        order[*number as usize] = index;
    }
    for number in seen {
        let (first, second) = (order[number as usize], order[number as usize + 1]);
        assert!(
            first < second,
            "{number} was there, and {} after it",
            number + 1
        );
    }
}
