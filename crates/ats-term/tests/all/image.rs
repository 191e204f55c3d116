//! Images of objects: terms survive the conversion, in place, after copies and after changes.

use crate::common::as_seen;
use ats_term::arbitrary::{any_term, near_term};
use ats_term::exact::{Options, exact_key};
use ats_term::image::{
    Host, ImageBuilder, ImageRef, NewValue, NoImage, Object, ObjectListBuilder, Scratch, TermHost,
    View, all_immediate, decode, decode_element, decode_object, image_eq, term_eq,
};
use ats_term::order::order_key;
use ats_term::term::{Map, TermBuilder, Tuple};
use ats_term::term_ref::{Kind, TermRef};
use ats_term::{Atom, Term, Zeros};
use proptest::prelude::*;

type Builder<'a> = ImageBuilder<&'a Term>;

fn tuple(elements: Vec<Term>) -> Term {
    Term::Tuple(Tuple::new(elements))
}

fn builder_of(object: &Term) -> Builder<'_> {
    let mut builder = Builder::new(Zeros::Distinct);
    builder.encode_object(object).expect("a tuple");
    builder
}

fn read(object: Object<'_, TermHost>) -> Term {
    let mut sink = TermBuilder::new();
    let built = decode_object(object, &mut sink, &mut Scratch::new());
    sink.finish(built)
        .expect("an image has only terms that can be built")
}

fn read_ref(term: ImageRef<'_, TermHost>) -> Term {
    let mut sink = TermBuilder::new();
    let built = decode(term, &mut sink, &mut Scratch::new());
    sink.finish(built)
        .expect("an image has only terms that can be built")
}

/// Returns the bits of a bitstring, and its bytes, whether they are in the image or with the host.
fn bits_of(term: ImageRef<'_, TermHost>) -> Option<(Vec<u8>, usize)> {
    match term.view() {
        View::Bits { bytes, bits } => Some((bytes.to_vec(), bits)),
        View::Host(_) => match term.kind() {
            Kind::Bits(bits) => Some((term.with_bits(<[u8]>::to_vec), bits)),
            _ => None,
        },
        _ => None,
    }
}

/// Generates binaries around the size from which the host shares them.
fn large() -> impl Strategy<Value = Term> {
    (any::<u8>(), 1020usize..1030).prop_map(|(byte, len)| Term::binary(&vec![byte; len]))
}

/// Generates terms of every kind, some of them nearly equal and some of them large.
fn element() -> impl Strategy<Value = Term> {
    prop_oneof![
        4 => any_term(),
        2 => near_term(),
        1 => large(),
        1 => (large(), any_term(), large()).prop_map(|(a, b, c)| Term::from(vec![a, b, c])),
    ]
}

fn any_object() -> impl Strategy<Value = Term> {
    prop::collection::vec(element(), 0..6).prop_map(tuple)
}

/// Returns terms around the limits between representations.
fn edges() -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for border in [1i128 << 59, 1 << 63, 1 << 64, 1 << 32, 1 << 100] {
        for near in -2..=2 {
            terms.push(Term::from(border + near));
            terms.push(Term::from(-(border + near)));
        }
    }
    terms.extend([0, 1, -1, i64::MIN, i64::MAX].map(Term::from));
    for float in [
        0.0,
        -0.0,
        1.5,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f64::MAX,
        -1e300,
    ] {
        terms.push(Term::try_from(float).expect("finite"));
    }
    for len in [0, 1, 7, 8, 9, 1023, 1024, 1025, 5000] {
        terms.push(Term::binary(&vec![0xA5; len]));
    }
    for bits in [1, 7, 9, 63, 65, 8 * 1024 - 1, 8 * 1024 + 1, 8 * 2000 + 3] {
        let bytes = vec![0xFF; bits / 8 + 1];
        terms.push(Term::Bits(
            ats_term::term::Bits::new(&bytes, bits).expect("enough bytes"),
        ));
    }
    terms.push(Term::Nil);
    terms.push(tuple(vec![]));
    terms.push(Term::Map(Map::new(vec![]).expect("no keys")));
    terms.push(Term::list_with_tail([Term::from(1)], Term::from(2)));
    terms.push(Term::list_with_tail([tuple(vec![])], Term::binary(b"tail")));
    terms.push(Term::atom("").expect("an atom"));
    terms.push(Term::atom(&"å".repeat(255)).expect("an atom"));
    terms
}

#[test]
fn edges_come_back() {
    let all = tuple(edges());
    let builder = builder_of(&all);
    assert_eq!(read(builder.object()), all);
    for (i, edge) in edges().iter().enumerate() {
        assert_eq!(&read_ref(builder.object().element(i)), edge);
        let alone = tuple(vec![edge.clone()]);
        let builder = builder_of(&alone);
        assert_eq!(read(builder.object()), alone);
        assert_eq!(builder.object().element(0).as_i64(), edge.as_int());
    }
}

#[test]
fn tails_of_a_list_are_terms() {
    let elements = [
        Term::from(1),
        Term::binary(b"two"),
        Term::from(vec![Term::from(3)]),
    ];
    for end in [Term::Nil, Term::from(4), Term::binary(b"end")] {
        let object = tuple(vec![Term::list_with_tail(elements.clone(), end)]);
        let builder = builder_of(&object);
        let mut rest = &object.as_tuple().expect("a tuple")[0];
        let mut in_place = builder.object().element(0);
        while let (Kind::Cons(head, tail), Term::List(cell)) = (in_place.kind(), rest) {
            assert_eq!(&read_ref(head), cell.head());
            assert_eq!(&read_ref(in_place), rest);
            (in_place, rest) = (tail, cell.tail());
        }
        assert!(!matches!(in_place.kind(), Kind::Cons(..)) && !matches!(rest, Term::List(_)));
        assert_eq!(&read_ref(in_place), rest);
    }
}

#[test]
fn only_tuples_are_objects() {
    let mut builder = Builder::new(Zeros::Distinct);
    let terms = edges();
    for term in &terms {
        let expected = if term.as_tuple().is_some() {
            Ok(())
        } else {
            Err(NoImage::NotATuple)
        };
        assert_eq!(builder.encode_object(term), expected);
    }
}

#[test]
fn images_keep_to_their_words() {
    let mut builder = Builder::new(Zeros::Distinct);
    let numbers = |len: i64| Term::from((0..len).map(Term::from).collect::<Vec<Term>>());
    let nested = (0..5_000).fold(Term::Nil, |inner, _| {
        Term::from((inner, 1i64 << 62, "text"))
    });
    let large = [
        Term::from((1, numbers(10_000))),
        Term::Tuple(Tuple::new((0..10_000).map(Term::from).collect())),
        Term::from((1, Term::from((2, numbers(10_000))), numbers(3))),
        Term::from((1, Term::binary(&[1; 1_000]), nested)),
    ];
    for object in &large {
        let fits = builder.encode_object(object);
        assert_eq!(fits, Ok(()));
        let words = builder.object().len_words();
        assert_eq!(builder.encode_object_within(object, words), Ok(()));
        assert_eq!(read(builder.object()), *object);
        for most in [0, words / 2, words - 10] {
            let none = builder.encode_object_within(object, most);
            assert_eq!(none, Err(NoImage::TooLarge), "{most} of {words}");
        }
        // The limit was for that call only.
        assert_eq!(builder.encode_object(object), Ok(()));
        assert_eq!(builder.object().len_words(), words);
    }
}

#[test]
fn large_binaries_are_shared_and_given_back() {
    let large = Term::binary(&[7; 2000]);
    let Term::Bits(bits) = &large else {
        unreachable!()
    };
    let count = || std::sync::Arc::strong_count(bits.shared_bytes());
    let before = count();
    let object = tuple(vec![large.clone(), Term::from(vec![large.clone()])]);
    let held = count();
    {
        let mut first = builder_of(&object);
        assert!(first.owns());
        assert!(first.object().len_words() < 20);
        assert_eq!(count(), held + 2);
        let mut second = Builder::new(Zeros::Distinct);
        second.replace_elements(first.object(), &[(0, NewValue::Int(1))]);
        assert!(second.owns());
        assert_eq!(
            read(second.object()).as_tuple().map(|t| t[0].clone()),
            Some(Term::from(1))
        );
        first.discard();
        let shared = tuple(vec![Term::from(1), Term::from(vec![large.clone()])]);
        assert_eq!(read(second.object()), shared);
    }
    assert_eq!(count(), held);
    drop(object);
    assert_eq!(count(), before);
}

#[test]
fn a_million_levels() {
    const DEPTH: usize = 1_000_000;
    let grow: [fn(Term) -> Term; 5] = [
        |inner| tuple(vec![inner]),
        |inner| tuple(vec![inner, Term::binary(b"right"), Term::from(1)]),
        |inner| Term::from(vec![inner]),
        |inner| Term::list_with_tail([Term::from(1), inner], Term::from(2)),
        |inner| Term::Map(Map::new(vec![(Term::from(1), inner)]).expect("one key")),
    ];
    for grow in grow {
        let mut term = Term::binary(b"bottom");
        for _ in 0..DEPTH {
            term = grow(term);
        }
        let object = tuple(vec![Term::from(1), term]);
        let first = builder_of(&object);
        let mut second = Builder::new(Zeros::Distinct);
        // A new first element moves all boxes after it.
        let moved = Term::binary(b"moved");
        second.replace_elements(first.object(), &[(0, NewValue::Term(&moved))]);
        assert!(!image_eq(first.object(), second.object(), Zeros::Distinct));
        let mut third = Builder::new(Zeros::Distinct);
        third.replace_elements(second.object(), &[(0, NewValue::Int(1))]);
        assert!(image_eq(first.object(), third.object(), Zeros::Distinct));
        assert!(
            read(second.object()).as_tuple().expect("a tuple")[1]
                == object.as_tuple().expect("a tuple")[1]
        );
    }
}

#[test]
fn a_long_list_and_a_wide_tuple() {
    let elements: Vec<Term> = (0..200_000).map(|i| tuple(vec![Term::from(i)])).collect();
    let object = tuple(vec![Term::from(elements.clone()), tuple(elements)]);
    assert_eq!(read(builder_of(&object).object()), object);
}

#[test]
fn every_part_counts() {
    let int = |value: i64| Term::from(value);
    let float = |value: f64| Term::try_from(value).expect("finite");
    let map = |pairs: Vec<(Term, Term)>| Term::Map(Map::new(pairs).expect("distinct keys"));
    let bits = |len| Term::Bits(ats_term::term::Bits::new(&[0, 0], len).expect("two bytes"));
    let terms = [
        int(1),
        int(2),
        float(1.0),
        float(2.0),
        Term::from(1i128 << 70),
        Term::from(-(1i128 << 70)),
        Term::Nil,
        Term::from(vec![int(1)]),
        Term::from(vec![int(2)]),
        Term::from(vec![int(1), int(2)]),
        Term::list_with_tail([int(1)], int(2)),
        Term::from((1, 2)),
        Term::from((2, 1)),
        Term::from((1, (2,))),
        Term::from(((1,), 2)),
        Term::from(((2,), 1)),
        map(vec![]),
        map(vec![(int(1), int(2))]),
        map(vec![(int(2), int(1))]),
        map(vec![(float(1.0), int(2))]),
        map(vec![
            (Term::binary(b"a"), int(1)),
            (Term::binary(b"b"), int(2)),
        ]),
        map(vec![
            (Term::binary(b"a"), int(2)),
            (Term::binary(b"b"), int(1)),
        ]),
        bits(8),
        bits(9),
        bits(16),
        Term::binary(b"a"),
    ];
    for (i, a) in terms.iter().enumerate() {
        for (j, b) in terms.iter().enumerate() {
            let [a, b] = [a, b].map(|term| Term::from((7, term.clone(), "same")));
            let [x, y] = [builder_of(&a), builder_of(&b)];
            assert_eq!(
                image_eq(x.object(), y.object(), Zeros::Distinct),
                i == j,
                "{a} {b}"
            );
        }
    }
}

#[test]
fn zeros_follow_the_option() {
    let [plus, minus] = [0.0, -0.0].map(|zero| Term::try_from(zero).expect("finite"));
    let map = |key: &Term| {
        let pairs = vec![
            (key.clone(), Term::from(1)),
            (Term::binary(b"x"), Term::from(2)),
        ];
        tuple(vec![
            Term::Map(Map::new(pairs).expect("two keys")),
            key.clone(),
        ])
    };
    let (plus, minus) = (map(&plus), map(&minus));
    for (zeros, equal) in [(Zeros::Same, true), (Zeros::Distinct, false)] {
        let [mut a, mut b] = [(); 2].map(|()| Builder::new(zeros));
        a.encode_object(&plus).expect("a tuple");
        b.encode_object(&minus).expect("a tuple");
        assert_eq!(image_eq(a.object(), b.object(), zeros), equal);
    }
}

#[test]
fn a_recycled_builder_keeps_its_buffer() {
    let object = tuple((0..100).map(Term::from).collect());
    let mut parked: ImageBuilder<&'static Term> = ImageBuilder::new(Zeros::Distinct);
    let mut addresses = Vec::new();
    for _ in 0..3 {
        let mut builder = parked.recycle::<&Term>();
        builder.encode_object(&object).expect("a tuple");
        addresses.push(builder.object().words().as_ptr());
        assert_eq!(read(builder.object()), object);
        parked = builder.recycle();
    }
    assert_eq!(addresses[1], addresses[2]);
}

#[test]
#[should_panic(expected = "no object here")]
fn a_taken_object_is_not_shown() {
    let object = tuple(vec![Term::Nil]);
    let mut builder = builder_of(&object);
    assert!(!builder.take().owns());
    let _ = builder.object();
}

proptest! {
    #[test]
    fn objects_come_back(object in any_object()) {
        let builder = builder_of(&object);
        prop_assert_eq!(read(builder.object()), object.clone());
        // Offsets are relative, so the words can be moved.
        let copy = builder.object().words().to_vec();
        // SAFETY: the words are a copy of an image that outlives the object.
        let moved = unsafe { Object::<TermHost>::from_words(&copy) };
        prop_assert_eq!(read(moved), object);
    }

    #[test]
    fn elements_are_read_in_place(object in any_object()) {
        let builder = builder_of(&object);
        let (image, elements) = (builder.object(), object.as_tuple().expect("a tuple"));
        prop_assert_eq!(image.arity(), elements.len());
        prop_assert!(image.get(elements.len()).is_none());
        for (i, element) in elements.iter().enumerate() {
            let mut sink = TermBuilder::new();
            let built = decode_element(image, i, &mut sink, &mut Scratch::new());
            prop_assert_eq!(&sink.finish(built).expect("a term"), element);
            let in_place = image.element(i);
            prop_assert_eq!(in_place.immediate(), element.immediate());
            if let Term::Bits(bits) = element {
                prop_assert_eq!(bits_of(in_place), Some((bits.bytes().to_vec(), bits.bit_len())));
            }
        }
        let immediates: Option<Vec<u64>> = elements.iter().map(TermRef::immediate).collect();
        prop_assert_eq!(all_immediate(image).map(<[u64]>::to_vec), immediates);
    }

    #[test]
    fn keys_of_an_image_are_keys_of_its_term(object in any_object(), zeros in any_zeros()) {
        let mut builder = Builder::new(zeros);
        builder.encode_object(&object).expect("a tuple");
        let image = builder.object().term();
        let options = Options { zeros, ..Options::default() };
        let [mut a, mut b] = [(); 2].map(|()| Vec::new());
        order_key(image, &mut a, zeros);
        order_key(&object, &mut b, zeros);
        prop_assert_eq!(&a, &b);
        a.clear();
        b.clear();
        exact_key(image, &mut a, options);
        exact_key(&object, &mut b, options);
        prop_assert_eq!(a, b);
    }

    #[test]
    fn replacing_is_rebuilding(
        object in prop::collection::vec(element(), 1..7),
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 0..8),
    ) {
        let mut expected = object.clone();
        let old = tuple(object);
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(index, change)| (index.index(expected.len()), change))
            .collect();
        for (i, change) in &changes {
            expected[*i] = change.term();
        }
        let expected = tuple(expected);
        let first = builder_of(&old);
        let mut second = Builder::new(Zeros::Distinct);
        let values: Vec<_> = changes.iter().map(|(i, change)| (*i, change.value())).collect();
        second.replace_elements(first.object(), &values);
        drop(first);
        prop_assert_eq!(read(second.object()), expected.clone());
        // The images must have the same words, not only the same meaning, to be canonical; pointers
        // and floats are left to `image_eq`.
        let third = builder_of(&expected);
        prop_assert_eq!(second.object().len_words(), third.object().len_words());
        prop_assert!(image_eq(second.object(), third.object(), Zeros::Distinct));
        prop_assert_eq!(second.owns(), third.owns());
    }

    #[test]
    fn equality_is_that_of_terms(a in any_object(), b in any_object()) {
        let [x, y] = [builder_of(&a), builder_of(&b)];
        prop_assert_eq!(image_eq(x.object(), y.object(), Zeros::Distinct), a == b);
        prop_assert!(image_eq(x.object(), x.object(), Zeros::Distinct));
        // The same term from other memory, with every map given in another order.
        let again = read(y.object());
        prop_assert!(image_eq(y.object(), builder_of(&again).object(), Zeros::Distinct));
    }

    #[test]
    fn equality_of_parts_is_that_of_terms(
        a in any_object(),
        b in any_object(),
        zeros in any_zeros(),
    ) {
        let (mut left, mut right) = (Builder::new(zeros), Builder::new(zeros));
        left.encode_object(&a).unwrap();
        right.encode_object(&b).unwrap();
        let (in_a, in_b) = (some_parts(left.object()), some_parts(right.object()));
        let pairs = in_a.iter().chain(&in_b).flat_map(|a| in_a.iter().map(move |b| (*a, *b)));
        for (x, y) in pairs {
            let (seen_x, seen_y) = (as_seen(&read_ref(x), zeros), as_seen(&read_ref(y), zeros));
            prop_assert_eq!(term_eq(x, y, zeros), seen_x == seen_y, "{} {}", seen_x, seen_y);
        }
    }

    #[test]
    fn nearly_equal_is_not_equal(
        a in prop::collection::vec(near_term(), 1..3),
        b in prop::collection::vec(near_term(), 1..3),
    ) {
        let [a, b] = [tuple(a), tuple(b)];
        let [x, y] = [builder_of(&a), builder_of(&b)];
        prop_assert_eq!(image_eq(x.object(), y.object(), Zeros::Distinct), a == b);
    }

    #[test]
    fn a_single_change_makes_a_difference(
        object in prop::collection::vec(element(), 1..5),
        i in any::<prop::sample::Index>(),
        nested in 0..3,
        term in element(),
    ) {
        let wrap = |terms: &[Term]| match nested {
            0 => tuple(terms.to_vec()),
            1 => tuple(vec![Term::from(terms.to_vec())]),
            _ => tuple(vec![tuple(vec![Term::Nil]), tuple(terms.to_vec())]),
        };
        let mut changed = object.clone();
        changed[i.index(object.len())] = term;
        let (a, b) = (wrap(&object), wrap(&changed));
        let [x, y] = [builder_of(&a), builder_of(&b)];
        prop_assert_eq!(image_eq(x.object(), y.object(), Zeros::Distinct), a == b);
    }

    #[test]
    fn lists_of_objects(steps in prop::collection::vec(list_step(), 0..12)) {
        let mut model: Vec<Term> = Vec::new();
        let mut list = ObjectListBuilder::<TermHost>::new();
        for step in steps {
            let mut next = ObjectListBuilder::new();
            match step {
                ListStep::Append(object) => {
                    next.push_all(list.list());
                    next.push(builder_of(&object).take());
                    model.push(object);
                }
                ListStep::Remove(index) => {
                    let i = index.index(model.len() + 1);
                    next.push_all_but(list.list(), i);
                    if i < model.len() {
                        model.remove(i);
                    }
                }
            }
            list = next;
            let objects: Vec<Term> = list
                .list()
                .iter()
                .map(|stored| read(stored.object(&mut Vec::new())))
                .collect();
            prop_assert_eq!(&objects, &model);
            prop_assert_eq!(list.is_empty(), model.is_empty());
        }
    }
}

fn any_zeros() -> impl Strategy<Value = Zeros> {
    prop_oneof![Just(Zeros::Same), Just(Zeros::Distinct)]
}

#[derive(Clone, Debug)]
enum Change {
    Term(Term),
    Int(i64),
    Big(bool, Vec<u8>),
}

impl Change {
    fn term(&self) -> Term {
        match self {
            Change::Term(term) => term.clone(),
            Change::Int(value) => Term::from(*value),
            Change::Big(negative, magnitude) => Term::integer(*negative, magnitude),
        }
    }

    fn value(&self) -> NewValue<'_, &Term> {
        match self {
            Change::Term(term) => NewValue::Term(term),
            Change::Int(value) => NewValue::Int(*value),
            Change::Big(negative, magnitude) => NewValue::Big {
                negative: *negative,
                magnitude,
            },
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        element().prop_map(Change::Term),
        any::<i64>().prop_map(Change::Int),
        (-9i64..9).prop_map(Change::Int),
        (any::<bool>(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(negative, magnitude)| Change::Big(negative, magnitude)),
        Just(Change::Big(true, vec![0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0])),
    ]
}

#[derive(Clone, Debug)]
enum ListStep {
    Append(Term),
    Remove(prop::sample::Index),
}

fn list_step() -> impl Strategy<Value = ListStep> {
    prop_oneof![
        2 => any_object().prop_map(ListStep::Append),
        1 => any::<prop::sample::Index>().prop_map(ListStep::Remove),
    ]
}

/// Facts that a program with its own closures in a table relies on.
#[test]
fn text_of_atoms_comes_from_the_host() {
    let atom = Atom::new("visits").expect("an atom");
    let object = tuple(vec![Term::Atom(atom)]);
    let builder = builder_of(&object);
    let slot = builder
        .object()
        .element(0)
        .immediate()
        .expect("an immediate");
    TermHost::with_atom(slot, |text| assert_eq!(text, "visits"));
    builder
        .object()
        .element(0)
        .with_atom(|text| assert_eq!(text, "visits"));
}

/// Returns the object and terms near its surface, among them tails of lists.
fn some_parts(object: Object<'_, TermHost>) -> Vec<ImageRef<'_, TermHost>> {
    let (mut parts, mut next) = (vec![object.term()], 0);
    while next < parts.len() && parts.len() < 40 {
        let part = parts[next];
        next += 1;
        match part.view() {
            View::Tuple(elements) => parts.extend(elements),
            View::Map { keys, values } => parts.extend(keys.iter().chain(values)),
            View::List { elements, tail } => {
                assert_eq!(
                    part.skip(elements.len()).map(read_ref),
                    Some(read_ref(tail))
                );
                assert!(part.skip(elements.len() + 1).is_none());
                parts.extend(elements);
                parts.extend(part.skip(1));
            }
            _ => assert!(part.skip(0).is_none()),
        }
    }
    parts
}
