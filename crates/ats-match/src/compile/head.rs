//! Compiling heads.

use super::compiler::{Compiler, OBJECT, ONLY_ELEMENT};
use crate::code::{Home, Op};
use crate::spec::{Pattern, PatternId, Range, Slot};
use ats_term::image::Host;

/// A pattern, and the operation that loads the term it must match.
type Task = (Op, PatternId);

impl<H: Host> Compiler<'_, H> {
    pub(super) fn head(&mut self, head: PatternId) {
        if self.subject == ONLY_ELEMENT {
            self.emit(Op::Arity(1));
            self.containers = 1;
            return self.patterns(vec![(part(OBJECT, 0), head)]);
        }
        match self.program.spec.pattern(head) {
            Pattern::Tuple(elements) => self.object(elements),
            Pattern::Variable(slot) => self.homes[slot.0 as usize] = Some(Home::Object),
            _ => {}
        }
    }

    /// Compiles the elements of the object, cheap and selective tests first.
    fn object(&mut self, elements: Range<PatternId>) {
        let mut rest = Vec::new();
        for (index, id) in (0..).zip(elements.iter()) {
            match self.program.spec.pattern(id) {
                // A repeated variable needs a comparison, which comes after all other tests.
                Pattern::Variable(slot) if !self.note_home(slot, OBJECT, index) => {
                    rest.push((2, part(OBJECT, index), id));
                }
                Pattern::Any | Pattern::Variable(_) => {}
                Pattern::Literal(constant) => {
                    match self.program.spec.constant(constant).immediate() {
                        Some(word) => self.emit(Op::ElementIs { index, word }),
                        None => rest.push((0, part(OBJECT, index), id)),
                    }
                }
                _ => rest.push((1, part(OBJECT, index), id)),
            }
        }
        self.emit(Op::Arity(elements.len() as u32));
        self.containers = 1;
        // Reversed, because the stack runs the last task first.
        rest.sort_by_key(|(class, ..)| std::cmp::Reverse(*class));
        let tasks = rest.into_iter().map(|(_, load, id)| (load, id)).collect();
        self.patterns(tasks);
    }

    /// Records the location of a variable that is a part of a container. Returns `true` at the
    /// first occurrence, which needs no binding.
    fn note_home(&mut self, slot: Slot, container: u32, index: u32) -> bool {
        let home = &mut self.homes[slot.0 as usize];
        let is_first = home.is_none();
        home.get_or_insert(Home::Part { container, index });
        is_first
    }

    fn patterns(&mut self, mut tasks: Vec<Task>) {
        while let Some((load, id)) = tasks.pop() {
            let pattern = self.program.spec.pattern(id);
            let is_done = match (load, pattern) {
                (_, Pattern::Any) => true,
                (Op::Part { container, index }, _) => {
                    self.part(container, index, pattern, &mut tasks)
                }
                _ => false,
            };
            if !is_done {
                self.emit(load);
                self.pattern(pattern, &mut tasks);
            }
        }
    }

    /// Emits a test of a part of a container that does not need to load the part, if there is one.
    fn part(
        &mut self,
        container: u32,
        index: u32,
        pattern: Pattern,
        tasks: &mut Vec<Task>,
    ) -> bool {
        match pattern {
            Pattern::Variable(slot) => return self.note_home(slot, container, index),
            Pattern::Literal(constant) => {
                let Some(word) = self.program.spec.constant(constant).immediate() else {
                    return false;
                };
                self.emit(Op::PartIs {
                    container,
                    index,
                    word,
                });
            }
            Pattern::Tuple(elements) => {
                self.emit(Op::PartTuple {
                    container,
                    index,
                    arity: elements.len() as u32,
                });
                self.parts(elements, tasks);
            }
            _ => return false,
        }
        true
    }

    /// Emits tests of the current term.
    fn pattern(&mut self, pattern: Pattern, tasks: &mut Vec<Task>) {
        match pattern {
            Pattern::Any => {}
            Pattern::Variable(slot) => self.variable(slot),
            Pattern::Literal(constant) => {
                let op = match self.program.spec.constant(constant).immediate() {
                    Some(word) => Op::Is(word),
                    None => Op::IsConstant(self.constant(constant)),
                };
                self.emit(op);
            }
            Pattern::Tuple(elements) => {
                self.emit(Op::IsTuple(elements.len() as u32));
                self.parts(elements, tasks);
            }
            Pattern::List { elements, tail } => self.list(elements, tail, tasks),
            Pattern::Map { keys, values } => {
                self.emit(Op::IsMap(keys.len() as u32));
                let container = self.containers;
                self.containers += 2;
                for (key, value) in keys.iter().zip(values.iter()).rev() {
                    let key = self.constant(self.program.spec.map_keys[key.0 as usize]);
                    let load = Op::ValueOf { container, key };
                    match self.program.spec.pattern(value) {
                        // The key must exist even if its value may be anything.
                        Pattern::Any => self.emit(load),
                        _ => tasks.push((load, value)),
                    }
                }
            }
        }
    }

    fn variable(&mut self, slot: Slot) {
        let home = &mut self.homes[slot.0 as usize];
        match *home {
            Some(home) => self.emit(Op::IsSame(home)),
            None => {
                *home = Some(Home::Bound(self.bound));
                self.bound += 1;
                self.emit(Op::Bind);
            }
        }
    }

    fn list(&mut self, elements: Range<PatternId>, tail: PatternId, tasks: &mut Vec<Task>) {
        // The pattern of the tail is no list; so unless it matches anything, the list has exactly
        // these elements.
        let exactly = !matches!(
            self.program.spec.pattern(tail),
            Pattern::Any | Pattern::Variable(_)
        );
        let len = elements.len() as u32;
        self.emit(Op::IsList { len, exactly });
        let rest = Op::Rest {
            list: self.lists,
            skip: len,
        };
        self.lists += 1;
        tasks.push((rest, tail));
        self.parts(elements, tasks);
    }

    /// Compiles the parts of the container that was just opened.
    fn parts(&mut self, parts: Range<PatternId>, tasks: &mut Vec<Task>) {
        let container = self.containers;
        self.containers += 1;
        let all = (0..)
            .zip(parts.iter())
            .map(|(index, id)| (part(container, index), id));
        let mark = tasks.len();
        tasks.extend(all);
        tasks[mark..].reverse();
    }
}

fn part(container: u32, index: u32) -> Op {
    Op::Part { container, index }
}
