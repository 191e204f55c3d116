//! Every function on every combination of interesting arguments, in guards and in bodies, against
//! the model.

use crate::common::*;
use ats_match::{Function, FunctionSet, Options};
use ats_term::term::{Bits, ExternalFun, Identifier};
use ats_term::{Atom, Term, Zeros};

/// Returns terms of every type, and at the edges of the representations.
fn interesting() -> Vec<Term> {
    let name = |text| Atom::new(text).expect("a short text");
    let identifier =
        |numbers: &[u32]| Identifier::new(name("far@away"), 1, numbers).expect("an identifier");
    let mut terms: Vec<Term> = [0, 1, -1, 2, 3, 7, 63, 64, -64, (1 << 53) + 1]
        .into_iter()
        .chain([
            1 << 59,
            (1 << 59) - 1,
            -(1 << 59),
            -(1 << 59) - 1,
            i64::MAX,
            i64::MIN,
        ])
        .map(int)
        .collect();
    terms.extend(
        [
            1i128 << 64,
            -(1i128 << 63) - 1,
            (1i128 << 100) + 1,
            i128::MIN,
        ]
        .map(Term::from),
    );
    // 2^1100, which is no float, and integers near floats.
    let mut huge = vec![0; 137];
    huge.push(16);
    terms.push(Term::integer(false, &huge));
    terms.push(Term::integer(true, &huge));
    terms.extend(
        [
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.0,
            1.5,
            -2.5,
            9_007_199_254_740_992.0,
        ]
        .map(float),
    );
    terms.extend([18_446_744_073_709_551_616.0, 1e308, -1e308, 1e-320].map(float));
    terms.extend(["true", "false", "a", "rec"].map(atom));
    terms.extend([
        Term::Nil,
        list([int(1)]),
        list([int(1), int(2), float(3.0)]),
    ]);
    terms.push(Term::list_with_tail([int(1)], int(2)));
    terms.extend([tuple([]), tuple([int(1)]), tuple([atom("rec"), int(2)])]);
    terms.extend([
        tuple([int(1), int(2)]),
        tuple([float(1.0), int(2)]),
        tuple([int(2), int(-2)]),
    ]);
    terms.extend([
        map([]),
        map([(int(1), atom("a")), (Term::from("k"), int(2))]),
    ]);
    terms.push(map([
        (float(1.0), int(1)),
        (tuple([int(1)]), int(3)),
        (Term::from(1i128 << 64), int(4)),
    ]));
    terms.extend(["", "abc", "k"].map(Term::from));
    terms.push(Term::Bits(
        Bits::new(&[1, 2, 0xF0], 20).expect("enough bytes"),
    ));
    terms.push(Term::from("long ".repeat(500)));
    terms.push(Term::Pid(identifier(&[0, 7])));
    terms.push(Term::Port(identifier(&[0, 8])));
    terms.push(Term::Ref(identifier(&[1, 2, 3])));
    terms.push(Term::ExternalFun(ExternalFun {
        module: name("lists"),
        function: name("map"),
        arity: 2,
    }));
    terms
}

/// Returns calls of a function with all combinations of arguments, which are elements of the
/// object, constants, or computed.
fn calls(function: Function) -> Vec<(Term, Term)> {
    let terms = interesting();
    let some: Vec<Term> = terms.iter().step_by(6).cloned().collect();
    let arguments: Vec<Vec<Term>> = match function.arity() {
        0 => vec![vec![]],
        1 => terms.iter().map(|a| vec![a.clone()]).collect(),
        2 => (terms.iter())
            .flat_map(|a| terms.iter().map(move |b| vec![a.clone(), b.clone()]))
            .collect(),
        _ => (terms.iter())
            .flat_map(|a| some.iter().map(move |b| (a, b)))
            .flat_map(|(a, b)| {
                some.iter()
                    .map(move |c| vec![a.clone(), b.clone(), c.clone()])
            })
            .collect(),
    };
    (arguments.into_iter().enumerate())
        .map(|(i, arguments)| {
            let object = tuple([atom("key"), tuple(arguments.clone())]);
            let variables = (0..arguments.len()).map(|i| variable(i as u32));
            let expressions =
                variables
                    .zip(&arguments)
                    .enumerate()
                    .map(|(at, (variable, term))| match (i + at) % 4 {
                        0 => call("const", [term.clone()]),
                        1 => call("hd", [list([variable])]),
                        _ => variable,
                    });
            (call(function.name(), expressions), object)
        })
        .collect()
}

/// Returns a specification whose result is the value of the expression.
fn in_body(expression: &Term, object: &Term) -> Term {
    let arguments = object
        .as_tuple()
        .and_then(|parts| parts[1].as_tuple())
        .map_or(0, <[Term]>::len);
    let head = tuple([atom("_"), tuple((0..arguments as u32).map(variable))]);
    list([tuple([head, Term::Nil, list([expression.clone()])])])
}

fn check(function: Function) {
    for (expression, object) in calls(function) {
        let spec = in_body(&expression, &object);
        let found = run(&spec, &object, &options());
        assert_eq!(found, model::run(&spec, &object), "{spec} of {object}");
    }
}

#[test]
fn tests_of_types() {
    for &function in Function::ALL {
        if function.name().starts_with("is_") {
            check(function);
        }
    }
}

#[test]
fn comparisons() {
    for name in ["<", ">", "=<", ">=", "==", "/=", "=:=", "=/=", "max", "min"] {
        check(Function::by_name(name, 2).expect("a function"));
    }
}

#[test]
fn everything_else() {
    let others = Function::ALL.iter().filter(|function| {
        let comparison = ["<", ">", "=<", ">=", "==", "/=", "=:=", "=/=", "max", "min"];
        !function.name().starts_with("is_") && !comparison.contains(&function.name())
    });
    others.for_each(|&function| check(function));
}

#[test]
fn comparisons_of_elements_in_guards() {
    let terms = interesting();
    for name in ["<", ">", "=<", ">=", "==", "/=", "=:=", "=/="] {
        for (a, b) in terms.iter().flat_map(|a| terms.iter().map(move |b| (a, b))) {
            let object = tuple([int(0), a.clone()]);
            let constant = call("const", [b.clone()]);
            for arguments in [
                [variable(1), constant.clone()],
                [constant.clone(), variable(1)],
            ] {
                let guard = call(name, arguments);
                let clause = tuple([
                    tuple([atom("_"), variable(1)]),
                    list([guard]),
                    list([int(1)]),
                ]);
                let spec = list([clause]);
                let found = run(&spec, &object, &options());
                assert_eq!(found, model::run(&spec, &object), "{spec} of {object}");
            }
        }
    }
}

#[test]
fn zeros_follow_the_option() {
    let same = Options {
        zeros: Zeros::Same,
        functions: FunctionSet::OTP_25,
        ..options()
    };
    let object = tuple([float(0.0), float(-0.0)]);
    let run = |head: Term, guard: Term, options: &Options| {
        let spec = list([tuple([head, list([guard]), list([int(1)])])]);
        run(&spec, &object, options).is_some()
    };
    let (yes, both) = (atom("true"), tuple([variable(1), variable(2)]));
    // Variables and `=:=` follow the option, `==` ignores it, and literals in heads always
    // distinguish zeros.
    assert!(run(tuple([variable(1), variable(1)]), yes.clone(), &same));
    assert!(!run(
        tuple([variable(1), variable(1)]),
        yes.clone(),
        &options()
    ));
    assert!(run(
        both.clone(),
        call("=:=", [variable(1), variable(2)]),
        &same
    ));
    assert!(!run(
        both.clone(),
        call("=:=", [variable(1), variable(2)]),
        &options()
    ));
    assert!(run(
        both.clone(),
        call("==", [variable(1), variable(2)]),
        &options()
    ));
    assert!(!run(tuple([float(-0.0), atom("_")]), yes.clone(), &same));
    assert!(run(tuple([float(0.0), float(-0.0)]), yes, &same));
}

#[test]
fn parts_of_bitstrings_follow_the_option() {
    let (whole, partial) = (Bits::new(&[1, 2], 16), Bits::new(&[1, 0b1010_0000], 11));
    let [whole, partial] = [whole, partial].map(|bits| Term::Bits(bits.expect("enough bytes")));
    let before = Options {
        whole_bytes: false,
        ..options()
    };
    let part = |of: &Term, start, len, options: &Options| {
        let part = call("binary_part", [variable(1), int(start), int(len)]);
        let spec = list([tuple([tuple([variable(1)]), Term::Nil, list([part])])]);
        run(&spec, &tuple([of.clone()]), options).expect("every object has a result")
    };
    let first = Term::Bits(Bits::from_bytes(&[1]));
    assert_eq!(part(&whole, 0, 1, &options()), first);
    assert_eq!(part(&whole, 0, 1, &before), first);
    assert_eq!(part(&partial, 0, 1, &options()), atom("EXIT"));
    assert_eq!(part(&partial, 0, 0, &options()), atom("EXIT"));
    assert_eq!(part(&partial, 0, 1, &before), first);
    assert_eq!(part(&partial, 0, 2, &before), atom("EXIT"));
}
