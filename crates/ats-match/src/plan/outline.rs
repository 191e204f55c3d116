//! The known front of a term, derived from head and guards.

use super::context::PlanContext;
use super::number::equal_numbers;
use crate::show::show;
use crate::spec::{Constant, Spec};
use ats_term::image::{Host, ImageRef};
use ats_term::order::{Class, Prefix, order_key};
use ats_term::{Kind, Term, TermRef, exact};

/// One part of an [`Outline`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Token {
    /// A tuple of so many elements, which follow.
    Tuple(usize),
    /// A list cell; head and tail follow.
    Cons,
    /// A constant of the specification.
    Constant(Constant, Equality),
    /// A number that was computed.
    Number(Term, Equality),
    /// Any term of this class. Only at the end.
    Class(Class),
    /// Any binary or bitstring that begins with this constant, a binary. Only at the end.
    BeginsWith(Constant),
}

/// The comparison by which a constant stands for terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equality {
    /// `=:=`
    Same,
    /// `==`
    Equal,
}

/// A term of which perhaps only the front is known: its parts from left to right, at any depth.
/// Missing parts can be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline(Vec<Token>);

impl Outline {
    /// Returns the parts. O(1).
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.0
    }

    pub(super) fn extend(&mut self, other: &Outline) {
        self.0.extend_from_slice(&other.0);
    }

    /// Returns the outline with every `=:=` replaced by `==`.
    pub(super) fn loosen(mut self) -> Outline {
        for token in &mut self.0 {
            if let Token::Constant(_, equality) | Token::Number(_, equality) = token {
                *equality = Equality::Equal;
            }
        }
        self
    }

    /// Returns the number of parts compared only by `==`.
    pub(super) fn looseness(&self) -> usize {
        let loose = |token: &&Token| {
            matches!(
                token,
                Token::Constant(_, Equality::Equal) | Token::Number(_, Equality::Equal)
            )
        };
        self.0.iter().filter(loose).count()
    }

    /// Returns the exact keys of all terms of a complete outline; `None` if there are more than
    /// `most`, or too many to enumerate. O(size * number of keys).
    pub(super) fn exact_keys<H: Host>(
        &self,
        spec: &Spec<H>,
        options: exact::Options,
        most: usize,
    ) -> Option<Vec<Vec<u8>>> {
        let parts = self.parts(spec)?;
        let mut count = 1usize;
        for part in &parts {
            if let Part::Choice(forms) = part {
                count = count
                    .checked_mul(forms.len())
                    .filter(|&count| count <= most)?;
            }
        }
        Some(
            (0..count)
                .map(|choice| exact_key(&parts, choice, options))
                .collect(),
        )
    }

    /// Returns the parts from which exact keys are written: terms, and choices between equal
    /// numbers.
    fn parts<'s, H: Host>(&self, spec: &'s Spec<H>) -> Option<Vec<Part<'s, H>>> {
        let mut parts = Vec::new();
        for token in &self.0 {
            match token {
                Token::Tuple(arity) => parts.push(Part::Tuple(*arity)),
                Token::Cons => parts.push(Part::Cons),
                Token::Constant(constant, Equality::Same) => {
                    parts.push(Part::Term(spec.constant(*constant)));
                }
                Token::Constant(constant, Equality::Equal) => {
                    unfold(spec.constant(*constant), &mut parts)?;
                }
                Token::Number(number, Equality::Same) => {
                    parts.push(Part::Choice(vec![number.clone()]));
                }
                Token::Number(number, Equality::Equal) => {
                    parts.push(Part::Choice(equal_numbers(number)));
                }
                Token::Class(_) | Token::BeginsWith(_) => return None,
            }
        }
        Some(parts)
    }

    /// Renders the term in Erlang's syntax, with `_` for unknown parts. Not recursive.
    #[must_use]
    pub fn show<H: Host>(&self, spec: &Spec<H>) -> String {
        const MOST: usize = 400;
        enum Todo {
            Term,
            Tail,
            Text(&'static str),
        }
        let (mut out, mut todo) = (String::new(), vec![Todo::Term]);
        let mut tokens = self.0.iter().peekable();
        while let Some(next) = todo.pop() {
            match next {
                Todo::Text(text) => out.push_str(text),
                Todo::Tail => match tokens.peek() {
                    Some(Token::Cons) => {
                        tokens.next();
                        out.push(',');
                        todo.extend([Todo::Tail, Todo::Term]);
                    }
                    Some(Token::Constant(constant, _)) if is_nil(spec.constant(*constant)) => {
                        tokens.next();
                    }
                    _ => {
                        out.push('|');
                        todo.push(Todo::Term);
                    }
                },
                Todo::Term => match tokens.next() {
                    None => out.push('_'),
                    Some(Token::Tuple(arity)) => {
                        out.push('{');
                        todo.push(Todo::Text("}"));
                        for i in (0..(*arity).min(MOST)).rev() {
                            todo.push(Todo::Term);
                            todo.extend((i > 0).then_some(Todo::Text(",")));
                        }
                    }
                    Some(Token::Cons) => {
                        out.push('[');
                        todo.extend([Todo::Text("]"), Todo::Tail, Todo::Term]);
                    }
                    Some(Token::Constant(constant, _)) => {
                        out.push_str(&show(spec.constant(*constant)));
                    }
                    Some(Token::Number(number, _)) => out.push_str(&show(number)),
                    Some(Token::Class(class)) => out.push_str(class_name(*class)),
                    Some(Token::BeginsWith(constant)) => {
                        out.push_str(&show(spec.constant(*constant)));
                        out.push_str("...");
                    }
                },
            }
            if out.len() > MOST {
                out.push_str("...");
                break;
            }
        }
        out
    }
}

fn is_nil<H: Host>(term: ImageRef<'_, H>) -> bool {
    matches!(term.kind(), Kind::Nil)
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Number => "number()",
        Class::Atom => "atom()",
        Class::Reference => "reference()",
        Class::Fun => "fun()",
        Class::Port => "port()",
        Class::Pid => "pid()",
        Class::Tuple => "tuple()",
        Class::Record => "record()",
        Class::Map => "map()",
        Class::Nil => "[]",
        Class::Cons => "[_|_]",
        Class::Bitstring => "bitstring()",
    }
}

enum Part<'s, H: Host> {
    Tuple(usize),
    Cons,
    Term(ImageRef<'s, H>),
    /// One of these equal numbers.
    Choice(Vec<Term>),
}

/// Appends the parts of a term that stands for all terms `==` to it. Returns `None` for terms whose
/// equals cannot be enumerated: maps, funs and native records.
fn unfold<'s, H: Host>(term: ImageRef<'s, H>, parts: &mut Vec<Part<'s, H>>) -> Option<()> {
    let mut todo = vec![term];
    while let Some(term) = todo.pop() {
        parts.push(match term.kind() {
            Kind::Tuple(arity) => {
                let first = todo.len();
                todo.extend((0..arity).map(|i| term.element(i)));
                todo[first..].reverse();
                Part::Tuple(arity)
            }
            Kind::Cons(head, tail) => {
                todo.extend([tail, head]);
                Part::Cons
            }
            Kind::Int(_) | Kind::Big | Kind::Float(_) => Part::Choice(equal_numbers(term)),
            Kind::Map(1..) | Kind::LocalFun | Kind::Opaque => return None,
            _ => Part::Term(term),
        });
    }
    Some(())
}

/// Writes one exact key: `number` selects a combination of the choices.
fn exact_key<H: Host>(
    parts: &[Part<'_, H>],
    mut number: usize,
    options: exact::Options,
) -> Vec<u8> {
    let mut writer = exact::Writer::new(options);
    for part in parts {
        match part {
            Part::Tuple(arity) => writer.tuple(*arity),
            Part::Cons => writer.cons(),
            Part::Term(term) => writer.term(*term),
            Part::Choice(forms) => {
                let form = number % forms.len();
                number /= forms.len();
                writer.term(&forms[form])
            }
        };
    }
    writer.into_bytes()
}

/// An outline, with the common front of its terms' order keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Front {
    pub(super) bytes: Vec<u8>,
    pub(super) outline: Outline,
}

impl Front {
    pub(super) fn tuple<H: Host>(&mut self, arity: usize, context: &PlanContext<'_, H>) {
        self.bytes
            .extend_from_slice(Prefix::new(context.spec().zeros()).tuple(arity).as_bytes());
        self.outline.0.push(Token::Tuple(arity));
    }

    pub(super) fn cons<H: Host>(&mut self, context: &PlanContext<'_, H>) {
        self.bytes
            .extend_from_slice(Prefix::new(context.spec().zeros()).cons().as_bytes());
        self.outline.0.push(Token::Cons);
    }

    pub(super) fn constant<H: Host>(&mut self, constant: Constant, context: &PlanContext<'_, H>) {
        let constant = context.name_of(constant);
        let spec = context.spec();
        order_key(spec.constant(constant), &mut self.bytes, spec.zeros());
        self.outline
            .0
            .push(Token::Constant(constant, Equality::Same));
    }

    pub(super) fn number<H: Host>(&mut self, number: Term, context: &PlanContext<'_, H>) {
        order_key(&number, &mut self.bytes, context.spec().zeros());
        self.outline.0.push(Token::Number(number, Equality::Same));
    }

    pub(super) fn of_class(class: Class, bytes: &[u8]) -> Front {
        Front {
            bytes: bytes.to_vec(),
            outline: Outline(vec![Token::Class(class)]),
        }
    }

    pub(super) fn begins_with(constant: Constant, bytes: Vec<u8>) -> Front {
        Front {
            bytes,
            outline: Outline(vec![Token::BeginsWith(constant)]),
        }
    }

    /// Appends the known bytes and outline of the next part.
    pub(super) fn append(&mut self, bytes: &[u8], outline: &Outline) {
        self.bytes.extend_from_slice(bytes);
        self.outline.extend(outline);
    }

    /// Returns the cost of a copy.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.outline.0.len()
    }
}
