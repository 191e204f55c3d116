//! Reads by key.

use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::table::Table;
use crate::terms::workspace::{Room, Workspace};
use ats_sync::Guard;
use ats_term::image::{Host, HostTerm};

impl<H: Host> Table<H> {
    /// Writes the bytes of a key to the workspace, within its limit.
    #[inline]
    pub(crate) fn make_key<T: HostTerm<Host = H>>(
        &self,
        key: T,
        work: &mut Room<T>,
    ) -> Result<(), Error> {
        work.start_key();
        self.key_bytes_within(key, &mut work.key, work.words_left)
    }

    /// Returns the objects of a key, if it has any. O(log n) in an `ordered_set`, else O(1).
    ///
    /// The objects are those of one moment, and stay readable as long as the guard lives.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    ///
    /// let guard = ats::terms::pin();
    /// let found = table.lookup(&Term::from("pear"), &mut work, &guard)?;
    /// let objects = found.map(|found| found.to_terms());
    /// assert_eq!(objects, Some(vec![Term::from(("pear", 40))]));
    /// assert!(table.lookup(&Term::from("plum"), &mut work, &guard)?.is_none());
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`] if a store of bytes cannot read.
    #[inline]
    pub fn lookup<'g>(
        &'g self,
        key: H::Term<'_>,
        work: &mut Workspace<H>,
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let work = work.lend();
        work.start_key();
        self.key_bytes(key, &mut work.key);
        let found = self.lookup_bytes(&work.key, guard);
        work.tidy_key();
        found
    }

    /// Looks up a key like [`lookup`](Table::lookup), but refuses a key that exceeds the
    /// workspace's [limit](Workspace::limit).
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the key exceeds the limit; the errors of [`lookup`](Table::lookup).
    #[inline]
    pub fn lookup_within<'g>(
        &'g self,
        key: H::Term<'_>,
        work: &mut Workspace<H>,
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let work = work.lend();
        self.make_key(key, work)?;
        let found = self.lookup_bytes(&work.key, guard);
        work.tidy_key();
        found
    }

    /// Looks up a key like [`lookup`](Table::lookup), by its bytes.
    ///
    /// # Errors
    /// [`Error::Storage`] if a store of bytes cannot read.
    #[inline]
    pub fn lookup_bytes<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        Ok(self.store(guard).get(key, guard)?.map(LookupResult::new))
    }
}
