//! The proof that a specification keeps the keys of objects.
//!
//! A caller that replaces objects by the results of a specification must know that the results have
//! the same keys. `ets` demands a proof from the text of the specification alone. This
//! module demands the same proof: a specification is refused if the proof fails, even if it would
//! in fact keep every key.

use crate::parse::variable;
use crate::spec::Spec;
use ats_term::Zeros;
use ats_term::image::{Host, ImageRef, Immediate, Slots, View, term_eq};
use ats_term::term_ref::{Kind, TermRef};

impl<H: Host> Spec<H> {
    /// Returns `true` if every result has the key of its object, which is element `position`,
    /// counted from 1. O(size of the keys in the specification); not recursive.
    ///
    /// The body must be one expression, and either `'$_'`; or `{const, Tuple}` or `{{...}}` whose
    /// key says the same as the key of the head does; or `{{...}}` whose key is
    /// `{element, Position, '$_'}`.
    #[must_use]
    pub fn keeps_key(&self, position: usize) -> bool {
        (0..self.clauses().len()).all(|clause| {
            let clause = self.clause_term(clause);
            let proof = Proof {
                position,
                zeros: self.zeros(),
            };
            proof.clause(clause.element(0), clause.element(2))
        })
    }
}

struct Proof {
    position: usize,
    zeros: Zeros,
}

/// Comparisons left to do, kept on a stack.
enum Task<'a, H> {
    /// A part of the head's key, and the matching part of the body's key.
    Same(ImageRef<'a, H>, ImageRef<'a, H>),
    /// End of a part of the body that is taken verbatim.
    EndOfConstant,
}

impl Proof {
    fn clause<H: Host>(&self, head: ImageRef<'_, H>, body: ImageRef<'_, H>) -> bool {
        let View::List { elements, .. } = body.view() else {
            return false;
        };
        let Some(only) = elements.get(0).filter(|_| elements.len() == 1) else {
            return false;
        };
        if is_atom(only, "$_") {
            return true;
        }
        let (Some(key), Some((result, is_constant))) = (self.key(head), constructed_term(only))
        else {
            return false;
        };
        let Some(new_key) = self.key(result) else {
            return false;
        };
        self.same(key, new_key, is_constant) || (!is_constant && self.is_key_of_object(new_key))
    }

    /// Returns the key of a tuple that has one.
    fn key<'a, H: Host>(&self, tuple: ImageRef<'a, H>) -> Option<ImageRef<'a, H>> {
        match tuple.view() {
            View::Tuple(elements) => elements.get(self.position.checked_sub(1)?),
            _ => None,
        }
    }

    /// Returns `true` if an expression is `{element, Position, '$_'}`.
    fn is_key_of_object<H: Host>(&self, expression: ImageRef<'_, H>) -> bool {
        match parts(expression) {
            Some([name, position, object]) => {
                is_atom(name, "element")
                    && position.as_small() == i64::try_from(self.position).ok()
                    && is_atom(object, "$_")
            }
            _ => false,
        }
    }

    /// Returns `true` if an expression always has the value of the part of the key that this
    /// pattern matches.
    fn same<H: Host>(
        &self,
        pattern: ImageRef<'_, H>,
        expression: ImageRef<'_, H>,
        mut is_constant: bool,
    ) -> bool {
        let mut tasks = vec![Task::Same(pattern, expression)];
        while let Some(task) = tasks.pop() {
            let (pattern, expression) = match task {
                Task::Same(pattern, expression) => (pattern, expression),
                Task::EndOfConstant => {
                    is_constant = false;
                    continue;
                }
            };
            let proved = match expression.kind() {
                Kind::Cons(head, tail) => match pattern.kind() {
                    Kind::Cons(first, rest) => {
                        tasks.extend([Task::Same(rest, tail), Task::Same(first, head)]);
                        true
                    }
                    _ => false,
                },
                Kind::Tuple(_) if is_constant => same_elements(pattern, expression, &mut tasks),
                Kind::Tuple(_) => match constructed_term(expression) {
                    Some((constant, true)) => {
                        is_constant = true;
                        tasks.extend([Task::EndOfConstant, Task::Same(pattern, constant)]);
                        true
                    }
                    Some((made, false)) => same_elements(pattern, made, &mut tasks),
                    None => false,
                },
                // The map that was matched may have further pairs.
                Kind::Map(_) => false,
                _ if expression.immediate().is_some() => {
                    same_immediate(pattern, expression, is_constant)
                }
                _ => term_eq(pattern, expression, self.zeros),
            };
            if !proved {
                return false;
            }
        }
        true
    }
}

fn same_elements<'a, H: Host>(
    pattern: ImageRef<'a, H>,
    tuple: ImageRef<'a, H>,
    tasks: &mut Vec<Task<'a, H>>,
) -> bool {
    match (pattern.view(), tuple.view()) {
        (View::Tuple(patterns), View::Tuple(elements)) if patterns.len() == elements.len() => {
            tasks.extend(patterns.iter().zip(elements).map(|(p, e)| Task::Same(p, e)));
            true
        }
        _ => false,
    }
}

/// Compares immediates: a variable keeps its value if the expression names the same variable;
/// special atoms never do.
fn same_immediate<H: Host>(
    pattern: ImageRef<'_, H>,
    expression: ImageRef<'_, H>,
    is_constant: bool,
) -> bool {
    pattern.immediate() == expression.immediate()
        && !["_", "$$", "$_"].iter().any(|name| is_atom(pattern, name))
        && !(is_constant && variable(pattern).is_some())
}

/// Returns the term inside `{const, Term}` or `{{...}}`, and `true` if it is taken verbatim.
fn constructed_term<H: Host>(expression: ImageRef<'_, H>) -> Option<(ImageRef<'_, H>, bool)> {
    let View::Tuple(elements) = expression.view() else {
        return None;
    };
    match elements.len() {
        1 => only_tuple(elements).map(|tuple| (tuple, false)),
        2 => {
            let (name, term) = (elements.get(0)?, elements.get(1)?);
            is_atom(name, "const").then_some((term, true))
        }
        _ => None,
    }
}

fn only_tuple<H: Host>(elements: Slots<'_, H>) -> Option<ImageRef<'_, H>> {
    let only = elements.get(0)?;
    matches!(only.view(), View::Tuple(_)).then_some(only)
}

/// Returns the elements of a tuple of three.
fn parts<H: Host>(term: ImageRef<'_, H>) -> Option<[ImageRef<'_, H>; 3]> {
    match term.view() {
        View::Tuple(elements) if elements.len() == 3 => {
            Some([elements.get(0)?, elements.get(1)?, elements.get(2)?])
        }
        _ => None,
    }
}

fn is_atom<H: Host>(term: ImageRef<'_, H>, name: &str) -> bool {
    match term.view() {
        View::Immediate(Immediate::Atom(_)) => term.with_atom(|text| text == name),
        _ => false,
    }
}
