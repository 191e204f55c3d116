//! Changes of elements of an object in place; see [`cells`].

use crate::terms::cells::{self, Cells, Overwrite};
use crate::terms::error::Error;
use crate::terms::store::Store;
use crate::terms::table::Table;
use crate::terms::value::Values;
use crate::terms::workspace::Room;
use ats_mem::RecordBox;
use ats_sync::Guard;
use ats_term::image::{Built, Host, HostTerm, Packer, Span};

impl<H: Host> Table<H> {
    /// Returns the cells of the object of a key, if it has some and they may be changed.
    #[inline]
    pub(crate) fn cells_at<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<Cells<'g>> {
        let store = self.store(guard);
        if !self.may_change_cells(store) {
            return None;
        }
        // Reading memory does not fail.
        let record = store.get_again(key, guard).ok()??;
        Cells::of(record)
    }

    /// Returns `true` if a pinned thread may change cells. If it must not, because a query of an
    /// earlier moment may need the old words, a new record replaces the object.
    #[inline]
    fn may_change_cells(&self, store: &Store<H>) -> bool {
        let is_open = self.cells_gate.is_open();
        if is_open || !self.cells_gate.is_there() || store.is_read() {
            return is_open && !store.is_read();
        }
        self.cells_gate.count();
        false
    }

    /// Replaces elements of the object of a key by immediate terms, if the elements are cells that
    /// may be changed. Returns `false`, and changes nothing, otherwise.
    #[inline]
    pub(crate) fn replace_in_place<T: HostTerm<Host = H>>(
        &self,
        key: T,
        words: &[(usize, u64)],
        work: &mut Room<T>,
    ) -> Result<bool, Error> {
        if !self.cells_gate.is_there() {
            return Ok(false);
        }
        let guard = ats_sync::pin();
        self.make_key(key, work)?;
        let cells = self.cells_at(&work.key, &guard);
        let is_done = cells.is_some_and(|cells| cells.replace(words));
        work.tidy_key();
        Ok(is_done)
    }

    /// Returns `true` if objects of this table can have cells. Others are packed, or bytes.
    pub(crate) fn can_have_cells(&self) -> bool {
        !self.has_byte_store && !self.packs()
    }

    /// Returns a record of a newly built object with these cells, if the store keeps records: a
    /// store of bytes has no cells, and the gate of its table is never made.
    pub(crate) fn record_with_cells(
        &self,
        key: &[u8],
        built: Built<'_, H>,
        span: Span,
        packer: &mut Packer,
    ) -> RecordBox<Values<H>> {
        if self.has_byte_store {
            return self.record(key, built, packer);
        }
        self.cells_gate.make();
        cells::record(key, built, span)
    }

    /// Inserts the encoded object, in a set, by a change of elements of the object that is there.
    /// Returns `false`, and changes nothing, if the objects differ more than that, or if this is
    /// not likely.
    #[inline]
    pub(crate) fn overwrite<T: HostTerm<Host = H>>(
        &self,
        work: &mut Room<T>,
        guard: &Guard,
    ) -> Result<bool, Error> {
        // The object must get a new deadline in a table whose objects expire.
        let is_likely = !self.expires
            && self.can_have_cells()
            && self.overwrites.is_worth_a_look(&mut work.sampler);
        if !is_likely || work.image.object().len_words() > cells::WORDS_MOST {
            return Ok(false);
        }
        let store = self.store(guard);
        let may_change = self.may_change_cells(store);
        if !may_change && self.cells_gate.is_there() {
            return Ok(false);
        }
        let (key, image) = (&work.key, &mut work.image);
        let old = store.get_again(key, guard)?;
        let overwrite = old.and_then(|old| Overwrite::of(old, image.object()));
        self.overwrites.note(overwrite.is_some(), &work.sampler);
        Ok(match overwrite {
            None => false,
            Some(Overwrite::Same) => true,
            Some(Overwrite::InPlace(cells)) => may_change && cells.overwrite(image.object()),
            Some(Overwrite::OfElements(span)) => {
                let new = self.record_with_cells(key, image.take(), span, &mut work.packer);
                store.put(key, new, guard)?;
                true
            }
        })
    }
}
