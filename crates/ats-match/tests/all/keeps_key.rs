//! The proof that a specification keeps keys.

use crate::common::{atom, call, float, int, list, map, options, tuple, variable};
use ats_match::{Program, parse};
use ats_term::Term;

fn keeps(head: Term, body: Vec<Term>, position: usize) -> bool {
    let spec = list([tuple([head, Term::Nil, list(body)])]);
    let spec = parse(&spec, &options()).expect("a specification");
    let program = Program::new(spec);
    program.spec().keeps_key(position)
}

/// Returns `true` if an object with this key in the head is replaced by one with that key in the
/// body.
fn key(head: Term, body: Term) -> bool {
    let bind = tuple([variable(1), variable(2), variable(3)]);
    let made = tuple([tuple([atom("x"), body])]);
    keeps(tuple([bind, head]), vec![made], 2)
}

#[test]
fn the_object_itself() {
    assert!(keeps(atom("_"), vec![atom("$_")], 1));
    assert!(keeps(tuple([variable(1)]), vec![atom("$_")], 3));
    assert!(!keeps(variable(1), vec![variable(1)], 1));
    assert!(!keeps(atom("_"), vec![atom("$_"), atom("$_")], 1));
    assert!(!keeps(tuple([variable(1)]), vec![atom("true")], 1));
    assert!(!keeps(tuple([variable(1)]), vec![list([atom("$_")])], 1));
}

#[test]
fn made_tuples() {
    assert!(key(variable(1), variable(1)));
    assert!(!key(variable(1), variable(2)));
    assert!(!key(atom("_"), atom("_")));
    assert!(!key(atom("$_"), atom("$_")));
    assert!(!key(atom("$$"), atom("$$")));
    assert!(key(int(1), int(1)) && !key(int(1), float(1.0)) && !key(int(1), int(2)));
    assert!(key(Term::from("k"), Term::from("k")) && !key(Term::from("k"), Term::from("l")));
    assert!(key(Term::Nil, Term::Nil) && !key(Term::Nil, list([int(1)])));
    let pair = |a, b| tuple([a, b]);
    let made = |a, b| tuple([pair(a, b)]);
    assert!(key(pair(variable(4), int(1)), made(variable(4), int(1))));
    assert!(!key(pair(variable(4), int(1)), made(int(1), variable(4))));
    assert!(!key(
        pair(variable(4), atom("_")),
        made(variable(4), atom("_"))
    ));
    assert!(!key(
        pair(variable(4), int(1)),
        tuple([tuple([variable(4)])])
    ));
    assert!(key(tuple([]), tuple([tuple([])])) && !key(tuple([]), Term::Nil));
    let nested = pair(int(1), pair(variable(4), int(2)));
    assert!(key(nested.clone(), made(int(1), made(variable(4), int(2)))));
    assert!(!key(nested, made(int(1), made(variable(4), int(3)))));
    assert!(key(
        list([int(1), variable(4)]),
        list([int(1), variable(4)])
    ));
    assert!(!key(list([int(1), variable(4)]), list([int(1)])));
    let tail = Term::list_with_tail([int(1)], variable(4));
    assert!(key(tail.clone(), tail.clone()) && !key(tail, list([int(1), variable(4)])));
    assert!(!key(map([]), map([])));
    assert!(!key(
        tuple([map([(int(1), int(2))])]),
        tuple([tuple([map([(int(1), int(2))])])])
    ));
}

#[test]
fn constants() {
    let constant = |term: Term| call("const", [term]);
    assert!(key(int(1), constant(int(1))) && !key(int(1), constant(int(2))));
    assert!(!key(variable(1), constant(variable(1))));
    let pair = tuple([int(1), list([int(2)])]);
    assert!(key(pair.clone(), constant(pair.clone())));
    assert!(!key(pair.clone(), constant(tuple([pair.clone()]))));
    // A constant part, followed by further variables.
    let head = tuple([tuple([int(1)]), variable(4)]);
    assert!(key(
        head.clone(),
        tuple([tuple([constant(tuple([int(1)])), variable(4)])])
    ));
    assert!(!key(
        head,
        tuple([tuple([constant(tuple([int(2)])), variable(4)])])
    ));
    let head = tuple([variable(4), tuple([variable(5)])]);
    assert!(!key(
        head,
        tuple([tuple([variable(4), constant(tuple([variable(5)]))])])
    ));
    // The whole object is a constant.
    let whole = |object: Term| vec![constant(object)];
    assert!(keeps(
        tuple([int(1), variable(1)]),
        whole(tuple([int(1), int(2)])),
        1
    ));
    assert!(!keeps(
        tuple([int(1), variable(1)]),
        whole(tuple([int(1), int(2)])),
        2
    ));
    assert!(!keeps(tuple([int(1)]), whole(tuple([int(1), int(2)])), 2));
    assert!(!keeps(tuple([int(1)]), whole(int(1)), 1));
}

#[test]
fn the_key_is_taken_from_the_object() {
    let element = |position: Term, of: &str| call("element", [position, atom(of)]);
    assert!(key(atom("_"), element(int(2), "$_")));
    assert!(!key(atom("_"), element(int(1), "$_")));
    assert!(!key(atom("_"), element(int(2), "$$")));
    assert!(!key(atom("_"), call("hd", [atom("$_")])));
    assert!(!key(atom("_"), call("const", [element(int(2), "$_")])));
    // A call that reads the key is no proof inside a larger key.
    let head = tuple([atom("_")]);
    assert!(!key(head, tuple([tuple([element(int(2), "$_")])])));
    // A head without a key proves nothing.
    let made = tuple([tuple([int(1), element(int(2), "$_")])]);
    assert!(!keeps(atom("_"), vec![made.clone()], 2));
    assert!(!keeps(tuple([atom("_")]), vec![made], 2));
}

#[test]
fn all_clauses_must() {
    let clause = |body: Term| tuple([tuple([variable(1)]), Term::Nil, list([body])]);
    let good = clause(tuple([tuple([variable(1), int(1)])]));
    let bad = clause(tuple([tuple([int(1), variable(1)])]));
    let keeps = |clauses: Vec<Term>| {
        let spec = parse(&list(clauses), &options()).expect("a specification");
        spec.keeps_key(1)
    };
    assert!(keeps(vec![good.clone(), good.clone()]));
    assert!(!keeps(vec![good.clone(), bad.clone()]) && !keeps(vec![bad, good]));
}

#[test]
fn deep_keys() {
    let nest =
        |inside: Term, wrap: &dyn Fn(Term) -> Term| (0..50_000).fold(inside, |term, _| wrap(term));
    let head = nest(variable(4), &|term| tuple([int(1), term]));
    let body = nest(variable(4), &|term| tuple([tuple([int(1), term])]));
    assert!(key(head, body));
}
