//! The parser: results and errors.

use crate::common::{atom, back_to_term, call, int, list, map, options, tuple, variable};
use ats_match::spec::{Expression, Pattern};
use ats_match::{Error, Function, FunctionSet, Options, Spec, parse};
use ats_term::Term;
use ats_term::image::TermHost;
use proptest::prelude::*;

fn spec(head: Term, guards: Vec<Term>, body: Vec<Term>) -> Result<Spec<TermHost>, Error> {
    let clause = tuple([head, list(guards), list(body)]);
    parse(&list([clause]), &options())
}

fn error(guard: Term) -> Error {
    spec(atom("_"), vec![guard], vec![atom("true")]).expect_err("it should be refused")
}

#[test]
fn shapes_that_are_no_specifications() {
    let parse = |term: &Term| parse(term, &options()).map(|_| ());
    assert_eq!(parse(&Term::Nil), Err(Error::NotAList));
    assert_eq!(parse(&atom("a")), Err(Error::NotAList));
    assert_eq!(parse(&list([atom("a")])), Err(Error::NotAClause));
    assert_eq!(
        parse(&list([tuple([atom("_"), Term::Nil])])),
        Err(Error::NotAClause)
    );
    let clause = tuple([atom("_"), Term::Nil, list([int(1)])]);
    assert_eq!(
        parse(&Term::list_with_tail([clause.clone()], int(1))),
        Err(Error::NotAProperList)
    );
    assert_eq!(parse(&list([clause])), Ok(()));
    let with = |guards: Term, body: Term| parse(&list([tuple([atom("_"), guards, body])]));
    assert_eq!(
        with(int(1), list([int(1)])),
        Err(Error::ExpressionsNotAList)
    );
    assert_eq!(
        with(Term::list_with_tail([int(1)], int(2)), list([int(1)])),
        Err(Error::ExpressionsNotProper)
    );
    assert_eq!(with(Term::Nil, Term::Nil), Err(Error::NoBody));
}

#[test]
fn expressions_that_are_refused() {
    assert_eq!(error(variable(3)), Error::Unbound(3));
    for (guard, text) in [
        (
            tuple([]),
            "{} is neither a function call, nor a tuple (tuples are written {{ ... }}).",
        ),
        (
            tuple([int(1), atom("Ab")]),
            "{1,'Ab'} is neither a function call, nor a tuple (tuples are written {{ ... }}).",
        ),
        (
            call("const", []),
            "Special form 'const' called with more than one argument in {const}.",
        ),
        (
            call("const", [int(1), Term::from("x")]),
            "Special form 'const' called with more than one argument in {const,1,<<120>>}.",
        ),
        (
            call("self", [list([int(1)])]),
            "Special form 'self' called with arguments in {self,[1]}.",
        ),
        (
            call("and", []),
            "Special form 'and' called without arguments in {and}.",
        ),
        (
            call("orelse", []),
            "Special form 'orelse' called without arguments in {orelse}.",
        ),
        (
            call("andthen", []),
            "Special form 'andalso' called without arguments in {andthen}.",
        ),
        (call("foo", [int(1)]), "Function foo/1 does_not_exist."),
        (
            call("element", [int(1)]),
            "Function element/1 does_not_exist.",
        ),
        (
            call("get_tcw", []),
            "Function get_tcw/0 cannot be called in this context.",
        ),
        (
            call("get_tcw", [int(1)]),
            "Function get_tcw/1 does_not_exist.",
        ),
        (
            call("message", [int(1)]),
            "Special form 'message' used in wrong dialect.",
        ),
        (variable(12), "Variable $12 is unbound."),
    ] {
        assert_eq!(error(guard).to_string(), text);
    }
    // Deep inside, and in a body.
    let deep = list([tuple([tuple([map([(
        int(1),
        call("+", [int(1), variable(7)]),
    )])])])]);
    assert_eq!(error(deep.clone()), Error::Unbound(7));
    assert_eq!(
        spec(tuple([variable(1)]), vec![], vec![int(1), deep]).map(|_| ()),
        Err(Error::Unbound(7))
    );
}

#[test]
fn map_keys_of_heads_are_literals() {
    let head =
        |key: Term| spec(tuple([map([(key, variable(1))])]), vec![], vec![int(1)]).map(|_| ());
    assert_eq!(head(variable(2)), Err(Error::VariableInMapKey));
    assert_eq!(head(atom("_")), Err(Error::UnderscoreInMapKey));
    assert_eq!(head(tuple([variable(2), atom("_")])), Ok(()));
    // A term in a key is a literal, so it binds nothing.
    let key = tuple([variable(2)]);
    let unbound = spec(map([(key, variable(1))]), vec![], vec![variable(2)]);
    assert_eq!(unbound.map(|_| ()), Err(Error::Unbound(2)));
}

#[test]
fn releases_differ_in_functions() {
    let parse = |functions, call: Term| {
        let clause = tuple([variable(1), Term::Nil, list([call])]);
        parse(
            &list([clause]),
            &Options {
                functions,
                ..options()
            },
        )
        .map(|_| ())
    };
    for &function in Function::ALL {
        let arguments = vec![variable(1); function.arity()];
        let call = call(function.name(), arguments);
        assert_eq!(parse(FunctionSet::OTP_27, call.clone()), Ok(()));
        let expected = if FunctionSet::OTP_25.contains(function) {
            Ok(())
        } else {
            Err(Error::NoSuchFunction {
                name: function.name().into(),
                arity: function.arity(),
            })
        };
        assert_eq!(parse(FunctionSet::OTP_25, call), expected);
    }
}

#[test]
fn variables_are_numbered_anew() {
    let head = tuple([variable(70), variable(3), list([variable(70), variable(0)])]);
    let spec = spec(head, vec![], vec![atom("$$")]).expect("a specification");
    let clause = spec.clauses()[0];
    assert_eq!(spec.variables(&clause), [0, 3, 70]);
    let Pattern::Tuple(parts) = spec.pattern(clause.head) else {
        panic!("a tuple");
    };
    let Pattern::Variable(slot) = spec.pattern(parts.get(0)) else {
        panic!("a variable");
    };
    assert_eq!(slot.0, 2);
}

#[test]
fn constants_are_folded() {
    let constant = |body: Term| {
        let spec = spec(variable(1), vec![], vec![body]).expect("a specification");
        match spec.expression(spec.clauses()[0].body.get(0)) {
            Expression::Constant(constant) => Some(back_to_term(spec.constant(constant))),
            _ => None,
        }
    };
    let plain = list([int(1), map([(atom("a"), list([int(2)]))])]);
    assert_eq!(constant(plain.clone()), Some(plain.clone()));
    assert_eq!(
        constant(tuple([tuple([plain.clone(), int(7)])])),
        Some(tuple([plain.clone(), int(7)]))
    );
    assert_eq!(constant(call("const", [variable(9)])), Some(variable(9)));
    assert_eq!(constant(list([int(1), variable(1)])), None);
    assert_eq!(constant(list([int(1), tuple([tuple([int(1)])])])), None);
    assert_eq!(constant(list([call("const", [tuple([])])])), None);
    assert_eq!(constant(tuple([tuple([])])), Some(tuple([])));
}

#[test]
fn deep_terms_are_read() {
    const DEPTH: usize = 100_000;
    let nest =
        |inside: Term, wrap: &dyn Fn(Term) -> Term| (0..DEPTH).fold(inside, |term, _| wrap(term));
    let head = nest(variable(1), &|term| tuple([term]));
    let other = nest(variable(2), &|term| map([(int(1), list([term]))]));
    let guard = nest(variable(1), &|term| call("not", [term]));
    let body = nest(variable(2), &|term| tuple([tuple([int(0), term])]));
    let spec = spec(tuple([head, other]), vec![guard], vec![body]).expect("a specification");
    assert_eq!(spec.variables(&spec.clauses()[0]), [1, 2]);
}

/// Returns the term that a pattern was parsed from.
fn unparse_pattern(spec: &Spec<TermHost>, variables: &[u32], pattern: Pattern) -> Term {
    let part = |id| unparse_pattern(spec, variables, spec.pattern(id));
    match pattern {
        Pattern::Any => atom("_"),
        Pattern::Variable(slot) => variable(variables[slot.0 as usize]),
        Pattern::Literal(constant) => back_to_term(spec.constant(constant)),
        Pattern::Tuple(parts) => tuple(parts.iter().map(part)),
        Pattern::List { elements, tail } => {
            Term::list_with_tail(elements.iter().map(part).collect::<Vec<_>>(), part(tail))
        }
        Pattern::Map { keys, values } => {
            let keys = keys.iter().map(|key| back_to_term(spec.map_key(key)));
            map(keys.zip(values.iter().map(part)))
        }
    }
}

/// Drops pairs whose key occurs again later. Different expressions may have the same value, such as
/// 1 and `{const, 1}`; then the last one counts.
fn last_of_each(pairs: impl Iterator<Item = (Term, Term)>) -> Vec<(Term, Term)> {
    let mut distinct: Vec<(Term, Term)> = Vec::new();
    for (key, value) in pairs {
        distinct.retain(|(other, _)| *other != key);
        distinct.push((key, value));
    }
    distinct
}

/// Returns the term that an expression was parsed from, or one with the same meaning.
fn unparse_expression(spec: &Spec<TermHost>, variables: &[u32], expression: Expression) -> Term {
    let part = |id| unparse_expression(spec, variables, spec.expression(id));
    let named = |name: &str, parts: Vec<Term>| call(name, parts);
    match expression {
        Expression::Variable(slot) => variable(variables[slot.0 as usize]),
        Expression::WholeObject => atom("$_"),
        Expression::AllBindings => atom("$$"),
        Expression::Constant(constant) => call("const", [back_to_term(spec.constant(constant))]),
        Expression::Tuple(parts) => tuple([tuple(parts.iter().map(part))]),
        Expression::List { elements, tail } => {
            Term::list_with_tail(elements.iter().map(part).collect::<Vec<_>>(), part(tail))
        }
        Expression::Map { keys, values } => map(last_of_each(
            keys.iter().map(part).zip(values.iter().map(part)),
        )),
        Expression::Call(function, parts) => {
            named(function.name(), parts.iter().map(part).collect())
        }
        Expression::And(parts) => named("and", parts.iter().map(part).collect()),
        Expression::Or(parts) => named("or", parts.iter().map(part).collect()),
        Expression::AndAlso(parts) => named("andalso", parts.iter().map(part).collect()),
        Expression::OrElse(parts) => named("orelse", parts.iter().map(part).collect()),
        Expression::SelfPid => call("self", []),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn heads_come_back(head in crate::common::head()) {
        let Ok(spec) = spec(head.clone(), vec![], vec![int(1)]) else {
            // The head has a variable as a key of a map.
            return Ok(());
        };
        let clause = spec.clauses()[0];
        let again = unparse_pattern(&spec, spec.variables(&clause), spec.pattern(clause.head));
        prop_assert_eq!(again, head);
    }

    #[test]
    fn expressions_come_back(expression in crate::common::expression(3)) {
        let head = tuple((0..3).map(variable));
        let spec = spec(head.clone(), vec![], vec![expression.clone()]).expect("a specification");
        let clause = spec.clauses()[0];
        let variables = spec.variables(&clause);
        let again = unparse_expression(&spec, variables, spec.expression(clause.body.get(0)));
        let second = self::spec(head, vec![], vec![again.clone()]).expect("a specification");
        let clause = second.clauses()[0];
        let third = unparse_expression(&second, variables, second.expression(clause.body.get(0)));
        prop_assert_eq!(third, again);
    }

    #[test]
    fn any_term_is_read_or_refused(term in ats_term::arbitrary::any_term()) {
        let clause = tuple([term.clone(), list([term.clone()]), list([term.clone()])]);
        for term in [list([clause]), term] {
            if let Err(error) = parse(&term, &options()) {
                prop_assert!(!error.to_string().is_empty() && !error.is_system_limit());
            }
        }
    }
}
