//! Bounds of sets of order keys: those of terms with a common front, and of classes of terms.

use super::format::{
    ATOM, BITS, CONS, FRACTION, LOCAL_FUN, MAP, NIL, Order, PID, PORT, RECORD, REF, TUPLE,
    push_escaped,
};
use super::key::{order_key, order_key_within};
use crate::Zeros;
use crate::keys::Format;
use crate::term_ref::TermRef;

/// Returns the bounds of the keys that begin with a [prefix](Prefix): the first is inclusive, the
/// second exclusive. The bounds of the empty prefix enclose all keys.
#[must_use]
pub fn prefix_bounds(prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (prefix.to_vec(), prefix_end(prefix))
}

/// Returns the upper bound of [`prefix_bounds`].
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = Vec::with_capacity(prefix.len() + 1);
    end.extend_from_slice(prefix);
    push_prefix_end(&mut end);
    end
}

/// Makes a prefix its own upper bound: [`prefix_end`] without a copy.
pub fn push_prefix_end(prefix: &mut Vec<u8>) {
    prefix.push(FRACTION);
}

/// The front of an order key: what all terms of a shape have in common when only their first parts
/// are known.
///
/// Parts are written from left to right, at any depth. The prefix of `{{a, '_'}, '_'}` is
///
/// ```
/// use ats_term::{Atom, Term, Zeros, order};
///
/// let a = Term::from(Atom::new("a")?);
/// let mut prefix = order::Prefix::new(Zeros::Distinct);
/// prefix.tuple(2).tuple(2).term(&a);
/// let (from, to) = order::prefix_bounds(prefix.as_bytes());
///
/// let mut key = Vec::new();
/// order::order_key(&Term::from(((a, 7), "anything")), &mut key, Zeros::Distinct);
/// assert!(from <= key && key < to);
/// # Ok::<(), ats_term::atom::AtomError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Prefix {
    bytes: Vec<u8>,
    zeros: Zeros,
}

impl Prefix {
    /// Creates the prefix of all terms.
    #[must_use]
    pub fn new(zeros: Zeros) -> Prefix {
        Prefix {
            bytes: Vec::new(),
            zeros,
        }
    }

    /// Begins a tuple of this many elements.
    pub fn tuple(&mut self, arity: usize) -> &mut Prefix {
        Order::new(self.zeros).tuple(arity, &mut self.bytes);
        self
    }

    /// Begins a list cell: a head, then a tail.
    pub fn cons(&mut self) -> &mut Prefix {
        Order::new(self.zeros).cons(&mut self.bytes);
        self
    }

    /// Writes a term.
    pub fn term<T: TermRef>(&mut self, term: T) -> &mut Prefix {
        order_key(term, &mut self.bytes, self.zeros);
        self
    }

    /// Writes a term, unless that takes more than about `most` steps, counted as in
    /// [`order_key_within`]; then it changes nothing and returns `false`.
    pub fn term_within<T: TermRef>(&mut self, term: T, most: usize) -> bool {
        order_key_within(term, &mut self.bytes, self.zeros, most).is_some()
    }

    /// Returns the bytes with which the keys begin.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes with which the keys begin.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Classes of terms that are contiguous in the order of terms, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Integers and floats.
    Number,
    /// Atoms.
    Atom,
    /// References.
    Reference,
    /// Local and external funs.
    Fun,
    /// Ports.
    Port,
    /// Pids.
    Pid,
    /// Tuples.
    Tuple,
    /// Native records, and opaque terms of other kinds.
    Record,
    /// Maps.
    Map,
    /// The empty list.
    Nil,
    /// Lists that are not empty.
    Cons,
    /// Binaries and bitstrings.
    Bitstring,
}

impl Class {
    /// All classes in order.
    pub const ALL: [Class; 12] = [
        Class::Number,
        Class::Atom,
        Class::Reference,
        Class::Fun,
        Class::Port,
        Class::Pid,
        Class::Tuple,
        Class::Record,
        Class::Map,
        Class::Nil,
        Class::Cons,
        Class::Bitstring,
    ];

    /// Returns the bounds of the keys of all terms of this class: the first is inclusive, the
    /// second exclusive. One class ends at the start of the next; the first has an empty lower
    /// bound, the last no upper bound. O(1).
    #[must_use]
    pub const fn bounds(self) -> (&'static [u8], Option<&'static [u8]>) {
        match self {
            Class::Number => (&[], Some(&[ATOM])),
            Class::Atom => (&[ATOM], Some(&[REF])),
            Class::Reference => (&[REF], Some(&[LOCAL_FUN])),
            Class::Fun => (&[LOCAL_FUN], Some(&[PORT])),
            Class::Port => (&[PORT], Some(&[PID])),
            Class::Pid => (&[PID], Some(&[TUPLE])),
            Class::Tuple => (&[TUPLE], Some(&[RECORD])),
            Class::Record => (&[RECORD], Some(&[MAP])),
            Class::Map => (&[MAP], Some(&[NIL])),
            Class::Nil => (&[NIL], Some(&[CONS])),
            Class::Cons => (&[CONS], Some(&[BITS])),
            Class::Bitstring => (&[BITS], None),
        }
    }
}

/// Returns the bounds of the keys of all binaries and bitstrings that begin with these whole bytes:
/// the first is inclusive, the second exclusive. O(number of bytes).
#[must_use]
pub fn binary_prefix_bounds(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut front = vec![BITS];
    push_escaped(bytes, &mut front);
    // Without the end mark, the key of the binary is the common front.
    front.pop();
    let mut end = front.clone();
    // Bytes of 255 have no successor, but the tag has one, so this loop ends.
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    // The smallest key is that of the binary itself; shorter bitstrings with the same front precede
    // it.
    front.extend_from_slice(&[0, if bytes.is_empty() { 0 } else { 8 }]);
    (front, end)
}
