//! Keys that a head fixes, up to some part, and that nothing else limits.
//!
//! The bytes of such a key are made from its literals alone, so if the literals are exchanged, no
//! plan has to be made: [`Program::exchange_literals`](crate::Program::exchange_literals).

use super::Access;
use crate::spec::{Clause, Constant, Expression, Pattern, PatternId, Range, Slot, Spec};
use ats_term::image::Host;
use ats_term::order::{Prefix, order_key};
use ats_term::{Zeros, exact};

/// The bytes by which a table knows its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Order keys.
    Ordered,
    /// Exact keys with these options.
    Hashed(exact::Options),
}

/// The part of a key that the head of the only clause fixes.
#[derive(Clone, Debug)]
pub struct FixedKey {
    parts: Vec<FixedPart>,
    order: KeyOrder,
    access: Access,
}

#[derive(Clone, Debug)]
enum FixedPart {
    /// Bytes that begin tuples and list cells.
    Bytes(Vec<u8>),
    /// A literal.
    Literal(PatternId),
}

/// The rest of a key, the next part last.
enum Todo {
    Pattern(PatternId),
    Cell(Range<PatternId>, usize, PatternId),
}

impl FixedKey {
    /// The part of the key at `key_index`, from 0, that is fixed. `None` if the key is limited by
    /// more than the literals in it: there are several clauses, the guards are about it, or a map
    /// stands in it. O(size of the specification); not recursive.
    #[must_use]
    pub fn new<H: Host>(spec: &Spec<H>, key_index: usize, order: KeyOrder) -> Option<FixedKey> {
        let [clause] = spec.clauses() else {
            return None;
        };
        let Pattern::Tuple(elements) = spec.pattern(clause.head) else {
            return None;
        };
        let key = (key_index < elements.len()).then(|| elements.get(key_index))?;
        let mut slots = Vec::new();
        let mut parts = Vec::new();
        let is_complete = read(spec, key, order, &mut slots, &mut parts)?;
        if are_about_key(spec, clause, &slots) {
            return None;
        }
        let access = match order {
            _ if is_complete => Access::Points,
            KeyOrder::Ordered if !parts.is_empty() => Access::Ranges,
            _ => Access::Everything,
        };
        if access == Access::Everything {
            parts.clear();
        }
        Some(FixedKey {
            parts,
            order,
            access,
        })
    }

    /// The part of the table that is read: a point, the keys that begin with the bytes, or all of
    /// it.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Appends the bytes of the fixed part of this specification, or of one of the same shape.
    /// O(size of the key).
    pub fn write<H: Host>(&self, spec: &Spec<H>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                FixedPart::Bytes(bytes) => out.extend_from_slice(bytes),
                FixedPart::Literal(id) => {
                    if let Pattern::Literal(constant) = spec.pattern(*id) {
                        write_literal(spec, constant, self.order, out);
                    }
                }
            }
        }
    }
}

#[inline]
fn write_literal<H: Host>(spec: &Spec<H>, constant: Constant, order: KeyOrder, out: &mut Vec<u8>) {
    let literal = spec.constant(constant);
    match order {
        KeyOrder::Ordered => order_key(literal, out, spec.zeros()),
        KeyOrder::Hashed(options) => exact::exact_key(literal, out, options),
    }
}

/// Reads a key up to the first part that is open. Returns `true` if there is none; and `None` if it
/// comes to a map. All variables of the key are put to `slots`.
fn read<H: Host>(
    spec: &Spec<H>,
    key: PatternId,
    order: KeyOrder,
    slots: &mut Vec<Slot>,
    parts: &mut Vec<FixedPart>,
) -> Option<bool> {
    let (mut todo, mut is_complete) = (vec![Todo::Pattern(key)], true);
    while let Some(next) = todo.pop() {
        let id = match next {
            Todo::Pattern(id) => id,
            Todo::Cell(elements, next, tail) if next < elements.len() => {
                if is_complete {
                    parts.push(FixedPart::Bytes(cons(order, spec.zeros())));
                }
                todo.push(Todo::Cell(elements, next + 1, tail));
                elements.get(next)
            }
            Todo::Cell(.., tail) => tail,
        };
        match spec.pattern(id) {
            Pattern::Literal(_) if is_complete => parts.push(FixedPart::Literal(id)),
            Pattern::Literal(_) => {}
            Pattern::Tuple(elements) => {
                if is_complete {
                    parts.push(FixedPart::Bytes(tuple(elements.len(), order, spec.zeros())));
                }
                todo.extend(elements.iter().rev().map(Todo::Pattern));
            }
            Pattern::List { elements, tail } => todo.push(Todo::Cell(elements, 0, tail)),
            Pattern::Map { .. } => return None,
            Pattern::Variable(slot) => {
                slots.push(slot);
                is_complete = false;
            }
            Pattern::Any => is_complete = false,
        }
    }
    Some(is_complete)
}

fn tuple(arity: usize, order: KeyOrder, zeros: Zeros) -> Vec<u8> {
    match order {
        KeyOrder::Ordered => Prefix::new(zeros).tuple(arity).as_bytes().to_vec(),
        KeyOrder::Hashed(options) => {
            let mut writer = exact::Writer::new(options);
            writer.tuple(arity);
            writer.into_bytes()
        }
    }
}

fn cons(order: KeyOrder, zeros: Zeros) -> Vec<u8> {
    match order {
        KeyOrder::Ordered => Prefix::new(zeros).cons().as_bytes().to_vec(),
        KeyOrder::Hashed(options) => {
            let mut writer = exact::Writer::new(options);
            writer.cons();
            writer.into_bytes()
        }
    }
}

/// Returns `true` if a guard may say something about these variables or about the object.
fn are_about_key<H: Host>(spec: &Spec<H>, clause: &Clause, slots: &[Slot]) -> bool {
    let mut todo: Vec<_> = clause.guards.iter().collect();
    while let Some(id) = todo.pop() {
        match spec.expression(id) {
            Expression::WholeObject | Expression::AllBindings => return true,
            Expression::Variable(slot) if slots.contains(&slot) => return true,
            Expression::Variable(_) | Expression::Constant(_) | Expression::SelfPid => {}
            Expression::Tuple(parts)
            | Expression::Call(_, parts)
            | Expression::And(parts)
            | Expression::Or(parts)
            | Expression::AndAlso(parts)
            | Expression::OrElse(parts) => todo.extend(parts.iter()),
            Expression::List { elements, tail } => {
                todo.extend(elements.iter());
                todo.push(tail);
            }
            Expression::Map { keys, values } => {
                todo.extend(keys.iter());
                todo.extend(values.iter());
            }
        }
    }
    false
}
