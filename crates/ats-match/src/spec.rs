//! A match specification as data.
//!
//! Patterns and expressions are nodes of two arenas; a node refers to its parts by a range of the arena, so
//! the parts of a node stand side by side, and behind it. Nothing in here is nested, however deep the term
//! was that the specification came from.

use crate::function::Function;
use crate::owned_image::OwnedImage;
use ats_term::Zeros;
use ats_term::image::{Host, ImageRef, Object, Place};

/// The words of atoms with a meaning of their own, in the numbering of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    pub(crate) true_: u64,
    pub(crate) false_: u64,
    pub(crate) exit: u64,
}

impl Words {
    /// The words of `true`, `false` and `'EXIT'`.
    ///
    /// # Safety
    /// They are what [`TermRef::immediate`](ats_term::TermRef::immediate) gives for these atoms as terms of the
    /// host that they are used with, since results are made of them.
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
/// It is immutable and can be shared by threads; what its constants refer to lives as long as it.
pub struct Spec<H: Host> {
    pub(crate) clauses: Vec<Clause>,
    /// The clauses as they were written, as tuples.
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
    /// The conditions that must be true of it.
    pub guards: Range<ExpressionId>,
    /// The expressions that are evaluated, of which the last is the result. At least one.
    pub body: Range<ExpressionId>,
    pub(crate) variables: (u32, u32),
}

/// A variable of a clause. Slots are numbered from 0 without gaps, in the order of the numbers that the
/// variables have in Erlang.
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
    /// The id with that number.
    fn new(index: u32) -> Self;
    /// The number.
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

/// Nodes that stand side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<I> {
    pub(crate) start: I,
    pub(crate) len: u32,
}

impl<I: Id> Range<I> {
    /// The number of its parts. O(1).
    #[must_use]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Returns `true` if it has no parts. O(1).
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Node `i` of them, from 0. Panics if there are not so many. O(1).
    #[must_use]
    pub fn get(self, i: usize) -> I {
        assert!(i < self.len(), "spec: no such part");
        I::new(self.start.index() as u32 + i as u32)
    }

    /// All of them in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator {
        (0..self.len()).map(move |i| self.get(i))
    }

    /// The indices in their arena.
    pub(crate) fn indices(self) -> std::ops::Range<usize> {
        self.start.index()..self.start.index() + self.len()
    }
}

/// A term within a specification; [`Spec::constant`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// The image, which is that of the clause.
    pub(crate) image: u32,
    pub(crate) place: Place,
}

/// A pattern of a part of an object.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// `'_'`: anything.
    Any,
    /// `'$N'`: anything; if the variable occurs several times, the same term (`=:=`).
    Variable(Slot),
    /// This term, which is no tuple, list or map. Floats must have the same bits, everything else must be the
    /// same term (`=:=`).
    Literal(Constant),
    /// A tuple of so many elements.
    Tuple(Range<PatternId>),
    /// A list that begins with these elements, at least one, and goes on with what `tail` matches.
    List {
        /// The elements.
        elements: Range<PatternId>,
        /// The pattern of the rest, which is no list.
        tail: PatternId,
    },
    /// A map that has these keys (`=:=`) with values that match; it may have others.
    Map {
        /// The keys.
        keys: Range<MapKeyId>,
        /// For each key the pattern of its value.
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
    /// `'$$'`: a list of what all variables of the clause are bound to, in the order of their slots.
    AllBindings,
    /// This term.
    Constant(Constant),
    /// A tuple of these.
    Tuple(Range<ExpressionId>),
    /// A list of these, at least one, with that tail.
    List {
        /// The elements.
        elements: Range<ExpressionId>,
        /// The rest behind them.
        tail: ExpressionId,
    },
    /// A map. If several keys turn out to be the same (`=:=`), the last one counts.
    Map {
        /// The keys.
        keys: Range<ExpressionId>,
        /// The value of each key.
        values: Range<ExpressionId>,
    },
    /// The result of a function; there are as many arguments as it takes.
    Call(Function, Range<ExpressionId>),
    /// `true` if all are `true`. All are evaluated, and must be booleans. At least one.
    And(Range<ExpressionId>),
    /// `true` if one is `true`. All are evaluated, and must be booleans. At least one.
    Or(Range<ExpressionId>),
    /// `false` if one is, else the last, which need not be a boolean. Those after the first `false` are not
    /// evaluated. At least one.
    AndAlso(Range<ExpressionId>),
    /// `true` if one is, else the last, which need not be a boolean. Those after the first `true` are not
    /// evaluated. At least one.
    OrElse(Range<ExpressionId>),
    /// The process that runs the specification.
    SelfPid,
}

impl<H: Host> Spec<H> {
    /// The clauses in order, at least one.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// A pattern. O(1).
    #[must_use]
    pub fn pattern(&self, id: PatternId) -> Pattern {
        self.patterns[id.index()]
    }

    /// An expression. O(1).
    #[must_use]
    pub fn expression(&self, id: ExpressionId) -> Expression {
        self.expressions[id.index()]
    }

    /// A key of a map in a head. O(1).
    #[must_use]
    pub fn map_key(&self, id: MapKeyId) -> ImageRef<'_, H> {
        self.constant(self.map_keys[id.index()])
    }

    /// A constant, which can be read in place, and of which keys can be made. O(1).
    #[must_use]
    pub fn constant(&self, constant: Constant) -> ImageRef<'_, H> {
        let object = self.images[constant.image as usize].object();
        // SAFETY: constants are made by the parser, out of terms of the image with that number.
        unsafe { object.term_at(constant.place) }
    }

    /// The clause with this number as it was written: the tuple `{Head, Guards, Body}`. O(1).
    #[must_use]
    pub fn clause_term(&self, clause: usize) -> Object<'_, H> {
        self.images[clause].object()
    }

    /// The numbers that the variables of a clause have in Erlang: that of slot `i` at index `i`. O(1).
    #[must_use]
    pub fn variables(&self, clause: &Clause) -> &[u32] {
        let (start, len) = clause.variables;
        &self.variables[start as usize..][..len as usize]
    }

    /// The rule for zeros: floats that are the same term. O(1).
    #[must_use]
    pub fn zeros(&self) -> Zeros {
        self.zeros
    }

    /// The words of `true` and others. O(1).
    #[must_use]
    pub fn words(&self) -> Words {
        self.words
    }

    /// Returns `true` if a constant refers to something that the host keeps as long as the
    /// specification. O(size).
    #[must_use]
    pub fn owns_resources(&self) -> bool {
        self.images.iter().any(OwnedImage::owns)
    }

    /// Bytes of memory, without what the host keeps. O(number of clauses).
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
