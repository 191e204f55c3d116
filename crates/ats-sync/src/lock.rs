//! A lock of eight bytes that counts how often it was contended.
//!
//! Structures that adapt to contention split the data under a lock when many threads contend for
//! it, and join it again when none do. So each lock has statistics: they go up by a lot when a
//! thread had to wait, and down by one when it did not. The number has a word of its own beside
//! the lock and is changed only by the holder, so counting costs no atomic read-modify-write.
//!
//! A thread that has to wait spins for a moment, because critical sections here are short, and then
//! sleeps in the kernel (Linux), or yields its time slice (other systems). There is no queue: a new
//! thread may overtake one that sleeps. There is no poisoning: a panic in a critical section
//! unlocks.
//!
//! Critical sections are short, but the system may stop the holder of a lock in the middle of one,
//! for many milliseconds. Some threads must not wait for so long, because others depend on them:
//! the schedulers of a virtual machine. A program states [once](set_may_wait) which threads may
//! wait. The others give up after [`WAIT_LIMIT`] if they use a [limited lock
//! operation](Lock::lock_within_limit).
//!
//! # Invariants
//! - LOCK-1. `state` is `FREE` exactly if no thread holds the lock.
//! - LOCK-2. A thread sleeps only while `state` is `CONTENDED`, and a thread that unlocks a
//!   `CONTENDED` lock wakes one sleeper. The woken thread takes the lock as `CONTENDED`, because it
//!   cannot know whether it was the last one asleep. A thread gives up only directly after it has
//!   found the lock held and left it `CONTENDED`, so a wake-up that it has consumed is not lost:
//!   the holder wakes another one.
//! - LOCK-3. `statistics` is written only by the holder.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::count;
use crate::futex;
use crate::model::LOCK_SPINS;
use crate::shim::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Amount that an acquisition that had to wait adds to the statistics.
///
/// This and the next two constants are those of the contention adapting trees (Sagonas and Winblad,
/// JPDC 2018) as used by `erl_db_catree.c` of Erlang/OTP: splitting is eager, joining is lazy.
pub const CONTENDED_COST: i32 = 250;

/// Amount that an acquisition without waiting adds to the statistics.
pub const UNCONTENDED_COST: i32 = -1;

/// Bound of the absolute value of the statistics.
pub const STATISTICS_LIMIT: i32 = 20_000;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// State of a held lock for which a thread may be asleep.
const CONTENDED: u32 = 2;

/// Largest number of pauses between two reads of the lock. Each read takes the cache line from the
/// holder, which needs it to unlock: with few reads one hot lock changes hands twice as often.
const SPINS_BETWEEN: u32 = 64;

/// Longest time for which a thread with limited waiting sleeps for a lock.
pub const WAIT_LIMIT: Duration = Duration::from_millis(1);

/// The function that returns `true` if the calling thread may wait for a lock indefinitely. If
/// unset, all threads may.
static MAY_WAIT: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets the function that decides whether the calling thread may wait for locks indefinitely. Only
/// threads that are about to sleep call it. The first call of `set_may_wait` in a program counts.
pub fn set_may_wait(may_wait: fn() -> bool) {
    // A second call comes from the same library loaded again, and sets the same function.
    let _ = MAY_WAIT.set(may_wait);
}

/// Returns `true` if the calling thread may wait for locks, and work for others, indefinitely.
#[cold]
pub fn may_wait() -> bool {
    MAY_WAIT.get().is_none_or(|may_wait| may_wait())
}

/// Returns the time that the calling thread may sleep for a lock, if that is limited.
#[cold]
pub(crate) fn limit_of_thread() -> Option<Duration> {
    (!may_wait()).then_some(WAIT_LIMIT)
}

/// A mutual exclusion lock with contention statistics. It guards no data of its own.
#[derive(Debug)]
pub struct Lock {
    state: AtomicU32,
    statistics: AtomicI32,
}

impl Lock {
    /// Creates a free lock with statistics 0.
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            statistics: AtomicI32::new(0),
        }
    }

    /// Takes the lock, waits for it if needed, and updates the statistics.
    ///
    /// Not re-entrant: a thread that already holds the lock waits for ever.
    #[inline]
    pub fn lock(&self) -> Held<'_> {
        self.lock_noting().0
    }

    /// Takes the lock like [`lock`](Lock::lock); also returns `true` if it had to wait.
    #[inline]
    pub fn lock_noting(&self) -> (Held<'_>, bool) {
        if let Some(held) = self.try_lock() {
            held.count_uncontended();
            (held, false)
        } else {
            self.wait();
            let held = Held { lock: self };
            held.count(CONTENDED_COST);
            (held, true)
        }
    }

    /// Takes the lock like [`lock_noting`](Lock::lock_noting), but a thread that must [not
    /// wait](set_may_wait) for long gives up after [`WAIT_LIMIT`]: it returns `None` and leaves the
    /// statistics unchanged. Costs as much as `lock` if the lock is free.
    #[inline]
    pub fn lock_within_limit(&self) -> Option<(Held<'_>, bool)> {
        if let Some(held) = self.try_lock() {
            held.count_uncontended();
            return Some((held, false));
        }
        self.wait_within(limit_of_thread).then(|| {
            let held = Held { lock: self };
            held.count(CONTENDED_COST);
            (held, true)
        })
    }

    /// Takes the lock, waits for it if needed, and leaves the statistics unchanged. For callers
    /// that more or fewer locks would not help.
    pub fn lock_uncounted(&self) -> Held<'_> {
        self.try_lock().unwrap_or_else(|| {
            self.wait();
            Held { lock: self }
        })
    }

    /// Takes the lock if it is free, and leaves the statistics unchanged.
    #[inline]
    pub fn try_lock(&self) -> Option<Held<'_>> {
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| {
                count::note_lock();
                Held { lock: self }
            })
    }

    /// Returns `true` if no thread holds the lock; then all writes of its holders are visible.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.state.load(Ordering::Acquire) == FREE
    }

    /// Returns `true` if a thread held the lock a moment ago.
    pub fn is_locked(&self) -> bool {
        self.state.load(Ordering::Relaxed) != FREE
    }

    /// Returns the statistics: positive under contention, negative without. May be outdated unless
    /// the caller holds the lock.
    #[inline]
    pub fn statistics(&self) -> i32 {
        self.statistics.load(Ordering::Relaxed)
    }

    #[cold]
    fn wait(&self) {
        let taken = self.wait_within(|| None);
        debug_assert!(taken, "without a limit there is no giving up");
    }

    /// Waits for the lock and takes it, or gives up and returns `false`. `limit` returns the
    /// longest time to sleep.
    #[cold]
    fn wait_within(&self, limit: impl FnOnce() -> Option<Duration>) -> bool {
        let (mut spins, mut between) = (0, 1);
        while spins < LOCK_SPINS {
            if self.state.load(Ordering::Relaxed) == FREE && self.try_state(HELD) {
                count::note_lock_after_wait();
                return true;
            }
            (0..between).for_each(|_| crate::shim::pause());
            spins += between;
            between = (2 * between).min(SPINS_BETWEEN);
        }
        let limit = limit();
        let end = limit.map(|limit| Instant::now() + limit);
        // Taking the lock as `CONTENDED` keeps LOCK-2: others may have gone to sleep before us.
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            // The kernel compares the word with `CONTENDED` before it lets us sleep, so an unlock
            // between our swap and this call is not missed.
            futex::wait(&self.state, CONTENDED, left);
        }
        count::note_lock_after_wait();
        true
    }

    fn try_state(&self, state: u32) -> bool {
        self.state
            .compare_exchange(FREE, state, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    fn unlock(&self) {
        let word = &raw const self.state;
        // After the swap another thread may take the lock and free its memory, so only the address
        // is used from here on.
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            futex::wake_one(word);
        }
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}

/// A held lock; dropping this unlocks it.
#[derive(Debug)]
#[must_use = "the lock is released as soon as this is dropped"]
pub struct Held<'a> {
    lock: &'a Lock,
}

impl Held<'_> {
    /// Returns the statistics, which are exact because only the holder changes them.
    #[inline]
    pub fn statistics(&self) -> i32 {
        self.lock.statistics()
    }

    /// Resets the statistics to 0, after the structure has adapted.
    pub fn reset_statistics(&self) {
        self.lock.statistics.store(0, Ordering::Relaxed);
    }

    /// Counts an acquisition without waiting, like [`count`](Held::count) in fewer instructions.
    #[inline]
    fn count_uncontended(&self) {
        let statistics = self.lock.statistics();
        if statistics > -STATISTICS_LIMIT {
            let statistics = statistics + UNCONTENDED_COST;
            self.lock.statistics.store(statistics, Ordering::Relaxed);
        }
    }

    /// Adds to the statistics, for events that only the owner of the lock can judge.
    #[inline]
    pub fn count(&self, cost: i32) {
        let statistics = self.lock.statistics().saturating_add(cost);
        let clamped = statistics.clamp(-STATISTICS_LIMIT, STATISTICS_LIMIT);
        // A load and a store instead of a read-modify-write: only the holder writes (LOCK-3).
        self.lock.statistics.store(clamped, Ordering::Relaxed);
    }

    /// Returns `true` if this is the holder of `lock`.
    pub fn holds(&self, lock: &Lock) -> bool {
        std::ptr::eq(self.lock, lock)
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.unlock();
    }
}
