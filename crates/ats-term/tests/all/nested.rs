//! Maps inside keys of maps inside keys of maps: keys and images match their definitions.

use crate::common::other_host::OtherHostTerm;
use ats_term::exact::{Options, exact_key};
use ats_term::image::{ImageBuilder, ImageRef, Scratch, TermHost, View, decode_object, image_eq};
use ats_term::order::order_key;
use ats_term::term::{Map, TermBuilder, Tuple};
use ats_term::term_ref::TermRef;
use ats_term::{Term, Zeros};
use proptest::prelude::*;

/// Generates terms with many maps in keys, most of them nearly equal.
fn nested() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        (-2i64..3).prop_map(Term::from),
        (0i64..3).prop_map(|i| Term::from((1i64 << 62) + i)),
        (-1i32..3).prop_map(|i| Term::try_from(f64::from(i)).unwrap()),
        Just(Term::Nil),
        Just(Term::from("")),
        Just(Term::atom("a").unwrap()),
        Just(Term::atom("ab").unwrap()),
        Just(Term::Tuple(Tuple::new(vec![]))),
        Just(Term::Map(Map::new(vec![]).unwrap())),
    ];
    leaf.prop_recursive(9, 120, 4, |inner| {
        let pairs = prop::collection::vec((inner.clone(), inner.clone()), 0..5);
        prop_oneof![
            8 => pairs.prop_map(|mut pairs| {
                pairs.sort_by(|(a, _), (b, _)| a.compare_exact(b));
                pairs.dedup_by(|(a, _), (b, _)| a == b);
                Term::Map(Map::new(pairs).unwrap())
            }),
            1 => prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|elements| Term::Tuple(Tuple::new(elements))),
            1 => (prop::collection::vec(inner.clone(), 1..4), inner)
                .prop_map(|(elements, tail)| Term::list_with_tail(elements, tail)),
        ]
    })
}

fn order_of<T: TermRef>(term: T) -> Vec<u8> {
    let mut key = Vec::new();
    order_key(term, &mut key, Zeros::Distinct);
    key
}

fn exact_of<T: TermRef>(term: T) -> Vec<u8> {
    let mut key = Vec::new();
    exact_key(term, &mut key, Options::default());
    key
}

/// Makes the exact key of a term by its definition.
fn key_by_definition(term: &Term) -> Vec<u8> {
    let concat = |head: Vec<u8>, parts: Vec<Vec<u8>>| [vec![head], parts].concat().concat();
    match term {
        Term::Map(map) => {
            let mut pairs: Vec<_> = map
                .iter()
                .map(|(k, v)| (key_by_definition(k), key_by_definition(v)))
                .collect();
            pairs.sort();
            let (keys, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            concat(vec![0x28, map.len() as u8], [keys, values].concat())
        }
        Term::Tuple(elements) => concat(
            vec![0x24, elements.len() as u8],
            elements.iter().map(key_by_definition).collect(),
        ),
        Term::List(list) => concat(
            vec![0x2C],
            vec![
                key_by_definition(list.head()),
                key_by_definition(list.tail()),
            ],
        ),
        leaf => exact_of(leaf),
    }
}

/// Checks that the keys of all maps are in the canonical order of images.
fn check_order(term: ImageRef<'_, TermHost>) -> Result<(), TestCaseError> {
    let rank = |key: ImageRef<'_, TermHost>| match key.immediate() {
        Some(word) => (word, Vec::new()),
        None => (u64::MAX, exact_of(key)),
    };
    match term.view() {
        View::Map { keys, values } => {
            prop_assert!(keys.iter().map(rank).is_sorted(), "{:?}", keys);
            keys.iter().chain(values).try_for_each(check_order)
        }
        View::Tuple(elements) => elements.iter().try_for_each(check_order),
        View::List { elements, tail } => elements.iter().chain([tail]).try_for_each(check_order),
        _ => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn keys_are_those_of_the_definition(a in nested(), b in nested()) {
        for term in [&a, &b] {
            prop_assert_eq!(exact_of(term), key_by_definition(term), "{}", term);
            prop_assert_eq!(exact_of(OtherHostTerm(term)), key_by_definition(term), "{}", term);
            prop_assert_eq!(order_of(OtherHostTerm(term)), order_of(term), "{}", term);
        }
        let compared = order_of(&a).cmp(&order_of(OtherHostTerm(&b)));
        prop_assert_eq!(compared, a.compare(&b), "{} and {}", a, b);
    }

    #[test]
    fn images_are_canonical(a in nested(), b in nested()) {
        let object = Term::from((1, a, b.clone(), b));
        let mut one = ImageBuilder::new(Zeros::Distinct);
        let mut other = ImageBuilder::new(Zeros::Distinct);
        one.encode_object(&object).unwrap();
        other.encode_object(OtherHostTerm(&object)).unwrap();
        prop_assert_eq!(one.object().words(), other.object().words(), "{}", object);
        prop_assert!(image_eq(one.object(), other.object(), Zeros::Distinct));
        check_order(one.object().term())?;
        let mut sink = TermBuilder::new();
        let built = decode_object(one.object(), &mut sink, &mut Scratch::new());
        prop_assert_eq!(sink.finish(built).unwrap(), object.clone());
        prop_assert_eq!(exact_of(one.object().term()), exact_of(&object));
    }
}
