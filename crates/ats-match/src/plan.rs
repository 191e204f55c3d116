//! The keys that a specification can match at all.
//!
//! A table that runs a specification does not want to read every object. The head of a clause may
//! fix the key or the first parts of it, and the guards may compare what is left with constants. A
//! [`Plan`] says what follows from that: for an ordered table [`Ranges`] of order keys, for a hash
//! table a set of exact keys. It is a superset of what can match, and all that is read must still
//! be matched; it errs only towards too much.
//!
//! # How it is made
//! 1. `guards` turns the guards of a clause into `cases`: a guard is a formula of comparisons,
//!    which is written as "one of these cases", and a case says for some parts of the key in which
//!    ranges they are. Order keys make that simple: whatever the type, a comparison with a constant
//!    is a range of bytes.
//! 2. `head` walks the key of the head from left to right, once for every case. As long as the
//!    parts are known it appends their bytes; at the first part that is not, the ranges of that
//!    part, put behind the bytes so far, are the answer for this case. A part that must be one of
//!    several constants forks the walk.
//! 3. The answers of all cases and clauses are united. If all of them are points, they are the keys
//!    for a hash table, too, after each number that needs only be `==` was replaced by all that
//!    are.
//!
//! It is sound to put ranges of a part behind known bytes: an order key continues another one only
//! with a byte above every tag, see [`ats_term::order`]. So how the keys of a part stand to a bound
//! does not change by what follows the part.
//!
//! Nothing is recursive, except that guards may alternate between "all of" and "one of" up to a
//! fixed depth; below it they are not looked at. The work is limited, too: beyond [`LIMIT`] cases
//! or ranges some are merged, and after a number of steps nothing more is found out.

mod cases;
mod context;
mod guards;
mod head;
mod interval;
mod number;
mod outline;
mod range;
mod relation;
mod types;

pub use context::LIMIT;
pub use interval::{Cut, Edge, Interval};
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
    /// Of a table that is ordered by order keys: these ranges.
    Ordered(Ranges),
    /// Of a hash table, which knows objects by exact keys.
    Hashed(Keys),
}

/// The keys of a hash table that have to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// These exact keys, which differ; they are in no particular order. If there are none, nothing
    /// can match.
    These(Vec<Vec<u8>>),
    /// Every object has to be read.
    All,
}

/// The amount that is read, in one word.
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
    /// The plan for an ordered table whose objects have their key at `key_index`, from 0.
    ///
    /// O(size of the specification * log), with factors up to [`LIMIT`].
    #[must_use]
    pub fn for_ordered<H: Host>(spec: &Spec<H>, key_index: usize) -> Plan {
        Plan::Ordered(ranges(spec, key_index))
    }

    /// The plan for a hash table whose objects have their key at `key_index`, from 0, and which
    /// makes its keys with these options. Costs as much as [`for_ordered`](Plan::for_ordered).
    #[must_use]
    pub fn for_hash<H: Host>(spec: &Spec<H>, key_index: usize, options: exact::Options) -> Plan {
        Plan::Hashed(keys(spec, &ranges(spec, key_index), options))
    }

    /// Returns the amount that is read. O(number of ranges).
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
    /// The ranges as text: one a line, in Erlang's syntax. `spec` is the specification they were
    /// made from.
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
