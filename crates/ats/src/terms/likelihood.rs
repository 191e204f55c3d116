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
/// The number of inserts of a thread of which one is a sample, which looks in any case: all where
/// tests force tables to adapt.
const PERIOD: u8 = if cfg!(feature = "forcing") { 1 } else { 32 };

/// The samples of a thread.
pub(crate) struct Sampler {
    /// The number of inserts since the last sample.
    inserts: u8,
}

impl Sampler {
    pub(crate) const fn new() -> Self {
        Sampler { inserts: 0 }
    }

    fn is_sample(&self) -> bool {
        self.inserts == 0
    }
}

impl Likelihood {
    pub(crate) const fn new() -> Self {
        Likelihood(AtomicU8::new(0))
    }

    /// Returns `true` if the next insert of a thread should look.
    #[inline]
    pub(crate) fn is_worth_a_look(&self, sampler: &mut Sampler) -> bool {
        let inserts = sampler.inserts + 1;
        sampler.inserts = if inserts < PERIOD { inserts } else { 0 };
        sampler.is_sample() || self.0.load(Ordering::Relaxed) >= MOST
    }

    /// Notes whether an insert that has looked found what it looked for. Only samples count, and a
    /// score that stays the same is not written: so threads that use the table share a line that
    /// is seldom written.
    #[inline]
    pub(crate) fn note(&self, found: bool, sampler: &Sampler) {
        if !sampler.is_sample() {
            return;
        }
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

    /// Makes inserts of which those with these numbers would find something. Returns the number of
    /// those that looked.
    fn insert(likelihood: &Likelihood, inserts: usize, found: impl Fn(usize) -> bool) -> usize {
        let mut sampler = Sampler::new();
        let looked = |number: &usize| {
            let looks = likelihood.is_worth_a_look(&mut sampler);
            if looks {
                likelihood.note(found(*number), &sampler);
            }
            looks
        };
        (0..inserts).filter(looked).count()
    }

    #[test]
    fn inserts_look_as_long_as_most_find_something() {
        let (likelihood, period) = (Likelihood::new(), usize::from(PERIOD));
        assert_eq!(insert(&likelihood, 10 * period, |_| false), 10);
        insert(&likelihood, 20 * period, |_| true);
        // One sample of ten in vain is no reason to stop.
        let most = |number: usize| !(number / period).is_multiple_of(10);
        assert_eq!(insert(&likelihood, 100 * period, most), 100 * period);
        insert(&likelihood, 3 * period, |_| false);
        assert_eq!(insert(&likelihood, 10 * period, |_| false), 10);
        // One of two is not most.
        let half = |number: usize| (number / period).is_multiple_of(2);
        assert_eq!(insert(&likelihood, 100 * period, half), 100);
    }
}
