//! The comparison of two terms.

use ats_term::image::{Host, ImageRef};
use ats_term::order::order_key;
use ats_term::{Kind, TermRef, Zeros};
use std::cmp::Ordering;

/// Returns the standard order of two terms. O(1) unless both are tuples, both cells of lists, both
/// maps, both native records, or both bitstrings.
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

/// Returns the rank of the kind of a term in the standard order.
fn rank<H: Host>(term: ImageRef<'_, H>) -> u8 {
    match term.kind() {
        Kind::Int(_) | Kind::Big | Kind::Float(_) => 0,
        Kind::Atom => 1,
        Kind::Ref => 2,
        Kind::LocalFun | Kind::ExternalFun => 3,
        Kind::Port => 4,
        Kind::Pid => 5,
        Kind::Tuple(_) => 6,
        Kind::Opaque => 7,
        Kind::Map(_) => 8,
        Kind::Nil => 9,
        Kind::Cons(..) => 10,
        Kind::Bits(_) => 11,
    }
}
