//! Instrumentation of the cost of operations for other processors: accesses to shared memory,
//! locks, allocation, system calls.
//!
//! An ordinary build counts nothing: there, the functions of this module are empty and compile to
//! nothing. Under `--cfg counted` the atomics of the `shim` and a few other functions report to
//! this module. A thread that has called `begin` counts it, and `end` returns its
//! [`Tally`].
//!
//! A tally records how often its thread read and wrote each cache line. So after a run the tallies
//! of all threads show which lines are shared.
//!
//! # Exclusions
//! - Memory that a thread fills before it publishes it. It counts as bytes
//!   [allocated](Tally::allocated).
//! - Values of records, behind their headers, and plain data guarded by a lock.
//! - Prefetches.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{LockResult, Mutex, MutexGuard};

/// Atomics for modules that bypass those of the `shim`, because no model depends on them.
pub use own::atomic;
use own::count;
#[cfg(counted)]
pub use own::{begin, change_at, end, load_at, next_operation, store_at};

/// Size of a cache line in bytes.
pub const LINE: usize = 64;

/// Numbers of operations in which a thread accessed a cache line. Several accesses of one operation
/// count once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Operations that loaded from the line.
    pub reads: u32,
    /// Operations that stored to the line, or did a read-modify-write, successful or not.
    pub writes: u32,
    /// The operations that last read and wrote the line, numbered from 1.
    last_read: u32,
    last_write: u32,
}

impl Touches {
    fn read(&mut self, operation: u32) {
        // A line that the operation has written is in its cache already.
        if self.last_read != operation && self.last_write != operation {
            self.reads += 1;
            self.last_read = operation;
        }
    }

    fn write(&mut self, operation: u32) {
        if self.last_write != operation {
            self.writes += 1;
            self.last_write = operation;
        }
    }
}

/// Cache lines that a thread accessed, by their addresses divided by [`LINE`].
pub type Lines = HashMap<usize, Touches, BuildHasherDefault<LineHasher>>;

/// The events of one thread from `begin` to `end`.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Atomic operations that read and write.
    pub changes: u64,
    /// Atomic stores.
    pub stores: u64,
    /// Locks taken.
    pub locks: u64,
    /// Locks among these that the thread had to wait for.
    pub waits: u64,
    /// Locks among these that are mutexes of the standard library: those of the slabs.
    pub mutexes: u64,
    /// Bytes requested from the slabs.
    pub allocated: u64,
    /// Bytes written to new nodes and records, mostly copies.
    pub moved: u64,
    /// Calls of `membarrier`.
    pub barriers: u64,
    /// Calls of `futex`.
    pub futexes: u64,
    /// Accesses to cache lines.
    pub lines: Lines,
    /// Number of operations, the current one included.
    pub operations: u32,
}

/// A hasher of cache line numbers, which only has to spread them: no attacker chooses them.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(*byte as usize);
        }
    }

    fn write_usize(&mut self, number: usize) {
        let product = (self.0 ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

#[cfg(counted)]
mod own {
    use super::{Tally, Touches};
    pub use crate::shim::atomic;
    use std::cell::RefCell;

    thread_local! {
        static OWN: RefCell<Option<Box<Tally>>> = const { RefCell::new(None) };
    }

    /// Starts counting in this thread.
    pub fn begin() {
        OWN.set(Some(Box::default()));
    }

    /// Begins another operation of this thread.
    pub fn next_operation() {
        count(|tally| tally.operations += 1);
    }

    /// Stops counting in this thread and returns its tally, which is empty if the thread did not
    /// count.
    #[must_use]
    pub fn end() -> Tally {
        OWN.take().map_or_else(Tally::default, |tally| *tally)
    }

    pub(super) fn count(add: impl FnOnce(&mut Tally)) {
        // A thread that is exiting no longer has a tally.
        let _ = OWN.try_with(|own| {
            if let Some(tally) = own.borrow_mut().as_deref_mut() {
                add(tally);
            }
        });
    }

    /// Counts an atomic load, which is about to come.
    pub fn load_at(address: usize) {
        count(|tally| tally.touch(address, 1, Touches::read));
    }

    /// Counts an atomic store, which is about to come.
    pub fn store_at(address: usize) {
        count(|tally| {
            tally.stores += 1;
            tally.touch(address, 1, Touches::write);
        });
    }

    /// Counts an atomic read-modify-write, which is about to come.
    pub fn change_at(address: usize) {
        count(|tally| {
            tally.changes += 1;
            tally.touch(address, 1, Touches::write);
        });
    }
}

#[cfg(not(counted))]
mod own {
    pub use std::sync::atomic;

    #[inline(always)]
    pub(super) fn count(_: impl FnOnce(&mut super::Tally)) {}
}

impl Tally {
    /// Counts accesses to the lines of a piece of memory.
    fn touch(&mut self, start: usize, bytes: usize, touch: impl Fn(&mut Touches, u32)) {
        for line in start / LINE..=(start + bytes.max(1) - 1) / LINE {
            touch(self.lines.entry(line).or_default(), self.operations);
        }
    }
}

/// Counts a read by other means than an atomic load.
#[inline(always)]
pub fn read<T>(what: *const T) {
    count(|tally| tally.touch(what.addr(), size_of::<T>(), Touches::read));
}

/// Counts a lock taken without waiting.
#[inline(always)]
pub(crate) fn note_lock() {
    count(|tally| tally.locks += 1);
}

/// Counts a lock taken after waiting.
#[inline(always)]
#[cfg_attr(any(loom, shuttle), allow(dead_code))]
pub(crate) fn note_lock_after_wait() {
    count(|tally| {
        tally.locks += 1;
        tally.waits += 1;
    });
}

/// Locks a mutex of the standard library, whose atomics bypass the `shim`: it counts as two
/// read-modify-writes, one for locking and one for unlocking.
#[inline(always)]
pub fn lock<T>(mutex: &Mutex<T>) -> LockResult<MutexGuard<'_, T>> {
    count(|tally| {
        tally.locks += 1;
        tally.mutexes += 1;
        tally.waits += u64::from(mutex.try_lock().is_err());
        tally.changes += 2;
        tally.touch(std::ptr::from_ref(mutex).addr(), 1, Touches::write);
    });
    mutex.lock()
}

/// Counts a block of `bytes` bytes taken from the slabs.
#[inline(always)]
pub fn note_allocation(bytes: usize) {
    count(|tally| tally.allocated += bytes as u64);
}

/// Counts bytes written to a new node or record.
#[inline(always)]
pub fn note_bytes_written(bytes: usize) {
    count(|tally| tally.moved += bytes as u64);
}

/// Counts a call of `membarrier`, which is about to come.
#[inline(always)]
#[cfg_attr(any(loom, shuttle), allow(dead_code))]
pub(crate) fn note_barrier() {
    count(|tally| tally.barriers += 1);
}

/// Counts a call of `futex`, which is about to come.
#[inline(always)]
#[cfg_attr(any(loom, shuttle), allow(dead_code))]
pub(crate) fn note_futex() {
    count(|tally| tally.futexes += 1);
}

#[cfg(all(test, counted))]
mod tests {
    use super::*;
    use crate::Lock;
    use crate::shim::atomic::{AtomicU64, Ordering};

    #[test]
    fn accesses_are_counted_by_the_line() {
        let words: Box<[AtomicU64; 16]> = Box::new([const { AtomicU64::new(0) }; 16]);
        begin();
        next_operation();
        words[0].load(Ordering::Relaxed);
        words[0].store(1, Ordering::Relaxed);
        words[0].load(Ordering::Relaxed);
        next_operation();
        words[15].fetch_add(1, Ordering::Relaxed);
        let failed = words[15].compare_exchange(7, 8, Ordering::Relaxed, Ordering::Relaxed);
        let tally = end();
        assert!(failed.is_err());
        assert_eq!((tally.stores, tally.changes), (1, 2));
        let line = |index: usize| (&raw const words[index]).addr() / LINE;
        let of = |index| {
            (
                tally.lines[&line(index)].reads,
                tally.lines[&line(index)].writes,
            )
        };
        assert_eq!((of(0), of(15)), ((1, 1), (0, 1)));
        assert_eq!(tally.lines.len(), 2);
    }

    #[test]
    fn explicit_reads_count_in_each_cache_line() {
        #[repr(align(64))]
        struct Aligned([u8; 130]);
        let aligned = Aligned([0; 130]);
        begin();
        next_operation();
        read(&raw const aligned.0);
        let tally = end();
        assert_eq!(tally.lines.len(), 3);
        assert!(tally.lines.values().all(|touches| touches.reads == 1));
    }

    #[test]
    fn locks_are_counted_and_waits_among_them() {
        let lock = Lock::new();
        begin();
        drop(lock.lock());
        let alone = end();
        assert_eq!((alone.locks, alone.waits, alone.changes), (1, 0, 2));

        let held = lock.lock();
        let waited = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                begin();
                drop(lock.lock());
                end()
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(held);
            other.join().expect("it does not panic")
        });
        assert_eq!((waited.locks, waited.waits), (1, 1));
    }

    #[test]
    fn a_thread_that_did_not_begin_counts_nothing() {
        drop(Lock::new().lock());
        let tally = end();
        assert_eq!((tally.locks, tally.lines.len()), (0, 0));
    }
}
