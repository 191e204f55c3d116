//! Values of a run as terms, from which keys, images and results are made.

use crate::value::{Value, ValueArena};
use ats_term::Integer;
use ats_term::image::{Host, HostKind, HostTag, HostTerm, ImageRef, Immediate, View};
use ats_term::term_ref::{FunIdent, Ident, Kind, Opaque, TermRef};

impl<'a, H: Host> ValueArena<'a, H> {
    /// Returns a value together with the arena it refers to.
    #[inline]
    pub(crate) fn term(&self, value: Value<'a, H>) -> RunTerm<'_, H> {
        RunTerm { value, arena: self }
    }

    /// Returns the integer that a value is, if it is one.
    pub(crate) fn as_integer(&self, value: Value<'a, H>) -> Option<Integer> {
        Integer::from_term(self.term(value))
    }
}

/// A value of a run as a term.
///
/// Keys and images can be made from it.
pub struct RunTerm<'r, H> {
    pub(crate) value: Value<'r, H>,
    pub(crate) arena: &'r ValueArena<'r, H>,
}

impl<H> Clone for RunTerm<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for RunTerm<'_, H> {}

impl<H: Host> std::fmt::Debug for RunTerm<'_, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::show::show(*self))
    }
}

impl<'r, H: Host> RunTerm<'r, H> {
    fn with(self, value: Value<'r, H>) -> Self {
        RunTerm { value, ..self }
    }

    fn image(self) -> ImageRef<'r, H> {
        match self.value {
            Value::Image(term) => term,
            _ => panic!("match: not a term of an image"),
        }
    }
}

impl<H: Host> TermRef for RunTerm<'_, H> {
    fn kind(self) -> Kind<Self> {
        match self.value {
            Value::Word(word) => match Immediate::from_word(word) {
                Some(Immediate::Small(value)) => Kind::Int(value),
                Some(Immediate::Atom(_)) => Kind::Atom,
                Some(Immediate::Nil) => Kind::Nil,
                Some(Immediate::LocalPid) => Kind::Pid,
                Some(Immediate::LocalPort) => Kind::Port,
                None => panic!("match: not the word of an immediate: {word:#x}"),
            },
            Value::Wide(value) => Kind::Int(value),
            Value::Float(value) => Kind::Float(value),
            Value::Image(term) => term.kind().map(|part| self.with(Value::of(part))),
            Value::Big(_) => Kind::Big,
            Value::Tuple(parts) => Kind::Tuple(parts.len()),
            Value::List(parts) => {
                let (head, tail) = self.arena.head_and_tail(parts);
                Kind::Cons(self.with(head), self.with(tail))
            }
            Value::Map { keys } => Kind::Map(keys.len()),
            Value::Bytes(index) => Kind::Bits(8 * self.arena.slice_len(index)),
        }
    }

    fn immediate(self) -> Option<u64> {
        match self.value {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    fn with_big<R>(self, f: impl FnOnce(bool, &[u8]) -> R) -> R {
        match self.value {
            Value::Big(index) => self.arena.big(index).with_parts(|parts| match parts {
                Err((negative, magnitude)) => f(negative, magnitude),
                Ok(value) => f(value < 0, &value.unsigned_abs().to_le_bytes()),
            }),
            _ => self.image().with_big(f),
        }
    }

    fn with_atom<R>(self, f: impl FnOnce(&str) -> R) -> R {
        match self.value {
            Value::Word(word) => H::with_atom(word, f),
            _ => self.image().with_atom(f),
        }
    }

    fn element(self, i: usize) -> Self {
        match self.value {
            Value::Tuple(parts) => self.with(self.arena.elements(parts)[i]),
            _ => self.with(Value::of(self.image().element(i))),
        }
    }

    fn map_pairs(self, out: &mut Vec<(Self, Self)>) {
        let pair = |(key, value)| (self.with(key), self.with(value));
        if let Value::Map { keys } = self.value {
            let values = self.arena.map_values(keys).iter().copied();
            let keys = self.arena.elements(keys).iter().copied();
            return out.extend(keys.zip(values).map(pair));
        }
        match self.image().view() {
            View::Map { keys, values } => {
                let values = values.iter().map(Value::of);
                out.extend(keys.iter().map(Value::of).zip(values).map(pair));
            }
            _ => panic!("match: the pairs of something that is no map"),
        }
    }

    fn with_bits<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self.value {
            Value::Bytes(index) => self.arena.with_slice(index, f),
            _ => self.image().with_bits(f),
        }
    }

    fn with_ident<R>(self, f: impl FnOnce(Ident<'_>) -> R) -> R {
        match self.value {
            Value::Word(word) => H::with_local(word, f),
            _ => self.image().with_ident(f),
        }
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
// from images of that host, too, or from `Words` or an `Environment`, which promise that they are
// the host's.
unsafe impl<H: Host> HostTerm for RunTerm<'_, H> {
    type Host = H;

    fn write_identity(self, _: HostKind, out: &mut Vec<u64>) -> HostTag {
        self.copy_box(out)
            .expect("match: an identity without a box")
    }

    fn write_large_bits(self, _: usize, out: &mut Vec<u64>) -> Option<HostTag> {
        self.copy_box(out)
    }
}

impl<H: Host> RunTerm<'_, H> {
    /// Appends the words of a host's box, if the term is one.
    fn copy_box(self, out: &mut Vec<u64>) -> Option<HostTag> {
        match self.value {
            Value::Image(term) => term.copy_host_box(out),
            _ => None,
        }
    }
}
