//! ReadPoints of tables, for queries that read a table as it was when they began.

use crate::terms::error::Error;
use crate::terms::store::store_ref::StoreRef;
use crate::terms::store::{SLICE, Store};
use ats_mem::When;
use ats_mem::read_points::Query;
use ats_term::image::Host;
use std::sync::{Mutex, PoisonError};

/// A moment of a table. While it lives, replaced and removed objects stay in memory for queries of
/// [this read point](crate::terms::select::Selection::read_point).
pub struct TableReadPoint<H: Host> {
    store: StoreRef<H>,
    query: Query,
    objects: i64,
    /// The moment of the store, until it ends.
    read_point: Mutex<Option<ats_mem::ReadPoint>>,
}

impl<H: Host> TableReadPoint<H> {
    /// Wraps the moment of the store at which a query was begun.
    pub(crate) fn new(store: StoreRef<H>, read_point: ats_mem::ReadPoint) -> Self {
        TableReadPoint {
            store,
            query: read_point.query(),
            objects: read_point.objects,
            read_point: Mutex::new(Some(read_point)),
        }
    }

    pub(crate) fn store(&self) -> &Store<H> {
        &self.store
    }

    pub(crate) fn reference(&self) -> StoreRef<H> {
        self.store.another()
    }

    pub(crate) fn when(&self) -> When {
        self.query.when()
    }

    /// Returns the query that reads the moment, to make changes.
    pub(crate) fn query(&self) -> Query {
        self.query
    }

    /// Ends the moment, before it is dropped.
    pub(crate) fn end(&self) {
        let read_point = self
            .read_point
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(read_point) = read_point {
            self.store.end(read_point);
            if !self.store.reclaim(SLICE / 4) {
                self.store.reclaim_in_background();
            }
        }
    }

    /// Fails if the moment has ended, so that objects that were read may be newer.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let read_point = self
            .read_point
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match *read_point {
            Some(_) => Ok(()),
            None => Err(Error::Ended),
        }
    }

    /// Returns the number of objects of the table at this moment.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::try_from(self.objects).unwrap_or(0)
    }

    /// Returns `true` if the table has no object at this moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<H: Host> Drop for TableReadPoint<H> {
    fn drop(&mut self) {
        self.end();
    }
}
