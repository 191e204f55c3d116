//! Traits to read and build terms in any representation.
//!
//! Terms have three representations: a term on the heap of an Erlang process (seen through
//! the NIF interface), an owned [`Term`](crate::Term) of a Rust program, and a term inside an
//! [`image`](crate::image). Encoders are written once for [`TermRef`], decoders once for
//! [`TermSink`], which all three implement.

pub use crate::ident::Ident;

/// The kind of a term, with the cheap part of its content.
#[derive(Clone, Copy, Debug)]
pub enum Kind<T> {
    /// An integer that fits 64 bits, in any representation.
    Int(i64),
    /// An integer outside 64 bits; see [`TermRef::with_big`].
    Big,
    /// A finite float.
    Float(f64),
    /// An atom; see [`TermRef::with_atom`].
    Atom,
    /// The empty list.
    Nil,
    /// A list cell: head and tail.
    Cons(T, T),
    /// A tuple of that many elements; see [`TermRef::element`].
    Tuple(usize),
    /// A map of that many pairs; see [`TermRef::map_pairs`].
    Map(usize),
    /// A binary or bitstring of that many bits; see [`TermRef::with_bits`].
    Bits(usize),
    /// A process identifier; see [`TermRef::with_ident`].
    Pid,
    /// A port identifier; see [`TermRef::with_ident`].
    Port,
    /// A reference; see [`TermRef::with_ident`].
    Ref,
    /// A local fun (a closure); see [`TermRef::with_fun`].
    LocalFun,
    /// An external fun, `fun M:F/A`; see [`TermRef::with_fun`].
    ExternalFun,
    /// A term visible only through the external term format; see [`TermRef::with_opaque`].
    Opaque,
}

impl<T> Kind<T> {
    /// Returns the same kind, with head and tail of a list cell mapped by a function: for
    /// references that wrap others.
    #[inline]
    pub fn map<U>(self, f: impl Fn(T) -> U) -> Kind<U> {
        match self {
            Kind::Cons(head, tail) => Kind::Cons(f(head), f(tail)),
            Kind::Int(value) => Kind::Int(value),
            Kind::Big => Kind::Big,
            Kind::Float(value) => Kind::Float(value),
            Kind::Atom => Kind::Atom,
            Kind::Nil => Kind::Nil,
            Kind::Tuple(arity) => Kind::Tuple(arity),
            Kind::Map(pairs) => Kind::Map(pairs),
            Kind::Bits(bits) => Kind::Bits(bits),
            Kind::Pid => Kind::Pid,
            Kind::Port => Kind::Port,
            Kind::Ref => Kind::Ref,
            Kind::LocalFun => Kind::LocalFun,
            Kind::ExternalFun => Kind::ExternalFun,
            Kind::Opaque => Kind::Opaque,
        }
    }
}

/// The identity of a fun. Captured values are owned terms, because the VM shows them only through
/// the external term format.
#[derive(Clone, Debug)]
pub enum FunIdent<'a> {
    /// `fun M:F/A`.
    External {
        /// Module name.
        module: &'a str,
        /// Function name.
        function: &'a str,
        /// Number of arguments.
        arity: u32,
    },
    /// A closure.
    Local {
        /// Module that defines the fun.
        module: &'a str,
        /// Number of arguments.
        arity: u32,
        /// Index of the fun in its module.
        index: u32,
        /// MD5 of the module's significant code.
        uniq: [u8; 16],
        /// Index in the older numbering.
        old_index: u32,
        /// Hash of the fun's code, as the older unique value.
        old_uniq: u32,
        /// The process that made the fun. Comparisons ignore it.
        creator: Ident<'a>,
        /// Captured values.
        free: &'a [crate::Term],
    },
}

/// A term of a kind that the accessors of terms do not show. In the standard order, such terms come
/// after tuples and before maps.
#[derive(Clone, Copy, Debug)]
pub enum Opaque<'a> {
    /// A native record, as Erlang/OTP has them since release 29.
    Record {
        /// Module that defines the record.
        module: &'a str,
        /// Name of the record.
        name: &'a str,
        /// `true` if other modules may see the fields.
        exported: bool,
        /// Names of the fields in the order of their definition.
        fields: &'a [crate::Atom],
        /// A value for each field.
        values: &'a [crate::Term],
    },
    /// Any other term: its external term format, with version byte. Terms with different bytes
    /// count as different, and are ordered by these bytes.
    Unknown(&'a [u8]),
}

/// A readable term. `Copy`, because it is a word or a pointer in every representation.
///
/// The `with_*` functions lend data that may exist only during the call. Calling one on a term of
/// another [`Kind`] is a bug of the caller; implementations may panic.
pub trait TermRef: Copy {
    /// Returns the kind of this term.
    fn kind(self) -> Kind<Self>;

    /// Returns the image word of this term if it is an immediate (small integer, atom, nil, local
    /// pid, local port), see [`image`](crate::image). Cheap; the fast path of every encoder.
    fn immediate(self) -> Option<u64>;

    /// Lends sign (`true` = negative) and magnitude, little endian without leading zero bytes.
    fn with_big<R>(self, f: impl FnOnce(bool, &[u8]) -> R) -> R;

    /// Lends the text of an atom.
    fn with_atom<R>(self, f: impl FnOnce(&str) -> R) -> R;

    /// Returns element `i` (from 0) of a tuple.
    #[must_use]
    fn element(self, i: usize) -> Self;

    /// The elements of a tuple of that many.
    #[inline]
    fn elements(self, arity: usize) -> impl Iterator<Item = Self> {
        (0..arity).map(move |i| self.element(i))
    }

    /// Lends the elements of a tuple as words, if all are immediates and stand beside each other.
    /// O(number of elements).
    #[inline]
    fn with_flat_tuple<R>(self, f: impl FnOnce(&[u64]) -> R) -> Option<R> {
        let _ = f;
        None
    }

    /// Appends all pairs of a map, in any order.
    fn map_pairs(self, out: &mut Vec<(Self, Self)>);

    /// Lends the bytes of a bitstring; the unused low bits of the last byte are zero. The number of
    /// bits is the payload of [`Kind::Bits`].
    fn with_bits<R>(self, f: impl FnOnce(&[u8]) -> R) -> R;

    /// Lends the identity of a pid, port or reference.
    fn with_ident<R>(self, f: impl FnOnce(Ident<'_>) -> R) -> R;

    /// Lends the identity of a fun.
    fn with_fun<R>(self, f: impl FnOnce(FunIdent<'_>) -> R) -> R;

    /// Lends the known facts about an opaque term.
    fn with_opaque<R>(self, f: impl FnOnce(Opaque<'_>) -> R) -> R;

    /// Returns `true` if the pairs of each map in this term are shown in an order that depends only
    /// on the set of keys.
    fn has_canonical_maps(self) -> bool {
        false
    }

    /// Returns pair `i` of a map, from 0, in the order of [`map_pairs`](TermRef::map_pairs). O(1)
    /// if the term [has canonical maps](TermRef::has_canonical_maps).
    fn map_pair(self, i: usize) -> (Self, Self) {
        let mut pairs = Vec::new();
        self.map_pairs(&mut pairs);
        pairs[i]
    }

    /// A number of parts from `start` on that are the same immediates in two terms of one kind:
    /// elements of tuples, or heads of lists. All of them if the parts of both terms are words that
    /// stand beside each other, and otherwise 0.
    fn same_immediates(self, other: Self, start: usize) -> usize {
        let _ = (other, start);
        0
    }

    /// The rest of a list behind `skip` heads that [were the same](TermRef::same_immediates).
    #[must_use]
    fn list_rest(self, skip: usize) -> Self {
        debug_assert_eq!(skip, 0);
        self
    }

    /// Captured value `i` of a closure, or value `i` of a native record, if they can be walked in
    /// place. Those of owned terms can, which keeps closures that capture closures that capture
    /// closures from nesting calls.
    fn captured_value(self, i: usize) -> Option<Self> {
        let _ = i;
        None
    }
}

/// Returns `true` if a term, or one in it, satisfies `is_so`. Each term is tested before the terms
/// in it, which are visited only if it fails. Values captured by a fun are not visited, nor are
/// values of a native record that is no owned term. O(size), not recursive.
pub fn has_part<T: TermRef>(term: T, mut is_so: impl FnMut(T, &Kind<T>) -> bool) -> bool {
    let (mut todo, mut pairs) = (Vec::new(), Vec::new());
    let mut next = Some(term);
    while let Some(term) = next {
        let kind = term.kind();
        if is_so(term, &kind) {
            return true;
        }
        match kind {
            Kind::Cons(head, tail) => todo.extend([head, tail]),
            Kind::Tuple(arity) => todo.extend((0..arity).map(|i| term.element(i))),
            Kind::Map(_) => {
                term.map_pairs(&mut pairs);
                todo.extend(pairs.drain(..).flat_map(|(key, value)| [key, value]));
            }
            Kind::Opaque => todo.extend((0..).map_while(|i| term.captured_value(i))),
            _ => {}
        }
        next = todo.pop();
    }
    false
}

/// Returns `true` if a term is larger than `most`: an element of a tuple counts one, so does a key
/// or a value of a map, a list cell counts two, and a bitstring the number of its 64-bit words.
/// Values captured by a fun do not count, nor does an opaque term. O(`most`) at most, not
/// recursive.
pub fn is_larger<T: TermRef>(term: T, most: usize) -> bool {
    let mut left = most;
    has_part(term, |part, kind| {
        let size = match *kind {
            Kind::Cons(..) => 2,
            Kind::Tuple(arity) => arity,
            Kind::Map(len) => 2 * len,
            Kind::Bits(bits) => bits.div_ceil(64),
            Kind::Big => part.with_big(|_, magnitude| magnitude.len().div_ceil(8)),
            _ => 0,
        };
        if size > left {
            return true;
        }
        left -= size;
        false
    })
}

/// A builder of terms in some representation.
pub trait TermSink {
    /// A built term.
    type Term: Copy;

    /// Builds a term from its immediate word, see [`image`](crate::image).
    fn immediate(&mut self, word: u64) -> Self::Term;
    /// Builds an integer of any size from sign and little-endian magnitude; never an immediate one.
    fn big(&mut self, negative: bool, magnitude: &[u8]) -> Self::Term;
    /// Builds a finite float.
    fn float(&mut self, value: f64) -> Self::Term;
    /// Builds a binary or bitstring: `bits` bits of `bytes`.
    fn bits(&mut self, bytes: &[u8], bits: usize) -> Self::Term;
    /// Builds a tuple.
    fn tuple(&mut self, elements: &[Self::Term]) -> Self::Term;
    /// Builds a list cell.
    fn cons(&mut self, head: Self::Term, tail: Self::Term) -> Self::Term;
    /// Builds a list of these elements before a tail.
    fn list(&mut self, elements: &[Self::Term], tail: Self::Term) -> Self::Term {
        let cells = elements.iter().rev();
        cells.fold(tail, |tail, &head| self.cons(head, tail))
    }
    /// Builds a map; keys are distinct and in no particular order.
    fn map(&mut self, keys: &[Self::Term], values: &[Self::Term]) -> Self::Term;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Term;

    #[test]
    fn sizes_are_found_up_to_a_limit() {
        let list = |len: i64| Term::list_with_tail((0..len).map(Term::from), Term::Nil);
        let pair = Term::from((list(3), Term::binary(&[1; 20])));
        for (term, size) in [(Term::from(1), 0), (list(10), 20), (pair, 2 + 6 + 3)] {
            assert!(!is_larger(&term, size));
            assert!(size == 0 || is_larger(&term, size - 1));
        }
        let deep =
            (0..1_000_000).fold(Term::Nil, |term, _| Term::list_with_tail([term], Term::Nil));
        assert!(is_larger(&deep, 4_000));
        assert!(!is_larger(&deep, 2_000_000));
    }
}
