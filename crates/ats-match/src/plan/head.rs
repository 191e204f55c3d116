//! Conversion of the head of a clause, limited by a case of its guards, to ranges of keys.

use super::cases::{Case, Subject};
use super::context::{LIMIT, PlanContext};
use super::interval::Interval;
use super::outline::Front;
use super::range::Ranges;
use crate::function::Function;
use crate::spec::{Clause, Expression, ExpressionId, Pattern, PatternId, Range, Slot, Spec};
use ats_term::image::Host;
use ats_term::order::Class;
use std::collections::HashSet;

/// Cost of visiting a part of a key, in steps.
const PART_STEPS: usize = 4;

/// The part of an object that an expression evaluates to.
#[derive(Clone, Copy)]
enum Site {
    Object,
    Key,
    Slot(Slot),
    Part(PatternId),
}

/// The head of a clause, as seen by the search for its key.
pub(super) struct Head<'s, H: Host> {
    spec: &'s Spec<H>,
    context: &'s PlanContext<'s, H>,
    clause: &'s Clause,
    key_index: usize,
    /// The pattern of the key. `None` if the head is a variable or `'_'`.
    key: Option<PatternId>,
    /// The variables in the key.
    slots: HashSet<Slot>,
}

/// A part of a key that is still to be visited.
#[derive(Clone, Copy)]
enum Todo {
    Pattern(PatternId),
    /// The list from this element on.
    Elements {
        elements: Range<PatternId>,
        next: usize,
        tail: PatternId,
    },
}

/// The front of a key that is known, and the parts still to be visited.
#[derive(Clone)]
struct State {
    front: Front,
    /// Parts to visit; the next one is last.
    todo: Vec<Todo>,
    /// Parts that can be one of several constants, and the index of the chosen one.
    chosen: Vec<(Subject, usize)>,
}

/// Why the walk through a key stops.
enum Stop<'c> {
    /// The key is complete.
    Complete,
    /// The next part can be anything.
    Open,
    /// The next part is a map.
    Map,
    /// The next part is in these ranges.
    Limited(Subject, &'c Ranges),
}

impl<'s, H: Host> Head<'s, H> {
    /// Prepares the search; returns `None` if no object that has a key can match.
    pub(super) fn new(
        context: &'s PlanContext<'s, H>,
        clause: &'s Clause,
        key_index: usize,
    ) -> Option<Self> {
        let spec = context.spec();
        let key = match spec.pattern(clause.head) {
            Pattern::Any | Pattern::Variable(_) => None,
            Pattern::Tuple(parts) if key_index < parts.len() => Some(parts.get(key_index)),
            _ => return None,
        };
        Some(Head {
            spec,
            context,
            clause,
            key_index,
            key,
            slots: key.map_or_else(HashSet::new, |key| key_slots(spec, key)),
        })
    }

    /// Returns the part of the key that the expression evaluates to, if it is one.
    pub(super) fn subject(&self, expression: ExpressionId) -> Option<Subject> {
        if let Expression::Tuple(parts) = self.spec.expression(expression) {
            return self.is_key(parts).then_some(Subject::Key);
        }
        self.site_subject(self.site(expression)?)
    }

    fn site_subject(&self, site: Site) -> Option<Subject> {
        match site {
            Site::Object => None,
            Site::Key => Some(Subject::Key),
            Site::Slot(slot) => Some(Subject::Slot(slot)),
            Site::Part(part) => match self.spec.pattern(part) {
                Pattern::Variable(slot) => Some(Subject::Slot(slot)),
                _ if Some(part) == self.key => Some(Subject::Key),
                Pattern::Any => Some(Subject::Any(part)),
                _ => None,
            },
        }
    }

    /// Returns `true` if these expressions are the parts of the key, put together again.
    fn is_key(&self, parts: Range<ExpressionId>) -> bool {
        let Some(Pattern::Tuple(pattern)) = self.key.map(|key| self.spec.pattern(key)) else {
            return false;
        };
        let mut pairs = parts.iter().zip(pattern.iter());
        parts.len() == pattern.len()
            && pairs.all(|(part, pattern)| {
                let subject = self.site(part).and_then(|site| self.site_subject(site));
                subject.is_some() && subject == self.site_subject(Site::Part(pattern))
            })
    }

    /// Follows nested calls of `element/2` to the part of the object that they select.
    fn site(&self, mut expression: ExpressionId) -> Option<Site> {
        const MOST: usize = 8;
        let mut path = Vec::new();
        while let Expression::Call(Function::Element, arguments) = self.spec.expression(expression)
        {
            let position = self.small_constant(arguments.get(0))?;
            path.push(usize::try_from(position).ok()?.checked_sub(1)?);
            if path.len() > MOST {
                return None;
            }
            expression = arguments.get(1);
        }
        let root = match self.spec.expression(expression) {
            Expression::WholeObject => Site::Object,
            Expression::Variable(slot) => match self.spec.pattern(self.clause.head) {
                Pattern::Variable(whole) if whole == slot => Site::Object,
                _ if self.slots.contains(&slot) => Site::Slot(slot),
                _ => return None,
            },
            _ => return None,
        };
        path.iter()
            .rev()
            .try_fold(root, |site, &index| self.part(site, index))
    }

    fn part(&self, site: Site, index: usize) -> Option<Site> {
        let whole = match site {
            Site::Object if self.key.is_none() => {
                return (index == self.key_index).then_some(Site::Key);
            }
            Site::Object => self.clause.head,
            Site::Part(part) => part,
            Site::Key | Site::Slot(_) => return None,
        };
        let Pattern::Tuple(parts) = self.spec.pattern(whole) else {
            return None;
        };
        let part = (index < parts.len()).then(|| parts.get(index))?;
        match self.spec.pattern(part) {
            // A variable bound outside the key may occur in the key, too.
            Pattern::Variable(slot) => self.slots.contains(&slot).then_some(Site::Slot(slot)),
            _ if matches!(site, Site::Object) && Some(part) != self.key => None,
            _ => Some(Site::Part(part)),
        }
    }

    /// Returns the value of an expression that is a small integer.
    pub(super) fn small_constant(&self, expression: ExpressionId) -> Option<i64> {
        match self.spec.expression(expression) {
            Expression::Constant(constant) => self.spec.constant(constant).as_small(),
            _ => None,
        }
    }

    /// Returns the ranges of keys that the head can match in this case.
    pub(super) fn ranges(&self, case: &Case) -> Ranges {
        let parts = match self.key {
            Some(key) => Ranges::union_of(self.walk(key, case)),
            None => Ranges::one(Interval::everything()),
        };
        match case.get(Subject::Key) {
            Some(whole) => parts.intersection(whole),
            None => parts,
        }
    }

    fn walk(&self, key: PatternId, case: &Case) -> Vec<Interval> {
        let mut found = Vec::new();
        let mut states = vec![State {
            front: Front::default(),
            todo: vec![Todo::Pattern(key)],
            chosen: Vec::new(),
        }];
        while let Some(mut state) = states.pop() {
            match self.advance(&mut state, case) {
                Stop::Complete => found.push(Interval::point(&state.front)),
                Stop::Open => found.push(Interval::prefix(&state.front)),
                Stop::Map => found.push(Interval::class(Class::Map).behind(&state.front)),
                Stop::Limited(subject, ranges) => {
                    let size = state.front.size() + size_of_val(&*state.todo);
                    if !self
                        .context
                        .spend_on_head(ranges.len(), ranges.len() * size)
                    {
                        found.push(Interval::prefix(&state.front));
                    } else if ranges.len() + found.len() + states.len() <= LIMIT {
                        fork(&state, subject, ranges, &mut states, &mut found);
                    } else {
                        found.extend(ranges.behind(&state.front).into_intervals());
                    }
                }
            }
        }
        found
    }

    /// Advances until a part is not a single constant.
    fn advance<'c>(&self, state: &mut State, case: &'c Case) -> Stop<'c> {
        let mut size = 0;
        while let Some(todo) = state.todo.pop() {
            let grown = state.front.bytes.len() - size;
            if !self.context.spend_on_head(PART_STEPS, grown) {
                return Stop::Open;
            }
            size = state.front.bytes.len();
            let id = match todo {
                Todo::Pattern(id) => id,
                Todo::Elements {
                    elements,
                    next,
                    tail,
                } if next < elements.len() => {
                    state.front.cons(self.context);
                    let next = next + 1;
                    state.todo.push(Todo::Elements {
                        elements,
                        next,
                        tail,
                    });
                    elements.get(next - 1)
                }
                Todo::Elements { tail, .. } => tail,
            };
            let subject = match self.spec.pattern(id) {
                Pattern::Literal(constant) => {
                    state.front.constant(constant, self.context);
                    continue;
                }
                Pattern::Tuple(parts) => {
                    state.front.tuple(parts.len(), self.context);
                    state.todo.extend(parts.iter().rev().map(Todo::Pattern));
                    continue;
                }
                Pattern::List { elements, tail } => {
                    let next = 0;
                    state.todo.push(Todo::Elements {
                        elements,
                        next,
                        tail,
                    });
                    continue;
                }
                Pattern::Map { .. } => return Stop::Map,
                Pattern::Variable(slot) => Subject::Slot(slot),
                Pattern::Any => Subject::Any(id),
            };
            let Some(ranges) = case.get(subject) else {
                return Stop::Open;
            };
            match state.chosen.iter().find(|chosen| chosen.0 == subject) {
                Some(&(_, point)) => append(&mut state.front, ranges, point),
                None => return Stop::Limited(subject, ranges),
            }
        }
        Stop::Complete
    }
}

/// Forks the walk: one state for each constant that the next part can be, and ranges for the rest.
fn fork(
    state: &State,
    subject: Subject,
    ranges: &Ranges,
    states: &mut Vec<State>,
    found: &mut Vec<Interval>,
) {
    for (at, interval) in ranges.iter().enumerate() {
        if interval.is_point() {
            let mut chosen = state.clone();
            append(&mut chosen.front, ranges, at);
            chosen.chosen.push((subject, at));
            states.push(chosen);
        } else {
            found.push(interval.behind(&state.front));
        }
    }
}

/// Appends the constant of one of the ranges.
fn append(front: &mut Front, ranges: &Ranges, point: usize) {
    if let Some(interval) = ranges.iter().nth(point) {
        front.append(interval.from().bytes(), interval.from().outline());
    }
}

fn key_slots<H: Host>(spec: &Spec<H>, key: PatternId) -> HashSet<Slot> {
    let (mut slots, mut patterns) = (HashSet::new(), vec![key]);
    while let Some(pattern) = patterns.pop() {
        match spec.pattern(pattern) {
            Pattern::Variable(slot) => {
                slots.insert(slot);
            }
            Pattern::Tuple(parts) => patterns.extend(parts.iter()),
            Pattern::List { elements, tail } => {
                patterns.extend(elements.iter());
                patterns.push(tail);
            }
            // The parts after a map do not bound a key, but appending them is harmless.
            Pattern::Map { .. } | Pattern::Any | Pattern::Literal(_) => {}
        }
    }
    slots
}
