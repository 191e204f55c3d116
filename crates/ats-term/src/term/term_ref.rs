//! Owned terms as [`TermRef`].

use super::node::{ExternalFun, LocalFun, NativeRecord, Term};
use crate::immediate::{NIL, atom_word, small_word};
use crate::term_ref::{FunIdent, Ident, Kind, Opaque, TermRef};

impl LocalFun {
    /// Returns the identity in the form of [`TermRef`](crate::TermRef).
    #[must_use]
    pub fn as_ident(&self) -> FunIdent<'_> {
        FunIdent::Local {
            module: self.module().as_str(),
            arity: u32::from(self.arity()),
            index: self.index(),
            uniq: *self.uniq(),
            old_index: self.old_index(),
            old_uniq: self.old_uniq(),
            creator: self.creator().as_ident(),
            free: self.free(),
        }
    }
}

impl ExternalFun {
    /// Returns the identity in the form of [`TermRef`](crate::TermRef).
    #[must_use]
    pub fn as_ident(&self) -> FunIdent<'_> {
        FunIdent::External {
            module: self.module.as_str(),
            function: self.function.as_str(),
            arity: u32::from(self.arity),
        }
    }
}

impl NativeRecord {
    /// Returns the record in the form of [`TermRef`](crate::TermRef).
    #[must_use]
    pub fn as_opaque(&self) -> Opaque<'_> {
        Opaque::Record {
            module: self.module().as_str(),
            name: self.name().as_str(),
            exported: self.is_exported(),
            fields: self.fields(),
            values: self.values(),
        }
    }
}

/// Node names and atoms are lent as text; identifiers are local if their constructor said so.
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
            Term::NativeRecord(_) => Kind::Opaque,
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

    fn with_opaque<R>(self, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        match self {
            Term::NativeRecord(record) => f(record.as_opaque()),
            other => panic!("not opaque: {other:?}"),
        }
    }

    fn captured_value(self, i: usize) -> Option<Self> {
        match self {
            Term::LocalFun(fun) => fun.free().get(i),
            Term::NativeRecord(record) => record.values().get(i),
            _ => None,
        }
    }
}
