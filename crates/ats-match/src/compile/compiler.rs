//! State of the compiler while it compiles a clause.

use crate::code::{Home, Op, Program};
use crate::spec::{Constant, Slot};
use ats_term::image::Host;

/// The container that the object itself is.
pub(super) const OBJECT: u32 = 0;

/// Location of the term if each object is a tuple around one element.
pub(super) const ONLY_ELEMENT: Home = Home::Part {
    container: OBJECT,
    index: 0,
};

/// A clause that is being compiled.
pub(super) struct Compiler<'p, H: Host> {
    pub(super) program: &'p mut Program<H>,
    /// Location of the term that the head must match.
    pub(super) subject: Home,
    /// Locations of the variables, by slot.
    pub(super) homes: Vec<Option<Home>>,
    /// Number of containers opened, lists known and variables bound so far: the next number to
    /// give.
    pub(super) containers: u32,
    pub(super) lists: u32,
    pub(super) bound: u32,
    /// The targets of jumps. While a clause is compiled, a jump holds the index of its label here.
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
