//! Operations on several keys, one after the other, whose cache misses overlap.

use crate::terms::error::Error;
use crate::terms::table::Table;
use crate::terms::workspace::Workspace;
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;

/// Number of keys that are encoded, and whose records are prefetched, before the first of them is
/// looked up.
const TOGETHER: usize = 16;

impl<H: Host> Table<H> {
    /// Calls `operation` with the bytes of each key, in the order of the keys, until it breaks or
    /// fails. Returns the number of keys that it has been called for, without one for which it has
    /// failed.
    ///
    /// The records of the next keys are fetched from memory together, so that many look-ups in a
    /// table that no cache holds take a fraction of their time one by one. Each key has its own
    /// moment. A key or an operation that fails ends the call with the number of keys before it; it
    /// is an error only if it is the first. A caller that goes on with the rest thus gets each
    /// error, and knows which keys come before it. O(1) for each key, besides `operation`.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # use std::ops::ControlFlow;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    ///
    /// let guard = ats::terms::pin();
    /// let keys = ["apple", "pear", "plum"].map(Term::from);
    /// let mut found = Vec::new();
    /// let done = table.each_key(keys.iter(), &mut work, &guard, |key| {
    ///     found.push(table.lookup_bytes(key, &guard)?.is_some());
    ///     Ok(ControlFlow::Continue(()))
    /// })?;
    /// assert_eq!((done, found), (3, vec![false, true, false]));
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the first key exceeds the workspace's [limit](Workspace::limit); the
    /// error of `operation` for the first key.
    pub fn each_key<'t>(
        &self,
        mut keys: impl Iterator<Item = H::Term<'t>>,
        work: &mut Workspace<H>,
        guard: &Guard,
        mut operation: impl FnMut(&[u8]) -> Result<ControlFlow<()>, Error>,
    ) -> Result<usize, Error> {
        let work = work.lend();
        let mut done = 0;
        let mut failure = None;
        'groups: loop {
            work.start_key();
            let mut ends = [0; TOGETHER];
            let mut encoded = 0;
            for key in keys.by_ref().take(TOGETHER) {
                if let Err(error) = self.key_bytes_within(key, &mut work.key, work.words_left) {
                    failure = Some(error);
                    break;
                }
                ends[encoded] = work.key.len();
                encoded += 1;
            }
            let mut group: [&[u8]; TOGETHER] = [&[]; TOGETHER];
            let mut start = 0;
            for (key, &end) in group.iter_mut().zip(&ends[..encoded]) {
                *key = &work.key[start..end];
                start = end;
            }
            let group = &group[..encoded];
            self.store(guard).prefetch_records(group, guard);
            for key in group {
                match operation(key) {
                    Ok(flow) => {
                        done += 1;
                        if flow.is_break() {
                            break 'groups;
                        }
                    }
                    Err(error) => {
                        failure = Some(error);
                        break 'groups;
                    }
                }
            }
            if failure.is_some() || encoded < TOGETHER {
                break;
            }
        }
        work.tidy_key();
        match failure {
            Some(error) if done == 0 => Err(error),
            _ => Ok(done),
        }
    }
}
