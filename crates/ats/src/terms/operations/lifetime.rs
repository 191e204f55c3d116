//! The time that is left to objects that expire.

use crate::terms::error::Error;
use crate::terms::note::{Dating, NEVER};
use crate::terms::store::limited::{TimeLeft, milliseconds};
use crate::terms::table::Table;
use crate::terms::workspace::Workspace;
use ats_term::image::Host;
use std::time::Duration;

/// The time for which objects are there that are inserted into a table whose objects
/// [expire](Table::expiring).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The time of the table.
    OfTable,
    /// The time that is left to the objects of the key, or that of the table if there are none.
    Kept,
    /// A time from now on; at least a millisecond. Reading the objects does not put their deadline
    /// off.
    For(Duration),
    /// No end.
    Forever,
}

impl From<Lifetime> for Dating {
    fn from(lifetime: Lifetime) -> Self {
        match lifetime {
            Lifetime::OfTable => Dating::OfTable,
            Lifetime::Kept => Dating::Kept,
            Lifetime::For(time) => Dating::After(milliseconds(time)),
            Lifetime::Forever => Dating::After(NEVER),
        }
    }
}

impl<H: Host> Table<H> {
    /// Returns the dating of objects that are inserted without a time of their own; `None` if
    /// objects of the table do not expire.
    #[inline]
    pub(crate) fn dating_of_table(&self) -> Option<Dating> {
        self.expires.then_some(Dating::OfTable)
    }

    /// Returns the dating of objects that are inserted.
    pub(crate) fn dating(&self, lifetime: Lifetime) -> Result<Dating, Error> {
        self.expires.then(|| lifetime.into()).ok_or(Error::NoTtl)
    }

    /// Returns the time that is left to the objects of a key; `None` if the key has none. Does not
    /// put their deadline off. O(log n) in an `ordered_set`, else O(1).
    ///
    /// ```
    /// # use ats::terms::{Lifetime, Table, TableType, TermHost, TimeLeft, Ttl, Workspace};
    /// # use ats::terms::Term;
    /// # use std::time::Duration;
    /// let table = Table::<TermHost>::new(TableType::Set, 1).expiring(Ttl::Never)?;
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// let pear = Term::from("pear");
    /// assert_eq!(table.time_left(&pear, &mut work)?, Some(TimeLeft::Forever));
    /// table.touch(&pear, Lifetime::For(Duration::from_secs(60)), &mut work)?;
    /// assert_ne!(table.time_left(&pear, &mut work)?, Some(TimeLeft::Forever));
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the key exceeds the workspace's [limit](Workspace::limit);
    /// [`Error::Storage`].
    pub fn time_left(
        &self,
        key: H::Term<'_>,
        work: &mut Workspace<H>,
    ) -> Result<Option<TimeLeft>, Error> {
        let left = self.time_left_and_kind(key, work)?;
        Ok(left.map(|(left, _)| left))
    }

    /// Returns the time that is left to the objects of a key like [`time_left`](Table::time_left),
    /// and `true` if they have a time of their own, `false` if it is that of the table.
    ///
    /// # Errors
    /// The errors of [`time_left`](Table::time_left).
    pub fn time_left_and_kind(
        &self,
        key: H::Term<'_>,
        work: &mut Workspace<H>,
    ) -> Result<Option<(TimeLeft, bool)>, Error> {
        let work = work.lend();
        self.make_key(key, work)?;
        let guard = ats_sync::pin();
        let left = self.store(&guard).time_left(&work.key, &guard);
        work.tidy_key();
        left
    }

    /// Gives the objects of a key a time from now on. Returns `true` if there are some. Atomic.
    /// O(log n) in an `ordered_set`, else O(1).
    ///
    /// # Errors
    /// [`Error::NoTtl`] if objects of the table do not [expire](Table::expiring);
    /// [`Error::TooLarge`] if the key exceeds the workspace's [limit](Workspace::limit);
    /// [`Error::Busy`].
    pub fn touch(
        &self,
        key: H::Term<'_>,
        lifetime: Lifetime,
        work: &mut Workspace<H>,
    ) -> Result<bool, Error> {
        let dating = self.dating(lifetime)?;
        let work = work.lend();
        self.make_key(key, work)?;
        let guard = ats_sync::pin();
        let touched = self.store(&guard).touch(&work.key, dating, &guard);
        work.tidy_key();
        touched
    }
}
