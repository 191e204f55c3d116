//! A clause that is being compiled, and what compiling all of its parts needs.

use crate::code::{Home, Op, Program};
use crate::spec::{Constant, Slot};
use ats_term::image::Host;

/// The container that the object itself is.
pub(super) const OBJECT: u32 = 0;

/// The place of the term if objects are tuples of one element around it.
pub(super) const ONLY_ELEMENT: Home = Home::Part {
    container: OBJECT,
    index: 0,
};

/// A clause that is being compiled.
pub(super) struct Compiler<'p, H: Host> {
    pub(super) program: &'p mut Program<H>,
    /// The place of the term that the head shall match.
    pub(super) subject: Home,
    /// The places of the variables, by their slots.
    pub(super) homes: Vec<Option<Home>>,
    /// The numbers of containers that the code has opened, of lists that it knows, and of variables
    /// that it has bound.
    pub(super) containers: u32,
    pub(super) lists: u32,
    pub(super) bound: u32,
    /// The targets of jumps. While a clause is compiled, jumps have the index of their goal
    /// instead.
    pub(super) labels: Vec<u32>,
}

impl<H: Host> Compiler<'_, H> {
    pub(super) fn emit(&mut self, op: Op) {
        self.program.code.push(op);
    }

    pub(super) fn constant(&mut self, constant: Constant) -> u32 {
        self.program.constants.push(constant);
        self.program.constants.len() as u32 - 1
    }

    pub(super) fn home(&self, slot: Slot) -> Home {
        self.homes[slot.0 as usize].expect("the head binds every variable")
    }
}
