//! The parser: reads a term into a [`Spec`].
//!
//! The clauses are first copied into images and parsed there, so that constants need no copies of
//! their own. Explicit stacks hold the pending work: a node reserved in the arena, and its term.

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

/// Options that the meaning of a specification depends on.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The rule for zeros, which must be that of the tables the specification is run on.
    pub zeros: Zeros,
    /// The functions that the specification may call.
    pub functions: FunctionSet,
    /// `true` if `binary_part` refuses bitstrings that end within a byte, as it does since OTP 27.
    /// Otherwise it takes their whole bytes for a binary.
    pub whole_bytes: bool,
    /// The atoms of the host.
    pub words: Words,
}

/// Parses a match specification: a proper list of at least one clause `{Head, Guards, Body}`.
///
/// O(size of the term), plus the sorting of maps; not recursive.
///
/// # Errors
/// Returns an [`Error`] if the term is no match specification.
pub fn parse<T: HostTerm>(term: T, options: &Options) -> Result<Spec<T::Host>, Error> {
    read(copy_clauses(term, options.zeros)?, options)
}

/// Reads the clauses that stand in these images, one in each.
pub(crate) fn read<H: Host>(
    images: Vec<OwnedImage<H>>,
    options: &Options,
) -> Result<Spec<H>, Error> {
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

    /// Parses a proper list of expressions.
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
