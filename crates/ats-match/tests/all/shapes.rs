//! Programs whose literals are exchanged: each is the one that would be compiled anew.

use crate::common::{
    atom, call, expression, float, head, int, list, map, options, tuple, variable,
};
use ats_match::plan::{Access, FixedKey, KeyOrder, Keys, Plan};
use ats_match::{Program, Shape, parse};
use ats_term::image::{ImageBuilder, TermHost};
use ats_term::order::prefix_end;
use ats_term::term::{Map, Tuple};
use ats_term::{Term, Zeros, exact};
use proptest::collection::vec;
use proptest::prelude::*;

fn clause(head: Term, guards: Vec<Term>, body: Vec<Term>) -> Term {
    tuple([head, list(guards), list(body)])
}

fn read(clause: &Term) -> Option<Shape<TermHost>> {
    let (mut builder, mut shape) = (ImageBuilder::new(Zeros::Distinct), Shape::new());
    builder.encode_object(clause).expect("a tuple");
    shape.read(&builder).then_some(shape)
}

fn compile(clause: &Term) -> Option<Program<TermHost>> {
    let spec = list([clause.clone()]);
    Some(Program::new(parse(&spec, &options()).ok()?))
}

/// A program as text, with all that it is made of.
fn text(program: &Program<TermHost>) -> String {
    format!(
        "{program:?} {:?} {:?}",
        program.spec(),
        program.spec().clause_term(0)
    )
}

/// Compiles a clause, and exchanges its literals for those of others, in both ways. Returns how
/// many of the others have the same shape.
fn exchange(first: &Term, others: &[Term]) -> usize {
    let Some(shape) = read(first) else { return 0 };
    let compiled = Program::of_shape(&shape, &options()).expect("no marker stands in it");
    let (Ok(mut program), Some(fresh)) = (compiled, compile(first)) else {
        assert!(compile(first).is_none(), "{first:?}");
        return 0;
    };
    assert_eq!(text(&program), text(&fresh), "{first:?}");
    check_keys(&program);
    let mut same = 0;
    for other in others {
        let other_shape = read(other).expect("a clause");
        let before = text(&program);
        let is_read = program.read_literals(other);
        if !program.has_shape(&other_shape) {
            assert!(!is_read, "{first:?} {other:?}");
            assert_eq!(text(&program), before, "{first:?} {other:?}");
            continue;
        }
        same += 1;
        let fresh = compile(other).expect("a clause of that shape");
        if is_read {
            assert_eq!(text(&program), text(&fresh), "{first:?} {other:?}");
        } else {
            assert_eq!(text(&program), before, "{first:?} {other:?}");
        }
        program.exchange_literals(&other_shape);
        assert_eq!(text(&program), text(&fresh), "{first:?} {other:?}");
        assert_eq!(
            program.hash_with_literals(),
            other_shape.hash_with_literals()
        );
        check_keys(&program);
    }
    same
}

/// Compares keys that a head fixes with the plan.
fn check_keys(program: &Program<TermHost>) {
    let (spec, options) = (program.spec(), exact::Options::default());
    for key_index in 0..3 {
        if let Some(fixed) = FixedKey::new(spec, key_index, KeyOrder::Ordered) {
            let mut bytes = Vec::new();
            fixed.write(spec, &mut bytes);
            let Plan::Ordered(ranges) = Plan::for_ordered(spec, key_index) else {
                unreachable!("a plan for an ordered table")
            };
            // Guards that are never true leave nothing.
            if let Some(interval) = ranges.iter().next() {
                assert_eq!(ranges.len(), 1);
                assert_eq!(interval.is_point(), fixed.access() == Access::Points);
                assert_eq!(interval.from().bytes(), bytes);
                let to = (fixed.access() != Access::Everything).then(|| prefix_end(&bytes));
                assert_eq!(interval.to().map(|to| to.bytes().to_vec()), to);
            }
        }
        if let Some(fixed) = FixedKey::new(spec, key_index, KeyOrder::Hashed(options)) {
            let mut bytes = Vec::new();
            fixed.write(spec, &mut bytes);
            match Plan::for_hash(spec, key_index, options) {
                Plan::Hashed(Keys::These(keys)) => {
                    assert!(keys.is_empty() || keys == [bytes]);
                    assert!(keys.is_empty() || fixed.access() == Access::Points);
                }
                _ => assert_eq!((fixed.access(), bytes), (Access::Everything, Vec::new())),
            }
        }
    }
}

/// Another term with other literals, as the numbers say; some become terms of other kinds.
fn change(term: &Term, numbers: &mut impl Iterator<Item = u8>) -> Term {
    let number = numbers.next().unwrap_or(0);
    let mut all =
        |terms: &[Term]| -> Vec<Term> { terms.iter().map(|term| change(term, numbers)).collect() };
    match term {
        Term::Tuple(elements) => Term::Tuple(Tuple::new(all(elements))),
        Term::List(cells) => {
            let mut elements = cells.elements();
            let parts: Vec<Term> = elements.by_ref().cloned().collect();
            Term::list_with_tail(all(&parts), change(elements.tail(), numbers))
        }
        Term::Map(pairs) => {
            let values = all(pairs.values());
            let pairs = pairs.keys().iter().cloned().zip(values);
            Term::Map(Map::new(pairs.collect()).expect("the same keys"))
        }
        _ if number < 100 => term.clone(),
        Term::Atom(_) if number < 200 => term.clone(),
        Term::Atom(text) if text.as_str().starts_with('$') => term.clone(),
        Term::Int(_) if number < 220 => Term::Int(i64::from(number)),
        Term::Float(_) => float(f64::from(number)),
        Term::Bits(_) => Term::binary(&vec![number; usize::from(number % 20)]),
        _ if number < 235 => atom("other"),
        _ if number < 240 => atom("_"),
        _ if number < 245 => variable(0),
        _ if number < 250 => Term::Int(i64::MAX - i64::from(number)),
        _ => term.clone(),
    }
}

fn count_same(first: Term, others: impl IntoIterator<Item = Term>) -> usize {
    exchange(&first, &others.into_iter().collect::<Vec<_>>())
}

#[test]
fn keys_are_literals() {
    let all = || vec![variable(1)];
    let with_key = |key: Term| clause(tuple([key, variable(1), atom("_")]), vec![], all());
    let numbers = [int(2), int(-1), atom("key"), int(1)];
    assert_eq!(count_same(with_key(int(1)), numbers.map(with_key)), 4);
    // Literals of another kind or size, and atoms with a meaning.
    let others = [
        atom("_"),
        variable(1),
        atom("$_"),
        Term::Nil,
        float(1.0),
        int(i64::MAX),
        Term::from("a"),
        tuple([int(1)]),
        map([]),
    ];
    assert_eq!(count_same(with_key(int(1)), others.map(with_key)), 0);
    let binaries = ["", "a", "abcdefgh", "abcdefghi", "abcdefghij"].map(Term::from);
    assert_eq!(
        count_same(with_key(Term::from("key")), binaries.map(with_key)),
        2
    );
    assert_eq!(
        count_same(
            with_key(float(1.0)),
            [0.0, -0.0, 2.5].map(float).map(with_key)
        ),
        3
    );
    let big = [i64::MIN, i64::MAX - 1].map(int).map(with_key);
    assert_eq!(count_same(with_key(int(i64::MAX)), big), 2);
    let pair = |a: Term, b: Term| with_key(tuple([a, b]));
    let pairs = [
        pair(int(5), variable(2)),
        pair(int(5), int(6)),
        pair(variable(2), int(5)),
    ];
    assert_eq!(count_same(pair(int(1), variable(2)), pairs), 1);
    let with_tail = |tail: Term| with_key(Term::list_with_tail([int(1), int(2)], tail));
    let tails = [int(4), Term::Nil, list([int(3)]), variable(2)];
    assert_eq!(count_same(with_tail(int(3)), tails.map(with_tail)), 1);
}

#[test]
fn guards_and_bodies_have_literals() {
    let guard = |name: &str, bound: Term| {
        let guards = vec![call(name, [variable(1), bound])];
        clause(
            tuple([int(7), variable(1)]),
            guards,
            vec![variable(1), atom("true")],
        )
    };
    let others = [
        guard("<", int(6)),
        guard("<", atom("a")),
        guard(">", int(5)),
        guard("<", variable(1)),
        guard("<", tuple([tuple([int(5)])])),
    ];
    assert_eq!(count_same(guard("<", int(5)), others), 2);
    let made = |body: Term| clause(tuple([int(7), variable(1)]), vec![], vec![body]);
    let constant = |term: Term| made(call("const", [term]));
    let terms = [int(2), atom("a"), atom("$_"), variable(1), variable(9)];
    assert_eq!(count_same(constant(int(1)), terms.map(constant)), 2);
    let pair = |first: Term| made(tuple([tuple([first, variable(1)])]));
    assert_eq!(
        count_same(pair(int(1)), [int(2), atom("a"), int(3)].map(pair)),
        2
    );
    let keyed = |key: Term| made(map([(key, variable(1)), (int(3), int(4))]));
    assert_eq!(
        count_same(keyed(int(1)), [int(1), int(2), int(9)].map(keyed)),
        1
    );
}

#[test]
fn guards_about_the_key_need_a_plan() {
    let fixed = |head: Term, guards: Vec<Term>| {
        let program = compile(&clause(head, guards, vec![atom("$_")])).expect("a clause");
        FixedKey::new(program.spec(), 0, KeyOrder::Ordered).map(|fixed| fixed.access())
    };
    let head = || tuple([tuple([int(1), variable(1)]), variable(2)]);
    let less = |term: Term| vec![call("<", [term, int(5)])];
    assert_eq!(fixed(head(), vec![]), Some(Access::Ranges));
    assert_eq!(fixed(head(), less(variable(2))), Some(Access::Ranges));
    assert_eq!(fixed(head(), less(variable(1))), None);
    assert_eq!(
        fixed(head(), less(call("element", [int(1), atom("$_")]))),
        None
    );
    assert_eq!(fixed(head(), less(call("hd", [atom("$$")]))), None);
    assert_eq!(fixed(tuple([int(1)]), less(int(4))), Some(Access::Points));
    assert_eq!(
        fixed(tuple([variable(1)]), vec![]),
        Some(Access::Everything)
    );
    assert_eq!(fixed(tuple([map([])]), vec![]), None);
    assert_eq!(fixed(atom("_"), vec![]), None);
    assert_eq!(fixed(tuple([]), vec![]), None);
}

#[test]
fn clauses_without_shape() {
    assert!(read(&tuple([int(1), Term::Nil])).is_none());
    let bad = clause(
        tuple([int(1)]),
        vec![call("no_such_function", [int(1)])],
        vec![int(1)],
    );
    let shape = read(&bad).expect("three elements");
    assert!(matches!(
        Program::of_shape(&shape, &options()),
        Some(Err(_))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn exchanged_is_compiled_anew(
        heads in vec(head(), 1..4),
        guards in vec(expression(4), 0..2),
        body in vec(expression(4), 1..3),
        numbers in vec(any::<u8>(), 200),
    ) {
        // The first elements bind the variables of the expressions.
        let head = tuple(heads.into_iter().chain((0..4).map(variable)));
        let first = clause(head, guards, body);
        let mut numbers = numbers.into_iter();
        let others: Vec<_> = (0..4).map(|_| change(&first, &mut numbers)).collect();
        exchange(&first, &others);
    }
}
