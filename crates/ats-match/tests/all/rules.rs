//! The rules of the language, one by one.

use crate::common::{Here, atom, call, float, int, list, map, options, run, tuple, variable};
use ats_match::{Machine, Program, Writer, parse};
use ats_term::image::{Form, ImageBuilder, Object, TermHost, release_all};
use ats_term::term::TermBuilder;
use ats_term::{Term, Zeros};

/// Runs one clause.
fn clause(head: Term, guards: Vec<Term>, body: Vec<Term>, object: &Term) -> Option<Term> {
    let spec = list([tuple([head, list(guards), list(body)])]);
    run(&spec, object, &options())
}

/// Returns the terms that the head binds, in the order of the variables.
fn bindings(head: Term, object: &Term) -> Option<Term> {
    clause(head, vec![], vec![atom("$$")], object)
}

/// Returns the value of an expression in a body, with `'$1'` bound to a term.
fn body(expression: Term, bound: Term) -> Term {
    let found = clause(
        tuple([variable(1)]),
        vec![],
        vec![expression],
        &tuple([bound]),
    );
    found.expect("the head matches")
}

/// Returns `true` if a guard passes, with `'$1'` bound to a term.
fn guard(expression: Term, bound: Term) -> bool {
    let found = clause(
        tuple([variable(1)]),
        vec![expression],
        vec![int(1)],
        &tuple([bound]),
    );
    found.is_some()
}

#[test]
fn heads_that_are_no_tuples() {
    let object = tuple([int(1), int(2)]);
    assert_eq!(bindings(atom("_"), &object), Some(Term::Nil));
    assert_eq!(bindings(variable(5), &object), Some(list([object.clone()])));
    for head in [
        atom("a"),
        int(1),
        Term::Nil,
        list([int(1), int(2)]),
        map([]),
    ] {
        assert_eq!(bindings(head, &object), None);
    }
    assert_eq!(
        clause(variable(5), vec![], vec![variable(5)], &object),
        Some(object.clone())
    );
    assert_eq!(
        clause(tuple([]), vec![], vec![atom("$_")], &tuple([])),
        Some(tuple([]))
    );
    assert_eq!(bindings(tuple([]), &object), None);
}

#[test]
fn literals_are_exact() {
    let object = tuple([
        int(1),
        float(1.0),
        Term::from(1i128 << 70),
        Term::from("text"),
    ]);
    let at = |index: usize, literal: Term| {
        let head = tuple((0..4).map(|i| {
            if i == index {
                literal.clone()
            } else {
                atom("_")
            }
        }));
        bindings(head, &object).is_some()
    };
    assert!(at(0, int(1)) && !at(0, float(1.0)) && !at(0, atom("a")));
    assert!(at(1, float(1.0)) && !at(1, int(1)));
    assert!(at(2, Term::from(1i128 << 70)) && !at(2, Term::from(-(1i128 << 70))));
    assert!(at(3, Term::from("text")) && !at(3, Term::from("texts")));
    // Variables in head order do not matter, and numbers need not be dense.
    let head = tuple([variable(9), variable(2), variable(30), variable(0)]);
    let parts = object.as_tuple().expect("a tuple");
    let expected = [3, 1, 0, 2].map(|i: usize| parts[i].clone());
    assert_eq!(bindings(head, &object), Some(list(expected)));
}

#[test]
fn an_object_of_another_size_is_not_mistaken() {
    // The image of {7, <<...>>} has a third word, which is no element.
    let object = tuple([int(7), Term::from("abcdefgh")]);
    let mut builder = ImageBuilder::<&Term>::new(Zeros::Distinct);
    builder.encode_object(&object).expect("a tuple");
    let words = builder.object().words().to_vec();
    assert_eq!(Form::of(words[0]), Form::Object);
    for &word in &words[2..] {
        if word & 0xF == 0xF {
            assert_eq!(
                bindings(
                    tuple([atom("_"), atom("_"), int(word as i64 >> 4)]),
                    &object
                ),
                None
            );
        }
    }
    // A binary whose bytes are the word of the integer 5.
    let fake = Term::from(&(5u64 << 4 | 0xF).to_ne_bytes()[..]);
    let object = tuple([int(7), fake]);
    let head = tuple([int(7), atom("_"), atom("_"), int(5)]);
    assert_eq!(bindings(head, &object), None);
}

#[test]
fn repeated_variables_are_the_same_term() {
    let head = tuple([variable(1), variable(1)]);
    let matches = |a: Term, b: Term| bindings(head.clone(), &tuple([a, b])).is_some();
    assert!(matches(int(1), int(1)) && !matches(int(1), float(1.0)));
    assert!(matches(Term::from("ab"), Term::from("ab")));
    let deep = list([tuple([int(1)]), map([(int(1), Term::from("x"))])]);
    assert!(matches(deep.clone(), deep.clone()) && !matches(deep.clone(), list([tuple([int(1)])])));
    // The tail of a list is bound as a list of its own.
    let head = tuple([Term::list_with_tail([atom("_")], variable(1)), variable(1)]);
    let object = |tail: Term| tuple([list([int(1), int(2), Term::from("x")]), tail]);
    let matches = |tail: Term| bindings(head.clone(), &object(tail)).is_some();
    assert!(matches(list([int(2), Term::from("x")])) && !matches(list([int(2), Term::from("y")])));
    // Bound inside a map, and compared outside it.
    let head = tuple([
        map([(atom("k"), list([variable(3)]))]),
        tuple([variable(3)]),
    ]);
    let object = |a, b| tuple([map([(atom("k"), list([a]))]), tuple([b])]);
    assert!(bindings(head.clone(), &object(int(4), int(4))).is_some());
    assert!(bindings(head, &object(int(4), int(5))).is_none());
}

#[test]
fn lists_in_heads() {
    let improper = Term::list_with_tail([int(1), int(2)], int(3));
    let proper = list([int(1), int(2), int(3)]);
    let at = |pattern: Term, term: &Term| bindings(tuple([pattern]), &tuple([term.clone()]));
    let open = |elements: Vec<Term>| Term::list_with_tail(elements, variable(9));
    assert_eq!(
        at(open(vec![variable(1)]), &proper),
        Some(list([int(1), list([int(2), int(3)])]))
    );
    assert_eq!(
        at(open(vec![atom("_"), atom("_"), atom("_")]), &proper),
        Some(list([Term::Nil]))
    );
    assert_eq!(at(open(vec![atom("_"); 4]), &proper), None);
    assert_eq!(
        at(open(vec![atom("_"), atom("_")]), &improper),
        Some(list([int(3)]))
    );
    assert_eq!(at(list([variable(1), atom("_")]), &improper), None);
    assert_eq!(at(list([int(1), int(2)]), &proper), None);
    assert_eq!(
        at(list([int(1), int(2), variable(1)]), &proper),
        Some(list([int(3)]))
    );
    assert_eq!(at(Term::Nil, &proper), None);
    assert_eq!(at(Term::Nil, &Term::Nil), Some(Term::Nil));
    let tail_pattern = Term::list_with_tail([atom("_")], tuple([variable(1)]));
    let with_tuple = Term::list_with_tail([int(1)], tuple([int(8)]));
    assert_eq!(at(tail_pattern, &with_tuple), Some(list([int(8)])));
}

#[test]
fn maps_in_heads_are_subsets() {
    let long_key = Term::from("a binary as key");
    let big = Term::from(1i128 << 80);
    let object = tuple([map([
        (int(1), atom("one")),
        (float(1.0), atom("float")),
        (atom("a"), tuple([int(5)])),
        (long_key.clone(), int(6)),
        (tuple([int(1), atom("x")]), int(7)),
        (big.clone(), int(8)),
    ])]);
    let at = |pairs: Vec<(Term, Term)>| bindings(tuple([map(pairs)]), &object);
    assert_eq!(at(vec![]), Some(Term::Nil));
    assert_eq!(at(vec![(int(1), variable(1))]), Some(list([atom("one")])));
    assert_eq!(
        at(vec![(float(1.0), variable(1))]),
        Some(list([atom("float")]))
    );
    assert_eq!(at(vec![(int(2), atom("_"))]), None);
    assert_eq!(at(vec![(atom("b"), atom("_"))]), None);
    assert_eq!(
        at(vec![
            (long_key, variable(2)),
            (big, variable(1)),
            (atom("a"), tuple([variable(3)]))
        ]),
        Some(list([int(8), int(6), int(5)]))
    );
    assert_eq!(
        at(vec![(tuple([int(1), atom("x")]), int(7))]),
        Some(Term::Nil)
    );
    assert_eq!(at(vec![(tuple([int(1), atom("_")]), int(7))]), None);
    assert_eq!(bindings(tuple([map([])]), &tuple([list([])])), None);
}

#[test]
fn the_first_clause_that_matches_counts() {
    let clause = |head: Term, guard: Term, body: Term| tuple([head, list([guard]), list([body])]);
    let spec = list([
        clause(atom("never"), atom("true"), int(0)),
        clause(
            tuple([variable(1), variable(2)]),
            call("<", [variable(1), int(0)]),
            int(1),
        ),
        clause(tuple([variable(2)]), atom("true"), int(2)),
        clause(
            tuple([variable(3), tuple([variable(4)])]),
            call("hd", [variable(3)]),
            int(3),
        ),
        clause(
            tuple([variable(5), tuple([variable(6)])]),
            atom("true"),
            variable(6),
        ),
        clause(atom("_"), atom("true"), call("hd", [int(1)])),
        clause(atom("_"), atom("true"), int(9)),
    ]);
    let run = |object: Term| run(&spec, &object, &options());
    assert_eq!(run(tuple([int(-1), int(0)])), Some(int(1)));
    assert_eq!(run(tuple([int(-1)])), Some(int(2)));
    assert_eq!(run(tuple([int(1), tuple([atom("x")])])), Some(atom("x")));
    // A body that fails is a result, too.
    assert_eq!(run(tuple([int(1), int(1)])), Some(atom("EXIT")));
}

#[test]
fn guards_pass_only_if_they_are_true() {
    assert!(guard(atom("true"), int(1)) && guard(variable(1), atom("true")));
    for wrong in [
        int(1),
        atom("a"),
        atom("_"),
        atom("false"),
        list([atom("true")]),
    ] {
        assert!(!guard(wrong.clone(), int(1)) && !guard(variable(1), wrong));
    }
    let fails = call("hd", [int(1)]);
    assert!(!guard(fails.clone(), int(1)));
    assert!(!guard(call("not", [fails.clone()]), int(1)));
    assert!(!guard(
        call("orelse", [fails.clone(), atom("true")]),
        int(1)
    ));
    assert!(guard(call("orelse", [atom("true"), fails.clone()]), int(1)));
    assert!(!guard(call("or", [atom("true"), fails.clone()]), int(1)));
    assert!(!guard(call("and", [atom("false"), fails]), int(1)));
    assert!(!guard(call("and", [atom("true"), int(1)]), int(1)));
    assert!(!guard(call("andalso", [atom("true"), int(1)]), int(1)));
    assert!(guard(
        call("andalso", [atom("true"), call("and", [atom("true")])]),
        int(1)
    ));
}

#[test]
fn logic_in_bodies() {
    let (yes, no, exit) = (atom("true"), atom("false"), atom("EXIT"));
    let fails = call("hd", [int(1)]);
    for (expression, expected) in [
        (
            call("and", [yes.clone(), no.clone(), yes.clone()]),
            no.clone(),
        ),
        (call("and", [yes.clone()]), yes.clone()),
        (call("and", [no.clone(), int(1)]), exit.clone()),
        (
            call("or", [no.clone(), yes.clone(), no.clone()]),
            yes.clone(),
        ),
        (call("or", [no.clone(), no.clone()]), no.clone()),
        (call("or", [yes.clone(), int(1)]), exit.clone()),
        (call("andalso", [no.clone(), int(1)]), no.clone()),
        (call("andalso", [yes.clone(), int(1)]), int(1)),
        (call("andalso", [int(1)]), int(1)),
        (call("andalso", [int(1), int(2)]), exit.clone()),
        (call("andthen", [yes.clone(), fails.clone()]), exit.clone()),
        (call("orelse", [yes.clone(), fails.clone()]), yes.clone()),
        (call("orelse", [no.clone(), int(3)]), int(3)),
        (call("orelse", [fails.clone(), yes.clone()]), exit.clone()),
        (
            call("orelse", [no.clone(), no.clone(), no.clone()]),
            no.clone(),
        ),
        (call("xor", [yes.clone(), no.clone()]), yes.clone()),
        (call("xor", [yes.clone(), int(0)]), exit.clone()),
        (call("not", [int(0)]), exit.clone()),
    ] {
        assert_eq!(body(expression.clone(), int(0)), expected, "{expression}");
    }
}

#[test]
fn failing_expressions_become_exit() {
    let fails = call("hd", [variable(1)]);
    let made = tuple([tuple([int(1), fails.clone(), list([fails.clone()])])]);
    let exit = atom("EXIT");
    assert_eq!(
        body(made, int(1)),
        tuple([int(1), exit.clone(), list([exit.clone()])])
    );
    assert_eq!(body(call("is_atom", [fails]), int(1)), atom("true"));
    assert_eq!(body(call("+", [int(1), atom("a")]), int(1)), exit);
    // All expressions of a body are evaluated, the last one is the result.
    let object = tuple([int(1)]);
    let many = vec![call("hd", [int(1)]), tuple([tuple([int(3)])]), int(2)];
    assert_eq!(clause(atom("_"), vec![], many, &object), Some(int(2)));
}

#[test]
fn terms_are_made() {
    let x = variable(1);
    assert_eq!(body(tuple([tuple([])]), int(1)), tuple([]));
    assert_eq!(body(call("const", [x.clone()]), int(1)), x);
    assert_eq!(
        body(call("const", [tuple([int(1), int(2)])]), int(1)),
        tuple([int(1), int(2)])
    );
    assert_eq!(
        body(
            Term::list_with_tail([x.clone(), int(2)], x.clone()),
            list([int(7)])
        ),
        Term::list_with_tail([list([int(7)]), int(2)], list([int(7)]))
    );
    assert_eq!(
        body(
            map([(x.clone(), int(1)), (atom("k"), list([x.clone()]))]),
            int(5)
        ),
        map([(int(5), int(1)), (atom("k"), list([int(5)]))])
    );
    // Both keys evaluate to one; the pair whose key expression is later in term order counts.
    let pairs = [(int(5), atom("first")), (x.clone(), atom("second"))];
    assert_eq!(body(map(pairs), int(5)), map([(int(5), atom("second"))]));
    assert_eq!(body(atom("_"), int(1)), atom("_"));
    let nested = tuple([tuple([list([
        tuple([tuple([x.clone()])]),
        map([(int(1), x)]),
    ])])]);
    let made = tuple([list([tuple([int(4)]), map([(int(1), int(4))])])]);
    assert_eq!(body(nested, int(4)), made);
}

#[test]
fn constructed_terms_can_be_examined() {
    let x = variable(1);
    let made = tuple([tuple([x.clone(), int(2)])]);
    assert_eq!(
        body(call("element", [int(1), made.clone()]), int(9)),
        int(9)
    );
    assert_eq!(
        body(
            call(
                "==",
                [made.clone(), call("const", [tuple([int(9), float(2.0)])])]
            ),
            int(9)
        ),
        atom("true")
    );
    assert_eq!(
        body(
            call(
                "=:=",
                [made.clone(), call("const", [tuple([int(9), int(2)])])]
            ),
            int(9)
        ),
        atom("true")
    );
    assert_eq!(body(call("size", [made]), int(9)), int(2));
    let made = Term::list_with_tail([x.clone(), x.clone()], list([x.clone()]));
    assert_eq!(body(call("length", [made.clone()]), int(9)), int(3));
    assert_eq!(
        body(
            call("hd", [call("tl", [call("tl", [made.clone()])])]),
            int(9)
        ),
        int(9)
    );
    assert_eq!(
        body(call("tl", [call("tl", [call("tl", [made])])]), int(9)),
        Term::Nil
    );
    let made = Term::list_with_tail([int(1)], x.clone());
    assert_eq!(
        body(call("length", [made.clone()]), list([int(2), int(3)])),
        int(3)
    );
    assert_eq!(body(call("length", [made]), int(2)), atom("EXIT"));
    let made = map([(x.clone(), atom("v")), (atom("k"), x.clone())]);
    assert_eq!(
        body(call("map_get", [float(9.0), made.clone()]), float(9.0)),
        atom("v")
    );
    assert_eq!(
        body(call("map_get", [int(9), made.clone()]), float(9.0)),
        atom("EXIT")
    );
    assert_eq!(body(call("map_size", [made]), int(9)), int(2));
    let part = call("binary_part", [x.clone(), int(1), int(3)]);
    assert_eq!(body(part.clone(), Term::from("abcdef")), Term::from("bcd"));
    let part = call("binary_part", [part, int(3), int(-2)]);
    assert_eq!(body(part.clone(), Term::from("abcdef")), Term::from("cd"));
    assert_eq!(
        body(call("byte_size", [part]), Term::from("abcdef")),
        int(2)
    );
}

#[test]
fn the_environment_is_asked() {
    assert_eq!(body(call("self", []), int(1)), atom("the process"));
    assert_eq!(body(call("node", []), int(1)), atom("nonode@nohost"));
    assert_eq!(body(call("node", [int(1)]), int(1)), atom("EXIT"));
}

#[test]
fn whole_objects_are_known_as_such() {
    let program = |result: Term| {
        let spec = list([tuple([variable(1), Term::Nil, list([result])])]);
        Program::new(parse(&spec, &options()).expect("a specification"))
    };
    let object = tuple([int(1), Term::from("x")]);
    let mut builder = ImageBuilder::<&Term>::new(Zeros::Distinct);
    builder.encode_object(&object).expect("a tuple");
    let mut machine = Machine::new();
    let mut look = |result: Term| {
        let program = program(result);
        let outcome = machine
            .run(&program, builder.object(), &Here)
            .expect("a match");
        (outcome.as_object().is_some(), outcome.is_true())
    };
    assert_eq!(look(atom("$_")), (true, false));
    assert_eq!(look(variable(1)), (true, false));
    assert_eq!(look(atom("true")), (false, true));
    assert_eq!(look(list([atom("$_")])), (false, false));
}

#[test]
fn a_machine_runs_many_programs() {
    let specs = [
        (
            tuple([variable(1), tuple([variable(2)])]),
            tuple([tuple([variable(2), variable(1)])]),
        ),
        (atom("_"), call("bsl", [int(1), int(100)])),
        (tuple([list([variable(1)]), atom("_")]), variable(1)),
        (
            atom("_"),
            map([(call("+", [int(1), int(2)]), Term::from("x"))]),
        ),
    ];
    let programs = specs.map(|(head, result)| {
        let spec = list([tuple([head, Term::Nil, list([result])])]);
        Program::new(parse(&spec, &options()).expect("a specification"))
    });
    let objects = [
        tuple([int(1), tuple([atom("deep")])]),
        tuple([list([Term::from("head")]), int(2)]),
    ];
    let (mut machine, mut builder) = (Machine::new(), ImageBuilder::<&Term>::new(Zeros::Distinct));
    let mut results = Vec::new();
    for _ in 0..3 {
        for object in &objects {
            builder.encode_object(object).expect("a tuple");
            for program in &programs {
                let outcome = machine.run(program, builder.object(), &Here);
                results.push(outcome.map(|outcome| {
                    let (mut sink, mut writer) = (TermBuilder::new(), Writer::new());
                    let built = outcome.write(&mut sink, &mut writer);
                    sink.finish(built).expect("a term")
                }));
            }
        }
    }
    let once = [
        Some(tuple([atom("deep"), int(1)])),
        Some(Term::from(1i128 << 100)),
        None,
        Some(map([(int(3), Term::from("x"))])),
        None,
        Some(Term::from(1i128 << 100)),
        Some(Term::from("head")),
        Some(map([(int(3), Term::from("x"))])),
    ];
    assert_eq!(results, [once.clone(), once.clone(), once].concat());
}

#[test]
fn deep_programs_run() {
    const DEPTH: usize = 50_000;
    let nest =
        |inside: Term, wrap: &dyn Fn(Term) -> Term| (0..DEPTH).fold(inside, |term, _| wrap(term));
    let deep_tuple = |inside| nest(inside, &|term| tuple([term]));
    let deep_list = |inside| nest(inside, &|term| list([int(1), term]));
    let deep_map = |inside| nest(inside, &|term| map([(int(1), term)]));
    let object = tuple([
        deep_tuple(int(1)),
        deep_list(atom("x")),
        deep_map(Term::Nil),
    ]);
    let head = tuple([
        deep_tuple(variable(1)),
        deep_list(variable(2)),
        deep_map(variable(3)),
    ]);
    let guard = nest(call("==", [variable(1), int(1)]), &|term| {
        call("not", [term])
    });
    let made = nest(variable(2), &|term| tuple([tuple([int(0), term])]));
    let found = clause(head, vec![guard], vec![made], &object);
    assert_eq!(found, Some(nest(atom("x"), &|term| tuple([int(0), term]))));
    let same = clause(
        tuple([variable(1), variable(1)]),
        vec![],
        vec![int(1)],
        &tuple([deep_list(int(1)), deep_list(int(1))]),
    );
    assert_eq!(same, Some(int(1)));
}

#[test]
fn resources_of_constants_are_given_back() {
    let large = Term::from("x".repeat(5000));
    let Term::Bits(bits) = &large else {
        panic!("a binary");
    };
    let count = || std::sync::Arc::strong_count(bits.shared_bytes());
    let before = count();
    let spec = list([
        tuple([
            tuple([large.clone()]),
            list([call("==", [large.clone(), int(1)])]),
            list([large.clone()]),
        ]),
        tuple([
            variable(1),
            Term::Nil,
            list([list([large.clone(), variable(1)])]),
        ]),
    ]);
    let with_spec = count();
    let program = Program::new(parse(&spec, &options()).expect("a specification"));
    assert!(count() > with_spec);
    let mut builder = ImageBuilder::<&Term>::new(Zeros::Distinct);
    let object = tuple([int(1)]);
    builder.encode_object(&object).expect("a tuple");
    let mut machine = Machine::new();
    let outcome = machine
        .run(&program, builder.object(), &Here)
        .expect("a match");
    assert!(format!("{outcome:?}").starts_with("Outcome([<<120,120"));
    drop(program);
    assert_eq!(count(), with_spec);
    drop(spec);
    assert_eq!(count(), before);
}

#[test]
fn results_in_images_own_their_resources() {
    let large = Term::from("y".repeat(5000));
    let Term::Bits(bits) = &large else {
        panic!("a binary");
    };
    let object = tuple([int(1), large.clone()]);
    let mut builder = ImageBuilder::<&Term>::new(Zeros::Distinct);
    builder.encode_object(&object).expect("a tuple");
    let count = || std::sync::Arc::strong_count(bits.shared_bytes());
    let result = tuple([tuple([variable(2), list([variable(2)])])]);
    let spec = list([tuple([
        tuple([variable(1), variable(2)]),
        Term::Nil,
        list([result]),
    ])]);
    let program = Program::new(parse(&spec, &options()).expect("a specification"));
    let mut machine = Machine::new();
    let outcome = machine
        .run(&program, builder.object(), &Here)
        .expect("a match");
    let before = count();
    let mut again = ImageBuilder::new(Zeros::Distinct);
    again.encode_object(outcome.term()).expect("a tuple");
    assert!(again.owns());
    let words = again.take().words().to_vec();
    drop(again);
    // The first image is dropped; the resource owned by the words of the second keeps the binary
    // alive.
    builder.discard();
    // SAFETY: the words were built for this host, and own their resources until they are released.
    let object = unsafe { Object::<TermHost>::from_words(&words) };
    let expected = tuple([large.clone(), list([large.clone()])]);
    assert_eq!(crate::common::back_to_term(object.term()), expected);
    drop(expected);
    // SAFETY: this test took ownership of the words' resources from the builder, and does not use
    // the words afterwards.
    unsafe { release_all::<TermHost>(&words) };
    assert_eq!(count(), before - 1);
}

#[test]
fn programs_are_shared_and_machines_move() {
    fn shared<T: Send + Sync>() {}
    fn moves<T: Send>() {}
    shared::<Program<TermHost>>();
    moves::<Machine<TermHost>>();
}
