//! Taking all objects out of a table.

use crate::terms::error::Error;
use crate::terms::table::Table;
use ats_sync::Grace;
use ats_term::image::Host;

impl<H: Host> Table<H> {
    /// Removes all objects, at one moment for every reader and writer, and returns them. O(1).
    ///
    /// Each inserted object is in the result of one call, or is still in the table. It includes all
    /// changes whose calls have returned. See [`DrainedTable`].
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
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
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Busy`] while a long list is written. No further long list begins for a tenth of a
    /// second, so that the caller can try again. [`Error::Storage`] if a store of bytes cannot be
    /// cleared. If the call fails, the table is unchanged.
    pub fn take_all(&self) -> Result<DrainedTable<H>, Error> {
        let guard = ats_sync::pin();
        let store = self.store.take_out_whole(&guard)?;
        Ok(DrainedTable {
            grace: guard.grace(),
            table: self.with_store(store.into_current()),
        })
    }
}

/// The objects of a table that was [drained](Table::take_all).
///
/// Writers that had begun before the call may still be writing to the objects, so they cannot be
/// read at once. Those writers count as done before the call. Long lists have ended before, and
/// each other writer writes under one guard; so the objects are complete when all earlier guards
/// are dropped. Snapshots and other queries of a moment go on, and nobody waits for them. Dropping
/// this drops the objects.
pub struct DrainedTable<H: Host> {
    table: Table<H>,
    grace: Grace,
}

impl<H: Host> DrainedTable<H> {
    /// Returns the objects, as a separate table, if all writers have finished; otherwise `None`,
    /// and the caller asks again later. The result is `None` until all guards are dropped that
    /// existed when the table was drained, including the caller's own.
    pub fn when_at_rest(&self) -> Option<&Table<H>> {
        if !self.grace.is_over() {
            return None;
        }
        // All writers are done, so this table, which only its owner can find, allows long batches
        // again.
        self.table
            .store(&ats_sync::pin())
            .set_open_to_long_batches();
        Some(&self.table)
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

#[cfg(test)]
mod tests {
    use crate::terms::{Error, Table, TableType, TermHost, Workspace};
    use ats_term::Term;

    /// A process that is killed while it waits for a long list must not have drained the table.
    #[test]
    fn nothing_is_taken_while_a_long_list_is_written() -> Result<(), Error> {
        let table = Table::<TermHost>::new(TableType::Set, 1);
        table.insert(&Term::from((1, 2)), &mut Workspace::new())?;
        let running = table.store.long_batch()?;
        assert_eq!(table.take_all().err(), Some(Error::Busy));
        assert_eq!(table.len()?, 1);
        assert_eq!(
            table.store.long_batch().err(),
            Some(Error::Busy),
            "a taker waits"
        );
        assert_eq!(
            table.insert(&Term::from((3, 4)), &mut Workspace::new()),
            Ok(())
        );
        drop(running);
        let taken = table.take_all()?;
        assert!(table.is_empty()?);
        assert!(
            table.store.long_batch().is_ok(),
            "it begins in the new store"
        );
        assert!(taken.table.store.long_batch().is_err(), "it is not at rest");
        // Other tests of this program may have guards.
        let taken = loop {
            if let Some(taken) = taken.when_at_rest() {
                break taken;
            }
            std::thread::yield_now();
        };
        assert_eq!(taken.len()?, 2);
        assert!(
            taken.store.long_batch().is_ok(),
            "it is a table like others"
        );
        Ok(())
    }

    /// Long lists do not wait for a caller of `take_all` that never tries again.
    #[test]
    fn long_lists_go_on_after_a_while() -> Result<(), Error> {
        let table = Table::<TermHost>::new(TableType::Set, 1);
        let running = table.store.long_batch()?;
        assert_eq!(table.take_all().err(), Some(Error::Busy));
        while table.store.long_batch().is_err() {
            std::thread::yield_now();
        }
        drop(running);
        Ok(())
    }
}
