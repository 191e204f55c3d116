//! Sums over what many locks guard, as of one moment, that cost the holders of these locks nothing.
//!
//! A structure whose parts have a lock each counts what is in a part beside its lock: the holder of
//! the lock changes the number with a load and a store, on a cache line that it has anyway. So
//! writers share nothing for the sake of the sum. The sum of the parts one after the other is that
//! of no single moment. A *census* is: a number that the structure had at some moment between the
//! begin and the end of the call, in the order of all that writers and readers have seen of it. It
//! is found in one of two ways.
//!
//! - A [glance](Gate::glance) goes through the parts twice. If no lock was held and no turn was
//!   counted between, nothing has changed between, and the first round has seen the sum of that
//!   time. A glance writes nothing. It is the way while few threads write.
//! - Behind a [closed gate](Gate::close_and_sum) no thread enters a part. A thread that has taken
//!   the lock of a part looks at the gate, and if that is closed gives the lock back and waits. The
//!   census waits for the threads that are inside, and then finds all parts at rest.
//!
//! Good for: numbers that change all the time and must be exact when asked for, such as the size of
//! a table, with as many parts as contention asks for. Bad at: being asked all the time while many
//! threads write, since they stand still for the time of a look at all parts, a few microseconds;
//! but as a rule no longer than they go on between, and callers beside each other
//! [share](Census::share) a census.
//!
//! # What else there is
//! The decentralized counters of Erlang/OTP (2020) exchange the array of counters for a new one,
//! wait until every scheduler has passed a point where it holds no pointer to the old one, and add
//! that up: writers never wait, a sum takes milliseconds. It is a sum of changes whose effects need
//! not have been seen in that order. Sela and Petrank (*Concurrent size*, OOPSLA 2022) make a
//! change and its number one step by having readers help, which costs lookups a look at a
//! descriptor. Their successors (*A study of synchronization methods for concurrent size*,
//! SPAA 2025) compare waiting-free, optimistic and locking ways, and find none that is best
//! everywhere. Here changes happen under locks anyway, so the optimistic way and that of locking
//! need no more than these locks.
//!
//! # Invariants
//! - CENSUS-1. A thread makes a change to a part and to its numbers between taking the lock of the
//!   part *and* finding the gate open, and giving the lock back. It counts its [turn](Part::turns)
//!   before the first of both.
//! - CENSUS-2. Numbers and turns are stored to by the holder of the lock only, with release.
//! - CENSUS-3. The set of the parts does not change during a census, or the caller finds out and
//!   drops the result. Numbers move between parts only then.
//! - CENSUS-4. A thread waits at the gate only while it holds no lock of a part. So those that are
//!   inside come out, and the census ends.
//! - CENSUS-5. The gate is closed by the holder of the lock of the census only.
//! - CENSUS-6. A census may be shared by callers that have come before it began, and by no others.
//!
//! # Why a glance is right
//! A look at a part is at its turns, then at its lock, then at its numbers. Let all locks be found
//! free, with the same turns, in both rounds. A turn that the first round has counted is over: its
//! number was loaded with acquire, so the look at the lock finds it held, which ends the glance, or
//! given back, and then acquires the numbers. Call the time from the last look of the first round
//! to the first one of the second *T*. A change that was made visible before the call is counted:
//! by CENSUS-1 and CENSUS-2 its turn is older than the visible effect, so it is among those that
//! the first round has counted. A change that is counted has ended before T: a number that is
//! loaded from a holder inside makes (CENSUS-2, and the acquire fence between the rounds) its turn
//! visible to the second round, which finds other turns than the first, since that has found no
//! turn that was not over. So the sum is that at T.
//!
//! In the first round the turns come first. Behind the look at the lock a thread may come in and
//! count its turn; the second round would find that same turn, and the numbers between might be
//! half changed. In the second round the lock comes first. A thread that took it before the second
//! round may count its turn late, since it takes the lock before: a look at the turns first would
//! miss it, and the look at the lock, when it has been given back, too.
//!
//! # Why nothing is done while the clock is advanced
//! `between` of a glance writes, executes a fence, and looks at each lock; a writer takes the lock,
//! executes a fence, and reads what `between` has written. So the writer sees that, or the second
//! round finds the lock held, or given back, and then (acquire) a turn that the first round has not
//! counted.
//!
//! # Why the closed gate is right
//! The census closes the gate, executes a fence, and looks at each lock; a writer takes the lock,
//! executes a fence, and looks at the gate. So the writer finds the gate closed, and changes
//! nothing, or the census finds the lock held, and waits until it is free. When the last lock has
//! been found free no thread is inside, and none comes in until the gate is opened: the sum is that
//! of this moment.

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
/// Closed, and a thread may be asleep.
const AWAITED: u32 = 2;

/// The longest time for which a gate rests open. It was closed for longer only if the system had
/// stopped a thread inside.
const REST: Duration = Duration::from_micros(100);

/// The data that one lock guards, with numbers that its holder keeps right.
pub trait Part {
    /// The lock.
    fn lock(&self) -> &Lock;

    /// A number that grows with each thread that has [entered](Gate::enter) (CENSUS-1), loaded with
    /// acquire.
    fn turns(&self) -> u64;
}

/// The gate that writers pass when they enter a part. One word, to be put on a line that is seldom
/// written.
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
    /// An open gate.
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(OPEN),
        }
    }

    /// Takes the lock of a part to change it, as [`Lock::lock_noting`].
    #[inline]
    pub fn enter<'l>(&self, lock: &'l Lock) -> (Held<'l>, bool) {
        let entered = self.enter_by(|| Some(lock.lock_noting()), || None);
        entered.expect("this way of locking waits")
    }

    /// Does what [`enter`](Gate::enter) does, but a thread that [must not wait](lock::set_may_wait)
    /// for long may give up, as in [`Lock::lock_within_limit`].
    #[inline]
    pub fn enter_within_limit<'l>(&self, lock: &'l Lock) -> Option<(Held<'l>, bool)> {
        self.enter_by(|| lock.lock_within_limit(), lock::limit_of_thread)
    }

    /// Does what [`enter`](Gate::enter) does; the statistics of the lock stay as they are, as in
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
            // Acquire: what comes in when the gate is open again sees what was done behind it.
            if self.state.load(Ordering::Acquire) == OPEN {
                return Some(taken);
            }
            drop(taken);
            if !self.wait(&limit) {
                return None;
            }
        }
    }

    /// Waits until the gate is open; false if that takes longer than the limit.
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
            // So that it is known that a thread sleeps.
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

    /// The sum over all parts at one moment, if no thread was in any of them for a while. Writes
    /// nothing. O(parts).
    ///
    /// `parts` returns the same parts each time. `between` is called between two rounds through the
    /// parts. If there is a sum, a thread that was inside before sees nothing that `between` wrote,
    /// and one that comes in later sees all of it.
    pub fn glance<'p, P: Part + 'p, I: Iterator<Item = &'p P>, S: Default>(
        &self,
        parts: impl Fn() -> I,
        add: impl Fn(&mut S, &P),
        between: Option<&mut dyn FnMut()>,
    ) -> Option<S> {
        let mut sum = S::default();
        let mut before = 0;
        for part in parts() {
            // Before the look at the lock: see "Why a glance is right".
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
                // With that of a writer behind the taking of a lock: it sees what was written, or
                // the second round finds the lock held or another turn.
                fence(Ordering::SeqCst);
            }
        }
        let mut after = 0;
        for part in parts() {
            // Behind the look at the lock: the turn of a writer that has given it back is seen.
            if !part.lock().is_free() {
                return None;
            }
            after += part.turns();
        }
        // Turns only grow, so if their sum is the same each of them is.
        (after == before).then_some(sum)
    }

    /// The sum over all parts at one moment: by a [glance](Gate::glance), or with the gate closed.
    /// `None` if the calling thread [must not wait](lock::set_may_wait) for the threads that are
    /// inside. O(parts).
    ///
    /// For the caller that a [`Census`] lets in, so that there is one at a time (CENSUS-5). `parts`
    /// returns the same parts each time. `at_rest` is called while no thread is inside, as
    /// `between` of [`glance`](Gate::glance).
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

    /// Calls a function while the gate is closed and no thread is inside any part. `None`, without
    /// the call, if the calling thread [must not wait](lock::set_may_wait) for the threads that
    /// are inside. O(parts), and the function.
    ///
    /// For the caller that a [`Census`] lets in, so that there is one at a time (CENSUS-5).
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
        // Between this store and the looks at the locks: see "Why the closed gate is right".
        fence(Ordering::SeqCst);
        Closed { gate, turn, since }
    }
}

impl Drop for Closed<'_, '_> {
    fn drop(&mut self) {
        // Release: what comes in now comes after the looks at the parts.
        if self.gate.state.swap(OPEN, Ordering::Release) == AWAITED {
            futex::wake_all(&self.gate.state);
        }
        self.turn.opened = Some((Instant::now(), self.since.elapsed()));
    }
}

/// Between taking a lock and looking at the gate. Where taking a lock is one instruction that is a
/// full fence for the processor, only the compiler must be told.
#[inline(always)]
fn fence_after_locking() {
    if cfg!(target_arch = "x86_64") && !IS_EXPLORED {
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// One census at a time, and the result of the last.
#[derive(Debug)]
pub struct Census<S> {
    lock: Lock,
    /// The number of those that have begun. Changed by the holder of the lock.
    begun: AtomicU64,
    /// Used by the holder of the lock only.
    last: UnsafeCell<Last<S>>,
}

#[derive(Debug)]
struct Last<S> {
    /// Of the last census, unless it failed.
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

// SAFETY: `last` is used by the holder of the lock only; what it holds may go to another thread if
// `S` may.
unsafe impl<S: Send> Send for Census<S> {}
// SAFETY: `last` is used by the holder of the lock only, so threads that share a census access it
// one at a time, and a sum is handed out as a copy.
unsafe impl<S: Send> Sync for Census<S> {}

/// The right to close a gate.
#[derive(Debug)]
pub struct Turn<'a> {
    _held: &'a Held<'a>,
    /// The moment at which the gate was opened last, and the time for which it had been closed.
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
    /// None was taken yet.
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

    /// Takes a census by calling `take`, or shares one that has begun after this call. `None` if
    /// `take` returns that, or the calling thread [must not wait](lock::set_may_wait) for the
    /// others.
    pub fn share(&self, take: impl FnOnce(&mut Turn<'_>) -> Option<S>) -> Option<S> {
        // With the fence behind the begin of a census: that does not see all that was done before
        // this call, or this load sees its number.
        fence(Ordering::SeqCst);
        let begun = self.begun.load(Ordering::Relaxed);
        let (held, _) = self.lock.lock_within_limit()?;
        let last = self.last.with_mut(|last| last);
        // SAFETY: the lock is held, so no other thread uses the cell, and this reference ends
        // before `held`.
        let last = unsafe { &mut *last };
        let now = self.begun.load(Ordering::Relaxed);
        // One more than there were has begun after this call, and has ended, since its lock is free
        // (CENSUS-6).
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

    /// Calls a function that may close the gate, when it is its turn, and shares nothing. `None` if
    /// that returns it, or the calling thread [must not wait](lock::set_may_wait) for the others.
    pub fn take_turn<T>(&self, take: impl FnOnce(&mut Turn<'_>) -> Option<T>) -> Option<T> {
        let (held, _) = self.lock.lock_within_limit()?;
        let last = self.last.with_mut(|last| last);
        // SAFETY: the lock is held, so no other thread uses the cell, and this reference ends
        // before `held`.
        unsafe { &mut *last }.take_turn(&held, take)
    }
}
