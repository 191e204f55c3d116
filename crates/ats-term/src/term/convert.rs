//! Conversions between terms and Rust types.

use super::{Bits, Elements, Float, List, Map, NotFinite, Term, Tuple, number};
use crate::atom::{Atom, AtomError};

macro_rules! from_small_integers {
    ($($int:ty),*) => {$(
        impl From<$int> for Term {
            fn from(value: $int) -> Term {
                Term::Int(i64::from(value))
            }
        }
    )*};
}

macro_rules! from_unsigned_integers {
    ($($int:ty),*) => {$(
        impl From<$int> for Term {
            fn from(value: $int) -> Term {
                Term::integer(false, &value.to_le_bytes())
            }
        }
    )*};
}

from_small_integers!(i8, i16, i32, i64, u8, u16, u32);
from_unsigned_integers!(u64, usize, u128);

impl From<i128> for Term {
    fn from(value: i128) -> Term {
        Term::integer(value < 0, &value.unsigned_abs().to_le_bytes())
    }
}

impl TryFrom<f64> for Term {
    type Error = NotFinite;

    fn try_from(value: f64) -> Result<Term, NotFinite> {
        Float::new(value).map(Term::Float)
    }
}

/// A binary with the UTF-8 bytes of the text.
impl From<&str> for Term {
    fn from(text: &str) -> Term {
        Term::binary(text.as_bytes())
    }
}

/// A binary with the UTF-8 bytes of the text.
impl From<String> for Term {
    fn from(text: String) -> Term {
        Term::binary(text.as_bytes())
    }
}

/// A binary with these bytes.
impl From<&[u8]> for Term {
    fn from(bytes: &[u8]) -> Term {
        Term::binary(bytes)
    }
}

/// A proper list.
impl From<Vec<Term>> for Term {
    fn from(elements: Vec<Term>) -> Term {
        Term::list_with_tail(elements, Term::Nil)
    }
}

macro_rules! from_parts {
    ($($part:ty => $variant:ident),*) => {$(
        impl From<$part> for Term {
            fn from(part: $part) -> Term {
                Term::$variant(part)
            }
        }
    )*};
}

from_parts!(Float => Float, Atom => Atom, List => List, Tuple => Tuple, Map => Map, Bits => Bits);

macro_rules! from_tuples {
    ($($name:ident)+) => {
        /// A tuple with the elements of this one.
        impl<$($name: Into<Term>),+> From<($($name,)+)> for Term {
            #[allow(non_snake_case, reason = "the names of the types serve for the values")]
            fn from(($($name,)+): ($($name,)+)) -> Term {
                Term::Tuple(Tuple::from([$($name.into()),+]))
            }
        }
    };
}

from_tuples!(A);
from_tuples!(A B);
from_tuples!(A B C);
from_tuples!(A B C D);
from_tuples!(A B C D E);
from_tuples!(A B C D E F);
from_tuples!(A B C D E F G);
from_tuples!(A B C D E F G H);

impl Term {
    /// Creates an integer of any size from sign (`true` = negative) and magnitude, little endian;
    /// zero bytes at the end are ignored.
    #[must_use]
    pub fn integer(negative: bool, magnitude: &[u8]) -> Term {
        number::integer(negative, magnitude).map_or_else(Term::Big, Term::Int)
    }

    /// Creates a list with the given elements and tail; just the tail if there are no elements.
    #[must_use]
    pub fn list_with_tail<I>(elements: I, tail: Term) -> Term
    where
        I: IntoIterator<Item = Term>,
        I::IntoIter: DoubleEndedIterator,
    {
        let cons = |tail, head| Term::List(List::new(head, tail));
        elements.into_iter().rev().fold(tail, cons)
    }

    /// Creates a binary with these bytes.
    #[must_use]
    pub fn binary(bytes: &[u8]) -> Term {
        Term::Bits(Bits::from_bytes(bytes))
    }

    /// Creates the atom with this text.
    ///
    /// # Errors
    /// Like [`Atom::new`].
    pub fn atom(text: &str) -> Result<Term, AtomError> {
        Atom::new(text).map(Term::Atom)
    }

    /// Returns the value of an integer that fits 64 bits.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Term::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// Returns the atom, if this is one.
    #[must_use]
    pub fn as_atom(&self) -> Option<Atom> {
        match self {
            Term::Atom(atom) => Some(*atom),
            _ => None,
        }
    }

    /// Returns the elements of a tuple.
    #[must_use]
    pub fn as_tuple(&self) -> Option<&[Term]> {
        match self {
            Term::Tuple(tuple) => Some(tuple),
            _ => None,
        }
    }

    /// Returns the bytes of a binary; `None` also for a bitstring that ends within a byte.
    #[must_use]
    pub fn as_binary(&self) -> Option<&[u8]> {
        match self {
            Term::Bits(bits) if bits.is_binary() => Some(bits.bytes()),
            _ => None,
        }
    }

    /// Returns the elements of a list, proper or improper; `None` for nil.
    #[must_use]
    pub fn as_list(&self) -> Option<Elements<'_>> {
        match self {
            Term::Nil => Some(Elements::empty()),
            Term::List(list) => Some(list.elements()),
            _ => None,
        }
    }
}
