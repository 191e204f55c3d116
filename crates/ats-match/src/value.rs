//! The values of expressions.
//!
//! A value is a word, or refers to the rest of it: in the image of the object or of a constant, or
//! in the [`ValueArena`] of terms that the run has made.

use ats_term::image::{Host, ImageRef, NIL, View, small_word};
use ats_term::{Integer, TermRef};
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
    /// A made tuple of these parts.
    Tuple(Parts),
    /// A made list: these elements, at least one, followed by the tail.
    List(Parts),
    /// A made map: distinct keys, followed by as many values.
    Map {
        /// The keys.
        keys: Parts,
    },
    /// A part of a binary, with this index in the arena.
    Bytes(u32),
}

/// Adjacent values in the arena.
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

    /// Returns the elements of a list and the tail behind them.
    pub(crate) fn and_tail(self) -> Parts {
        Parts {
            len: self.len + 1,
            ..self
        }
    }

    /// Returns the keys of a map and the values behind them.
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

    /// Returns the value of a small integer.
    #[inline]
    pub(crate) fn as_small(self) -> Option<i64> {
        match self {
            Value::Word(word) if word & 0xF == 0xF => Some(word as i64 >> 4),
            _ => None,
        }
    }
}

/// A number that is cheap to read.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
    Big,
}

/// The error of an arena whose indices are exhausted.
pub(crate) struct TooMany;

/// Terms made by a run.
pub(crate) struct ValueArena<'a, H> {
    parts: Vec<Value<'a, H>>,
    bigs: Vec<Integer>,
    slices: Vec<ByteSlice<'a, H>>,
}

/// A part of a binary that is not copied.
pub(crate) struct ByteSlice<'a, H> {
    binary: ImageRef<'a, H>,
    range: Range<usize>,
}

/// Number of entries above which a buffer is freed after use.
const KEEP: usize = 1 << 12;

/// Empties a buffer, and frees it if it is large.
#[inline]
pub(crate) fn empty<T>(buffer: &mut Vec<T>) {
    buffer.clear();
    if buffer.capacity() > KEEP {
        shrink(buffer);
    }
}

/// Frees most of an empty buffer. Apart, so that the common case saves no registers for it.
#[cold]
#[inline(never)]
fn shrink<T>(buffer: &mut Vec<T>) {
    buffer.shrink_to(KEEP);
}

impl<'a, H: Host> ValueArena<'a, H> {
    pub(crate) const fn new() -> Self {
        ValueArena {
            parts: Vec::new(),
            bigs: Vec::new(),
            slices: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        // Most runs make nothing.
        if !(self.parts.is_empty() && self.bigs.is_empty() && self.slices.is_empty()) {
            self.clear_used();
        }
    }

    #[inline(never)]
    fn clear_used(&mut self) {
        empty(&mut self.parts);
        empty(&mut self.bigs);
        empty(&mut self.slices);
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
        // Every position must fit 32 bits.
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

    /// Makes a list of these elements; the last of `parts` is the tail.
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

    /// Makes a map of these pairs, whose keys differ.
    pub(crate) fn map(
        &mut self,
        keys: &[Value<'a, H>],
        values: &[Value<'a, H>],
    ) -> Result<Value<'a, H>, TooMany> {
        let keys = self.push(keys)?;
        self.push(values)?;
        Ok(Value::Map { keys })
    }

    /// Makes a slice of a binary, or of a slice of one. The range must be in bounds.
    pub(crate) fn slice(&mut self, of: Value<'a, H>, range: Range<usize>) -> Option<Value<'a, H>> {
        let slice = match of {
            Value::Image(binary) => ByteSlice { binary, range },
            Value::Bytes(index) => {
                let ByteSlice { binary, range: all } = &self.slices[index as usize];
                ByteSlice {
                    binary: *binary,
                    range: all.start + range.start..all.start + range.end,
                }
            }
            _ => return None,
        };
        self.slices.push(slice);
        Some(Value::Bytes(self.slices.len() as u32 - 1))
    }

    /// Returns the length of a slice of a binary in bytes.
    pub(crate) fn slice_len(&self, index: u32) -> usize {
        self.slices[index as usize].range.len()
    }

    /// Lends the bytes of a slice of a binary.
    pub(crate) fn with_slice<R>(&self, index: u32, f: impl FnOnce(&[u8]) -> R) -> R {
        let ByteSlice { binary, range } = &self.slices[index as usize];
        binary.with_bits(|bytes| f(&bytes[range.clone()]))
    }

    pub(crate) fn big(&self, index: u32) -> &Integer {
        &self.bigs[index as usize]
    }

    pub(crate) fn elements(&self, parts: Parts) -> &[Value<'a, H>] {
        &self.parts[parts.range()]
    }

    pub(crate) fn parts_of(&self, parts: Parts) -> &[Value<'a, H>] {
        &self.parts[parts.range()]
    }

    /// Returns value `i` of the parts, from 0.
    pub(crate) fn part(&self, parts: Parts, i: usize) -> Value<'a, H> {
        self.parts[parts.range()][i]
    }

    pub(crate) fn map_values(&self, keys: Parts) -> &[Value<'a, H>] {
        &self.parts[keys.range().end..][..keys.len()]
    }

    /// Returns head and tail of a made list.
    pub(crate) fn head_and_tail(&self, list: Parts) -> (Value<'a, H>, Value<'a, H>) {
        let tail = match list.len {
            1 => self.parts[list.range().end],
            _ => Value::List(list.skip(1)),
        };
        (self.parts[list.range().start], tail)
    }

    /// Returns the tail of a made list.
    pub(crate) fn tail(&self, list: Parts) -> Value<'a, H> {
        self.parts[list.range().end]
    }

    /// Returns the number of words of an integer of more than 64 bits, else 0.
    pub(crate) fn words_of_big(&self, value: Value<'a, H>) -> usize {
        match value {
            Value::Big(index) => self.big(index).words(),
            Value::Image(term) => match term.view() {
                View::Big { magnitude, .. } => magnitude.len().div_ceil(8),
                _ => 0,
            },
            _ => 0,
        }
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
}

/// The empty list.
pub(crate) const EMPTY_LIST: u64 = NIL;
