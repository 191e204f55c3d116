//! The result of a lookup.

use crate::terms::bag::{self, Large};
use crate::terms::cells;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, Values, content, form, list, plain_image};
use ats_mem::sequence::Sequence;
use ats_store::Direction;
use ats_term::Term;
use ats_term::image::{
    Form, Host, ImageRef, Object, Packed, Scratch, Span, Stored, TermHost, decode_object,
};
use ats_term::term::TermBuilder;
use std::ops::ControlFlow;

/// A found key, with its objects. The objects stay readable as long as the guard under which the
/// key was found lives, even if the key is replaced or removed meanwhile.
///
/// An object with an element that changes in place is read as of the moment of the call that reads
/// it.
///
/// ```
/// # use ats::terms::{Table, TableType, TermHost, UnpackBuffer, Workspace};
/// # use ats::terms::Term;
/// # let table = Table::<TermHost>::new(TableType::Bag, 1);
/// # let mut work = Workspace::new();
/// for price in [40, 45] {
///     table.insert(&Term::from(("pear", price)), &mut work)?;
/// }
/// let guard = ats::terms::pin();
/// let found = table.lookup(&Term::from("pear"), &mut work, &guard)?.expect("it is there");
/// table.delete(&Term::from("pear"), &mut work)?;
/// // The guard keeps the objects.
/// assert_eq!(found.count(), 2);
/// assert_eq!(found.to_terms()[0], Term::from(("pear", 40)));
/// // Without a copy, where they are.
/// assert_eq!(found.first(&mut UnpackBuffer::new()).arity(), 2);
/// # Ok::<(), ats::terms::Error>(())
/// ```
pub struct LookupResult<'g, H: Host> {
    record: &'g Rec<H>,
}

impl<'g, H: Host> LookupResult<'g, H> {
    #[inline]
    pub(crate) fn new(record: &'g Rec<H>) -> Self {
        LookupResult { record }
    }

    /// Returns the record of the key.
    pub(crate) fn record(&self) -> &'g Rec<H> {
        self.record
    }

    /// Returns `true` if both are the same version of the key.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.record, other.record)
    }

    /// Returns the key's bytes: an order key in a table with order, else an exact key.
    pub fn key_bytes(&self) -> &'g [u8] {
        self.record.key()
    }

    /// Returns the number of words of the stored objects; the objects of a large bag do not count.
    /// O(1).
    pub fn len_words(&self) -> usize {
        self.record.value_words().1
    }

    /// Returns the first object; each key has at least one.
    #[inline]
    pub fn first<'b>(&self, unpacked: &'b mut UnpackBuffer) -> Object<'b, H>
    where
        'g: 'b,
    {
        if let Some(words) = plain_image(self.record) {
            // SAFETY: the words are those of an object that was built for host `H` (VALUE-1).
            return unsafe { Object::from_words(words) };
        }
        match form(self.record) {
            // SAFETY: the form says that the value is the words of an object that was built for
            // host `H` (VALUE-1).
            Form::Object => unsafe { Object::from_words(content(self.record)) },
            Form::Packed => {
                // SAFETY: the form says that the value is the words of a packed object that was
                // built for host `H` (VALUE-1).
                let packed = unsafe { Packed::from_words(content(self.record)) };
                packed.unpack(unpacked.start())
            }
            Form::List => {
                let first = list(self.record).iter().next();
                unpacked.object(first.expect("no list is empty"))
            }
            Form::WithCells(span) => object_with_cells(self.record, span, unpacked),
            Form::Large => {
                let first = Large::of(self.record).iter_from(0).next();
                unpacked.object(first.expect("no large bag is empty").1)
            }
        }
    }

    /// Returns element `index` of the first object, counted from 0, or `None` if the object is
    /// shorter. Reads no more of the object than necessary.
    #[inline]
    pub fn element<'b>(
        &self,
        index: usize,
        unpacked: &'b mut UnpackBuffer,
    ) -> Option<ImageRef<'b, H>>
    where
        'g: 'b,
    {
        if let Some(words) = plain_image(self.record) {
            // SAFETY: the words are those of an object that was built for host `H` (VALUE-1).
            return unsafe { Object::from_words(words) }.get(index);
        }
        match form(self.record) {
            Form::Packed => {
                // SAFETY: the form says that the value is the words of a packed object that was
                // built for host `H` (VALUE-1).
                let stored = unsafe { Stored::from_words(content(self.record)) };
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

    /// Returns the object with `number` objects before it, from the oldest upwards or from the
    /// newest downwards; the last object if there are fewer. O(number / 32) for a large bag.
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

    /// Returns the only object of a key, or `None` if it has several.
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

    /// Returns `true` if the objects have positions: if the key is a large bag.
    pub fn is_large(&self) -> bool {
        form(self.record) == Form::Large
    }

    /// Visits the objects from this position on, with their positions, until `visit` breaks. Visits
    /// no object if the objects have no positions.
    ///
    /// Older objects have lower positions. As long as the key stays in the table, an object keeps
    /// its position, and a key whose objects have positions keeps them; so a walk can continue at a
    /// position. O(log positions), and O(1) for each object.
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

    /// Visits the objects before this position, newest first, with their positions, until `visit`
    /// breaks. The positions are those of [`each_from`](LookupResult::each_from).
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

    /// Returns the objects of a large bag, to be read without the guard, so that a long call does
    /// not keep memory from being freed. Returns `None` if the objects are few, or if the key has
    /// been written since it was found. O(1).
    pub fn keep(&self) -> Option<KeptObjects<H>> {
        self.is_large()
            .then(|| Large::of(self.record).share().map(KeptObjects))
            .flatten()
    }

    /// Returns the number of objects. O(1).
    pub fn count(&self) -> usize {
        match form(self.record) {
            // A list has at most a few dozen objects.
            Form::List => list(self.record).iter().count(),
            Form::Large => Large::of(self.record).len(),
            _ => 1,
        }
    }
}

/// The objects that a large bag had when it was [found](LookupResult::keep).
///
/// Dropping this frees the objects that no table holds any more: O(objects) if the key has been
/// removed meanwhile.
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
    /// Returns the objects as owned terms, oldest first. O(size of the objects).
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

#[expect(
    clippy::expl_impl_clone_on_copy,
    reason = "a derived one asks for `H: Clone`"
)]
impl<H: Host> Clone for LookupResult<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H: Host> Copy for LookupResult<'_, H> {}

fn object_with_cells<'b, H: Host>(
    record: &'b Rec<H>,
    span: Span,
    unpacked: &'b mut UnpackBuffer,
) -> Object<'b, H> {
    let words = unpacked.start();
    cells::copy_image(record, span, words);
    // SAFETY: the words are a copy of an object's image, in which other immediate terms replace
    // some. The record, which is borrowed as long as the copy, keeps the resources of the image
    // alive.
    unsafe { Object::from_words(words) }
}
