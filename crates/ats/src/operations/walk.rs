//! Walking from key to key, and through slots.

use crate::error::Error;
use crate::lookup_result::LookupResult;
use crate::table::Table;
use crate::value::Rec;
use ats_mem::{Neighbour, NoSuchKey, ShortKey, Walk, go_on};
use ats_store::{Direction, SlotAnswer, WalkFrom};
use ats_sync::Guard;
use ats_term::image::Host;
use std::cell::Cell;
use std::ops::ControlFlow;

/// A key that a walk has come to.
pub enum NextKey<'g, H: Host> {
    /// This integer.
    Integer(i64),
    /// That of the object, or the objects, of this key.
    Of(LookupResult<'g, H>),
}

impl<H: Host> Table<H> {
    /// The first key in the order of the table.
    ///
    /// Linearizable with changes of keys: no object that was there throughout the call is passed
    /// over. O(log n) in tables with order, else O(1), amortised.
    ///
    /// # Errors
    /// [`Error::Storage`] of a store of bytes that cannot read.
    pub fn first<'g>(&'g self, guard: &'g Guard) -> Result<Option<LookupResult<'g, H>>, Error> {
        self.record_of_step(self.store(guard).beside(None, Direction::Up, guard)?)
    }

    /// The last key in the order of the table; in tables without order, the same as the first.
    ///
    /// See [`first`](Table::first).
    ///
    /// # Errors
    /// [`Error::Storage`] of a store of bytes that cannot read.
    pub fn last<'g>(&'g self, guard: &'g Guard) -> Result<Option<LookupResult<'g, H>>, Error> {
        self.record_of_step(self.store(guard).beside(None, Direction::Down, guard)?)
    }

    /// The key after the one with these bytes. Tables without order refuse keys they do not hold,
    /// unless they were there when the table was fixed.
    ///
    /// No key that was there throughout the call is passed over. O(log n) in tables with order,
    /// else O(1).
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    /// # let mut work = Workspace::new();
    /// for key in [1, 3, 5] {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// let (guard, mut keys) = (ats::pin(), Vec::new());
    /// let mut step = table.first(&guard)?;
    /// while let Some(found) = step {
    ///     keys.extend(found.to_terms().iter().filter_map(|object| object.as_tuple()?[0].as_int()));
    ///     step = table.next(found.key_bytes(), &guard)?;
    /// }
    /// assert_eq!(keys, [1, 3, 5]);
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadKey`] if a table without order does not know the key; [`Error::Storage`] of a
    /// store of bytes that cannot read.
    pub fn next<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let store = self.store(guard);
        self.record_of_step(store.beside(Some(key), Direction::Up, guard)?)
    }

    /// The key before the one with these bytes; in tables without order, as [`next`](Table::next).
    ///
    /// # Errors
    /// Those of [`next`](Table::next).
    pub fn prev<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let store = self.store(guard);
        self.record_of_step(store.beside(Some(key), Direction::Down, guard)?)
    }

    /// The key next to the one with these bytes, in a direction; in tables without order, the one
    /// after it. As [`next`](Table::next) and [`prev`](Table::prev), but an object is only looked
    /// at if its key cannot be told without it.
    ///
    /// # Errors
    /// Those of [`next`](Table::next).
    pub fn next_key<'g>(
        &'g self,
        key: &[u8],
        direction: Direction,
        guard: &'g Guard,
    ) -> Result<Option<NextKey<'g, H>>, Error> {
        let number = Cell::new(None);
        let is_integer = |key: &ShortKey| {
            number.set(self.keys.integer_at(key));
            number.get().is_some()
        };
        let store = self.store(guard);
        match store.neighbour(key, direction, guard, &is_integer)? {
            Ok(Some(Neighbour::Key(_))) => Ok(number.get().map(NextKey::Integer)),
            Ok(Some(Neighbour::Record(record))) => Ok(Some(NextKey::Of(LookupResult::new(record)))),
            Ok(None) => Ok(None),
            Err(NoSuchKey) => self.store.walk_of_lost_key().map(|()| None),
        }
    }

    fn record_of_step<'g>(
        &self,
        step: Result<Option<&'g Rec<H>>, NoSuchKey>,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        match step {
            Ok(record) => Ok(record.map(LookupResult::new)),
            Err(NoSuchKey) => self.store.walk_of_lost_key().map(|()| None),
        }
    }

    /// Visits keys in the order of the table, after the one with these bytes (all, if `None`),
    /// until `visit` breaks. Not a snapshot. On tables without order, fix the table for the whole
    /// of a walk that consists of several calls.
    ///
    /// A key that is there throughout is visited once, one that is missing throughout is not.
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    /// # let mut work = Workspace::new();
    /// for key in [1, 3, 5] {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// let mut objects = Vec::new();
    /// table.scan(None, &ats::pin(), &mut |found| {
    ///     objects.extend(found.to_terms());
    ///     std::ops::ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(objects, [1, 3, 5].map(|key| Term::from((key, "object"))));
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`next`](Table::next), for the key to begin behind.
    pub fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(LookupResult<'g, H>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let store = self.store(guard);
        let walk = Walk::up(after.map_or(WalkFrom::Start, WalkFrom::Known));
        let mut visit = |record| visit(LookupResult::new(record));
        match store.walk(walk, guard, &mut visit, &mut go_on)? {
            Ok(_never_paused) => Ok(()),
            Err(NoSuchKey) => self.store.walk_of_lost_key(),
        }
    }

    /// Visits the keys of slot `index`, from 0. The slots divide the table: each object is in one
    /// of them, and while the table is fixed an object that stays, stays in its slot. In an
    /// `ordered_set` slot `index` is the object at that place; see [`nth`](Table::nth). In an
    /// ordered bag the objects of a key are in the slot of the place of the oldest one.
    ///
    /// # Errors
    /// [`Error::Storage`] of a store of bytes that cannot read.
    pub fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(LookupResult<'g, H>),
    ) -> Result<SlotAnswer, Error> {
        let mut visit = |record| visit(LookupResult::new(record));
        self.store(guard).slot(index, guard, &mut visit)
    }
}
