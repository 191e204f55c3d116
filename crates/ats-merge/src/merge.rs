//! The merges that there are, and their results for two values.

use crate::merge_error::MergeError;
use crate::merged::Merged;
use crate::simple::{Simple, is_atom};
use crate::statistics;
use ats_term::image::{Host, ImageRef};
use ats_term::{Kind, TermRef, Zeros};
use std::fmt;

/// A way of making one value of an earlier and a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// A merge of one value.
    Simple(Simple),
    /// A merge of one value, where an empty one counts as missing. It is the same as `Simple` for
    /// merges that know no empty value.
    Pruned(Simple),
    /// A merge of a tuple of this many values, each by itself.
    Vector(Vec<Merge>),
}

/// The most vectors that are nested in each other.
const MOST_DEPTH: usize = 8;

/// Number of elements from which on merging two tuples takes long, even with small elements.
const MANY: usize = 1_000;

impl Merge {
    /// Returns the merge that a term names, as in the table of the [crate]; `None` if it names
    /// none. O(size of the term).
    pub fn from_term<T: TermRef>(term: T) -> Option<Self> {
        Self::within(term, MOST_DEPTH)
    }

    /// Returns the merge that a term names, with no more than this many vectors in each other.
    fn within<T: TermRef>(term: T, depth: usize) -> Option<Self> {
        let argument = |name| match term.kind() {
            Kind::Tuple(2) if is_atom(term.element(0), name) => Some(term.element(1)),
            _ => None,
        };
        if let Some(pruned) = argument("prune") {
            let pruned = Simple::from_term(pruned).filter(|merge| merge.has_empty());
            return pruned.map(Merge::Pruned);
        }
        let Some(mut list) = argument("vector") else {
            return Simple::from_term(term).map(Merge::Simple);
        };
        let depth = depth.checked_sub(1)?;
        let mut merges = Vec::new();
        loop {
            match list.kind() {
                Kind::Nil => return Some(Merge::Vector(merges)),
                Kind::Cons(head, tail) => {
                    merges.push(Self::within(head, depth)?);
                    list = tail;
                }
                _ => return None,
            }
        }
    }

    /// Returns `true` if small integers mostly merge to small integers, and none counts as missing.
    #[must_use]
    pub fn is_of_numbers(&self) -> bool {
        matches!(self, Merge::Simple(Simple::Sum | Simple::Min | Simple::Max))
    }

    /// Returns `true` if merging takes time that grows with the size of the values.
    #[must_use]
    pub fn is_of_collections(&self) -> bool {
        match self {
            Merge::Simple(merge) | Merge::Pruned(merge) => {
                matches!(merge, Simple::Append | Simple::Union | Simple::Intersection)
            }
            Merge::Vector(merges) => {
                merges.len() > MANY || merges.iter().any(Self::is_of_collections)
            }
        }
    }

    /// Returns `true` if values are compared, which takes time that grows with their size if both
    /// are tuples, lists, maps, bitstrings, or integers of more than 64 bits.
    #[must_use]
    pub fn needs_comparison(&self) -> bool {
        match self {
            Merge::Simple(merge) | Merge::Pruned(merge) => {
                matches!(
                    merge,
                    Simple::Min | Simple::Max | Simple::LastBy(_) | Simple::Statistics
                )
            }
            Merge::Vector(merges) => merges.iter().any(Self::needs_comparison),
        }
    }

    /// Returns `true` if the result depends on the rule for zeros.
    #[must_use]
    pub fn depends_on_zeros(&self) -> bool {
        let is_set = |merge: &Simple| matches!(merge, Simple::Union | Simple::Intersection);
        match self {
            Merge::Simple(merge) | Merge::Pruned(merge) if is_set(merge) => true,
            // The results are equal as numbers under both rules for zeros.
            Merge::Simple(Simple::Statistics) => false,
            Merge::Simple(_) | Merge::Pruned(_) => self.needs_comparison(),
            Merge::Vector(merges) => merges.iter().any(Self::depends_on_zeros),
        }
    }

    /// Returns `true` if a term is a value of the kind, and so can be the first one. O(its size) at
    /// most.
    pub fn accepts<H: Host>(&self, value: ImageRef<'_, H>, zeros: Zeros) -> bool {
        match self {
            Merge::Simple(merge) | Merge::Pruned(merge) => merge.accepts(value, zeros),
            Merge::Vector(merges) => value.tuple().is_some_and(|elements| {
                let mut pairs = merges.iter().zip(elements);
                elements.len() == merges.len()
                    && pairs.all(|(merge, element)| merge.accepts(element, zeros))
            }),
        }
    }

    /// Returns the value of a key that had none before. That is the value itself, but `statistics`
    /// spells out a number as the tuple. Merging spelled out values gives the same as merging
    /// others. O(number of elements of vectors). The value must be one that the merge
    /// [accepts](Merge::accepts).
    pub fn expand<'m, H: Host>(&self, value: ImageRef<'m, H>) -> Merged<'m, H> {
        match self {
            Merge::Simple(Simple::Statistics) => statistics::expand(value),
            Merge::Vector(merges) if self.has_short_forms() => match value.tuple() {
                None => Merged::Later(value),
                Some(elements) => {
                    let parts = merges.iter().zip(elements);
                    let parts = parts.map(|(merge, element)| merge.expand(element));
                    Merged::Tuple(parts.collect())
                }
            },
            _ => Merged::Later(value),
        }
    }

    /// Returns `true` if some values are not [spelled out](Merge::expand).
    #[must_use]
    pub fn has_short_forms(&self) -> bool {
        match self {
            Merge::Simple(merge) | Merge::Pruned(merge) => matches!(merge, Simple::Statistics),
            Merge::Vector(merges) => merges.iter().any(Self::has_short_forms),
        }
    }

    /// Returns `true` if a value of the kind makes all earlier ones irrelevant: merging any with it
    /// gives this one. The short circuit of osmos. O(number of elements of vectors).
    pub fn is_base<T: TermRef>(&self, value: T) -> bool {
        match self {
            Merge::Simple(merge) => merge.is_base(value),
            Merge::Pruned(_) => false,
            Merge::Vector(merges) => all_elements(merges, value, Self::is_base),
        }
    }

    /// Returns `true` if a value of the kind can be a base.
    #[must_use]
    pub fn has_base(&self) -> bool {
        match self {
            Merge::Simple(merge) => merge.has_base(),
            Merge::Pruned(_) => false,
            Merge::Vector(merges) => merges.iter().all(Self::has_base),
        }
    }

    /// Returns `true` if a key with this value counts as missing. Such a value is neutral: merging
    /// it with another one changes nothing. The `delete` of osmos. O(number of elements of
    /// vectors).
    pub fn is_absent<T: TermRef>(&self, value: T) -> bool {
        match self {
            Merge::Simple(_) => false,
            Merge::Pruned(merge) => merge.is_empty(value),
            Merge::Vector(merges) => {
                !merges.is_empty() && all_elements(merges, value, Self::is_absent)
            }
        }
    }

    /// Returns `true` if a value of the kind can count as missing.
    #[must_use]
    pub fn has_absent(&self) -> bool {
        match self {
            Merge::Simple(_) => false,
            Merge::Pruned(merge) => merge.has_empty(),
            Merge::Vector(merges) => !merges.is_empty() && merges.iter().all(Self::has_absent),
        }
    }

    /// Merges two values. `zeros` tells which keys of maps are the same. O(size of both) at most;
    /// O(1) for numbers.
    ///
    /// # Errors
    /// [`MergeError`] if one of the two is not of the kind, or if a number becomes larger than one
    /// may be.
    pub fn merge<'m, H: Host>(
        &self,
        earlier: ImageRef<'m, H>,
        later: ImageRef<'m, H>,
        zeros: Zeros,
    ) -> Result<Merged<'m, H>, MergeError> {
        let merges = match self {
            Merge::Simple(merge) => return merge.merge(earlier, later, zeros),
            Merge::Pruned(merge) => return merge_pruned(*merge, earlier, later, zeros),
            Merge::Vector(merges) => merges,
        };
        let of_size = |value: ImageRef<'m, H>, refused| {
            let elements = value.tuple().filter(|them| them.len() == merges.len());
            elements.ok_or(refused)
        };
        let elements = of_size(earlier, MergeError::Earlier)?
            .iter()
            .zip(of_size(later, MergeError::Later)?);
        let merged = merges
            .iter()
            .zip(elements)
            .map(|(merge, (earlier, later))| merge.merge(earlier, later, zeros));
        Ok(Merged::Tuple(merged.collect::<Result<_, _>>()?))
    }
}

/// Returns `true` if a term is a tuple of the size of a vector, and each element is right.
fn all_elements<T: TermRef>(merges: &[Merge], tuple: T, is: impl Fn(&Merge, T) -> bool) -> bool {
    let mut numbered = merges.iter().enumerate();
    matches!(tuple.kind(), Kind::Tuple(arity) if arity == merges.len())
        && numbered.all(|(at, merge)| is(merge, tuple.element(at)))
}

/// Merges like the simple merge, but an empty value, of any kind that the merge knows, is neutral
/// towards all others. Of two empty ones the later stays.
fn merge_pruned<'m, H: Host>(
    merge: Simple,
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Result<Merged<'m, H>, MergeError> {
    if merge.is_empty(earlier) {
        return if merge.accepts(later, zeros) {
            Ok(Merged::Later(later))
        } else {
            Err(MergeError::Later)
        };
    }
    if merge.is_empty(later) {
        return if merge.accepts(earlier, zeros) {
            Ok(Merged::Earlier(earlier))
        } else {
            Err(MergeError::Earlier)
        };
    }
    merge.merge(earlier, later, zeros)
}

/// The name as Erlang programs write it, but with arguments in brackets: `sum`, `last(2)`,
/// `vector(sum,prune(sum))`.
impl fmt::Display for Merge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Merge::Simple(merge) => merge.fmt(f),
            Merge::Pruned(merge) => write!(f, "prune({merge})"),
            Merge::Vector(merges) => {
                f.write_str("vector(")?;
                for (at, merge) in merges.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { "," })?;
                    merge.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}
