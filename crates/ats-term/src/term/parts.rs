//! The compound terms, bitstrings, identifiers and funs inside a [`Term`].

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::Term;
use super::terms::Terms;
use crate::atom::Atom;
use crate::walk::{FunIdent, Ident};

/// A tuple; dereferences to the slice of its elements.
#[derive(Clone, Debug)]
pub struct Tuple(Terms);

impl Tuple {
    /// A tuple of these elements.
    #[must_use]
    pub fn new(elements: Vec<Term>) -> Tuple {
        Tuple(elements.into())
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.0
    }

    pub(super) fn terms_mut(&mut self) -> &mut Terms {
        &mut self.0
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
    /// The list `[head | tail]`.
    #[must_use]
    pub fn new(head: Term, tail: Term) -> List {
        List([head, tail].into())
    }

    /// The first element.
    #[must_use]
    pub fn head(&self) -> &Term {
        &self.0[0]
    }

    /// What follows the first element.
    #[must_use]
    pub fn tail(&self) -> &Term {
        &self.0[1]
    }

    /// The elements in order. [`Elements::tail`] tells how the list ends.
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

    pub(super) fn cell_mut(&mut self) -> &mut Terms {
        &mut self.0
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

    /// How the list ends, once all elements were taken: nil unless the list is improper. Before
    /// that, what follows the next element.
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

/// Two keys of a map are the same term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey(
    /// The key that is there twice.
    pub Term,
);

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate map key {}", self.0)
    }
}

impl std::error::Error for DuplicateKey {}

impl Map {
    /// A map of these pairs, in O(n log n) comparisons.
    ///
    /// # Errors
    /// [`DuplicateKey`] if a key is there twice.
    pub fn new(mut pairs: Vec<(Term, Term)>) -> Result<Map, DuplicateKey> {
        pairs.sort_by(|(a, _), (b, _)| a.compare_exact(b));
        for neighbours in pairs.windows(2) {
            if neighbours[0].0 == neighbours[1].0 {
                return Err(DuplicateKey(neighbours[0].0.clone()));
            }
        }
        let (mut terms, mut values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        terms.append(&mut values);
        Ok(Map {
            terms: terms.into(),
        })
    }

    /// Number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.terms.len() / 2
    }

    /// True without any pair.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The keys in the order of [`Term::compare_exact`].
    #[must_use]
    pub fn keys(&self) -> &[Term] {
        &self.terms[..self.len()]
    }

    /// The values in the order of their keys.
    #[must_use]
    pub fn values(&self) -> &[Term] {
        &self.terms[self.len()..]
    }

    /// The pairs in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Term, &Term)> + ExactSizeIterator {
        self.keys().iter().zip(self.values())
    }

    /// The value of a key (`=:=`), in O(log n) comparisons.
    #[must_use]
    pub fn get(&self, key: &Term) -> Option<&Term> {
        let index = self
            .keys()
            .binary_search_by(|k| k.compare_exact(key))
            .ok()?;
        Some(&self.values()[index])
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(super) fn terms_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

/// A binary or bitstring.
#[derive(Clone, PartialEq, Eq)]
pub struct Bits {
    /// Exactly as many bytes as the bits need; unused low bits of the last byte are zero.
    bytes: Arc<[u8]>,
    bits: usize,
}

impl Bits {
    /// The bitstring of the first `bits` bits of `bytes`; `None` if there are not so many.
    #[must_use]
    pub fn new(bytes: &[u8], bits: usize) -> Option<Bits> {
        let used = bytes.get(..bits.div_ceil(8))?;
        let mut bytes: Arc<[u8]> = used.into();
        if !bits.is_multiple_of(8) {
            // The allocation is new, so there is no other reference to it.
            let last = Arc::get_mut(&mut bytes)?.last_mut()?;
            *last &= 0xFF << (8 - bits % 8);
        }
        Some(Bits { bytes, bits })
    }

    /// The binary of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Bits {
        Bits {
            bytes: bytes.into(),
            bits: bytes.len() * 8,
        }
    }

    /// A binary that shares bytes which others hold too.
    #[must_use]
    pub fn from_shared(bytes: Arc<[u8]>) -> Bits {
        let bits = bytes.len() * 8;
        Bits { bytes, bits }
    }

    /// The bytes; the unused low bits of the last one are zero.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as shared memory.
    #[must_use]
    pub fn shared_bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Number of bits.
    #[must_use]
    pub fn bit_len(&self) -> usize {
        self.bits
    }

    /// True if the bits fill whole bytes.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        self.bits.is_multiple_of(8)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A pid, port or reference.
#[derive(Clone, Debug)]
pub struct Identifier(Arc<IdentifierParts>);

#[derive(Debug)]
struct IdentifierParts {
    local: bool,
    node: Atom,
    creation: u32,
    numbers: Box<[u32]>,
}

impl Identifier {
    /// Largest number of words of a reference.
    pub const MAX_NUMBERS: usize = 5;

    /// An identifier; the numbers are those of [`Ident::numbers`], most significant first.
    /// `None` if there are none or more than [`Identifier::MAX_NUMBERS`].
    #[must_use]
    pub fn new(node: Atom, creation: u32, numbers: &[u32]) -> Option<Identifier> {
        Identifier::with_locality(false, node, creation, numbers)
    }

    /// As [`Identifier::new`], saying whether it belongs to the running node, see [`Ident::local`].
    #[must_use]
    pub fn with_locality(
        local: bool,
        node: Atom,
        creation: u32,
        numbers: &[u32],
    ) -> Option<Identifier> {
        if !(1..=Identifier::MAX_NUMBERS).contains(&numbers.len()) {
            return None;
        }
        let parts = IdentifierParts {
            local,
            node,
            creation,
            numbers: numbers.into(),
        };
        Some(Identifier(Arc::new(parts)))
    }

    /// The identity as [`TermRef`](crate::TermRef) lends it.
    #[must_use]
    pub fn as_ident(&self) -> Ident<'_> {
        Ident {
            local: self.0.local,
            node: self.0.node.as_str(),
            creation: self.0.creation,
            numbers: &self.0.numbers,
        }
    }

    /// Name of the node that made it.
    #[must_use]
    pub fn node(&self) -> Atom {
        self.0.node
    }

    /// Compares the numbers; the most significant ones may be missing, which counts as zero.
    pub(super) fn compare_numbers(&self, other: &Identifier) -> Ordering {
        let (a, b) = (
            self.as_ident().significant(),
            other.as_ident().significant(),
        );
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }

    /// Compares node name, then creation.
    pub(super) fn compare_nodes(&self, other: &Identifier) -> Ordering {
        (self.0.node.cmp(&other.0.node)).then(self.0.creation.cmp(&other.0.creation))
    }

    /// Local identifiers come after remote ones that are equal in all else.
    pub(super) fn compare_locality(&self, other: &Identifier) -> Ordering {
        self.0.local.cmp(&other.0.local)
    }
}

/// A closure, with all that another machine needs to call it.
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
    /// A closure from the fields of the external term format.
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

    /// Module that defines the fun.
    #[must_use]
    pub fn module(&self) -> Atom {
        self.0.module
    }

    /// Number of arguments.
    #[must_use]
    pub fn arity(&self) -> u8 {
        self.0.arity
    }

    /// Index of the fun in its module.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// MD5 of the significant code of the module.
    #[must_use]
    pub fn uniq(&self) -> &[u8; 16] {
        &self.0.uniq
    }

    /// Index in the older numbering.
    #[must_use]
    pub fn old_index(&self) -> u32 {
        self.0.old_index
    }

    /// Hash of the code of the fun.
    #[must_use]
    pub fn old_uniq(&self) -> u32 {
        self.0.old_uniq
    }

    /// The process that made the fun.
    #[must_use]
    pub fn creator(&self) -> &Identifier {
        &self.0.creator
    }

    /// The captured values.
    #[must_use]
    pub fn free(&self) -> &[Term] {
        &self.0.free
    }

    /// The identity as [`TermRef`](crate::TermRef) lends it.
    #[must_use]
    pub fn as_ident(&self) -> FunIdent<'_> {
        FunIdent::Local {
            module: self.0.module.as_str(),
            arity: u32::from(self.0.arity),
            index: self.0.index,
            uniq: self.0.uniq,
            old_index: self.0.old_index,
            old_uniq: self.0.old_uniq,
            creator: self.0.creator.as_ident(),
            free: &self.0.free,
        }
    }

    pub(super) fn free_terms(&self) -> &Terms {
        &self.0.free
    }

    /// The captured values to be taken apart, if this is the last owner of the fun.
    pub(super) fn free_terms_mut(&mut self) -> Option<&mut Terms> {
        Arc::get_mut(&mut self.0).map(|parts| &mut parts.free)
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

impl ExternalFun {
    /// The identity as [`TermRef`](crate::TermRef) lends it.
    #[must_use]
    pub fn as_ident(&self) -> FunIdent<'_> {
        FunIdent::External {
            module: self.module.as_str(),
            function: self.function.as_str(),
            arity: u32::from(self.arity),
        }
    }
}
