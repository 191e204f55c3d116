//! The result of a lookup.

use crate::bag::{self, Large};
use crate::counter_cell::{self, Counter};
use crate::unpack::UnpackBuffer;
use crate::value::{Rec, Values, form, list};
use ats_mem::sequence::Sequence;
use ats_store::Direction;
use ats_term::Term;
use ats_term::image::{
    Form, Host, ImageRef, Object, Packed, Scratch, Stored, TermHost, decode_object,
};
use ats_term::term::TermBuilder;
use std::ops::ControlFlow;

/// A key that was found, with its objects. Lives as long as the guard it was found under, also
/// when it is replaced or removed meanwhile.
///
/// An object with a counter is read as of the moment of the call that reads it.
///
/// ```
/// # use ats::{Table, TableType, TermHost, UnpackBuffer, Workspace};
/// # use ats_term::Term;
/// # let table = Table::<TermHost>::new(TableType::Bag, 1);
/// # let mut work = Workspace::new();
/// for price in [40, 45] {
///     table.insert(&Term::from(("pear", price)), &mut work)?;
/// }
/// let guard = ats::pin();
/// let found = table.lookup(&Term::from("pear"), &mut work, &guard)?.expect("it is there");
/// table.delete(&Term::from("pear"), &mut work)?;
/// // The guard keeps the objects.
/// assert_eq!(found.count(), 2);
/// assert_eq!(found.to_terms()[0], Term::from(("pear", 40)));
/// // Without a copy, where they are.
/// assert_eq!(found.first(&mut UnpackBuffer::new()).arity(), 2);
/// # Ok::<(), ats::Error>(())
/// ```
pub struct LookupResult<'g, H: Host> {
    record: &'g Rec<H>,
}

impl<'g, H: Host> LookupResult<'g, H> {
    #[inline]
    pub(crate) fn new(record: &'g Rec<H>) -> Self {
        LookupResult { record }
    }

    /// The record of the key.
    pub(crate) fn record(&self) -> &'g Rec<H> {
        self.record
    }

    /// Returns `true` if the other one is of the same version of the key.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.record, other.record)
    }

    /// The key's bytes: an order key in a table with order, else an exact key.
    pub fn key_bytes(&self) -> &'g [u8] {
        self.record.key()
    }

    /// The number of words that the objects take where they are stored, but for large bags. O(1).
    pub fn len_words(&self) -> usize {
        self.record.value_words().1
    }

    /// The first object; each key has at least one.
    #[inline]
    pub fn first<'b>(&self, unpacked: &'b mut UnpackBuffer) -> Object<'b, H>
    where
        'g: 'b,
    {
        match form(self.record) {
            // SAFETY: the form says that the value is the words of an object that was built for
            // host `H` (VALUE-1).
            Form::Object => unsafe { Object::from_words(self.record.value()) },
            Form::Packed => {
                // SAFETY: the form says that the value is the words of a packed object that was
                // built for host `H` (VALUE-1).
                let packed = unsafe { Packed::from_words(self.record.value()) };
                packed.unpack(unpacked.start())
            }
            Form::List => {
                let first = list(self.record).iter().next();
                unpacked.object(first.expect("no list is empty"))
            }
            Form::Counted(_) => object_with_counter(self.record, unpacked),
            Form::Large => {
                let first = Large::of(self.record).iter_from(0).next();
                unpacked.object(first.expect("no large bag is empty").1)
            }
        }
    }

    /// Element `index` of the first object, counted from 0, or `None` if it has not so many. Reads
    /// no more of the object than it must.
    #[inline]
    pub fn element<'b>(
        &self,
        index: usize,
        unpacked: &'b mut UnpackBuffer,
    ) -> Option<ImageRef<'b, H>>
    where
        'g: 'b,
    {
        match form(self.record) {
            Form::Packed => {
                // SAFETY: the form says that the value is the words of a packed object that was
                // built for host `H` (VALUE-1).
                let stored = unsafe { Stored::from_words(self.record.value()) };
                stored.get(index, unpacked.start())
            }
            Form::List => {
                let first = list(self.record).iter().next();
                first
                    .expect("no list is empty")
                    .get(index, unpacked.start())
            }
            _ => self.first(unpacked).get(index),
        }
    }

    /// The object with so many others before it, from the oldest one up or from the newest one
    /// down; the last one if they are not so many. O(number / 32) where they are many.
    pub fn nth<'b>(
        &self,
        number: usize,
        direction: Direction,
        unpacked: &'b mut UnpackBuffer,
    ) -> Object<'b, H>
    where
        'g: 'b,
    {
        let number = number.min(self.count() - 1);
        let found = match form(self.record) {
            Form::List => {
                let number = match direction {
                    Direction::Up => number,
                    Direction::Down => self.count() - 1 - number,
                };
                list(self.record).iter().nth(number)
            }
            Form::Large => Large::of(self.record).nth(number, direction),
            _ => return self.first(unpacked),
        };
        unpacked.object(found.expect("there are more objects"))
    }

    /// The only object of a key, or nothing if it has several.
    #[inline]
    pub fn only<'b>(&self, unpacked: &'b mut UnpackBuffer) -> Option<Object<'b, H>>
    where
        'g: 'b,
    {
        match form(self.record) {
            Form::List => {
                let mut objects = list(self.record).iter();
                let first = objects.next();
                let only = objects.next().is_none().then_some(first).flatten();
                only.map(|stored| unpacked.object(stored))
            }
            Form::Large if Large::of(self.record).len() > 1 => None,
            _ => Some(self.first(unpacked)),
        }
    }

    /// Visits the objects, oldest first, until `visit` breaks.
    pub fn each(
        &self,
        unpacked: &mut UnpackBuffer,
        mut visit: impl FnMut(Object<'_, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match form(self.record) {
            Form::List => list(self.record)
                .iter()
                .try_for_each(|stored| visit(unpacked.object(stored))),
            Form::Large => self.each_from(0, unpacked, |_, object| visit(object)),
            _ => visit(self.first(unpacked)),
        }
    }

    /// Visits the objects, newest first, until `visit` breaks.
    pub fn each_back(
        &self,
        unpacked: &mut UnpackBuffer,
        mut visit: impl FnMut(Object<'_, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match form(self.record) {
            Form::List => {
                let objects: Vec<_> = list(self.record).iter().collect();
                let mut back = objects.into_iter().rev();
                back.try_for_each(|stored| visit(unpacked.object(stored)))
            }
            Form::Large => self.each_before(u64::MAX, unpacked, |_, object| visit(object)),
            _ => visit(self.first(unpacked)),
        }
    }

    /// Returns `true` if the objects have positions: if they are many.
    pub fn is_large(&self) -> bool {
        form(self.record) == Form::Large
    }

    /// Visits the objects from this position on, with their positions, until `visit` breaks. None
    /// if the objects have no positions.
    ///
    /// Positions ascend with the age of objects. As long as the key stays in the table, the objects
    /// keep their positions, and have them once they have got them; so a walk can go on where it
    /// was. O(log positions), and O(1) for each object.
    pub fn each_from(
        &self,
        position: u64,
        unpacked: &mut UnpackBuffer,
        mut visit: impl FnMut(u64, Object<'_, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.is_large() {
            return ControlFlow::Continue(());
        }
        let mut objects = Large::of(self.record).iter_from(position);
        objects.try_for_each(|(position, stored)| visit(position, unpacked.object(stored)))
    }

    /// Visits the objects before this position, newest first, as
    /// [`each_from`](LookupResult::each_from) those from it on.
    pub fn each_before(
        &self,
        position: u64,
        unpacked: &mut UnpackBuffer,
        mut visit: impl FnMut(u64, Object<'_, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.is_large() {
            return ControlFlow::Continue(());
        }
        let mut objects = Large::of(self.record).iter_before(position);
        objects.try_for_each(|(position, stored)| visit(position, unpacked.object(stored)))
    }

    /// The objects of a key that has very many, to be read when the guard is gone, so that a long
    /// call does not keep memory from being freed. None if they are few, or if the key has been
    /// written since it was found. O(1).
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

/// The objects that a key with very many of them had when it was [found](LookupResult::keep).
///
/// Frees what no table has any more when it is dropped: O(objects) if the key has been removed
/// meanwhile.
pub struct KeptObjects<H: Host>(Sequence<Values<H>>);

impl<H: Host> KeptObjects<H> {
    /// Visits the objects, oldest first, until `visit` breaks.
    pub fn each(
        &self,
        unpacked: &mut UnpackBuffer,
        mut visit: impl FnMut(Object<'_, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        bag::objects_from(&self.0, 0).try_for_each(|(_, stored)| visit(unpacked.object(stored)))
    }
}

impl LookupResult<'_, TermHost> {
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

impl<H: Host> Clone for LookupResult<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for LookupResult<'_, H> {}

#[cold]
fn object_with_counter<'b, H: Host>(
    record: &'b Rec<H>,
    unpacked: &'b mut UnpackBuffer,
) -> Object<'b, H> {
    let counter = Counter::of(record).expect("the form of the record says so");
    let words = unpacked.start();
    counter_cell::copy_image(record, counter, words);
    // SAFETY: the words are a copy of what was built, with another small integer in the place of
    // one. The record, which is borrowed as long as the copy, keeps what it refers to.
    unsafe { Object::from_words(words) }
}
