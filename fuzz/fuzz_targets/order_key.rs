//! Two terms in the external term format, one after the other: keys and comparison agree.

#![no_main]

use ats_term::etf::{Atoms, Options, decode_first};
use ats_term::{Term, Zeros, exact, order};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let options = Options {
        atoms: Atoms::New { limit: 2 },
    };
    let Ok((a, length)) = decode_first(input, options) else {
        return;
    };
    let Ok((b, _)) = decode_first(&input[length..], options) else {
        return;
    };
    let order = order_key(&a).cmp(&order_key(&b));
    assert_eq!(order, a.compare(&b), "{a} and {b}");
    assert_eq!(exact_key(&a) == exact_key(&b), a == b, "{a} and {b}");
    assert!(a != b || order.is_eq(), "{a} and {b}");
});

fn order_key(term: &Term) -> Vec<u8> {
    let mut key = Vec::new();
    order::order_key(term, &mut key, Zeros::Distinct);
    key
}

fn exact_key(term: &Term) -> Vec<u8> {
    let mut key = Vec::new();
    exact::exact_key(term, &mut key, exact::Options::default());
    key
}
