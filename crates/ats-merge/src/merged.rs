//! The result of a merge, as a term.

use ats_term::image::{Host, HostKind, HostTag, HostTerm, ImageRef, NIL, View, small_word};
use ats_term::term_ref::{FunIdent, Ident, Opaque};
use ats_term::{Integer, Kind, TermRef};
use std::fmt;

/// The result of merging two values. It borrows their parts.
pub enum Merged<'m, H> {
    /// The earlier value, as it is.
    Earlier(ImageRef<'m, H>),
    /// The later value, as it is.
    Later(ImageRef<'m, H>),
    /// A new integer.
    Integer(Integer),
    /// A new, finite float.
    Float(f64),
    /// A new binary.
    Bytes(Vec<u8>),
    /// A new proper list.
    List(Vec<ImageRef<'m, H>>),
    /// A new map; the keys are distinct.
    Map(Vec<(ImageRef<'m, H>, ImageRef<'m, H>)>),
    /// A new tuple. New tuples are in each other only as deep as vectors are, and statistics in
    /// them.
    Tuple(Vec<Merged<'m, H>>),
}

impl<H: Host> Merged<'_, H> {
    /// Returns the result as a term.
    pub fn term(&self) -> MergedTerm<'_, H> {
        match self {
            Merged::Earlier(term) | Merged::Later(term) => MergedTerm(Where::Image(*term)),
            Merged::List(elements) => MergedTerm(Where::List(elements)),
            made => MergedTerm(Where::Made(made)),
        }
    }
}

impl<H: Host> fmt::Debug for Merged<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Merged::Earlier(_) => "Earlier",
            Merged::Later(_) => "Later",
            Merged::Integer(_) => "Integer",
            Merged::Float(_) => "Float",
            Merged::Bytes(_) => "Bytes",
            Merged::List(_) => "List",
            Merged::Map(_) => "Map",
            Merged::Tuple(_) => "Tuple",
        })
    }
}

/// A [`Merged`], or a part of it, as a term of which keys and images can be made.
pub struct MergedTerm<'r, H>(Where<'r, H>);

/// The source of the term.
enum Where<'r, H> {
    Image(ImageRef<'r, H>),
    /// The rest of a list.
    List(&'r [ImageRef<'r, H>]),
    /// Anything else that is new.
    Made(&'r Merged<'r, H>),
}

// Written out because a derive would ask for `H: Clone`.
impl<H> Clone for MergedTerm<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for MergedTerm<'_, H> {}

impl<H> Clone for Where<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Where<'_, H> {}

impl<'r, H: Host> MergedTerm<'r, H> {
    fn of_image(term: ImageRef<'r, H>) -> Self {
        MergedTerm(Where::Image(term))
    }

    fn image(self) -> ImageRef<'r, H> {
        match self.0 {
            Where::Image(term) => term,
            _ => panic!("merge: not a term of an image"),
        }
    }

    /// Appends the words of the host's box that this is, if it is one.
    fn copy_box(self, out: &mut Vec<u64>) -> Option<HostTag> {
        match self.0 {
            Where::Image(term) => term.copy_host_box(out),
            _ => None,
        }
    }
}

impl<H: Host> TermRef for MergedTerm<'_, H> {
    fn kind(self) -> Kind<Self> {
        let made = match self.0 {
            Where::Image(term) => return term.kind().map(Self::of_image),
            Where::List([]) => return Kind::Nil,
            Where::List([head, tail @ ..]) => {
                let head = MergedTerm(Where::Image(*head));
                return Kind::Cons(head, MergedTerm(Where::List(tail)));
            }
            Where::Made(made) => made,
        };
        match made {
            Merged::Integer(value) => value.as_small().map_or(Kind::Big, Kind::Int),
            Merged::Float(value) => Kind::Float(*value),
            Merged::Bytes(bytes) => Kind::Bits(8 * bytes.len()),
            Merged::Map(pairs) => Kind::Map(pairs.len()),
            Merged::Tuple(elements) => Kind::Tuple(elements.len()),
            Merged::Earlier(term) | Merged::Later(term) => term.kind().map(Self::of_image),
            Merged::List(_) => unreachable!("merge: a list is seen as its elements"),
        }
    }

    fn immediate(self) -> Option<u64> {
        match self.0 {
            Where::Image(term) => term.immediate(),
            Where::List([]) => Some(NIL),
            Where::Made(Merged::Integer(value)) => value.as_small().and_then(small_word),
            _ => None,
        }
    }

    fn with_big<R>(self, f: impl FnOnce(bool, &[u8]) -> R) -> R {
        match self.0 {
            Where::Made(Merged::Integer(value)) => value.with_parts(|parts| match parts {
                Err((negative, magnitude)) => f(negative, magnitude),
                Ok(value) => f(value < 0, &value.unsigned_abs().to_le_bytes()),
            }),
            _ => self.image().with_big(f),
        }
    }

    fn with_atom<R>(self, f: impl FnOnce(&str) -> R) -> R {
        self.image().with_atom(f)
    }

    fn element(self, i: usize) -> Self {
        match self.0 {
            Where::Made(Merged::Tuple(elements)) => elements[i].term(),
            _ => MergedTerm(Where::Image(self.image().element(i))),
        }
    }

    fn map_pairs(self, out: &mut Vec<(Self, Self)>) {
        let wrap = |term| MergedTerm(Where::Image(term));
        let wrap_both = |(key, value)| (wrap(key), wrap(value));
        match self.0 {
            Where::Made(Merged::Map(pairs)) => out.extend(pairs.iter().copied().map(wrap_both)),
            _ => match self.image().view() {
                View::Map { keys, values } => out.extend(keys.iter().zip(values).map(wrap_both)),
                _ => panic!("merge: the pairs of something that is no map"),
            },
        }
    }

    fn with_bits<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self.0 {
            Where::Made(Merged::Bytes(bytes)) => f(bytes),
            _ => self.image().with_bits(f),
        }
    }

    fn with_ident<R>(self, f: impl FnOnce(Ident<'_>) -> R) -> R {
        self.image().with_ident(f)
    }

    fn with_fun<R>(self, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        self.image().with_fun(f)
    }

    fn with_opaque<R>(self, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        self.image().with_opaque(f)
    }
}

// SAFETY: host boxes are written as they stand in an image of the same host, with the tag that they
// have there, and if they own something, with a unit of ownership more. Words of immediates come
// from images of that host, or are those of small integers and of the empty list, which are the
// same for all.
unsafe impl<H: Host> HostTerm for MergedTerm<'_, H> {
    type Host = H;

    fn write_identity(self, _: HostKind, out: &mut Vec<u64>) -> HostTag {
        self.copy_box(out)
            .expect("merge: an identity without a box")
    }

    fn write_large_bits(self, _: usize, out: &mut Vec<u64>) -> Option<HostTag> {
        self.copy_box(out)
    }
}
