//! Numbers that name things of a store, each a type of its own.

use std::fmt;
use std::iter;
use std::ops::{Add, AddAssign, Sub};

/// Declares numbers that must not be mixed up.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u64);

        impl $name {
            #[inline]
            pub(crate) const fn new(number: u64) -> Self {
                $name(number)
            }

            /// Returns the number as it is in files.
            #[inline]
            pub(crate) const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

numbers! {
    /// The sequence number of a change. 0 is before the first one.
    Seq;
    /// The id of a run. Runs and their files are numbered together.
    RunId;
    /// The number of a run file, which no other file of the store has or had.
    FileNumber;
    /// The number of a journal.
    JournalNumber;
}

impl Seq {
    /// The number before that of the first change.
    pub(crate) const ZERO: Self = Seq(0);
    /// A number that no change reaches.
    pub(crate) const MAX: Self = Seq(u64::MAX);

    /// Returns the number of the next change.
    #[inline]
    pub(crate) const fn next(self) -> Self {
        Seq(self.0 + 1)
    }

    /// Goes to the number of the next change, and returns it.
    #[inline]
    pub(crate) fn increment(&mut self) -> Self {
        *self = self.next();
        *self
    }

    /// Returns this number and all behind it.
    pub(crate) fn upwards(self) -> impl Iterator<Item = Self> {
        iter::successors(Some(self), |seq| Some(seq.next()))
    }
}

impl JournalNumber {
    /// Returns the number of the next journal.
    #[inline]
    pub(crate) const fn next(self) -> Self {
        JournalNumber(self.0 + 1)
    }
}

impl Add<u64> for Seq {
    type Output = Self;

    #[inline]
    fn add(self, changes: u64) -> Self {
        Seq(self.0 + changes)
    }
}

impl AddAssign<u64> for Seq {
    #[inline]
    fn add_assign(&mut self, changes: u64) {
        self.0 += changes;
    }
}

impl Sub<u64> for Seq {
    type Output = Self;

    #[inline]
    fn sub(self, changes: u64) -> Self {
        Seq(self.0 - changes)
    }
}
