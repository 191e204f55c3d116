//! Snapshots: tables that show another table as it was at a moment.

use crate::terms::error::Error;
use crate::terms::held_read_point::{Ending, HeldReadPoint, Reader};
use crate::terms::read_point::TableReadPoint;
use crate::terms::snapshot_list::KeptSnapshots;
use crate::terms::store::records::TableRecords;
use crate::terms::store::{Records, Store};
use crate::terms::table::{CurrentStore, Table};
use ats_mem::Busy;
use ats_store::Error as StoreError;
use ats_term::image::Host;
use std::ops::Deref;
use std::sync::Arc;

/// A table in memory as it was at a moment. It has all functions of a [`Table`] that read.
///
/// Writers of the table go on. A replaced or removed object stays in memory as long as a snapshot
/// shows it: for each snapshot at most one version of each key. A snapshot ends when it is dropped,
/// when its moment is [ended](HeldReadPoint::end), by its [age](HeldReadPoint::keep_for), or if the
/// snapshots of its table hold back [too much](Table::set_snapshot_memory). A function that reads a
/// snapshot that has ended returns [`Error::Ended`].
///
/// The protocol, and its sources, are those of [`ats_mem::read_points`].
///
/// ```
/// use ats::terms::{Error, Table, TableType, Term, TermHost, Workspace};
///
/// let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
/// let mut work = Workspace::new();
/// table.insert(&Term::from(("pear", 40)), &mut work)?;
/// let snapshot = table.snapshot()?;
/// table.insert(&Term::from(("pear", 45)), &mut work)?;
/// table.insert(&Term::from(("plum", 30)), &mut work)?;
///
/// let guard = ats::terms::pin();
/// let found = snapshot.lookup(&Term::from("pear"), &mut work, &guard)?;
/// assert_eq!(found.map(|found| found.to_terms()), Some(vec![Term::from(("pear", 40))]));
/// assert_eq!((snapshot.len()?, table.len()?), (1, 2));
/// let refused = snapshot.insert(&Term::from(("pear", 50)), &mut work);
/// assert_eq!(refused, Err(Error::Snapshot));
/// # Ok::<(), Error>(())
/// ```
pub struct Snapshot<H: Host> {
    /// The table and its moment, until they are taken out.
    parts: Option<(Table<H>, Arc<HeldReadPoint<H>>)>,
}

impl<H: Host> Snapshot<H> {
    fn parts(&self) -> &(Table<H>, Arc<HeldReadPoint<H>>) {
        let parts = self.parts.as_ref();
        parts.expect("they are taken out in the end only")
    }

    /// Returns the moment, which can end the snapshot.
    pub fn read_point(&self) -> &Arc<HeldReadPoint<H>> {
        &self.parts().1
    }

    /// Returns the table that shows the moment, and the moment. The moment ends when both are
    /// dropped.
    pub fn into_parts(mut self) -> (Table<H>, Arc<HeldReadPoint<H>>) {
        let parts = self.parts.take();
        parts.expect("they are taken out in the end only")
    }
}

impl<H: Host> Deref for Snapshot<H> {
    type Target = Table<H>;

    fn deref(&self) -> &Table<H> {
        &self.parts().0
    }
}

impl<H: Host> Drop for Snapshot<H> {
    fn drop(&mut self) {
        if let Some((_table, read_point)) = self.parts.take() {
            read_point.end(Ending::Released);
        }
    }
}

impl<H: Host> TableReadPoint<H> {
    /// Keeps the moment, and returns a table of the type of `table` that shows it.
    pub fn keep(self, table: &Table<H>, reader: Reader) -> Snapshot<H> {
        let read_point = Arc::new(HeldReadPoint::new(self, reader));
        let past: Arc<dyn TableRecords<H>> = Arc::<HeldReadPoint<H>>::clone(&read_point);
        let store = CurrentStore::new(Store::new(Records::Past(past)));
        table.snapshots().add(&read_point);
        Snapshot {
            parts: Some((table.with_store(store), read_point)),
        }
    }
}

impl<H: Host> Table<H> {
    /// Begins a query of one moment, which lies between the begin and the end of this call. The
    /// query sees all changes that were complete before the call, and no change that begins after
    /// it. It sees all objects of a list that is inserted as one, or none. Returns `None` if the
    /// store of the table has no moments.
    ///
    /// Writers go on. If elements have changed in place since the query before, this one waits for
    /// threads that are changing one; so the caller must not be pinned. O(locks).
    ///
    /// The protocol is that of [`ats_mem::read_points`].
    ///
    /// # Errors
    /// [`Error::Busy`] if the thread must not wait for long, and would have to.
    pub fn begin(&self) -> Result<Option<TableReadPoint<H>>, Error> {
        self.begin_prepared(&mut || self.cells_gate.close().map(|()| true))
    }

    /// Begins a query that does not read values. The caller may be pinned.
    pub(crate) fn begin_of_keys(&self) -> Result<Option<TableReadPoint<H>>, Error> {
        self.begin_prepared(&mut || Ok(false))
    }

    fn begin_prepared(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<TableReadPoint<H>>, Error> {
        let store = self.store.reference();
        let read_point = store.begin(prepare)?;
        Ok(read_point.map(|read_point| TableReadPoint::new(store, read_point)))
    }

    /// Returns a snapshot of the table, as of a moment between the begin and the end of this call.
    /// Costs as much as [`begin`](Table::begin), for a table of any size.
    ///
    /// # Errors
    /// The errors of [`begin`](Table::begin); [`Error::Storage`] if the store of the table has no
    /// moments; [`Error::Snapshot`] if the table is a snapshot.
    pub fn snapshot(&self) -> Result<Snapshot<H>, Error> {
        match self.begin()? {
            Some(read_point) => Ok(read_point.keep(self, Reader::Program)),
            None if self.is_snapshot() => Err(Error::Snapshot),
            None => Err(Error::Storage(StoreError::Unsupported)),
        }
    }

    /// Returns `false` if the table has not changed since a snapshot of it was made: no change was
    /// complete before this call that the snapshot does not show, nor has an object expired. Costs
    /// less than another snapshot, for a table of any size.
    ///
    /// Returns `true` if something was changed, even if it was changed back; if the snapshot has
    /// ended, or is of another table; and if that cannot be told within some 20 microseconds,
    /// because other threads are in calls, in any table, all that time. The calling thread must not
    /// be pinned.
    ///
    /// # Errors
    /// [`Error::Busy`] if the thread must not wait for long, and would have to remove too many
    /// expired objects.
    pub fn may_have_changed(&self, since: &HeldReadPoint<H>) -> Result<bool, Error> {
        let store = self.store.reference();
        if !since.is_of(&store) {
            return Ok(true);
        }
        store.may_have_changed(since.when())
    }

    /// Sets the number of bytes of memory that the snapshots of the table may hold back: records,
    /// and their binaries unless the next version of the record has the same. If they hold back
    /// more, the oldest snapshots [end](Ending::Memory) until the rest is within the limit. The
    /// limit is checked ten times a second. Its initial value is 256 MiB.
    ///
    /// A [running query](Reader::Query) does not end, but the memory that is held back for it
    /// counts.
    pub fn set_snapshot_memory(&self, bytes: usize) {
        self.snapshots().set_most_bytes(bytes);
    }

    /// Ends the moments that are kept for queries, because the table is deleted. Snapshots go on.
    pub fn end_queries(&self) {
        if let Some(list) = self.known_snapshots() {
            for read_point in list.live() {
                if read_point.reader() != Reader::Program {
                    read_point.end(Ending::Released);
                }
            }
        }
    }

    /// Returns the figures of the table's snapshots. O(snapshots).
    pub fn kept_snapshots(&self) -> KeptSnapshots {
        self.kept_snapshots_of(&|_| true)
    }

    /// Returns the figures of the table's snapshots. Leaves out snapshots that are about to end
    /// because their [holder](HeldReadPoint::set_holder) has ended: `lives` returns `false` for it.
    /// O(snapshots).
    pub fn kept_snapshots_of(&self, lives: &dyn Fn(u64) -> bool) -> KeptSnapshots {
        match self.known_snapshots() {
            Some(list) => list.figures(lives),
            None => KeptSnapshots::default(),
        }
    }
}
