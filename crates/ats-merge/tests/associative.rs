//! All merges, on values of all kinds: in which order neighbours are merged makes no difference.

use ats_merge::{Merge, Refused};
use ats_term::arbitrary::{any_term, integer, near_term};
use ats_term::image::{ImageBuilder, NewValue, Object, Scratch, TermHost, decode};
use ats_term::order::order_key;
use ats_term::term::{Map, TermBuilder, Tuple};
use ats_term::{Atom, Term, Zeros};
use proptest::prelude::*;

fn atom(text: &str) -> Term {
    Term::Atom(Atom::new(text).expect("a short text"))
}

fn named(name: &str) -> Merge {
    Merge::from_term(&atom(name)).expect("the name of a merge")
}

fn list(elements: impl IntoIterator<Item = Term>) -> Term {
    let elements: Vec<Term> = elements.into_iter().collect();
    Term::list_with_tail(elements, Term::Nil)
}

/// Merges terms by way of their images.
fn merged(merge: &Merge, earlier: &Term, later: &Term, zeros: Zeros) -> Result<Term, Refused> {
    let pair = Term::from((earlier.clone(), later.clone()));
    let mut image = ImageBuilder::new(zeros);
    image.encode_object(&pair).expect("a tuple");
    let object: Object<'_, TermHost> = image.object();
    let merged = merge.merge(object.element(0), object.element(1), zeros)?;
    let mut result = ImageBuilder::new(zeros);
    result.replace_elements(object, &[(0, NewValue::Term(merged.term()))]);
    let (mut builder, mut scratch) = (TermBuilder::new(), Scratch::new());
    let built = decode(result.object().element(0), &mut builder, &mut scratch);
    let term = builder.finish(built).expect("a term");
    assert!(
        takes(merge, &term, zeros),
        "{merge:?} made {term}, which it does not take"
    );
    Ok(term)
}

fn takes(merge: &Merge, term: &Term, zeros: Zeros) -> bool {
    let object = Term::from((term.clone(), 0));
    let mut image = ImageBuilder::new(zeros);
    image.encode_object(&object).expect("a tuple");
    let object: Object<'_, TermHost> = image.object();
    merge.takes(object.element(0), zeros)
}

/// An ordered set, for which the two zeros make a difference: `-0.0` and `0.0` may be keys of maps in it.
fn ordered_set(terms: Vec<Term>, zeros: Zeros) -> Term {
    let key = |term: &Term| {
        let mut key = Vec::new();
        order_key(term, &mut key, zeros);
        key
    };
    let mut terms = terms;
    terms.sort_by_cached_key(key);
    terms.dedup_by_key(|term| key(term));
    list(terms)
}

fn zeros() -> impl Strategy<Value = Zeros> {
    prop_oneof![Just(Zeros::Same), Just(Zeros::Distinct)]
}

/// What zeros are, and values that suit.
fn with_zeros<S: Strategy>(
    values: impl Fn(Zeros) -> S,
) -> impl Strategy<Value = (Zeros, S::Value)> {
    zeros().prop_flat_map(move |zeros| (Just(zeros), values(zeros)))
}

fn elements() -> impl Strategy<Value = Vec<Term>> {
    proptest::collection::vec(prop_oneof![near_term(), any_term()], 0..6)
}

/// Numbers of which sums are exact.
fn number() -> impl Strategy<Value = Term> {
    let float = |value: i32| Term::try_from(f64::from(value) / 4.0).expect("finite");
    prop_oneof![
        (-1000i64..1000).prop_map(Term::from),
        (-1i64 << 40..1 << 40).prop_map(Term::from),
        (-1_000_000..1_000_000i32).prop_map(float),
    ]
}

fn map() -> impl Strategy<Value = Term> {
    proptest::collection::vec((0..6i64, near_term()), 0..6).prop_map(|pairs| {
        let pairs: std::collections::BTreeMap<i64, Term> = pairs.into_iter().collect();
        let pairs = pairs
            .into_iter()
            .map(|(key, value)| (Term::from(key), value));
        Term::Map(Map::new(pairs.collect()).expect("keys differ"))
    })
}

/// A merge, and three values of its kind.
fn merge_and_values(zeros: Zeros) -> BoxedStrategy<(Merge, [Term; 3])> {
    let three = |name: &'static str, values: BoxedStrategy<Term>| {
        [values.clone(), values.clone(), values]
            .prop_map(move |values| (named(name), values))
            .boxed()
    };
    let binary =
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Term::binary(&bytes));
    let any = prop_oneof![near_term(), any_term()].boxed();
    let bytes = binary.boxed();
    let lists = elements().prop_map(list).boxed();
    let sets = elements().prop_map(move |terms| ordered_set(terms, zeros));
    let sets = sets.boxed();
    let integers = integer().boxed();
    prop_oneof![
        three("sum", integers),
        three("min", any.clone()),
        three("max", any.clone()),
        three("first", any.clone()),
        three("last", any),
        three("append", lists),
        three("append", bytes),
        three("union", sets),
        three("union", map().boxed()),
    ]
    .boxed()
}

fn check(merge: &Merge, [a, b, c]: &[Term; 3], zeros: Zeros) -> Result<(), TestCaseError> {
    let merged = |a: &Term, b: &Term| merged(merge, a, b, zeros);
    let left = merged(a, b).and_then(|ab| merged(&ab, c));
    let right = merged(b, c).and_then(|bc| merged(a, &bc));
    prop_assert_eq!(&left, &right, "{:?} of {} and {} and {}", merge, a, b, c);
    prop_assert!(left.is_ok());
    Ok(())
}

fn simple(merge: Merge) -> ats_merge::Simple {
    match merge {
        Merge::Simple(simple) => simple,
        Merge::Vector(_) => unreachable!("named merges are simple"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn merges_are_associative(
        (zeros, (merge, values)) in with_zeros(merge_and_values),
    ) {
        check(&merge, &values, zeros)?;
    }

    #[test]
    fn vectors_are_associative(
        (zeros, parts) in with_zeros(|zeros| proptest::collection::vec(merge_and_values(zeros), 0..5)),
    ) {
        let tuple = |at: usize| {
            let values = parts.iter().map(|(_, values)| values[at].clone());
            Term::Tuple(Tuple::new(values.collect()))
        };
        let merges = parts.iter().map(|(merge, _)| simple(merge.clone())).collect();
        check(&Merge::Vector(merges), &[tuple(0), tuple(1), tuple(2)], zeros)?;
    }

    /// As long as floats do not round. A sum of an integer and a float is a float, whichever came first.
    #[test]
    fn sums_of_floats_are_associative_as_far_as_they_are_exact(
        values in [number(), number(), number()],
        zeros in zeros(),
    ) {
        check(&named("sum"), &values, zeros)?;
    }

    /// What is not of the kind is refused, and it is said which of the two it was.
    #[test]
    fn other_values_are_refused(
        (zeros, (merge, [value, ..])) in with_zeros(merge_and_values),
        other in any_term(),
    ) {
        let takes = |term: &Term| takes(&merge, term, zeros);
        prop_assert!(takes(&value));
        if !takes(&other) {
            prop_assert_eq!(merged(&merge, &value, &other, zeros), Err(Refused::Later));
            prop_assert_eq!(merged(&merge, &other, &value, zeros), Err(Refused::Earlier));
        }
    }
}

#[test]
fn merges_do_what_their_names_say() {
    let int = |value: i64| Term::from(value);
    let ints = |values: &[i64]| list(values.iter().map(|value| Term::from(*value)));
    let float = |value: f64| Term::try_from(value).expect("finite");
    let cases = [
        (
            "sum",
            int(i64::MAX),
            int(1),
            Term::integer(false, &(1u64 << 63).to_le_bytes()),
        ),
        ("sum", int(1), float(0.5), float(1.5)),
        ("min", int(1), float(1.0), int(1)),
        ("min", int(2), atom("a"), int(2)),
        ("max", float(1.0), int(1), float(1.0)),
        ("max", int(2), Term::Nil, Term::Nil),
        ("first", int(1), int(2), int(1)),
        ("last", int(1), int(2), int(2)),
        ("append", ints(&[1, 2]), ints(&[2, 3]), ints(&[1, 2, 2, 3])),
        ("append", Term::Nil, Term::Nil, Term::Nil),
        (
            "append",
            Term::binary(b"ab"),
            Term::binary(b"c"),
            Term::binary(b"abc"),
        ),
        (
            "union",
            ints(&[1, 3, 5]),
            ints(&[1, 2, 3, 9]),
            ints(&[1, 2, 3, 5, 9]),
        ),
        (
            "union",
            list([int(1), atom("a")]),
            list([float(1.0)]),
            list([int(1), atom("a")]),
        ),
    ];
    for (name, earlier, later, expected) in cases {
        let result = merged(&named(name), &earlier, &later, Zeros::Distinct);
        assert_eq!(result, Ok(expected), "{name} of {earlier} and {later}");
    }
}

#[test]
fn names_are_checked() {
    let vector = |merges: Term| Term::from((atom("vector"), merges));
    let inner = vector(list([atom("sum")]));
    assert!(Merge::from_term(&inner).is_some());
    assert!(Merge::from_term(&vector(Term::Nil)).is_some());
    let wrong = [
        atom("plus"),
        Term::from(1),
        Term::Nil,
        vector(atom("sum")),
        vector(list([inner.clone()])),
        vector(Term::list_with_tail([atom("sum")], atom("min"))),
        Term::from((atom("matrix"), Term::Nil)),
    ];
    for term in wrong {
        assert_eq!(Merge::from_term(&term), None, "{term}");
    }
}

#[test]
fn sums_have_limits() {
    let huge = Term::try_from(f64::MAX).expect("finite");
    let sum = merged(&named("sum"), &huge, &huge, Zeros::Distinct);
    assert_eq!(sum, Err(Refused::SystemLimit));
}

/// Values may be nested more deeply than a stack could bear.
#[test]
fn deep_values_are_merged() {
    let deep = (0..300_000).fold(Term::Nil, |inner, _| list([inner]));
    let one = list([deep.clone()]);
    for name in ["append", "union", "max", "last"] {
        assert!(
            merged(&named(name), &one, &one, Zeros::Distinct).is_ok(),
            "{name}"
        );
    }
}
