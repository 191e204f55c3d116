//! The number of records.
//!
//! A write does not read, so as a rule it does not know whether a key that it writes was there.
//! Writers that have read the keys that they change tell the difference, and as long as all do, the
//! number is kept: it is published together with their changes. So asking for it reads nothing and
//! waits for no writer, and the answer is the number at a moment, in the order of all that readers
//! see.
//!
//! A write that does not know makes the number unknown, and so it is when a store is opened. Then
//! the records of a snapshot are counted, and if no such write has come meanwhile, the number is
//! known again.
//!
//! **RECORD_COUNT-1** All fields are read and changed under `write_state`, by which groups of
//! writes follow one another. **RECORD_COUNT-2** If `known` is a number, it is that of the records
//! of which the changes are published.

/// The effect of a write on the number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CountChange {
    /// The writer has not read the keys that it changes.
    #[default]
    Unknown,
    /// The number grows by so many.
    By(i64),
    /// The number becomes this one.
    To(i64),
}

impl CountChange {
    /// Makes the effect of this change and a later one together.
    pub(crate) fn then(self, later: Self) -> Self {
        use CountChange::{By, To, Unknown};
        match (self, later) {
            (_, Unknown | To(_)) => later,
            (By(before), By(more)) => By(before + more),
            (To(before), By(more)) => To(before + more),
            (Unknown, By(_)) => Unknown,
        }
    }
}

/// The number of records, as the writers know it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordCount {
    known: Option<i64>,
    /// Sum of all changes by which it has become larger.
    added: i64,
    /// The number of times that it was set, or has become unknown.
    breaks: u64,
}

/// A count of the records that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountStart(RecordCount);

impl RecordCount {
    /// The number that is published if it is not known.
    pub(crate) const UNKNOWN: i64 = i64::MIN;

    /// Returns the number that is published.
    pub(crate) fn published_value(&self) -> i64 {
        self.known.unwrap_or(Self::UNKNOWN)
    }

    /// The number after a change.
    pub(crate) fn change(&mut self, change: CountChange) {
        match change {
            CountChange::By(more) => {
                self.added += more;
                self.known = self.known.map(|known| known + more);
            }
            CountChange::To(number) => {
                self.known = Some(number);
                self.breaks += 1;
            }
            CountChange::Unknown => {
                self.known = None;
                self.breaks += 1;
            }
        }
    }

    /// Begins to count the records of a snapshot that is taken at the same time, under the lock
    /// that keeps the number as it is.
    pub(crate) fn begin(&self) -> CountStart {
        CountStart(*self)
    }

    /// Ends a count: so many records were in the snapshot. They are remembered if all changes since
    /// are known.
    pub(crate) fn end(&mut self, start: CountStart, records: i64) {
        let CountStart(then) = start;
        if self.breaks == then.breaks {
            self.known = Some(records + self.added - then.added);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CountChange::{By, To, Unknown};
    use super::*;

    #[test]
    fn changes_of_a_group_are_one_change() {
        let each = [Unknown, By(2), By(-3), To(0), To(7)];
        for first in each {
            for second in each {
                for known in [None, Some(10)] {
                    let begin = RecordCount {
                        known,
                        ..RecordCount::default()
                    };
                    let (mut both, mut one) = (begin, begin);
                    both.change(first);
                    both.change(second);
                    one.change(first.then(second));
                    assert_eq!(both.known, one.known, "{first:?} {second:?}");
                }
            }
        }
    }

    #[test]
    fn a_count_is_remembered_unless_something_unknown_came() {
        let mut count = RecordCount::default();
        assert_eq!(count.published_value(), RecordCount::UNKNOWN);
        count.change(By(5));
        assert_eq!(count.published_value(), RecordCount::UNKNOWN);
        let start = count.begin();
        count.change(By(2));
        count.change(By(-1));
        count.end(start, 5);
        assert_eq!(count.published_value(), 6);
        // A count that began before a write of which nothing is known says nothing about the time
        // after it.
        let start = count.begin();
        count.change(Unknown);
        count.change(By(1));
        count.end(start, 6);
        assert_eq!(count.published_value(), RecordCount::UNKNOWN);
        let start = count.begin();
        count.change(To(0));
        count.change(By(4));
        count.end(start, 100);
        assert_eq!(count.published_value(), 4);
    }
}
