//! Changes of one element of an object in place; see [`cell`].

use crate::terms::cell::{self, Cell, Overwrite};
use crate::terms::error::Error;
use crate::terms::table::Table;
use crate::terms::workspace::Room;
use ats_sync::Guard;
use ats_term::image::{Host, HostTerm};

/// The most words of an object that becomes one with a cell when an element is replaced. Each
/// reader copies the words of an object with a cell.
pub(crate) const WORDS_MOST: usize = 32;

impl<H: Host> Table<H> {
    /// Returns the cell of the object of a key, if this element is one and it may be changed.
    #[inline]
    pub(crate) fn cell_at<'g>(
        &'g self,
        key: &[u8],
        index: usize,
        guard: &'g Guard,
    ) -> Option<Cell<'g>> {
        if self.has_byte_store {
            return None;
        }
        let store = self.store(guard);
        // Queries of an earlier moment need the old value, so a new record must replace it.
        if store.is_read() {
            return None;
        }
        // Reading memory does not fail.
        let record = store.get_again(key, guard).ok()??;
        Cell::of(record).filter(|cell| cell.index == index)
    }

    /// Replaces an element of the object of a key by an immediate term, if the element is a cell
    /// that may be changed. Returns `false`, and changes nothing, otherwise.
    #[inline]
    pub(crate) fn replace_in_place<T: HostTerm<Host = H>>(
        &self,
        key: T,
        (index, word): (usize, u64),
        work: &mut Room<T>,
    ) -> Result<bool, Error> {
        if !self.changes_in_place() {
            return Ok(false);
        }
        let guard = ats_sync::pin();
        self.make_key(key, work)?;
        let cell = self.cell_at(&work.key, index, &guard);
        let is_done = cell.is_some_and(|cell| cell.replace(word));
        work.tidy_key();
        Ok(is_done)
    }

    /// Returns `true` if objects of this table can have cells. Others are packed, or bytes.
    pub(crate) fn can_have_cells(&self) -> bool {
        !self.has_byte_store && !self.packs()
    }

    /// Inserts the encoded object, in a set, by a change of one element of the object that is
    /// there. Returns `false`, and changes nothing, if the objects differ more than that, or if
    /// this is not likely.
    #[inline]
    pub(crate) fn overwrite<T: HostTerm<Host = H>>(
        &self,
        work: &mut Room<T>,
        guard: &Guard,
    ) -> Result<bool, Error> {
        let is_likely = self.can_have_cells() && self.overwrites.is_worth_a_look(&mut work.sampler);
        if !is_likely || work.image.object().len_words() > WORDS_MOST {
            return Ok(false);
        }
        let store = self.store(guard);
        if store.is_read() {
            return Ok(false);
        }
        let (key, image) = (&work.key, &mut work.image);
        let old = store.get_again(key, guard)?;
        let overwrite = old.and_then(|old| Overwrite::of(old, image.object()));
        self.overwrites.note(overwrite.is_some(), &work.sampler);
        Ok(match overwrite {
            None => false,
            Some(Overwrite::Same) => true,
            Some(Overwrite::InPlace(cell, word)) => cell.replace(word),
            Some(Overwrite::OfElement(index)) => {
                self.set_changes_in_place();
                store.put(key, cell::record(key, image.take(), index), guard)?;
                true
            }
        })
    }
}
