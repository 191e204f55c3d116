//! Moments of tables, for queries that read a table as it was when they began.

use crate::terms::error::Error;
use crate::terms::store::store_ref::StoreRef;
use crate::terms::store::{SLICE, Store};
use ats_mem::When;
use ats_mem::moments::Query;
use ats_term::image::Host;
use std::sync::{Mutex, PoisonError};

/// A moment of a table. While it lives, replaced and removed objects stay in memory for queries of
/// [this moment](crate::terms::select::Selection::moment).
pub struct Moment<H: Host> {
    store: StoreRef<H>,
    query: Query,
    objects: i64,
    /// The moment of the store, until it ends.
    moment: Mutex<Option<ats_mem::Moment>>,
}

impl<H: Host> Moment<H> {
    /// Wraps the moment of the store at which a query was begun.
    pub(crate) fn new(store: StoreRef<H>, moment: ats_mem::Moment) -> Self {
        Moment {
            store,
            query: moment.query(),
            objects: moment.objects,
            moment: Mutex::new(Some(moment)),
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
        let moment = self
            .moment
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(moment) = moment {
            self.store.end(moment);
            if !self.store.cut(SLICE / 4) {
                self.store.cut_in_background();
            }
        }
    }

    /// Fails if the moment has ended, so that objects that were read may be newer.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let moment = self.moment.lock().unwrap_or_else(PoisonError::into_inner);
        match *moment {
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

impl<H: Host> Drop for Moment<H> {
    fn drop(&mut self) {
        self.end();
    }
}
