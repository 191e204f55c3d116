//! Changes of the object of a key. Each operation is atomic.

use crate::terms::cells::{self, NewWords};
use crate::terms::error::Error;
use crate::terms::lock_budget::{self, SHORT_WORDS, is_long_change};
use crate::terms::lookup_result::LookupResult;
use crate::terms::table::Table;
use crate::terms::value::{Rec, Values};
use crate::terms::workspace::{Room, Workspace};
use ats_mem::{Change, RecordBox};
use ats_store::BatchPlan;
use ats_term::image::{Host, HostTerm, ImageBuilder, ImageRef, NewValue, Object, Span};

impl<H: Host> Table<H> {
    /// Replaces elements of the object of a key, in order: of several values for a position the
    /// last one counts. If the key is missing, inserts `default` first, with its key replaced by
    /// `key`. Returns `true` if there was an object to change. Positions count from 1.
    ///
    /// All values are replaced at one moment: a reader sees all of them or none.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40, "green")), &mut work)?;
    ///
    /// let (price, colour) = (Term::from(45), Term::from("yellow"));
    /// let values = [(2, &price), (3, &colour)];
    /// assert!(table.update_element(&Term::from("pear"), &values, None, &mut work)?);
    /// assert!(!table.update_element(&Term::from("plum"), &values, None, &mut work)?);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableType`] if the table is a bag; [`Error::KeyPosition`] if a position is that of
    /// the key; [`Error::Position`] if the object or the default has no element at a position;
    /// [`Error::NotATuple`] and [`Error::NoKey`] if the default is not an object of the table;
    /// [`Error::TooLarge`] if the object would be larger than the workspace's
    /// [limit](Workspace::limit); [`Error::Busy`]; [`Error::Storage`]. A failed call changes
    /// nothing.
    pub fn update_element<'t>(
        &self,
        key: H::Term<'t>,
        values: &[(usize, H::Term<'t>)],
        default: Option<H::Term<'t>>,
        work: &mut Workspace<H>,
    ) -> Result<bool, Error> {
        let work = work.lend();
        if self.table_type.is_bag() {
            return Err(Error::TableType);
        }
        let change = |(position, value): &(usize, H::Term<'t>)| {
            Ok((self.index_to_change(*position)?, NewValue::Term(*value)))
        };
        if let [value] = values {
            return self.replace_elements(key, &[change(value)?], default, work);
        }
        let changes: Result<Vec<_>, Error> = values.iter().map(change).collect();
        self.replace_elements(key, &changes?, default, work)
    }

    #[inline]
    fn replace_elements<T: HostTerm<Host = H>>(
        &self,
        key: T,
        changes: &[(usize, NewValue<'_, T>)],
        default: Option<T>,
        work: &mut Room<T>,
    ) -> Result<bool, Error> {
        let mut words = NewWords::new();
        let cells = self.in_place(changes, &mut words);
        if let Some(default) = default {
            self.check_object(default)?;
        }
        if cells.is_some() && self.replace_in_place(key, &words, work)? {
            return Ok(true);
        }
        let mut found = false;
        let last = changes.iter().map(|(index, _)| *index).max();
        self.update_object(key, default, changes.len(), work, |object, image, most| {
            found = true;
            match last {
                None => Ok(Becomes::Same),
                Some(last) if last >= object.arity() => Err(Error::Position),
                Some(_) => {
                    image.replace_elements_within(object, changes, most)?;
                    Ok(Becomes::New { cells })
                }
            }
        })?;
        Ok(found)
    }

    /// Returns the span of elements that can change in place, and adds their new words to `words`.
    // The words are not returned: a processor stalls when a list is moved right after it was made.
    #[inline]
    fn in_place<T: HostTerm<Host = H>>(
        &self,
        changes: &[(usize, NewValue<'_, T>)],
        words: &mut NewWords,
    ) -> Option<Span> {
        if !self.can_have_cells() {
            return None;
        }
        let mut span = None::<Span>;
        for (index, value) in changes {
            let NewValue::Term(value) = value else {
                return None;
            };
            words.push((*index, value.immediate()?));
            let element = Span::one(*index);
            span = Some(span.map_or(element, |span| span.and(element)));
        }
        span
    }

    /// Returns the index of a position that may be changed.
    pub(crate) fn index_to_change(&self, position: usize) -> Result<usize, Error> {
        match position.checked_sub(1) {
            None => Err(Error::Position),
            Some(index) if index == self.key_index => Err(Error::KeyPosition),
            Some(index) => Ok(index),
        }
    }

    /// Changes the object of a key, or a default object, which the caller has checked. `change`
    /// either builds the new object in the builder that it gets, and returns which of its elements
    /// are cells, or keeps the old object. It is not called if the key has no object and there is
    /// no default, or if the object exceeds the limit of the workspace.
    ///
    /// If the change has few `parts`, `change` is called under the lock of the key. If it has many,
    /// or if the call under the lock returns [`Error::TooLarge`] because the new object exceeds the
    /// given number of words, `change` is called while only the key is held. The thread is not
    /// pinned then, nor while the default object is encoded, unless the caller is pinned.
    pub(crate) fn update_object<T: HostTerm<Host = H>>(
        &self,
        key: T,
        default: Option<T>,
        parts: usize,
        work: &mut Room<T>,
        change: impl FnMut(Object<'_, H>, &mut ImageBuilder<T>, usize) -> Result<Becomes, Error>,
    ) -> Result<(), Error> {
        let done = self.update_with(key, default, parts, work, change);
        work.tidy();
        done
    }

    /// Changes a key like [`update_short`](crate::terms::store::Store::update_short), but pins only
    /// for the attempt under the lock, and not while only the key is held. If `begins_alone`, holds
    /// the key from the start.
    pub(crate) fn update_pinned_shortly(
        &self,
        key: &[u8],
        begins_alone: bool,
        decide: &mut DecidePinnedShortly<'_, H>,
    ) -> Result<(), Error> {
        let is_long = begins_alone || {
            let guard = ats_sync::pin();
            let mut decide = |current: Option<&Rec<H>>| decide(current, false);
            self.store(&guard)
                .is_too_long_to_update(key, None, &guard, &mut decide)?
        };
        if is_long {
            self.store
                .long_batch()?
                .update(&[key], &mut Alone(decide))?;
        }
        Ok(())
    }

    fn update_with<T: HostTerm<Host = H>>(
        &self,
        key: T,
        default: Option<T>,
        parts: usize,
        work: &mut Room<T>,
        mut edit: impl FnMut(Object<'_, H>, &mut ImageBuilder<T>, usize) -> Result<Becomes, Error>,
    ) -> Result<(), Error> {
        self.make_key(key, work)?;
        let is_there = self.update_made_key(false, parts, work, &mut edit)?;
        // Most calls find an object, so the default is encoded only when it is needed.
        if let (false, Some(default)) = (is_there, default) {
            work.image.encode_object_within(default, work.words_left)?;
            // The default object may have any key; the call inserts it under `key`.
            let own_key = [(self.key_index, NewValue::Term(key))];
            let (image, most) = (work.image.object(), work.words_left);
            work.second.replace_elements_within(image, &own_key, most)?;
            self.update_made_key(true, parts, work, &mut edit)?;
        }
        Ok(())
    }

    /// Changes the object of the key in the workspace, or the object that is `second` there if the
    /// key has none and `has_default`. Returns `false` if there was nothing to change.
    fn update_made_key<T: HostTerm<Host = H>>(
        &self,
        has_default: bool,
        parts: usize,
        work: &mut Room<T>,
        edit: &mut impl FnMut(Object<'_, H>, &mut ImageBuilder<T>, usize) -> Result<Becomes, Error>,
    ) -> Result<bool, Error> {
        let Room {
            key,
            image,
            second,
            packer,
            unpacked,
            words_left,
            ..
        } = work;
        let mut result = Ok(false);
        let begins_alone = is_long_change(parts, key);
        let limit = *words_left;
        self.update_pinned_shortly(key, begins_alone, &mut |current, alone| {
            let most = if alone { limit } else { SHORT_WORDS.min(limit) };
            result = Ok(current.is_some());
            if current.is_some_and(|current| LookupResult::new(current).len_words() > limit) {
                result = Err(Error::TooLarge);
                return Some(Change::Keep);
            }
            let is_long = match current {
                Some(current) => lock_budget::is_long(current),
                None => has_default && second.object().len_words() > most,
            };
            if is_long && !alone {
                return None;
            }
            // The cells are restarted on drop if the object stays.
            let stopped = current.map(cells::stop);
            let changed = match current {
                Some(current) => edit(LookupResult::new(current).first(unpacked), image, most),
                None if has_default => {
                    edit(second.object(), image, most).map(|becomes| match becomes {
                        Becomes::Same => {
                            std::mem::swap(image, second);
                            Becomes::New { cells: None }
                        }
                        becomes @ Becomes::New { .. } => becomes,
                    })
                }
                None => Ok(Becomes::Same),
            };
            match changed {
                Ok(Becomes::New { cells }) => {
                    let span = cells
                        .map(|span| cells::with_cells_of(current, span))
                        .filter(|span| cells::can_be_cells(*span, image.object()));
                    let built = image.take();
                    let new = match span {
                        Some(span) => self.record_with_cells(key, built, span, packer),
                        None => self.record(key, built, packer),
                    };
                    if let Some(stopped) = stopped {
                        stopped.for_ever();
                    }
                    Some(Change::Put(new))
                }
                Ok(Becomes::Same) => Some(Change::Keep),
                Err(Error::TooLarge) if most < limit => None,
                Err(error) => {
                    result = Err(error);
                    Some(Change::Keep)
                }
            }
        })?;
        result
    }
}

/// A change of one key that is made while only this key is held.
struct Alone<'a, 'd, H: Host>(&'a mut DecidePinnedShortly<'d, H>);

pub(crate) type DecidePinnedShortly<'d, H> =
    dyn FnMut(Option<&Rec<H>>, bool) -> Option<Change<Values<H>>> + 'd;

impl<H: Host> BatchPlan<Rec<H>, RecordBox<Values<H>>> for Alone<'_, '_, H> {
    fn decide(&mut self, _index: usize, _current: Option<&Rec<H>>) -> Change<Values<H>> {
        Change::Later
    }

    fn build(&mut self, _index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        (self.0)(current, true).expect("a key that is held alone can be changed")
    }
}

/// The result of changing an object.
pub(crate) enum Becomes {
    /// The object stays as it is.
    Same,
    /// A new object replaces the old one.
    New {
        /// The elements of the new object that change in place from now on, if that is possible.
        /// The first and the last are immediate.
        cells: Option<Span>,
    },
}

/// Returns an element that must exist.
pub(crate) fn element<H: Host>(
    object: Object<'_, H>,
    index: usize,
) -> Result<ImageRef<'_, H>, Error> {
    object.get(index).ok_or(Error::Position)
}
