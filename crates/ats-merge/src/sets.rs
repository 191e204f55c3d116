//! Ordered sets, and maps.

use crate::lists::elements;
use crate::merge_error::MergeError;
use crate::merged::Merged;
use ats_term::exact::{Options, exact_key};
use ats_term::image::{Host, ImageRef};
use ats_term::order::order_key;
use ats_term::{Kind, TermRef, Zeros};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Returns `true` if a term is an ordered set, or a map. O(size).
pub(crate) fn accepts<H: Host>(term: ImageRef<'_, H>, zeros: Zeros) -> bool {
    matches!(term.kind(), Kind::Map(_)) || is_ordered(term, zeros)
}

/// Returns `true` if a term is a list in strictly ascending order, like those of `ordsets`.
fn is_ordered<H: Host>(list: ImageRef<'_, H>, zeros: Zeros) -> bool {
    let (mut key, mut key_before) = (Vec::new(), Vec::new());
    let mut before: Option<ImageRef<'_, H>> = None;
    let mut rest = list;
    loop {
        match rest.kind() {
            Kind::Nil => return true,
            Kind::Cons(head, tail) => {
                let order = match before.map(|before| (before.as_small(), head.as_small())) {
                    None => Ordering::Less,
                    Some((Some(before), Some(small))) => before.cmp(&small),
                    Some(_) => {
                        // The key of a small integer is not made until it is needed.
                        if let (true, Some(before)) = (key_before.is_empty(), before) {
                            order_key(before, &mut key_before, zeros);
                        }
                        order_key(head, &mut key, zeros);
                        key_before.cmp(&key)
                    }
                };
                if order.is_ge() {
                    return false;
                }
                std::mem::swap(&mut key, &mut key_before);
                key.clear();
                (before, rest) = (Some(head), tail);
            }
            _ => return false,
        }
    }
}

/// An ordered set, with the keys by which its elements are compared.
struct Set<'m, H> {
    elements: Vec<ImageRef<'m, H>>,
    /// The keys of the elements, one behind the other; none if all elements of both sets are small
    /// integers.
    keys: Vec<u8>,
    /// The end of each key.
    ends: Vec<usize>,
}

impl<'m, H: Host> Set<'m, H> {
    fn new(elements: Vec<ImageRef<'m, H>>, has_keys: bool, zeros: Zeros) -> Self {
        let (mut keys, mut ends) = (Vec::new(), Vec::new());
        if has_keys {
            ends.reserve(elements.len());
            for element in &elements {
                order_key(*element, &mut keys, zeros);
                ends.push(keys.len());
            }
        }
        Set {
            elements,
            keys,
            ends,
        }
    }

    fn key(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start..self.ends[at]]
    }

    /// Compares an element with one of the other set.
    fn order(&self, at: usize, other: &Self, other_at: usize) -> Ordering {
        if self.ends.is_empty() {
            let small = self.elements[at].as_small();
            small.cmp(&other.elements[other_at].as_small())
        } else {
            self.key(at).cmp(other.key(other_at))
        }
    }

    fn ascends(&self) -> bool {
        (1..self.elements.len()).all(|at| self.order(at - 1, self, at).is_lt())
    }
}

/// Two ordered sets.
fn two_sets<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Result<[Set<'m, H>; 2], MergeError> {
    let first = elements(earlier).ok_or(MergeError::Earlier)?;
    // A fault of the earlier one is told first.
    let Some(second) = elements(later) else {
        let is_set = is_ordered(earlier, zeros);
        return Err(if is_set {
            MergeError::Later
        } else {
            MergeError::Earlier
        });
    };
    let has_keys = [&first, &second]
        .into_iter()
        .flatten()
        .any(|element| element.as_small().is_none());
    let first = Set::new(first, has_keys, zeros);
    if !first.ascends() {
        return Err(MergeError::Earlier);
    }
    let second = Set::new(second, has_keys, zeros);
    if !second.ascends() {
        return Err(MergeError::Later);
    }
    Ok([first, second])
}

/// Returns `true` if both terms are maps. A later term must be one if the earlier one is.
fn are_maps<H: Host>(earlier: ImageRef<'_, H>, later: ImageRef<'_, H>) -> Result<bool, MergeError> {
    let is_map = |term: ImageRef<'_, H>| matches!(term.kind(), Kind::Map(_));
    match (is_map(earlier), is_map(later)) {
        (true, false) => Err(MergeError::Later),
        (is_map, _) => Ok(is_map),
    }
}

/// Returns the union of two ordered sets, or of two maps.
pub(crate) fn union<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Result<Merged<'m, H>, MergeError> {
    if are_maps(earlier, later)? {
        return Ok(union_of_maps(earlier, later, zeros));
    }
    let [a, b] = two_sets(earlier, later, zeros)?;
    let mut union = Vec::with_capacity(a.elements.len() + b.elements.len());
    let mut later_at = 0;
    for (at, element) in a.elements.iter().enumerate() {
        while later_at < b.elements.len() {
            let order = b.order(later_at, &a, at);
            if order.is_lt() {
                union.push(b.elements[later_at]);
            }
            // The earlier of two equal elements stays.
            if order.is_gt() {
                break;
            }
            later_at += 1;
        }
        union.push(*element);
    }
    union.extend_from_slice(&b.elements[later_at..]);
    Ok(if union.len() == a.elements.len() {
        Merged::Earlier(earlier)
    } else if a.elements.is_empty() {
        Merged::Later(later)
    } else {
        Merged::List(union)
    })
}

/// Returns the intersection of two ordered sets, or of two maps.
pub(crate) fn intersection<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Result<Merged<'m, H>, MergeError> {
    if are_maps(earlier, later)? {
        return Ok(intersection_of_maps(earlier, later, zeros));
    }
    let [a, b] = two_sets(earlier, later, zeros)?;
    let mut both = Vec::new();
    let (mut at, mut later_at) = (0, 0);
    while at < a.elements.len() && later_at < b.elements.len() {
        match a.order(at, &b, later_at) {
            Ordering::Less => at += 1,
            Ordering::Greater => later_at += 1,
            Ordering::Equal => {
                both.push(a.elements[at]);
                at += 1;
                later_at += 1;
            }
        }
    }
    Ok(if both.len() == a.elements.len() {
        Merged::Earlier(earlier)
    } else {
        Merged::List(both)
    })
}

/// The bytes that keys of maps have in common if they are the same.
fn key_of<H: Host>(term: ImageRef<'_, H>, zeros: Zeros) -> Vec<u8> {
    let mut key = Vec::new();
    let options = Options {
        zeros,
        ..Options::default()
    };
    exact_key(term, &mut key, options);
    key
}

type Pairs<'m, H> = Vec<(ImageRef<'m, H>, ImageRef<'m, H>)>;

fn pairs<H: Host>(map: ImageRef<'_, H>) -> Pairs<'_, H> {
    let mut pairs = Vec::new();
    map.map_pairs(&mut pairs);
    pairs
}

fn keys<H: Host>(pairs: &Pairs<'_, H>, zeros: Zeros) -> HashSet<Vec<u8>> {
    pairs.iter().map(|(key, _)| key_of(*key, zeros)).collect()
}

/// Returns all pairs of the later map, and those of the earlier one that have other keys.
fn union_of_maps<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Merged<'m, H> {
    let (mut older, mut union) = (pairs(earlier), pairs(later));
    if union.is_empty() {
        return Merged::Earlier(earlier);
    }
    let keys = keys(&union, zeros);
    older.retain(|(key, _)| !keys.contains(&key_of(*key, zeros)));
    if older.is_empty() {
        return Merged::Later(later);
    }
    union.extend(older);
    Merged::Map(union)
}

/// Returns the pairs of the later map whose keys the earlier one has.
fn intersection_of_maps<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
    zeros: Zeros,
) -> Merged<'m, H> {
    let (older, mut both) = (pairs(earlier), pairs(later));
    let all = both.len();
    let keys = keys(&older, zeros);
    both.retain(|(key, _)| keys.contains(&key_of(*key, zeros)));
    if both.len() == all {
        Merged::Later(later)
    } else {
        Merged::Map(both)
    }
}
