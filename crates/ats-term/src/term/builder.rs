//! Owned terms built through [`TermSink`].

use std::fmt;

use super::{Bits, Float, List, Map, Term, Tuple};
use crate::atom::Atom;
use crate::immediate::Immediate;
use crate::term_ref::TermSink;

/// A term inside a [`TermBuilder`]. It is meaningless to another builder, and to this one after
/// [`TermBuilder::finish`].
#[derive(Clone, Copy, Debug)]
pub struct Built(usize);

/// Reasons why a [`TermBuilder`] cannot build a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A word that is no immediate, or one that only the Erlang VM understands.
    UnknownWord(u64),
    /// A float that is not finite.
    NotFinite,
    /// More bits than bytes.
    BitsTooShort,
    /// Keys of a map that are not distinct, or whose number differs from that of the values.
    BadMap,
    /// A term that this builder has not built.
    UnknownTerm,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::UnknownWord(word) => write!(f, "unknown immediate word {word:#x}"),
            BuildError::NotFinite => f.write_str("a float of Erlang is finite"),
            BuildError::BitsTooShort => f.write_str("a bitstring has fewer bytes than it needs"),
            BuildError::BadMap => f.write_str("the keys of a map are not distinct"),
            BuildError::UnknownTerm => f.write_str("a term of another builder"),
        }
    }
}

impl std::error::Error for BuildError {}

/// A builder of owned terms. It records the first failure, which [`TermBuilder::finish`] returns.
#[derive(Debug, Default)]
pub struct TermBuilder {
    terms: Vec<Term>,
    error: Option<BuildError>,
}

impl TermBuilder {
    /// Creates a builder without terms.
    #[must_use]
    pub fn new() -> TermBuilder {
        TermBuilder::default()
    }

    /// Takes a finished term out and drops all others, which makes the builder ready for the next.
    ///
    /// # Errors
    /// Returns the first failure since the last call.
    pub fn finish(&mut self, term: Built) -> Result<Term, BuildError> {
        let result = self.get(term);
        self.terms.clear();
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(result),
        }
    }

    /// Adds an existing term.
    pub fn add(&mut self, term: Term) -> Built {
        self.put(Ok(term))
    }

    fn get(&mut self, Built(index): Built) -> Term {
        let term = self
            .terms
            .get(index)
            .cloned()
            .ok_or(BuildError::UnknownTerm);
        self.note_failure(term)
    }

    fn get_all(&mut self, built: &[Built]) -> Vec<Term> {
        built.iter().map(|&term| self.get(term)).collect()
    }

    fn put(&mut self, term: Result<Term, BuildError>) -> Built {
        let term = self.note_failure(term);
        self.terms.push(term);
        Built(self.terms.len() - 1)
    }

    /// Records a failure, if it is one. The nil in its place is never visible, because `finish`
    /// fails.
    fn note_failure(&mut self, term: Result<Term, BuildError>) -> Term {
        term.unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            Term::Nil
        })
    }
}

fn from_word(word: u64) -> Option<Term> {
    match Immediate::from_word(word)? {
        Immediate::Small(value) => Some(Term::Int(value)),
        Immediate::Atom(number) => Atom::from_id(number).map(Term::Atom),
        Immediate::Nil => Some(Term::Nil),
        Immediate::LocalPid | Immediate::LocalPort => None,
    }
}

impl TermSink for TermBuilder {
    type Term = Built;

    fn immediate(&mut self, word: u64) -> Built {
        self.put(from_word(word).ok_or(BuildError::UnknownWord(word)))
    }

    fn big(&mut self, negative: bool, magnitude: &[u8]) -> Built {
        self.put(Ok(Term::integer(negative, magnitude)))
    }

    fn float(&mut self, value: f64) -> Built {
        self.put(
            Float::new(value)
                .map(Term::Float)
                .map_err(|_| BuildError::NotFinite),
        )
    }

    fn bits(&mut self, bytes: &[u8], bits: usize) -> Built {
        self.put(
            Bits::new(bytes, bits)
                .map(Term::Bits)
                .ok_or(BuildError::BitsTooShort),
        )
    }

    fn tuple(&mut self, elements: &[Built]) -> Built {
        let elements = self.get_all(elements);
        self.put(Ok(Term::Tuple(Tuple::new(elements))))
    }

    fn cons(&mut self, head: Built, tail: Built) -> Built {
        let cell = List::new(self.get(head), self.get(tail));
        self.put(Ok(Term::List(cell)))
    }

    fn map(&mut self, keys: &[Built], values: &[Built]) -> Built {
        let pairs: Vec<_> = self
            .get_all(keys)
            .into_iter()
            .zip(self.get_all(values))
            .collect();
        let complete = keys.len() == values.len();
        let map = if complete { Map::new(pairs).ok() } else { None };
        self.put(map.map(Term::Map).ok_or(BuildError::BadMap))
    }
}
