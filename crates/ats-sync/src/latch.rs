//! A few words that change together, without a lock.
//!
//! There are two copies of the words, and the number of the *turn*, whose parity tells which copy
//! is current. A writer claims the turn, writes the other copy, and begins the next turn. A reader
//! copies the current words and checks that the turn is still the same. So no reader waits for a
//! writer that the system has stopped: the copy that it reads changes only after the next turn has
//! begun.
//!
//! A thread with exclusive access to the words, by a lock that readers and writers do not know, can
//! *stop* the latch. From then on no turn begins, not even that of a writer which has claimed it
//! before, so nobody waits for writers either.
//!
//! The Linux kernel has latches of this kind (`seqcount_latch_t`) for clocks that an interrupt may
//! read. Their writers write both copies, one after the other, and exclude each other by other
//! means.
//!
//! Good for: a few words that many threads read and some change. Bad for: many words, as each
//! writer and each reader copies all of them, and for one word, which needs one exchange only.
//!
//! # Invariants
//! - LATCH-1. The current copy does not change. Only the thread that has claimed the turn writes
//!   the other one.
//! - LATCH-2. The turn goes up by one when the claiming thread has written all words of the other
//!   copy, and only if the latch is not stopped at that moment.
//! - LATCH-3. Only a thread with exclusive access to the words stops and restarts the latch.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

#[cfg(not(loom))]
use crate::count::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
use crate::shim::atomic::{AtomicU64, Ordering, fence};

/// The most words of a latch.
pub const WORDS_MOST: usize = 16;

/// The bit of the turn that says that a thread is writing the other copy.
const CLAIMED: u64 = 1;
/// The bit of the turn that says that the latch is stopped.
const STOPPED: u64 = 2;
/// The difference of two turns. The bits below are flags.
const TURN: u64 = 4;

/// The number of attempts to claim the turn. A claim is over after some ten nanoseconds, unless the
/// system has stopped the thread.
const ATTEMPTS: usize = if cfg!(loom) { 2 } else { 64 };

/// References to the words of a latch; see the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Latch<'a> {
    turn: &'a AtomicU64,
    copies: [&'a [AtomicU64]; 2],
}

impl<'a> Latch<'a> {
    /// Makes a latch of a turn, which is 0 at first, and two copies of the words. In the beginning
    /// the words of the first copy are current.
    ///
    /// Panics if the copies differ in length, or have more than [`WORDS_MOST`] words.
    #[inline]
    pub fn new(turn: &'a AtomicU64, copies: [&'a [AtomicU64]; 2]) -> Self {
        let [one, other] = copies;
        assert!(one.len() == other.len() && one.len() <= WORDS_MOST);
        Latch { turn, copies }
    }

    /// Returns the copy that is current in a turn, and the other one.
    #[inline]
    fn copies(self, turn: u64) -> (&'a [AtomicU64], &'a [AtomicU64]) {
        let [even, odd] = self.copies;
        if turn & TURN == 0 {
            (even, odd)
        } else {
            (odd, even)
        }
    }

    /// Appends the words as of one moment of the call. Waits for no thread; begins again if a turn
    /// ends meanwhile. O(words).
    #[inline]
    pub fn read(self, into: &mut Vec<u64>) {
        let start = into.len();
        loop {
            let turn = self.turn.load(Ordering::Acquire);
            let (current, _) = self.copies(turn);
            into.extend(current.iter().map(|word| word.load(Ordering::Relaxed)));
            // A word that was written after the turn had ended makes the next turn visible.
            fence(Ordering::Acquire);
            if self.turn.load(Ordering::Relaxed) / TURN == turn / TURN {
                return;
            }
            into.truncate(start);
        }
    }

    /// Changes the words at one moment. `change` gets the current ones, and returns `false` to keep
    /// them; nobody else changes them while it runs. Returns `false` if the words stay as they
    /// were: because `change` says so, because another thread has claimed the turn for long, or
    /// because the latch is stopped. O(words).
    #[inline]
    #[must_use]
    pub fn change(self, change: impl FnOnce(&mut [u64]) -> bool) -> bool {
        let Some(turn) = self.claim() else {
            return false;
        };
        let claim = Claim(self.turn);
        let (current, other) = self.copies(turn);
        let mut room = [0; WORDS_MOST];
        let words = &mut room[..current.len()];
        for (word, current) in words.iter_mut().zip(current) {
            *word = current.load(Ordering::Relaxed);
        }
        if !change(words) {
            return false;
        }
        // A thread that reads one of the new words sees the claim, and with it that the turn in
        // which the other copy was current is over.
        fence(Ordering::Release);
        for (word, other) in words.iter().zip(other) {
            other.store(*word, Ordering::Relaxed);
        }
        let next = turn.wrapping_add(TURN);
        let begun =
            self.turn
                .compare_exchange(turn | CLAIMED, next, Ordering::SeqCst, Ordering::Relaxed);
        if begun.is_ok() {
            std::mem::forget(claim);
        }
        begun.is_ok()
    }

    /// Claims the turn, and returns it.
    #[inline]
    fn claim(self) -> Option<u64> {
        for _ in 0..ATTEMPTS {
            let turn = self.turn.load(Ordering::Relaxed);
            if turn & STOPPED != 0 {
                return None;
            }
            if turn & CLAIMED == 0 {
                let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
                let claimed =
                    self.turn
                        .compare_exchange_weak(turn, turn | CLAIMED, acquire, relaxed);
                if claimed.is_ok() {
                    return Some(turn);
                }
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Stops the latch: its words stay as they are until it is restarted. Only a thread with
    /// exclusive access to the words calls this (LATCH-3). Waits for no thread. Returns `false` if
    /// it was stopped before.
    pub fn stop(self) -> bool {
        self.turn.fetch_or(STOPPED, Ordering::AcqRel) & STOPPED == 0
    }

    /// Lets the words change again after [`stop`](Latch::stop).
    pub fn restart(self) {
        self.turn.fetch_and(!STOPPED, Ordering::AcqRel);
    }
}

/// A claim of the turn, given up on drop.
struct Claim<'a>(&'a AtomicU64);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.fetch_and(!CLAIMED, Ordering::Release);
    }
}
