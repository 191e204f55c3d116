//! The merge operator of stores of bytes, beside the merges of terms.

use ats::{Merge, PortableMerge};
use ats_store::{Error, MergeOperator, Merged};
use ats_term::arbitrary::{any_term, integer, near_term};
use ats_term::image::{ImageBuilder, NewValue, Object, Scratch, TermHost, decode};
use ats_term::term::{TermBuilder, Tuple};
use ats_term::{Atom, Term, Zeros, etf};
use proptest::prelude::*;

const NAMES: [&str; 7] = ["sum", "min", "max", "first", "last", "append", "union"];

fn atom(text: &str) -> Term {
    Term::Atom(Atom::new(text).expect("a short text"))
}

fn list(elements: Vec<Term>) -> Term {
    Term::list_with_tail(elements, Term::Nil)
}

fn named(name: &str) -> Merge {
    Merge::from_term(&atom(name)).expect("the name of a merge")
}

fn vector(names: &[&str]) -> Merge {
    let names = list(names.iter().map(|name| atom(name)).collect());
    Merge::from_term(&Term::from((atom("vector"), names))).expect("a vector")
}

fn bytes(term: &Term) -> Vec<u8> {
    etf::encode(term).expect("a term of usual size")
}

/// What the merge makes of two terms by way of their images.
fn merged_as_terms(merge: &Merge, earlier: &Term, later: &Term, zeros: Zeros) -> Option<Term> {
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

/// What the operator makes of two values.
fn merged(operator: &PortableMerge, earlier: &[u8], later: &[u8]) -> Option<Vec<u8>> {
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

/// Terms that suit one merge or another.
fn value() -> BoxedStrategy<Term> {
    let ordset = proptest::collection::btree_set(-5..5_i64, 0..5)
        .prop_map(|set| list(set.into_iter().map(Term::from).collect()));
    let elements = proptest::collection::vec(near_term(), 0..4).prop_map(list);
    let binary = proptest::collection::vec(any::<u8>(), 0..9);
    prop_oneof![
        4 => integer(),
        2 => (-300..300_i64).prop_map(Term::from),
        2 => binary.prop_map(|bytes| Term::binary(&bytes)),
        2 => ordset,
        1 => elements,
        1 => near_term(),
        1 => any_term(),
    ]
    .boxed()
}

/// Three values of the same merge, mostly.
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
    ]
}

fn merges() -> impl Strategy<Value = Merge> {
    proptest::sample::select(NAMES.to_vec()).prop_map(named)
}

fn zeros() -> impl Strategy<Value = Zeros> {
    prop_oneof![Just(Zeros::Same), Just(Zeros::Distinct)]
}

/// Whether the sums of floats are not as exact as sums of integers.
fn has_float(values: &[Term]) -> bool {
    values.iter().any(|value| matches!(value, Term::Float(_)))
}

/// Whether a term is an integer, or a tuple of integers.
fn is_of_integers(term: &Term) -> bool {
    match term {
        Term::Tuple(elements) => elements
            .iter()
            .all(|element| matches!(element, Term::Int(_))),
        _ => matches!(term, Term::Int(_)),
    }
}

fn check(merge: &Merge, values: &[Term; 3], zeros: Zeros, is_exact: bool) {
    let operator = PortableMerge::new(merge.clone(), zeros);
    let [a, b, c] = values.each_ref().map(bytes);
    // As they are read: the bytes do not say which identifiers are those of the running node.
    let values = &[&a, &b, &c].map(|value| read(value));
    for (earlier, later) in [(0, 1), (1, 2)] {
        let (earlier, later) = (&values[earlier], &values[later]);
        let found = merged(&operator, &bytes(earlier), &bytes(later));
        let found = found.map(|value| {
            let term = read(&value);
            // What is merged as it stands is written as terms are.
            if is_of_integers(&term) {
                assert!([earlier, later].map(bytes).contains(&value) || bytes(&term) == value);
            }
            term
        });
        let expected = merged_as_terms(merge, earlier, later, zeros);
        assert_eq!(found, expected, "{merge:?} of {earlier} and {later}");
        if found.is_none() {
            return;
        }
        assert!(operator.takes(&bytes(earlier)) && operator.takes(&bytes(later)));
    }
    let ab_c = merged(&operator, &merged(&operator, &a, &b).unwrap(), &c);
    let a_bc = merged(&operator, &a, &merged(&operator, &b, &c).unwrap());
    let [ab_c, a_bc] = [ab_c, a_bc].map(|value| value.map(|value| read(&value)));
    if is_exact {
        assert_eq!(ab_c, a_bc, "{merge:?} of {values:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_operator_does_what_the_merge_does(merge in merges(), values in values(), zeros in zeros()) {
        check(&merge, &values, zeros, merge != named("sum") || !has_float(&values));
    }

    #[test]
    fn vectors_are_merged_by_their_elements(
        columns in proptest::collection::vec((proptest::sample::select(NAMES.to_vec()), values()), 0..4),
        zeros in zeros(),
    ) {
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let row = |row: usize| {
            let elements = columns.iter().map(|(_, values)| values[row].clone());
            Term::Tuple(Tuple::new(elements.collect()))
        };
        let is_exact = columns
            .iter()
            .all(|(name, values)| *name != "sum" || !has_float(values));
        check(&vector(&names), &[row(0), row(1), row(2)], zeros, is_exact);
    }

    /// Whatever the bytes are, nothing panics, and what is no term is not merged.
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
        let is_blind = [named("first"), named("last")].contains(&merge);
        let mut too_long = term.clone();
        too_long.resize(term.len() + longer, 0);
        for other in [&noise[..], &term[..cut.index(term.len())], &too_long] {
            let is_term = etf::decode(other, etf::Options::default()).is_ok();
            for (earlier, later) in [(&term[..], other), (other, &term)] {
                let is_merged = merged(&operator, earlier, later).is_some();
                prop_assert!(!is_merged || is_term || is_blind);
            }
            prop_assert!(is_term || !operator.takes(other));
        }
    }
}

#[test]
fn the_name_says_what_the_merge_is() {
    let name = |merge: Merge, zeros| PortableMerge::new(merge, zeros).name().to_owned();
    for simple in NAMES {
        assert_eq!(
            name(named(simple), Zeros::Distinct),
            format!("ats.{simple}")
        );
    }
    let two = vector(&["sum", "max"]);
    assert_eq!(name(two.clone(), Zeros::Distinct), "ats.vector(sum,max)");
    assert_eq!(name(two, Zeros::Same), "ats.vector(sum,max),zeros=same");
    assert_eq!(name(vector(&[]), Zeros::Same), "ats.vector()");
    assert_eq!(name(named("sum"), Zeros::Same), "ats.sum");
    assert_eq!(PortableMerge::new(named("sum"), Zeros::Same).version(), 1);
}

#[test]
fn integers_are_read_in_every_form() {
    let sum = PortableMerge::new(named("sum"), Zeros::Distinct);
    let max = PortableMerge::new(named("max"), Zeros::Distinct);
    let five: [&[u8]; 4] = [
        &[131, 97, 5],
        &[131, 98, 0, 0, 0, 5],
        &[131, 110, 1, 0, 5],
        &[131, 110, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0],
    ];
    let minus_one = bytes(&Term::from(-1));
    for five in five {
        assert_eq!(merged(&sum, five, &minus_one), Some(bytes(&Term::from(4))));
        assert_eq!(
            sum.merge(b"", &minus_one, five),
            Ok(Merged::New(bytes(&Term::from(4))))
        );
        assert_eq!(max.merge(b"", five, &minus_one), Ok(Merged::Earlier));
        assert_eq!(max.merge(b"", &minus_one, five), Ok(Merged::Later));
    }
    // From small to large integers, and back.
    let most = bytes(&Term::from(i64::MAX));
    let more = merged(&sum, &most, &bytes(&Term::from(1))).unwrap();
    assert_eq!(
        read(&more),
        Term::integer(false, &(1_u64 << 63).to_le_bytes())
    );
    assert_eq!(merged(&sum, &more, &minus_one), Some(most));
    let least = bytes(&Term::from(i64::MIN));
    assert_eq!(merged(&sum, &least, &more), Some(bytes(&Term::from(0))));
}

#[test]
fn what_is_written_last_needs_nothing_older() {
    let is_base = |name| PortableMerge::new(named(name), Zeros::Distinct).is_base(b"k", b"v");
    assert_eq!(NAMES.map(is_base), NAMES.map(|name| name == "last"));
}
