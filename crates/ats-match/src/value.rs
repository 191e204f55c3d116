//! What expressions compute with.
//!
//! A value is a word, or tells where the rest of it is: in the image of the object or of a constant, or among
//! the things that this run has made, which are kept in its [`Made`].

use crate::fingerprint::Fingerprints;
use ats_term::image::{
    Host, HostKind, HostTag, HostTerm, ImageRef, Immediate, NIL, View, small_word,
};
use ats_term::walk::{FunIdent, Ident, Kind, TermRef};
use ats_term::{Integer, Zeros};
use std::ops::Range;

/// A term during a run.
pub(crate) enum Value<'a, H> {
    /// An immediate.
    Word(u64),
    /// An integer of 64 bits that is not small.
    Wide(i64),
    /// A float that was computed.
    Float(f64),
    /// A term of an image that is no immediate.
    Image(ImageRef<'a, H>),
    /// An integer of more than 64 bits that was computed.
    Big(u32),
    /// A tuple that was made, of these parts.
    Tuple(Parts),
    /// A list that was made: these elements, at least one, and behind them the tail.
    List(Parts),
    /// A map that was made: keys, which differ, and behind them as many values.
    Map {
        /// The keys.
        keys: Parts,
    },
    /// A binary that was made.
    Bytes(Parts),
}

/// Things that stand side by side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    start: u32,
    len: u32,
}

impl Parts {
    pub(crate) fn len(self) -> usize {
        self.len as usize
    }

    pub(crate) fn start(self) -> u32 {
        self.start
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len()
    }

    /// The elements of a list and its tail, which stands behind them.
    pub(crate) fn and_tail(self) -> Parts {
        Parts {
            len: self.len + 1,
            ..self
        }
    }

    /// The keys of a map and its values, which stand behind them.
    pub(crate) fn and_values(self) -> Parts {
        Parts {
            len: 2 * self.len,
            ..self
        }
    }

    fn skip(self, n: u32) -> Parts {
        Parts {
            start: self.start + n,
            len: self.len - n,
        }
    }
}

// Written out because a derive would ask for `H: Clone`.
impl<H> Clone for Value<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for Value<'_, H> {}

impl<'a, H: Host> Value<'a, H> {
    #[inline]
    pub(crate) fn of(term: ImageRef<'a, H>) -> Self {
        match term.immediate() {
            Some(word) => Value::Word(word),
            None => Value::Image(term),
        }
    }

    #[inline]
    pub(crate) fn int(value: i64) -> Self {
        match small_word(value) {
            Some(word) => Value::Word(word),
            None => Value::Wide(value),
        }
    }

    /// The value of a small integer.
    #[inline]
    pub(crate) fn as_small(self) -> Option<i64> {
        match self {
            Value::Word(word) if word & 0xF == 0xF => Some(word as i64 >> 4),
            _ => None,
        }
    }
}

/// A number, cheaply.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
    Big,
}

/// More things than there are numbers for them were to be made.
pub(crate) struct TooMany;

/// What a run has made.
pub(crate) struct Made<'a, H> {
    parts: Vec<Value<'a, H>>,
    bigs: Vec<Integer>,
    bytes: Vec<u8>,
}

/// Buffers with room for more entries than this are given back.
const KEEP: usize = 1 << 12;

/// Empties a buffer, for the next run.
#[inline]
pub(crate) fn empty<T>(buffer: &mut Vec<T>) {
    buffer.clear();
    if buffer.capacity() > KEEP {
        buffer.shrink_to(KEEP);
    }
}

impl<'a, H: Host> Made<'a, H> {
    pub(crate) const fn new() -> Self {
        Made {
            parts: Vec::new(),
            bigs: Vec::new(),
            bytes: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        empty(&mut self.parts);
        empty(&mut self.bigs);
        empty(&mut self.bytes);
    }

    /// The value with what it refers to.
    #[inline]
    pub(crate) fn term(&self, value: Value<'a, H>) -> RunTerm<'_, H> {
        RunTerm { value, made: self }
    }

    pub(crate) fn integer(&mut self, integer: Integer) -> Value<'a, H> {
        match integer.as_small() {
            Some(value) => Value::int(value),
            None => {
                self.bigs.push(integer);
                Value::Big(self.bigs.len() as u32 - 1)
            }
        }
    }

    fn push(&mut self, parts: &[Value<'a, H>]) -> Result<Parts, TooMany> {
        let start = self.parts.len();
        // So that all positions fit.
        u32::try_from(start + parts.len()).map_err(|_| TooMany)?;
        self.parts.extend_from_slice(parts);
        Ok(Parts {
            start: start as u32,
            len: parts.len() as u32,
        })
    }

    #[inline]
    pub(crate) fn tuple(&mut self, elements: &[Value<'a, H>]) -> Result<Value<'a, H>, TooMany> {
        self.push(elements).map(Value::Tuple)
    }

    /// The list of these elements; the last of `parts` is the tail.
    pub(crate) fn list(&mut self, parts: &[Value<'a, H>]) -> Result<Value<'a, H>, TooMany> {
        if let [only] = parts {
            return Ok(*only);
        }
        let Parts { start, len } = self.push(parts)?;
        Ok(Value::List(Parts {
            start,
            len: len - 1,
        }))
    }

    /// The map of these pairs, whose keys differ.
    pub(crate) fn map(
        &mut self,
        keys: &[Value<'a, H>],
        values: &[Value<'a, H>],
    ) -> Result<Value<'a, H>, TooMany> {
        let keys = self.push(keys)?;
        self.push(values)?;
        Ok(Value::Map { keys })
    }

    pub(crate) fn copy_bytes(&mut self, bytes: &[u8]) -> Result<Value<'a, H>, TooMany> {
        let start = self.bytes.len();
        u32::try_from(start + bytes.len()).map_err(|_| TooMany)?;
        self.bytes.extend_from_slice(bytes);
        Ok(Value::Bytes(Parts {
            start: start as u32,
            len: bytes.len() as u32,
        }))
    }

    /// A part of a binary that was made, which is there.
    pub(crate) fn part_of_bytes(bytes: Parts, start: usize, len: usize) -> Value<'a, H> {
        Value::Bytes(Parts {
            start: bytes.start + start as u32,
            len: len as u32,
        })
    }

    pub(crate) fn elements(&self, parts: Parts) -> &[Value<'a, H>] {
        &self.parts[parts.range()]
    }

    pub(crate) fn parts_of(&self, parts: Parts) -> &[Value<'a, H>] {
        &self.parts[parts.range()]
    }

    /// Part `i`, from 0.
    pub(crate) fn part(&self, parts: Parts, i: usize) -> Value<'a, H> {
        self.parts[parts.range()][i]
    }

    pub(crate) fn map_values(&self, keys: Parts) -> &[Value<'a, H>] {
        &self.parts[keys.range().end..][..keys.len()]
    }

    /// Head and tail of a list that was made.
    pub(crate) fn head_and_tail(&self, list: Parts) -> (Value<'a, H>, Value<'a, H>) {
        let tail = match list.len {
            1 => self.parts[list.range().end],
            _ => Value::List(list.skip(1)),
        };
        (self.parts[list.range().start], tail)
    }

    /// What follows the elements of a list that was made.
    pub(crate) fn tail(&self, list: Parts) -> Value<'a, H> {
        self.parts[list.range().end]
    }

    #[inline]
    pub(crate) fn number(&self, value: Value<'a, H>) -> Option<Number> {
        match value {
            Value::Word(_) => value.as_small().map(Number::Int),
            Value::Wide(value) => Some(Number::Int(value)),
            Value::Float(value) => Some(Number::Float(value)),
            Value::Big(_) => Some(Number::Big),
            Value::Image(term) => match term.view() {
                View::Float(value) => Some(Number::Float(value)),
                View::Big { .. } => Some(term.as_i64().map_or(Number::Big, Number::Int)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The integer that a value is, if it is one.
    pub(crate) fn as_integer(&self, value: Value<'a, H>) -> Option<Integer> {
        Integer::from_term(self.term(value))
    }
}

/// A value of a run as a term.
///
/// Keys can be made of it, and it can be written to an image.
pub struct RunTerm<'r, H> {
    pub(crate) value: Value<'r, H>,
    pub(crate) made: &'r Made<'r, H>,
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

impl<'r, H: Host> TermRef for RunTerm<'r, H> {
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
                let (head, tail) = self.made.head_and_tail(parts);
                Kind::Cons(self.with(head), self.with(tail))
            }
            Value::Map { keys } => Kind::Map(keys.len()),
            Value::Bytes(parts) => Kind::Bits(8 * parts.len()),
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
            Value::Big(index) => self.made.bigs[index as usize].with_parts(|parts| match parts {
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
            Value::Tuple(parts) => self.with(self.made.elements(parts)[i]),
            _ => self.with(Value::of(self.image().element(i))),
        }
    }

    fn map_pairs(self, out: &mut Vec<(Self, Self)>) {
        let pair = |(key, value)| (self.with(key), self.with(value));
        if let Value::Map { keys } = self.value {
            let values = self.made.map_values(keys).iter().copied();
            let keys = self.made.elements(keys).iter().copied();
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
            Value::Bytes(parts) => f(&self.made.bytes[parts.range()]),
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
}

// SAFETY: host boxes are written as they stand in an image of the same host, with the tag that they have
// there, and if they own something, with a unit of ownership more. Words of immediates come from images of
// that host, too, or from `Words` or an `Environment`, which promise that they are the host's.
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
    /// Appends the words of the host's box that this is, if it is one.
    fn copy_box(self, out: &mut Vec<u64>) -> Option<HostTag> {
        match self.value {
            Value::Image(term) => term.copy_host_box(out),
            _ => None,
        }
    }
}

/// The empty list.
pub(crate) const EMPTY_LIST: u64 = NIL;

/// What equality and order of terms depend on, and room to find them out.
pub(crate) struct Comparer {
    pub(crate) zeros: Zeros,
    pub(crate) left: Vec<u8>,
    pub(crate) right: Vec<u8>,
    /// Of maps that this run has made. Most runs make none that are keys of others.
    pub(crate) fingerprints: Option<Box<Fingerprints>>,
}
