//! Walks from key to key, and through slots.

use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::table::Table;
use crate::terms::value::Rec;
use ats_mem::{Neighbour, NoSuchKey, ShortKey, Walk, go_on};
use ats_store::{Direction, SlotAnswer, WalkFrom};
use ats_sync::Guard;
use ats_term::image::Host;
use std::cell::Cell;
use std::ops::ControlFlow;

/// A key that a walk has reached.
pub enum NextKey<'g, H: Host> {
    /// The key is this integer.
    Integer(i64),
    /// The key of these objects.
    Of(LookupResult<'g, H>),
}

impl<H: Host> Table<H> {
    /// Returns the first key in the order of the table.
    ///
    /// Linearizable with changes of keys: no object that was present throughout the call is
    /// skipped. O(log n) in tables with order, else O(1), amortised.
    ///
    /// # Errors
    /// [`Error::Storage`] if a store of bytes cannot read.
    pub fn first<'g>(&'g self, guard: &'g Guard) -> Result<Option<LookupResult<'g, H>>, Error> {
        self.record_of_step(self.store(guard).beside(None, Direction::Up, guard)?)
    }

    /// Returns the last key in the order of the table; in tables without order, the same as the
    /// first.
    ///
    /// See [`first`](Table::first).
    ///
    /// # Errors
    /// [`Error::Storage`] if a store of bytes cannot read.
    pub fn last<'g>(&'g self, guard: &'g Guard) -> Result<Option<LookupResult<'g, H>>, Error> {
        self.record_of_step(self.store(guard).beside(None, Direction::Down, guard)?)
    }

    /// Returns the key after the key with these bytes. Tables without order refuse absent keys,
    /// unless the key was present when the table was fixed.
    ///
    /// No key that was present throughout the call is skipped. O(log n) in tables with order, else
    /// O(1).
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    /// # let mut work = Workspace::new();
    /// for key in [1, 3, 5] {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// let (guard, mut keys) = (ats::terms::pin(), Vec::new());
    /// let mut step = table.first(&guard)?;
    /// while let Some(found) = step {
    ///     keys.extend(found.to_terms().iter().filter_map(|object| object.as_tuple()?[0].as_int()));
    ///     step = table.next(found.key_bytes(), &guard)?;
    /// }
    /// assert_eq!(keys, [1, 3, 5]);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadKey`] if a table without order does not know the key; [`Error::Storage`] if a
    /// store of bytes cannot read.
    pub fn next<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let store = self.store(guard);
        self.record_of_step(store.beside(Some(key), Direction::Up, guard)?)
    }

    /// Returns the key before the key with these bytes. Tables without order return the key after
    /// it, like [`next`](Table::next).
    ///
    /// # Errors
    /// The errors of [`next`](Table::next).
    pub fn prev<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let store = self.store(guard);
        self.record_of_step(store.beside(Some(key), Direction::Down, guard)?)
    }

    /// Returns the next key in a direction, like [`next`](Table::next) and [`prev`](Table::prev),
    /// but reads an object only if its key cannot be decoded without it. Tables without order
    /// return the key after the key with these bytes.
    ///
    /// # Errors
    /// The errors of [`next`](Table::next).
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
            Ok(Some(Neighbour::Key)) => Ok(number.get().map(NextKey::Integer)),
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

    /// Visits keys in the order of the table, after the key with these bytes (all keys if `None`),
    /// until `visit` breaks. A walk is not a snapshot. A table without order must be fixed
    /// throughout a walk of several calls.
    ///
    /// A key that is present throughout is visited once, a key that is absent throughout is not
    /// visited.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
    /// # let mut work = Workspace::new();
    /// for key in [1, 3, 5] {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// let mut objects = Vec::new();
    /// table.scan(None, &ats::terms::pin(), &mut |found| {
    ///     objects.extend(found.to_terms());
    ///     std::ops::ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(objects, [1, 3, 5].map(|key| Term::from((key, "object"))));
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`next`](Table::next), for the key in `after`.
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
    /// slot, and an object that stays in a fixed table stays in its slot. In an `ordered_set` slot
    /// `index` is the object of that rank; see [`nth`](Table::nth). In an ordered bag the objects
    /// of a key are in the slot of the rank of the oldest object.
    ///
    /// # Errors
    /// [`Error::Storage`] if a store of bytes cannot read.
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
