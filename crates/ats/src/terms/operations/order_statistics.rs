//! Objects by their rank, the number of objects before them in the order of the keys.
//!
//! A tree whose nodes know the number of their objects finds a rank, as of one moment, in
//! microseconds. So a call first tries to find the rank [at once](ats_mem::Records::skip_at_once).
//! If counts are missing, the call has the tree count, in slices, which change only the counts, and
//! tries again. Writers may invalidate counts as fast as they are made, and lists may be in
//! progress all the time. Then the call begins a query and walks over the objects of its moment.

use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::read_point::TableReadPoint;
use crate::terms::store::Store;
use crate::terms::table::Table;
use ats_mem::{COUNTINGS, When};
use ats_store::{Direction, KeyRange, Skipped};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;
use std::ptr;

/// The state of a call that skips objects, from one slice to the next.
pub struct Passage<H: Host> {
    /// Number of objects that earlier slices have passed.
    passed: usize,
    /// The lower end of the range that is left, or the upper end on the way down, if there was an
    /// earlier slice.
    bound: Option<Vec<u8>>,
    /// Number of times that the range was counted.
    countings: u32,
    /// The moment of the walk, if one was begun.
    read_point: Option<TableReadPoint<H>>,
}

impl<H: Host> Default for Passage<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Host> Passage<H> {
    /// Returns the state of a call that begins.
    #[must_use]
    pub fn new() -> Self {
        Passage {
            passed: 0,
            bound: None,
            countings: 0,
            read_point: None,
        }
    }

    /// Returns the moment of the walk, unless the table has got another store since.
    fn read_point_of(&mut self, store: &Store<H>) -> Option<When> {
        let is_of_store = |read_point: &TableReadPoint<H>| ptr::eq(read_point.store(), store);
        if self
            .read_point
            .as_ref()
            .is_some_and(|read_point| !is_of_store(read_point))
        {
            *self = Self::new();
        }
        self.read_point.as_ref().map(TableReadPoint::when)
    }
}

impl<H: Host> Table<H> {
    /// Skips `most` objects of a range, or all if there are no more, from its low end upwards or
    /// from its high end downwards, and returns the next object: so it counts them, or finds the
    /// n-th. Calls `pause` now and then, and returns [`Skipped::Paused`] if that breaks. Then
    /// another call with the same arguments continues.
    ///
    /// The objects are those of one moment between the begin of the first call and the end of the
    /// last, if the table is in memory, or a snapshot: objects that are inserted as one count
    /// together. A table in a [store of bytes](Table::on_store) is read slice by slice.
    ///
    /// O(log n) for each part of the table with its own lock; a table has few such parts unless
    /// many writers contend. Parts without counts are counted first. O(n) for a snapshot, or if
    /// lists of objects are written all the time. In a bag, the next object is the
    /// [`nth`](LookupResult::nth) of its key in the direction, where n is the number that is
    /// returned with it. A counter in it that changes in place may be newer.
    ///
    /// # Errors
    /// [`Error::TableType`] if the table has no order, [`Error::Storage`] if its store fails,
    /// [`Error::Ended`] if the snapshot has ended, [`Error::Busy`] if the thread must not wait for
    /// long, and would have to.
    pub fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        passage: &mut Passage<H>,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<LookupResult<'g, H>>, Error> {
        if !self.table_type().is_ordered() {
            return Err(Error::TableType);
        }
        loop {
            let store = self.store(guard);
            let read_point = passage.read_point_of(store);
            let counts = read_point.is_none() && store.has_read_points();
            if counts && passage.bound.is_none() {
                if let Some(skipped) = store.skip_at_once(key_range, direction, most, guard) {
                    return Ok(skipped.map(LookupResult::new));
                }
                if passage.countings == COUNTINGS {
                    passage.read_point = self.begin_of_keys()?;
                    continue;
                }
                passage.countings += 1;
            }
            let (bound, left) = (passage.bound.take(), most - passage.passed);
            let mut rest = key_range;
            match direction {
                Direction::Up => rest.low = bound.as_deref().or(rest.low),
                Direction::Down => rest.high = bound.as_deref().or(rest.high),
            }
            let slice = match read_point {
                Some(when) => store.skip_by_walking(rest, direction, left, (when, guard), pause)?,
                None => store.skip(rest, direction, left, guard, pause)?,
            };
            match slice {
                Skipped::Paused { skipped, ref bound } => {
                    passage.passed += skipped;
                    passage.bound = Some(bound.clone());
                }
                // All parts are counted now, but not as of one moment.
                _ if counts => {
                    passage.passed = 0;
                    continue;
                }
                _ => {}
            }
            let skipped = match slice {
                Skipped::All(skipped) => Skipped::All(passage.passed + skipped),
                other => other,
            };
            return Ok(skipped.map(LookupResult::new));
        }
    }

    /// Returns the number of objects in a range: those that [`skip`](Table::skip) passes, without
    /// pauses.
    ///
    /// ```
    /// # use ats::terms::{KeyRange, Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
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
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`skip`](Table::skip).
    pub fn count(&self, key_range: KeyRange<'_>) -> Result<usize, Error> {
        let guard = ats_sync::pin();
        let go_on = &mut || ControlFlow::Continue(());
        Ok(
            match self.skip(
                key_range,
                Direction::Up,
                usize::MAX,
                &mut Passage::new(),
                &guard,
                go_on,
            )? {
                Skipped::All(count) => count,
                // Memory has no room for so many objects, and `go_on` never pauses.
                Skipped::At(..) | Skipped::Paused { .. } => usize::MAX,
            },
        )
    }

    /// Returns the object of a rank in a range, from 0, counted upwards or downwards:
    /// [`skip`](Table::skip) without pauses. The object is the [`nth`](LookupResult::nth) of its
    /// key, where n is the number that is returned with it.
    ///
    /// ```
    /// # use ats::terms::{Direction, KeyRange, Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    /// # let mut work = Workspace::new();
    /// for key in 1..=9 {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// let guard = ats::terms::pin();
    /// let second_last = table.nth(KeyRange::default(), Direction::Down, 1, &guard)?;
    /// let objects = second_last.map(|(found, _)| found.to_terms());
    /// assert_eq!(objects, Some(vec![Term::from((8, "object"))]));
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`skip`](Table::skip).
    pub fn nth<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        rank: usize,
        guard: &'g Guard,
    ) -> Result<Option<(LookupResult<'g, H>, usize)>, Error> {
        let go_on = &mut || ControlFlow::Continue(());
        Ok(
            match self.skip(
                key_range,
                direction,
                rank,
                &mut Passage::new(),
                guard,
                go_on,
            )? {
                Skipped::At(found, within) => Some((found, within)),
                Skipped::All(_) | Skipped::Paused { .. } => None,
            },
        )
    }
}
