//! Conversion of guards to cases.
//!
//! A guard lets an object pass only if its value is `true`, and if it raises an exception the
//! object does not pass. So two questions are enough: which cases hold if an expression is `true`,
//! and which if it is `false`. In both cases its arguments had values, which limits the types of
//! some of them.

use super::cases::Cases;
use super::context::PlanContext;
use super::head::Head;
use super::interval::Interval;
use super::outline::Front;
use super::range::Ranges;
use super::relation::Relation;
use super::types::{argument_classes, test_classes};
use crate::function::Function;
use crate::spec::{Constant, Expression, ExpressionId, Range, Spec};
use ats_term::image::Host;
use ats_term::order::{Class, binary_prefix_bounds};
use ats_term::{Kind, Term, TermRef};

/// Number of alternations between "all of" and "one of" below which guards are ignored.
const MOST_NESTED: usize = 64;

/// Cost in steps of visiting a simple guard, or of adding a condition to each range of a case.
const CASE_STEPS: usize = 64;

/// Number of ranges visited in one step when another case is added.
const RANGES_PER_STEP: usize = 16;

/// Nesting of calls below which calls and their arguments are ignored.
const MOST_CALLS: usize = 32;

/// The analysis of the guards of one clause.
pub(super) struct Guards<'s, H: Host> {
    spec: &'s Spec<H>,
    context: &'s PlanContext<'s, H>,
    head: &'s Head<'s, H>,
}

/// An expression, and the truth value that it is assumed to have.
type Claim = (ExpressionId, bool);

/// Ways in which a claim consists of others.
enum Form {
    All(Range<ExpressionId>, bool),
    Any(Range<ExpressionId>, bool),
    Simple,
}

impl<'s, H: Host> Guards<'s, H> {
    pub(super) fn new(context: &'s PlanContext<'s, H>, head: &'s Head<'s, H>) -> Self {
        Guards {
            spec: context.spec(),
            context,
            head,
        }
    }

    /// Returns the cases that hold if all these guards are `true`.
    pub(super) fn cases(&self, guards: Range<ExpressionId>) -> Cases {
        self.all(guards.iter().rev().map(|guard| (guard, true)).collect(), 0)
    }

    /// Returns the cases in which all these claims hold. Calls [`any`](Self::any), which calls it
    /// again, `depth` times in all.
    fn all(&self, mut claims: Vec<Claim>, depth: usize) -> Cases {
        let mut cases = Cases::everything();
        while let Some((expression, value)) = claims.pop()
            && !cases.is_nothing()
        {
            let more = match self.form(expression, value) {
                Form::All(parts, value) => {
                    claims.extend(parts.iter().rev().map(|part| (part, value)));
                    continue;
                }
                Form::Any(..) if depth == MOST_NESTED => continue,
                Form::Any(..) => self.any(vec![(expression, value)], depth + 1),
                Form::Simple => self.simple(expression, value),
            };
            if self.context.spend_on_guards(cases.size() * CASE_STEPS) {
                cases = cases.and(more);
            }
        }
        cases
    }

    /// Returns the cases in which one of these claims holds.
    fn any(&self, mut claims: Vec<Claim>, depth: usize) -> Cases {
        let mut cases = Cases::nothing();
        while let Some((expression, value)) = claims.pop()
            && !cases.is_everything()
        {
            let more = match self.form(expression, value) {
                Form::Any(parts, value) => {
                    claims.extend(parts.iter().rev().map(|part| (part, value)));
                    continue;
                }
                Form::All(..) if depth == MOST_NESTED => Cases::everything(),
                Form::All(..) => self.all(vec![(expression, value)], depth + 1),
                Form::Simple => self.simple(expression, value),
            };
            if !self.context.spend_on_guards(cases.size() / RANGES_PER_STEP) {
                return Cases::everything();
            }
            cases = cases.or(more);
        }
        cases
    }

    fn form(&self, expression: ExpressionId, value: bool) -> Form {
        match (self.spec.expression(expression), value) {
            (Expression::And(parts) | Expression::AndAlso(parts), true)
            | (Expression::Or(parts) | Expression::OrElse(parts), false) => Form::All(parts, value),
            (Expression::And(parts) | Expression::AndAlso(parts), false)
            | (Expression::Or(parts) | Expression::OrElse(parts), true) => Form::Any(parts, value),
            (Expression::Call(Function::Not, argument), _) => Form::All(argument, !value),
            _ => Form::Simple,
        }
    }

    /// Returns the cases that hold if the expression has this truth value.
    fn simple(&self, expression: ExpressionId, value: bool) -> Cases {
        if !self.context.spend_on_guards(CASE_STEPS) {
            return Cases::everything();
        }
        match self.spec.expression(expression) {
            Expression::Constant(constant) => {
                let words = self.spec.words();
                let wanted = if value { words.true_ } else { words.false_ };
                match self.spec.constant(constant).immediate() {
                    Some(word) if word == wanted => Cases::everything(),
                    _ => Cases::nothing(),
                }
            }
            Expression::Variable(_) => self.limit(expression, Ranges::classes(&[Class::Atom])),
            Expression::Call(function, arguments) => {
                let cases = self.types(expression);
                let relation = if value {
                    Relation::of(function)
                } else {
                    Relation::of_negated(function)
                };
                cases.and(match relation {
                    Some(relation) => self.comparison(relation, arguments),
                    None => self.test(function, arguments, value),
                })
            }
            // Tuples, lists and maps are never booleans.
            Expression::Tuple(_) | Expression::List { .. } | Expression::Map { .. } => {
                Cases::nothing()
            }
            _ => Cases::everything(),
        }
    }

    fn comparison(&self, relation: Relation, arguments: Range<ExpressionId>) -> Cases {
        let (left, right) = (arguments.get(0), arguments.get(1));
        if relation == Relation::Different {
            return Cases::everything();
        }
        if let Some(constant) = self.constant(right) {
            self.cases_of_relation(left, relation, constant, right)
        } else if let Some(constant) = self.constant(left) {
            self.cases_of_relation(right, relation.flip(), constant, left)
        } else {
            Cases::everything()
        }
    }

    /// Returns the cases that hold if the value of an expression has this relation to a constant,
    /// the value of the expression `source`.
    fn cases_of_relation(
        &self,
        expression: ExpressionId,
        relation: Relation,
        constant: Front,
        source: ExpressionId,
    ) -> Cases {
        if let Expression::Call(function, arguments) = self.spec.expression(expression)
            && relation.is_equality()
        {
            match function {
                Function::TupleSize => {
                    let size = self.head.small_constant(source);
                    return match size.and_then(|size| usize::try_from(size).ok()) {
                        Some(size) => self.limit(arguments.get(0), self.tuples(size)),
                        None => Cases::everything(),
                    };
                }
                Function::BinaryPart | Function::BinaryPartOf if self.is_from_start(arguments) => {
                    return match self.binary_prefix(source) {
                        Some(ranges) => self.limit(arguments.get(0), ranges),
                        None => Cases::everything(),
                    };
                }
                _ => {}
            }
        }
        self.limit(expression, relation.ranges(constant))
    }

    /// Returns the cases that hold if the value of an expression is in these ranges.
    fn limit(&self, mut expression: ExpressionId, mut ranges: Ranges) -> Cases {
        for _ in 0..MOST_CALLS {
            if let Some(subject) = self.head.subject(expression) {
                return Cases::one(subject, ranges);
            }
            let Expression::Call(Function::Hd, argument) = self.spec.expression(expression) else {
                break;
            };
            let mut front = Front::default();
            front.cons(self.context);
            ranges = ranges.behind(&front);
            expression = argument.get(0);
        }
        Cases::everything()
    }

    /// Returns the cases that hold if a call other than a comparison has this truth value.
    fn test(&self, function: Function, arguments: Range<ExpressionId>, value: bool) -> Cases {
        let Some((classes, exact)) = test_classes(function) else {
            return Cases::everything();
        };
        let ranges = Ranges::classes(classes);
        let ranges = if value && function == Function::IsRecord {
            self.records(arguments).unwrap_or(ranges)
        } else if value {
            ranges
        } else if exact {
            ranges.complement()
        } else {
            return Cases::everything();
        };
        self.limit(arguments.get(0), ranges)
    }

    /// Returns the ranges of tuples with a given size and first element, as `is_record/3` tests
    /// them.
    fn records(&self, arguments: Range<ExpressionId>) -> Option<Ranges> {
        let Expression::Constant(tag) = self.spec.expression(arguments.get(1)) else {
            return None;
        };
        let size = usize::try_from(self.head.small_constant(arguments.get(2))?).ok()?;
        if size == 0 || !matches!(self.spec.constant(tag).kind(), Kind::Atom) {
            return None;
        }
        let mut front = Front::default();
        front.tuple(size, self.context);
        front.constant(tag, self.context);
        Some(Ranges::one(Interval::prefix(&front)))
    }

    fn tuples(&self, size: usize) -> Ranges {
        let mut front = Front::default();
        front.tuple(size, self.context);
        Ranges::one(Interval::prefix(&front))
    }

    /// Returns `true` if a call of `binary_part` takes the first bytes.
    fn is_from_start(&self, arguments: Range<ExpressionId>) -> bool {
        if arguments.len() == 3 {
            return self.head.small_constant(arguments.get(1)) == Some(0);
        }
        match self.spec.expression(arguments.get(1)) {
            Expression::Tuple(parts) if parts.len() == 2 => {
                self.head.small_constant(parts.get(0)) == Some(0)
            }
            Expression::Constant(constant) => {
                let constant = self.spec.constant(constant);
                matches!(constant.kind(), Kind::Tuple(2))
                    && constant.element(0).as_small() == Some(0)
            }
            _ => false,
        }
    }

    /// Returns the ranges of all binaries that begin with the binary that `source` evaluates to.
    fn binary_prefix(&self, source: ExpressionId) -> Option<Ranges> {
        let Expression::Constant(constant) = self.spec.expression(source) else {
            return None;
        };
        let binary = self.spec.constant(constant);
        match binary.kind() {
            Kind::Bits(bits) if bits % 8 == 0 => {
                let (from, to) = binary.with_bits(binary_prefix_bounds);
                Some(Ranges::one(Interval::between(
                    Front::begins_with(constant, from),
                    Front::begins_with(constant, to),
                )))
            }
            _ => None,
        }
    }

    /// Returns the cases that hold because the arguments of all calls in an expression had the
    /// right types.
    fn types(&self, expression: ExpressionId) -> Cases {
        let mut cases = Cases::everything();
        let mut calls = vec![(expression, 0)];
        while let Some((call, depth)) = calls.pop() {
            let Expression::Call(function, arguments) = self.spec.expression(call) else {
                continue;
            };
            if depth == MOST_CALLS {
                continue;
            }
            for (at, argument) in arguments.iter().enumerate() {
                if let Some(classes) = argument_classes(function, at) {
                    cases = cases.and(self.limit(argument, Ranges::classes(classes)));
                }
                calls.push((argument, depth + 1));
            }
        }
        cases
    }

    /// Returns the value of an expression without variables, if it is cheap to find.
    fn constant(&self, expression: ExpressionId) -> Option<Front> {
        enum Todo {
            Value(ExpressionId),
            Cons,
        }
        let mut front = Front::default();
        let mut todo = vec![Todo::Value(expression)];
        while let Some(next) = todo.pop() {
            let Todo::Value(expression) = next else {
                front.cons(self.context);
                continue;
            };
            match self.spec.expression(expression) {
                Expression::Constant(constant) => front.constant(constant, self.context),
                Expression::Tuple(parts) => {
                    front.tuple(parts.len(), self.context);
                    todo.extend(parts.iter().rev().map(Todo::Value));
                }
                Expression::List { elements, tail } => {
                    todo.push(Todo::Value(tail));
                    let cells = elements.iter().rev();
                    todo.extend(cells.flat_map(|element| [Todo::Value(element), Todo::Cons]));
                }
                Expression::Call(..) => {
                    let number = self.integer(expression, 0)?;
                    front.number(Term::Int(number), self.context);
                }
                _ => return None,
            }
        }
        Some(front)
    }

    /// Returns the value of simple arithmetic on constants of 64 bits. Nested calls are followed up
    /// to a depth.
    fn integer(&self, expression: ExpressionId, depth: usize) -> Option<i64> {
        let (function, arguments) = match self.spec.expression(expression) {
            Expression::Constant(constant) => return integer_constant(self.spec, constant),
            Expression::Call(function, arguments)
                if depth < MOST_CALLS && !arguments.is_empty() =>
            {
                (function, arguments)
            }
            _ => return None,
        };
        let first = self.integer(arguments.get(0), depth + 1)?;
        match (function, arguments.len()) {
            (Function::Plus, _) => return Some(first),
            (Function::Negate, _) => return first.checked_neg(),
            (_, 2) => {}
            _ => return None,
        }
        let second = self.integer(arguments.get(1), depth + 1)?;
        match function {
            Function::Add => first.checked_add(second),
            Function::Subtract => first.checked_sub(second),
            Function::Multiply => first.checked_mul(second),
            Function::Div => first.checked_div(second),
            Function::Rem => first.checked_rem(second),
            _ => None,
        }
    }
}

fn integer_constant<H: Host>(spec: &Spec<H>, constant: Constant) -> Option<i64> {
    spec.constant(constant).as_i64()
}
