//! What the value words of a record mean: one object, or the objects of a key.

use ats_mem::{Record, Release};
use ats_term::Term;
use ats_term::image::{
    Host, Object, ObjectList, Objects, Scratch, TermHost, decode_object, release_all,
};
use ats_term::term::TermBuilder;
use std::marker::PhantomData;

/// Values that are objects of host `H`, with the resources these own.
pub(crate) struct Values<H>(PhantomData<fn() -> H>);

impl<H: Host> Release for Values<H> {
    unsafe fn release(value: &[u64]) {
        // SAFETY: the value of an owning record was built by this crate for this host, and our
        // caller promises that this is its end.
        unsafe { release_all::<H>(value) };
    }
}

/// A record as this crate stores it.
pub(crate) type Rec<H> = Record<Values<H>>;

/// The objects of one key.
pub enum ObjectsOf<'a, H: Host> {
    /// The one object of a `set` or `ordered_set`.
    One(Option<Object<'a, H>>),
    /// The objects of a `bag` or `duplicate_bag`, oldest first.
    Many(Objects<'a, H>),
}

impl<'a, H: Host> Iterator for ObjectsOf<'a, H> {
    type Item = Object<'a, H>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            ObjectsOf::One(object) => object.take(),
            ObjectsOf::Many(objects) => objects.next(),
        }
    }
}

/// A key that was found, with its objects. Lives as long as the guard it was found under, also
/// when it is replaced or removed meanwhile.
pub struct Found<'g, H: Host> {
    record: &'g Rec<H>,
    many: bool,
}

impl<'g, H: Host> Found<'g, H> {
    pub(crate) fn new(record: &'g Rec<H>, many: bool) -> Self {
        Found { record, many }
    }

    /// The key's bytes: an order key in an `ordered_set`, else an exact key.
    pub fn key_bytes(&self) -> &'g [u8] {
        self.record.key()
    }

    /// The objects, oldest first.
    #[inline]
    pub fn objects(&self) -> ObjectsOf<'g, H> {
        objects(self.record, self.many)
    }

    /// The first object; each key has at least one.
    #[inline]
    pub fn first(&self) -> Object<'g, H> {
        let first = self.objects().next();
        first.expect("a record holds at least one object")
    }

    /// Number of objects. O(1) for sets, O(objects) for bags.
    pub fn count(&self) -> usize {
        self.objects().count()
    }
}

impl Found<'_, TermHost> {
    /// The objects as owned terms, oldest first. O(size of the objects).
    pub fn to_terms(&self) -> Vec<Term> {
        let (mut builder, mut scratch) = (TermBuilder::new(), Scratch::new());
        self.objects()
            .map(|object| {
                let built = decode_object(object, &mut builder, &mut scratch);
                let term = builder.finish(built);
                term.expect("what was a term can be built again")
            })
            .collect()
    }
}

impl<H: Host> Clone for Found<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for Found<'_, H> {}

/// The objects of a record; `many` says whether its table is a bag.
#[inline]
pub(crate) fn objects<H: Host>(record: &Rec<H>, many: bool) -> ObjectsOf<'_, H> {
    // SAFETY: values are built by this crate for host `H`, as a list exactly if the table is a bag,
    // and a borrowed record has not released what it owns.
    unsafe {
        match many {
            true => ObjectsOf::Many(ObjectList::from_words(record.value()).iter()),
            false => ObjectsOf::One(Some(Object::from_words(record.value()))),
        }
    }
}
