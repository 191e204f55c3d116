//! The objects of one key of a bag, and how they change.
//!
//! A few objects lie one after the other in the record of the key ([`ObjectList`]); to change them copies
//! them all. That is fast while they are few. Once they are not, the key becomes a [large bag](large), and
//! stays one until it is removed.

mod large;
mod selected;

pub(crate) use large::{Large, kept_bytes, objects_from, release};
pub(crate) use selected::Selected;

use crate::short::{SHORT_OBJECTS, SHORT_WORDS};
use crate::table::Table;
use crate::value::{Rec, UnpackBuffer, Values, form, list as list_of, record};
use ats_mem::sequence::Leftovers;
use ats_mem::{Change, RecordBox};
use ats_sync::Guard;
use ats_term::Zeros;
use ats_term::image::{
    Built, Form, Host, HostTerm, ImageBuilder, Object, ObjectList, ObjectListBuilder, Packer,
    Stored, image_eq,
};

/// A list of more words than this becomes a large bag, if there are enough objects in it: copying this
/// much takes about as long as a change of a large bag.
const LIST_WORDS: usize = 256;
/// A list of fewer objects than this stays one, however large they are.
const LIST_OBJECTS: usize = 8;

/// What a table makes of equal objects, and which are equal.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// Whether no object comes twice under a key.
    pub(crate) distinct: bool,
    pub(crate) zeros: Zeros,
}

/// Buffers to change bags with.
pub(crate) struct Buffers<H: Host> {
    list: ObjectListBuilder<H>,
    /// For objects that are there.
    room: UnpackBuffer,
    /// For objects they are compared with.
    second_room: UnpackBuffer,
    /// For what an object is hashed by.
    content: Vec<u8>,
}

impl<H: Host> Buffers<H> {
    /// Does not allocate.
    pub(crate) const fn new() -> Self {
        Buffers {
            list: ObjectListBuilder::new(),
            room: UnpackBuffer::new(),
            second_room: UnpackBuffer::new(),
            content: Vec::new(),
        }
    }

    /// Gives back what was built and not stored, and buffers that something huge blew up.
    pub(crate) fn tidy(&mut self) {
        self.list.tidy();
        self.room.tidy();
        self.second_room.tidy();
        if self.content.capacity() > KEEP_BYTES {
            self.content = Vec::new();
        }
    }
}

/// A buffer for contents with more room than this is given back.
const KEEP_BYTES: usize = 1 << 16;

/// An object that was just built, to be inserted.
pub(crate) struct NewObject<'a, T: HostTerm> {
    pub(crate) table: &'a Table<T::Host>,
    pub(crate) image: &'a mut ImageBuilder<T>,
    pub(crate) packer: &'a mut Packer,
}

impl<T: HostTerm> NewObject<'_, T> {
    pub(crate) fn object(&self) -> Object<'_, T::Host> {
        self.image.object()
    }

    /// As the table stores it.
    pub(crate) fn take(&mut self) -> Built<'_, T::Host> {
        self.table.stored(self.image.take(), self.packer)
    }
}

/// What the change of a key does besides.
#[must_use = "the table counts, and the leftovers are to be retired"]
pub(crate) struct Effect<H: Host> {
    /// How many more objects there are than one for each record.
    pub(crate) extra: i64,
    /// How many more bytes large bags take.
    pub(crate) bytes: i64,
    leftovers: Option<Leftovers<Values<H>>>,
}

impl<H: Host> Effect<H> {
    pub(crate) fn none() -> Self {
        Effect {
            extra: 0,
            bytes: 0,
            leftovers: None,
        }
    }

    /// What the removal of a key does, of a bag or not.
    pub(crate) fn of_removal(record: &Rec<H>) -> Self {
        match form(record) {
            Form::List | Form::Large => Effect {
                extra: -extra(record),
                bytes: -large_bytes(record),
                leftovers: None,
            },
            _ => Effect::none(),
        }
    }

    /// What it does that a key which had these objects gets those.
    fn of_change(before: Option<&Rec<H>>, after: &Rec<H>) -> Self {
        Effect {
            extra: extra(after) - before.map_or(0, extra),
            bytes: large_bytes(after) - before.map_or(0, large_bytes),
            leftovers: None,
        }
    }

    /// Adds the effect of the change of another key, of a batch.
    pub(crate) fn add(&mut self, other: Effect<H>) {
        debug_assert!(other.leftovers.is_none(), "batches take nothing over");
        self.extra += other.extra;
        self.bytes += other.bytes;
    }

    /// Retires what the change left.
    ///
    /// # Safety
    /// The change has been made.
    pub(crate) unsafe fn retire(self, guard: &Guard) {
        if let Some(leftovers) = self.leftovers {
            // SAFETY: the record of the old version has been replaced, so no reader finds it any more.
            unsafe { leftovers.retire(guard) };
        }
    }
}

/// The objects of a record of a bag beyond the first.
fn extra<H: Host>(record: &Rec<H>) -> i64 {
    let len = match Objects::of(record) {
        Objects::List(list) => list.iter().count(),
        Objects::Large(large) => large.len(),
    };
    len as i64 - 1
}

fn large_bytes<H: Host>(record: &Rec<H>) -> i64 {
    match Objects::of(record) {
        Objects::List(_) => 0,
        Objects::Large(large) => large.bytes() as i64,
    }
}

/// The objects of a record of a bag.
enum Objects<'a, H: Host> {
    List(ObjectList<'a, H>),
    Large(&'a Large<H>),
}

impl<'a, H: Host> Objects<'a, H> {
    fn of(record: &'a Rec<H>) -> Self {
        match form(record) {
            Form::Large => Objects::Large(Large::of(record)),
            _ => Objects::List(list_of(record)),
        }
    }
}

/// What becomes of a key.
pub(crate) type Decided<H> = (Change<Values<H>>, Effect<H>);

/// There is more to change than the caller has time for. Nothing has changed.
pub(crate) struct TooMany;

fn keep<H: Host>() -> Decided<H> {
    (Change::Keep, Effect::none())
}

/// Puts a record in the place of another, or of none.
fn put<H: Host>(before: Option<&Rec<H>>, after: RecordBox<Values<H>>) -> Decided<H> {
    let effect = Effect::of_change(before, &after);
    (Change::Put(after), effect)
}

/// Whether the objects of these records are so few, and so small, that one may copy them under a lock. Those
/// of a large bag do not count, since a change does not copy them.
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

/// Whether so many words of so many objects are too many for a list.
fn are_too_many(words: usize, objects: impl FnOnce() -> usize) -> bool {
    words > LIST_WORDS && objects() >= LIST_OBJECTS
}

impl Rules {
    /// Adds an object to those of a key.
    ///
    /// # Safety
    /// `current` is what [`Store::update_bag`](crate::store::Store::update_bag) gave to the decision that
    /// answers with the result.
    pub(crate) unsafe fn insert<T: HostTerm>(
        self,
        key: &[u8],
        current: Option<&Rec<T::Host>>,
        new: &mut NewObject<'_, T>,
        buffers: &mut Buffers<T::Host>,
    ) -> Decided<T::Host> {
        let objects = match current.map(Objects::of) {
            // SAFETY: handed on.
            Some(Objects::Large(large)) => unsafe {
                return self.insert_large(key, current, large, new, buffers);
            },
            Some(Objects::List(objects)) => Some(objects),
            None => None,
        };
        let others = || objects.into_iter().flat_map(ObjectList::iter);
        if self.distinct && self.is_among(others(), new.object(), &mut buffers.room) {
            return keep();
        }
        let words = objects.map_or(0, |list| list.words().len()) + new.object().len_words();
        if are_too_many(words, || others().count() + 1) {
            let large = Large::empty();
            let mut draft = large.draft(self, buffers);
            others().for_each(|object| draft.push_copy(object));
            let hash = draft.hash(new.object());
            draft.push(hash, new.take());
            return put(current, draft.finish().into_record(key));
        }
        let list = &mut buffers.list;
        list.start();
        others().for_each(|object| list.push_copy(object));
        list.push(new.take());
        let effect = Effect {
            extra: i64::from(current.is_some()),
            ..Effect::none()
        };
        (Change::Put(record(key, list.take())), effect)
    }

    /// # Safety
    /// As for [`insert`](Rules::insert); the objects are those of `current`.
    unsafe fn insert_large<T: HostTerm>(
        self,
        key: &[u8],
        current: Option<&Rec<T::Host>>,
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
        // SAFETY: handed on.
        let (large, leftovers) = unsafe { draft.take_over() };
        with_leftovers(put(current, large.into_record(key)), leftovers)
    }

    /// Adds copies of several objects to those of a key. The change can be undone.
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
                return match draft.len() == large.len() {
                    true => keep(),
                    false => put(current, draft.finish().into_record(key)),
                };
            }
            Some(Objects::List(objects)) => Some(objects),
            None => None,
        };
        let others = || objects.into_iter().flat_map(ObjectList::iter);
        let all = || others().chain(added.clone());
        let words = all().map(|object| object.words().len()).sum();
        if are_too_many(words, || all().count()) {
            let large = Large::empty();
            let mut draft = large.draft(self, buffers);
            others().for_each(|object| draft.push_copy(object));
            added.for_each(|object| draft.push_allowed(object));
            return put(current, draft.finish().into_record(key));
        }
        let Buffers {
            list,
            room,
            second_room,
            ..
        } = buffers;
        list.start();
        others().for_each(|object| list.push_copy(object));
        let mut any = false;
        for object in added {
            let others = list.list().iter();
            if self.distinct && self.is_among(others, second_room.object(object), room) {
                continue;
            }
            list.push_copy(object);
            any = true;
        }
        match any {
            true => put(current, record(key, list.take())),
            false => keep(),
        }
    }

    /// Removes all objects that equal this one from those of a key, unless that takes too long to be done under
    /// a lock.
    ///
    /// # Safety
    /// As for [`insert`](Rules::insert).
    pub(crate) unsafe fn delete_object<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        unwanted: Object<'_, H>,
        buffers: &mut Buffers<H>,
    ) -> Result<Decided<H>, TooMany> {
        let large = match Objects::of(current) {
            Objects::List(objects) if is_quick([current].into_iter()) => {
                return Ok(self.delete_from_list(key, current, objects, unwanted, buffers));
            }
            Objects::List(_) => return Err(TooMany),
            Objects::Large(large) => large,
        };
        let mut draft = large.draft(self, buffers);
        Ok(match draft.remove_equal(unwanted, SHORT_OBJECTS)? {
            0 => keep(),
            _ if draft.len() == 0 => (Change::Remove, Effect::of_removal(current)),
            _ => {
                // SAFETY: handed on.
                let (large, leftovers) = unsafe { draft.take_over() };
                with_leftovers(put(Some(current), large.into_record(key)), leftovers)
            }
        })
    }

    /// As [`delete_object`](Rules::delete_object), unless more than `most` objects of a large bag would go. The
    /// change can be undone.
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
                return Ok(self.delete_from_list(key, current, objects, unwanted, buffers));
            }
            Objects::Large(large) => large,
        };
        let mut draft = large.draft(self, buffers);
        Ok(match draft.remove_equal(unwanted, most)? {
            0 => keep(),
            _ if draft.len() == 0 => (Change::Remove, Effect::of_removal(current)),
            _ => put(Some(current), draft.finish().into_record(key)),
        })
    }

    fn delete_from_list<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        objects: ObjectList<'_, H>,
        unwanted: Object<'_, H>,
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        let Buffers { list, room, .. } = buffers;
        list.start();
        let (mut kept, mut deleted) = (0, 0);
        for object in objects.iter() {
            if image_eq(room.object(object), unwanted, self.zeros) {
                deleted += 1;
            } else {
                list.push_copy(object);
                kept += 1;
            }
        }
        if deleted == 0 {
            return keep();
        }
        if kept == 0 {
            return (Change::Remove, Effect::of_removal(current));
        }
        let effect = Effect {
            extra: -deleted,
            ..Effect::none()
        };
        (Change::Put(record(key, list.take())), effect)
    }

    fn is_among<'o, H: Host>(
        self,
        mut objects: impl Iterator<Item = Stored<'o, H>>,
        object: Object<'_, H>,
        room: &mut UnpackBuffer,
    ) -> bool {
        objects.any(|other| image_eq(room.object(other), object, self.zeros))
    }
}

fn with_leftovers<H: Host>(decided: Decided<H>, leftovers: Leftovers<Values<H>>) -> Decided<H> {
    let (change, effect) = decided;
    let leftovers = Some(leftovers);
    (
        change,
        Effect {
            leftovers,
            ..effect
        },
    )
}
