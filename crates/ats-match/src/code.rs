//! The code that a specification is compiled to.
//!
//! The code of a clause is run from its beginning to an operation that returns, or to one that
//! fails, which means that the next clause is tried. The part for the head looks at one term after
//! the other: an operation makes a term the current one, those after it test it. Tests that are
//! cheap and fail often come first. The parts for guards and body are those of a stack machine, in
//! postfix order.
//!
//! Containers that were opened, lists, and terms that variables were bound to get numbers in the
//! order in which the code comes to them.

use crate::function::Function;
use crate::spec::{Constant, Spec};
use ats_term::image::Host;

/// A match specification, ready to run.
///
/// It is immutable and can be shared by threads; each needs a [`Machine`](crate::Machine) to run
/// it.
pub struct Program<H: Host> {
    pub(crate) spec: Spec<H>,
    pub(crate) code: Vec<Op>,
    /// The beginnings of the code of those clauses that can match an object.
    pub(crate) clauses: Vec<u32>,
    pub(crate) constants: Vec<Constant>,
    /// The number of words of the specification, of which the constants are parts.
    pub(crate) constant_words: usize,
}

/// The place of the value of a variable once the head has matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// It is the object.
    Object,
    /// It is part `index` of a container that the head has opened; of the object, if that is
    /// container 0.
    Part { container: u32, index: u32 },
    /// It was bound under that number.
    Bound(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    // Heads.
    /// Fails unless the word at the place of this element is that of the immediate. Also before it
    /// is known how many elements there are: what else stands there may look like it.
    ElementIs {
        index: u32,
        word: u64,
    },
    /// Fails unless the object has so many elements. Opens the object.
    Arity(u32),
    /// The current term is part `index` of a container.
    Part {
        container: u32,
        index: u32,
    },
    /// Fails unless part `index` of a container is this immediate.
    PartIs {
        container: u32,
        index: u32,
        word: u64,
    },
    /// Fails unless part `index` of a container is a tuple of so many elements. Opens it.
    PartTuple {
        container: u32,
        index: u32,
        arity: u32,
    },
    /// The current term is what follows the first `skip` elements of a list.
    Rest {
        list: u32,
        skip: u32,
    },
    /// The current term is the value of a key of a map; fails if there is none. `container` are its
    /// keys.
    ValueOf {
        container: u32,
        key: u32,
    },
    /// Fails unless the current term is this immediate.
    Is(u64),
    /// Fails unless the current term is this constant.
    IsConstant(u32),
    /// Fails unless it is a tuple of so many elements. Opens it.
    IsTuple(u32),
    /// Fails unless it is a list of exactly so many elements, or at least so many. Opens it.
    IsList {
        len: u32,
        exactly: bool,
    },
    /// Fails unless it is a map of at least so many pairs. Opens its keys, then its values.
    IsMap(u32),
    /// Binds a variable to the current term.
    Bind,
    /// Fails unless the current term is the same as this one.
    IsSame(Home),

    // Guards and bodies.
    Push(Home),
    PushWord(u64),
    PushConstant(u32),
    PushSelf,
    /// Takes so many elements off the stack and puts a tuple of them there.
    MakeTuple(u32),
    /// Takes a tail and so many elements.
    MakeList(u32),
    /// Takes so many values, and before them so many keys.
    MakeMap(u32),
    /// Takes the arguments and puts the result there.
    Call(Function),
    And(u32),
    Or(u32),
    /// Goes on if the top of the stack is `true`, which it takes off; leaves it there and jumps if
    /// it is `false`.
    AndAlso {
        end: u32,
    },
    /// Goes on if the top of the stack is `false`, which it takes off; leaves it there and jumps if
    /// it is `true`.
    OrElse {
        end: u32,
    },
    /// Fails unless the top of the stack is `true`, which it takes off.
    Guard,
    /// Fails unless the comparison of this part with this small integer or atom is `true`.
    GuardPart {
        function: Function,
        container: u32,
        index: u32,
        word: u64,
    },
    /// Goes on if this comparison is true.
    ComparePart {
        function: Function,
        container: u32,
        index: u32,
        word: u64,
    },
    /// From here on, what fails becomes `'EXIT'`.
    Body,
    /// Takes the top off the stack.
    Drop,
    /// The top of the stack is the result.
    Return,
    /// The object is the result.
    ReturnObject,
    /// Returns the value at this place as the result.
    ReturnHome(Home),
    /// This immediate is the result.
    ReturnWord(u64),
    /// A tuple of the last so many values is the result.
    ReturnTuple(u32),
}

impl<H: Host> Program<H> {
    /// The specification as data.
    #[must_use]
    pub fn spec(&self) -> &Spec<H> {
        &self.spec
    }

    /// Bytes of memory, without what the host keeps. O(number of clauses).
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
