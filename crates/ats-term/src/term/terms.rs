//! A shared, immutable sequence of terms that can be dropped without recursion.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::Term;

/// The parts of a compound term.
#[derive(Clone)]
pub(super) struct Terms(Arc<[Term]>);

impl Terms {
    /// True if both are the same memory, which implies that the contents are equal.
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

/// Compound terms below this one are collected on a stack of our own and emptied one after the
/// other, so that the drop of each finds no compound terms left to drop.
///
/// A sequence with another owner is left to that owner. If two threads give up the last two shares
/// at the same moment, each may take the other for that owner; then the parts are dropped by the
/// compiler's code, which calls this function again for each of them. That costs one level of
/// nesting for such a coincidence, not one for each level of the term.
impl Drop for Terms {
    fn drop(&mut self) {
        let mut pending = Vec::new();
        detach_children(self, &mut pending);
        while let Some(mut term) = pending.pop() {
            match &mut term {
                Term::List(list) => detach_children(list.cell_mut(), &mut pending),
                Term::Tuple(tuple) => detach_children(tuple.terms_mut(), &mut pending),
                Term::Map(map) => detach_children(map.terms_mut(), &mut pending),
                Term::LocalFun(fun) => {
                    if let Some(free) = fun.free_terms_mut() {
                        detach_children(free, &mut pending);
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
