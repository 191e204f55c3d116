//! The code that a specification is compiled to.
//!
//! A clause runs from its first operation to one that returns, or to one that fails, after which
//! the next clause is tried. The code of the head visits one term after the other: one operation
//! makes a term the current one, the operations after it test that term. Tests that are
//! cheap and fail often come first. The code of guards and body is that of a stack machine, in
//! postfix order.
//!
//! Containers that were opened, lists, and terms that variables were bound to get numbers in the
//! order in which the code comes to them.

use crate::function::Function;
use crate::shape::Literals;
use crate::spec::{Constant, Spec};
use ats_term::image::Host;

/// A match specification, ready to run.
///
/// It is immutable and can be shared by threads; each needs a [`Machine`](crate::Machine) to run
/// it.
pub struct Program<H: Host> {
    pub(crate) spec: Spec<H>,
    pub(crate) code: Vec<Op>,
    /// Start positions of the clauses that can match an object.
    pub(crate) clauses: Vec<u32>,
    pub(crate) constants: Vec<Constant>,
    /// Number of words of the specification, which holds the constants.
    pub(crate) constant_words: usize,
    /// The literals and their uses, if they can be exchanged.
    pub(crate) literals: Option<Box<Literals>>,
}

/// Location of a variable's value once the head has matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// The whole object.
    Object,
    /// Part `index` of a container that the head has opened. Container 0 is the object.
    Part { container: u32, index: u32 },
    /// Value number N among those that the head has bound.
    Bound(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    // Heads.
    /// Fails unless the word in the slot of this element is this immediate. May run before the
    /// arity is checked: a word that is no element can look like the immediate.
    ElementIs {
        index: u32,
        word: u64,
    },
    /// Expects an object of `n` elements, and opens it.
    Arity(u32),
    /// Makes part `index` of a container the current term.
    Part {
        container: u32,
        index: u32,
    },
    /// Expects this immediate as part `index` of a container.
    PartIs {
        container: u32,
        index: u32,
        word: u64,
    },
    /// Expects a tuple of `arity` elements as part `index` of a container, and opens it.
    PartTuple {
        container: u32,
        index: u32,
        arity: u32,
    },
    /// Makes the rest of a list after its first `skip` elements the current term.
    Rest {
        list: u32,
        skip: u32,
    },
    /// Makes the value of a key of a map the current term; fails if the key is missing. `container`
    /// is that of the map's keys.
    ValueOf {
        container: u32,
        key: u32,
    },
    /// Expects this immediate as the current term.
    Is(u64),
    /// Expects this constant as the current term.
    IsConstant(u32),
    /// Expects a tuple of `n` elements, and opens it.
    IsTuple(u32),
    /// Expects a list of exactly or at least `len` elements, and opens it.
    IsList {
        len: u32,
        exactly: bool,
    },
    /// Expects a map of at least `n` pairs, and opens its keys, then its values.
    IsMap(u32),
    /// Binds a variable to the current term.
    Bind,
    /// Expects the same term as this one.
    IsSame(Home),

    // Guards and bodies.
    Push(Home),
    PushWord(u64),
    PushConstant(u32),
    PushSelf,
    /// Replaces the top `n` values of the stack by a tuple of them.
    MakeTuple(u32),
    /// Pops a tail and `n` elements, and pushes the list.
    MakeList(u32),
    /// Pops `n` values, and below them `n` keys, and pushes the map.
    MakeMap(u32),
    /// Pops the arguments and pushes the result.
    Call(Function),
    And(u32),
    Or(u32),
    /// Pops `true` and continues; keeps `false` and jumps.
    AndAlso {
        end: u32,
    },
    /// Pops `false` and continues; keeps `true` and jumps.
    OrElse {
        end: u32,
    },
    /// Pops the top of the stack and fails unless it is `true`.
    Guard,
    /// Fails unless the comparison of this part with a small integer or an atom is `true`.
    GuardPart {
        function: Function,
        container: u32,
        index: u32,
        word: u64,
    },
    /// Compares this part with a small integer or an atom, and pushes the boolean.
    ComparePart {
        function: Function,
        container: u32,
        index: u32,
        word: u64,
    },
    /// Start of the body: a failure from here on gives `'EXIT'`.
    Body,
    /// Pops the top of the stack.
    Drop,
    /// Returns the top of the stack.
    Return,
    /// Returns the object.
    ReturnObject,
    /// Returns the value at this location.
    ReturnHome(Home),
    /// Returns this immediate.
    ReturnWord(u64),
    /// Returns a tuple of the top `n` values.
    ReturnTuple(u32),
}

impl<H: Host> Program<H> {
    /// Returns the specification as data.
    #[must_use]
    pub fn spec(&self) -> &Spec<H> {
        &self.spec
    }

    /// Returns the bytes of memory used, without resources that the host keeps. O(number of
    /// clauses).
    #[must_use]
    pub fn memory(&self) -> usize {
        self.spec.memory()
            + size_of_val(&*self.code)
            + size_of_val(&*self.clauses)
            + size_of_val(&*self.constants)
    }
}

impl<H: Host> std::fmt::Debug for Program<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("clauses", &self.clauses)
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}
