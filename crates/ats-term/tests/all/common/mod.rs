//! Shared functions of the tests.

pub(crate) mod other_host;

use ats_term::term::{Map, Tuple};
use ats_term::{Term, Zeros, exact, order};

/// Both rules for zeros.
pub(crate) const ALL_ZEROS: [Zeros; 2] = [Zeros::Same, Zeros::Distinct];

pub(crate) fn order_key(term: &Term, zeros: Zeros) -> Vec<u8> {
    let mut key = Vec::new();
    order::order_key(term, &mut key, zeros);
    key
}

pub(crate) fn exact_key(term: &Term, zeros: Zeros, atoms: exact::Atoms) -> Vec<u8> {
    let mut key = Vec::new();
    exact::exact_key(term, &mut key, exact::Options { zeros, atoms });
    key
}

/// Returns the term as seen under a rule for zeros: with positive zeros only, if both are the same.
/// Recursive, for terms of small depth.
pub(crate) fn as_seen(term: &Term, zeros: Zeros) -> Term {
    if zeros == Zeros::Distinct {
        return term.clone();
    }
    let seen = |part: &Term| as_seen(part, zeros);
    match term {
        Term::Float(float) => Term::try_from(float.get() + 0.0).unwrap(),
        Term::List(list) => {
            let mut elements = list.elements();
            let heads: Vec<_> = elements.by_ref().map(seen).collect();
            Term::list_with_tail(heads, seen(elements.tail()))
        }
        Term::Tuple(tuple) => Term::Tuple(Tuple::new(tuple.iter().map(seen).collect())),
        Term::Map(map) => {
            let pairs = map
                .iter()
                .map(|(key, value)| (seen(key), seen(value)))
                .collect();
            Term::Map(Map::new(pairs).unwrap())
        }
        Term::LocalFun(fun) => Term::LocalFun(ats_term::term::LocalFun::new(
            fun.module(),
            fun.arity(),
            fun.index(),
            *fun.uniq(),
            fun.old_index(),
            fun.old_uniq(),
            fun.creator().clone(),
            fun.free().iter().map(seen).collect(),
        )),
        Term::NativeRecord(record) => {
            Term::NativeRecord(record.with_values(record.values().iter().map(seen).collect()))
        }
        other => other.clone(),
    }
}
