//! Lists, ordered sets and maps.

use crate::merged::Merged;
use crate::refused::Refused;
use ats_term::exact::{Options, exact_key};
use ats_term::image::{Host, ImageRef, View};
use ats_term::order::order_key;
use ats_term::{Kind, TermRef, Zeros};
use std::cmp::Ordering;
use std::collections::HashSet;

/// The standard order of two terms. O(1) unless both are tuples, both cells of lists, both maps, or both
/// bitstrings.
pub(crate) fn order<H: Host>(a: ImageRef<'_, H>, b: ImageRef<'_, H>, zeros: Zeros) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_small(), b.as_small()) {
        return a.cmp(&b);
    }
    let ranks = rank(a).cmp(&rank(b));
    if ranks.is_ne() {
        return ranks;
    }
    let key = |term| {
        let mut key = Vec::new();
        order_key(term, &mut key, zeros);
        key
    };
    key(a).cmp(&key(b))
}

/// The place of the kind of a term in the standard order.
fn rank<H: Host>(term: ImageRef<'_, H>) -> u8 {
    match term.kind() {
        Kind::Int(_) | Kind::Big | Kind::Float(_) => 0,
        Kind::Atom => 1,
        Kind::Ref => 2,
        Kind::LocalFun | Kind::ExternalFun => 3,
        Kind::Port => 4,
        Kind::Pid => 5,
        Kind::Tuple(_) => 6,
        Kind::Map(_) => 7,
        Kind::Nil => 8,
        Kind::Cons(..) => 9,
        Kind::Bits(_) => 10,
    }
}

/// The elements of a proper list.
pub(crate) fn elements<'m, H: Host>(list: ImageRef<'m, H>) -> Option<Vec<ImageRef<'m, H>>> {
    let mut elements = Vec::new();
    let mut rest = list;
    loop {
        match rest.kind() {
            Kind::Nil => return Some(elements),
            Kind::Cons(head, tail) => {
                elements.push(head);
                rest = tail;
            }
            _ => return None,
        }
    }
}

/// Whether a term is a proper list.
pub(crate) fn is_list<H: Host>(list: ImageRef<'_, H>) -> bool {
    let mut rest = list;
    loop {
        match rest.kind() {
            Kind::Nil => return true,
            Kind::Cons(_, tail) => rest = tail,
            _ => return false,
        }
    }
}

/// A term on its way through a sorted list, with what it is sorted by.
struct Sorted<'m, H> {
    term: ImageRef<'m, H>,
    /// Of small integers, themselves. These are compared without keys.
    small: Option<i64>,
    key: Vec<u8>,
}

impl<'m, H: Host> Sorted<'m, H> {
    fn of(term: ImageRef<'m, H>, zeros: Zeros) -> Self {
        let mut key = Vec::new();
        order_key(term, &mut key, zeros);
        Sorted {
            term,
            small: term.as_small(),
            key,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self.small, other.small) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.key.cmp(&other.key),
        }
    }
}

/// Whether a term is a list in strictly ascending order, as those of `ordsets` are.
pub(crate) fn is_ordered<H: Host>(list: ImageRef<'_, H>, zeros: Zeros) -> bool {
    ordered(list, zeros).is_some()
}

/// The elements of a list in strictly ascending order.
fn ordered<'m, H: Host>(list: ImageRef<'m, H>, zeros: Zeros) -> Option<Vec<Sorted<'m, H>>> {
    let elements = elements(list)?.into_iter();
    let sorted: Vec<_> = elements.map(|term| Sorted::of(term, zeros)).collect();
    let ascends = sorted
        .windows(2)
        .all(|pair| pair[0].order(&pair[1]).is_lt());
    ascends.then_some(sorted)
}

/// The union of two ordered sets, or of two maps.
pub(crate) fn union<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Result<Merged<'m, H>, Refused> {
    if let View::Map { .. } = earlier.view() {
        return match later.view() {
            View::Map { .. } => Ok(union_of_maps(earlier, later, zeros)),
            _ => Err(Refused::Later),
        };
    }
    let earlier = ordered(earlier, zeros).ok_or(Refused::Earlier)?;
    let later = ordered(later, zeros).ok_or(Refused::Later)?;
    let mut union = Vec::with_capacity(earlier.len() + later.len());
    let mut later = later.into_iter().peekable();
    for element in earlier {
        while let Some(before) = later.next_if(|other| other.order(&element).is_lt()) {
            union.push(before.term);
        }
        // Of two that are equal the earlier one stays.
        let _equal = later.next_if(|other| other.order(&element).is_eq());
        union.push(element.term);
    }
    union.extend(later.map(|element| element.term));
    Ok(Merged::List(union))
}

/// All pairs of the later map, and those of the earlier one that have other keys.
fn union_of_maps<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Merged<'m, H> {
    let key = |term| {
        let mut key = Vec::new();
        let options = Options {
            zeros,
            ..Options::default()
        };
        exact_key(term, &mut key, options);
        key
    };
    let (mut union, mut older) = (Vec::new(), Vec::new());
    later.map_pairs(&mut union);
    earlier.map_pairs(&mut older);
    let keys: HashSet<Vec<u8>> = union.iter().map(|(term, _)| key(*term)).collect();
    older.retain(|(term, _)| !keys.contains(&key(*term)));
    union.extend(older);
    Merged::Map(union)
}
