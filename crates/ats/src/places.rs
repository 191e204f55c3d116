//! Objects by their place in the order of the keys.

use crate::error::Error;
use crate::table::{Table, TableType};
use crate::value::Found;
use ats_mem::{Span, Way};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;

/// What came of [passing over](Table::pass) objects.
pub enum Passed<'g, H: Host> {
    /// So many as wanted were passed, and this is the next.
    At(Found<'g, H>),
    /// So many were passed, and there are no more.
    All(usize),
    /// It was told to pause.
    Paused {
        /// How many objects were passed.
        passed: usize,
        /// The end of what was passed: the new low end of the span on the way up, or the new high end on
        /// the way down.
        bound: Vec<u8>,
    },
}

impl<H: Host> Table<H> {
    /// Passes over `most` objects of a span, or all if they are not more, from its low end upwards or from its
    /// high end downwards, and comes to the next: so it counts them, or finds the n-th. Asks `pause` now and
    /// then, and ends if that breaks.
    ///
    /// O(log n) for each part of the table that has a lock of its own, of which there are few unless many
    /// writers fight; and what nobody has counted before is counted first. Exact when nobody writes. Beside
    /// writers each part, or if that is counted first, each piece of it, is as of a moment of its own; the object
    /// that is returned is in the span.
    ///
    /// # Errors
    /// [`Error::TableType`] if the table has no order.
    pub fn pass<'g>(
        &'g self,
        span: Span<'_>,
        way: Way,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Passed<'g, H>, Error> {
        if self.table_type() != TableType::OrderedSet {
            return Err(Error::TableType);
        }
        let passed = self.store(guard).pass(span, way, most, guard, pause);
        Ok(match passed {
            ats_mem::Passed::At(record) => Passed::At(Found::new(record)),
            ats_mem::Passed::All(passed) => Passed::All(passed),
            ats_mem::Passed::Paused { passed, bound } => Passed::Paused { passed, bound },
        })
    }

    /// Number of objects in a span: all of [`pass`](Table::pass), without pauses.
    ///
    /// # Errors
    /// As `pass`.
    pub fn count(&self, span: Span<'_>) -> Result<usize, Error> {
        let guard = ats_sync::pin();
        let go_on = &mut || ControlFlow::Continue(());
        Ok(match self.pass(span, Way::Up, usize::MAX, &guard, go_on)? {
            Passed::All(count) => count,
            // There is no room in memory for so many objects, and nobody has told it to pause.
            Passed::At(_) | Passed::Paused { .. } => usize::MAX,
        })
    }

    /// The object at a place of a span, from 0, on the way up or down: [`pass`](Table::pass) without pauses.
    ///
    /// # Errors
    /// As `pass`.
    pub fn nth<'g>(
        &'g self,
        span: Span<'_>,
        way: Way,
        place: usize,
        guard: &'g Guard,
    ) -> Result<Option<Found<'g, H>>, Error> {
        let go_on = &mut || ControlFlow::Continue(());
        Ok(match self.pass(span, way, place, guard, go_on)? {
            Passed::At(found) => Some(found),
            Passed::All(_) | Passed::Paused { .. } => None,
        })
    }
}
