//! Atomic merges of a value into an element of an object.
//!
//! [`ats_merge`] defines merges. Sums, minima and maxima of small integers are changed in place,
//! like counters (see [`cells`]). Every other merge makes a new object, under the lock of
//! the key if it is [short](crate::terms::lock_budget), otherwise while only the key is held. The
//! operand is encoded before that. If the merged value [counts as missing](Merge::is_absent), the
//! object is removed.

use crate::terms::cells::{self, Cells};
use crate::terms::error::Error;
use crate::terms::lock_budget::{self, SHORT_WORDS, is_long_change};
use crate::terms::lookup_result::LookupResult;
use crate::terms::operations::change::element;
use crate::terms::table::Table;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, record};
use crate::terms::workspace::{Room, Workspace};
use ats_mem::Change;
use ats_merge::{Merge, Merged, MergedTerm, Simple};
use ats_sync::Guard;
use ats_term::image::{
    Host, HostTerm, ImageBuilder, ImageRef, NIL, NewValue, Object, Packer, Span,
};
use ats_term::term_ref::is_larger;
use ats_term::{Kind, TermRef, Zeros};

/// The merged value of an element, as passed to the caller.
#[derive(Clone, Copy)]
pub enum MergedValue<'a, H> {
    /// A small integer.
    Small(i64),
    /// A term inside an image.
    Term(ImageRef<'a, H>),
}

/// A merge of an operand into an element of an object.
#[derive(Clone, Copy)]
pub struct Merging<'a, T> {
    /// The key of the object.
    pub key: T,
    /// The position of the element, from 1.
    pub position: usize,
    /// The value that is merged into the element, as the later one.
    pub operand: T,
    /// The merge.
    pub merge: &'a Merge,
    /// The object that is inserted if the key is missing, with its key replaced by `key`.
    pub default: Option<T>,
    /// The time at which the key is locked.
    pub locking: Locking,
}

/// The time at which a merge locks the key of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// The key is locked before the merge, which is quick for small values. Other writers of this
    /// key wait meanwhile, or get [`Error::Busy`].
    First,
    /// The key is locked after the merged object was made, so that no writer of this key waits
    /// while large values are merged. If the object has changed meanwhile, the merge is repeated, a
    /// few times.
    AfterMerging,
}

impl<H: Host> Table<H> {
    /// Merges an operand into an element of the object of a key, atomically, and passes the merged
    /// value to `read`.
    ///
    /// If the key is missing, inserts the default, and merges the operand into it. Without a
    /// default it inserts a pair of the key and the operand, if that is an object of this table
    /// with the operand at the position; otherwise the key must exist. A failed call changes
    /// nothing. `read` may be called under a lock, and several times, and must not use the table.
    ///
    /// If the merged value counts as missing, the key has no object afterwards.
    ///
    /// Sums, minima and maxima of small integers are as fast as a counter; other merges take O(size
    /// of the object).
    ///
    /// ```
    /// # use ats::terms::{Locking, Merge, Merging, Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// let maximum = Merge::from_term(&Term::atom("max").expect("a short text"))
    ///     .expect("there is this merge");
    /// for degrees in [12, 17, 9] {
    ///     let merging = Merging {
    ///         key: &Term::from("oslo"),
    ///         position: 2,
    ///         operand: &Term::from(degrees),
    ///         merge: &maximum,
    ///         default: None,
    ///         locking: Locking::First,
    ///     };
    ///     table.merge(merging, &mut work, |_| ())?; // the first one inserts a pair
    /// }
    /// let guard = ats::terms::pin();
    /// let found = table.lookup(&Term::from("oslo"), &mut work, &guard)?;
    /// let objects = found.map(|found| found.to_terms());
    /// assert_eq!(objects, Some(vec![Term::from(("oslo", 17))]));
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableType`] if the table is a bag; [`Error::KeyPosition`] if the position is the
    /// key's; [`Error::Position`] if the object has no element there; [`Error::BadKey`] if the key
    /// is missing and nothing can be inserted; [`Error::Operand`] and [`Error::Element`] if a value
    /// is not of the kind of the merge; [`Error::SystemLimit`]; [`Error::TooLarge`] if the object
    /// would be larger than the workspace's [limit](Workspace::limit); [`Error::Busy`];
    /// [`Error::Storage`].
    pub fn merge<R>(
        &self,
        merging: Merging<'_, H::Term<'_>>,
        work: &mut Workspace<H>,
        read: impl Fn(MergedValue<'_, H>) -> R,
    ) -> Result<R, Error> {
        let work = work.lend();
        let Merging {
            key,
            position,
            operand,
            merge,
            default,
            ..
        } = merging;
        if self.table_type().is_bag() {
            return Err(Error::TableType);
        }
        let index = self.index_to_change(position)?;
        if let Some(default) = default {
            self.check_object(default)?;
        }
        let guard = ats_sync::pin();
        self.make_key(key, work)?;
        if let Some(value) = self.merge_in_place(&work.key, index, operand, merge, &guard) {
            return Ok(read(MergedValue::Small(value)));
        }
        drop(guard);
        let merged = self.merge_objects(merging, index, work, read);
        work.tidy();
        merged
    }

    /// Merges by making a new object, for [`merge`](Table::merge).
    fn merge_objects<T: HostTerm<Host = H>, R>(
        &self,
        merging: Merging<'_, T>,
        index: usize,
        work: &mut Room<T>,
        read: impl Fn(MergedValue<'_, H>) -> R,
    ) -> Result<R, Error> {
        let Merging {
            key,
            operand,
            merge,
            default,
            locking,
            ..
        } = merging;
        // SAFETY: the words are two immediates, and so the image of a pair.
        let pair = unsafe { Object::from_words(&[NIL, NIL]) };
        let parts = [(0, NewValue::Term(key)), (1, NewValue::Term(operand))];
        let most = work.words_left;
        work.second.replace_elements_within(pair, &parts, most)?;
        if !merge.accepts(work.second.object().element(1), self.zeros) {
            return Err(Error::Operand);
        }
        if merge.has_short_forms() {
            spell_out(merge, self.zeros, &mut work.second, &mut work.third, most)?;
        }
        let element_merge = ElementMerge { index, merge };
        // A store of bytes returns a new record at each read, so records cannot be compared.
        if locking == Locking::AfterMerging && !self.has_byte_store {
            for _ in 0..ATTEMPTS {
                if let Some(result) = self.merge_and_exchange(element_merge, work, &read) {
                    return result;
                }
            }
        }
        self.merge_as_image(element_merge, default, work, read)
    }

    /// Merges the operand, which follows the key in `work.second`, into the object of the key
    /// without the lock, and replaces the object if it is still the same. Returns `None` if the
    /// object has changed, if the key is missing, or if the object has cells, which need the
    /// lock.
    fn merge_and_exchange<T: HostTerm<Host = H>, R>(
        &self,
        element_merge: ElementMerge<'_>,
        work: &mut Room<T>,
        read: &impl Fn(MergedValue<'_, H>) -> R,
    ) -> Option<Result<R, Error>> {
        let Room {
            key,
            second,
            third,
            packer,
            unpacked,
            words_left,
            ..
        } = work;
        let guard = &ats_sync::pin();
        let store = self.store(guard);
        let seen = match store.get(key, guard) {
            Ok(seen) => seen?,
            Err(error) => return Some(Err(error)),
        };
        // Cells change in place unless they are stopped, which needs the lock.
        if Cells::of(seen).is_some() {
            return None;
        }
        let mut making = Making {
            table: self,
            element_merge,
            key: &key[..],
            packer,
            most: *words_left,
            under_lock: false,
        };
        let object = LookupResult::new(seen).first(unpacked);
        let mut made = Change::Keep;
        let mut read = |value: ImageRef<'_, H>| read(MergedValue::Term(value));
        let result =
            making.merge_onto_object(object, second.object(), false, third, &mut made, &mut read);
        if let Change::Keep = made {
            return Some(result);
        }
        // The guard ensures that no other record gets the address of this one, and a record without
        // cells never changes: so the same address means the same object.
        let mut is_same = false;
        let exchanged = store.update(key, guard, &mut |current| {
            is_same = current.is_some_and(|current| std::ptr::eq(current, seen));
            if is_same {
                std::mem::replace(&mut made, Change::Keep)
            } else {
                Change::Keep
            }
        });
        match exchanged {
            Err(error) => Some(Err(error)),
            Ok(()) => is_same.then_some(result),
        }
    }

    /// Merges an operand into a counter that changes in place, if the element is one and the merge
    /// can be done in place.
    #[inline]
    fn merge_in_place<T: TermRef>(
        &self,
        key: &[u8],
        index: usize,
        operand: T,
        merge: &Merge,
        guard: &Guard,
    ) -> Option<i64> {
        let Kind::Int(operand) = operand.kind() else {
            return None;
        };
        let change: fn(i64, i64) -> Option<i64> = match merge {
            Merge::Simple(Simple::Sum) => i64::checked_add,
            Merge::Simple(Simple::Min) => |a, b| Some(a.min(b)),
            Merge::Simple(Simple::Max) => |a, b| Some(a.max(b)),
            _ => return None,
        };
        let cells = self.cells_at(key, guard)?;
        cells.update(index, |value| change(value, operand))
    }

    /// Merges the operand, which follows the key in `work.second`.
    fn merge_as_image<T: HostTerm<Host = H>, R>(
        &self,
        element_merge: ElementMerge<'_>,
        default: Option<T>,
        work: &mut Room<T>,
        read: impl Fn(MergedValue<'_, H>) -> R,
    ) -> Result<R, Error> {
        let Room {
            key,
            image,
            second,
            third,
            packer,
            unpacked,
            words_left,
            ..
        } = work;
        let mut read = |value: ImageRef<'_, H>| read(MergedValue::Term(value));
        let mut result = Err(Error::BadKey);
        let begins_alone = is_long_change(0, key)
            || second.object().len_words() > SHORT_WORDS
            || element_merge.is_long_with(second.object().element(1));
        let most = *words_left;
        let mut making = Making {
            table: self,
            element_merge,
            key: &key[..],
            packer,
            most,
            under_lock: true,
        };
        self.update_pinned_shortly(key, begins_alone, &mut |current, alone| {
            let mut made = Change::Keep;
            making.under_lock = !alone;
            making.most = if alone { most } else { SHORT_WORDS.min(most) };
            if current.is_some_and(|current| LookupResult::new(current).len_words() > most) {
                result = Err(Error::TooLarge);
                return Some(made);
            }
            result = match (current, default) {
                (Some(current), _) => {
                    let pair = second.object();
                    making.merge_onto(current, pair, third, unpacked, &mut made, &mut read)
                }
                (None, Some(default)) => image
                    .encode_object_within(default, making.most)
                    .map_err(Error::from)
                    .and_then(|()| {
                        let (object, pair) = (image.object(), second.object());
                        let replaces_key = true;
                        let result = making.merge_onto_object(
                            object,
                            pair,
                            replaces_key,
                            third,
                            &mut made,
                            &mut read,
                        );
                        if let Change::Remove = made {
                            made = Change::Keep;
                        }
                        result
                    }),
                // The pair is the object.
                (None, None) if self.key_index == 0 && element_merge.index == 1 => {
                    let value = second.object().element(1);
                    let (is_absent, result) = (element_merge.merge.is_absent(value), read(value));
                    if !is_absent {
                        made = Change::Put(self.record(key, second.take(), making.packer));
                    }
                    Ok(result)
                }
                (None, None) => Err(Error::BadKey),
            };
            let takes_long = !alone && matches!(result, Err(Error::TooLarge));
            (!takes_long).then_some(made)
        })?;
        result
    }
}

/// Replaces the second element of a pair by its [expanded](Merge::expand) form.
fn spell_out<T: HostTerm>(
    merge: &Merge,
    zeros: Zeros,
    pair: &mut ImageBuilder<T>,
    room: &mut ImageBuilder<T>,
    most: usize,
) -> Result<(), Error> {
    let lent = std::mem::replace(room, ImageBuilder::new(zeros));
    let spelled_out = {
        let mut lent = lent.recycle::<MergedTerm<'_, T::Host>>();
        let object = pair.object();
        let value = merge.expand(object.element(1));
        lent.replace_elements_within(object, &[(1, NewValue::Term(value.term()))], most)?;
        lent.with_terms()
    };
    *room = std::mem::replace(pair, spelled_out);
    room.discard();
    Ok(())
}

/// Number of merges without holding the key. After that many, the key is held, so that the call
/// ends.
const ATTEMPTS: usize = 3;

/// An element of an object, and the merge that applies to it.
#[derive(Clone, Copy)]
struct ElementMerge<'a> {
    /// The index of the element, from 0.
    index: usize,
    merge: &'a Merge,
}

impl ElementMerge<'_> {
    /// Returns `true` if a merge with this value may take long.
    fn is_long_with<H: Host>(&self, value: ImageRef<'_, H>) -> bool {
        (self.merge.is_of_collections() || self.merge.needs_comparison())
            && is_larger(value, SHORT_WORDS)
    }
}

/// A builder of objects with a merged element.
struct Making<'a, H: Host> {
    table: &'a Table<H>,
    element_merge: ElementMerge<'a>,
    key: &'a [u8],
    packer: &'a mut Packer,
    /// Maximum number of words of an object.
    most: usize,
    /// `true` if other keys wait for the lock. Then a merge that takes long fails with
    /// [`Error::TooLarge`].
    under_lock: bool,
}

type MadeChange<H> = Change<crate::terms::value::Values<H>>;

impl<H: Host> Making<'_, H> {
    /// Merges into the object of a record. The caller has locked or holds the key.
    fn merge_onto<T: HostTerm<Host = H>, R>(
        &mut self,
        current: &Rec<H>,
        pair: Object<'_, H>,
        builder: &mut ImageBuilder<T>,
        unpacked: &mut UnpackBuffer,
        made: &mut MadeChange<H>,
        read: &mut dyn FnMut(ImageRef<'_, H>) -> R,
    ) -> Result<R, Error> {
        if self.under_lock && lock_budget::is_long(current) {
            return Err(Error::TooLarge);
        }
        // The cells are restarted on drop if the object stays.
        let stopped = cells::stop(current);
        let object = LookupResult::new(current).first(unpacked);
        let result = self.merge_onto_object(object, pair, false, builder, made, read);
        if !matches!(made, Change::Keep) {
            stopped.for_ever();
        }
        result
    }

    /// Merges the second element of `pair` into an object. If `replaces_key`, the first element of
    /// `pair` becomes the key of the object.
    fn merge_onto_object<T: HostTerm<Host = H>, R>(
        &mut self,
        object: Object<'_, H>,
        pair: Object<'_, H>,
        replaces_key: bool,
        builder: &mut ImageBuilder<T>,
        made: &mut MadeChange<H>,
        read: &mut dyn FnMut(ImageRef<'_, H>) -> R,
    ) -> Result<R, Error> {
        let (ElementMerge { index, merge }, zeros) = (self.element_merge, self.table.zeros);
        let earlier = element(object, index)?;
        if self.under_lock && self.element_merge.is_long_with(earlier) {
            return Err(Error::TooLarge);
        }
        let merged = merge.merge(earlier, pair.element(1), zeros)?;
        if let (Merged::Earlier(_), false) = (&merged, replaces_key) {
            return Ok(read(earlier));
        }
        let own_key = Merged::Later(pair.element(0));
        let key_too = [
            (index, NewValue::Term(merged.term())),
            (self.table.key_index, NewValue::Term(own_key.term())),
        ];
        let values = &key_too[..1 + usize::from(replaces_key)];
        let lent = std::mem::replace(builder, ImageBuilder::new(zeros));
        let mut lent = lent.recycle::<MergedTerm<'_, H>>();
        lent.replace_elements_within(object, values, self.most)?;
        let value = lent.object().element(index);
        let is_counter = merge.is_of_numbers() && value.as_small().is_some_and(cells::fits);
        let (is_absent, result) = (merge.is_absent(value), read(value));
        *made = match (is_absent, is_counter) {
            (true, _) => Change::Remove,
            (false, true) => {
                let (built, span) = (lent.take(), Span::one(index));
                Change::Put((self.table).record_with_cells(self.key, built, span, self.packer))
            }
            (false, false) => {
                let stored = self.table.pack_for_store(lent.take(), self.packer);
                Change::Put(record(self.key, stored))
            }
        };
        *builder = lent.recycle();
        Ok(result)
    }
}
