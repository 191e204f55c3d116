//! Compilation of a [`Spec`] to a [`Program`].
//!
//! Compilation cannot fail: every specification that was parsed can be run.

mod compiler;
mod expression;
mod head;

use crate::code::{Home, Op, Program};
use crate::owned_image::OwnedImage;
use crate::spec::{Clause, Expression, Pattern, Spec};
use ats_term::image::Host;
use compiler::{Compiler, ONLY_ELEMENT};

impl<H: Host> Program<H> {
    /// Compiles a specification for objects. O(its size); not recursive.
    #[must_use]
    pub fn new(spec: Spec<H>) -> Self {
        Self::compile(spec, Home::Object)
    }

    /// Compiles a specification for terms of any type, as in the lists of
    /// [`match_spec_run`](https://www.erlang.org/doc/man/ets.html#match_spec_run-2). The program
    /// runs on the tuple `{Term}` and matches the term inside. O(its size); not recursive.
    #[must_use]
    pub fn for_any_term(spec: Spec<H>) -> Self {
        Self::compile(spec, ONLY_ELEMENT)
    }

    fn compile(spec: Spec<H>, subject: Home) -> Self {
        let mut program = Program {
            code: Vec::new(),
            clauses: Vec::with_capacity(spec.clauses().len()),
            constants: Vec::new(),
            literals: None,
            constant_words: spec.images.iter().map(OwnedImage::len_words).sum(),
            spec,
        };
        for i in 0..program.spec.clauses().len() {
            let clause = program.spec.clauses()[i];
            if subject != Home::Object || program.can_match(&clause) {
                Compiler::clause(&mut program, &clause, subject);
            }
        }
        program
    }

    /// Returns `true` if the head can match a tuple at all.
    fn can_match(&self, clause: &Clause) -> bool {
        matches!(
            self.spec.pattern(clause.head),
            Pattern::Any | Pattern::Variable(_) | Pattern::Tuple(_)
        )
    }
}

impl<'p, H: Host> Compiler<'p, H> {
    fn clause(program: &'p mut Program<H>, clause: &Clause, subject: Home) {
        let start = program.code.len();
        program.clauses.push(start as u32);
        let variables = program.spec.variables(clause).len();
        let mut compiler = Compiler {
            program,
            subject,
            homes: vec![None; variables],
            containers: 0,
            lists: 0,
            bound: 0,
            labels: Vec::new(),
        };
        compiler.head(clause.head);
        compiler.guards(clause.guards);
        compiler.body(clause);
        compiler.set_jumps(start);
    }

    fn body(&mut self, clause: &Clause) {
        let last = clause.body.len() - 1;
        let result = clause.body.get(last);
        let home = match self.program.spec.expression(result) {
            Expression::WholeObject => Some(self.subject),
            Expression::Variable(slot) => Some(self.home(slot)),
            _ => None,
        };
        let word = self.as_word(result);
        if last > 0 || home.is_none() && word.is_none() {
            self.emit(Op::Body);
        }
        for i in 0..last {
            self.expression(clause.body.get(i));
            self.emit(Op::Drop);
        }
        if let Some(word) = word {
            return self.emit(Op::ReturnWord(word));
        }
        match (home, self.program.spec.expression(result)) {
            (Some(Home::Object), _) => self.emit(Op::ReturnObject),
            (Some(home), _) => self.emit(Op::ReturnHome(home)),
            (None, Expression::Tuple(parts)) => {
                for part in parts.iter() {
                    self.expression(part);
                }
                self.emit(Op::ReturnTuple(parts.len() as u32));
            }
            (None, _) => {
                self.expression(result);
                self.emit(Op::Return);
            }
        }
    }

    /// Replaces labels by positions in the code.
    fn set_jumps(&mut self, start: usize) {
        for op in &mut self.program.code[start..] {
            if let Op::AndAlso { end } | Op::OrElse { end } = op {
                *end = self.labels[*end as usize];
            }
        }
    }
}
