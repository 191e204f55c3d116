//! An estimate of how the inserts into a table will find the key.
//!
//! An insert that looks for the object of its key first can be much quicker if it finds one:
//! nothing has to be written if the key must be new, and one word if the objects differ in one
//! element. If it finds none, the look has cost a search, and a miss on a large table. So few
//! inserts look, and all do as long as most have found an object that helps.

use ats_sync::count::atomic::{AtomicU8, Ordering};

/// The likelihood that an insert finds what makes it quick, for all threads that use a table.
pub(crate) struct Likelihood(AtomicU8);

/// The score from which on all inserts look.
const MOST: u8 = 4;
/// The highest score.
const ALL: u8 = 8;
/// The amount by which an insert that has looked in vain lowers the score: so it rises if more than
/// four of five find something.
const MISSED: u8 = 4;
/// The number of inserts of a thread of which one looks: all where tests force tables to adapt.
const PERIOD: u8 = if cfg!(feature = "forcing") { 1 } else { 32 };

impl Likelihood {
    pub(crate) const fn new() -> Self {
        Likelihood(AtomicU8::new(0))
    }

    /// Returns `true` if an insert should look. `waited` counts the inserts of the thread that have
    /// not looked.
    #[inline]
    pub(crate) fn is_worth_a_look(&self, waited: &mut u8) -> bool {
        if self.0.load(Ordering::Relaxed) >= MOST {
            return true;
        }
        *waited += 1;
        if *waited < PERIOD {
            return false;
        }
        *waited = 0;
        true
    }

    /// Notes whether an insert that has looked found what it looked for. A score that stays the
    /// same is not written, so threads share an unchanged line as long as all inserts are alike.
    #[inline]
    pub(crate) fn note(&self, found: bool) {
        let score = self.0.load(Ordering::Relaxed);
        let new = if found {
            ALL.min(score + 1)
        } else {
            score.saturating_sub(MISSED)
        };
        if new != score {
            self.0.store(new, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(likelihood: &Likelihood, inserts: usize) -> usize {
        let mut waited = 0;
        let look = |_: &usize| likelihood.is_worth_a_look(&mut waited);
        (0..inserts).filter(look).count()
    }

    #[test]
    fn inserts_look_as_long_as_most_find_something() {
        let likelihood = Likelihood::new();
        assert_eq!(looks(&likelihood, 320), 320 / usize::from(PERIOD));
        (0..MOST).for_each(|_| likelihood.note(true));
        assert_eq!(looks(&likelihood, 320), 320);
        // One of ten in vain is no reason to stop.
        for number in 0..100 {
            likelihood.note(number % 10 > 0);
        }
        assert_eq!(looks(&likelihood, 320), 320);
        (0..3).for_each(|_| likelihood.note(false));
        assert_eq!(looks(&likelihood, 320), 320 / usize::from(PERIOD));
        // One of two is not most.
        for number in 0..100 {
            likelihood.note(number % 2 > 0);
        }
        assert_eq!(looks(&likelihood, 320), 320 / usize::from(PERIOD));
    }
}
