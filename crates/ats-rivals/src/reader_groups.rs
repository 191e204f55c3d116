//! A readers-writer lock whose readers share no cache line as long as no thread writes.
//!
//! Good for: values that all processors read all the time, and that change now and then. A reader
//! changes one word, which only threads of its *group* change, and reads a word that only writers
//! change. Bad at: many locks, since each takes 128 bytes for each group, and up to 8.5 KiB in all;
//! writes, since a writer that finds no other writer reads the counters of all groups; short
//! sections on a machine with more threads than processors, since the lock is handed over in order
//! of arrival, even to a thread that must be woken first. A structure that can be read without a
//! lock is better read without one.
//!
//! This is the lock DR-MCS of Calciu, Dice, Lev, Luchangco, Marathe and Shavit, "NUMA-aware
//! reader-writer locks" (PPoPP 2013), with the write barrier that Klaftenegger, Sagonas and Winblad
//! gave it in "Queue delegation locking" (SPAA 2014; the library `qd_lock_lib`). There are three
//! differences. Threads that wait for long sleep. Readers look at a word of their own, the gate,
//! and not at the queue. A writer needs no node while it holds the lock.
//!
//! # How it works
//! - A reader counts itself into its group. If the gate is open, it may read. Otherwise it counts
//!   itself out, and waits.
//! - A writer enters the queue of writers. At its head, the writer shuts the gate unless the writer
//!   before it has left it shut, and waits until each group has been without readers.
//! - A writer that leaves hands the lock to the next in the queue, with the gate shut. If there is
//!   none, it opens the gate first.
//! - A reader that has found the gate shut [`READ_PATIENCE`] times raises a barrier, and sleeps
//!   until the gate is opened. While the barrier is up no more writers enter the queue, so the gate
//!   opens soon. When the reader has got in, it lowers the barrier. So a reader waits for the
//!   writers that were in the queue, and for one turn of each that had already passed the barrier.
//! - A writer waits before the barrier until it has been lowered once, even if it is up again by
//!   then. So readers cannot keep a writer out for ever.
//!
//! There is no poisoning: a panic in a critical section unlocks. The lock is not re-entrant, also
//! for readers: a thread that reads, and asks to read once more, waits for ever if a writer has
//! come in between. All threads wait as long as it takes, whether or not they [may
//! wait](ats_sync::lock::set_may_wait).
//!
//! # Invariants
//! - READER_GROUPS-1. Only the holder of the queue changes the value, with the gate shut, after
//!   each group was empty at some moment since the gate was shut. Only threads that have counted
//!   themselves in and then found the gate open read the value, until they count themselves out.
//! - READER_GROUPS-2. A node of the queue is used until its thread has the lock, and the thread
//!   behind it, if there is one at the tail, has linked itself. Until then it does not leave the
//!   stack of its thread. Only the holder grants the lock, once for each node.
//! - READER_GROUPS-3. The gate is shut before the writer passes each group by a read-modify-write,
//!   and all changes of a group are read-modify-writes. So of a reader and a writer one comes first
//!   in the group. If it is the reader, the writer sees it there, and waits. If it is the writer,
//!   the reader finds the gate shut; or it finds the gate opened since, and then sees all writes
//!   made before that.
//! - READER_GROUPS-4. A thread sleeps only on a word with a value that stands for sleepers, and the
//!   kernel compares the two. The thread that ends the reason for sleeping changes the word before
//!   it wakes the sleepers: the last reader of a group, the writer that opens the gate, the reader
//!   that lowers the barrier, the holder that grants the lock. Each of these words has its own kind
//!   of sleeper.
//! - READER_GROUPS-5. The barrier and the order of the queue serve fairness alone. No safety
//!   depends on them.

mod barrier;
mod gate;
mod group;
#[cfg(all(test, loom))]
mod models;
mod queue;
mod sleep;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use ats_sync::cache_padded::CachePadded;
use ats_sync::counter::{shard_count, thread_number};
use ats_sync::model::READ_PATIENCE;
use barrier::Barrier;
use gate::Gate;
use group::Group;
use queue::Queue;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A value behind a readers-writer lock with one counter of readers for each group of threads.
pub struct ReaderGroupLock<T: ?Sized> {
    groups: Box<[CachePadded<Group>]>,
    /// The gate, which all threads read, and which changes when a period of writing begins or ends.
    gate: CachePadded<Gate>,
    writers: CachePadded<Writers>,
    value: UnsafeCell<T>,
}

/// The words that writers change while they wait.
struct Writers {
    queue: Queue,
    barrier: Barrier,
}

// SAFETY: the lock owns its value; its other fields are atomic words.
unsafe impl<T: ?Sized + Send> Send for ReaderGroupLock<T> {}
// SAFETY: readers on several threads have shared references to the value at the same time, hence
// `Sync`; a writer on any thread has exclusive access, hence `Send` (READER_GROUPS-1).
unsafe impl<T: ?Sized + Send + Sync> Sync for ReaderGroupLock<T> {}

impl<T> ReaderGroupLock<T> {
    /// Makes a free lock with a group for each processor. Their number is rounded up to a power of
    /// two, and is at most 64.
    pub fn new(value: T) -> Self {
        Self::with_groups(shard_count(), value)
    }

    /// Makes a free lock with this number of groups, rounded up to a power of two. With one group,
    /// which all readers share, this is an ordinary readers-writer lock.
    pub fn with_groups(groups: usize, value: T) -> Self {
        let groups = groups.max(1).next_power_of_two();
        Self {
            groups: (0..groups).map(|_| CachePadded(Group::new())).collect(),
            gate: CachePadded(Gate::new()),
            writers: CachePadded(Writers {
                queue: Queue::new(),
                barrier: Barrier::new(),
            }),
            value: UnsafeCell::new(value),
        }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> ReaderGroupLock<T> {
    /// Takes the lock to read, and waits for writers if necessary. Several threads can hold it to
    /// read at the same time.
    ///
    /// # Panics
    /// If one group has 2^30 readers.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_, T> {
        self.read_in(self.own_group())
    }

    /// Takes the lock to read, unless a writer has it or is about to.
    ///
    /// # Panics
    /// Like [`read`](ReaderGroupLock::read).
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T>> {
        let group = self.own_group();
        self.arrive(group).then(|| ReadGuard { lock: self, group })
    }

    /// Takes the lock to write, and waits for all other threads if necessary.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T> {
        self.writers.barrier.wait();
        self.writers.queue.lock();
        // Only the holder of the queue opens or shuts the gate, so it cannot change in between.
        if self.gate.is_open() {
            self.gate.shut();
            for group in &self.groups {
                if !group.pass() {
                    group.wait_until_empty();
                }
            }
        }
        WriteGuard { lock: self }
    }

    /// Takes the lock to write, unless another thread holds it or waits for it. Frequent readers
    /// may prevent this from ever succeeding.
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        if self.writers.barrier.is_raised() || !self.writers.queue.try_lock() {
            return None;
        }
        self.gate.shut();
        if !self.groups.iter().all(|group| group.pass()) {
            // The gate is opened again, since a writer that waits behind this one would take a shut
            // gate as a sign that no reader is left.
            self.gate.open();
            self.writers.queue.unlock();
            return None;
        }
        Some(WriteGuard { lock: self })
    }

    /// Returns the value, to which the caller has exclusive access.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Returns the bytes of memory held besides `self`.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.groups)
    }

    #[inline]
    fn own_group(&self) -> &Group {
        &self.groups[thread_number() & (self.groups.len() - 1)]
    }

    #[inline]
    fn read_in<'a>(&'a self, group: &'a Group) -> ReadGuard<'a, T> {
        if !self.arrive(group) {
            self.wait_to_arrive(group);
        }
        ReadGuard { lock: self, group }
    }

    /// Counts a reader in, if it may read now. Returns `true` if so.
    #[inline]
    fn arrive(&self, group: &Group) -> bool {
        group.arrive();
        let open = self.gate.is_open();
        if !open {
            group.leave();
        }
        open
    }

    #[cold]
    fn wait_to_arrive(&self, group: &Group) {
        let mut looks = 0;
        let mut raised = None;
        loop {
            if self.gate.is_open() {
                if self.arrive(group) {
                    // The barrier, if this reader has raised it, is lowered here.
                    return;
                }
            } else if looks < READ_PATIENCE {
                ats_sync::shim::pause();
            } else {
                raised.get_or_insert_with(|| self.writers.barrier.raise());
                self.gate.sleep_if_shut();
            }
            looks = looks.saturating_add(1);
        }
    }

    fn unlock(&self) {
        // The gate is opened before the queue is left, since only the holder of the queue may open
        // it. A writer that comes in between shuts it again.
        if !self.writers.queue.has_next() {
            self.gate.open();
        }
        self.writers.queue.unlock();
    }
}

impl<T: Default> Default for ReaderGroupLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> std::fmt::Debug for ReaderGroupLock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReaderGroupLock")
            .field("groups", &self.groups.len())
            .field("gate", &*self.gate)
            .finish_non_exhaustive()
    }
}

/// A lock that is held to read. Dropping this releases it.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct ReadGuard<'a, T: ?Sized> {
    lock: &'a ReaderGroupLock<T>,
    group: &'a Group,
}

// SAFETY: the guard is a shared reference to the value, and can be dropped by any thread, since it
// knows its group.
unsafe impl<T: ?Sized + Sync> Send for ReadGuard<'_, T> {}
// SAFETY: a shared reference to the guard gives shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for ReadGuard<'_, T> {}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the thread was counted in with the gate open, and stays so until the guard is
        // dropped (READER_GROUPS-1).
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.group.leave();
    }
}

/// A lock that is held to write. Dropping this releases it.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct WriteGuard<'a, T: ?Sized> {
    lock: &'a ReaderGroupLock<T>,
}

// SAFETY: the guard is an exclusive reference to the value, and any thread can hand the queue on.
unsafe impl<T: ?Sized + Send> Send for WriteGuard<'_, T> {}
// SAFETY: a shared reference to the guard gives shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for WriteGuard<'_, T> {}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard has exclusive access to the value (READER_GROUPS-1).
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard has exclusive access to the value (READER_GROUPS-1).
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.unlock();
    }
}
