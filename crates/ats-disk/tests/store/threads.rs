//! The threads of stores, as the system shows them.

use crate::directory::Directory;
use crate::{open, wait_for};
use ats_disk::{Durability, Options};
use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::thread::{self, available_parallelism};
use std::time::Duration;

/// Returns the threads of this process whose names begin so.
fn threads(name: &str) -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux lists threads");
    let named = tasks.filter_map(|task| {
        let path = task.ok()?.path();
        let is_named = fs::read_to_string(path.join("comm"))
            .ok()?
            .starts_with(name);
        let number = path.file_name()?.to_str()?.parse().ok()?;
        is_named.then(|| Pid::from_raw(number)).flatten()
    });
    named.collect()
}

#[test]
fn a_thread_that_is_bound_opens_a_store_whose_threads_are_not() {
    let all = sched_getaffinity(Some(getpid())).expect("it is there");
    if all.count() < 2 {
        println!("NOT RUN: the process may use one processor only");
        return;
    }
    let binding = thread::spawn(move || {
        let mut one = CpuSet::new();
        let first = (0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor));
        one.set(first.expect("there are two"));
        sched_setaffinity(None, &one).expect("it is one of those allowed");
        let directory = Directory::new();
        let options = Options::new()
            .background(true)
            .durability(Durability::Interval(Duration::from_secs(1)));
        let store = open(directory.path(), &options);
        // Others may run stores, too, whose threads come and go.
        let is_free = || {
            let threads = threads("ats-disk");
            let allowed = threads
                .iter()
                .map(|thread| sched_getaffinity(Some(*thread)).map_or(2, |set| set.count()));
            let is_free = |count: &u32| *count >= 2;
            threads.len() >= 3 && allowed.collect::<Vec<_>>().iter().all(is_free)
        };
        assert!(wait_for(is_free), "they are bound");
        store.close().expect("closed");
    });
    binding.join().expect("it ends");
}

#[test]
fn stores_share_threads() {
    let directories: Vec<_> = (0..50).map(|_| Directory::new()).collect();
    let options = Options::new().durability(Durability::Interval(Duration::from_millis(5)));
    let stores: Vec<_> = directories
        .iter()
        .map(|directory| open(directory.path(), &options))
        .collect();
    // One more than there are processors, and four that sync; those of other stores that were
    // closed may be about to end.
    let most = available_parallelism().map_or(1, usize::from) + 5;
    assert!(wait_for(|| (3..=most).contains(&threads("ats-disk").len())));
    for store in &stores {
        store.put(b"key", b"value").expect("written");
    }
    let is_synced = || stores.iter().all(|store| store.info().syncs == 1);
    assert!(wait_for(is_synced), "what was written is not synced");
    // Nothing was written since.
    thread::sleep(Duration::from_millis(50));
    assert!(is_synced());
    for store in &stores {
        store.close().expect("closed");
    }
}

/// Merges of more stores than there are threads give way to each other, and all come to their end.
#[test]
fn merges_that_give_way_go_on() {
    let count = 3 * available_parallelism().map_or(1, usize::from);
    let directories: Vec<_> = (0..count).map(|_| Directory::new()).collect();
    let options = |background| {
        Options::new()
            .background(background)
            .file_bytes(20_000)
            .fan_in(4)
    };
    for directory in &directories {
        let store = open(directory.path(), &options(false));
        for run in 0..3_u32 {
            for number in 0..20_000_u32 {
                let key = (3 * number + run).to_be_bytes();
                store.put(&key, &key).expect("written");
            }
            store.flush().expect("flushed");
        }
        store.close().expect("closed");
    }
    let stores: Vec<_> = directories
        .iter()
        .map(|directory| open(directory.path(), &options(true)))
        .collect();
    // Runs are compacted after a second without writes.
    let runs = || stores.iter().map(|store| store.info().runs.len());
    let is_merged = || runs().all(|runs| runs == 1);
    assert!(wait_for(is_merged), "{:?}", runs().collect::<Vec<_>>());
    for store in &stores {
        assert_eq!(
            store.get(&50_000_u32.to_be_bytes()),
            Ok(Some(50_000_u32.to_be_bytes().to_vec()))
        );
    }
}
