//! The work of a run on large terms, and its limit. Work is counted in steps, not timed.

use crate::common::{Here, atom, call, float, int, list, map, options, tuple, variable};
use ats_match::{Machine, Program, parse};
use ats_term::image::{ImageBuilder, TermHost};
use ats_term::{Term, Zeros};

/// Steps of a small comparison.
const FEW: usize = 50;

/// Runs a guard with a limit of `most` steps. Returns its result, or `None` if the run gave up.
fn guard(guard: &Term, parts: &[Term], most: usize) -> Option<bool> {
    let head = tuple((1..=parts.len() as u32).map(variable));
    let spec = list([tuple([head, list([guard.clone()]), list([int(1)])])]);
    let program: Program<TermHost> = Program::new(parse(&spec, &options()).expect("a spec"));
    let object = tuple(parts.iter().cloned());
    let mut builder = ImageBuilder::new(Zeros::Distinct);
    builder.encode_object(&object).expect("a tuple");
    let mut machine = Machine::new();
    machine.limit(most);
    let passes = machine.run(&program, builder.object(), &Here).is_some();
    if machine.gave_up() {
        // Without a new limit, later runs have no result, either.
        assert!(machine.run(&program, builder.object(), &Here).is_none());
        machine.limit(usize::MAX);
        let _ = machine.run(&program, builder.object(), &Here);
        assert!(!machine.gave_up());
        return None;
    }
    Some(passes)
}

fn large() -> Vec<Term> {
    let ints = |from: i64| (from..from + 20_000).map(Term::from);
    vec![
        Term::binary(&vec![7; 1 << 20]),
        list(ints(0)),
        tuple(ints(0)),
        map(ints(0).zip(ints(5))),
        map(ints(0).map(|i| (tuple([i]), int(1)))),
        Term::integer(false, &vec![7; 1 << 20]),
        (0..20_000).fold(Term::Nil, |inner, _| list([inner])),
        (0..20_000).fold(Term::Nil, |inner, _| tuple([int(1), inner])),
    ]
}

const COMPARISONS: [&str; 8] = ["==", "/=", "=:=", "=/=", "<", ">", "=<", ">="];

#[test]
fn early_differences_are_found_at_once() {
    let others = [
        atom("undefined"),
        int(5),
        float(1.5),
        Term::Nil,
        Term::from("text"),
        list([atom("a"), int(1)]),
        tuple([int(1)]),
        map([]),
    ];
    for term in large() {
        for name in COMPARISONS {
            for other in &others {
                let other = call("const", [other.clone()]);
                for arguments in [[variable(1), other.clone()], [other, variable(1)]] {
                    let comparison = call(name, arguments);
                    let passes = guard(&comparison, std::slice::from_ref(&term), FEW);
                    assert!(passes.is_some(), "{name}");
                }
            }
        }
    }
}

#[test]
fn a_long_comparison_is_given_up() {
    for term in large() {
        for name in COMPARISONS {
            let comparison = call(name, [variable(1), variable(2)]);
            let parts = [term.clone(), term.clone()];
            assert_eq!(guard(&comparison, &parts, FEW), None, "{name}");
            let is_reflexive = ["==", "=:=", "=<", ">="].contains(&name);
            assert_eq!(
                guard(&comparison, &parts, usize::MAX),
                Some(is_reflexive),
                "{name}"
            );
        }
        // The same with made terms and large constants.
        let pair = |of: u32| tuple([tuple([variable(of), int(1)])]);
        let comparison = call("==", [pair(1), pair(2)]);
        assert_eq!(guard(&comparison, &[term.clone(), term.clone()], FEW), None);
        let comparison = call("=:=", [variable(1), call("const", [term.clone()])]);
        assert_eq!(guard(&comparison, std::slice::from_ref(&term), FEW), None);
    }
}

#[test]
fn other_functions_of_large_terms_take_few_steps() {
    let [binary, list, tuple_, map, _, big, ..] = &large()[..] else {
        panic!("the terms");
    };
    let equal = |a: Term, b: Term| call("==", [a, b]);
    let part = |from: i64, len: i64| call("binary_part", [variable(1), int(from), int(len)]);
    let cases = [
        (
            equal(call("byte_size", [part(1, 1 << 19)]), int(1 << 19)),
            binary,
        ),
        (equal(part(0, 2), Term::binary(&[7, 7])), binary),
        (equal(call("length", [variable(1)]), int(20_000)), list),
        (equal(call("hd", [call("tl", [variable(1)])]), int(1)), list),
        (
            equal(call("element", [int(3), variable(1)]), int(2)),
            tuple_,
        ),
        (equal(call("map_get", [int(7), variable(1)]), int(12)), map),
        (equal(call("map_size", [variable(1)]), int(20_000)), map),
        (call("is_integer", [variable(1)]), big),
        (call(">", [variable(1), float(1e300)]), big),
    ];
    for (test, term) in cases {
        assert_eq!(
            guard(&test, std::slice::from_ref(term), FEW),
            Some(true),
            "{test}"
        );
    }
    // A large binary as a key is compared, not copied.
    let key = call("is_map_key", [variable(1), call("const", [map.clone()])]);
    assert_eq!(guard(&key, std::slice::from_ref(binary), FEW), Some(false));
    // Products of large integers exceed the limit.
    let product = call(">", [call("*", [variable(1), variable(1)]), int(1)]);
    let factor = Term::integer(false, &vec![7; 1 << 16]);
    assert_eq!(guard(&product, std::slice::from_ref(&factor), 1000), None);
    assert_eq!(
        guard(&product, std::slice::from_ref(&factor), usize::MAX),
        Some(true)
    );
}

/// A made map has its keys in another order than a map of an image.
#[test]
fn made_maps_are_compared_with_others() {
    let keys = [
        tuple([int(2)]),
        tuple([int(1)]),
        float(1.0),
        int(1),
        atom("a"),
        Term::from("x"),
    ];
    let pairs = |last: i64| {
        let values = [int(1), float(2.0), int(3), int(4), int(5), int(last)];
        keys.iter().cloned().zip(values).collect::<Vec<_>>()
    };
    for (last, other) in [(6, 6), (6, 7), (7, 6)] {
        let made = map(pairs(last).into_iter().map(|(key, value)| {
            let key = match key {
                Term::Tuple(_) => tuple([key]),
                key => key,
            };
            (key, value)
        }));
        let object = map(pairs(other));
        let order = map(pairs(last)).compare(&object);
        for name in COMPARISONS {
            let expected = match name {
                "==" | "=:=" => order.is_eq(),
                "/=" | "=/=" => order.is_ne(),
                "<" => order.is_lt(),
                ">" => order.is_gt(),
                "=<" => order.is_le(),
                _ => order.is_ge(),
            };
            let comparison = call(name, [made.clone(), variable(1)]);
            let passes = guard(&comparison, std::slice::from_ref(&object), usize::MAX);
            assert_eq!(passes, Some(expected), "{name}");
        }
    }
}
