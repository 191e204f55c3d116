//! Read points of the running queries of a store.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// Read points of the running queries.
#[derive(Default)]
pub(super) struct Active {
    /// Number of queries for each read point.
    pub(super) read_points: BTreeMap<u64, usize>,
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
    pub(super) fn add(&mut self, read_point: u64) {
        *self.read_points.entry(read_point).or_default() += 1;
    }

    /// Removes one of the queries with a read point.
    pub(super) fn remove(&mut self, read_point: u64) {
        let count = self.read_points.get_mut(&read_point);
        let count = count.expect("each moment is ended once");
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.read_points.remove(&read_point);
        self.is_prepared &= !self.read_points.is_empty();
        if self.oldest() < read_point {
            self.ended.push(read_point);
        } else if self.read_points.is_empty() {
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
        !range.is_empty() && self.read_points.range(range).next().is_some()
    }

    fn may_come(&self, range: Range<u64>) -> bool {
        !range.is_empty() && self.beginning > 0 && self.first_beginning < range.end
    }

    /// Takes the time ranges of versions that an ended query was the last to need: above the first
    /// number, up to the second.
    pub(super) fn take_ended(&mut self) -> Vec<(u64, u64)> {
        let next = |read_point: u64| {
            let above = (Bound::Excluded(read_point), Bound::Unbounded);
            let next = self.read_points.range(above).next();
            next.map_or(u64::MAX, |(next, _)| *next)
        };
        let ended = std::mem::take(&mut self.ended).into_iter();
        let mut times: Vec<_> = ended
            .map(|read_point| (read_point, next(read_point)))
            .collect();
        if self.beginning == 0 {
            times.extend(self.unsure.take().map(|low| (low, u64::MAX)));
        }
        times
    }

    /// Returns the newest read point; the largest number while a query begins.
    pub(super) fn newest(&self) -> u64 {
        match self.beginning {
            0 => self
                .read_points
                .last_key_value()
                .map_or(0, |(read_point, _)| *read_point),
            _ => u64::MAX,
        }
    }

    /// Adds a query with a read point. Returns its number.
    pub(super) fn add_query(&mut self, read_point: u64) -> u64 {
        self.add(read_point);
        self.begun += 1;
        self.numbers = self.numbers.wrapping_add(self.begun);
        self.begun
    }

    /// Removes a query with a read point, by its number.
    pub(super) fn remove_query(&mut self, read_point: u64, number: u64) {
        self.remove(read_point);
        self.numbers = self.numbers.wrapping_sub(number);
    }

    /// Returns the number of the only query; 0 if there are several, or one begins.
    pub(super) fn alone(&self) -> u64 {
        match self.read_points.first_key_value() {
            Some((_, 1)) if self.read_points.len() == 1 && self.beginning == 0 => self.numbers,
            _ => 0,
        }
    }

    /// Returns the oldest read point; the largest number if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.read_points
            .first_key_value()
            .map_or(u64::MAX, |(read_point, _)| *read_point)
    }
}
