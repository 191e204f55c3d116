//! A readers-writer lock whose readers share no cache line as long as no thread writes.
//!
//! Good for: values that are read all the time by all processors and changed now and then. A reader
//! changes one word, which only threads of its *group* change, and looks at a word that only
//! writers change. Bad at: many locks, since each takes 128 bytes for each group, and up to 8.5 KiB
//! in all; writers, since each that finds no other writer looks at the counters of all groups;
//! short sections on a machine with more threads than processors, since the lock is handed over in
//! the order in which it was asked for, also to a thread that has yet to be woken. A structure that
//! can be read without a lock is better read without one.
//!
//! This is the lock DR-MCS of Calciu, Dice, Lev, Luchangco, Marathe and Shavit, "NUMA-aware
//! reader-writer locks" (PPoPP 2013), with the write barrier that Klaftenegger, Sagonas and Winblad
//! gave it in "Queue delegation locking" (SPAA 2014; the library `qd_lock_lib`). There are three
//! differences. Threads that wait for long sleep. Readers look at a word of their own, the gate,
//! and not at the queue. A writer needs no node while it holds the lock.
//!
//! # How it works
//! - A reader counts itself into its group. If the gate is open, it may read. Else it counts itself
//!   out, and waits.
//! - A writer enters the queue of writers. As its head, it shuts the gate unless the writer before
//!   it has left it shut, and waits until each group has been without readers.
//! - A writer that leaves gives the lock to the next in the queue, with the gate shut. If there is
//!   none, it opens the gate first.
//! - A reader that has looked at the gate [`READ_PATIENCE`] times puts up a barrier, and then
//!   sleeps until the gate is opened. No more writers enter the queue, so that will be soon. When
//!   the reader has got in, it lets the barrier down. So it waits for the writers that were in the
//!   queue, and for one turn of each that had already passed the barrier.
//! - A writer waits before the barrier only until it has been let down once, be it up again by
//!   then. So readers cannot keep it out for ever.
//!
//! There is no poisoning: a panic in a critical section unlocks. The lock is not re-entrant, also
//! for readers: a thread that reads, and asks to read once more, waits for ever if a writer has
//! come in between. All wait as long as it takes, whatever
//! [`set_may_wait`](ats_sync::lock::set_may_wait) says of them.
//!
//! # Invariants
//! - READER_GROUPS-1. The value is changed only by the holder of the queue, with the gate shut,
//!   after each group was empty at some moment since the gate was shut. It is read only by threads
//!   that have counted themselves in and then found the gate open, and have not counted themselves
//!   out.
//! - READER_GROUPS-2. A node of the queue is used until its thread has the lock, and the thread
//!   behind it, if there is one at the tail, has linked itself. Until then it does not leave the
//!   stack of its thread. Only the holder grants the lock, once for each node.
//! - READER_GROUPS-3. The gate is shut before the writer passes each group by a read-modify-write,
//!   and all changes of a group are read-modify-writes. So of a reader and a writer one comes first
//!   in the group. If it is the reader, the writer sees it there, and waits. If it is the writer,
//!   the reader finds the gate shut; or opened since, and then what was written before that is
//!   visible to it.
//! - READER_GROUPS-4. A thread sleeps only on a word with a value that says so, and the kernel
//!   compares the two. The thread that ends the reason for sleeping changes the word before it
//!   wakes the sleepers: the last reader of a group, the writer that opens the gate, the reader
//!   that lets the barrier down, the holder that grants the lock. Each of these words has its own
//!   kind of sleeper.
//! - READER_GROUPS-5. The barrier and the order of the queue are about fairness alone. Nothing that
//!   is safe depends on them.

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
    /// Read by all, and changed when writing begins and ends.
    gate: CachePadded<Gate>,
    writers: CachePadded<Writers>,
    value: UnsafeCell<T>,
}

/// The state that writers change while they wait.
struct Writers {
    queue: Queue,
    barrier: Barrier,
}

// SAFETY: the lock owns its value; the rest is words.
unsafe impl<T: ?Sized + Send> Send for ReaderGroupLock<T> {}
// SAFETY: readers have shared references to the value at the same time, hence `Sync`; a writer has
// it alone, on whatever thread it is, hence `Send` (READER_GROUPS-1).
unsafe impl<T: ?Sized + Send + Sync> Sync for ReaderGroupLock<T> {}

impl<T> ReaderGroupLock<T> {
    /// A free lock with a group for each processor: their number is rounded up to a power of two,
    /// and is at most 64.
    pub fn new(value: T) -> Self {
        Self::with_groups(shard_count(), value)
    }

    /// A free lock with so many groups, rounded up to a power of two. With one, which all readers
    /// share, this is a readers-writer lock of the usual kind.
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

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> ReaderGroupLock<T> {
    /// Takes the lock to read, waiting for writers if need be. Several threads can have it so at
    /// the same time.
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

    /// Takes the lock to write, waiting for all others if need be.
    #[inline]
    pub fn write(&self) -> WriteGuard<'_, T> {
        self.writers.barrier.wait();
        self.writers.queue.lock();
        // Only the holder of the queue opens or shuts the gate, so this is exact.
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

    /// Takes the lock to write, unless another thread has it or waits for it. Threads that read now
    /// and then may keep this from ever succeeding.
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        if self.writers.barrier.is_raised() || !self.writers.queue.try_lock() {
            return None;
        }
        self.gate.shut();
        if !self.groups.iter().all(|group| group.pass()) {
            // A writer that waits behind this one takes a gate that is shut for a sign that no
            // reader is left.
            self.gate.open();
            self.writers.queue.unlock();
            return None;
        }
        Some(WriteGuard { lock: self })
    }

    /// The value, which the caller has alone.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Bytes of memory held besides the lock itself.
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

    /// Counts a reader in if it may read.
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
                    // The barrier, if it is up, is let down here.
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
        // The gate is opened before the queue is left, since only its holder may do so. If a writer
        // comes in between, it shuts the gate again.
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

/// A lock that is held to read; dropping this unlocks it.
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
        // SAFETY: the thread was counted in with the gate open, and is until the guard goes
        // (READER_GROUPS-1).
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.group.leave();
    }
}

/// A lock that is held to write; dropping this unlocks it.
#[must_use = "the lock is released as soon as this is dropped"]
pub struct WriteGuard<'a, T: ?Sized> {
    lock: &'a ReaderGroupLock<T>,
}

// SAFETY: the guard is an exclusive reference to the value, and any thread can give the queue on.
unsafe impl<T: ?Sized + Send> Send for WriteGuard<'_, T> {}
// SAFETY: a shared reference to the guard gives shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for WriteGuard<'_, T> {}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard has the value alone (READER_GROUPS-1).
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard has the value alone (READER_GROUPS-1).
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.unlock();
    }
}
