//! Plans leave nothing out: random specifications on objects that the model accepts.

use super::{exact_key, hash_keys, order_key, ordered_ranges, parse_spec};
use crate::common::model::run;
use crate::common::{atom, call, float, list, small_term, tuple, variable};
use ats_match::Function;
use ats_match::plan::Keys;
use ats_term::arbitrary::{any_term, near_term};
use ats_term::term::Map;
use ats_term::{Term, Zeros};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use std::cell::Cell;

/// Returns `true` if an object passes the head and the guards of a clause; every body must be
/// `[true]`.
fn accepts(spec: &Term, object: &Term) -> bool {
    run(spec, object).is_some()
}

/// Largest number of variables in a head.
const VARIABLES: u32 = 4;

fn key() -> BoxedStrategy<Term> {
    let part = || prop_oneof![3 => near_term(), 2 => small_term(), 1 => any_term()];
    prop_oneof![
        2 => part(),
        2 => (part(), part()).prop_map(|(a, b)| tuple([a, b])),
        1 => (near_term(), near_term(), near_term()).prop_map(|(a, b, c)| tuple([a, b, c])),
        1 => (near_term(), part()).prop_map(|(a, b)| list([a, b])),
    ]
    .boxed()
}

/// A maker of heads from objects: `numbers` decides which parts become variables and `'_'`.
struct Heads<'n, N> {
    numbers: &'n mut N,
    /// Number of variables bound so far.
    bound: u32,
}

impl<N: Iterator<Item = u8>> Heads<'_, N> {
    /// Returns a head that mostly matches the object. It is seldom a variable, which would not
    /// limit the key.
    fn head(&mut self, object: &Term) -> Term {
        if self.numbers.next().is_some_and(|number| number < 16) {
            return self.variable(1);
        }
        let parts = object.as_tuple().expect("an object").iter();
        tuple(parts.map(|part| self.pattern(part)).collect::<Vec<_>>())
    }

    /// Returns a new variable, or sometimes one that occurred before.
    fn variable(&mut self, number: u8) -> Term {
        if self.bound == VARIABLES || number == 0 {
            return variable(self.bound.saturating_sub(1));
        }
        self.bound += 1;
        variable(self.bound - 1)
    }

    fn pattern(&mut self, term: &Term) -> Term {
        let number = self.numbers.next().unwrap_or(u8::MAX);
        match (number % 16, term) {
            (0..=4, _) => self.variable(number / 16),
            (5, _) => atom("_"),
            (6, _) => Term::Int(i64::from(number / 16)),
            (_, Term::Tuple(parts)) => tuple(
                parts
                    .iter()
                    .map(|part| self.pattern(part))
                    .collect::<Vec<_>>(),
            ),
            (_, Term::List(cell)) => {
                let head = self.pattern(cell.head());
                Term::list_with_tail([head], self.pattern(cell.tail()))
            }
            _ => term.clone(),
        }
    }
}

/// Returns a part of a term, or the term itself.
fn part_of(term: &Term, numbers: &mut impl Iterator<Item = u8>) -> Term {
    let number = usize::from(numbers.next().unwrap_or(0));
    let part = match term {
        Term::Tuple(_) => {
            let parts = term.as_tuple().unwrap();
            parts.get(number % (parts.len() + 1))
        }
        Term::List(cell) => [None, Some(cell.head()), Some(cell.tail())][number % 3],
        _ => None,
    };
    part.map_or_else(|| term.clone(), |part| part_of(part, numbers))
}

/// Generates operands of guards: mostly variables and constants.
fn operand(constants: Vec<Term>) -> BoxedStrategy<Term> {
    let constant = move |index: Index| call("const", [index.get(&constants).clone()]);
    let constant = any::<Index>().prop_map(constant).boxed();
    let leaf = prop_oneof![
        6 => (0..VARIABLES).prop_map(variable),
        6 => constant,
        1 => (-2i64..4).prop_map(Term::Int),
        1 => (1i64..3).prop_map(|at| call("element", [Term::Int(at), atom("$_")])),
    ];
    let leaf = leaf.boxed();
    // Most calls of random functions raise an exception, which makes the whole guard fail.
    let calls = leaf.clone().prop_recursive(2, 6, 2, |part| {
        let function = select(Function::ALL.to_vec());
        prop_oneof![
            2 => vec(part.clone(), 1..3).prop_map(|parts| tuple([tuple(parts)])),
            1 => vec(part.clone(), 1..3).prop_map(list),
            2 => (1i64..3, part.clone())
                .prop_map(|(at, part)| call("element", [Term::Int(at), part])),
            4 => (function, vec(part.clone(), 3)).prop_map(|(function, mut arguments)| {
                arguments.truncate(function.arity());
                call(function.name(), arguments)
            }),
            1 => (part.clone(), 0i64..2, 0i64..3).prop_map(|(part, at, len)| {
                call("binary_part", [part, Term::Int(at), Term::Int(len)])
            }),
            1 => (part, 0i64..2, 0i64..3).prop_map(|(part, at, len)| {
                call("binary_part", [part, tuple([tuple([Term::Int(at), Term::Int(len)])])])
            }),
        ]
    });
    prop_oneof![9 => leaf, 2 => calls].boxed()
}

fn guard(constants: Vec<Term>) -> BoxedStrategy<Term> {
    let operand = operand(constants.clone());
    let operators = vec!["<", "=<", ">", ">=", "==", "=:=", "==", "=:=", "/=", "=/="];
    let tests = vec![
        "is_atom",
        "is_boolean",
        "is_integer",
        "is_float",
        "is_number",
        "is_list",
        "is_tuple",
        "is_map",
        "is_binary",
        "is_bitstring",
        "is_pid",
        "is_port",
        "is_reference",
        "is_function",
    ];
    let prefix = (
        operand.clone(),
        vec(select(vec![0u8, 1, 97, 98, 255]), 0..3),
    );
    let leaf = prop_oneof![
        // Guards that limit the keys of a plan.
        16 => (select(operators.clone()), 0..VARIABLES, any::<Index>(), any::<bool>()).prop_map(
            move |(name, number, index, first)| {
                let mut pair = [variable(number), call("const", [index.get(&constants).clone()])];
                if first {
                    pair.reverse();
                }
                call(name, pair)
            }
        ),
        6 => (select(operators), operand.clone(), operand.clone())
            .prop_map(|(name, a, b)| call(name, [a, b])),
        3 => (select(tests), operand.clone()).prop_map(|(name, a)| call(name, [a])),
        1 => operand.clone(),
        1 => select(vec!["true", "false"]).prop_map(atom),
        1 => (operand.clone(), 0i64..4)
            .prop_map(|(a, size)| call("is_record", [a, atom("a"), Term::Int(size)])),
        1 => (operand.clone(), operand).prop_map(|(a, b)| call("is_map_key", [a, b])),
        1 => prefix.prop_map(|(a, bytes)| {
            let part = call("binary_part", [a, Term::Int(0), Term::Int(bytes.len() as i64)]);
            call("=:=", [part, Term::binary(&bytes)])
        }),
    ];
    let leaf = leaf.boxed();
    let nested = leaf.clone().prop_recursive(3, 10, 3, |part| {
        let logical = select(vec!["and", "or", "andalso", "orelse"]);
        prop_oneof![
            4 => (logical, vec(part.clone(), 1..4)).prop_map(|(form, parts)| call(form, parts)),
            2 => part.clone().prop_map(|part| call("not", [part])),
            1 => (part.clone(), part).prop_map(|(a, b)| call("xor", [a, b])),
        ]
    });
    prop_oneof![leaf, nested].boxed()
}

#[derive(Clone, Debug)]
struct Trial {
    spec: Term,
    objects: Vec<Term>,
    key_index: usize,
}

/// Generates a specification, and objects: those its heads were made from, and others.
fn trial() -> BoxedStrategy<Trial> {
    let objects = vec((key(), near_term()), 1..6);
    let numbers = || vec(any::<u8>(), 200);
    (objects, 0usize..2, numbers(), 1usize..3)
        .prop_flat_map(move |(objects, key_index, numbers, clauses)| {
            let objects: Vec<Term> = (objects.into_iter())
                .map(|(key, value)| {
                    let mut parts = vec![key, value];
                    parts.rotate_left(key_index);
                    tuple(parts)
                })
                .collect();
            let mut numbers = numbers.into_iter();
            let constants: Vec<Term> = (objects.iter().cycle().take(12))
                .map(|object| part_of(&object.as_tuple().unwrap()[key_index], &mut numbers))
                .chain([Term::Int(1), atom("a"), Term::Nil])
                .collect();
            let heads: Vec<Term> = (objects.iter().cycle().take(clauses))
                .map(|object| {
                    let numbers = &mut numbers;
                    Heads { numbers, bound: 0 }.head(object)
                })
                .collect();
            let guards = vec((vec(guard(constants), 0..3), 0u8..4), clauses);
            (Just(heads), guards, Just(objects), Just(key_index))
        })
        .prop_map(|(heads, guards, objects, key_index)| {
            let clauses = heads.into_iter().zip(guards).zip(objects.iter().cycle());
            let clauses = clauses.map(|((head, (guards, choice)), object)| {
                let mut guards = bind_all(&guards, &head);
                if choice > 0 {
                    guards = guards
                        .iter()
                        .filter_map(|guard| passing_guard(&head, guard, object))
                        .collect();
                }
                clause(head, guards)
            });
            Trial {
                spec: list(clauses.collect::<Vec<_>>()),
                objects,
                key_index,
            }
        })
        .boxed()
}

fn clause(head: Term, guards: Vec<Term>) -> Term {
    tuple([head, list(guards), list([atom("true")])])
}

/// Returns the guard or its negation, whichever the object passes.
fn passing_guard(head: &Term, guard: &Term, object: &Term) -> Option<Term> {
    [guard.clone(), call("not", [guard.clone()])]
        .into_iter()
        .find(|guard| accepts(&list([clause(head.clone(), vec![guard.clone()])]), object))
}

/// Replaces variables that the head does not bind by other variables, or by the object.
fn bind_all(guards: &[Term], head: &Term) -> Vec<Term> {
    let mut bound = Vec::new();
    variables(head, &mut bound);
    guards.iter().map(|guard| bind(guard, &bound)).collect()
}

fn is_variable(term: &Term) -> bool {
    (0..VARIABLES).any(|number| *term == variable(number))
}

fn variables(term: &Term, found: &mut Vec<Term>) {
    match term {
        _ if is_variable(term) => found.push(term.clone()),
        Term::Tuple(parts) => parts.iter().for_each(|part| variables(part, found)),
        Term::List(cell) => {
            variables(cell.head(), found);
            variables(cell.tail(), found);
        }
        _ => {}
    }
}

fn bind(guard: &Term, bound: &[Term]) -> Term {
    match guard {
        _ if is_variable(guard) && !bound.contains(guard) => {
            let number = (0..VARIABLES as usize).find(|&n| *guard == variable(n as u32));
            let other = number.filter(|_| !bound.is_empty());
            other.map_or_else(|| atom("$_"), |number| bound[number % bound.len()].clone())
        }
        Term::Tuple(parts) if parts.first() != Some(&atom("const")) => tuple(
            parts
                .iter()
                .map(|part| bind(part, bound))
                .collect::<Vec<_>>(),
        ),
        Term::List(cell) => {
            Term::list_with_tail([bind(cell.head(), bound)], bind(cell.tail(), bound))
        }
        other => other.clone(),
    }
}

/// Makes all zeros of a term positive; `None` if a map has both as keys.
fn with_one_zero(term: &Term) -> Option<Term> {
    Some(match term {
        Term::Float(value) => Term::try_from(value.get() + 0.0).ok()?,
        Term::Tuple(parts) => tuple(
            parts
                .iter()
                .map(with_one_zero)
                .collect::<Option<Vec<_>>>()?,
        ),
        Term::List(cell) => {
            Term::list_with_tail([with_one_zero(cell.head())?], with_one_zero(cell.tail())?)
        }
        Term::Map(map) => {
            let pairs = map
                .iter()
                .map(|(key, value)| with_one_zero(key).zip(with_one_zero(value)));
            Term::Map(Map::new(pairs.collect::<Option<_>>()?).ok()?)
        }
        other => other.clone(),
    })
}

/// Checks a trial with a table to which both zeros are the same term.
fn check_with_one_zero(trial: &Trial) -> Result<(), TestCaseError> {
    let spec = parse_spec(&trial.spec, Zeros::Same);
    let (ranges, keys) = (
        ordered_ranges(&spec, trial.key_index),
        hash_keys(&spec, trial.key_index),
    );
    let Some(model) = with_one_zero(&trial.spec) else {
        return Ok(());
    };
    for object in &trial.objects {
        let key = &object.as_tuple().unwrap()[trial.key_index];
        if with_one_zero(object).is_some_and(|object| accepts(&model, &object)) {
            prop_assert!(ranges.contains(&order_key(key, Zeros::Same)), "{}", object);
            if let Keys::These(keys) = &keys {
                prop_assert!(keys.contains(&exact_key(key, Zeros::Same)), "{}", object);
            }
        }
    }
    Ok(())
}

fn check(trial: &Trial, counts: &Counts) -> Result<(), TestCaseError> {
    check_with_one_zero(trial)?;
    let spec = parse_spec(&trial.spec, Zeros::Distinct);
    let (ranges, keys) = (
        ordered_ranges(&spec, trial.key_index),
        hash_keys(&spec, trial.key_index),
    );
    for object in &trial.objects {
        let key = &object.as_tuple().unwrap()[trial.key_index];
        let in_ranges = ranges.contains(&order_key(key, Zeros::Distinct));
        let in_keys = match &keys {
            Keys::All => true,
            Keys::These(keys) => keys.contains(&exact_key(key, Zeros::Distinct)),
        };
        if accepts(&trial.spec, object) {
            prop_assert!(in_ranges, "{} {}", object, ranges.show(&spec));
            prop_assert!(in_keys, "{} {:?}", object, keys);
            Counts::add(&counts.accepted);
            if !ranges.is_everything() {
                Counts::add(&counts.accepted_in_ranges);
            }
            if keys != Keys::All {
                Counts::add(&counts.accepted_in_keys);
            }
        } else {
            Counts::add(&counts.refused);
            if !in_ranges {
                Counts::add(&counts.refused_by_ranges);
            }
            if !in_keys {
                Counts::add(&counts.refused_by_keys);
            }
        }
    }
    Ok(())
}

/// Counts of events: a test in which no object is ever accepted proves nothing.
#[derive(Debug, Default)]
struct Counts {
    accepted: Cell<usize>,
    accepted_in_ranges: Cell<usize>,
    accepted_in_keys: Cell<usize>,
    refused: Cell<usize>,
    refused_by_ranges: Cell<usize>,
    refused_by_keys: Cell<usize>,
}

impl Counts {
    fn add(count: &Cell<usize>) {
        count.set(count.get() + 1);
    }
}

type Count = fn(&Counts) -> &Cell<usize>;

/// Checks random trials, and that the counts reach these percentages of them.
fn check_all(trials: BoxedStrategy<Trial>, percent: [(Count, usize); 5]) {
    let counts = Counts::default();
    let cases = std::env::var("PLAN_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    let cases: u32 = cases.unwrap_or(2_000);
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    let result = TestRunner::new(config).run(&trials, |trial| check(&trial, &counts));
    result.unwrap_or_else(|error| panic!("{error}"));
    println!("{counts:?}");
    for (count, percent) in percent {
        assert!(
            count(&counts).get() * 100 >= cases as usize * percent,
            "{counts:?}"
        );
    }
}

#[test]
fn nothing_is_left_out() {
    check_all(
        trial(),
        [
            (|counts| &counts.accepted, 50),
            (|counts| &counts.accepted_in_ranges, 15),
            (|counts| &counts.accepted_in_keys, 1),
            (|counts| &counts.refused_by_ranges, 50),
            (|counts| &counts.refused_by_keys, 15),
        ],
    );
}

/// The same, with guards about a key that is a variable.
#[test]
fn nothing_is_left_out_by_guards() {
    let trials = vec(key(), 1..6).prop_flat_map(|keys| {
        let guards = vec(guard(keys.clone()), 1..3);
        (guards, Just(keys)).prop_map(|(guards, keys)| {
            let objects: Vec<Term> = keys.into_iter().map(|key| tuple([key])).collect();
            let head = tuple([variable(0)]);
            let guards = bind_all(&guards, &head);
            let guards = guards
                .iter()
                .filter_map(|guard| passing_guard(&head, guard, &objects[0]));
            Trial {
                spec: list([clause(head.clone(), guards.collect())]),
                objects,
                key_index: 0,
            }
        })
    });
    check_all(
        trials.boxed(),
        [
            (|counts| &counts.accepted, 100),
            (|counts| &counts.accepted_in_ranges, 40),
            (|counts| &counts.accepted_in_keys, 2),
            (|counts| &counts.refused_by_ranges, 10),
            (|counts| &counts.refused_by_keys, 2),
        ],
    );
}

/// Generates a guard of order comparisons of one variable.
fn order_guard() -> BoxedStrategy<Term> {
    let operators = vec!["<", "=<", ">", ">=", "=="];
    let leaf = (
        select(operators),
        prop_oneof![near_term(), any_term()],
        any::<bool>(),
    )
        .prop_map(|(name, constant, left)| {
            let constant = call("const", [constant]);
            if left {
                call(name, [constant, variable(1)])
            } else {
                call(name, [variable(1), constant])
            }
        });
    leaf.prop_recursive(3, 8, 3, |part| {
        let logical = select(vec!["and", "or", "andalso", "orelse"]);
        (logical, vec(part, 1..4)).prop_map(|(form, parts)| call(form, parts))
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Guards that compare the key by order give exact plans: every key read matches.
    #[test]
    fn nothing_too_much_is_read(
        guard in order_guard(),
        keys in vec(prop_oneof![near_term(), any_term()], 1..8),
    ) {
        let spec = list([tuple([tuple([variable(1)]), list([guard]), list([atom("true")])])]);
        let plan = ordered_ranges(&parse_spec(&spec, Zeros::Distinct), 0);
        for key in keys {
            let found = plan.contains(&order_key(&key, Zeros::Distinct));
            prop_assert_eq!(found, accepts(&spec, &tuple([key.clone()])), "{}", key);
        }
    }

    /// The same for the part of a key that follows a known part.
    #[test]
    fn nothing_too_much_is_read_behind_a_prefix(
        guard in order_guard(),
        prefix in prop_oneof![near_term(), any_term()],
        parts in vec((prop_oneof![near_term(), any_term()], near_term()), 1..8),
        shape in 0usize..3,
    ) {
        let key = |prefix: Term, part: Term, rest: Term| match shape {
            0 => tuple([prefix, part, rest]),
            1 => list([prefix, part, rest]),
            _ => tuple([tuple([prefix, part]), rest]),
        };
        let constant = call("const", [prefix.clone()]);
        let same = call("==", [variable(0), constant]);
        let head = tuple([key(variable(0), variable(1), atom("_"))]);
        let spec = list([tuple([head, list([guard, same]), list([atom("true")])])]);
        let plan = ordered_ranges(&parse_spec(&spec, Zeros::Distinct), 0);
        for (part, rest) in parts {
            let key = key(prefix.clone(), part, rest);
            let found = plan.contains(&order_key(&key, Zeros::Distinct));
            prop_assert_eq!(found, accepts(&spec, &tuple([key.clone()])), "{}", key);
        }
    }

    /// A hash table looks up exactly the keys that are equal.
    #[test]
    fn equal_keys_are_looked_up(
        (part, constant, whole) in prop_oneof![
            (near_term(), near_term(), any::<bool>()),
            (number(), number(), any::<bool>()),
        ],
        others in vec(prop_oneof![2 => near_term(), 2 => number(), 1 => any_term()], 1..8),
        same in any::<bool>(),
    ) {
        let operator = if same { "=:=" } else { "==" };
        let key = |number: Term| if whole { number } else { tuple([part.clone(), number]) };
        let guard = call(operator, [variable(1), call("const", [constant.clone()])]);
        let head = tuple([key(variable(1))]);
        let spec = list([tuple([head, list([guard]), list([atom("true")])])]);
        match hash_keys(&parse_spec(&spec, Zeros::Distinct), 0) {
            Keys::All => {
                prop_assert!(has_map(&part) && !whole || !same && has_map(&constant));
            }
            Keys::These(found) => {
                for other in others.into_iter().chain([constant]) {
                    let key = key(other);
                    let exact = exact_key(&key, Zeros::Distinct);
                    let accepted = accepts(&spec, &tuple([key.clone()]));
                    prop_assert_eq!(found.contains(&exact), accepted, "{}", key);
                }
            }
        }
    }
}

/// Returns `true` if the term contains maps, or funs that may have captured some.
fn has_map(term: &Term) -> bool {
    match term {
        Term::Map(_) | Term::LocalFun(_) | Term::NativeRecord(_) => true,
        Term::Tuple(parts) => parts.iter().any(has_map),
        Term::List(cell) => has_map(cell.head()) || has_map(cell.tail()),
        _ => false,
    }
}

/// Generates numbers of which many are equal to others.
fn number() -> BoxedStrategy<Term> {
    prop_oneof![
        select(vec![0.0, -0.0, 1.0, 9_007_199_254_740_992.0, 1e20]).prop_map(float),
        select(vec![
            0,
            1,
            9_007_199_254_740_992,
            9_007_199_254_740_993,
            10i128.pow(20)
        ])
        .prop_map(Term::from),
    ]
    .boxed()
}
