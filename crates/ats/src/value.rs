//! What the value words of a record mean: one object, or the objects of a key.

use crate::bag::{self, Large};
use crate::counted::{self, Counter};
use ats_mem::sequence::Sequence;
use ats_mem::{Record, RecordBox, Release};
use ats_term::Term;
use ats_term::image::{
    Built, Form, Host, ImageRef, Object, ObjectList, Packed, Scratch, Stored, TermHost,
    decode_object, kept_bytes, release_all,
};
use ats_term::term::TermBuilder;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Values that are objects of host `H`, with the resources these own.
pub(crate) struct Values<H>(PhantomData<fn() -> H>);

impl<H: Host> Release for Values<H> {
    unsafe fn release(value: &[u64]) {
        let words = match Form::of(value[0]) {
            Form::Object | Form::Packed | Form::List => value,
            Form::Counted(_) => &value[1..],
            // SAFETY: the value of a large bag of this host, which our caller gives up.
            Form::Large => return unsafe { bag::release::<H>(value) },
        };
        // SAFETY: the value of an owning record was built by this crate for this host, and our
        // caller promises that this is its end.
        unsafe { release_all::<H>(words) };
    }

    unsafe fn kept_bytes(value: *const u64, words: usize) -> usize {
        // SAFETY: the contract: so many words, of which the first never changes. Those of an object with a
        // counter are copied, the others never change; all were built by this crate for this host.
        unsafe {
            match Form::of(*value) {
                Form::Counted(index) => {
                    let mut copy = Vec::new();
                    counted::copy_words(value, words, index, &mut copy);
                    kept_bytes::<H>(&copy)
                }
                Form::Large => bag::kept_bytes::<H>(std::slice::from_raw_parts(value, words)),
                Form::Object | Form::Packed | Form::List => {
                    kept_bytes::<H>(std::slice::from_raw_parts(value, words))
                }
            }
        }
    }
}

/// A record as this crate stores it.
pub(crate) type Rec<H> = Record<Values<H>>;

/// Room for objects that cannot be read where they are, because they change in place or are packed. Keep one
/// per thread; most objects do not need it.
#[derive(Debug, Default)]
pub struct UnpackBuffer(Vec<u64>);

/// Room for more words than this is given back.
const KEEP_WORDS: usize = 1 << 13;

impl UnpackBuffer {
    /// No room yet; does not allocate.
    pub const fn new() -> Self {
        UnpackBuffer(Vec::new())
    }

    /// Gives the room back that one huge object took. For after each use.
    #[inline]
    pub fn tidy(&mut self) {
        if self.0.capacity() > KEEP_WORDS {
            self.0 = Vec::new();
        }
    }

    /// The words, empty.
    fn start(&mut self) -> &mut Vec<u64> {
        self.0.clear();
        self.0.shrink_to(KEEP_WORDS);
        &mut self.0
    }

    /// The object, unpacked if it was packed.
    #[inline]
    pub(crate) fn object<'b, 'a: 'b, H: Host>(
        &'b mut self,
        stored: Stored<'a, H>,
    ) -> Object<'b, H> {
        match stored {
            Stored::Image(object) => object,
            Stored::Packed(packed) => packed.unpack(self.start()),
        }
    }
}

/// A key that was found, with its objects. Lives as long as the guard it was found under, also
/// when it is replaced or removed meanwhile.
///
/// An object with a counter is read as of the moment of the call that reads it.
pub struct Found<'g, H: Host> {
    record: &'g Rec<H>,
}

impl<'g, H: Host> Found<'g, H> {
    #[inline]
    pub(crate) fn new(record: &'g Rec<H>) -> Self {
        Found { record }
    }

    /// The record of the key.
    pub(crate) fn record(&self) -> &'g Rec<H> {
        self.record
    }

    /// The key's bytes: an order key in an `ordered_set`, else an exact key.
    pub fn key_bytes(&self) -> &'g [u8] {
        self.record.key()
    }

    /// How many words the objects take where they are stored, but for large bags. O(1).
    pub fn len_words(&self) -> usize {
        self.record.value_words().1
    }

    /// The first object; each key has at least one.
    #[inline]
    pub fn first<'b>(&self, room: &'b mut UnpackBuffer) -> Object<'b, H>
    where
        'g: 'b,
    {
        match form(self.record) {
            // SAFETY: as `form` says.
            Form::Object => unsafe { Object::from_words(self.record.value()) },
            // SAFETY: as `form` says.
            Form::Packed => unsafe { Packed::from_words(self.record.value()) }.unpack(room.start()),
            Form::List => {
                let first = list(self.record).iter().next();
                room.object(first.expect("no list is empty"))
            }
            Form::Counted(_) => counted_object(self.record, room),
            Form::Large => {
                let first = Large::of(self.record).iter_from(0).next();
                room.object(first.expect("no large bag is empty").1)
            }
        }
    }

    /// Element `index` of the first object, counted from 0, or `None` if it has not so many. Reads no more of
    /// the object than it must.
    #[inline]
    pub fn element<'b>(&self, index: usize, room: &'b mut UnpackBuffer) -> Option<ImageRef<'b, H>>
    where
        'g: 'b,
    {
        match form(self.record) {
            Form::Packed => {
                // SAFETY: as `form` says.
                let stored = unsafe { Stored::from_words(self.record.value()) };
                stored.get(index, room.start())
            }
            Form::List => {
                let first = list(self.record).iter().next();
                first.expect("no list is empty").get(index, room.start())
            }
            _ => self.first(room).get(index),
        }
    }

    /// The only object of a key, or nothing if it has several.
    #[inline]
    pub fn only<'b>(&self, room: &'b mut UnpackBuffer) -> Option<Object<'b, H>>
    where
        'g: 'b,
    {
        match form(self.record) {
            Form::List => {
                let mut objects = list(self.record).iter();
                let first = objects.next();
                let only = objects.next().is_none().then_some(first).flatten();
                only.map(|stored| room.object(stored))
            }
            Form::Large if Large::of(self.record).len() > 1 => None,
            _ => Some(self.first(room)),
        }
    }

    /// Visits the objects, oldest first, until `visit` breaks.
    pub fn each(
        &self,
        room: &mut UnpackBuffer,
        mut visit: impl FnMut(Object<'_, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match form(self.record) {
            Form::List => list(self.record)
                .iter()
                .try_for_each(|stored| visit(room.object(stored))),
            Form::Large => self.each_from(0, room, |_, object| visit(object)),
            _ => visit(self.first(room)),
        }
    }

    /// Whether the objects have positions: if they are many.
    pub fn is_large(&self) -> bool {
        form(self.record) == Form::Large
    }

    /// Visits the objects from this position on, with their positions, until `visit` breaks. None if the
    /// objects have no positions.
    ///
    /// Positions ascend with the age of objects. As long as the key stays in the table, the objects keep
    /// their positions, and have them once they have got them; so a walk can go on where it was.
    /// O(log positions), and O(1) for each object.
    pub fn each_from(
        &self,
        position: u64,
        room: &mut UnpackBuffer,
        mut visit: impl FnMut(u64, Object<'_, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.is_large() {
            return ControlFlow::Continue(());
        }
        let mut objects = Large::of(self.record).iter_from(position);
        objects.try_for_each(|(position, stored)| visit(position, room.object(stored)))
    }

    /// The objects of a key that has very many, to be read when the guard is gone, so that a long call does not
    /// keep memory from being freed. None if they are few, or if the key has been written since it was found.
    /// O(1).
    pub fn keep(&self) -> Option<KeptObjects<H>> {
        self.is_large()
            .then(|| Large::of(self.record).share().map(KeptObjects))
            .flatten()
    }

    /// Number of objects. O(1).
    pub fn count(&self) -> usize {
        match form(self.record) {
            // Not more than a few dozen.
            Form::List => list(self.record).iter().count(),
            Form::Large => Large::of(self.record).len(),
            _ => 1,
        }
    }
}

/// The objects that a key with very many of them had when it was [found](Found::keep).
///
/// Frees what no table has any more when it is dropped: O(objects) if the key has been removed meanwhile.
pub struct KeptObjects<H: Host>(Sequence<Values<H>>);

impl<H: Host> KeptObjects<H> {
    /// Visits the objects, oldest first, until `visit` breaks.
    pub fn each(
        &self,
        room: &mut UnpackBuffer,
        mut visit: impl FnMut(Object<'_, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        bag::objects_from(&self.0, 0).try_for_each(|(_, stored)| visit(room.object(stored)))
    }
}

impl Found<'_, TermHost> {
    /// The objects as owned terms, oldest first. O(size of the objects).
    pub fn to_terms(&self) -> Vec<Term> {
        let (mut builder, mut scratch) = (TermBuilder::new(), Scratch::new());
        let mut terms = Vec::new();
        let _all = self.each(&mut UnpackBuffer::new(), |object| {
            let built = decode_object(object, &mut builder, &mut scratch);
            let term = builder.finish(built);
            terms.push(term.expect("what was a term can be built again"));
            ControlFlow::Continue(())
        });
        terms
    }
}

impl<H: Host> Clone for Found<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for Found<'_, H> {}

/// A record of what was just built.
pub(crate) fn record<H: Host>(key: &[u8], built: Built<'_, H>) -> RecordBox<Values<H>> {
    RecordBox::new(key, built.words(), built.owns())
}

/// What the value of a record is. Values are built by this crate for host `H`, in the form that their first
/// word tells, and what a borrowed record owns is not released.
#[inline]
pub(crate) fn form<H: Host>(record: &Rec<H>) -> Form {
    let (words, len) = record.value_words();
    debug_assert!(len > 0);
    // SAFETY: a value has at least one word, and the first one never changes.
    Form::of(unsafe { *words })
}

/// The objects of a record that is a list.
pub(crate) fn list<H: Host>(record: &Rec<H>) -> ObjectList<'_, H> {
    debug_assert_eq!(form(record), Form::List);
    // SAFETY: as `form` says.
    unsafe { ObjectList::from_words(record.value()) }
}

#[cold]
fn counted_object<'b, H: Host>(record: &'b Rec<H>, room: &'b mut UnpackBuffer) -> Object<'b, H> {
    let counter = Counter::of(record).expect("the form of the record says so");
    let words = room.start();
    counted::copy_image(record, counter, words);
    // SAFETY: a copy of what was built, with another small integer in the place of one. The record, which
    // is borrowed as long as the copy, keeps what it refers to.
    unsafe { Object::from_words(words) }
}
