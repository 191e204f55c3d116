//! Order keys: bytes whose order is Erlang's standard order and whose equality is `==`.
//!
//! `memcmp` of two keys (the shorter of two equal prefixes first) says how their terms compare, so an
//! ordered table needs to know nothing about terms: `1` and `1.0` are one key, integers and floats
//! compare exactly at any size, and all tuples that begin with the same elements lie together.
//! The order was read from `erts_cmp_compound` of OTP 25; it is
//!
//! ```text
//! number < atom < reference < fun < port < pid < tuple < map < nil < list < bitstring
//! ```
//!
//! # Format
//! A key begins with the tag of the term's class. Tags are `0x01..=0xFD`.
//!
//! | term | bytes after the tag |
//! |---|---|
//! | integer up to 8 bytes | magnitude, big endian, as many bytes as the tag says; complemented below zero |
//! | larger integer | ordered size of the magnitude, magnitude; both complemented below zero |
//! | float that is an integer | as the integer |
//! | other float `x` | key of the integer below `x`, `0xFE`, bits of the fraction of the absolute value of `x` as a float; complemented below zero |
//! | float within a map key | 8 bytes ordered as the float |
//! | atom | text, `00` |
//! | reference, port | node, creation, numbers, locality |
//! | pid | numbers, node, creation, locality |
//! | local fun | module, `00`, index, hash, number of captured values, their keys |
//! | external fun | module, `00`, function, `00`, arity |
//! | tuple | ordered size, keys of the elements |
//! | map | ordered size, keys of the keys ascending, keys of the values in that order |
//! | nil | |
//! | list | key of the head, key of the tail |
//! | bitstring | bytes, `00`, number of bits used of the last byte |
//!
//! *Text* and *bytes* of any length have every byte `00` written as `00 FF` and end with `00`. This
//! keeps `a` before `a\0` before `ab` because what follows the last `00` is never `FF`: after an atom
//! it is a tag, elsewhere a byte that was chosen so.
//!
//! *Ordered size* is one byte below 248, otherwise `247 + n` and `n` bytes big endian.
//!
//! # Prefixes
//! The key of `{a, 1, x}` begins with the key of the *prefix* `{a, 1, _}`, that is: tag, ordered size
//! and the keys of `a` and `1`. So does the key of `{a, 1.5, x}`, but there `0xFE` follows, which is
//! above every tag. Hence the keys that have the prefix `p` are exactly those in the interval from
//! `p` to `p ++ [0xFE]`, the end excluded; see [`prefix_bounds`] and [`Prefix`].

use crate::Zeros;
use crate::keys::{self, Boundary, Format, Record};
use crate::walk::{FunIdent, Ident, Kind, TermRef};
use crate::word::NIL as NIL_WORD;

/// The tag of zero; integers of `n` bytes have the tag `ZERO + n` or `ZERO - n`.
const ZERO: u8 = 0x10;
const POSITIVE_BIG: u8 = ZERO + 9;
const NEGATIVE_BIG: u8 = ZERO - 9;
const EXACT_FLOAT: u8 = 0x20;
const ATOM: u8 = 0x28;
const REF: u8 = 0x30;
const LOCAL_FUN: u8 = 0x38;
const EXTERNAL_FUN: u8 = 0x39;
const PORT: u8 = 0x40;
const PID: u8 = 0x48;
const TUPLE: u8 = 0x50;
const MAP: u8 = 0x58;
const NIL: u8 = 0x60;
const CONS: u8 = 0x68;
const BITS: u8 = 0x70;

/// Stands between the integer part and the fraction of a number. Greater than every tag.
const FRACTION: u8 = 0xFE;

/// Most bytes that [`order_key_int`] writes.
pub const MAX_INT_KEY: usize = 9;

/// Appends the order key of a term. O(n log n) at most, where n is the size of the term, and O(n) for
/// a term without maps; without recursion.
///
/// `zeros` says whether `0.0` and `-0.0` are different keys of maps; elsewhere they are equal.
#[inline]
pub fn order_key<T: TermRef>(term: T, out: &mut Vec<u8>, zeros: Zeros) {
    let _work = order_key_within(term, out, zeros, usize::MAX);
}

/// Does what [`order_key`] does, but gives up when that takes more than about `most` steps: then it
/// appends nothing and returns `None`. For callers that must not work for long. Else returns the number
/// of steps. A byte of the key is a step, and so is about a nanosecond's work of sorting the keys of maps.
#[inline]
pub fn order_key_within<T: TermRef>(
    term: T,
    out: &mut Vec<u8>,
    zeros: Zeros,
    most: usize,
) -> Option<usize> {
    // Most keys are small integers: those need no walk.
    match term.immediate() {
        Some(word) if word & 0xF == 0xF => {
            push_int(word as i64 >> 4, out);
            Some(MAX_INT_KEY)
        }
        _ => keys::write(term, &mut Order::new(zeros), out, most),
    }
}

/// Visits the maps in a term that have pairs, inner ones before those around them, each with its pairs in the
/// order of the keys. Map keys are compared exactly, at every depth. What a fun has captured does not count.
/// O(n log n) at most, where n is the size of the term; without recursion.
pub fn for_each_map<T: TermRef>(term: T, zeros: Zeros, visit: impl FnMut(T, &[(T, T)])) {
    let mut visitor = Visitor {
        maps: Vec::new(),
        visit,
    };
    let mut order = Order::new(zeros);
    // Within a key all is compared exactly.
    order.map_keys(Boundary::Enter);
    keys::write_recorded(term, &mut order, &mut Vec::new(), usize::MAX, &mut visitor);
}

/// What [`for_each_map`] listens to a walk with.
struct Visitor<T, F> {
    maps: Vec<T>,
    visit: F,
}

impl<T: TermRef, F: FnMut(T, &[(T, T)])> Record<T> for Visitor<T, F> {
    type Mark = usize;

    fn mark(&self) -> usize {
        self.maps.len()
    }

    fn begin(&mut self, map: T) {
        self.maps.push(map);
    }

    fn end(&mut self, begun: usize, pairs: &[(T, T)], _: &[(usize, usize)]) {
        (self.visit)(self.maps[begun], pairs);
    }
}

/// Writes the order key of an integer to the front of `out` and returns its length. The fast path
/// for integer keys: no loop, no allocation.
#[inline]
pub fn order_key_int(value: i64, out: &mut [u8; MAX_INT_KEY]) -> usize {
    let magnitude = value.unsigned_abs();
    let length = 8 - magnitude.leading_zeros() / 8;
    // For zero the shift wraps to none, which does not matter.
    let mut bytes = magnitude.wrapping_shl(64 - 8 * length).to_be_bytes();
    if value < 0 {
        bytes = bytes.map(|byte| !byte);
    }
    let length = length as u8;
    out[0] = if value < 0 {
        ZERO - length
    } else {
        ZERO + length
    };
    out[1..].copy_from_slice(&bytes);
    1 + usize::from(length)
}

/// The keys that begin with a [prefix](Prefix): from the first bound, inclusive, to the second,
/// exclusive. The empty prefix gives bounds around all keys.
#[must_use]
pub fn prefix_bounds(prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
    (prefix.to_vec(), prefix_end(prefix))
}

/// The upper bound of [`prefix_bounds`].
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = Vec::with_capacity(prefix.len() + 1);
    end.extend_from_slice(prefix);
    end.push(FRACTION);
    end
}

/// The front of an order key: what all terms of a shape have in common when only their first parts
/// are known.
///
/// Parts are given from left to right, at any depth. The prefix of `{{a, '_'}, '_'}` is
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
    /// The prefix of all terms.
    #[must_use]
    pub fn new(zeros: Zeros) -> Prefix {
        Prefix {
            bytes: Vec::new(),
            zeros,
        }
    }

    /// The next part is a tuple of this many elements.
    pub fn tuple(&mut self, arity: usize) -> &mut Prefix {
        Order::new(self.zeros).tuple(arity, &mut self.bytes);
        self
    }

    /// The next part is a list cell: a head, then a tail.
    pub fn cons(&mut self) -> &mut Prefix {
        Order::new(self.zeros).cons(&mut self.bytes);
        self
    }

    /// The next part is this term.
    pub fn term<T: TermRef>(&mut self, term: T) -> &mut Prefix {
        order_key(term, &mut self.bytes, self.zeros);
        self
    }

    /// The next part is this term, unless that takes more than about `most` steps, as
    /// [`order_key_within`] counts them; false if it does, and nothing has changed.
    pub fn term_within<T: TermRef>(&mut self, term: T, most: usize) -> bool {
        order_key_within(term, &mut self.bytes, self.zeros, most).is_some()
    }

    /// The bytes with which the keys begin.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes with which the keys begin.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// What a term is, as far as that decides before which others it stands, in ascending order.
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
    pub const ALL: [Class; 11] = [
        Class::Number,
        Class::Atom,
        Class::Reference,
        Class::Fun,
        Class::Port,
        Class::Pid,
        Class::Tuple,
        Class::Map,
        Class::Nil,
        Class::Cons,
        Class::Bitstring,
    ];

    /// The keys of all terms of this class: from the first bound, inclusive, to the second, exclusive. One
    /// class ends where the next begins; below the first and above the last there is nothing. O(1).
    #[must_use]
    pub const fn bounds(self) -> (&'static [u8], Option<&'static [u8]>) {
        match self {
            Class::Number => (&[], Some(&[ATOM])),
            Class::Atom => (&[ATOM], Some(&[REF])),
            Class::Reference => (&[REF], Some(&[LOCAL_FUN])),
            Class::Fun => (&[LOCAL_FUN], Some(&[PORT])),
            Class::Port => (&[PORT], Some(&[PID])),
            Class::Pid => (&[PID], Some(&[TUPLE])),
            Class::Tuple => (&[TUPLE], Some(&[MAP])),
            Class::Map => (&[MAP], Some(&[NIL])),
            Class::Nil => (&[NIL], Some(&[CONS])),
            Class::Cons => (&[CONS], Some(&[BITS])),
            Class::Bitstring => (&[BITS], None),
        }
    }
}

/// The keys of all binaries and bitstrings that begin with these whole bytes: from the first bound,
/// inclusive, to the second, exclusive. O(number of bytes).
#[must_use]
pub fn binary_prefix_bounds(bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut front = vec![BITS];
    push_escaped(bytes, &mut front);
    // Without the end mark it is what the keys have in common.
    front.pop();
    let mut end = front.clone();
    // Bytes of 255 have no successor; the tag has one, so this ends.
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    // The shortest of them is the binary itself, before which shorter bitstrings can stand.
    front.extend_from_slice(&[0, if bytes.is_empty() { 0 } else { 8 }]);
    (front, end)
}

/// The format of order keys.
struct Order {
    zeros: Zeros,
    /// Within how many map keys the current term is. Map keys are compared exactly.
    map_keys: usize,
}

impl Order {
    fn new(zeros: Zeros) -> Order {
        Order { zeros, map_keys: 0 }
    }

    fn float(&self, value: f64, out: &mut Vec<u8>) {
        if self.map_keys > 0 {
            push_exact_float(value, self.zeros, out);
        } else {
            push_float(value, out);
        }
    }
}

impl Format for Order {
    #[inline]
    fn immediate<T: TermRef>(&mut self, term: T, word: u64, out: &mut Vec<u8>) {
        if word & 0xF == 0xF {
            // The arithmetic shift brings the sign back.
            push_int(word as i64 >> 4, out);
        } else if word == NIL_WORD {
            out.push(NIL);
        } else {
            self.scalar(term, term.kind(), out);
        }
    }

    fn scalar<T: TermRef>(&mut self, term: T, kind: Kind<T>, out: &mut Vec<u8>) {
        match kind {
            Kind::Int(value) => push_int(value, out),
            Kind::Big => term.with_big(|negative, magnitude| push_big(negative, magnitude, out)),
            Kind::Float(value) => self.float(value, out),
            Kind::Atom => {
                out.push(ATOM);
                term.with_atom(|text| push_escaped(text.as_bytes(), out));
            }
            Kind::Nil => out.push(NIL),
            Kind::Bits(bits) => {
                out.push(BITS);
                term.with_bits(|bytes| push_escaped(bytes, out));
                out.push(if bits == 0 {
                    0
                } else {
                    ((bits - 1) % 8 + 1) as u8
                });
            }
            Kind::Ref => term.with_ident(|ident| push_numbers_last(REF, ident, out)),
            Kind::Port => term.with_ident(|ident| push_numbers_last(PORT, ident, out)),
            Kind::Pid => term.with_ident(|ident| push_numbers_first(PID, ident, out)),
            Kind::ExternalFun => term.with_fun(|fun| push_external_fun(&fun, out)),
            Kind::Tuple(_) | Kind::Cons(..) | Kind::Map(_) | Kind::LocalFun => {
                debug_assert!(false, "the walk writes compound terms");
            }
        }
    }

    #[inline]
    fn tuple(&mut self, arity: usize, out: &mut Vec<u8>) {
        out.push(TUPLE);
        push_size(arity, out);
    }

    #[inline]
    fn cons(&mut self, out: &mut Vec<u8>) {
        out.push(CONS);
    }

    fn map(&mut self, pairs: usize, out: &mut Vec<u8>) {
        out.push(MAP);
        push_size(pairs, out);
    }

    fn local_fun(&mut self, fun: &FunIdent<'_>, out: &mut Vec<u8>) {
        let FunIdent::Local {
            module,
            index,
            old_uniq,
            free,
            ..
        } = fun
        else {
            return;
        };
        // The machine compares index and hash as signed numbers.
        let ordered = |number: u32| (number ^ 1 << 31).to_be_bytes();
        out.push(LOCAL_FUN);
        push_name(module, out);
        out.extend_from_slice(&ordered(*index));
        out.extend_from_slice(&ordered(*old_uniq));
        push_size(free.len(), out);
    }

    fn map_keys(&mut self, boundary: Boundary) {
        match boundary {
            Boundary::Enter => self.map_keys += 1,
            Boundary::Leave => self.map_keys -= 1,
        }
    }

    fn captured(&mut self, _: Boundary) {}
}

#[inline]
fn push_int(value: i64, out: &mut Vec<u8>) {
    let mut key = [0; MAX_INT_KEY];
    let length = order_key_int(value, &mut key);
    // A copy of constant length is quicker than one of a few bytes.
    let start = out.len();
    out.extend_from_slice(&key);
    out.truncate(start + length);
}

/// Writes an integer of at least 8 bytes from its little-endian magnitude.
fn push_big(negative: bool, magnitude: &[u8], out: &mut Vec<u8>) {
    let start = out.len() + 1;
    if magnitude.len() <= 8 {
        let length = magnitude.len() as u8;
        out.push(if negative {
            ZERO - length
        } else {
            ZERO + length
        });
    } else {
        out.push(if negative { NEGATIVE_BIG } else { POSITIVE_BIG });
        push_size(magnitude.len(), out);
    }
    out.extend(magnitude.iter().rev());
    if negative {
        complement(&mut out[start..]);
    }
}

/// Writes a float by its value, so that it equals the integer of the same value.
fn push_float(value: f64, out: &mut Vec<u8>) {
    // 2 to the power of 63, the first float above all i64. There are no fractions up there.
    const I64_END: f64 = 9_223_372_036_854_775_808.0;
    if value.abs() >= I64_END {
        return push_huge_float(value, out);
    }
    let whole = value.trunc();
    // The difference is exact. Adding it to the integer below a negative number would not be.
    let fraction = (value - whole).abs();
    if fraction == 0.0 {
        push_int(whole as i64, out);
    } else if value > 0.0 {
        push_int(whole as i64, out);
        out.push(FRACTION);
        out.extend_from_slice(&fraction.to_bits().to_be_bytes());
    } else {
        push_int(whole as i64 - 1, out);
        out.push(FRACTION);
        out.extend_from_slice(&(!fraction.to_bits()).to_be_bytes());
    }
}

/// Writes a float of at least 2^63 as the integer it is.
fn push_huge_float(value: f64, out: &mut Vec<u8>) {
    const MAX_FLOAT_BYTES: usize = 1024 / 8;
    let bits = value.abs().to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    // The exponent of the last bit of the mantissa, at least 11.
    let exponent = (bits >> 52) as usize - 1075;
    let mut magnitude = [0; MAX_FLOAT_BYTES];
    let shifted = u128::from(mantissa) << (exponent % 8);
    for (i, byte) in shifted.to_le_bytes().into_iter().take(8).enumerate() {
        // Bytes beyond the largest float are zero.
        if let Some(slot) = magnitude.get_mut(exponent / 8 + i) {
            *slot = byte;
        }
    }
    let length = magnitude
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    push_big(value < 0.0, &magnitude[..length], out);
}

/// Writes a float as the map keys have it: after all integers, ordered among floats.
fn push_exact_float(value: f64, zeros: Zeros, out: &mut Vec<u8>) {
    // Adding zero turns -0.0 into 0.0.
    let value = if zeros == Zeros::Same {
        value + 0.0
    } else {
        value
    };
    let bits = value.to_bits();
    let ordered = if value.is_sign_negative() {
        !bits
    } else {
        bits | 1 << 63
    };
    out.push(EXACT_FLOAT);
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn complement(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

/// Writes a size so that larger ones are larger bytes.
#[inline]
fn push_size(size: usize, out: &mut Vec<u8>) {
    const SINGLE_BYTE_END: usize = 248;
    if size < SINGLE_BYTE_END {
        out.push(size as u8);
    } else {
        let bytes = (size as u64).to_be_bytes();
        let zeros = size.leading_zeros() as usize / 8;
        out.push((SINGLE_BYTE_END - 1 + bytes.len() - zeros) as u8);
        out.extend_from_slice(&bytes[zeros..]);
    }
}

/// Writes bytes of any length, with their end mark. What follows must not begin with `FF`.
fn push_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.contains(&0) {
        out.extend_from_slice(bytes);
        return out.push(0);
    }
    let mut parts = bytes.split(|&byte| byte == 0);
    if let Some(first) = parts.next() {
        out.extend_from_slice(first);
    }
    for part in parts {
        out.extend_from_slice(&[0, 0xFF]);
        out.extend_from_slice(part);
    }
    out.push(0);
}

/// Writes a name that is followed by any bytes.
fn push_name(name: &str, out: &mut Vec<u8>) {
    push_escaped(name.as_bytes(), out);
    out.push(0);
}

fn push_node(ident: &Ident<'_>, out: &mut Vec<u8>) {
    push_name(ident.node, out);
    out.extend_from_slice(&ident.creation.to_be_bytes());
}

fn push_numbers(ident: &Ident<'_>, out: &mut Vec<u8>) {
    let numbers = ident.significant();
    push_size(numbers.len(), out);
    numbers
        .iter()
        .for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
}

fn push_numbers_first(tag: u8, ident: Ident<'_>, out: &mut Vec<u8>) {
    out.push(tag);
    push_numbers(&ident, out);
    push_node(&ident, out);
    out.push(u8::from(ident.local));
}

fn push_numbers_last(tag: u8, ident: Ident<'_>, out: &mut Vec<u8>) {
    out.push(tag);
    push_node(&ident, out);
    push_numbers(&ident, out);
    out.push(u8::from(ident.local));
}

fn push_external_fun(fun: &FunIdent<'_>, out: &mut Vec<u8>) {
    let FunIdent::External {
        module,
        function,
        arity,
    } = fun
    else {
        return;
    };
    out.push(EXTERNAL_FUN);
    push_name(module, out);
    push_name(function, out);
    out.extend_from_slice(&arity.to_be_bytes());
}
