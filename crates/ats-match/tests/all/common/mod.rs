//! Terms and specifications for tests.

pub(crate) mod model;

use ats_match::{Function, FunctionSet, Machine, Options, Program, Words, Writer, parse};
use ats_term::image::{ImageBuilder, ImageRef, Scratch, TermHost, atom_word, decode};
use ats_term::term::{Map, TermBuilder, Tuple};
use ats_term::{Atom, Term, Zeros};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) fn atom(text: &str) -> Term {
    Term::Atom(Atom::new(text).expect("a short text"))
}

pub(crate) fn int(value: i64) -> Term {
    Term::Int(value)
}

pub(crate) fn float(value: f64) -> Term {
    Term::try_from(value).expect("a finite float")
}

pub(crate) fn list(elements: impl IntoIterator<Item = Term>) -> Term {
    Term::from(elements.into_iter().collect::<Vec<_>>())
}

pub(crate) fn tuple(elements: impl IntoIterator<Item = Term>) -> Term {
    Term::Tuple(Tuple::new(elements.into_iter().collect()))
}

pub(crate) fn map(pairs: impl IntoIterator<Item = (Term, Term)>) -> Term {
    let pairs = pairs.into_iter().collect();
    Term::Map(Map::new(pairs).expect("distinct keys"))
}

pub(crate) fn variable(number: u32) -> Term {
    atom(&format!("${number}"))
}

pub(crate) fn call(name: &str, arguments: impl IntoIterator<Item = Term>) -> Term {
    tuple(std::iter::once(atom(name)).chain(arguments))
}

pub(crate) fn word(text: &str) -> u64 {
    atom_word(Atom::new(text).expect("a short text").id())
}

pub(crate) fn words() -> Words {
    // SAFETY: these are the words of owned terms.
    unsafe { Words::new(word("true"), word("false"), word("EXIT")) }
}

pub(crate) fn options() -> Options {
    Options {
        zeros: Zeros::Distinct,
        functions: FunctionSet::ALL,
        whole_bytes: true,
        words: words(),
    }
}

pub(crate) fn back_to_term(term: ImageRef<'_, TermHost>) -> Term {
    let mut builder = TermBuilder::new();
    let built = decode(term, &mut builder, &mut Scratch::new());
    builder.finish(built).expect("it was a term before")
}

/// Makes maps of the pairs whose keys differ.
fn some_map(pairs: Vec<(Term, Term)>) -> Term {
    let mut distinct: Vec<(Term, Term)> = Vec::new();
    for (key, value) in pairs {
        if distinct.iter().all(|(other, _)| *other != key) {
            distinct.push((key, value));
        }
    }
    map(distinct)
}

/// Generates terms from a small set, so that equal ones meet.
pub(crate) fn small_term() -> BoxedStrategy<Term> {
    let leaf = prop_oneof![
        4 => (-2i64..6).prop_map(Term::Int),
        2 => select(vec![0.0, -0.0, 1.0, 1.5, -2.0, 3.0, 1e300]).prop_map(float),
        3 => select(vec!["a", "b", "true", "false", "EXIT", "rec"]).prop_map(atom),
        1 => select(vec![i64::MAX, i64::MIN, 1 << 59, (1 << 59) - 1, -(1 << 59), 1 << 53])
            .prop_map(Term::Int),
        1 => select(vec![1i128 << 64, -(1i128 << 70), i128::MAX]).prop_map(Term::from),
        1 => select(vec!["", "a", "ab", "abcdef"]).prop_map(Term::from),
        1 => Just(Term::Nil),
        1 => ats_term::arbitrary::leaf(),
    ];
    leaf.prop_recursive(3, 16, 4, |part| {
        prop_oneof![
            vec(part.clone(), 0..4).prop_map(tuple),
            vec(part.clone(), 0..4).prop_map(list),
            (vec(part.clone(), 1..3), part.clone())
                .prop_map(|(elements, tail)| Term::list_with_tail(elements, tail)),
            vec((part.clone(), part), 0..3).prop_map(some_map),
        ]
    })
    .boxed()
}

/// Generates heads, some with a variable as the key of a map.
pub(crate) fn head() -> BoxedStrategy<Term> {
    let leaf = prop_oneof![
        4 => (0u32..4).prop_map(variable),
        2 => Just(atom("_")),
        1 => Just(variable(1000)),
        6 => small_term(),
    ];
    leaf.prop_recursive(3, 16, 4, |part| {
        prop_oneof![
            3 => vec(part.clone(), 0..4).prop_map(tuple),
            1 => vec(part.clone(), 0..4).prop_map(list),
            1 => (vec(part.clone(), 1..3), part.clone())
                .prop_map(|(elements, tail)| Term::list_with_tail(elements, tail)),
            1 => vec((small_term(), part.clone()), 0..3).prop_map(some_map),
        ]
    })
    .boxed()
}

/// Generates expressions with variables of numbers below `variables`.
pub(crate) fn expression(variables: u32) -> BoxedStrategy<Term> {
    let leaf = prop_oneof![
        6 => (0..variables).prop_map(variable),
        1 => select(vec!["$_", "$$", "true", "false", "a", "_"]).prop_map(atom),
        1 => Just(call("self", [])),
        3 => small_term().prop_map(|term| call("const", [term])),
        3 => (-2i64..6).prop_map(Term::Int),
    ];
    leaf.prop_recursive(3, 20, 4, |part| {
        let function = (select(Function::ALL.to_vec()), vec(part.clone(), 3));
        let logical = select(vec!["and", "or", "andalso", "orelse"]);
        prop_oneof![
            8 => function.prop_map(|(function, mut arguments)| {
                arguments.truncate(function.arity());
                call(function.name(), arguments)
            }),
            2 => (logical, vec(part.clone(), 1..4)).prop_map(|(form, parts)| call(form, parts)),
            1 => vec(part.clone(), 0..4).prop_map(|parts| tuple([tuple(parts)])),
            1 => vec(part.clone(), 0..4).prop_map(list),
            1 => (vec(part.clone(), 1..3), part.clone())
                .prop_map(|(elements, tail)| Term::list_with_tail(elements, tail)),
            1 => vec((part.clone(), part.clone()), 0..4).prop_map(some_map),
        ]
    })
    .boxed()
}

/// An environment with a process and a node.
pub(crate) struct Here;

// SAFETY: all words are those of atoms of owned terms.
unsafe impl ats_match::Environment for Here {
    fn self_word(&self) -> Option<u64> {
        Some(word("the process"))
    }

    fn node_word(&self) -> u64 {
        word("nonode@nohost")
    }

    fn atom_word(&self, text: &str) -> Option<u64> {
        Atom::new(text).ok().map(|atom| atom_word(atom.id()))
    }
}

/// Runs a specification on an object.
pub(crate) fn run(spec: &Term, object: &Term, options: &Options) -> Option<Term> {
    run_program(
        &Program::new(parse(spec, options).expect("a specification")),
        object,
        options,
    )
}

/// Runs a specification on any term.
pub(crate) fn run_on_term(spec: &Term, term: &Term, options: &Options) -> Option<Term> {
    let program = Program::for_any_term(parse(spec, options).expect("a specification"));
    run_program(&program, &tuple([term.clone()]), options)
}

fn run_program(program: &Program<TermHost>, object: &Term, options: &Options) -> Option<Term> {
    let mut builder = ImageBuilder::new(options.zeros);
    builder.encode_object(object).expect("an object");
    let mut machine = Machine::new();
    let outcome = machine.run(program, builder.object(), &Here)?;
    let (mut sink, mut writer) = (TermBuilder::new(), Writer::new());
    let built = outcome.write(&mut sink, &mut writer);
    let term = sink.finish(built).expect("a term");
    assert_eq!(outcome.is_true(), term == atom("true"));

    // The result can also be encoded as an image.
    let mut again = ImageBuilder::new(options.zeros);
    match again.encode_object(outcome.term()) {
        Ok(()) => assert_eq!(back_to_term(again.object().term()), term),
        Err(_) => assert!(term.as_tuple().is_none()),
    }
    Some(term)
}
