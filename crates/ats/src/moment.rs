//! Moments of tables: what queries read that see a table as it was when they began.

use crate::counter_cell;
use crate::error::Error;
use crate::store::store_ref::StoreRef;
use crate::store::{SLICE, Store};
use crate::table::Table;
use ats_mem::When;
use ats_term::image::Host;

/// A moment of a table. As long as it lives, what writers replace or remove stays in memory, for
/// queries of [this moment](crate::select::Selection::moment).
pub struct Moment<H: Host> {
    store: StoreRef<H>,
    /// Until the end.
    moment: Option<ats_mem::Moment>,
}

impl<H: Host> Moment<H> {
    pub(crate) fn store(&self) -> &Store<H> {
        &self.store
    }

    pub(crate) fn when(&self) -> When {
        self.moment
            .as_ref()
            .map_or(When::NOW, ats_mem::Moment::when)
    }

    /// The number of objects of the table at this moment.
    #[must_use]
    pub fn len(&self) -> usize {
        let objects = self.moment.as_ref().map_or(0, |moment| moment.objects);
        usize::try_from(objects).unwrap_or(0)
    }

    /// Returns `true` if the table has no object at this moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<H: Host> Drop for Moment<H> {
    fn drop(&mut self) {
        if let Some(moment) = self.moment.take() {
            self.store.end(moment);
            if !self.store.cut(SLICE / 4) {
                self.store.cut_in_background();
            }
        }
    }
}

impl<H: Host> Table<H> {
    /// Begins a query of one moment: one between the begin and the end of this call. All that was
    /// done before the call is seen, and nothing that is done after it; several objects that are
    /// inserted as one are seen all or not. `None` if the table is kept in a store that has no
    /// moments.
    ///
    /// Writers go on. The first query after a while waits for those threads that change a counter
    /// in place at that time, if the table has had one; so the caller must not be pinned. O(parts
    /// with a lock of their own).
    ///
    /// The protocol is that of [`ats_mem::moments`].
    ///
    /// # Errors
    /// [`Error::Busy`] if a thread that must not wait for long would have to.
    pub fn begin(&self) -> Result<Option<Moment<H>>, Error> {
        let store = self.store.reference();
        let mut prepare = || match self.counts_in_place() {
            true => counter_cell::wait_for_changes(),
            false => Ok(()),
        };
        let moment = store.begin(&mut prepare)?;
        Ok(moment.map(|moment| Moment {
            store,
            moment: Some(moment),
        }))
    }
}
