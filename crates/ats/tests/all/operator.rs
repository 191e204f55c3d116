//! Tests of the merge operator of stores of bytes against the merges of terms.

use ats::terms::{Merge, PortableMerge};
use ats_store::{Error, MergeOperator, Merged};
use ats_term::arbitrary::{any_term, integer, near_term};
use ats_term::image::{ImageBuilder, NewValue, Object, Scratch, TermHost, decode};
use ats_term::term::{TermBuilder, Tuple};
use ats_term::{Atom, Term, Zeros, etf};
use proptest::prelude::*;

const NAMES: [&str; 9] = [
    "sum",
    "min",
    "max",
    "first",
    "last",
    "append",
    "union",
    "intersection",
    "statistics",
];

/// Returns all merges except vectors, as Erlang programs write them.
fn simple_merges() -> Vec<Term> {
    let mut merges: Vec<_> = NAMES.iter().map(|name| atom(name)).collect();
    merges.extend([1, 2].map(|number| Term::from((atom("last"), number))));
    merges.extend(["sum", "append", "union"].map(|name| Term::from((atom("prune"), atom(name)))));
    merges
}

fn merge_of(term: &Term) -> Merge {
    Merge::from_term(term).expect("a merge")
}

fn atom(text: &str) -> Term {
    Term::Atom(Atom::new(text).expect("a short text"))
}

fn list(elements: Vec<Term>) -> Term {
    Term::list_with_tail(elements, Term::Nil)
}

fn merge_by_name(name: &str) -> Merge {
    Merge::from_term(&atom(name)).expect("the name of a merge")
}

fn vector_of(merges: Vec<Term>) -> Term {
    Term::from((atom("vector"), list(merges)))
}

fn vector(names: &[&str]) -> Merge {
    merge_of(&vector_of(names.iter().map(|name| atom(name)).collect()))
}

/// Returns `true` if the merge adds, so that it is inexact for floats.
fn adds(merge: &Merge) -> bool {
    let name = merge.to_string();
    name.contains("sum") || name.contains("statistics")
}

fn bytes(term: &Term) -> Vec<u8> {
    etf::encode(term).expect("a term of usual size")
}

/// Merges the images of two terms.
fn merge_terms(merge: &Merge, earlier: &Term, later: &Term, zeros: Zeros) -> Option<Term> {
    let pair = Term::from((earlier.clone(), later.clone()));
    let mut image = ImageBuilder::new(zeros);
    image.encode_object(&pair).expect("a tuple");
    let object: Object<'_, TermHost> = image.object();
    let merged = merge.merge(object.element(0), object.element(1), zeros);
    let merged = merged.ok()?;
    let mut result = ImageBuilder::new(zeros);
    result.replace_elements(object, &[(0, NewValue::Term(merged.term()))]);
    let (mut builder, mut scratch) = (TermBuilder::new(), Scratch::new());
    let built = decode(result.object().element(0), &mut builder, &mut scratch);
    Some(builder.finish(built).expect("a term"))
}

/// Merges two values by the operator.
fn merge_bytes(operator: &PortableMerge, earlier: &[u8], later: &[u8]) -> Option<Vec<u8>> {
    match operator.merge(b"key", earlier, later) {
        Ok(Merged::Earlier) => Some(earlier.to_vec()),
        Ok(Merged::Later) => Some(later.to_vec()),
        Ok(Merged::New(value)) => Some(value),
        Err(error) => {
            assert_eq!(error, Error::Merge);
            None
        }
    }
}

fn read(value: &[u8]) -> Term {
    etf::decode(value, etf::Options::default()).expect("a term")
}

/// Generates terms that suit one merge or another.
fn value() -> BoxedStrategy<Term> {
    let ordset = proptest::collection::btree_set(-5..5_i64, 0..5)
        .prop_map(|set| list(set.into_iter().map(Term::from).collect()));
    let elements = proptest::collection::vec(near_term(), 0..4).prop_map(list);
    let binary = proptest::collection::vec(any::<u8>(), 0..9);
    let stamped = (-2..2_i64, -2..2_i64, near_term()).prop_map(Term::from);
    prop_oneof![
        4 => integer(),
        2 => stamped,
        1 => statistics(),
        1 => Just(Term::from(0)),
        2 => (-300..300_i64).prop_map(Term::from),
        2 => binary.prop_map(|bytes| Term::binary(&bytes)),
        2 => ordset,
        1 => elements,
        1 => near_term(),
        1 => any_term(),
    ]
    .boxed()
}

fn statistics() -> impl Strategy<Value = Term> {
    let numbers = (
        any::<i64>(),
        any::<i64>(),
        any::<i64>(),
        0..60_u32,
        0..3_i64,
    );
    numbers.prop_map(|(a, b, sum, shift, count)| {
        Term::from((a.min(b) >> shift, a.max(b) >> shift, sum >> shift, count))
    })
}

/// Generates three values, mostly for the same merge.
fn values() -> impl Strategy<Value = [Term; 3]> {
    let integers =
        || (any::<i64>(), 0..64_u32).prop_map(|(value, shift)| Term::from(value >> shift));
    let binary = || {
        let bytes = proptest::collection::vec(any::<u8>(), 0..9);
        bytes.prop_map(|bytes| Term::binary(&bytes)).boxed()
    };
    prop_oneof![
        1 => [value(), value(), value()],
        1 => [integer(), integer(), integer()],
        2 => [integers(), integers(), integers()],
        1 => [binary(), binary(), binary()],
        1 => [statistics(), statistics(), statistics()],
        1 => [stamped_tuple(), stamped_tuple(), stamped_tuple()],
    ]
}

/// Generates tuples whose first and second elements are numbers, mostly small ones.
fn stamped_tuple() -> impl Strategy<Value = Term> {
    let timestamp = || prop_oneof![3 => (-2..2_i64).prop_map(Term::from), 1 => integer()];
    (timestamp(), timestamp(), near_term()).prop_map(Term::from)
}

fn merges() -> impl Strategy<Value = Merge> {
    proptest::sample::select(simple_merges()).prop_map(|term| merge_of(&term))
}

fn zeros() -> impl Strategy<Value = Zeros> {
    prop_oneof![Just(Zeros::Same), Just(Zeros::Distinct)]
}

/// Returns `true` if the values contain a float, so that sums are inexact.
fn has_float(values: &[Term]) -> bool {
    values.iter().any(|value| match value {
        Term::Tuple(elements) => has_float(&elements.iter().cloned().collect::<Vec<_>>()),
        value => matches!(value, Term::Float(_)),
    })
}

/// Returns `true` if a term is an integer, or a tuple of integers.
fn is_of_integers(term: &Term) -> bool {
    match term {
        Term::Tuple(elements) => elements.iter().all(is_of_integers),
        _ => matches!(term, Term::Int(_)),
    }
}

fn check(merge: &Merge, values: &[Term; 3], zeros: Zeros, is_exact: bool) {
    let operator = PortableMerge::new(merge.clone(), zeros);
    let [a, b, c] = values.each_ref().map(bytes);
    // The values are compared after decoding, because the bytes do not identify the running node in
    // pids and references.
    let values = &[&a, &b, &c].map(|value| read(value));
    for (earlier, later) in [(0, 1), (1, 2)] {
        let (earlier, later) = (&values[earlier], &values[later]);
        let found = merge_bytes(&operator, &bytes(earlier), &bytes(later));
        let found = found.map(|value| {
            let term = read(&value);
            // Values that are merged without decoding are encoded like terms.
            if is_of_integers(&term) {
                assert!([earlier, later].map(bytes).contains(&value) || bytes(&term) == value);
            }
            term
        });
        let expected = merge_terms(merge, earlier, later, zeros);
        assert_eq!(found, expected, "{merge:?} of {earlier} and {later}");
        if found.is_none() {
            return;
        }
        assert!(operator.takes(&bytes(earlier)) && operator.takes(&bytes(later)));
    }
    for value in values {
        check_laws(merge, &operator, value, &values[2]);
    }
    let ab_c = merge_bytes(&operator, &merge_bytes(&operator, &a, &b).unwrap(), &c);
    let a_bc = merge_bytes(&operator, &a, &merge_bytes(&operator, &b, &c).unwrap());
    let [ab_c, a_bc] = [ab_c, a_bc].map(|value| value.map(|value| read(&value)));
    if is_exact {
        assert_eq!(ab_c, a_bc, "{merge:?} of {values:?}");
    }
    let all = operator.merge_all(b"key", &[&a[..], &b, &c]);
    if let Some(all) = all.expect("as two at a time") {
        assert_eq!(Some(read(&all)), ab_c, "{merge:?} of {values:?}");
    }
}

/// Checks the properties of a value that hold for a merge with any other value. Both values suit
/// the merge.
fn check_laws(merge: &Merge, operator: &PortableMerge, value: &Term, other: &Term) {
    let [bytes_of_value, other] = [value, other].map(bytes);
    let is_absent = operator.is_absent(b"key", &bytes_of_value);
    assert_eq!(is_absent, merge.is_absent(value), "{merge}, {value}");
    let is_base = operator.is_base(b"key", &bytes_of_value);
    assert_eq!(is_base, merge.is_base(value), "{merge}, {value}");
    let spelled_out = operator.value(&bytes_of_value).expect("a value");
    assert!(merge.has_short_forms() || *spelled_out == *bytes_of_value);
    assert_eq!(operator.value(&spelled_out).as_deref(), Some(&*spelled_out));
    if let Some(result) = merge_bytes(operator, &bytes_of_value, &other) {
        assert!(!is_absent || read(&result) == read(&other));
        let as_spelled_out = merge_bytes(operator, &spelled_out, &other).expect("as before");
        let both =
            [result, as_spelled_out].map(|it| operator.value(&it).expect("a value").into_owned());
        assert_eq!(read(&both[0]), read(&both[1]), "{merge}, {value}");
    }
    if let Some(result) = merge_bytes(operator, &other, &bytes_of_value) {
        assert!(!is_base || read(&result) == *value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_operator_equals_the_merge(
        merge in merges(),
        values in values(),
        zeros in zeros(),
    ) {
        check(&merge, &values, zeros, !adds(&merge) || !has_float(&values));
    }

    #[test]
    fn vectors_are_merged_by_their_elements(
        columns in proptest::collection::vec(
            (proptest::sample::select(simple_merges()), values()),
            0..4,
        ),
        is_nested in any::<bool>(),
        zeros in zeros(),
    ) {
        let merges = columns.iter().map(|(merge, _)| merge.clone()).collect();
        let row = |row: usize| {
            let elements = columns.iter().map(|(_, values)| values[row].clone());
            let tuple = Term::Tuple(Tuple::new(elements.collect()));
            if is_nested { Term::from((tuple, row as i64)) } else { tuple }
        };
        let is_exact = columns
            .iter()
            .all(|(merge, values)| !adds(&merge_of(merge)) || !has_float(values));
        let merge = vector_of(merges);
        let merge = if is_nested { vector_of(vec![merge, atom("sum")]) } else { merge };
        check(&merge_of(&merge), &[row(0), row(1), row(2)], zeros, is_exact);
    }

    /// Arbitrary bytes cause no panic, and bytes that are not a term are not merged.
    #[test]
    fn other_bytes_are_refused(
        merge in merges(),
        term in value(),
        noise in proptest::collection::vec(any::<u8>(), 0..12),
        cut in any::<proptest::sample::Index>(),
        longer in 0..3_usize,
    ) {
        let operator = PortableMerge::new(merge.clone(), Zeros::Distinct);
        let term = bytes(&term);
        // The merge does not decode the term behind a timestamp.
        let is_blind = ["first", "last"].iter().any(|name| merge.to_string().starts_with(name));
        let mut too_long = term.clone();
        too_long.resize(term.len() + longer, 0);
        for other in [&noise[..], &term[..cut.index(term.len())], &too_long] {
            let is_term = etf::decode(other, etf::Options::default()).is_ok();
            for (earlier, later) in [(&term[..], other), (other, &term)] {
                let is_merged = merge_bytes(&operator, earlier, later).is_some();
                prop_assert!(!is_merged || is_term || is_blind);
            }
            prop_assert!(is_term || !operator.takes(other));
        }
    }
}

#[test]
fn names_identify_merges() {
    let name = |merge: Merge, zeros| PortableMerge::new(merge, zeros).name().to_owned();
    for simple in NAMES {
        assert_eq!(
            name(merge_by_name(simple), Zeros::Distinct),
            format!("ats.{simple}")
        );
    }
    for (simple, expected) in [
        ("replace", "ats.last"),
        ("statistics", "ats.statistics"),
        ("intersection", "ats.intersection"),
    ] {
        assert_eq!(name(merge_by_name(simple), Zeros::Distinct), expected);
    }
    assert_eq!(
        name(merge_by_name("statistics"), Zeros::Same),
        "ats.statistics"
    );
    let last_by = |number| merge_of(&Term::from((atom("last"), number)));
    assert_eq!(name(last_by(7), Zeros::Same), "ats.last(7),zeros=same");
    let pruned = merge_of(&Term::from((atom("prune"), atom("sum"))));
    assert_eq!(name(pruned, Zeros::Same), "ats.prune(sum)");
    let inner = vector_of(vec![atom("sum"), vector_of(vec![atom("max")])]);
    assert_eq!(
        name(merge_of(&inner), Zeros::Distinct),
        "ats.vector(sum,vector(max))"
    );
    let mut names: Vec<_> = simple_merges()
        .iter()
        .map(|term| name(merge_of(term), Zeros::Distinct))
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), simple_merges().len());
    let two = vector(&["sum", "max"]);
    assert_eq!(name(two.clone(), Zeros::Distinct), "ats.vector(sum,max)");
    assert_eq!(name(two, Zeros::Same), "ats.vector(sum,max),zeros=same");
    assert_eq!(name(vector(&[]), Zeros::Same), "ats.vector()");
    assert_eq!(name(merge_by_name("sum"), Zeros::Same), "ats.sum");
    assert_eq!(
        PortableMerge::new(merge_by_name("sum"), Zeros::Same).version(),
        1
    );
}

#[test]
fn integers_are_read_in_every_form() {
    let sum = PortableMerge::new(merge_by_name("sum"), Zeros::Distinct);
    let max = PortableMerge::new(merge_by_name("max"), Zeros::Distinct);
    let five: [&[u8]; 4] = [
        &[131, 97, 5],
        &[131, 98, 0, 0, 0, 5],
        &[131, 110, 1, 0, 5],
        &[131, 110, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0],
    ];
    let minus_one = bytes(&Term::from(-1));
    for five in five {
        assert_eq!(
            merge_bytes(&sum, five, &minus_one),
            Some(bytes(&Term::from(4)))
        );
        assert_eq!(
            sum.merge(b"", &minus_one, five),
            Ok(Merged::New(bytes(&Term::from(4))))
        );
        assert_eq!(max.merge(b"", five, &minus_one), Ok(Merged::Earlier));
        assert_eq!(max.merge(b"", &minus_one, five), Ok(Merged::Later));
    }
    // The sum goes from small to large integers, and back.
    let most = bytes(&Term::from(i64::MAX));
    let more = merge_bytes(&sum, &most, &bytes(&Term::from(1))).unwrap();
    assert_eq!(
        read(&more),
        Term::integer(false, &(1_u64 << 63).to_le_bytes())
    );
    assert_eq!(merge_bytes(&sum, &more, &minus_one), Some(most));
    let least = bytes(&Term::from(i64::MIN));
    assert_eq!(
        merge_bytes(&sum, &least, &more),
        Some(bytes(&Term::from(0)))
    );
}

#[test]
fn only_last_makes_older_values_irrelevant() {
    let is_base =
        |name| PortableMerge::new(merge_by_name(name), Zeros::Distinct).is_base(b"k", b"v");
    assert_eq!(NAMES.map(is_base), NAMES.map(|name| name == "last"));
    let both = PortableMerge::new(vector(&["last", "last"]), Zeros::Distinct);
    assert!(both.is_base(b"k", b"v"));
}

#[test]
fn many_binaries_are_appended_at_once() {
    let append = PortableMerge::new(merge_by_name("append"), Zeros::Distinct);
    let values: Vec<_> = (0..100_u8)
        .map(|byte| bytes(&Term::binary(&[byte, byte])))
        .collect();
    let mut values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    let expected: Vec<_> = (0..100_u8).flat_map(|byte| [byte, byte]).collect();
    let expected = bytes(&Term::binary(&expected));
    assert_eq!(append.merge_all(b"key", &values), Ok(Some(expected)));
    let list = bytes(&Term::Nil);
    values[50] = &list;
    assert_eq!(append.merge_all(b"key", &values), Ok(None));
    assert_eq!(append.merge(b"key", values[49], &list), Err(Error::Merge));
}

/// An empty value is recognised in every encoding.
#[test]
fn empty_values_are_known() {
    let operator = |merge: Term| PortableMerge::new(merge_of(&merge), Zeros::Distinct);
    let pruned = |name| operator(Term::from((atom("prune"), atom(name))));
    let is_absent = |name, value: &[u8]| pruned(name).is_absent(b"k", value);
    for zero in [&[131, 97, 0][..], &[131, 98, 0, 0, 0, 0], &[131, 110, 0, 0]] {
        assert!(is_absent("sum", zero));
    }
    for list in [
        &[131, 106][..],
        &[131, 108, 0, 0, 0, 0, 106],
        &[131, 107, 0, 0],
    ] {
        assert!(is_absent("append", list) && is_absent("union", list));
        let intersection = operator(atom("intersection"));
        assert!(intersection.is_base(b"k", list) && !intersection.is_absent(b"k", list));
    }
    assert!(is_absent("append", &[131, 109, 0, 0, 0, 0]));
    assert!(is_absent("union", &[131, 116, 0, 0, 0, 0]));
    for other in [
        &[][..],
        &[131],
        &[131, 97],
        &[131, 97, 0, 0],
        &[97, 0],
        &[131, 97, 1],
    ] {
        for name in ["sum", "append", "union"] {
            assert!(!is_absent(name, other), "{name}, {other:?}");
        }
    }
    let two = vector_of(
        ["sum", "sum"]
            .map(|name| Term::from((atom("prune"), atom(name))))
            .to_vec(),
    );
    let is_absent =
        |pair: (i64, i64)| operator(two.clone()).is_absent(b"k", &bytes(&Term::from(pair)));
    assert!(is_absent((0, 0)) && !is_absent((0, 1)) && !is_absent((0, i64::MAX)));
}
