//! From a term to a [`Spec`].
//!
//! The clauses are copied into images first, and read there, so that constants need no copies of their own.
//! Work that waits is kept on explicit stacks: a node whose place in the arena is reserved, and its term.

mod expression;
mod head;
mod parser;

pub(crate) use parser::variable;

use crate::error::Error;
use crate::function::FunctionSet;
use crate::owned_image::OwnedImage;
use crate::spec::{Clause, ExpressionId, Range, Spec, Words};
use ats_term::image::{Host, HostTerm, ImageBuilder, ImageRef, Immediate, View};
use ats_term::{Kind, Zeros};
use parser::{Parser, index};
use std::collections::HashMap;

/// The options on which the meaning of a specification depends, besides the term.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The rule for zeros: floats that are the same term. The same as for the tables it shall be
    /// run on.
    pub zeros: Zeros,
    /// The functions that it may call.
    pub functions: FunctionSet,
    /// `true` if `binary_part` refuses bitstrings that end within a byte, as it does since OTP 27.
    /// Otherwise it takes their whole bytes for a binary.
    pub whole_bytes: bool,
    /// The atoms of the host.
    pub words: Words,
}

/// Reads a match specification: a proper list of at least one clause `{Head, Guards, Body}`.
///
/// O(size of the term), plus the sorting of maps; not recursive.
///
/// # Errors
/// If it is none; see [`Error`].
pub fn parse<T: HostTerm>(term: T, options: &Options) -> Result<Spec<T::Host>, Error> {
    let images = copy_clauses(term, options.zeros)?;
    let mut spec = Spec {
        clauses: Vec::with_capacity(images.len()),
        images: Vec::new(),
        patterns: Vec::new(),
        expressions: Vec::new(),
        map_keys: Vec::new(),
        variables: Vec::new(),
        words: options.words,
        zeros: options.zeros,
        whole_bytes: options.whole_bytes,
    };
    for (number, image) in images.iter().enumerate() {
        let clause = Parser {
            spec: &mut spec,
            functions: options.functions,
            image: index(number)?,
            slots: HashMap::new(),
        }
        .clause(image)?;
        spec.clauses.push(clause);
    }
    spec.images = images;
    Ok(spec)
}

fn copy_clauses<T: HostTerm>(list: T, zeros: Zeros) -> Result<Vec<OwnedImage<T::Host>>, Error> {
    let (mut builder, mut images) = (ImageBuilder::new(zeros), Vec::new());
    let mut rest = list;
    while let Kind::Cons(clause, tail) = rest.kind() {
        let Kind::Tuple(3) = clause.kind() else {
            return Err(Error::NotAClause);
        };
        builder.encode_object(clause).expect("a tuple");
        images.push(OwnedImage::new(&builder.take()));
        rest = tail;
    }
    match rest.kind() {
        _ if images.is_empty() => Err(Error::NotAList),
        Kind::Nil => Ok(images),
        _ => Err(Error::NotAProperList),
    }
}

impl<H: Host> Parser<'_, H> {
    fn clause(mut self, image: &OwnedImage<H>) -> Result<Clause, Error> {
        let clause = image.object();
        let variables = self.find_variables(clause.element(0))?;
        let head = self.head(clause.element(0))?;
        let guards = self.expressions(clause.element(1))?;
        let body = self.expressions(clause.element(2))?;
        if body.is_empty() {
            return Err(Error::NoBody);
        }
        Ok(Clause {
            head,
            guards,
            body,
            variables,
        })
    }

    /// Reads a proper list of expressions.
    fn expressions(&mut self, list: ImageRef<'_, H>) -> Result<Range<ExpressionId>, Error> {
        match list.view() {
            View::Immediate(Immediate::Nil) => self.read_all(&[]),
            View::List { elements, tail } => {
                let elements: Vec<_> = elements.iter().collect();
                let range = self.read_all(&elements)?;
                match tail.view() {
                    View::Immediate(Immediate::Nil) => Ok(range),
                    _ => Err(Error::ExpressionsNotProper),
                }
            }
            _ => Err(Error::ExpressionsNotAList),
        }
    }
}
