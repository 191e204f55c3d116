//! Plans: sound (no match is left out) and narrow.

mod narrow;
mod read;
mod sound;

use ats_match::plan::{Keys, Plan, Ranges};
use ats_match::{Options, Spec, parse};
use ats_term::image::TermHost;
use ats_term::{Term, Zeros, exact, order};

fn parse_spec(spec: &Term, zeros: Zeros) -> Spec<TermHost> {
    let options = Options {
        zeros,
        ..crate::common::options()
    };
    parse(spec, &options).expect("a specification")
}

fn ordered_ranges(spec: &Spec<TermHost>, key_index: usize) -> Ranges {
    match Plan::for_ordered(spec, key_index) {
        Plan::Ordered(ranges) => ranges,
        Plan::Hashed(_) => panic!("not asked for"),
    }
}

fn exact_options(zeros: Zeros) -> exact::Options {
    exact::Options {
        zeros,
        ..exact::Options::default()
    }
}

fn hash_keys(spec: &Spec<TermHost>, key_index: usize) -> Keys {
    match Plan::for_hash(spec, key_index, exact_options(spec.zeros())) {
        Plan::Hashed(keys) => keys,
        Plan::Ordered(_) => panic!("not asked for"),
    }
}

fn order_key(term: &Term, zeros: Zeros) -> Vec<u8> {
    let mut key = Vec::new();
    order::order_key(term, &mut key, zeros);
    key
}

fn exact_key(term: &Term, zeros: Zeros) -> Vec<u8> {
    let mut key = Vec::new();
    exact::exact_key(term, &mut key, exact_options(zeros));
    key
}
