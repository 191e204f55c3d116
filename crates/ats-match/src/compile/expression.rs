//! Compiling guards and bodies.

use super::compiler::Compiler;
use crate::code::{Home, Op};
use crate::function::Function;
use crate::spec::{Expression, ExpressionId, Range};
use crate::value::EMPTY_LIST;
use ats_term::image::Host;

/// Work left to do, kept on a stack.
enum Task {
    Expression(ExpressionId),
    Emit(Op),
    /// Binds the label to the position that the code has reached.
    Label(u32),
}

impl<H: Host> Compiler<'_, H> {
    /// Compiles guards. Conjunctions are split into several guards: they are true only if all their
    /// parts are.
    pub(super) fn guards(&mut self, guards: Range<ExpressionId>) {
        let mut rest: Vec<_> = guards.iter().rev().collect();
        while let Some(id) = rest.pop() {
            match self.program.spec.expression(id) {
                Expression::And(parts) | Expression::AndAlso(parts) => {
                    rest.extend(parts.iter().rev());
                }
                Expression::Call(function, arguments) => {
                    match self.comparison(function, arguments) {
                        Some((function, (container, index), word)) => self.emit(Op::GuardPart {
                            function,
                            container,
                            index,
                            word,
                        }),
                        None => self.guard(id),
                    }
                }
                _ => self.guard(id),
            }
        }
    }

    fn guard(&mut self, id: ExpressionId) {
        self.expression(id);
        self.emit(Op::Guard);
    }

    /// Compiles a comparison of a part of a container with an immediate, if the expression is one.
    fn comparison(
        &self,
        function: Function,
        arguments: Range<ExpressionId>,
    ) -> Option<(Function, (u32, u32), u64)> {
        let mirrored = mirror(function)?;
        let (left, right) = (arguments.get(0), arguments.get(1));
        let parts = |part, word| Some((self.as_part(part)?, self.as_word(word)?));
        match (parts(left, right), parts(right, left)) {
            (Some((part, word)), _) => Some((function, part, word)),
            (_, Some((part, word))) => Some((mirrored, part, word)),
            _ => None,
        }
    }

    fn as_part(&self, id: ExpressionId) -> Option<(u32, u32)> {
        match self.program.spec.expression(id) {
            Expression::Variable(slot) => match self.home(slot) {
                Home::Part { container, index } => Some((container, index)),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn as_word(&self, id: ExpressionId) -> Option<u64> {
        match self.program.spec.expression(id) {
            Expression::Constant(constant) => self.program.spec.constant(constant).immediate(),
            _ => None,
        }
    }

    /// Emits code that leaves the value of an expression on the stack.
    pub(super) fn expression(&mut self, id: ExpressionId) {
        let mut tasks = vec![Task::Expression(id)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Expression(id) => self.node(self.program.spec.expression(id), &mut tasks),
                Task::Emit(op) => self.emit(op),
                Task::Label(label) => {
                    self.labels[label as usize] = self.program.code.len() as u32;
                }
            }
        }
    }

    fn node(&mut self, expression: Expression, tasks: &mut Vec<Task>) {
        match expression {
            Expression::Variable(slot) => self.emit(Op::Push(self.home(slot))),
            Expression::WholeObject => self.emit(Op::Push(self.subject)),
            Expression::AllBindings => self.all_bindings(),
            Expression::Constant(constant) => {
                let op = match self.program.spec.constant(constant).immediate() {
                    Some(word) => Op::PushWord(word),
                    None => Op::PushConstant(self.constant(constant)),
                };
                self.emit(op);
            }
            Expression::SelfPid => self.emit(Op::PushSelf),
            Expression::Tuple(parts) => postfix(parts, Op::MakeTuple(parts.len() as u32), tasks),
            Expression::List { elements, tail } => {
                let make = Op::MakeList(elements.len() as u32);
                tasks.extend([Task::Emit(make), Task::Expression(tail)]);
                tasks.extend(elements.iter().rev().map(Task::Expression));
            }
            Expression::Map { keys, values } => {
                postfix(values, Op::MakeMap(keys.len() as u32), tasks);
                tasks.extend(keys.iter().rev().map(Task::Expression));
            }
            Expression::Call(function, arguments) => match self.comparison(function, arguments) {
                Some((function, (container, index), word)) => self.emit(Op::ComparePart {
                    function,
                    container,
                    index,
                    word,
                }),
                None => postfix(arguments, Op::Call(function), tasks),
            },
            Expression::And(parts) => postfix(parts, Op::And(parts.len() as u32), tasks),
            Expression::Or(parts) => postfix(parts, Op::Or(parts.len() as u32), tasks),
            Expression::AndAlso(parts) => {
                self.short_circuit(parts, |end| Op::AndAlso { end }, tasks);
            }
            Expression::OrElse(parts) => self.short_circuit(parts, |end| Op::OrElse { end }, tasks),
        }
    }

    fn all_bindings(&mut self) {
        for slot in 0..self.homes.len() {
            let home = self.homes[slot].expect("the head binds every variable");
            self.emit(Op::Push(home));
        }
        self.emit(Op::PushWord(EMPTY_LIST));
        self.emit(Op::MakeList(self.homes.len() as u32));
    }

    /// Queues the parts; each but the last may be followed by a jump to the end.
    fn short_circuit(
        &mut self,
        parts: Range<ExpressionId>,
        jump: fn(u32) -> Op,
        tasks: &mut Vec<Task>,
    ) {
        let end = self.labels.len() as u32;
        self.labels.push(0);
        tasks.push(Task::Label(end));
        for (i, part) in parts.iter().enumerate().rev() {
            if i + 1 < parts.len() {
                tasks.push(Task::Emit(jump(end)));
            }
            tasks.push(Task::Expression(part));
        }
    }
}

/// Queues the parts and then the operation.
fn postfix(parts: Range<ExpressionId>, op: Op, tasks: &mut Vec<Task>) {
    tasks.push(Task::Emit(op));
    tasks.extend(parts.iter().rev().map(Task::Expression));
}

/// Returns the comparison with its arguments exchanged, if this is a comparison.
fn mirror(function: Function) -> Option<Function> {
    Some(match function {
        Function::Less => Function::Greater,
        Function::Greater => Function::Less,
        Function::LessOrEqual => Function::GreaterOrEqual,
        Function::GreaterOrEqual => Function::LessOrEqual,
        Function::Equal | Function::NotEqual | Function::Same | Function::NotSame => function,
        _ => return None,
    })
}
