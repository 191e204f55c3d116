//! Deeply nested terms, passed to all functions that walk terms, on a small stack.

use crate::common::other_host::OtherHostTerm;
use crate::common::{exact_key, order_key};
use ats_term::etf::{Options, decode, encode, encode_into};
use ats_term::image::ImageBuilder;
use ats_term::term::{Identifier, List, LocalFun, Map, NativeRecord, Tuple};
use ats_term::{Atom, Term, Zeros, order};

/// Depth of nesting: a million levels, less in slow builds; a fraction of either overflows the
/// stack of a recursive walk.
const DEPTH: usize = if cfg!(debug_assertions) {
    200_000
} else {
    1_000_000
};

const STACK_BYTES: usize = 64 * 1024;

/// Runs a test on a thread with a stack that a recursive walk overflows at once.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(test)
        .unwrap();
    thread.join().unwrap();
}

/// Wraps `innermost` this many times.
fn nest(innermost: Term, wrap: impl Fn(Term) -> Term) -> Term {
    (0..DEPTH).fold(innermost, |inner, _| wrap(inner))
}

fn check(wrap: impl Fn(Term) -> Term + Send + Copy + 'static) {
    on_a_small_stack(move || {
        let (a, b) = (nest(Term::Int(1), wrap), nest(Term::Int(2), wrap));
        let copy = nest(Term::Int(1), wrap);
        assert!(a.compare(&b).is_lt());
        assert!(a.compare_exact(&b).is_lt());
        assert_eq!(a, copy);

        let zeros = Zeros::Distinct;
        assert!(order_key(&a, zeros) < order_key(&b, zeros));
        assert!(order::compare(&a, &b, zeros).is_lt());
        assert!(order::compare(&a, &copy, zeros).is_eq());
        let exact = |term| exact_key(term, zeros, ats_term::exact::Atoms::Word);
        assert_eq!(exact(&a), exact(&copy));
        assert_ne!(exact(&a), exact(&b));

        let bytes = encode(&a).unwrap();
        assert_eq!(decode(&bytes, Options::default()).unwrap(), a);
        let object = Term::from((a.clone(),));
        let mut builder = ImageBuilder::new(zeros);
        builder.encode_object(&object).unwrap();
        let mut from_image = Vec::new();
        encode_into(builder.object().element(0), &mut from_image).unwrap();
        assert_eq!(from_image, bytes);
        drop(builder);
        drop(object);
        // An error deep inside drops the terms read so far.
        assert!(decode(&bytes[..bytes.len() / 2], Options::default()).is_err());
        assert!(a.to_string().len() > DEPTH);

        // The shared part must survive the first drop, and not overflow the stack in the second.
        let shared = a.clone();
        drop(a);
        assert_eq!(shared, copy);
    });
}

#[test]
fn tuples() {
    check(|inner| Term::from((inner, 0)));
}

#[test]
fn last_elements_of_tuples() {
    check(|inner| Term::from((0, inner)));
}

#[test]
fn long_lists() {
    check(|tail| Term::List(List::new(Term::Int(7), tail)));
}

#[test]
fn lists_in_lists() {
    check(|head| Term::List(List::new(head, Term::Nil)));
}

#[test]
fn map_values() {
    check(|value| Term::Map(Map::new(vec![(Term::Int(1), value)]).unwrap()));
}

#[test]
fn map_keys() {
    check(|key| Term::Map(Map::new(vec![(key, Term::Nil)]).unwrap()));
}

#[test]
fn native_records() {
    let atom = |text| Atom::new(text).unwrap();
    let (module, name, fields) = (atom("m"), atom("r"), [atom("a"), atom("b")]);
    check(move |value| {
        let fields = fields.into_iter().zip([Term::Int(0), value]);
        Term::NativeRecord(NativeRecord::new(module, name, false, fields))
    });
}

#[test]
fn funs() {
    let creator = Identifier::new(Atom::new("n@h").unwrap(), 1, &[0, 1]).unwrap();
    let module = Atom::new("m").unwrap();
    on_a_small_stack(move || {
        let wrap = |inner| {
            let free = vec![Term::Int(0), inner];
            let creator = creator.clone();
            Term::LocalFun(LocalFun::new(module, 1, 2, [3; 16], 4, 5, creator, free))
        };
        let (a, b) = (nest(Term::Int(1), wrap), nest(Term::Int(2), wrap));
        assert!(a.compare(&b).is_lt());
        assert!(order_key(&a, Zeros::Same) < order_key(&b, Zeros::Same));
        let exact = |term| exact_key(term, Zeros::Same, ats_term::exact::Atoms::Word);
        assert_ne!(exact(&a), exact(&b));
        let bytes = encode(&a).unwrap();
        assert_eq!(decode(&bytes, Options::default()).unwrap(), a);
        let mut from_another_host = Vec::new();
        encode_into(OtherHostTerm(&a), &mut from_another_host).unwrap();
        assert_eq!(from_another_host, bytes);
        let shared = a.clone();
        drop(a);
        drop(shared);
    });
}

/// Several threads drop one deep term at the same moment.
#[test]
fn shared_terms_are_dropped_by_whoever_is_last() {
    for _ in 0..20 {
        let term = (0..20_000).fold(Term::Nil, |inner, _| Term::Tuple(Tuple::from([inner])));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let term = term.clone();
                std::thread::Builder::new()
                    .stack_size(STACK_BYTES)
                    .spawn(move || drop(term))
                    .unwrap()
            })
            .collect();
        drop(term);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
