//! Exact sums over the parts of a structure, at one moment, at no cost to the writers of the parts.
//!
//! A structure whose parts have a lock each keeps the count of a part beside its lock: the holder
//! of the lock changes it with a load and a store, on a cache line that it owns anyway. So the sum
//! makes writers share nothing. A plain sum of the parts, one after the other, belongs to no single
//! moment. A *census* does: it is linearizable, a number that the structure had at some moment
//! between the begin and the end of the call. It is taken in one of two ways.
//!
//! - A [glance](Gate::glance) visits the parts twice. If no lock was held and no turn was counted
//!   in between, nothing has changed in between, and the first round has read the sum of that time.
//!   A glance writes nothing. It suits structures that few threads write.
//! - Behind a [closed gate](Gate::close_and_sum) no thread enters a part. A thread that has taken
//!   the lock of a part checks the gate, and if it is closed, releases the lock and waits. The
//!   census waits for the threads inside, and then sums the parts at rest.
//!
//! Good for: numbers that change all the time and must be exact when read, such as the size of a
//! table, with as many parts as contention demands. Bad for: frequent reads while many threads
//! write, because writers stop while all parts are visited, a few microseconds; but as a rule no
//! longer than they run in between, and concurrent callers [share](Census::share) a census.
//!
//! # Related work
//! The decentralized counters of Erlang/OTP (2020) exchange the array of counters for a new one,
//! wait until every scheduler has passed a point where it holds no pointer to the old one, and add
//! that up: writers never wait, a sum takes milliseconds. It sums changes whose effects may have
//! become visible in another order. Sela and Petrank (*Concurrent size*, OOPSLA 2022) make a change
//! and its number one step by having readers help, which costs each lookup a read of a descriptor.
//! Their successors (*A study of synchronization methods for concurrent size*, SPAA 2025) compare
//! wait-free, optimistic and locking methods, and find none that is best everywhere. Here changes
//! happen under locks anyway, so the optimistic and the locking method need only these locks.
//!
//! # Invariants
//! - CENSUS-1. A thread changes a part and its numbers after it has taken the lock of the part
//!   *and* has found the gate open, and before it releases the lock. It counts its
//!   [turn](Part::turns) before the first change.
//! - CENSUS-2. Only the holder of the lock stores numbers and turns, with release.
//! - CENSUS-3. The set of the parts does not change during a census, or the caller detects it and
//!   drops the result. Numbers move between parts only when the set changes.
//! - CENSUS-4. A thread waits at the gate only while it holds no lock of a part. So the threads
//!   inside leave, and the census ends.
//! - CENSUS-5. Only the holder of the census's lock closes the gate.
//! - CENSUS-6. Callers that arrived before a census began may share it, and no others.
//!
//! # Correctness of a glance
//! The first round reads the turns of a part, then its lock, then its numbers. Assume that both
//! rounds find all locks free, with the same turns. A turn that the first round has counted is
//! over: its number was loaded with acquire, so the read of the lock finds it held, which ends the
//! glance, or released, and then acquires the numbers. Let *T* be the time between the last read of
//! the first round and the first read of the second. A change that was made visible before the call
//! is counted: by CENSUS-1 and CENSUS-2 its turn is older than the visible effect, so the first
//! round has counted it. A change that is counted has ended before T: a number loaded from a holder
//! inside makes (CENSUS-2, and the acquire fence between the rounds) its turn visible to the second
//! round, which then finds other turns than the first, because the first has counted only turns
//! that are over. So the sum is that at T.
//!
//! In the first round the turns come first. If they came after the lock, a thread could enter in
//! between and count its turn; the second round would find the same turn, and the numbers could be
//! half changed. In the second round the lock comes first. A thread that took the lock before the
//! second round may count its turn late: reading the turns first would miss it, and so would
//! reading the lock after its release.
//!
//! # Correctness of `between`
//! `between` of a glance writes, executes a fence, and reads each lock; a writer takes the lock,
//! executes a fence, and reads the words that `between` has written. So the writer sees them, or
//! the second round finds the lock held, or released, and then (acquire) a turn that the first
//! round has not counted.
//!
//! # Correctness of the closed gate
//! The census closes the gate, executes a fence, and reads each lock; a writer takes the lock,
//! executes a fence, and reads the gate. So the writer finds the gate closed, and changes nothing,
//! or the census finds the lock held, and waits until it is free. When the last lock has been found
//! free, no thread is inside, and none enters until the gate is opened: the sum is that of this
//! moment.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::backoff::Backoff;
use crate::futex;
use crate::lock::{self, Held, Lock};
use crate::model::{GLANCES, IS_EXPLORED, WAIT_SPINS};
use crate::shim::UnsafeCell;
use crate::shim::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

const OPEN: u32 = 0;
const CLOSED: u32 = 1;
/// State of a closed gate at which a thread may be asleep.
const AWAITED: u32 = 2;

/// Longest time for which a gate rests open. A closure lasts longer only if the system has stopped
/// a thread inside.
const REST: Duration = Duration::from_micros(100);

/// Data guarded by one lock, with numbers that the lock's holder maintains.
pub trait Part {
    /// Returns the lock.
    fn lock(&self) -> &Lock;

    /// Returns a number that grows with each thread that has [entered](Gate::enter) (CENSUS-1),
    /// loaded with acquire.
    fn turns(&self) -> u64;
}

/// The gate that writers pass when they enter a part. One word, meant for a cache line that is
/// seldom written.
#[derive(Debug)]
pub struct Gate {
    state: AtomicU32,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Creates an open gate.
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(OPEN),
        }
    }

    /// Takes the lock of a part to change it, like [`Lock::lock_noting`].
    #[inline]
    pub fn enter<'l>(&self, lock: &'l Lock) -> (Held<'l>, bool) {
        let entered = self.enter_by(|| Some(lock.lock_noting()), || None);
        entered.expect("this way of locking waits")
    }

    /// Enters like [`enter`](Gate::enter), but a thread that [must not wait](lock::set_may_wait)
    /// for long may give up, as in [`Lock::lock_within_limit`].
    #[inline]
    pub fn enter_within_limit<'l>(&self, lock: &'l Lock) -> Option<(Held<'l>, bool)> {
        self.enter_by(|| lock.lock_within_limit(), lock::limit_of_thread)
    }

    /// Enters like [`enter`](Gate::enter), but leaves the statistics of the lock unchanged, as in
    /// [`Lock::lock_uncounted`].
    pub fn enter_uncounted<'l>(&self, lock: &'l Lock) -> Held<'l> {
        let entered = self.enter_by(|| Some((lock.lock_uncounted(), false)), || None);
        entered.expect("this way of locking waits").0
    }

    #[inline(always)]
    fn enter_by<'l>(
        &self,
        take: impl Fn() -> Option<(Held<'l>, bool)>,
        limit: impl Fn() -> Option<Duration>,
    ) -> Option<(Held<'l>, bool)> {
        loop {
            let taken = take()?;
            fence_after_locking();
            // Acquire: a thread that enters after the gate was opened sees all that was done behind
            // it.
            if self.state.load(Ordering::Acquire) == OPEN {
                return Some(taken);
            }
            drop(taken);
            if !self.wait(&limit) {
                return None;
            }
        }
    }

    /// Waits until the gate is open. Returns `false` if that takes longer than the limit.
    #[cold]
    fn wait(&self, limit: impl Fn() -> Option<Duration>) -> bool {
        for _ in 0..WAIT_SPINS {
            if self.state.load(Ordering::Relaxed) == OPEN {
                return true;
            }
            crate::shim::pause();
        }
        let end = limit().map(|limit| Instant::now() + limit);
        loop {
            // The opener of the gate must know that a thread sleeps.
            let _ = self.exchange(CLOSED, AWAITED);
            if self.state.load(Ordering::Relaxed) == OPEN {
                return true;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            futex::wait(&self.state, AWAITED, left);
        }
    }

    fn exchange(&self, from: u32, to: u32) -> Result<u32, u32> {
        self.state
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed)
    }

    /// Sums all parts at one moment, if no thread was in any of them for a while. Writes nothing.
    /// O(parts).
    ///
    /// `parts` returns the same parts each time. `between` is called between two rounds over the
    /// parts. If a sum is returned, threads that were inside before see nothing that `between`
    /// wrote, and threads that enter later see all of it.
    pub fn glance<'p, P: Part + 'p, I: Iterator<Item = &'p P>, S: Default>(
        &self,
        parts: impl Fn() -> I,
        add: impl Fn(&mut S, &P),
        between: Option<&mut dyn FnMut()>,
    ) -> Option<S> {
        let mut sum = S::default();
        let mut before = 0;
        for part in parts() {
            // Turns come before the lock: see "Correctness of a glance".
            before += part.turns();
            if !part.lock().is_free() {
                return None;
            }
            add(&mut sum, part);
        }
        match between {
            // Orders the loads of numbers before those of the second round.
            None => fence(Ordering::Acquire),
            Some(between) => {
                between();
                // Pairs with the fence of a writer after it has taken its lock: the writer sees the
                // words written, or the second round finds the lock held or another turn.
                fence(Ordering::SeqCst);
            }
        }
        let mut after = 0;
        for part in parts() {
            // Turns come after the lock: the turn of a writer that has released it is visible.
            if !part.lock().is_free() {
                return None;
            }
            after += part.turns();
        }
        // Turns only grow, so if their sum is the same each of them is.
        (after == before).then_some(sum)
    }

    /// Sums all parts at one moment: by a [glance](Gate::glance), or with the gate closed. Returns
    /// `None` if the calling thread [must not wait](lock::set_may_wait) for the threads inside.
    /// O(parts).
    ///
    /// A [`Census`] admits one caller at a time (CENSUS-5). `parts` returns the same parts each
    /// time. `at_rest` is called while no thread is inside, like `between` of
    /// [`glance`](Gate::glance).
    pub fn close_and_sum<'p, P: Part + 'p, I: Iterator<Item = &'p P>, S: Default>(
        &self,
        turn: &mut Turn<'_>,
        parts: impl Fn() -> I,
        add: impl Fn(&mut S, &P),
        at_rest: &mut dyn FnMut(),
    ) -> Option<S> {
        for _ in 0..GLANCES {
            if let Some(sum) = self.glance(&parts, &add, Some(at_rest)) {
                return Some(sum);
            }
        }
        self.close(turn, &parts, || {
            let mut sum = S::default();
            parts().for_each(|part| add(&mut sum, part));
            at_rest();
            sum
        })
    }

    /// Calls a function while the gate is closed and no thread is inside any part. Returns `None`,
    /// without the call, if the calling thread [must not wait](lock::set_may_wait) for the threads
    /// inside. O(parts), and the function.
    ///
    /// A [`Census`] admits one caller at a time (CENSUS-5).
    pub fn close<'p, P: Part + 'p, I: Iterator<Item = &'p P>, T>(
        &self,
        turn: &mut Turn<'_>,
        parts: impl Fn() -> I,
        at_rest: impl FnOnce() -> T,
    ) -> Option<T> {
        turn.rest();
        let closed = Closed::new(self, turn);
        let mut backoff = Backoff::new();
        for part in parts() {
            while !part.lock().is_free() {
                if !backoff.wait() {
                    return None;
                }
            }
        }
        let found = at_rest();
        drop(closed);
        Some(found)
    }
}

/// A gate that is closed; dropping this opens it.
struct Closed<'a, 't> {
    gate: &'a Gate,
    turn: &'a mut Turn<'t>,
    since: Instant,
}

impl<'a, 't> Closed<'a, 't> {
    fn new(gate: &'a Gate, turn: &'a mut Turn<'t>) -> Self {
        let since = Instant::now();
        gate.state.store(CLOSED, Ordering::Relaxed);
        // Orders this store before the reads of the locks: see "Correctness of the closed gate".
        fence(Ordering::SeqCst);
        Closed { gate, turn, since }
    }
}

impl Drop for Closed<'_, '_> {
    fn drop(&mut self) {
        // Release: threads that enter now come after the reads of the parts.
        if self.gate.state.swap(OPEN, Ordering::Release) == AWAITED {
            futex::wake_all(&raw const self.gate.state);
        }
        self.turn.opened = Some((Instant::now(), self.since.elapsed()));
    }
}

/// Executes the fence between taking a lock and reading the gate. Where an atomic exchange is a
/// full fence of the processor, a compiler fence is enough.
#[inline(always)]
fn fence_after_locking() {
    if cfg!(target_arch = "x86_64") && !IS_EXPLORED {
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The lock that admits one census at a time, and the result of the last one.
#[derive(Debug)]
pub struct Census<S> {
    lock: Lock,
    /// Number of censuses begun. Changed by the holder of the lock.
    begun: AtomicU64,
    /// The last census. Used only by the holder of the lock.
    last: UnsafeCell<Last<S>>,
}

#[derive(Debug)]
struct Last<S> {
    /// The result of the last census, unless it failed.
    sum: Option<S>,
    turn: Option<(Instant, Duration)>,
}

impl<S> Last<S> {
    fn take_turn<T>(&mut self, held: &Held<'_>, take: impl FnOnce(&mut Turn<'_>) -> T) -> T {
        let mut turn = Turn {
            _held: held,
            opened: self.turn,
        };
        let taken = take(&mut turn);
        self.turn = turn.opened;
        taken
    }
}

// SAFETY: `last` is used by the holder of the lock only, and its sum may move to another thread if
// `S` may.
unsafe impl<S: Send> Send for Census<S> {}
// SAFETY: `last` is used by the holder of the lock only, so threads that share a census access it
// one at a time, and a sum is handed out as a copy.
unsafe impl<S: Send> Sync for Census<S> {}

/// The right to close a gate.
#[derive(Debug)]
pub struct Turn<'a> {
    _held: &'a Held<'a>,
    /// The moment at which the gate was opened last, and the duration of that closure.
    opened: Option<(Instant, Duration)>,
}

impl Turn<'_> {
    /// Waits until the gate has been open for as long as it was closed before.
    fn rest(&self) {
        if let Some((opened, closed)) = self.opened
            && !IS_EXPLORED
        {
            while opened.elapsed() < closed.min(REST) {
                crate::shim::pause();
            }
        }
    }
}

impl<S: Copy> Default for Census<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Copy> Census<S> {
    /// Creates a census without a result.
    pub fn new() -> Self {
        Self {
            lock: Lock::new(),
            begun: AtomicU64::new(0),
            last: UnsafeCell::new(Last {
                sum: None,
                turn: None,
            }),
        }
    }

    /// Takes a census by calling `take`, or shares one that began after this call. Returns `None`
    /// if `take` does, or if the calling thread [must not wait](lock::set_may_wait) for the others.
    pub fn share(&self, take: impl FnOnce(&mut Turn<'_>) -> Option<S>) -> Option<S> {
        // Pairs with the fence at the begin of a census: a census that does not see everything
        // before this call has a number that this load returns.
        fence(Ordering::SeqCst);
        let begun = self.begun.load(Ordering::Relaxed);
        let (held, _) = self.lock.lock_within_limit()?;
        let last = self.last.with_mut(|last| last);
        // SAFETY: the lock is held, so no other thread uses the cell, and this reference ends
        // before `held`.
        let last = unsafe { &mut *last };
        let now = self.begun.load(Ordering::Relaxed);
        // A census with a larger number began after this call, and has ended, because its lock is
        // free (CENSUS-6).
        if now > begun && last.sum.is_some() {
            return last.sum;
        }
        self.begun.store(now + 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        last.sum = None;
        let sum = last.take_turn(&held, take);
        last.sum = sum;
        sum
    }

    /// Calls a function that may close the gate, once it is its turn, and shares no result. Returns
    /// `None` if the function does, or if the calling thread [must not wait](lock::set_may_wait)
    /// for the others.
    pub fn take_turn<T>(&self, take: impl FnOnce(&mut Turn<'_>) -> Option<T>) -> Option<T> {
        let (held, _) = self.lock.lock_within_limit()?;
        let last = self.last.with_mut(|last| last);
        // SAFETY: the lock is held, so no other thread uses the cell, and this reference ends
        // before `held`.
        unsafe { &mut *last }.take_turn(&held, take)
    }
}
