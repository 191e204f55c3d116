//! Objects by their place in the order of the keys.

use crate::error::Error;
use crate::lookup_result::LookupResult;
use crate::table::Table;
use ats_store::{Direction, KeyRange, Skipped};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;

impl<H: Host> Table<H> {
    /// Passes over `most` objects of a range, or all if they are not more, from its low end upwards
    /// or from its high end downwards, and comes to the next: so it counts them, or finds the n-th.
    /// Asks `pause` now and then, and ends if that breaks.
    ///
    /// O(log n) for each part of the table that has a lock of its own, of which there are few
    /// unless many writers fight. Parts that no call has counted before are counted first. Exact
    /// when no thread writes. Beside writers each part, or if that is counted first, each piece of
    /// it, is as of a moment of its own; the object that is returned is in the range. Of a bag the
    /// next object is the [`nth`](LookupResult::nth) of its key, in the direction, with the number
    /// beside it.
    ///
    /// # Errors
    /// [`Error::TableType`] if the table has no order, [`Error::Storage`] if its store fails.
    pub fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<LookupResult<'g, H>>, Error> {
        if !self.table_type().is_ordered() {
            return Err(Error::TableType);
        }
        let store = self.store(guard);
        let skipped = store.skip(key_range, direction, most, guard, pause)?;
        Ok(skipped.map(LookupResult::new))
    }

    /// Number of objects in a range: all of [`skip`](Table::skip), without pauses.
    ///
    /// ```
    /// # use ats::{KeyRange, Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    /// # let mut work = Workspace::new();
    /// for key in 1..=9 {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// let (mut low, mut high) = (Vec::new(), Vec::new());
    /// table.key_bytes(&Term::from(3), &mut low);
    /// table.key_bytes(&Term::from(7), &mut high);
    /// let range = KeyRange { low: Some(&low), high: Some(&high) };
    /// assert_eq!(table.count(range)?, 4); // 7 is above it
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// Like [`skip`](Table::skip).
    pub fn count(&self, key_range: KeyRange<'_>) -> Result<usize, Error> {
        let guard = ats_sync::pin();
        let go_on = &mut || ControlFlow::Continue(());
        Ok(
            match self.skip(key_range, Direction::Up, usize::MAX, &guard, go_on)? {
                Skipped::All(count) => count,
                // There is no room in memory for so many objects, and `go_on` never pauses.
                Skipped::At(..) | Skipped::Paused { .. } => usize::MAX,
            },
        )
    }

    /// The object at a place of a range, from 0, on the way up or down: [`skip`](Table::skip)
    /// without pauses. It is the [`nth`](LookupResult::nth) of its key, with the number beside it.
    ///
    /// ```
    /// # use ats::{Direction, KeyRange, Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    /// # let mut work = Workspace::new();
    /// for key in 1..=9 {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// let guard = ats::pin();
    /// let second_last = table.nth(KeyRange::default(), Direction::Down, 1, &guard)?;
    /// let objects = second_last.map(|(found, _)| found.to_terms());
    /// assert_eq!(objects, Some(vec![Term::from((8, "object"))]));
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// Like [`skip`](Table::skip).
    pub fn nth<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        place: usize,
        guard: &'g Guard,
    ) -> Result<Option<(LookupResult<'g, H>, usize)>, Error> {
        let go_on = &mut || ControlFlow::Continue(());
        Ok(
            match self.skip(key_range, direction, place, guard, go_on)? {
                Skipped::At(found, within) => Some((found, within)),
                Skipped::All(_) | Skipped::Paused { .. } => None,
            },
        )
    }
}
