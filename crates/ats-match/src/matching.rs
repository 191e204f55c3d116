//! Operations of a head: tests of terms, and the bindings they make.

use crate::code::Op;
use crate::run::Run;
use crate::value::Value;
use ats_term::image::{Host, ImageRef, View};

impl<'r, H: Host, E> Run<'_, 'r, H, E> {
    /// Runs an operation of a head. Returns the term that is current afterwards, or `None` if the
    /// head does not match.
    pub(crate) fn test(
        &mut self,
        op: &Op,
        current: Option<ImageRef<'r, H>>,
    ) -> Option<ImageRef<'r, H>> {
        match *op {
            Op::Part { container, index } => {
                return self.buffers.containers[container as usize].get(index as usize);
            }
            Op::Rest { list, skip } => {
                return self.buffers.lists[list as usize].skip(skip as usize);
            }
            Op::ValueOf { container, key } => return self.value_of(container as usize, key),
            _ => {}
        }
        let current = current.expect("match: a test without a term");
        let passes = match *op {
            Op::Is(word) => current.immediate() == Some(word),
            Op::IsConstant(index) => self.is_literal(current, self.constant(index)),
            Op::IsSame(home) => {
                let (a, b) = (Value::of(current), Value::of(self.home(home)));
                self.comparer.same(&self.buffers.arena, a, b)
            }
            Op::Bind => {
                self.buffers.bound.push(current);
                true
            }
            Op::IsTuple(arity) => match current.view() {
                View::Tuple(elements) => {
                    self.buffers.containers.push(elements);
                    elements.len() == arity as usize
                }
                _ => false,
            },
            Op::IsList { len, exactly } => match current.view() {
                View::List { elements, .. } => {
                    self.buffers.containers.push(elements);
                    self.buffers.lists.push(current);
                    let len = len as usize;
                    elements.len() == len || (!exactly && elements.len() > len)
                }
                _ => false,
            },
            Op::IsMap(least) => match current.view() {
                View::Map { keys, values } => {
                    self.buffers.containers.extend([keys, values]);
                    keys.len() >= least as usize
                }
                _ => false,
            },
            other => unreachable!("match: not an operation of a head: {other:?}"),
        };
        passes.then_some(current)
    }

    /// Returns the value of a key in a map that is open.
    fn value_of(&mut self, container: usize, key: u32) -> Option<ImageRef<'r, H>> {
        let key = self.constant(key);
        let keys = self.buffers.containers[container];
        let position = self.comparer.find_key(keys, key)?;
        self.buffers.containers[container + 1].get(position)
    }

    /// Returns `true` if a term is the literal of a head: floats must have the same bits.
    fn is_literal(&mut self, term: ImageRef<'r, H>, literal: ImageRef<'r, H>) -> bool {
        match (term.view(), literal.view()) {
            (View::Float(a), View::Float(b)) => a.to_bits() == b.to_bits(),
            _ => self.comparer.same_images(term, literal),
        }
    }
}
