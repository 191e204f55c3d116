//! Taking all objects out of a table.

use crate::error::Error;
use crate::table::Table;
use ats_sync::Grace;
use ats_term::image::Host;

impl<H: Host> Table<H> {
    /// Removes all objects, at one moment for every reader and writer, and gives them to the
    /// caller. O(1).
    ///
    /// Each object that a thread has put into the table is in what one call gives, or is still in
    /// the table. It is as it is after all changes of it that other threads were told of. See
    /// [`DrainedTable`].
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    ///
    /// let drained = table.take_all()?;
    /// assert!(table.is_empty()?);
    /// let taken = loop {
    ///     match drained.when_at_rest() {
    ///         Some(taken) => break taken,
    ///         None => std::thread::yield_now(),
    ///     }
    /// };
    /// assert_eq!(taken.len()?, 1);
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`] of a store of bytes that cannot be cleared; the table is as it was then.
    pub fn take_all(&self) -> Result<DrainedTable<H>, Error> {
        let guard = ats_sync::pin();
        let store = self.store.take_out(&guard)?;
        Ok(DrainedTable {
            grace: guard.grace(),
            table: self.with_store(store.into_current()),
        })
    }
}

/// The objects of a table that was [taken](Table::take_all).
///
/// Writers that had begun before may still be writing to them, and so they cannot be read at once.
/// Those writers count as done before the call. All but long lists write under one guard; so it is
/// waited for the guards that there were, and then for the long lists, which are counted. When this
/// is dropped, so are the objects.
pub struct DrainedTable<H: Host> {
    table: Table<H>,
    grace: Grace,
}

impl<H: Host> DrainedTable<H> {
    /// The objects, as a table of their own, if all writers have finished; else they are to be
    /// asked for again after a moment. Not before all guards are gone that were there when the
    /// table was taken, and not while the caller has one.
    pub fn when_at_rest(&self) -> Option<&Table<H>> {
        let settled =
            self.grace.is_over() && self.table.store(&ats_sync::pin()).has_no_references();
        settled.then_some(&self.table)
    }
}

impl<H: Host> Drop for DrainedTable<H> {
    fn drop(&mut self) {
        if !self.grace.is_over() {
            let guard = ats_sync::pin();
            // SAFETY: the table is dropped with this, so its store is retired once
            // (CURRENT_STORE-2).
            unsafe { self.table.store.retire(&guard) };
        }
    }
}
