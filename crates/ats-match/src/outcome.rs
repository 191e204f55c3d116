//! The result of a run, and its conversion to a term of another host.

use crate::run_term::RunTerm;
use crate::spec::Words;
use crate::value::{Parts, Value, ValueArena};
use ats_term::image::{Host, HostSink, Object, Scratch, decode, decode_object};
use ats_term::term_ref::{TermRef, is_larger};

/// The result of a clause that matched. It lives until the machine runs again.
pub struct Outcome<'r, H> {
    result: Result<RunTerm<'r, H>, Object<'r, H>>,
    true_word: u64,
    arena: &'r ValueArena<'r, H>,
    /// The number of words of the object and of all constants.
    words: usize,
}

impl<H: Host> std::fmt::Debug for Outcome<'_, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Outcome").field(&self.term()).finish()
    }
}

impl<'r, H: Host> Outcome<'r, H> {
    pub(crate) fn object(object: Object<'r, H>, arena: &'r ValueArena<'r, H>) -> Self {
        Outcome {
            words: object.len_words(),
            result: Err(object),
            // 0 is no word of a term, so no object compares equal to it.
            true_word: 0,
            arena,
        }
    }

    /// Wraps a result. `most_words` is the total size of all terms that the result can share parts
    /// with.
    pub(crate) fn value(term: RunTerm<'r, H>, words: Words, most_words: usize) -> Self {
        Outcome {
            result: Ok(term),
            true_word: words.true_,
            arena: term.arena,
            words: most_words,
        }
    }

    /// Returns `true` if the result is much larger than `most` words. O(1) if the object is not.
    #[inline]
    pub fn is_larger(&self, most: usize) -> bool {
        self.words > most && self.is_larger_than_most(most)
    }

    #[cold]
    fn is_larger_than_most(&self, most: usize) -> bool {
        match self.result {
            Ok(term) => is_larger(term, most),
            Err(_) => true,
        }
    }

    /// Returns `true` if the result is the atom `true`. O(1).
    #[inline]
    pub fn is_true(&self) -> bool {
        matches!(&self.result, Ok(term) if term.immediate() == Some(self.true_word))
    }

    /// Returns the object, if the result is the whole object (`'$_'`). O(1).
    #[inline]
    pub fn as_object(&self) -> Option<Object<'r, H>> {
        self.result.as_ref().err().copied()
    }

    /// Returns the result as a term, from which keys and images can be made. O(number of elements
    /// of the object).
    pub fn term(&self) -> RunTerm<'r, H> {
        match self.result {
            Ok(term) => term,
            Err(object) => RunTerm {
                value: Value::of(object.term()),
                arena: self.arena,
            },
        }
    }

    /// Builds the result. O(its size); not recursive.
    #[inline]
    pub fn write<S: HostSink<H>>(&self, sink: &mut S, writer: &mut Writer<S::Term>) -> S::Term {
        match &self.result {
            // A term that the run has not made needs no stack here.
            Ok(term) => match term.value {
                Value::Word(word) => sink.immediate(word),
                Value::Image(image) => decode(image, sink, &mut writer.scratch),
                _ => writer.write(*term, sink),
            },
            Err(object) => decode_object(*object, sink, &mut writer.scratch),
        }
    }
}

/// Stacks for [`Outcome::write`], kept between calls to save their allocation.
pub struct Writer<T> {
    scratch: Scratch<T>,
    terms: Vec<T>,
    frames: Vec<Frame>,
}

/// A term made by the run, while it is being built.
struct Frame {
    shape: Shape,
    parts: Parts,
    /// Number of parts already built.
    done: usize,
    /// Position of the first built part on the stack of terms.
    terms: usize,
}

#[derive(Clone, Copy)]
enum Shape {
    Tuple,
    List,
    Map,
}

/// Number of entries above which a stack is freed after use.
const KEEP: usize = 1 << 12;

impl<T> Writer<T> {
    /// Creates empty stacks. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Writer {
            scratch: Scratch::new(),
            terms: Vec::new(),
            frames: Vec::new(),
        }
    }
}

impl<T> Default for Writer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> std::fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<T> Writer<T> {
    /// Frees stacks that a huge term has blown up. Meant to be called after each use.
    pub fn tidy(&mut self) {
        self.scratch.tidy();
        if self.terms.capacity().max(self.frames.capacity()) > KEEP {
            self.terms = Vec::new();
            self.frames = Vec::new();
        }
    }
}

impl<T: Copy> Writer<T> {
    /// Builds a term.
    fn write<H: Host, S: HostSink<H, Term = T>>(
        &mut self,
        term: RunTerm<'_, H>,
        sink: &mut S,
    ) -> T {
        self.terms.clear();
        self.terms.shrink_to(KEEP);
        if let Some(tuple) = self.flat_tuple(term, sink) {
            return tuple;
        }
        self.frames.clear();
        self.frames.shrink_to(KEEP);
        let arena = term.arena;
        let mut current = term.value;
        loop {
            let mut built = match self.open(current) {
                Some(frame) => {
                    current = arena.part(frame.parts, 0);
                    self.frames.push(frame);
                    continue;
                }
                None => self.leaf(arena.term(current), sink),
            };
            // Pass a finished term to the term around it, and that one on if it is now complete.
            current = loop {
                let Some(frame) = self.frames.last_mut() else {
                    return built;
                };
                self.terms.push(built);
                frame.done += 1;
                if frame.done < frame.parts.len() {
                    break arena.part(frame.parts, frame.done);
                }
                built = build(frame.shape, &self.terms[frame.terms..], sink);
                self.terms.truncate(frame.terms);
                self.frames.pop();
            };
        }
    }

    /// Builds a tuple none of whose parts the run has made.
    fn flat_tuple<H: Host, S: HostSink<H, Term = T>>(
        &mut self,
        term: RunTerm<'_, H>,
        sink: &mut S,
    ) -> Option<T> {
        let Value::Tuple(parts) = term.value else {
            return None;
        };
        let parts = term.arena.parts_of(parts);
        let is_made = |part: &Value<'_, H>| {
            matches!(part, Value::Tuple(_) | Value::List(_) | Value::Map { .. })
        };
        if parts.iter().any(is_made) {
            return None;
        }
        for part in parts {
            let built = self.leaf(term.arena.term(*part), sink);
            self.terms.push(built);
        }
        Some(sink.tuple(&self.terms))
    }

    /// Returns the frame of a made term that has parts.
    fn open<H: Host>(&self, value: Value<'_, H>) -> Option<Frame> {
        let (shape, parts) = match value {
            Value::Tuple(parts) => (Shape::Tuple, parts),
            Value::List(parts) => (Shape::List, parts.and_tail()),
            Value::Map { keys } => (Shape::Map, keys.and_values()),
            _ => return None,
        };
        (parts.len() > 0).then_some(Frame {
            shape,
            parts,
            done: 0,
            terms: self.terms.len(),
        })
    }

    fn leaf<H: Host, S: HostSink<H, Term = T>>(&mut self, term: RunTerm<'_, H>, sink: &mut S) -> T {
        match term.value {
            Value::Word(word) => sink.immediate(word),
            Value::Wide(value) => sink.big(value < 0, &value.unsigned_abs().to_le_bytes()),
            Value::Float(value) => sink.float(value),
            Value::Image(term) => decode(term, sink, &mut self.scratch),
            Value::Big(_) => term.with_big(|negative, magnitude| sink.big(negative, magnitude)),
            Value::Bytes(_) => term.with_bits(|bytes| sink.bits(bytes, 8 * bytes.len())),
            Value::Tuple(_) => sink.tuple(&[]),
            Value::Map { .. } => sink.map(&[], &[]),
            Value::List(_) => unreachable!("match: a list has at least a tail"),
        }
    }
}

fn build<S: ats_term::TermSink>(shape: Shape, parts: &[S::Term], sink: &mut S) -> S::Term {
    match shape {
        Shape::Tuple => sink.tuple(parts),
        Shape::Map => {
            let (keys, values) = parts.split_at(parts.len() / 2);
            sink.map(keys, values)
        }
        Shape::List => {
            let (&tail, elements) = parts.split_last().expect("match: a list without a tail");
            let cons = |tail, &head| sink.cons(head, tail);
            elements.iter().rev().fold(tail, cons)
        }
    }
}
