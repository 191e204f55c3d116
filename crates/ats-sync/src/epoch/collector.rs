//! The collector: one thread that frees the garbage other threads leave behind.
//!
//! A thread frees its own garbage when it retires more. The objects of its last retirements would
//! wait until the thread retires again. The collector frees them: a thread of the program that
//! calls [`Collector::work`] in a loop, and [`Collector::rest`] in between.
//!
//! # Choice of bags
//! Objects that one thread allocates and another frees cost more than those that stay with their
//! thread, because the two contend in the allocator. So the collector leaves a bag to its owner as
//! long as the owner retires steadily. It takes a *survey* of all bags every [`SURVEY_EVERY`], and
//! empties a bag if fewer than [`FEW`] objects were retired since the last survey, or if the bag
//! has grown larger than an undelayed owner would let it.
//!
//! # Cost for other threads
//! While a bag is not empty, the collector polls the bags by itself, and retirements cost no more
//! than without it. It sleeps without limit when all bags are empty. The first object of an empty
//! bag wakes it, by one system call. It then does nothing before the next survey, so the bag cannot
//! become empty again soon, and no thread makes more than one such call each [`SURVEY_EVERY`].
//!
//! # Latency
//! If no thread stays pinned, garbage waits until the second survey after the last retirement of a
//! busy thread, 40 ms, and until the first one if the thread retired little; plus the time that
//! freeing takes. An attempt to advance fails if a thread happens to be pinned in an earlier epoch;
//! it is repeated after 1 ms, then after twice as long, and with each survey.
//!
//! # Invariants
//! - COLLECTOR-1. A domain has one collector. It alone writes the marks that surveys set on bags.
//! - COLLECTOR-2. *Garbage is never left while the collector sleeps without limit.* The thread that
//!   retires pushes its object into an empty bag, executes the light fence, and reads the state of
//!   the collector; the collector sets it to [`ASLEEP`], executes the heavy fence, and reads all
//!   bags. By the contract of the fences either the collector sees the object and stays awake, or
//!   the thread sees the state and wakes it. The same holds for a new slot: it is published
//!   before its first object is pushed. If the heavy fence fails, the collector does not sleep
//!   without limit.
//! - COLLECTOR-3. *A wake-up ends the sleep.* It takes the state from `ASLEEP` or [`NAPPING`] back
//!   to [`AWAKE`] and then unparks the thread; a token of `unpark` that comes before `park` makes
//!   `park` return at once.

use super::bag::GRACE;
use super::domain::{Domain, Freed};
use super::guard::DOMAIN;
use super::wake_up::{ASLEEP, AWAKE, NAPPING};
use crate::shim::atomic::Ordering;
use std::fmt;
use std::time::{Duration, Instant};

/// Time between two surveys.
pub(super) const SURVEY_EVERY: Duration = Duration::from_millis(20);
/// Time before the first repetition of a failed attempt to advance.
const FIRST_RETRY: Duration = Duration::from_millis(1);
/// Number of retirements between two surveys below which an owner is helped.
pub(super) const FEW: usize = 32;
/// Limits of objects and bytes above which a bag is emptied even if its owner is busy. An undelayed
/// bag holds about four times the retirements between two attempts to advance, which is less.
const MANY_OBJECTS: usize = 1 << 14;
const MANY_BYTES: usize = 8 << 20;

/// The next step of the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Work on at once: more garbage is ripe.
    Now,
    /// Work on after this time.
    After(Duration),
    /// Sleep: there is no garbage.
    Sleep,
}

/// The role of the collector, which one thread of the program has. It frees objects that other
/// threads have retired but do not free themselves, because they retire no more.
pub struct Collector {
    domain: &'static Domain,
    next_survey: Instant,
    /// The epoch in which everything found by the last survey is ripe.
    target: u64,
    /// The moment of the next attempt to advance, and the delay after the last failure.
    retry_at: Instant,
    retry_after: Duration,
    /// The epoch at the last survey.
    epoch: u64,
}

impl Collector {
    /// Makes the calling thread the collector. Returns `None` if there is one already; the role is
    /// never given up.
    pub fn claim() -> Option<Self> {
        Self::claim_in(&DOMAIN)
    }

    pub(super) fn claim_in(domain: &'static Domain) -> Option<Self> {
        let claimed = domain.wake_up.collector.set(std::thread::current()).is_ok();
        let now = Instant::now();
        claimed.then_some(Self {
            domain,
            next_survey: now,
            target: 0,
            retry_at: now,
            retry_after: FIRST_RETRY,
            epoch: 0,
        })
    }

    /// Frees up to `most` objects that their owners do not free. Returns the bytes that they held,
    /// as stated by the retiring threads, and the next step. O(threads and objects
    /// freed); up to three system calls, and one for each thousand objects. The calling thread must
    /// not be pinned.
    pub fn work(&mut self, most: usize) -> (usize, Next) {
        let now = Instant::now();
        if now >= self.next_survey {
            self.next_survey = now + SURVEY_EVERY;
            self.retry_at = now;
            let epoch = self.domain.epoch();
            if epoch != self.epoch {
                // The epoch has advanced, so no thread has been pinned for that long.
                self.retry_after = FIRST_RETRY;
                self.epoch = epoch;
            }
            self.target = self.domain.survey();
        }
        if now >= self.retry_at && !self.domain.advance_to(self.target) {
            self.retry_at = now + self.retry_after;
            self.retry_after = SURVEY_EVERY.min(self.retry_after * 2);
        }
        let Freed { objects, bytes } = self.domain.free_neglected(most);
        let next = match () {
            () if objects == most => Next::Now,
            () if self.domain.pending().0 == 0 => Next::Sleep,
            () => {
                let is_waiting = self.domain.epoch() < self.target;
                let at = if is_waiting {
                    self.retry_at.min(self.next_survey)
                } else {
                    self.next_survey
                };
                Next::After(at.saturating_duration_since(now))
            }
        };
        (bytes, next)
    }

    /// Rests as [`work`](Collector::work) has decided, for at most the given time, unless
    /// `is_needed` returns `true`; it is called after the state was set, so a [`wake`] that follows
    /// a change it reads is not missed.
    pub fn rest(
        &mut self,
        next: Next,
        at_most: Option<Duration>,
        is_needed: impl FnOnce() -> bool,
    ) {
        let (state, limit) = match next {
            Next::Now => return,
            Next::After(time) => (NAPPING, Some(time)),
            Next::Sleep => (ASLEEP, None),
        };
        let mut limit = limit.into_iter().chain(at_most).min();
        match self.domain.prepare_to_sleep(state) {
            Prepared::HasGarbage if state == ASLEEP => return self.wake_up(state),
            Prepared::Unknown => {
                limit = Some(limit.map_or(SURVEY_EVERY, |limit| limit.min(SURVEY_EVERY)));
            }
            _ => {}
        }
        if !is_needed() {
            match limit {
                Some(limit) => std::thread::park_timeout(limit),
                None => std::thread::park(),
            }
        }
        self.wake_up(state);
    }

    fn wake_up(&mut self, state: u32) {
        self.domain.wake_up.state.store(AWAKE, Ordering::Relaxed);
        if state == ASLEEP {
            // After any wake-up, the bags are left to their owners for a moment.
            self.next_survey = Instant::now() + SURVEY_EVERY;
        }
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

/// Ends the [rest](Collector::rest) of the collector, if there is one and it rests, because its
/// thread has other work. Must be called after the change that its `is_needed` reads.
pub fn wake() {
    DOMAIN.barrier().light();
    DOMAIN.wake_up.wake_for_work();
}

/// The state of the bags, read after the collector's heavy fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prepared {
    /// All bags are empty.
    IsIdle,
    /// Some bag has garbage.
    HasGarbage,
    /// The heavy fence failed.
    Unknown,
}

impl Domain {
    /// Marks the bags that the collector should empty. Returns the epoch in which all their objects
    /// are ripe.
    pub(super) fn survey(&self) -> u64 {
        let mut any = false;
        for slot in self.slots() {
            let bag = slot.bag();
            let is_small = bag.items() <= MANY_OBJECTS && bag.bytes() <= MANY_BYTES;
            let neglected = bag.survey() < FEW || !is_small;
            bag.set_neglected(neglected);
            any |= bag.is_neglected();
        }
        if any {
            // An object was retired in its epoch, which is not later than the current one.
            self.epoch() + GRACE
        } else {
            0
        }
    }

    /// Advances to this epoch, as far as pinned threads allow. Returns `true` if it has begun.
    pub(super) fn advance_to(&self, target: u64) -> bool {
        while self.epoch() < target {
            if !self.try_advance() {
                return self.epoch() >= target;
            }
        }
        true
    }

    /// Frees up to `most` ripe objects from the bags that the last survey marked.
    pub(super) fn free_neglected(&self, most: usize) -> Freed {
        self.free_ripe(most, |slot| slot.bag().is_neglected())
    }

    /// Sets the state, so that threads wake the collector from now on, and then reads the bags
    /// (COLLECTOR-2).
    pub(super) fn prepare_to_sleep(&self, state: u32) -> Prepared {
        self.wake_up.state.store(state, Ordering::Relaxed);
        if !self.barrier().heavy() {
            Prepared::Unknown
        } else if self.pending().0 > 0 {
            Prepared::HasGarbage
        } else {
            Prepared::IsIdle
        }
    }
}

#[cfg(all(test, loom))]
impl Domain {
    /// Goes to sleep as far as a model can. Returns `true` if the collector would sleep.
    pub(super) fn falls_asleep(&self) -> bool {
        self.prepare_to_sleep(ASLEEP) == Prepared::IsIdle
    }

    /// Returns `true` if the collector has been woken.
    pub(super) fn was_woken(&self) -> bool {
        self.wake_up.state.load(Ordering::Relaxed) == AWAKE
    }
}
