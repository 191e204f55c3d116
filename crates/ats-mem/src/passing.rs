//! Passing over the objects of a range, one record after the other.

use crate::record::{Record, Release};
use ats_store::{Direction, KeyRange, Skipped, successor};
use std::ops::ControlFlow;

/// Never pauses a walk.
pub fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The way over a range, of which a walk from its near end shows the records.
pub struct Passing<'k, 'g, R: Release> {
    range: KeyRange<'k>,
    direction: Direction,
    most: usize,
    skipped: usize,
    ended: Option<Skipped<&'g Record<R>>>,
}

impl<'k, 'g, R: Release> Passing<'k, 'g, R> {
    /// Begins the way over `most` objects, from the near end of the range.
    #[must_use]
    pub const fn new(range: KeyRange<'k>, direction: Direction, most: usize) -> Self {
        Passing {
            range,
            direction,
            most,
            skipped: 0,
            ended: None,
        }
    }

    /// Passes over a record that has this number of objects. Breaks at the end of the range, in
    /// front of the record that is wanted, and if `pause` breaks.
    pub fn pass(
        &mut self,
        record: &'g Record<R>,
        objects: usize,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let key = record.key();
        let is_inside = match self.direction {
            Direction::Up => self.range.high.is_none_or(|high| key < high),
            Direction::Down => self.range.low.is_none_or(|low| key >= low),
        };
        if !is_inside {
            return ControlFlow::Break(());
        }
        let within = self.most - self.skipped;
        if within < objects {
            self.ended = Some(Skipped::At(record, within));
            return ControlFlow::Break(());
        }
        self.skipped += objects;
        if pause().is_break() {
            let bound = match self.direction {
                Direction::Up => successor(key),
                Direction::Down => key.to_vec(),
            };
            let skipped = self.skipped;
            self.ended = Some(Skipped::Paused { skipped, bound });
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Returns the outcome, when the walk is over.
    #[must_use]
    pub fn end(self) -> Skipped<&'g Record<R>> {
        self.ended.unwrap_or(Skipped::All(self.skipped))
    }
}
