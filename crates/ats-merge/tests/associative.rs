//! All merges, on values of all kinds: in which order neighbours are merged makes no difference.

use ats_merge::{Merge, MergeError};
use ats_term::arbitrary::{any_term, integer, near_term};
use ats_term::image::{ImageBuilder, NewValue, Object, Scratch, TermHost, decode};
use ats_term::order::order_key;
use ats_term::term::{Bits, Map, TermBuilder, Tuple};
use ats_term::{Atom, Term, Zeros};
use proptest::prelude::*;

fn atom(text: &str) -> Term {
    Term::Atom(Atom::new(text).expect("a short text"))
}

fn merge_by_name(name: &str) -> Merge {
    Merge::from_term(&atom(name)).expect("the name of a merge")
}

/// Makes a merge of which the name has an argument.
fn with(name: &str, argument: impl Into<Term>) -> Merge {
    Merge::from_term(&Term::from((atom(name), argument.into()))).expect("a merge")
}

fn prune_merge(name: &str) -> Merge {
    with("prune", atom(name))
}

fn list(elements: impl IntoIterator<Item = Term>) -> Term {
    let elements: Vec<Term> = elements.into_iter().collect();
    Term::list_with_tail(elements, Term::Nil)
}

/// Merges terms by way of their images.
fn merge_terms(
    merge: &Merge,
    earlier: &Term,
    later: &Term,
    zeros: Zeros,
) -> Result<Term, MergeError> {
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
        accepts(merge, &term, zeros),
        "{merge:?} made {term}, which it does not take"
    );
    Ok(term)
}

fn accepts(merge: &Merge, term: &Term, zeros: Zeros) -> bool {
    let object = Term::from((term.clone(), 0));
    let mut image = ImageBuilder::new(zeros);
    image.encode_object(&object).expect("a tuple");
    let object: Object<'_, TermHost> = image.object();
    merge.accepts(object.element(0), zeros)
}

/// Returns the value of a key that had none before.
fn expand(merge: &Merge, term: &Term, zeros: Zeros) -> Term {
    let object = Term::from((term.clone(), 0));
    let mut image = ImageBuilder::new(zeros);
    image.encode_object(&object).expect("a tuple");
    let object: Object<'_, TermHost> = image.object();
    let value = merge.expand(object.element(0));
    let mut result = ImageBuilder::new(zeros);
    result.replace_elements(object, &[(0, NewValue::Term(value.term()))]);
    let (mut builder, mut scratch) = (TermBuilder::new(), Scratch::new());
    let built = decode(result.object().element(0), &mut builder, &mut scratch);
    builder.finish(built).expect("a term")
}

/// Returns an ordered set, for which the two zeros make a difference: `-0.0` and `0.0` may be keys
/// of maps in it.
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

/// Returns a treatment of zeros, and values that suit.
fn with_zeros<S: Strategy>(
    values: impl Fn(Zeros) -> S,
) -> impl Strategy<Value = (Zeros, S::Value)> {
    zeros().prop_flat_map(move |zeros| (Just(zeros), values(zeros)))
}

fn elements() -> impl Strategy<Value = Vec<Term>> {
    proptest::collection::vec(prop_oneof![near_term(), any_term()], 0..6)
}

/// Numbers of which sums are exact.
fn number_of_quarters() -> impl Strategy<Value = Term> {
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

/// Some of these numbers, and statistics of two.
fn statistics_of(numbers: BoxedStrategy<Term>) -> BoxedStrategy<Term> {
    let of_two = (numbers.clone(), numbers.clone(), 1..4_i64).prop_map(|(a, b, count)| {
        let [min, max, sum] = ["min", "max", "sum"].map(|name| {
            merge_terms(&merge_by_name(name), &a, &b, Zeros::Distinct).expect("of numbers")
        });
        Term::from((min, max, sum, count))
    });
    prop_oneof![numbers, of_two].boxed()
}

/// Tuples, with terms at the second position of which some are `==`.
fn with_timestamp() -> impl Strategy<Value = Term> {
    let timestamp = prop_oneof![
        3 => (0..3_i64).prop_map(Term::from),
        2 => (0..3_i32).prop_map(|value| Term::try_from(f64::from(value)).expect("finite")),
        1 => near_term(),
        1 => any_term(),
    ];
    let rest = proptest::collection::vec(any_term(), 0..3);
    (any_term(), timestamp, rest).prop_map(|(first, timestamp, rest)| {
        let elements = [first, timestamp].into_iter().chain(rest);
        Term::Tuple(Tuple::new(elements.collect()))
    })
}

/// Returns a merge, and three values of its kind.
fn merge_and_values(zeros: Zeros) -> BoxedStrategy<(Merge, [Term; 3])> {
    fn three(merge: Merge, values: &BoxedStrategy<Term>) -> BoxedStrategy<(Merge, [Term; 3])> {
        [values.clone(), values.clone(), values.clone()]
            .prop_map(move |values| (merge.clone(), values))
            .boxed()
    }
    let binary =
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Term::binary(&bytes));
    let any = prop_oneof![near_term(), any_term()].boxed();
    let bytes = binary.boxed();
    let lists = elements().prop_map(list).boxed();
    let sets = elements().prop_map(move |terms| ordered_set(terms, zeros));
    let sets = sets.boxed();
    let maps = map().boxed();
    let integers = prop_oneof![integer(), (-1..2_i64).prop_map(Term::from)].boxed();
    // Empty values of either kind go with all other values of pruned merges.
    let or_empty = |values: &BoxedStrategy<Term>, empty: [Term; 2]| {
        let [first, second] = empty.map(Just);
        prop_oneof![3 => values.clone(), 1 => first, 1 => second].boxed()
    };
    let empty_lists = [Term::Nil, Term::binary(b"")];
    let empty_sets = || [Term::Nil, Term::Map(Map::new(Vec::new()).expect("no keys"))];
    prop_oneof![
        three(merge_by_name("sum"), &integers),
        three(merge_by_name("min"), &any),
        three(merge_by_name("max"), &any),
        three(merge_by_name("first"), &any),
        three(merge_by_name("last"), &any),
        three(with("last", 2), &with_timestamp().boxed()),
        three(merge_by_name("append"), &lists),
        three(merge_by_name("append"), &bytes),
        three(merge_by_name("union"), &sets),
        three(merge_by_name("union"), &maps),
        three(merge_by_name("intersection"), &sets),
        three(merge_by_name("intersection"), &maps),
        three(
            merge_by_name("statistics"),
            &statistics_of(integers.clone())
        ),
        three(
            merge_by_name("statistics"),
            &statistics_of(number_of_quarters().boxed())
        ),
        three(prune_merge("sum"), &integers),
        three(
            prune_merge("append"),
            &or_empty(&lists, empty_lists.clone())
        ),
        three(prune_merge("append"), &or_empty(&bytes, empty_lists)),
        three(prune_merge("union"), &or_empty(&sets, empty_sets())),
        three(prune_merge("union"), &or_empty(&maps, empty_sets())),
    ]
    .boxed()
}

/// Returns a vector of merges and vectors, and three tuples of its kind.
fn vector_and_values(zeros: Zeros) -> BoxedStrategy<(Merge, [Term; 3])> {
    let vector = |parts| {
        proptest::collection::vec(parts, 0..5).prop_map(|parts: Vec<(Merge, [Term; 3])>| {
            let tuple = |at: usize| {
                let values = parts.iter().map(|(_, values)| values[at].clone());
                Term::Tuple(Tuple::new(values.collect()))
            };
            let tuples = [0, 1, 2].map(tuple);
            let merges = parts.into_iter().map(|(merge, _)| merge);
            (Merge::Vector(merges.collect()), tuples)
        })
    };
    let inner = vector(merge_and_values(zeros)).boxed();
    vector(prop_oneof![4 => merge_and_values(zeros), 1 => inner].boxed()).boxed()
}

fn any_merge_and_values(zeros: Zeros) -> BoxedStrategy<(Merge, [Term; 3])> {
    prop_oneof![4 => merge_and_values(zeros), 1 => vector_and_values(zeros)].boxed()
}

fn check(merge: &Merge, [a, b, c]: &[Term; 3], zeros: Zeros) -> Result<(), TestCaseError> {
    let merged = |a: &Term, b: &Term| merge_terms(merge, a, b, zeros);
    let left = merged(a, b).and_then(|ab| merged(&ab, c));
    let right = merged(b, c).and_then(|bc| merged(a, &bc));
    prop_assert_eq!(&left, &right, "{:?} of {} and {} and {}", merge, a, b, c);
    prop_assert!(left.is_ok());
    Ok(())
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
        (zeros, (merge, values)) in with_zeros(vector_and_values),
    ) {
        check(&merge, &values, zeros)?;
    }

    /// A store may remove a value that counts as missing, or not, before the next value comes.
    #[test]
    fn absent_values_are_neutral(
        (zeros, (merge, [earlier, later, _])) in with_zeros(any_merge_and_values),
    ) {
        if merge.is_absent(&earlier) {
            prop_assert!(merge.has_absent());
            prop_assert_eq!(merge_terms(&merge, &earlier, &later, zeros), Ok(later));
        }
    }

    /// Values older than a base make no difference.
    #[test]
    fn values_older_than_a_base_make_no_difference(
        (zeros, (merge, [earlier, later, _])) in with_zeros(any_merge_and_values),
    ) {
        if merge.is_base(&later) {
            prop_assert!(merge.has_base());
            prop_assert_eq!(merge_terms(&merge, &earlier, &later, zeros), Ok(later));
        }
    }

    /// Spelled out values are merged like others.
    #[test]
    fn spelling_out_is_part_of_merging(
        (zeros, (merge, [a, b, _])) in with_zeros(any_merge_and_values),
    ) {
        let [long_a, long_b] = [&a, &b].map(|value| expand(&merge, value, zeros));
        prop_assert!(accepts(&merge, &long_a, zeros));
        prop_assert_eq!(&expand(&merge, &long_a, zeros), &long_a);
        prop_assert!(merge.has_short_forms() || a == long_a);
        let expected = merge_terms(&merge, &long_a, &long_b, zeros);
        let expected = expected.map(|it| expand(&merge, &it, zeros));
        for (a, b) in [(&a, &b), (&long_a, &b), (&a, &long_b)] {
            let found = merge_terms(&merge, a, b, zeros).map(|it| expand(&merge, &it, zeros));
            prop_assert_eq!(&found, &expected);
        }
    }

    /// Floats that do not round. A sum of an integer and a float is a float, whichever came first.
    #[test]
    fn sums_of_floats_are_associative_as_far_as_they_are_exact(
        values in [number_of_quarters(), number_of_quarters(), number_of_quarters()],
        zeros in zeros(),
    ) {
        check(&merge_by_name("sum"), &values, zeros)?;
    }

    /// A value that is not of the kind is refused, and the error says which of the two it was.
    #[test]
    fn other_values_are_refused(
        (zeros, (merge, [value, ..])) in with_zeros(merge_and_values),
        other in any_term(),
    ) {
        let accepts = |term: &Term| accepts(&merge, term, zeros);
        prop_assert!(accepts(&value));
        if !accepts(&other) {
            prop_assert_eq!(merge_terms(&merge, &value, &other, zeros), Err(MergeError::Later));
            prop_assert_eq!(merge_terms(&merge, &other, &value, zeros), Err(MergeError::Earlier));
        }
    }
}

#[test]
fn merges_by_name_have_known_results() {
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
        let result = merge_terms(&merge_by_name(name), &earlier, &later, Zeros::Distinct);
        assert_eq!(result, Ok(expected), "{name} of {earlier} and {later}");
    }
}

#[test]
fn merges_with_arguments_have_known_results() {
    let int = |value: i64| Term::from(value);
    let ints = |values: &[i64]| list(values.iter().map(|value| Term::from(*value)));
    let float = |value: f64| Term::try_from(value).expect("finite");
    let binary = |text: &str| Term::binary(text.as_bytes());
    let map = |pairs: &[(i64, i64)]| {
        let pairs = pairs.iter().map(|(key, value)| (int(*key), int(*value)));
        Term::Map(Map::new(pairs.collect()).expect("keys differ"))
    };
    let statistics =
        |min: Term, max: Term, sum: Term, count: i64| Term::from((min, max, sum, int(count)));
    let stamped = |time: Term, value: &str| Term::from((atom(value), time));
    let negative_zero = float(-0.0);
    let cases = [
        (merge_by_name("replace"), int(1), atom("a"), atom("a")),
        (
            with("last", 2),
            stamped(int(2), "new"),
            stamped(int(1), "late"),
            stamped(int(2), "new"),
        ),
        (
            with("last", 2),
            stamped(int(2), "old"),
            stamped(float(2.0), "new"),
            stamped(float(2.0), "new"),
        ),
        // 2^53 and its neighbours are told from each other.
        (
            with("last", 2),
            stamped(int((1 << 53) + 1), "new"),
            stamped(float(9_007_199_254_740_992.0), "late"),
            stamped(int((1 << 53) + 1), "new"),
        ),
        (
            merge_by_name("intersection"),
            ints(&[1, 3, 5, 7]),
            ints(&[0, 1, 4, 5, 9]),
            ints(&[1, 5]),
        ),
        (
            merge_by_name("intersection"),
            list([int(1), atom("a")]),
            list([float(1.0)]),
            ints(&[1]),
        ),
        (
            merge_by_name("intersection"),
            map(&[(1, 1), (2, 2)]),
            map(&[(2, 3), (4, 4)]),
            map(&[(2, 3)]),
        ),
        (
            merge_by_name("statistics"),
            int(5),
            int(3),
            statistics(int(3), int(5), int(8), 2),
        ),
        (
            merge_by_name("statistics"),
            statistics(int(3), int(5), int(8), 2),
            float(3.0),
            statistics(int(3), int(5), float(11.0), 3),
        ),
        (
            merge_by_name("statistics"),
            statistics(int(3), int(5), int(8), 2),
            float(5.0),
            statistics(int(3), int(5), float(13.0), 3),
        ),
        (
            prune_merge("sum"),
            int(0),
            negative_zero.clone(),
            negative_zero,
        ),
        (prune_merge("sum"), int(3), int(-3), int(0)),
        (prune_merge("append"), Term::Nil, binary("a"), binary("a")),
        (prune_merge("append"), ints(&[1]), binary(""), ints(&[1])),
        (prune_merge("append"), Term::Nil, binary(""), binary("")),
        (prune_merge("union"), map(&[]), ints(&[1]), ints(&[1])),
        (
            with(
                "vector",
                list([
                    with_term("last", 1),
                    with_term("vector", list([atom("sum")])),
                ]),
            ),
            Term::from((Term::from((1, 2)), Term::from((1,)))),
            Term::from((Term::from((0, 3)), Term::from((2,)))),
            Term::from((Term::from((1, 2)), Term::from((3,)))),
        ),
    ];
    for (merge, earlier, later, expected) in cases {
        let result = merge_terms(&merge, &earlier, &later, Zeros::Distinct);
        assert_eq!(result, Ok(expected), "{merge} of {earlier} and {later}");
    }
}

/// Returns a term with a merge as an argument of another one.
fn with_term(name: &str, argument: impl Into<Term>) -> Term {
    Term::from((atom(name), argument.into()))
}

#[test]
fn values_of_other_shapes_are_refused() {
    let int = |value: i64| Term::from(value);
    let numbers = |numbers: [i64; 4]| Term::Tuple(Tuple::new(numbers.map(int).to_vec()));
    let improper = Term::list_with_tail([int(1)], int(2));
    let wrong = [
        (
            merge_by_name("sum"),
            vec![atom("a"), Term::Nil, Term::binary(b"1")],
        ),
        (
            merge_by_name("statistics"),
            vec![
                atom("a"),
                numbers([1, 2, 3, 0]),
                numbers([1, 2, 3, -1]),
                numbers([2, 1, 3, 2]),
                Term::from((1, 2, 3)),
                Term::from((1, 2, atom("a"), 2)),
                Term::from((1, 2, 3, Term::try_from(2.0).expect("finite"))),
                Term::from((1, 2, 3, 2, 5)),
            ],
        ),
        (
            with("last", 2),
            vec![
                Term::from((1,)),
                Term::Tuple(Tuple::new(Vec::new())),
                int(2),
                Term::Nil,
            ],
        ),
        (
            merge_by_name("append"),
            vec![
                improper.clone(),
                int(1),
                Term::from(Bits::new(&[128], 1).expect("one bit")),
            ],
        ),
        (
            merge_by_name("union"),
            vec![
                improper.clone(),
                list([int(2), int(1)]),
                list([int(1), int(1)]),
            ],
        ),
        (
            merge_by_name("intersection"),
            vec![improper, list([int(2), int(1)]), Term::binary(b"")],
        ),
        (prune_merge("sum"), vec![Term::Nil, Term::binary(b"")]),
        (
            prune_merge("append"),
            vec![int(0), Term::Map(Map::new(Vec::new()).expect("no keys"))],
        ),
        (prune_merge("union"), vec![int(0), Term::binary(b"")]),
    ];
    for (merge, terms) in wrong {
        for term in terms {
            assert!(
                !accepts(&merge, &term, Zeros::Distinct),
                "{merge} takes {term}"
            );
        }
    }
}

#[test]
fn names_are_checked() {
    let vector = |merges: Term| with_term("vector", merges);
    let of = |merge: Term| vector(list([merge]));
    let deep = |depth| (1..depth).fold(vector(Term::Nil), |inner, _| of(inner));
    let most = Term::from((1_i64 << 24) - 1);
    let right = [
        (of(atom("sum")), "vector(sum)"),
        (vector(Term::Nil), "vector()"),
        (
            vector(list([of(atom("min")), atom("max")])),
            "vector(vector(min),max)",
        ),
        (
            deep(8),
            "vector(vector(vector(vector(vector(vector(vector(vector())))))))",
        ),
        (atom("replace"), "last"),
        (with_term("last", 1), "last(1)"),
        (with_term("last", most.clone()), "last(16777215)"),
        (with_term("prune", atom("sum")), "prune(sum)"),
        (
            of(with_term("prune", atom("union"))),
            "vector(prune(union))",
        ),
    ];
    for (term, name) in right {
        let merge = Merge::from_term(&term).expect("a merge");
        assert_eq!(merge.to_string(), name, "{term}");
    }
    let wrong = [
        atom("plus"),
        Term::from(1),
        Term::Nil,
        vector(atom("sum")),
        vector(Term::list_with_tail([atom("sum")], atom("min"))),
        deep(9),
        with_term("matrix", Term::Nil),
        with_term("last", 0),
        with_term("last", -1),
        with_term("last", 1_i64 << 24),
        with_term("last", atom("sum")),
        with_term("first", 1),
        with_term("sum", 1),
        with_term("prune", atom("last")),
        with_term("prune", atom("statistics")),
        with_term("prune", atom("intersection")),
        with_term("prune", of(atom("sum"))),
        with_term("prune", with_term("prune", atom("sum"))),
        Term::from((atom("last"), 1, 2)),
        Term::from((atom("prune"),)),
    ];
    for term in wrong {
        assert_eq!(Merge::from_term(&term), None, "{term}");
    }
}

/// Values that are bases, and those that count as missing.
#[test]
fn short_circuits_and_missing_values_are_known() {
    let empty_map = Term::Map(Map::new(Vec::new()).expect("no keys"));
    let int = |value: i64| Term::from(value);
    let zero = Term::try_from(0.0).expect("finite");
    let both = |merge: Term| with("vector", list([merge.clone(), merge]));
    let cases = [
        // merge, value, is a base, counts as missing
        (merge_by_name("last"), int(0), true, false),
        (merge_by_name("first"), int(0), false, false),
        (with("last", 1), Term::from((1,)), false, false),
        (merge_by_name("sum"), int(0), false, false),
        (merge_by_name("intersection"), Term::Nil, true, false),
        (
            merge_by_name("intersection"),
            empty_map.clone(),
            true,
            false,
        ),
        (merge_by_name("intersection"), list([int(1)]), false, false),
        (merge_by_name("union"), Term::Nil, false, false),
        (prune_merge("sum"), int(0), false, true),
        (prune_merge("sum"), int(1), false, false),
        (prune_merge("sum"), zero, false, false),
        (prune_merge("append"), Term::Nil, false, true),
        (prune_merge("append"), Term::binary(b""), false, true),
        (prune_merge("append"), Term::binary(b"a"), false, false),
        (prune_merge("union"), Term::Nil, false, true),
        (prune_merge("union"), empty_map, false, true),
        (both(atom("last")), Term::from((1, 2)), true, false),
        (
            both(atom("intersection")),
            Term::from((Term::Nil, list([int(1)]))),
            false,
            false,
        ),
        (
            both(atom("intersection")),
            Term::from((Term::Nil, Term::Nil)),
            true,
            false,
        ),
        (
            both(with_term("prune", atom("sum"))),
            Term::from((0, 0)),
            false,
            true,
        ),
        (
            both(with_term("prune", atom("sum"))),
            Term::from((0, 1)),
            false,
            false,
        ),
        (
            with("vector", Term::Nil),
            Term::Tuple(Tuple::new(Vec::new())),
            true,
            false,
        ),
    ];
    for (merge, value, is_base, is_absent) in cases {
        assert!(
            accepts(&merge, &value, Zeros::Distinct),
            "{merge} takes {value}"
        );
        assert_eq!(merge.is_base(&value), is_base, "{merge}, {value}");
        assert_eq!(merge.is_absent(&value), is_absent, "{merge}, {value}");
    }
}

#[test]
fn sums_have_limits() {
    let huge = Term::try_from(f64::MAX).expect("finite");
    let sum = merge_terms(&merge_by_name("sum"), &huge, &huge, Zeros::Distinct);
    assert_eq!(sum, Err(MergeError::SystemLimit));
}

/// Values may be nested more deeply than a stack could bear.
#[test]
fn deep_values_are_merged() {
    let deep = (0..300_000).fold(Term::Nil, |inner, _| list([inner]));
    let one = list([deep.clone()]);
    for name in ["append", "union", "max", "last"] {
        assert!(
            merge_terms(&merge_by_name(name), &one, &one, Zeros::Distinct).is_ok(),
            "{name}"
        );
    }
}
