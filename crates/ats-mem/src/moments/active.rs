//! Read points of the running queries of a store.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// Read points of the running queries.
#[derive(Default)]
pub(super) struct Active {
    /// Number of queries for each read point.
    pub(super) moments: BTreeMap<u64, usize>,
    /// Number of queries begun so far.
    begun: u64,
    /// Sum of the numbers of the running queries.
    numbers: u64,
    /// Number of queries that are about to begin.
    pub(super) beginning: usize,
    /// `true` if a query has prepared, and queries have run ever since.
    pub(super) is_prepared: bool,
    /// The clock when the first of the beginning queries started. None of them gets an older read
    /// point.
    pub(super) first_beginning: u64,
    /// Read points of ended queries, while an older query runs.
    ended: Vec<u64>,
    /// The time from which on records were kept only because queries were beginning.
    unsure: Option<u64>,
}

impl Active {
    /// Adds a query with a read point, without a number.
    pub(super) fn add(&mut self, moment: u64) {
        *self.moments.entry(moment).or_default() += 1;
    }

    /// Removes one of the queries with a read point.
    pub(super) fn remove(&mut self, moment: u64) {
        let count = self.moments.get_mut(&moment);
        let count = count.expect("each moment is ended once");
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.moments.remove(&moment);
        self.is_prepared &= !self.moments.is_empty();
        if self.oldest() < moment {
            self.ended.push(moment);
        } else if self.moments.is_empty() {
            self.ended.clear();
        }
    }

    /// Returns `true` if a query has a read point in this range, or may get one.
    pub(super) fn has(&mut self, range: Range<u64>) -> bool {
        let is_sure = self.reads(range.clone());
        let may_come = !is_sure && self.may_come(range);
        if may_come {
            let unsure = self.unsure.get_or_insert(self.first_beginning);
            *unsure = self.first_beginning.min(*unsure);
        }
        is_sure || may_come
    }

    /// Returns the same as [`has`](Self::has), without noting doubt: the caller checks again.
    pub(super) fn may_read(&self, range: Range<u64>) -> bool {
        self.reads(range.clone()) || self.may_come(range)
    }

    fn reads(&self, range: Range<u64>) -> bool {
        !range.is_empty() && self.moments.range(range).next().is_some()
    }

    fn may_come(&self, range: Range<u64>) -> bool {
        !range.is_empty() && self.beginning > 0 && self.first_beginning < range.end
    }

    /// Takes the time ranges of versions that an ended query was the last to need: above the first
    /// number, up to the second.
    pub(super) fn take_ended(&mut self) -> Vec<(u64, u64)> {
        let next = |moment: u64| {
            let above = (Bound::Excluded(moment), Bound::Unbounded);
            let next = self.moments.range(above).next();
            next.map_or(u64::MAX, |(next, _)| *next)
        };
        let ended = std::mem::take(&mut self.ended).into_iter();
        let mut times: Vec<_> = ended.map(|moment| (moment, next(moment))).collect();
        if self.beginning == 0 {
            times.extend(self.unsure.take().map(|low| (low, u64::MAX)));
        }
        times
    }

    /// Returns the newest read point; the largest number while a query begins.
    pub(super) fn newest(&self) -> u64 {
        match self.beginning {
            0 => self
                .moments
                .last_key_value()
                .map_or(0, |(moment, _)| *moment),
            _ => u64::MAX,
        }
    }

    /// Adds a query with a read point. Returns its number.
    pub(super) fn add_query(&mut self, moment: u64) -> u64 {
        self.add(moment);
        self.begun += 1;
        self.numbers = self.numbers.wrapping_add(self.begun);
        self.begun
    }

    /// Removes a query with a read point, by its number.
    pub(super) fn remove_query(&mut self, moment: u64, number: u64) {
        self.remove(moment);
        self.numbers = self.numbers.wrapping_sub(number);
    }

    /// Returns the number of the only query; 0 if there are several, or one begins.
    pub(super) fn alone(&self) -> u64 {
        match self.moments.first_key_value() {
            Some((_, 1)) if self.moments.len() == 1 && self.beginning == 0 => self.numbers,
            _ => 0,
        }
    }

    /// Returns the oldest read point; the largest number if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.moments
            .first_key_value()
            .map_or(u64::MAX, |(moment, _)| *moment)
    }
}
