//! Pids, ports and references.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::atom::Atom;
use crate::ident::Ident;

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

    /// Creates an identifier from the numbers of [`Ident::numbers`], most significant first.
    /// Returns `None` without numbers, or for more than [`Identifier::MAX_NUMBERS`].
    #[must_use]
    pub fn new(node: Atom, creation: u32, numbers: &[u32]) -> Option<Identifier> {
        Identifier::with_locality(false, node, creation, numbers)
    }

    /// Creates an identifier like [`Identifier::new`], with a flag for the running node, see
    /// [`Ident::local`].
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

    /// Returns the identity in the form of [`TermRef`](crate::TermRef).
    #[must_use]
    pub fn as_ident(&self) -> Ident<'_> {
        Ident {
            local: self.0.local,
            node: self.0.node.as_str(),
            creation: self.0.creation,
            numbers: &self.0.numbers,
        }
    }

    /// Returns the name of the node that made the identifier.
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

    /// Compares locality: local identifiers come after otherwise equal remote ones.
    pub(super) fn compare_locality(&self, other: &Identifier) -> Ordering {
        self.0.local.cmp(&other.0.local)
    }
}
