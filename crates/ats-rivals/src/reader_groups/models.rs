//! Models for `loom`: interleavings of threads that read and write, on weakly ordered memory.
//!
//! Threads that wait sleep at once, in a model of the kernel in which no thread wakes early. So a
//! lost wake-up is a deadlock, which `loom` reports.

use super::*;
use ats_sync::shim::UnsafeCell as CheckedUnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A number for which `loom` detects two accesses at the same time.
struct Number(CheckedUnsafeCell<u32>);

// SAFETY: the models access it by references that the lock has given, and `loom` reports it if
// these are wrong.
unsafe impl Sync for Number {}

impl Number {
    fn get(&self) -> u32 {
        // SAFETY: `loom` reports a write at the same time.
        self.0.with(|number| unsafe { *number })
    }

    /// Increments through a shared reference, so that `loom` reports a broken lock before it causes
    /// undefined behaviour.
    fn increment(&self) {
        // SAFETY: `loom` reports any other access at the same time.
        self.0.with_mut(|number| unsafe { *number += 1 });
    }
}

type Model = Arc<ReaderGroupLock<Number>>;

/// Runs these threads on a lock with this number of groups. Returns its value at the end.
fn play(groups: usize, threads: &[fn(&ReaderGroupLock<Number>)]) -> u32 {
    let lock = Arc::new(ReaderGroupLock::with_groups(
        groups,
        Number(CheckedUnsafeCell::new(0)),
    ));
    let (last, others) = threads.split_last().expect("a thread");
    let run = |part: &fn(&ReaderGroupLock<Number>)| {
        let (lock, part): (Model, _) = (Arc::clone(&lock), *part);
        thread::spawn(move || part(&lock))
    };
    let others: Vec<_> = others.iter().map(run).collect();
    last(&lock);
    for other in others {
        other.join().expect("a thread");
    }
    lock.write().get()
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn write(lock: &ReaderGroupLock<Number>) {
    lock.write().increment();
}

fn write_twice(lock: &ReaderGroupLock<Number>) {
    write(lock);
    write(lock);
}

fn read_in(lock: &ReaderGroupLock<Number>, group: usize) -> u32 {
    let guard = lock.read_in(&lock.groups[group]);
    let number = guard.get();
    // The same, however long it is read.
    assert_eq!(guard.get(), number);
    number
}

fn read_in_first(lock: &ReaderGroupLock<Number>) {
    read_in(lock, 0);
}

fn read_in_second(lock: &ReaderGroupLock<Number>) {
    read_in(lock, 1);
}

fn read_twice(lock: &ReaderGroupLock<Number>) {
    let first = read_in(lock, 0);
    assert!(read_in(lock, 1) >= first);
}

#[test]
fn a_writer_excludes_a_writer() {
    check(3, || assert_eq!(play(1, &[write_twice, write]), 3));
}

#[test]
fn three_writers_queue() {
    check(1, || assert_eq!(play(1, &[write, write, write]), 3));
}

#[test]
fn a_writer_excludes_a_reader() {
    check(3, || assert_eq!(play(1, &[write, read_in_first]), 1));
}

#[test]
fn a_writer_excludes_readers_of_any_group() {
    check(2, || assert_eq!(play(2, &[write_twice, read_twice]), 2));
}

#[test]
fn readers_of_two_groups_and_a_writer() {
    check(1, || {
        assert_eq!(play(2, &[read_in_first, read_in_second, write]), 1);
    });
}

#[test]
fn readers_of_one_group_and_a_writer() {
    check(1, || {
        assert_eq!(play(1, &[read_in_first, read_in_first, write]), 1);
    });
}

/// The gate is shut when the lock goes from one writer to the next, or open; the barrier is up, or
/// not.
#[test]
fn a_reader_and_two_writers() {
    check(1, || {
        assert_eq!(play(1, &[read_in_first, write, write]), 2);
    });
}

/// A writer comes to a barrier that a reader lets down at the same time.
#[test]
fn a_barrier_lets_writers_pass() {
    check(3, || {
        let part = |lock: &ReaderGroupLock<Number>| {
            let raised = lock.writers.barrier.raise();
            let _guard = lock.try_read();
            drop(raised);
        };
        assert_eq!(play(1, &[part, write]), 1);
    });
}

#[test]
fn attempts_exclude_too() {
    fn try_write(lock: &ReaderGroupLock<Number>) {
        if let Some(guard) = lock.try_write() {
            guard.increment();
        }
    }
    fn try_read(lock: &ReaderGroupLock<Number>) {
        if let Some(guard) = lock.try_read() {
            assert_eq!(guard.get(), guard.get());
        }
    }
    check(3, || {
        assert!(play(1, &[try_write, read_in_first]) <= 1);
    });
    check(3, || {
        assert_eq!(play(1, &[try_read, write]), 1);
    });
    check(2, || {
        assert!((1..=2).contains(&play(1, &[try_write, write, read_in_first])));
    });
}
