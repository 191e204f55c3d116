//! Random numbers, and numbers that hardly ever come twice, for each thread.

use super::clock;
use crate::terms::note::Note;
use ats_sync::counter::thread_number;
use std::cell::Cell;

/// The number of reads by a key of which about one is counted, for all of them: counting each would
/// let readers write to the same memory.
pub(super) const READS_COUNTED_AS_ONE: u32 = 64;

/// Returns a token. Two threads may take the same one, at worst for records of the same key, so
/// that a stale entry is taken for a current one.
pub(super) fn next_token() -> u16 {
    thread_local! {
        static LAST: Cell<u16> = Cell::new((thread_number() * 1009) as u16);
    }
    LAST.with(|last| {
        last.set(Note::next_token(last.get()));
        last.get()
    })
}

/// Returns `true` for about one call in [`READS_COUNTED_AS_ONE`], at random, so that reads in a
/// rhythm are counted right. (A linear congruential generator: Knuth's constant, the upper bits.)
#[inline]
pub(super) fn is_sample() -> bool {
    thread_local! {
        static STATE: Cell<u32> = const { Cell::new(1) };
    }
    STATE.with(|state| {
        let next = state
            .get()
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        state.set(next);
        next < u32::MAX / READS_COUNTED_AS_ONE
    })
}

/// Returns a random number, by xorshift (Marsaglia, 2003).
pub(super) fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = {
            let thread = (thread_number() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Cell::new(clock::now() ^ thread)
        };
    }
    STATE.with(|state| {
        let mut number = state.get().max(1);
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        state.set(number);
        number
    })
}
