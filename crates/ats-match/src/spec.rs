//! A match specification as data.
//!
//! Patterns and expressions are nodes of two arenas; a node refers to its parts by a range of the
//! arena, so the parts of a node are adjacent, and come after it. The arenas are flat, however deep
//! the term was that the specification was parsed from.

use crate::function::Function;
use crate::owned_image::OwnedImage;
use ats_term::Zeros;
use ats_term::image::{Host, ImageRef, Location, Object};

/// Words of atoms with a special meaning, in the encoding of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    pub(crate) true_: u64,
    pub(crate) false_: u64,
    pub(crate) exit: u64,
}

impl Words {
    /// Collects the words of `true`, `false` and `'EXIT'`.
    ///
    /// # Safety
    /// The words must be those that [`TermRef::immediate`](ats_term::TermRef::immediate) returns
    /// for these atoms as terms of the host in use, because results are built from them.
    #[must_use]
    pub const unsafe fn new(true_word: u64, false_word: u64, exit_word: u64) -> Words {
        Words {
            true_: true_word,
            false_: false_word,
            exit: exit_word,
        }
    }
}

/// A match specification whose constants belong to host `H`.
///
/// It is immutable and can be shared by threads; resources of its constants live as long as it.
pub struct Spec<H: Host> {
    pub(crate) clauses: Vec<Clause>,
    /// The clauses in their original form, as tuples.
    pub(crate) images: Vec<OwnedImage<H>>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) expressions: Vec<Expression>,
    /// The keys of all maps in heads.
    pub(crate) map_keys: Vec<Constant>,
    /// The numbers of the variables of all clauses.
    pub(crate) variables: Vec<u32>,
    pub(crate) words: Words,
    pub(crate) zeros: Zeros,
    /// See [`Options`](crate::Options).
    pub(crate) whole_bytes: bool,
}

/// One clause.
#[derive(Clone, Copy, Debug)]
pub struct Clause {
    /// The pattern that an object must match.
    pub head: PatternId,
    /// The conditions that must be true.
    pub guards: Range<ExpressionId>,
    /// The expressions to evaluate, at least one. The last one is the result.
    pub body: Range<ExpressionId>,
    pub(crate) variables: (u32, u32),
}

/// A variable of a clause. Slots are numbered from 0 without gaps, in the order of the numbers that
/// the variables have in Erlang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// A node of the arena of patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PatternId(pub(crate) u32);

/// A node of the arena of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpressionId(pub(crate) u32);

/// A key of a map in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MapKeyId(pub(crate) u32);

/// An index of an arena.
pub trait Id: Copy {
    /// Returns the id with that number.
    fn new(index: u32) -> Self;
    /// Returns the number.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($id:ident)*) => {$(
        impl Id for $id {
            fn new(index: u32) -> Self {
                $id(index)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids!(PatternId ExpressionId MapKeyId);

/// Adjacent nodes of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<I> {
    pub(crate) start: I,
    pub(crate) len: u32,
}

impl<I: Id> Range<I> {
    /// Returns the number of nodes. O(1).
    #[must_use]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Returns `true` if the range is empty. O(1).
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns node `i`, from 0. Panics if `i` is out of range. O(1).
    #[must_use]
    pub fn get(self, i: usize) -> I {
        assert!(i < self.len(), "spec: no such part");
        I::new(self.start.index() as u32 + i as u32)
    }

    /// Returns all nodes in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator {
        (0..self.len()).map(move |i| self.get(i))
    }

    /// Returns the indices of the nodes in their arena.
    pub(crate) fn indices(self) -> std::ops::Range<usize> {
        self.start.index()..self.start.index() + self.len()
    }
}

/// A term within a specification; [`Spec::constant`] reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Number of the image, which is that of the clause.
    pub(crate) image: u32,
    pub(crate) location: Location,
}

/// A pattern of a part of an object.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// `'_'`: anything.
    Any,
    /// `'$N'`: anything; if the variable occurs several times, the same term (`=:=`).
    Variable(Slot),
    /// A term that is no tuple, list or map. Floats must have the same bits, all others must be the
    /// same term (`=:=`).
    Literal(Constant),
    /// A tuple of these elements.
    Tuple(Range<PatternId>),
    /// A list of these elements, at least one, followed by a rest that matches `tail`.
    List {
        /// The elements.
        elements: Range<PatternId>,
        /// The pattern of the rest, which is no list.
        tail: PatternId,
    },
    /// A map with at least these keys (`=:=`), whose values match.
    Map {
        /// The keys.
        keys: Range<MapKeyId>,
        /// The pattern of each key's value.
        values: Range<PatternId>,
    },
}

/// An expression of a guard or of a body.
#[derive(Clone, Copy, Debug)]
pub enum Expression {
    /// The value that the variable is bound to.
    Variable(Slot),
    /// `'$_'`: the object.
    WholeObject,
    /// `'$$'`: a list of the values of all variables of the clause, in the order of their slots.
    AllBindings,
    /// A constant term.
    Constant(Constant),
    /// A tuple of these values.
    Tuple(Range<ExpressionId>),
    /// A list of these elements, at least one, with a tail.
    List {
        /// The elements.
        elements: Range<ExpressionId>,
        /// The tail.
        tail: ExpressionId,
    },
    /// A map. If several keys have the same value (`=:=`), the last one counts.
    Map {
        /// The keys.
        keys: Range<ExpressionId>,
        /// The value of each key.
        values: Range<ExpressionId>,
    },
    /// The result of a call. The number of arguments is the function's arity.
    Call(Function, Range<ExpressionId>),
    /// `true` if all operands are `true`. All are evaluated, and must be booleans. There is at
    /// least one.
    And(Range<ExpressionId>),
    /// `true` if any operand is `true`. All are evaluated, and must be booleans. There is at least
    /// one.
    Or(Range<ExpressionId>),
    /// `false` if any operand is `false`, else the last one, which need not be a boolean. Operands
    /// after the first `false` are not evaluated. There is at least one.
    AndAlso(Range<ExpressionId>),
    /// `true` if any operand is `true`, else the last one, which need not be a boolean. Operands
    /// after the first `true` are not evaluated. There is at least one.
    OrElse(Range<ExpressionId>),
    /// The process that runs the specification.
    SelfPid,
}

impl<H: Host> Spec<H> {
    /// Returns the clauses in order, at least one.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Returns a pattern. O(1).
    #[must_use]
    pub fn pattern(&self, id: PatternId) -> Pattern {
        self.patterns[id.index()]
    }

    /// Returns an expression. O(1).
    #[must_use]
    pub fn expression(&self, id: ExpressionId) -> Expression {
        self.expressions[id.index()]
    }

    /// Returns a key of a map in a head. O(1).
    #[must_use]
    pub fn map_key(&self, id: MapKeyId) -> ImageRef<'_, H> {
        self.constant(self.map_keys[id.index()])
    }

    /// Returns a constant, which can be read in place and made into keys. O(1).
    #[must_use]
    pub fn constant(&self, constant: Constant) -> ImageRef<'_, H> {
        let object = self.images[constant.image as usize].object();
        // SAFETY: the parser makes constants only from terms of the image with this number.
        unsafe { object.term_at(constant.location) }
    }

    /// Returns the clause with this number in its original form: the tuple `{Head, Guards, Body}`.
    /// O(1).
    #[must_use]
    pub fn clause_term(&self, clause: usize) -> Object<'_, H> {
        self.images[clause].object()
    }

    /// Returns the numbers of a clause's variables in Erlang: that of slot `i` at index `i`. O(1).
    #[must_use]
    pub fn variables(&self, clause: &Clause) -> &[u32] {
        let (start, len) = clause.variables;
        &self.variables[start as usize..][..len as usize]
    }

    /// Returns the rule for zeros: floats that are the same term. O(1).
    #[must_use]
    pub fn zeros(&self) -> Zeros {
        self.zeros
    }

    /// Returns the words of `true` and other special atoms. O(1).
    #[must_use]
    pub fn words(&self) -> Words {
        self.words
    }

    /// Returns `true` if a constant owns a resource of the host. O(size).
    #[must_use]
    pub fn owns_resources(&self) -> bool {
        self.images.iter().any(OwnedImage::owns)
    }

    /// Returns the bytes of memory used, without resources that the host keeps. O(number of
    /// clauses).
    #[must_use]
    pub fn memory(&self) -> usize {
        let images: usize = self.images.iter().map(OwnedImage::len_words).sum();
        8 * images
            + size_of_val(&*self.clauses)
            + size_of_val(&*self.patterns)
            + size_of_val(&*self.expressions)
            + size_of_val(&*self.map_keys)
            + size_of_val(&*self.variables)
    }
}

impl<H: Host> std::fmt::Debug for Spec<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spec")
            .field("clauses", &self.clauses)
            .field("patterns", &self.patterns)
            .field("expressions", &self.expressions)
            .field("variables", &self.variables)
            .finish_non_exhaustive()
    }
}
