//! The parser of guards and bodies.

use super::parser::{Parser, reserve, variable};
use crate::error::{Error, text};
use crate::function::{Function, is_trace_form, is_trace_function};
use crate::spec::{Constant, Expression, ExpressionId, Id, Range, Slot};
use ats_term::Zeros;
use ats_term::image::{Host, ImageRef, Immediate, Location, Slots, View};
use ats_term::order::{for_each_map, order_key};
use std::collections::HashMap;

/// A reserved node, and the term that it is made from.
type Task<'i, H> = (ExpressionId, ImageRef<'i, H>);

impl<H: Host> Parser<'_, H> {
    /// Parses sibling expressions.
    pub(super) fn read_all(
        &mut self,
        terms: &[ImageRef<'_, H>],
    ) -> Result<Range<ExpressionId>, Error> {
        let mut orders = Orders::of(terms);
        let first = self.spec.expressions.len();
        let mut tasks = Vec::new();
        let range = self.subexpressions(terms.iter().copied(), &mut tasks)?;
        // Origin of the term of each node, counted from `first`.
        let mut sources: Vec<Option<Source>> = vec![None; terms.len()];
        while let Some((id, term)) = tasks.pop() {
            let expression = self.expression(term, &mut tasks, &mut orders)?;
            self.spec.expressions[id.index()] = expression;
            sources.resize(self.spec.expressions.len() - first, None);
            sources[id.index() - first] = Some(Source::of(term));
        }
        self.fold_constants(first, &sources);
        Ok(range)
    }

    /// Reserves a node for each of these terms.
    fn subexpressions<'i>(
        &mut self,
        terms: impl ExactSizeIterator<Item = ImageRef<'i, H>>,
        tasks: &mut Vec<Task<'i, H>>,
    ) -> Result<Range<ExpressionId>, Error> {
        // A placeholder that is overwritten before it is read.
        let unread = Expression::WholeObject;
        let range = reserve(&mut self.spec.expressions, terms.len(), unread)?;
        tasks.extend(range.iter().zip(terms));
        Ok(range)
    }

    fn expression<'i>(
        &mut self,
        term: ImageRef<'i, H>,
        tasks: &mut Vec<Task<'i, H>>,
        orders: &mut Orders<'_, 'i, H>,
    ) -> Result<Expression, Error> {
        match term.view() {
            View::Immediate(Immediate::Atom(_)) => self.atom_expression(term),
            View::Tuple(elements) => self.tuple_expression(term, elements, tasks),
            View::List { elements, tail } => Ok(Expression::List {
                elements: self.subexpressions(elements.iter(), tasks)?,
                tail: self.subexpressions(std::iter::once(tail), tasks)?.get(0),
            }),
            View::Map { keys, values } => {
                let pairs = orders.pairs(term, keys, values, self.spec.zeros);
                self.map_expression(&pairs, tasks)
            }
            _ => Ok(Expression::Constant(self.constant(term))),
        }
    }

    fn atom_expression(&self, term: ImageRef<'_, H>) -> Result<Expression, Error> {
        if let Some(number) = variable(term) {
            let slot = self.slots.get(&number).ok_or(Error::Unbound(number))?;
            return Ok(Expression::Variable(Slot(*slot)));
        }
        Ok(with_atom(term, |text| match text {
            "$_" => Expression::WholeObject,
            "$$" => Expression::AllBindings,
            _ => Expression::Constant(self.constant(term)),
        }))
    }

    /// Parses a tuple: `{{...}}` makes a tuple, `{name, ...}` is a call.
    fn tuple_expression<'i>(
        &mut self,
        term: ImageRef<'i, H>,
        elements: Slots<'i, H>,
        tasks: &mut Vec<Task<'i, H>>,
    ) -> Result<Expression, Error> {
        if let Some(made) = made_tuple(elements) {
            return Ok(Expression::Tuple(self.subexpressions(made.iter(), tasks)?));
        }
        let mut parts = elements.iter();
        let name = parts.next().filter(|first| {
            let atom = matches!(first.view(), View::Immediate(Immediate::Atom(_)));
            atom && variable(*first).is_none()
        });
        match name {
            Some(name) => self.call(term, name, parts, tasks),
            None => Err(Error::NotACall(text(term))),
        }
    }

    fn call<'i>(
        &mut self,
        term: ImageRef<'i, H>,
        name: ImageRef<'i, H>,
        mut arguments: impl ExactSizeIterator<Item = ImageRef<'i, H>>,
        tasks: &mut Vec<Task<'i, H>>,
    ) -> Result<Expression, Error> {
        match with_atom(name, |name| Form::by_name(name, arguments.len())) {
            Form::Const if arguments.len() == 1 => {
                let constant = arguments.next().expect("one argument");
                Ok(Expression::Constant(self.constant(constant)))
            }
            Form::Const => Err(Error::ConstArguments(text(term))),
            Form::SelfPid if arguments.len() == 0 => Ok(Expression::SelfPid),
            Form::SelfPid => Err(Error::SelfArguments(text(term))),
            Form::Logical(form, _) if arguments.len() == 0 => Err(Error::NoArguments {
                form,
                expression: text(term),
            }),
            Form::Logical(_, make) => Ok(make(self.subexpressions(arguments, tasks)?)),
            Form::Trace => Err(Error::WrongDialect(with_atom(name, |name| name.into()))),
            Form::TraceFunction => Err(Error::OnlyForTrace {
                name: with_atom(name, |name| name.into()),
                arity: arguments.len(),
            }),
            Form::Function(function) if self.functions.contains(function) => {
                let arguments = self.subexpressions(arguments, tasks)?;
                Ok(Expression::Call(function, arguments))
            }
            Form::Function(_) | Form::Unknown => Err(Error::NoSuchFunction {
                name: text(name),
                arity: arguments.len(),
            }),
        }
    }

    /// Parses a map. Its pairs are sorted by the key expressions as terms, because if two keys
    /// evaluate to the same term, the later one counts.
    fn map_expression<'i>(
        &mut self,
        pairs: &[Pair<'i, H>],
        tasks: &mut Vec<Task<'i, H>>,
    ) -> Result<Expression, Error> {
        let keys = pairs.iter().map(|pair| pair.0);
        let keys = self.subexpressions(keys, tasks)?;
        let values = pairs.iter().map(|pair| pair.1);
        let values = self.subexpressions(values, tasks)?;
        Ok(Expression::Map { keys, values })
    }

    /// Folds tuples, lists and maps whose image equals their value into constants. `sources`
    /// belongs to the nodes from `first` on. Parts come after the node they belong to.
    fn fold_constants(&mut self, first: usize, sources: &[Option<Source>]) {
        for at in (0..sources.len()).rev() {
            let Some(origin) = sources[at] else {
                continue;
            };
            let verbatim = |&part: &usize| match self.spec.expressions[part] {
                Expression::Constant(constant) => {
                    sources[part - first].is_some_and(|source| source.term == constant.location)
                }
                _ => false,
            };
            let constant = match self.spec.expressions[first + at] {
                Expression::Tuple(parts) => parts.indices().all(|part| verbatim(&part)),
                Expression::List { elements, tail } => {
                    elements.indices().all(|part| verbatim(&part)) && verbatim(&tail.index())
                }
                Expression::Map { keys, values } => {
                    let mut parts = keys.indices().chain(values.indices());
                    parts.all(|part| verbatim(&part))
                }
                _ => false,
            };
            if constant {
                self.spec.expressions[first + at] = Expression::Constant(Constant {
                    image: self.image,
                    location: origin.value,
                });
            }
        }
    }
}

/// A key and its value.
type Pair<'i, H> = (ImageRef<'i, H>, ImageRef<'i, H>);

/// The pairs of the maps in some terms, sorted by the key expressions as terms.
struct Orders<'t, 'i, H: Host> {
    terms: &'t [ImageRef<'i, H>],
    /// Sorted pairs of all maps in the terms, by the location of the map. Each key is visited once,
    /// although every map around it is sorted, too. Computed only if some map has a key that is no
    /// immediate.
    known: Option<HashMap<Location, Vec<Pair<'i, H>>>>,
}

impl<'t, 'i, H: Host> Orders<'t, 'i, H> {
    fn of(terms: &'t [ImageRef<'i, H>]) -> Self {
        Orders { terms, known: None }
    }

    /// Returns the pairs of one of the maps.
    fn pairs(
        &mut self,
        map: ImageRef<'i, H>,
        keys: Slots<'i, H>,
        values: Slots<'i, H>,
        zeros: Zeros,
    ) -> Vec<Pair<'i, H>> {
        let mut pairs: Vec<_> = keys.iter().zip(values).collect();
        let is_flat = keys.iter().all(|key| key.immediate().is_some());
        if keys.len() > 1 && !is_flat {
            let terms = self.terms;
            let known = self.known.get_or_insert_with(|| orders(terms, zeros));
            return known.remove(&map.location()).unwrap_or(pairs);
        }
        pairs.sort_by_cached_key(|&(key, _)| {
            let mut bytes = Vec::new();
            order_key(key, &mut bytes, zeros);
            bytes
        });
        pairs
    }
}

fn orders<'i, H: Host>(
    terms: &[ImageRef<'i, H>],
    zeros: Zeros,
) -> HashMap<Location, Vec<Pair<'i, H>>> {
    let mut known = HashMap::new();
    for &term in terms {
        for_each_map(term, zeros, |map, pairs| {
            known.insert(map.location(), pairs.to_vec());
        });
    }
    known
}

/// Forms of tuples in an expression, told apart by their first elements.
enum Form {
    Const,
    SelfPid,
    Logical(&'static str, fn(Range<ExpressionId>) -> Expression),
    Function(Function),
    Trace,
    TraceFunction,
    Unknown,
}

impl Form {
    fn by_name(name: &str, arity: usize) -> Form {
        match name {
            "const" => Form::Const,
            "self" => Form::SelfPid,
            "and" => Form::Logical("and", Expression::And),
            "or" => Form::Logical("or", Expression::Or),
            "andalso" | "andthen" => Form::Logical("andalso", Expression::AndAlso),
            "orelse" => Form::Logical("orelse", Expression::OrElse),
            _ if is_trace_form(name) => Form::Trace,
            _ if is_trace_function(name, arity) => Form::TraceFunction,
            _ => Function::by_name(name, arity).map_or(Form::Unknown, Form::Function),
        }
    }
}

/// Returns the tuple inside `{{...}}`.
fn made_tuple<H: Host>(elements: Slots<'_, H>) -> Option<Slots<'_, H>> {
    let only = elements.get(0).filter(|_| elements.len() == 1)?;
    match only.view() {
        View::Tuple(made) => Some(made),
        _ => None,
    }
}

/// Origin of an expression in the image.
#[derive(Clone, Copy)]
struct Source {
    /// The location of its term.
    term: Location,
    /// The location of its value, if it is a constant that exists in the image: for `{{...}}` the
    /// inner tuple.
    value: Location,
}

impl Source {
    fn of<H: Host>(term: ImageRef<'_, H>) -> Source {
        let inner = match term.view() {
            View::Tuple(elements) if made_tuple(elements).is_some() => elements.get(0),
            _ => None,
        };
        Source {
            term: term.location(),
            value: inner.unwrap_or(term).location(),
        }
    }
}

fn with_atom<H: Host, R>(atom: ImageRef<'_, H>, f: impl FnOnce(&str) -> R) -> R {
    H::with_atom(atom.immediate().expect("atoms are immediates"), f)
}
