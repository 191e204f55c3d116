//! Tests of the lock.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn groups_share_no_cache_line_and_follow_the_processors() {
    let lock = ReaderGroupLock::new(());
    assert!(lock.groups.len().is_power_of_two() && lock.groups.len() <= 64);
    assert_eq!(lock.bytes(), lock.groups.len() * 128);
    let groups = |number| ReaderGroupLock::with_groups(number, ()).groups.len();
    assert_eq!([0, 1, 2, 3, 5].map(groups), [1, 1, 2, 4, 8]);
    assert!(size_of::<ReaderGroupLock<()>>() <= 3 * 128);
}

#[test]
fn readers_share_and_writers_do_not() {
    let mut lock = ReaderGroupLock::with_groups(2, 1);
    {
        let (first, second) = (lock.read(), lock.try_read().expect("readers share"));
        assert_eq!((*first, *second), (1, 1));
        assert!(lock.try_write().is_none());
        // The attempt has left nothing behind.
        assert!(lock.try_read().is_some());
        drop(first);
        assert!(lock.try_write().is_none());
    }
    {
        let mut guard = lock.try_write().expect("free");
        *guard += 1;
        assert!(lock.try_read().is_none() && lock.try_write().is_none());
    }
    *lock.write() += 1;
    assert_eq!(*lock.read(), 3);
    *lock.get_mut() += 1;
    assert_eq!(lock.into_inner(), 4);
}

#[test]
fn panics_unlock() {
    let lock = ReaderGroupLock::new(0);
    let write = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = lock.write();
        *guard = 1;
        panic!("in the critical section");
    }));
    let read = catch_unwind(AssertUnwindSafe(|| {
        let guard = lock.read();
        assert_eq!(*guard, 2, "in the critical section");
    }));
    assert!(write.is_err() && read.is_err());
    assert_eq!(*lock.try_write().expect("free"), 1);
}

#[test]
fn a_guard_can_be_dropped_by_another_thread() {
    let lock = ReaderGroupLock::with_groups(64, 0);
    thread::scope(|scope| {
        let guard = lock.read();
        scope.spawn(move || drop(guard));
    });
    thread::scope(|scope| {
        let guard = lock.try_write().expect("the reader has left");
        scope.spawn(move || drop(guard));
    });
    assert!(lock.try_read().is_some());
}

#[test]
fn too_many_forgotten_readers_are_refused() {
    let group = Group::new();
    group.add_forgotten(1 << 30);
    let refused = catch_unwind(AssertUnwindSafe(|| group.arrive()));
    assert!(refused.is_err());
    group.leave();
    group.arrive();
}

/// Tells the other threads of a test to end when this one ends, also by a panic.
struct EndsAll<'a>(&'a AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two values that are equal unless a writer is at work.
#[derive(Default)]
struct Pair(u64, u64);

/// Lets writers increase both values, and readers compare them. Returns the number of writes and of
/// reads.
fn stress(lock: &ReaderGroupLock<Pair>, writers: usize, readers: usize) -> (u64, u64) {
    const TIME: Duration = Duration::from_millis(300);
    let (written, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + TIME;
    thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(|| {
                while Instant::now() < end {
                    let mut pair = lock.write();
                    pair.0 += 1;
                    if written.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
                        // The pause is long enough for the other threads to fall asleep.
                        thread::sleep(Duration::from_micros(50));
                    }
                    pair.1 += 1;
                }
            });
        }
        for _ in 0..readers {
            scope.spawn(|| {
                while Instant::now() < end {
                    let pair = lock.read();
                    assert_eq!(pair.0, pair.1);
                    if read.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
                        thread::sleep(Duration::from_micros(50));
                    }
                    assert_eq!(pair.0, pair.1);
                }
            });
        }
    });
    let pair = lock.read();
    let counts = (written.into_inner(), read.into_inner());
    assert_eq!((pair.0, pair.1), (counts.0, counts.0));
    counts
}

#[test]
fn excludes_and_loses_no_wakeup() {
    for groups in [1, 4] {
        for (writers, readers) in [(2, 2), (1, 3), (3, 1), (4, 0)] {
            let lock = ReaderGroupLock::with_groups(groups, Pair::default());
            let (written, read) = stress(&lock, writers, readers);
            assert!(written > 0 && (read > 0 || readers == 0));
        }
    }
}

/// Many more threads than processors, most of which the system has stopped, and each of which gets
/// its turn.
#[test]
fn no_thread_starves_on_a_machine_with_few_processors() {
    const THREADS: usize = 40;
    const TURNS: u32 = 20;
    for writing in [1, 20, 39] {
        let lock = ReaderGroupLock::with_groups(8, Pair::default());
        let (lock, left) = (&lock, &AtomicU32::new(THREADS as u32));
        let turns = &[const { AtomicU32::new(0) }; THREADS];
        let done = &AtomicBool::new(false);
        thread::scope(|scope| {
            for (number, turns) in turns.iter().enumerate() {
                scope.spawn(move || {
                    let _ends = EndsAll(done);
                    // All go on until each has had its turns, so that none gets them because others
                    // have ended.
                    while !done.load(Ordering::Relaxed) {
                        if number < writing {
                            let mut pair = lock.write();
                            pair.0 += 1;
                            pair.1 += 1;
                        } else {
                            let pair = lock.read();
                            assert_eq!(pair.0, pair.1);
                        }
                        if turns.fetch_add(1, Ordering::Relaxed) + 1 == TURNS
                            && left.fetch_sub(1, Ordering::Relaxed) == 1
                        {
                            done.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert!(
            turns
                .iter()
                .all(|turns| turns.load(Ordering::Relaxed) >= TURNS)
        );
        assert!(lock.try_write().is_some());
    }
}

/// Writers that hand the lock to each other, so that the gate is never opened for lack of them, let
/// a reader in.
#[test]
fn a_reader_that_waits_puts_the_barrier_up() {
    let lock = &ReaderGroupLock::with_groups(2, 0_u64);
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let mut value = lock.write();
                    *value += 1;
                    // Longer than a reader's patience: another writer is in the queue when this one
                    // leaves.
                    thread::sleep(Duration::from_micros(300));
                }
            });
        }
        let _ends = EndsAll(done);
        for _ in 0..50 {
            while lock.gate.is_open() {
                thread::yield_now();
            }
            // The writer that has shut the gate writes before it is opened.
            assert!(*lock.read() > 0);
        }
    });
    assert!(!lock.writers.barrier.is_raised());
}

/// Readers that overlap all the time let a writer in.
#[test]
fn a_writer_comes_between_readers() {
    let lock = &ReaderGroupLock::with_groups(2, 0_u64);
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let _guard = lock.read();
                    thread::sleep(Duration::from_micros(300));
                }
            });
        }
        let _ends = EndsAll(done);
        for _ in 0..50 {
            *lock.write() += 1;
        }
    });
    assert_eq!(*lock.read(), 50);
}

/// A writer that waits before the barrier goes on when it has been let down, although it is up
/// again by then.
#[test]
fn a_writer_waits_for_one_lowering() {
    let barrier = &Barrier::new();
    let passed = &AtomicBool::new(false);
    thread::scope(|scope| {
        let raised = barrier.raise();
        scope.spawn(move || {
            barrier.wait();
            passed.store(true, Ordering::Relaxed);
        });
        thread::sleep(Duration::from_millis(30));
        assert!(!passed.load(Ordering::Relaxed));
        drop(raised);
        let _raised = barrier.raise();
        let end = Instant::now() + Duration::from_secs(10);
        while !passed.load(Ordering::Relaxed) {
            assert!(Instant::now() < end, "it waits for ever");
            thread::sleep(Duration::from_millis(1));
        }
    });
}
