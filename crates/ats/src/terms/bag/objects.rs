//! Insertion and removal of objects of a key.

use super::buffers::{Buffers, NewObject};
use super::decided::{Decided, keep, put, remove};
use super::large::{Large, Objects};
use super::rules::{Rules, TooMany};
use crate::terms::lock_budget::{SHORT_OBJECTS, SHORT_WORDS};
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, record};
use ats_term::image::{Host, HostTerm, Object, ObjectList, Stored, image_eq};

/// Largest list, in words; a longer list of enough objects becomes a large bag. Copying this many
/// words takes about as long as a change of a large bag.
const LIST_WORDS: usize = 256;
/// Fewest objects of a large bag. Fewer objects stay a list, however large they are.
const LIST_OBJECTS: usize = 8;

/// Returns `true` if the objects of these records are few and small enough to be copied under a
/// lock. Objects of a large bag do not count, since a change does not copy them.
pub(crate) fn is_quick<'r, H: Host>(records: impl Iterator<Item = &'r Rec<H>>) -> bool {
    let (mut objects, mut words) = (0, 0);
    for record in records {
        objects += 1;
        words += record.value_words().1;
        if objects > SHORT_OBJECTS + 1 || words > SHORT_WORDS {
            return false;
        }
    }
    true
}

impl Rules {
    /// Returns `true` if a list of this size becomes a large bag.
    fn are_too_many(self, words: usize, objects: impl FnOnce() -> usize) -> bool {
        self.grows && words > LIST_WORDS && objects() >= LIST_OBJECTS
    }

    /// Adds an object to the objects of a key.
    ///
    /// # Safety
    /// `current` is the record that [`Store::update_bag`](crate::terms::store::Store::update_bag)
    /// passed to the decision that returns the result.
    pub(crate) unsafe fn insert<T: HostTerm>(
        self,
        key: &[u8],
        current: Option<&Rec<T::Host>>,
        new: &mut NewObject<'_, T>,
        buffers: &mut Buffers<T::Host>,
    ) -> Decided<T::Host> {
        let objects = match current.map(Objects::of) {
            // SAFETY: the caller promises that `update_bag` passed `current`, whose objects are
            // `large`, to the decision that returns the result (LARGE-1).
            Some(Objects::Large(large)) => unsafe {
                return self.insert_large(key, large, new, buffers);
            },
            Some(Objects::List(objects)) => Some(objects),
            None => None,
        };
        let others = || objects.into_iter().flat_map(ObjectList::iter);
        if self.distinct && self.is_among(others(), new.object(), &mut buffers.unpacked) {
            return keep();
        }
        let words = objects.map_or(0, |list| list.words().len()) + new.object().len_words();
        if self.are_too_many(words, || others().count() + 1) {
            let large = Large::empty();
            let mut draft = large.draft(self, buffers);
            others().for_each(|object| draft.push_copy(object));
            let hash = draft.hash(new.object());
            draft.push(hash, new.take());
            return put(draft.finish().into_record(key));
        }
        let list = &mut buffers.list;
        list.start();
        others().for_each(|object| list.push_copy(object));
        list.push(new.take());
        put(record(key, list.take()))
    }

    /// Adds an object to a large bag.
    ///
    /// # Safety
    /// The contract of [`insert`](Rules::insert) holds, and `large` belongs to the record that was
    /// passed to the decision.
    unsafe fn insert_large<T: HostTerm>(
        self,
        key: &[u8],
        large: &Large<T::Host>,
        new: &mut NewObject<'_, T>,
        buffers: &mut Buffers<T::Host>,
    ) -> Decided<T::Host> {
        let mut draft = large.draft(self, buffers);
        let hash = draft.hash(new.object());
        if self.distinct && draft.equal(hash, new.object()).next().is_some() {
            return keep();
        }
        draft.push(hash, new.take());
        // SAFETY: the draft was made of the objects of `current`, and the decision, which the
        // caller promises this is, replaces them with the result (LARGE-3).
        unsafe { draft.put(key, self) }
    }

    /// Adds copies of several objects to the objects of a key. The change can be undone.
    pub(crate) fn insert_many<'o, H: Host>(
        self,
        key: &[u8],
        current: Option<&'o Rec<H>>,
        added: impl Iterator<Item = Stored<'o, H>> + Clone,
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        let objects = match current.map(Objects::of) {
            Some(Objects::Large(large)) => {
                let mut draft = large.draft(self, buffers);
                added.for_each(|object| draft.push_allowed(object));
                return if draft.len() == large.len() {
                    keep()
                } else {
                    put(draft.finish().into_record(key))
                };
            }
            Some(Objects::List(objects)) => Some(objects),
            None => None,
        };
        let others = || objects.into_iter().flat_map(ObjectList::iter);
        let all = || others().chain(added.clone());
        let words = all().map(|object| object.words().len()).sum();
        if self.are_too_many(words, || all().count()) {
            let large = Large::empty();
            let mut draft = large.draft(self, buffers);
            others().for_each(|object| draft.push_copy(object));
            added.for_each(|object| draft.push_allowed(object));
            return put(draft.finish().into_record(key));
        }
        let Buffers {
            list,
            unpacked,
            second_unpacked,
            ..
        } = buffers;
        list.start();
        others().for_each(|object| list.push_copy(object));
        let mut any = false;
        for object in added {
            let others = list.list().iter();
            if self.distinct && self.is_among(others, second_unpacked.object(object), unpacked) {
                continue;
            }
            list.push_copy(object);
            any = true;
        }
        if any {
            put(record(key, list.take()))
        } else {
            keep()
        }
    }

    /// Removes all objects that equal `unwanted`, unless that takes too long to be done under a
    /// lock.
    ///
    /// # Safety
    /// The contract of [`insert`](Rules::insert) holds.
    pub(crate) unsafe fn delete_object<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        unwanted: Object<'_, H>,
        buffers: &mut Buffers<H>,
    ) -> Result<Decided<H>, TooMany> {
        let large = match Objects::of(current) {
            Objects::List(objects) if is_quick([current].into_iter()) => {
                return Ok(self.delete_from_list(key, objects, unwanted, buffers));
            }
            Objects::List(_) => return Err(TooMany),
            Objects::Large(large) => large,
        };
        let mut draft = large.draft(self, buffers);
        Ok(match draft.remove_equal(unwanted, SHORT_OBJECTS)? {
            0 => keep(),
            _ if draft.len() == 0 => remove(),
            _ => {
                // SAFETY: the draft was made of the objects of `current`, and the decision, which
                // the caller promises this is, replaces them with the result (LARGE-3).
                unsafe { draft.put(key, self) }
            }
        })
    }

    /// Removes objects like [`delete_object`](Rules::delete_object), but also from a long list.
    /// Fails if it would remove more than `most` objects of a large bag. The change can be undone.
    pub(crate) fn delete_object_slowly<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        unwanted: Object<'_, H>,
        most: usize,
        buffers: &mut Buffers<H>,
    ) -> Result<Decided<H>, TooMany> {
        let large = match Objects::of(current) {
            Objects::List(objects) => {
                return Ok(self.delete_from_list(key, objects, unwanted, buffers));
            }
            Objects::Large(large) => large,
        };
        let mut draft = large.draft(self, buffers);
        Ok(match draft.remove_equal(unwanted, most)? {
            0 => keep(),
            _ if draft.len() == 0 => remove(),
            _ => put(draft.finish().into_record(key)),
        })
    }

    fn delete_from_list<H: Host>(
        self,
        key: &[u8],
        objects: ObjectList<'_, H>,
        unwanted: Object<'_, H>,
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        let Buffers { list, unpacked, .. } = buffers;
        list.start();
        let (mut is_kept, mut is_deleted) = (false, false);
        for object in objects {
            if image_eq(unpacked.object(object), unwanted, self.zeros) {
                is_deleted = true;
            } else {
                list.push_copy(object);
                is_kept = true;
            }
        }
        if !is_deleted {
            return keep();
        }
        if !is_kept {
            return remove();
        }
        put(record(key, list.take()))
    }

    fn is_among<'o, H: Host>(
        self,
        mut objects: impl Iterator<Item = Stored<'o, H>>,
        object: Object<'_, H>,
        unpacked: &mut UnpackBuffer,
    ) -> bool {
        objects.any(|other| image_eq(unpacked.object(other), object, self.zeros))
    }
}
