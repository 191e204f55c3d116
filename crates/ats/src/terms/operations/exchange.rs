//! Exchange of an object for another one. The operation is atomic.

use crate::terms::cells;
use crate::terms::error::Error;
use crate::terms::lock_budget::{SHORT_WORDS, is_long_change, is_long_to_compare};
use crate::terms::lookup_result::LookupResult;
use crate::terms::table::Table;
use crate::terms::workspace::{Room, Workspace};
use ats_mem::Change;
use ats_term::image::{Host, HostTerm, image_eq};

impl<H: Host> Table<H> {
    /// Replaces the object that a caller has seen by another one, if the table still has it.
    /// Returns `true` if it did. If the caller has `seen` none, inserts the new object, if the key
    /// has still none; if there is no `new` one, removes the old one. An object of another key is
    /// never the one that was seen.
    ///
    /// This is the compare-and-swap of a table: callers that read an object, compute, and exchange
    /// it lose no change of others. O(log n) in an `ordered_set`, else O(1), besides the sizes of
    /// the objects.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// let (cheap, dear) = (Term::from(("pear", 40)), Term::from(("pear", 45)));
    /// assert!(table.exchange(None, Some(&cheap), &mut work)?);
    /// assert!(table.exchange(Some(&cheap), Some(&dear), &mut work)?);
    /// assert!(!table.exchange(Some(&cheap), None, &mut work)?);
    /// assert!(table.exchange(Some(&dear), None, &mut work)?);
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableType`] if the table is a bag; [`Error::NotATuple`] and [`Error::NoKey`] if a
    /// term is not an object of the table; [`Error::TooLarge`] if one exceeds the workspace's
    /// [limit](Workspace::limit); [`Error::Busy`]; [`Error::Storage`]. A failed call changes
    /// nothing.
    pub fn exchange<'t>(
        &self,
        seen: Option<H::Term<'t>>,
        new: Option<H::Term<'t>>,
        work: &mut Workspace<H>,
    ) -> Result<bool, Error> {
        let work = work.lend();
        let done = self.exchange_within(seen, new, work);
        work.tidy();
        done
    }

    fn exchange_within<T: HostTerm<Host = H>>(
        &self,
        seen: Option<T>,
        new: Option<T>,
        work: &mut Room<T>,
    ) -> Result<bool, Error> {
        if self.table_type.is_bag() {
            return Err(Error::TableType);
        }
        for object in [seen, new].into_iter().flatten() {
            self.check_object(object)?;
        }
        let Some(keyed) = new.or(seen) else {
            return Ok(true);
        };
        self.make_key(keyed.element(self.key_index), work)?;
        work.dating = self.dating_of_table();
        let Room {
            key,
            image,
            second,
            packer,
            unpacked,
            dating,
            words_left,
            ..
        } = work;
        if let Some(seen) = seen {
            second.encode_object_within(seen, *words_left)?;
        }
        if let Some(new) = new {
            image.encode_object_within(new, *words_left)?;
        }
        let begins_alone =
            is_long_change(0, key) || new.is_some() && image.object().len_words() > SHORT_WORDS;
        let mut is_done = false;
        self.update_pinned_shortly(key, begins_alone, &mut |current, alone| {
            // The cells are restarted on drop if the object stays.
            let stopped = match (current, seen) {
                (None, None) => None,
                (Some(current), Some(_)) => {
                    if !alone && is_long_to_compare(current) {
                        return None;
                    }
                    let stopped = cells::stop(current);
                    let object = LookupResult::new(current).first(unpacked);
                    if !image_eq(object, second.object(), self.zeros) {
                        return Some(Change::Keep);
                    }
                    Some(stopped)
                }
                _ => return Some(Change::Keep),
            };
            is_done = true;
            let change = match new {
                Some(_) => Change::Put(self.record_dated(key, image.take(), packer, *dating)),
                None => Change::Remove,
            };
            if let Some(stopped) = stopped {
                stopped.for_ever();
            }
            Some(change)
        })?;
        Ok(is_done)
    }
}
