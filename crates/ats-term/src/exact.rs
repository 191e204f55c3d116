//! Exact keys: bytes that are equal exactly when the terms are the same term (`=:=`).
//!
//! Hash tables hash and compare these bytes. Their order is meaningless.
//!
//! # Format
//! An immediate term is its 8-byte word, little endian; the low two bits of the first byte are 3.
//! Everything else begins with a tag, whose low two bits are not 3, so that a key is
//! self-delimiting and needs no escapes:
//!
//! | term | bytes after the tag |
//! |---|---|
//! | integer that is no immediate | sign, length, magnitude little endian |
//! | float | 8 bytes |
//! | tuple | size, keys of the elements |
//! | list | key of the head, key of the tail |
//! | map | size, keys of the keys sorted by their bytes, keys of the values in that order |
//! | bitstring | number of bits, bytes |
//! | pid, port, reference | locality, node, creation, count, numbers |
//! | local fun | module, index, hash, count, keys of the captured values |
//! | external fun | module, function, arity |
//! | native record | module, name, whether it is exported, count, names of the fields, keys of their values |
//! | opaque term of another kind | length, external term format |
//!
//! Sizes and counts are LEB128, texts have their length in front. Atoms as words follow the
//! numbering of the running VM; with [`Atoms::Text`] they are a tag and their text, which any VM
//! understands. The same form is used for values captured by funs and values of native records,
//! because these arrive as [`Term`](crate::Term)s, whose atoms are numbered by this crate.

use crate::Zeros;
use crate::immediate::{Immediate, NIL, small_word};
use crate::keys::{self, Boundary, Format, MapRecorder};
use crate::term_ref::{FunIdent, Ident, Kind, Opaque, TermRef};
use std::cmp::Ordering;

const INTEGER: u8 = 0x04;
const FLOAT: u8 = 0x08;
const ATOM: u8 = 0x0C;
const REF: u8 = 0x10;
const PORT: u8 = 0x14;
const PID: u8 = 0x18;
const LOCAL_FUN: u8 = 0x1C;
const EXTERNAL_FUN: u8 = 0x20;
const TUPLE: u8 = 0x24;
const MAP: u8 = 0x28;
const CONS: u8 = 0x2C;
const BITS: u8 = 0x30;
const RECORD: u8 = 0x34;
const UNKNOWN: u8 = 0x38;

/// Options of exact keys. Only keys made with the same options are comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The rule for `0.0` and `-0.0`.
    pub zeros: Zeros,
    /// The form of atoms and local identifiers.
    pub atoms: Atoms,
}

/// The form of atoms, and of pids and ports of the running node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atoms {
    /// The word of the VM: short and fast, for keys in memory.
    #[default]
    Word,
    /// Text and numbers: the same in every VM, for keys on disk.
    Text,
}

/// Appends the exact key of a term. O(n log n) at most, where n is the size of the term, and O(n)
/// for a term without maps; not recursive.
#[inline]
pub fn exact_key<T: TermRef>(term: T, out: &mut Vec<u8>, options: Options) {
    let _work = exact_key_within(term, out, options, usize::MAX);
}

/// Appends the key like [`exact_key`], but gives up after about `most` steps: then it appends
/// nothing and returns `None`. Otherwise returns the number of steps. For callers with limited
/// time. A step is a byte of the key, or about a nanosecond of sorting map keys.
#[inline]
pub fn exact_key_within<T: TermRef>(
    term: T,
    out: &mut Vec<u8>,
    options: Options,
    most: usize,
) -> Option<usize> {
    // Small integers, and in memory all immediates, are written as their word: they need no walk.
    if let Some(word) = term.immediate()
        && (options.atoms == Atoms::Word || word & 0xF == 0xF)
    {
        let bytes = word.to_le_bytes();
        out.extend_from_slice(&bytes);
        return Some(bytes.len());
    }
    if options.atoms == Atoms::Word
        && let Some(written) = term.with_flat_tuple(|words| flat_tuple_key(words, out, most))
    {
        return written;
    }
    keys::write(term, &mut Exact::new(options), out, most)
}

/// Appends the key of a tuple of immediates.
#[inline]
fn flat_tuple_key(words: &[u64], out: &mut Vec<u8>, most: usize) -> Option<usize> {
    let start = out.len();
    let bytes = size_of_val(words);
    if bytes >= most {
        return None;
    }
    out.reserve(bytes + 1 + size_of::<usize>());
    push_tuple(words.len(), out);
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
    Some(out.len() - start)
}

/// Appends the key like [`exact_key_within`], and reports the maps in the term to `record`.
pub(crate) fn exact_key_with_recorder<T: TermRef, R: MapRecorder<T>>(
    term: T,
    out: &mut Vec<u8>,
    options: Options,
    most: usize,
    record: &mut R,
) -> Option<usize> {
    keys::write_recorded(term, &mut Exact::new(options), out, most, record)
}

/// Returns the order of the exact keys of two terms that are no immediates, if no keys are needed
/// for that: if they are of different kinds, or bitstrings. Also returns the number of bytes
/// compared.
pub fn exact_order<A: TermRef, B: TermRef>(a: A, b: B) -> Option<(Ordering, usize)> {
    let (a_kind, b_kind) = (a.kind(), b.kind());
    let order = tag(&a_kind)?.cmp(&tag(&b_kind)?);
    if order.is_ne() {
        return Some((order, 0));
    }
    let (Kind::Bits(m), Kind::Bits(n)) = (a_kind, b_kind) else {
        return None;
    };
    if m == n {
        let order = a.with_bits(|a| b.with_bits(|b| a.cmp(b)));
        return Some((order, m / 8));
    }
    let (mut a_size, mut b_size) = (Vec::new(), Vec::new());
    push_size(m, &mut a_size);
    push_size(n, &mut b_size);
    Some((a_size.cmp(&b_size), 0))
}

/// Returns the tag of terms of this kind, unless they may be immediates or have several tags.
fn tag<T>(kind: &Kind<T>) -> Option<u8> {
    Some(match kind {
        Kind::Int(_) | Kind::Big => INTEGER,
        Kind::Float(_) => FLOAT,
        Kind::Cons(..) => CONS,
        Kind::Tuple(_) => TUPLE,
        Kind::Map(_) => MAP,
        Kind::Bits(_) => BITS,
        Kind::Pid => PID,
        Kind::Port => PORT,
        Kind::Ref => REF,
        Kind::LocalFun => LOCAL_FUN,
        Kind::ExternalFun => EXTERNAL_FUN,
        Kind::Atom | Kind::Nil | Kind::Opaque => return None,
    })
}

/// A writer of an exact key from parts, for a term that exists nowhere as a whole.
///
/// Parts are written from left to right, at any depth. The key of `{a, [1]}` is written by
///
/// ```
/// use ats_term::{Atom, Term, exact};
///
/// let a = Term::from(Atom::new("a")?);
/// let mut writer = exact::Writer::new(exact::Options::default());
/// writer.tuple(2).term(&a).cons().term(&Term::Int(1)).term(&Term::Nil);
///
/// let mut key = Vec::new();
/// let list = Term::from(vec![Term::Int(1)]);
/// exact::exact_key(&Term::from((a, list)), &mut key, exact::Options::default());
/// assert_eq!(writer.into_bytes(), key);
/// # Ok::<(), ats_term::atom::AtomError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    options: Options,
}

impl Writer {
    /// Creates a writer of an empty key.
    #[must_use]
    pub fn new(options: Options) -> Writer {
        Writer {
            bytes: Vec::new(),
            options,
        }
    }

    /// Begins a tuple of this many elements.
    pub fn tuple(&mut self, arity: usize) -> &mut Writer {
        push_tuple(arity, &mut self.bytes);
        self
    }

    /// Begins a list cell: a head, then a tail.
    pub fn cons(&mut self) -> &mut Writer {
        self.bytes.push(CONS);
        self
    }

    /// Writes a term.
    pub fn term<T: TermRef>(&mut self, term: T) -> &mut Writer {
        exact_key(term, &mut self.bytes, self.options);
        self
    }

    /// Returns the key, which is complete once all parts were written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The format of exact keys.
struct Exact {
    options: Options,
    /// Number of funs or native records around the current term.
    captured: usize,
}

impl Exact {
    fn new(options: Options) -> Exact {
        Exact {
            options,
            captured: 0,
        }
    }

    fn word_is_portable(&self, word: u64) -> bool {
        word & 0xF == 0xF || word == NIL
    }

    fn wants_text(&self) -> bool {
        self.captured > 0 || self.options.atoms == Atoms::Text
    }
}

impl Format for Exact {
    #[inline]
    fn immediate<T: TermRef>(&mut self, term: T, word: u64, out: &mut Vec<u8>) {
        debug_assert!(word & 3 == 3, "not an immediate word: {word:#x}");
        if self.word_is_portable(word) || !self.wants_text() {
            out.extend_from_slice(&word.to_le_bytes());
        } else if let Some(Immediate::Atom(_)) = Immediate::from_word(word) {
            term.with_atom(|text| push_text(ATOM, text, out));
        } else {
            self.scalar(term, term.kind(), out);
        }
    }

    fn scalar<T: TermRef>(&mut self, term: T, kind: Kind<T>, out: &mut Vec<u8>) {
        match kind {
            Kind::Int(value) => push_int(value, out),
            Kind::Big => term.with_big(|negative, magnitude| push_big(negative, magnitude, out)),
            Kind::Float(value) => push_float(value, self.options.zeros, out),
            Kind::Atom => term.with_atom(|text| push_text(ATOM, text, out)),
            Kind::Nil => out.extend_from_slice(&NIL.to_le_bytes()),
            Kind::Bits(bits) => {
                out.push(BITS);
                push_size(bits, out);
                term.with_bits(|bytes| out.extend_from_slice(bytes));
            }
            Kind::Ref => term.with_ident(|ident| push_ident(REF, &ident, out)),
            Kind::Port => term.with_ident(|ident| push_ident(PORT, &ident, out)),
            Kind::Pid => term.with_ident(|ident| push_ident(PID, &ident, out)),
            Kind::ExternalFun => term.with_fun(|fun| push_external_fun(&fun, out)),
            Kind::Tuple(_) | Kind::Cons(..) | Kind::Map(_) | Kind::LocalFun | Kind::Opaque => {
                debug_assert!(false, "the walk writes compound terms");
            }
        }
    }

    #[inline]
    fn tuple(&mut self, arity: usize, out: &mut Vec<u8>) {
        push_tuple(arity, out);
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
        push_text(LOCAL_FUN, module, out);
        out.extend_from_slice(&index.to_le_bytes());
        out.extend_from_slice(&old_uniq.to_le_bytes());
        push_size(free.len(), out);
    }

    fn opaque(&mut self, opaque: &Opaque<'_>, out: &mut Vec<u8>) {
        match *opaque {
            Opaque::Record {
                module,
                name,
                exported,
                fields,
                ..
            } => {
                push_text(RECORD, module, out);
                push_text(RECORD, name, out);
                out.push(u8::from(exported));
                push_size(fields.len(), out);
                for field in fields {
                    push_text(RECORD, field.as_str(), out);
                }
            }
            Opaque::Unknown(etf) => {
                out.push(UNKNOWN);
                push_size(etf.len(), out);
                out.extend_from_slice(etf);
            }
        }
    }

    fn map_keys(&mut self, _: Boundary) {}

    fn note_boundary(&mut self, boundary: Boundary) {
        match boundary {
            Boundary::Enter => self.captured += 1,
            Boundary::Leave => self.captured -= 1,
        }
    }
}

fn push_int(value: i64, out: &mut Vec<u8>) {
    match small_word(value) {
        Some(word) => out.extend_from_slice(&word.to_le_bytes()),
        None => {
            let magnitude = value.unsigned_abs().to_le_bytes();
            // An integer without a word has at least 60 bits, so all 8 bytes count.
            push_big(value < 0, &magnitude, out);
        }
    }
}

fn push_big(negative: bool, magnitude: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[INTEGER, u8::from(negative)]);
    push_size(magnitude.len(), out);
    out.extend_from_slice(magnitude);
}

fn push_float(value: f64, zeros: Zeros, out: &mut Vec<u8>) {
    // Adding zero turns -0.0 into 0.0.
    let value = if zeros == Zeros::Same {
        value + 0.0
    } else {
        value
    };
    out.push(FLOAT);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Begins a tuple.
#[inline]
fn push_tuple(arity: usize, out: &mut Vec<u8>) {
    out.push(TUPLE);
    push_size(arity, out);
}

/// Writes a size as LEB128.
#[inline]
fn push_size(mut size: usize, out: &mut Vec<u8>) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

fn push_text(tag: u8, text: &str, out: &mut Vec<u8>) {
    out.push(tag);
    push_size(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

fn push_ident(tag: u8, ident: &Ident<'_>, out: &mut Vec<u8>) {
    push_text(tag, ident.node, out);
    out.push(u8::from(ident.local));
    out.extend_from_slice(&ident.creation.to_le_bytes());
    let numbers = ident.significant();
    push_size(numbers.len(), out);
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
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
    push_text(EXTERNAL_FUN, module, out);
    push_text(EXTERNAL_FUN, function, out);
    out.extend_from_slice(&arity.to_le_bytes());
}
