//! The threads of a store, as the system shows them.

use crate::directory::Directory;
use crate::{open, wait_for};
use ats_disk::{Durability, Options};
use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::thread;
use std::time::Duration;

/// The threads of this process whose names begin so.
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
        let options = Options {
            threads: 2,
            durability: Durability::Interval(Duration::from_secs(1)),
            ..Options::default()
        };
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
