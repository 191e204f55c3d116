//! Random specifications on random objects, compared with a simple model.

use crate::common::*;
use ats_term::Term;
use proptest::collection::vec;
use proptest::prelude::*;

fn object() -> BoxedStrategy<Term> {
    vec(small_term(), 1..4).prop_map(tuple).boxed()
}

/// Returns a head that is likely to match this object: some of its parts become variables.
fn near(object: &Term, choices: &mut dyn Iterator<Item = u8>) -> Term {
    let choice = choices.next().unwrap_or(0);
    match (choice, object) {
        (0..=2, _) => variable(u32::from(choice)),
        (3, _) => atom("_"),
        (_, Term::Tuple(parts)) => tuple(parts.iter().map(|part| near(part, choices))),
        (_, Term::List(_)) if object.as_list().is_none() => object.clone(),
        (_, Term::List(cell)) => {
            let elements: Vec<_> = cell.elements().cloned().collect();
            let keep = usize::from(choice) % elements.len() + 1;
            let front = elements[..keep]
                .iter()
                .map(|part| near(part, choices))
                .collect::<Vec<_>>();
            let rest = list(elements[keep..].iter().cloned());
            Term::list_with_tail(front, near(&rest, choices))
        }
        (_, Term::Map(pairs)) => {
            let some = pairs.iter().filter(|_| choice.is_multiple_of(2));
            map(some.map(|(key, value)| (key.clone(), near(value, choices))))
        }
        _ => object.clone(),
    }
}

/// Returns the numbers of the variables that a head binds.
fn bound_variables(head: &Term) -> Vec<u32> {
    let text = head.to_string();
    let numbers = (0..4).chain([1000]);
    numbers
        .filter(|number| text.contains(&format!("'${number}'")))
        .collect()
}

/// Replaces variables that the head does not bind.
fn keep_bound(expression: &Term, variables: &[u32]) -> Term {
    let part = |part: &Term| keep_bound(part, variables);
    match expression {
        Term::Atom(name) => match name
            .as_str()
            .strip_prefix('$')
            .and_then(|n| n.parse::<u32>().ok())
        {
            Some(_) if variables.is_empty() => int(1),
            Some(number) => variable(variables[number as usize % variables.len()]),
            None => expression.clone(),
        },
        Term::Tuple(parts) if parts.first() == Some(&atom("const")) => expression.clone(),
        Term::Tuple(parts) => tuple(parts.iter().map(part)),
        Term::List(cell) => Term::list_with_tail([part(cell.head())], part(cell.tail())),
        Term::Map(pairs) => {
            let mut distinct: Vec<(Term, Term)> = Vec::new();
            for (key, value) in pairs.iter() {
                let key = part(key);
                if distinct.iter().all(|(other, _)| *other != key) {
                    distinct.push((key, part(value)));
                }
            }
            map(distinct)
        }
        _ => expression.clone(),
    }
}

/// Returns a clause for this object.
fn clause(head: Term, guards: &[Term], body: &[Term]) -> Term {
    let variables = bound_variables(&head);
    let bind = |expressions: &[Term]| list(expressions.iter().map(|e| keep_bound(e, &variables)));
    tuple([head, bind(guards), bind(body)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn heads_match_as_in_the_model(object in object(), head in head()) {
        let spec = list([tuple([head, Term::Nil, list([atom("$$")])])]);
        // Specifications with a variable as a key of a map are rejected.
        prop_assume!(ats_match::parse(&spec, &options()).is_ok());
        prop_assert_eq!(run(&spec, &object, &options()), model::run(&spec, &object));
    }

    #[test]
    fn any_term_can_be_matched(
        term in small_term(),
        choices in vec(0u8..12, 20),
        head in head(),
        (is_near, guards, body) in (any::<bool>(), vec(expression(4), 0..2), expression(4)),
    ) {
        let head = if is_near { near(&term, &mut choices.into_iter()) } else { head };
        let spec = list([clause(head, &guards, &[body])]);
        prop_assume!(ats_match::parse(&spec, &options()).is_ok());
        let found = run_on_term(&spec, &term, &options());
        prop_assert_eq!(found, model::run(&spec, &term), "{}", spec);
    }

    #[test]
    fn heads_that_nearly_match(object in object(), choices in vec(0u8..12, 20)) {
        let head = near(&object, &mut choices.into_iter());
        let spec = list([tuple([head, Term::Nil, list([atom("$$")])])]);
        prop_assert_eq!(run(&spec, &object, &options()), model::run(&spec, &object));
    }

    #[test]
    fn bodies_agree_with_the_model(object in object(), body in vec(expression(4), 1..3)) {
        let len = object.as_tuple().map_or(0, <[Term]>::len);
        let head = tuple((0..len as u32).map(variable));
        let spec = list([clause(head, &[], &body)]);
        prop_assert_eq!(run(&spec, &object, &options()), model::run(&spec, &object), "{}", spec);
    }

    #[test]
    fn specifications_agree_with_the_model(
        object in object(),
        choices in vec(0u8..12, 20),
        clauses in vec((vec(expression(4), 0..3), vec(expression(4), 1..3)), 1..4),
    ) {
        let mut choices = choices.into_iter();
        let spec = list(clauses.iter().map(|(guards, body)| {
            clause(near(&object, &mut choices), guards, body)
        }));
        prop_assert_eq!(run(&spec, &object, &options()), model::run(&spec, &object), "{}", spec);
    }
}
