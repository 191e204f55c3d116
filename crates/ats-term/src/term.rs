//! Owned Erlang terms of every type.
//!
//! A [`Term`] is a value: cloning takes constant time because compound terms share their parts, and
//! parts never change. The types inside [`Term`] keep what Erlang promises: a [`Float`] is finite, a
//! [`BigInt`] does not fit 64 bits, the keys of a [`Map`] are distinct.
//!
//! ```
//! use ats_term::{Atom, Term};
//!
//! let visits = Term::from((Atom::new("visits")?, "ada@example.org", 42));
//! assert_eq!(visits.to_string(), r#"{visits,<<"ada@example.org">>,42}"#);
//! assert_eq!(visits.as_tuple().unwrap()[2], Term::from(42));
//! # Ok::<(), ats_term::atom::AtomError>(())
//! ```
//!
//! There are two orders. `Term` does not implement `Ord`, so that one is not mistaken for the other:
//! [`Term::compare`] is Erlang's standard order (`<`, `==`), in which `1` equals `1.0`;
//! [`Term::compare_exact`] is the order of map keys, in which they differ. `==` between two `Term`s
//! in Rust is Erlang's `=:=`, as OTP 27 has it: `0.0` and `-0.0` differ.

mod builder;
mod compare;
mod convert;
mod display;
mod number;
mod parts;
mod terms;

pub use builder::{BuildError, Built, TermBuilder};
pub use number::{BigInt, Float, NotFinite};
pub use parts::{
    Bits, DuplicateKey, Elements, ExternalFun, Identifier, List, LocalFun, Map, Tuple,
};

use crate::atom::Atom;
use crate::walk::{FunIdent, Ident, Kind, TermRef};
use crate::word::{NIL, atom_word, small_word};
use terms::Terms;

/// An Erlang term of any type. `{}` and `{:?}` both show it in Erlang syntax.
#[derive(Clone)]
pub enum Term {
    /// An integer that fits 64 bits.
    Int(i64),
    /// An integer that does not fit 64 bits.
    Big(BigInt),
    /// A float.
    Float(Float),
    /// An atom.
    Atom(Atom),
    /// The empty list.
    Nil,
    /// A list of at least one element, proper or improper.
    List(List),
    /// A tuple.
    Tuple(Tuple),
    /// A map.
    Map(Map),
    /// A binary or bitstring.
    Bits(Bits),
    /// A process identifier.
    Pid(Identifier),
    /// A port identifier.
    Port(Identifier),
    /// A reference.
    Ref(Identifier),
    /// A closure.
    LocalFun(LocalFun),
    /// `fun M:F/A`.
    ExternalFun(ExternalFun),
}

impl Term {
    /// An integer of any size from its sign (`true` = negative) and magnitude, little endian; zero
    /// bytes at the end are ignored.
    #[must_use]
    pub fn integer(negative: bool, magnitude: &[u8]) -> Term {
        number::integer(negative, magnitude)
    }

    /// A list with the given elements and tail; just the tail if there are no elements.
    #[must_use]
    pub fn list_with_tail<I>(elements: I, tail: Term) -> Term
    where
        I: IntoIterator<Item = Term>,
        I::IntoIter: DoubleEndedIterator,
    {
        let cons = |tail, head| Term::List(List::new(head, tail));
        elements.into_iter().rev().fold(tail, cons)
    }

    /// A binary with these bytes.
    #[must_use]
    pub fn binary(bytes: &[u8]) -> Term {
        Term::Bits(Bits::from_bytes(bytes))
    }

    /// The terms directly inside a compound term, if it is one.
    fn children(&self) -> Option<&Terms> {
        match self {
            Term::List(list) => Some(list.cell()),
            Term::Tuple(tuple) => Some(tuple.terms()),
            Term::Map(map) => Some(map.terms()),
            Term::LocalFun(fun) => Some(fun.free_terms()),
            _ => None,
        }
    }
}

/// Node names and atoms are lent as text; identifiers are local only if they were made so.
impl TermRef for &Term {
    fn kind(self) -> Kind<Self> {
        match self {
            Term::Int(i) => Kind::Int(*i),
            Term::Big(_) => Kind::Big,
            Term::Float(float) => Kind::Float(float.get()),
            Term::Atom(_) => Kind::Atom,
            Term::Nil => Kind::Nil,
            Term::List(list) => Kind::Cons(list.head(), list.tail()),
            Term::Tuple(tuple) => Kind::Tuple(tuple.len()),
            Term::Map(map) => Kind::Map(map.len()),
            Term::Bits(bits) => Kind::Bits(bits.bit_len()),
            Term::Pid(_) => Kind::Pid,
            Term::Port(_) => Kind::Port,
            Term::Ref(_) => Kind::Ref,
            Term::LocalFun(_) => Kind::LocalFun,
            Term::ExternalFun(_) => Kind::ExternalFun,
        }
    }

    fn immediate(self) -> Option<u64> {
        match self {
            Term::Int(i) => small_word(*i),
            Term::Atom(atom) => Some(atom_word(atom.id())),
            Term::Nil => Some(NIL),
            _ => None,
        }
    }

    fn with_big<R>(self, f: impl FnOnce(bool, &[u8]) -> R) -> R {
        match self {
            Term::Big(big) => f(big.is_negative(), big.magnitude()),
            other => panic!("not a big integer: {other:?}"),
        }
    }

    fn with_atom<R>(self, f: impl FnOnce(&str) -> R) -> R {
        match self {
            Term::Atom(atom) => f(atom.as_str()),
            other => panic!("not an atom: {other:?}"),
        }
    }

    fn element(self, i: usize) -> Self {
        match self {
            Term::Tuple(tuple) => &tuple[i],
            other => panic!("not a tuple: {other:?}"),
        }
    }

    fn map_pairs(self, out: &mut Vec<(Self, Self)>) {
        match self {
            Term::Map(map) => out.extend(map.iter()),
            other => panic!("not a map: {other:?}"),
        }
    }

    fn with_bits<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Term::Bits(bits) => f(bits.bytes()),
            other => panic!("not a bitstring: {other:?}"),
        }
    }

    fn with_ident<R>(self, f: impl FnOnce(Ident<'_>) -> R) -> R {
        match self {
            Term::Pid(ident) | Term::Port(ident) | Term::Ref(ident) => f(ident.as_ident()),
            other => panic!("not an identifier: {other:?}"),
        }
    }

    fn with_fun<R>(self, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        match self {
            Term::LocalFun(fun) => f(fun.as_ident()),
            Term::ExternalFun(fun) => f(fun.as_ident()),
            other => panic!("not a fun: {other:?}"),
        }
    }

    fn captured(self, i: usize) -> Option<Self> {
        match self {
            Term::LocalFun(fun) => fun.free().get(i),
            _ => None,
        }
    }
}
