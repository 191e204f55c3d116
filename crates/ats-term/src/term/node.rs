//! The types of terms. Compound ones refer to each other and to [`Term`].

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::bits::Bits;
use super::identifier::Identifier;
use super::number::{BigInt, Float};
use crate::atom::Atom;

/// An Erlang term of any type. `{}` and `{:?}` both show it in Erlang syntax.
#[derive(Clone)]
pub enum Term {
    /// An integer that fits 64 bits.
    Int(i64),
    /// An integer that does not fit 64 bits.
    Big(BigInt),
    /// A float.
    Float(Float),
    /// An atom.
    Atom(Atom),
    /// The empty list.
    Nil,
    /// A list of at least one element, proper or improper.
    List(List),
    /// A tuple.
    Tuple(Tuple),
    /// A map.
    Map(Map),
    /// A binary or bitstring.
    Bits(Bits),
    /// A process identifier.
    Pid(Identifier),
    /// A port identifier.
    Port(Identifier),
    /// A reference.
    Ref(Identifier),
    /// A closure.
    LocalFun(LocalFun),
    /// `fun M:F/A`.
    ExternalFun(ExternalFun),
    /// A native record.
    NativeRecord(NativeRecord),
}

impl Term {
    /// Returns the terms directly inside a compound term, if it is one.
    fn children(&self) -> Option<&Terms> {
        match self {
            Term::List(list) => Some(&list.0),
            Term::Tuple(tuple) => Some(&tuple.0),
            Term::Map(map) => Some(&map.terms),
            Term::LocalFun(fun) => Some(&fun.0.free),
            Term::NativeRecord(record) => Some(&record.values),
            _ => None,
        }
    }
}

/// A tuple; dereferences to the slice of its elements.
#[derive(Clone, Debug)]
pub struct Tuple(Terms);

impl Tuple {
    /// Creates a tuple of these elements.
    #[must_use]
    pub fn new(elements: Vec<Term>) -> Tuple {
        Tuple(elements.into())
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.0
    }
}

impl Deref for Tuple {
    type Target = [Term];

    fn deref(&self) -> &[Term] {
        &self.0
    }
}

impl<const N: usize> From<[Term; N]> for Tuple {
    fn from(elements: [Term; N]) -> Tuple {
        Tuple(elements.into())
    }
}

/// A list cell: a head and a tail, which is the rest of the list, nil, or any term at the end of an
/// improper list.
#[derive(Clone, Debug)]
pub struct List(Terms);

impl List {
    /// Creates the list `[head | tail]`.
    #[must_use]
    pub fn new(head: Term, tail: Term) -> List {
        List([head, tail].into())
    }

    /// Returns the first element.
    #[must_use]
    pub fn head(&self) -> &Term {
        &self.0[0]
    }

    /// Returns the rest after the first element.
    #[must_use]
    pub fn tail(&self) -> &Term {
        &self.0[1]
    }

    /// Returns the elements in order. [`Elements::tail`] is the end of the list.
    #[must_use]
    pub fn elements(&self) -> Elements<'_> {
        Elements {
            head: Some(self.head()),
            tail: self.tail(),
        }
    }

    pub(super) fn cell(&self) -> &Terms {
        &self.0
    }
}

/// Iterator over the elements of a list.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    head: Option<&'a Term>,
    tail: &'a Term,
}

impl<'a> Elements<'a> {
    pub(super) fn empty() -> Elements<'a> {
        Elements {
            head: None,
            tail: &Term::Nil,
        }
    }

    /// Returns the end of the list, once all elements were taken: nil unless the list is improper.
    /// Before that, returns the part after the next element.
    #[must_use]
    pub fn tail(&self) -> &'a Term {
        self.tail
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a Term;

    fn next(&mut self) -> Option<&'a Term> {
        let head = self.head?;
        self.head = match self.tail {
            Term::List(rest) => {
                self.tail = rest.tail();
                Some(rest.head())
            }
            _ => None,
        };
        Some(head)
    }
}

/// A map: distinct keys, kept in the order of map keys.
#[derive(Clone, Debug)]
pub struct Map {
    /// All keys in ascending order of [`Term::compare_exact`], then their values in the same order.
    terms: Terms,
}

impl Map {
    /// Creates a map from keys in ascending order of [`Term::compare_exact`], followed by their
    /// values.
    pub(super) fn from_sorted(terms: Vec<Term>) -> Map {
        Map {
            terms: terms.into(),
        }
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.terms.len() / 2
    }

    /// Returns `true` if the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the keys in the order of [`Term::compare_exact`].
    #[must_use]
    pub fn keys(&self) -> &[Term] {
        &self.terms[..self.len()]
    }

    /// Returns the values in the order of their keys.
    #[must_use]
    pub fn values(&self) -> &[Term] {
        &self.terms[self.len()..]
    }

    /// Returns the pairs in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Term, &Term)> + ExactSizeIterator {
        self.keys().iter().zip(self.values())
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }
}

/// A closure, with everything that another VM needs to call it.
#[derive(Clone, Debug)]
pub struct LocalFun(Arc<LocalFunParts>);

/// The parts of a [`LocalFun`].
#[derive(Debug)]
struct LocalFunParts {
    module: Atom,
    arity: u8,
    index: u32,
    uniq: [u8; 16],
    old_index: u32,
    old_uniq: u32,
    creator: Identifier,
    free: Terms,
}

impl LocalFun {
    /// Creates a closure from the fields of the external term format.
    #[must_use]
    #[expect(
        clippy::too_many_arguments,
        reason = "these are the fields of the format"
    )]
    pub fn new(
        module: Atom,
        arity: u8,
        index: u32,
        uniq: [u8; 16],
        old_index: u32,
        old_uniq: u32,
        creator: Identifier,
        free: Vec<Term>,
    ) -> LocalFun {
        let free = free.into();
        LocalFun(Arc::new(LocalFunParts {
            module,
            arity,
            index,
            uniq,
            old_index,
            old_uniq,
            creator,
            free,
        }))
    }

    /// Returns the module that defines the fun.
    #[must_use]
    pub fn module(&self) -> Atom {
        self.0.module
    }

    /// Returns the number of arguments.
    #[must_use]
    pub fn arity(&self) -> u8 {
        self.0.arity
    }

    /// Returns the index of the fun in its module.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// Returns the MD5 of the significant code of the module.
    #[must_use]
    pub fn uniq(&self) -> &[u8; 16] {
        &self.0.uniq
    }

    /// Returns the index in the older numbering.
    #[must_use]
    pub fn old_index(&self) -> u32 {
        self.0.old_index
    }

    /// Returns the hash of the code of the fun.
    #[must_use]
    pub fn old_uniq(&self) -> u32 {
        self.0.old_uniq
    }

    /// Returns the process that made the fun.
    #[must_use]
    pub fn creator(&self) -> &Identifier {
        &self.0.creator
    }

    /// Returns the captured values.
    #[must_use]
    pub fn free(&self) -> &[Term] {
        &self.0.free
    }
}

/// `fun M:F/A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalFun {
    /// Module name.
    pub module: Atom,
    /// Function name.
    pub function: Atom,
    /// Number of arguments.
    pub arity: u8,
}

/// A native record, as Erlang/OTP has them since release 29.
#[derive(Clone, Debug)]
pub struct NativeRecord {
    definition: Arc<RecordDefinition>,
    values: Terms,
}

/// The definition of a [`NativeRecord`].
#[derive(Debug)]
struct RecordDefinition {
    module: Atom,
    name: Atom,
    exported: bool,
    fields: Box<[Atom]>,
}

impl NativeRecord {
    /// Creates a record with these fields in the order of their definition. They are `exported` if
    /// other modules may see them.
    #[must_use]
    pub fn new(
        module: Atom,
        name: Atom,
        exported: bool,
        fields: impl IntoIterator<Item = (Atom, Term)>,
    ) -> NativeRecord {
        let (fields, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        let fields = fields.into();
        NativeRecord {
            definition: Arc::new(RecordDefinition {
                module,
                name,
                exported,
                fields,
            }),
            values: values.into(),
        }
    }

    /// Returns the module that defines the record.
    #[must_use]
    pub fn module(&self) -> Atom {
        self.definition.module
    }

    /// Returns the name of the record.
    #[must_use]
    pub fn name(&self) -> Atom {
        self.definition.name
    }

    /// Returns `true` if other modules may see the fields.
    #[must_use]
    pub fn is_exported(&self) -> bool {
        self.definition.exported
    }

    /// Returns the names of the fields in the order of their definition.
    #[must_use]
    pub fn fields(&self) -> &[Atom] {
        &self.definition.fields
    }

    /// Returns a value for each field.
    #[must_use]
    pub fn values(&self) -> &[Term] {
        &self.values
    }

    /// Returns the same record with other values, of which there must be as many.
    #[must_use]
    pub fn with_values(&self, values: Vec<Term>) -> NativeRecord {
        assert_eq!(values.len(), self.values.len(), "a value for each field");
        NativeRecord {
            definition: Arc::clone(&self.definition),
            values: values.into(),
        }
    }
}

/// The parts of a compound term.
#[derive(Clone)]
pub(super) struct Terms(Arc<[Term]>);

impl Terms {
    /// Returns `true` if both are the same memory, which implies equal contents.
    pub(super) fn same(&self, other: &Terms) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Terms {
    type Target = [Term];

    fn deref(&self) -> &[Term] {
        &self.0
    }
}

impl From<Vec<Term>> for Terms {
    fn from(terms: Vec<Term>) -> Terms {
        Terms(terms.into())
    }
}

impl<const N: usize> From<[Term; N]> for Terms {
    fn from(terms: [Term; N]) -> Terms {
        Terms(terms.into())
    }
}

impl FromIterator<Term> for Terms {
    fn from_iter<I: IntoIterator<Item = Term>>(terms: I) -> Terms {
        Terms(terms.into_iter().collect())
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Drops without recursion: compound terms below this one are collected on an explicit stack and
/// emptied one by one, so that the drop of each finds no compound terms left.
///
/// A sequence with another owner is left to that owner. If two threads drop the last two shares at
/// the same moment, each may take the other for that owner; then the compiler's drop code drops the
/// parts, which calls this function again for each of them. Such a coincidence costs one level of
/// recursion, not one for each level of the term.
impl Drop for Terms {
    fn drop(&mut self) {
        let mut pending = Vec::new();
        detach_children(self, &mut pending);
        while let Some(mut term) = pending.pop() {
            match &mut term {
                Term::List(list) => detach_children(&mut list.0, &mut pending),
                Term::Tuple(tuple) => detach_children(&mut tuple.0, &mut pending),
                Term::Map(map) => detach_children(&mut map.terms, &mut pending),
                Term::NativeRecord(record) => detach_children(&mut record.values, &mut pending),
                // A fun with another owner is left to that owner.
                Term::LocalFun(fun) => {
                    if let Some(parts) = Arc::get_mut(&mut fun.0) {
                        detach_children(&mut parts.free, &mut pending);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Moves the compound terms of a sequence without other owners to `pending`.
fn detach_children(terms: &mut Terms, pending: &mut Vec<Term>) {
    let Some(terms) = Arc::get_mut(&mut terms.0) else {
        return;
    };
    for term in terms {
        if term.children().is_some_and(|children| !children.is_empty()) {
            pending.push(std::mem::replace(term, Term::Nil));
        }
    }
}
