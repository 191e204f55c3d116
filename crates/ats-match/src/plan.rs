//! The keys that a specification can match at all.
//!
//! A table that runs a specification should not read every object. The head of a clause may
//! fix the key or the first parts of it, and the guards may compare the remaining parts with
//! constants. A [`Plan`] is the consequence: [`Ranges`] of order keys for an ordered table, a set
//! of exact keys for a hash table. It is a superset of the keys that can match, so every object
//! read must still be matched.
//!
//! # How it is made
//! 1. `guards` turns the guards of a clause into `cases`: a guard is a formula of comparisons in
//!    disjunctive normal form, and each case limits some parts of the key to ranges. Order keys
//!    make that simple: a comparison with a constant of any type is a range of bytes.
//! 2. `head` walks the key of the head from left to right, once for every case. It appends the
//!    bytes of the parts that are known. The ranges of the first unknown part, appended to the
//!    bytes so far, are the answer for this case. A part that must be one of several constants
//!    forks the walk.
//! 3. The answers of all cases and clauses are united. If all of them are points, they are also the
//!    keys for a hash table, once each number compared by `==` is replaced by all numbers that are
//!    equal.
//!
//! It is sound to append the ranges of a part to known bytes: an order key continues another one
//! only with a byte above every tag, see [`ats_term::order`]. The bytes after a part therefore
//! never change its order relative to a bound.
//!
//! Nothing is recursive, except that guards may alternate between "all of" and "one of" up to a
//! fixed depth; deeper guards are ignored. The work is limited, too: beyond [`LIMIT`] cases or
//! ranges some are merged, and after a number of steps the analysis stops.

mod cases;
mod context;
mod fixed_key;
mod guards;
mod head;
mod interval;
mod number;
mod outline;
mod range;
mod relation;
mod types;

pub use context::LIMIT;
pub use fixed_key::{FixedKey, KeyOrder};
pub use interval::{Boundary, Edge, Interval};
pub use outline::{Equality, Outline, Token};
pub use range::Ranges;

use crate::spec::Spec;
use ats_term::exact;
use ats_term::image::Host;
use context::PlanContext;
use std::fmt::Write;

/// The part of a table that has to be read.
#[derive(Clone, Debug)]
pub enum Plan {
    /// Ranges of order keys, for an ordered table.
    Ordered(Ranges),
    /// Exact keys, for a hash table.
    Hashed(Keys),
}

/// The keys of a hash table that have to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Single keys: distinct exact keys in no particular order. Without any, nothing can match.
    These(Vec<Vec<u8>>),
    /// Every object must be read.
    All,
}

/// Extent of the reads, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing can match.
    Nothing,
    /// Single keys.
    Points,
    /// Parts of the table.
    Ranges,
    /// The whole table.
    Everything,
}

impl Plan {
    /// Plans the reads of an ordered table whose objects have their key at `key_index`, from 0.
    ///
    /// O(size of the specification * log), with factors up to [`LIMIT`].
    #[must_use]
    pub fn for_ordered<H: Host>(spec: &Spec<H>, key_index: usize) -> Plan {
        Plan::Ordered(ranges(spec, key_index))
    }

    /// Plans the reads of a hash table whose objects have their key at `key_index`, from 0, and
    /// whose keys are made with these options. Costs as much as [`for_ordered`](Plan::for_ordered).
    #[must_use]
    pub fn for_hash<H: Host>(spec: &Spec<H>, key_index: usize, options: exact::Options) -> Plan {
        Plan::Hashed(keys(spec, &ranges(spec, key_index), options))
    }

    /// Returns the extent of the reads. O(number of ranges).
    #[must_use]
    pub fn access(&self) -> Access {
        match self {
            Plan::Ordered(ranges) if ranges.is_empty() => Access::Nothing,
            Plan::Ordered(ranges) if ranges.is_everything() => Access::Everything,
            Plan::Ordered(ranges) if ranges.iter().all(Interval::is_point) => Access::Points,
            Plan::Ordered(_) => Access::Ranges,
            Plan::Hashed(Keys::These(keys)) if keys.is_empty() => Access::Nothing,
            Plan::Hashed(Keys::These(_)) => Access::Points,
            Plan::Hashed(Keys::All) => Access::Everything,
        }
    }
}

impl Ranges {
    /// Renders the ranges as text: one a line, in Erlang's syntax. `spec` is the specification they
    /// were made from.
    #[must_use]
    pub fn show<H: Host>(&self, spec: &Spec<H>) -> String {
        let mut out = String::new();
        for interval in self.iter() {
            writeln!(out, "{}", interval.show(spec)).expect("a string takes any text");
        }
        out
    }
}

fn ranges<H: Host>(spec: &Spec<H>, key_index: usize) -> Ranges {
    let context = PlanContext::new(spec);
    let mut found = Vec::new();
    for clause in spec.clauses() {
        let Some(head) = head::Head::new(&context, clause, key_index) else {
            continue;
        };
        let cases = guards::Guards::new(&context, &head).cases(clause.guards);
        for case in cases.iter() {
            found.extend(head.ranges(case).into_intervals());
        }
    }
    Ranges::union_of(found).coarsen(LIMIT)
}

fn keys<H: Host>(spec: &Spec<H>, ranges: &Ranges, options: exact::Options) -> Keys {
    let mut keys = Vec::new();
    for interval in ranges.iter() {
        let room = LIMIT - keys.len();
        let point = interval.is_point().then(|| interval.from().outline());
        match point.and_then(|outline| outline.exact_keys(spec, options, room)) {
            Some(found) => keys.extend(found),
            None => return Keys::All,
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Keys::These(keys)
}
