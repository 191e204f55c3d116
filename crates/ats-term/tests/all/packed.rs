//! Packed objects: unpacking restores them word for word, and they are smaller.

use ats_term::arbitrary::{any_term, near_term};
use ats_term::image::{ImageBuilder, Packed, Packer, TermHost, release_all, retain_all};
use ats_term::term::{Bits, Map, Tuple};
use ats_term::{Atom, Term, Zeros};
use proptest::prelude::*;
use std::sync::Arc;

fn tuple(elements: Vec<Term>) -> Term {
    Term::Tuple(Tuple::new(elements))
}

/// Returns the number of words of an object's image and, if it pays, of its packed form. Unpacks
/// and compares it.
fn pack(object: &Term) -> (usize, Option<usize>) {
    let mut builder = ImageBuilder::<&Term>::new(Zeros::Distinct);
    builder.encode_object(object).expect("a tuple");
    let image = builder.object().words().to_vec();
    let mut packer = Packer::new();
    let built = packer.pack(builder.take());
    let packed = built.words().len() < image.len();
    if packed {
        let mut room = Vec::new();
        // SAFETY: the packer has just made these words, and they are released below.
        let unpacked = unsafe { Packed::<TermHost>::from_words(built.words()) }.unpack(&mut room);
        assert_eq!(unpacked.words(), image);
    } else {
        assert_eq!(built.words(), image);
    }
    let len = built.words().len();
    if built.owns() {
        // SAFETY: these words own the resources of the object, no code has taken them, and no code
        // reads them after this.
        unsafe { release_all::<TermHost>(built.words()) };
    }
    (image.len(), packed.then_some(len))
}

fn packed_len(object: &Term) -> usize {
    pack(object).1.expect("it pays")
}

fn element() -> impl Strategy<Value = Term> {
    let large =
        (any::<u8>(), 1000usize..1100).prop_map(|(byte, len)| Term::binary(&vec![byte; len]));
    let text = prop::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| {
        Term::from(
            bytes
                .into_iter()
                .map(|b| Term::from(i64::from(b)))
                .collect::<Vec<_>>(),
        )
    });
    prop_oneof![4 => any_term(), 2 => near_term(), 1 => large, 1 => text]
}

proptest! {
    #[test]
    fn objects_come_back(elements in prop::collection::vec(element(), 0..8)) {
        pack(&tuple(elements));
    }

    #[test]
    fn wide_and_nested(
        columns in prop::collection::vec(element(), 0..20),
        depth in 0usize..20,
        tail in element(),
    ) {
        let mut term = Term::from(columns.clone());
        for i in 0..depth {
            let columns = columns.iter().take(i).cloned().collect::<Vec<_>>();
            let mut right = columns.clone();
            right.push(term);
            right.extend(columns);
            term = match i % 3 {
                0 => tuple(right),
                1 => Term::from(right),
                _ => Term::list_with_tail(right, tail.clone()),
            };
        }
        pack(&tuple(vec![Term::from(1), term, Term::from(2)]));
    }

    #[test]
    fn text_takes_a_byte_for_each_character(text in prop::collection::vec(0i64..256, 1..2000)) {
        let chars: Vec<Term> = text.iter().map(|&c| Term::from(c)).collect();
        let words = packed_len(&tuple(vec![Term::from(chars)]));
        prop_assert!(words <= (text.len() + 6).div_ceil(8));
    }

    #[test]
    fn small_integers_take_half(numbers in prop::collection::vec(-(1i64 << 20)..1 << 20, 3..300)) {
        let terms: Vec<Term> = numbers.iter().map(|&n| Term::from(n)).collect();
        let bytes = 3 * numbers.len() + 5;
        prop_assert!(packed_len(&tuple(terms.clone())) <= bytes.div_ceil(8));
        prop_assert!(packed_len(&tuple(vec![Term::from(terms)])) <= bytes.div_ceil(8));
    }
}

#[test]
fn packed_objects_have_known_sizes() {
    let int = |value: i64| Term::from(value);
    let atom = |text: &str| Term::Atom(Atom::new(text).expect("an atom"));
    let text = |len: usize| {
        Term::from(
            (0..len)
                .map(|i| int(97 + i as i64 % 26))
                .collect::<Vec<_>>(),
        )
    };
    let map = |n: i64| {
        let pairs = (0..n).map(|i| (atom(&format!("key_{i}")), int(1000 * i)));
        Term::Map(Map::new(pairs.collect()).expect("distinct keys"))
    };
    let pair = |key: &str, value: Term| Term::from((atom(key), value));
    let session = Term::from(vec![
        pair("user", Term::binary(b"somebody@example.org")),
        pair("since", int(1_700_000_000)),
        pair("roles", Term::from(vec![atom("reader"), atom("writer")])),
        pair("peer", Term::from(((10, 0, 0, 7), 50_123))),
    ]);
    let float = |value: f64| Term::try_from(value).expect("finite");
    let table = [
        (
            "{Int, Int}, below 2^20",
            tuple(vec![int(123_456), int(654_321)]),
            2,
            1,
        ),
        (
            "{Int, Int}, below 2^28",
            tuple(vec![int(123_456_789), int(98_765_432)]),
            2,
            2,
        ),
        (
            "{Int, Int, Int, Int, Int}, below 2^12",
            tuple((1..6).map(|i| int(i * 500)).collect()),
            5,
            2,
        ),
        (
            "{Binary of 16 bytes, Int}",
            tuple(vec![Term::binary(&[7; 16]), int(123_456)]),
            5,
            3,
        ),
        (
            "{Int, Binary of 100 bytes}",
            tuple(vec![int(123_456), Term::binary(&[7; 100])]),
            16,
            14,
        ),
        (
            "{Int, \"string of 40\"}",
            tuple(vec![int(123_456), text(40)]),
            44,
            6,
        ),
        (
            "{Int, Float, Float}",
            tuple(vec![int(123_456), float(0.1), float(2.5)]),
            7,
            3,
        ),
        (
            "{Int, map of 8 atoms to integers}",
            tuple(vec![int(123_456), map(8)]),
            19,
            6,
        ),
        (
            "{Int, nested property list}",
            tuple(vec![int(123_456), session]),
            36,
            8,
        ),
    ];
    for (what, object, image, packed) in table {
        let (of_image, of_packed) = pack(&object);
        println!(
            "//! | `{what}` | {of_image} | {} |",
            of_packed.unwrap_or(of_image)
        );
        assert_eq!(of_image, image, "{what}");
        assert_eq!(of_packed.unwrap_or(of_image), packed, "{what}");
    }
}

#[test]
fn a_million_levels() {
    let grow: [fn(Term) -> Term; 6] = [
        |inner| tuple(vec![inner]),
        |inner| tuple(vec![inner, Term::binary(b"right"), Term::from(1)]),
        |inner| tuple(vec![tuple(vec![]), inner, tuple(vec![])]),
        |inner| Term::from(vec![inner, Term::from(1)]),
        |inner| Term::list_with_tail([Term::from(1), inner], Term::from(2)),
        |inner| Term::Map(Map::new(vec![(Term::from(1), inner)]).expect("one key")),
    ];
    for grow in grow {
        let mut term = Term::binary(b"bottom");
        for _ in 0..1_000_000 {
            term = grow(term);
        }
        packed_len(&tuple(vec![Term::from(1), term, Term::from(2)]));
    }
}

#[test]
fn numbers_and_bitstrings_around_their_borders() {
    let mut terms = Vec::new();
    for bits in (56..70).chain([100, 126]) {
        for near in -1..=1i128 {
            let power = (1i128 << bits) + near;
            terms.extend([Term::from(power), Term::from(-power)]);
        }
    }
    terms.push(Term::integer(true, &[9; 300]));
    for bits in [
        0,
        1,
        7,
        8,
        9,
        63,
        64,
        65,
        8 * 127,
        8 * 128,
        8 * 1024,
        8 * 1024 + 1,
        16_001,
    ] {
        let bits = Bits::new(&vec![0xFF; bits / 8 + 1], bits).expect("enough bytes");
        terms.push(Term::Bits(bits));
    }
    for term in &terms {
        pack(&tuple(vec![term.clone(), Term::Nil, Term::Nil]));
    }
    packed_len(&tuple(terms));
}

#[test]
fn binaries_of_packed_objects_are_counted() {
    let large = Term::binary(&[7; 2000]);
    let Term::Bits(bits) = &large else {
        unreachable!()
    };
    let count = || Arc::strong_count(bits.shared_bytes());
    let object = tuple(vec![
        large.clone(),
        Term::from(vec![large.clone(), Term::Nil]),
        Term::Nil,
    ]);
    let before = count();
    let mut builder = ImageBuilder::<&Term>::new(Zeros::Distinct);
    builder.encode_object(&object).expect("a tuple");
    let mut packer = Packer::new();
    let built = packer.pack(builder.take());
    assert!(built.owns());
    let record = built.words().to_vec();
    drop(builder);
    assert_eq!(count(), before + 2);
    // SAFETY: the words are those of a record that owns its resources, and are dropped with this
    // test.
    unsafe {
        assert!(retain_all::<TermHost>(&record));
        release_all::<TermHost>(&record);
        // An unretained unit would show up here, an unreleased one below.
        assert_eq!(count(), before + 2);
        release_all::<TermHost>(&record);
    }
    assert_eq!(count(), before);
}
