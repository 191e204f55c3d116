//! The parser of heads.

use super::parser::{Parser, index, reserve, variable};
use crate::error::Error;
use crate::spec::{Id, MapKeyId, Pattern, PatternId, Range, Slot};
use ats_term::image::{Host, ImageRef, Immediate, Slots, View};

/// A reserved node, and the term that it is made from.
type Task<'i, H> = (PatternId, ImageRef<'i, H>);

impl<H: Host> Parser<'_, H> {
    /// Assigns slots to the variables of a head. Returns the range of their numbers.
    pub(super) fn find_variables(&mut self, head: ImageRef<'_, H>) -> Result<(u32, u32), Error> {
        let mut numbers = Vec::new();
        let mut terms = vec![head];
        while let Some(term) = terms.pop() {
            match term.view() {
                View::Immediate(_) => numbers.extend(variable(term)),
                View::Tuple(elements) => terms.extend(elements),
                View::List { elements, tail } => {
                    terms.extend(elements);
                    terms.push(tail);
                }
                View::Map { values, .. } => terms.extend(values),
                _ => {}
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        let slots = numbers.iter().zip(0..);
        self.slots = slots.map(|(&number, slot)| (number, slot)).collect();
        let start = index(self.spec.variables.len())?;
        self.spec.variables.extend(&numbers);
        index(self.spec.variables.len())?;
        Ok((start, numbers.len() as u32))
    }

    /// Parses the head of a clause.
    pub(super) fn head(&mut self, head: ImageRef<'_, H>) -> Result<PatternId, Error> {
        let root: Range<PatternId> = self.reserve_patterns(1)?;
        let mut tasks = vec![(root.get(0), head)];
        while let Some((id, term)) = tasks.pop() {
            self.spec.patterns[id.index()] = self.pattern(term, &mut tasks)?;
        }
        Ok(root.get(0))
    }

    fn reserve_patterns(&mut self, len: usize) -> Result<Range<PatternId>, Error> {
        reserve(&mut self.spec.patterns, len, Pattern::Any)
    }

    /// Reserves a node for each of these terms.
    fn parts<'i>(
        &mut self,
        terms: Slots<'i, H>,
        tasks: &mut Vec<Task<'i, H>>,
    ) -> Result<Range<PatternId>, Error> {
        let range = self.reserve_patterns(terms.len())?;
        tasks.extend(range.iter().zip(terms));
        Ok(range)
    }

    fn pattern<'i>(
        &mut self,
        term: ImageRef<'i, H>,
        tasks: &mut Vec<Task<'i, H>>,
    ) -> Result<Pattern, Error> {
        Ok(match term.view() {
            View::Immediate(Immediate::Atom(_)) => self.atom_pattern(term),
            View::Tuple(elements) => Pattern::Tuple(self.parts(elements, tasks)?),
            View::List { elements, tail } => {
                let elements = self.parts(elements, tasks)?;
                let tail_id = self.reserve_patterns(1)?.get(0);
                tasks.push((tail_id, tail));
                Pattern::List {
                    elements,
                    tail: tail_id,
                }
            }
            View::Map { keys, values } => Pattern::Map {
                keys: self.head_keys(keys)?,
                values: self.parts(values, tasks)?,
            },
            _ => Pattern::Literal(self.constant(term)),
        })
    }

    fn atom_pattern(&self, term: ImageRef<'_, H>) -> Pattern {
        match variable(term) {
            Some(number) => Pattern::Variable(Slot(self.slots[&number])),
            None if is_underscore(term) => Pattern::Any,
            None => Pattern::Literal(self.constant(term)),
        }
    }

    /// Parses the keys of a map. A key must not be a variable itself; a variable inside a key is a
    /// literal.
    fn head_keys(&mut self, keys: Slots<'_, H>) -> Result<Range<MapKeyId>, Error> {
        let start = index(self.spec.map_keys.len())?;
        for key in keys {
            if variable(key).is_some() {
                return Err(Error::VariableInMapKey);
            }
            if is_underscore(key) {
                return Err(Error::UnderscoreInMapKey);
            }
            let constant = self.constant(key);
            self.spec.map_keys.push(constant);
        }
        index(self.spec.map_keys.len())?;
        Ok(Range {
            start: MapKeyId::new(start),
            len: keys.len() as u32,
        })
    }
}

fn is_underscore<H: Host>(term: ImageRef<'_, H>) -> bool {
    match term.view() {
        View::Immediate(Immediate::Atom(_)) => term
            .immediate()
            .is_some_and(|word| H::with_atom(word, |text| text == "_")),
        _ => false,
    }
}
