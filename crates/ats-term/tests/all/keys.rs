//! Order keys and exact keys, compared with the walk of both terms.

use crate::common::other_host::OtherHostTerm;
use crate::common::{ALL_ZEROS, as_seen, exact_key, order_key};
use ats_term::arbitrary::{any_term, finite_float, integer, near_term};
use ats_term::image::ImageBuilder;
use ats_term::order::{Question, compare_within};
use ats_term::term::{Bits, Tuple};
use ats_term::{Term, Zeros, exact, order};
use proptest::prelude::*;

fn check_pair(a: &Term, b: &Term) -> Result<(), TestCaseError> {
    for zeros in ALL_ZEROS {
        let (a, b) = (&as_seen(a, zeros), &as_seen(b, zeros));
        let by_keys = order_key(a, zeros).cmp(&order_key(b, zeros));
        prop_assert_eq!(by_keys, a.compare(b), "{} and {} ({:?})", a, b, zeros);
        for atoms in [exact::Atoms::Word, exact::Atoms::Text] {
            let same = exact_key(a, zeros, atoms) == exact_key(b, zeros, atoms);
            prop_assert_eq!(same, a == b, "{} and {} ({:?}, {:?})", a, b, zeros, atoms);
        }
        check_walks(a, b, zeros)?;
    }
    Ok(())
}

/// Compares two terms by walking both: as they are, as shown by a host with another order of map
/// keys, and in an image.
fn check_walks(a: &Term, b: &Term, zeros: Zeros) -> Result<(), TestCaseError> {
    let object = Term::from((a.clone(), b.clone()));
    let mut builder = ImageBuilder::new(zeros);
    builder.encode_object(&object).unwrap();
    let image = builder.object();
    let (x, y) = (image.element(0), image.element(1));
    let others = (OtherHostTerm(a), OtherHostTerm(b));
    for question in [Question::Order, Question::Equal, Question::Same] {
        let limit = || usize::MAX;
        let answers = [
            compare_within(a, b, question, zeros, &mut limit()),
            compare_within(others.0, others.1, question, zeros, &mut limit()),
            compare_within(x, y, question, zeros, &mut limit()),
        ];
        for answer in answers {
            let answer = answer.expect("no limit");
            let is_right = match question {
                Question::Order => answer == a.compare(b),
                Question::Equal => answer.is_eq() == a.compare(b).is_eq(),
                Question::Same => answer.is_eq() == (a == b),
            };
            prop_assert!(is_right, "{} and {} ({:?}, {:?})", a, b, zeros, question);
        }
        let mut left = 3;
        let answer = compare_within(x, y, question, zeros, &mut left);
        prop_assert!(answer.is_none() || answer == answers[2]);
    }
    Ok(())
}

#[test]
fn maps_of_immediate_keys_are_compared_by_the_least_that_differs() {
    let immediates = [-2, -1, 0, 3].map(Term::from);
    let atoms = ["", "a", "b"].map(|text| Term::atom(text).unwrap());
    let keys: Vec<Term> = immediates
        .into_iter()
        .chain(atoms)
        .chain([Term::Nil])
        .collect();
    let subsets = (1u32..1 << keys.len()).map(|bits| {
        let chosen = keys.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
        let pairs = chosen.map(|(_, key)| (key.clone(), Term::from(bits % 3)));
        Term::Map(ats_term::term::Map::new(pairs.collect()).unwrap())
    });
    let maps: Vec<_> = subsets.step_by(3).collect();
    let mut builder = ImageBuilder::new(Zeros::Same);
    let all = Term::Tuple(Tuple::new(maps.clone()));
    builder.encode_object(&all).unwrap();
    for (i, a) in maps.iter().enumerate() {
        for (j, b) in maps.iter().enumerate() {
            let (x, y) = (builder.object().element(i), builder.object().element(j));
            assert_eq!(
                order::compare(x, y, Zeros::Same),
                a.compare(b),
                "{a} and {b}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn keys_agree_with_comparison(a in any_term(), b in any_term()) {
        check_pair(&a, &b)?;
    }

    #[test]
    fn keys_agree_with_comparison_of_near_terms(a in near_term(), b in near_term()) {
        check_pair(&a, &b)?;
    }

    #[test]
    fn keys_agree_with_comparison_of_numbers(
        a in prop_oneof![integer(), finite_float()],
        b in prop_oneof![integer(), finite_float()],
    ) {
        check_pair(&a, &b)?;
        // Inside a map key, numbers are compared exactly.
        let key_of = |number: &Term| {
            Term::Map(ats_term::term::Map::new(vec![(number.clone(), Term::Nil)]).unwrap())
        };
        check_pair(&key_of(&a), &key_of(&b))?;
    }

    /// Keys do not depend on the order in which a host shows the pairs of its maps.
    #[test]
    fn keys_do_not_depend_on_the_host(term in prop_oneof![any_term(), near_term()]) {
        for zeros in ALL_ZEROS {
            let mut key = Vec::new();
            order::order_key(OtherHostTerm(&term), &mut key, zeros);
            prop_assert_eq!(&key, &order_key(&term, zeros), "{}", &term);
            key.clear();
            let options = exact::Options { zeros, atoms: exact::Atoms::Word };
            exact::exact_key(OtherHostTerm(&term), &mut key, options);
            prop_assert_eq!(&key, &exact_key(&term, zeros, options.atoms), "{}", &term);
        }
    }

    /// Terms that differ only in the signs of zeros have one key if zeros are the same.
    #[test]
    fn same_zeros_have_same_keys(a in near_term()) {
        let seen = as_seen(&a, Zeros::Same);
        prop_assert_eq!(order_key(&a, Zeros::Same), order_key(&seen, Zeros::Same));
        let atoms = exact::Atoms::Word;
        prop_assert_eq!(exact_key(&a, Zeros::Same, atoms), exact_key(&seen, Zeros::Same, atoms));
    }

    #[test]
    fn comparison_is_a_total_order(a in near_term(), b in near_term(), c in near_term()) {
        for order in [Term::compare, Term::compare_exact] {
            prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
            if order(&a, &b).is_le() && order(&b, &c).is_le() {
                prop_assert!(order(&a, &c).is_le(), "{} {} {}", a, b, c);
            }
        }
        prop_assert_eq!(a.compare_exact(&b).is_eq(), a == b);
        prop_assert!(a != b || a.compare(&b).is_eq());
    }

    #[test]
    fn equal_terms_hash_alike(a in near_term(), b in near_term()) {
        use std::hash::{BuildHasher, RandomState};
        let state = RandomState::new();
        prop_assert!(a != b || state.hash_one(&a) == state.hash_one(&b));
    }

    /// The interval of a tuple prefix contains exactly the tuples that begin with its elements (by
    /// `==`).
    #[test]
    fn tuple_prefix_bounds(
        first in near_term(),
        arity in 1usize..4,
        other in prop_oneof![
            near_term(),
            any_term(),
            proptest::collection::vec(near_term(), 1..4)
                .prop_map(|parts| Term::Tuple(Tuple::new(parts))),
        ],
    ) {
        for zeros in ALL_ZEROS {
            let (first, other) = (&as_seen(&first, zeros), &as_seen(&other, zeros));
            let mut prefix = order::Prefix::new(zeros);
            prefix.tuple(arity).term(first);
            let begins_so = other.as_tuple().is_some_and(|elements| {
                elements.len() == arity && elements[0].compare(first).is_eq()
            });
            prop_assert_eq!(within(&prefix, other, zeros), begins_so, "{} {}", first, other);
        }
    }

    /// The same for lists, with a prefix of two elements, the second one nested.
    #[test]
    fn list_prefix_bounds(
        first in near_term(),
        second in near_term(),
        heads in proptest::collection::vec(near_term(), 0..4),
        tail in near_term(),
    ) {
        let zeros = Zeros::Distinct;
        let mut prefix = order::Prefix::new(zeros);
        prefix.cons().term(&first).cons().tuple(2).term(&second);
        let heads: Vec<Term> = (heads.iter().cloned())
            .chain([first.clone(), Term::from((second.clone(), 1))])
            .collect();
        for skipped in 0..heads.len() {
            let list = Term::list_with_tail(heads[skipped..].to_vec(), tail.clone());
            let begins_so = {
                let mut elements = list.as_list().unwrap();
                let nested = |e: &Term| e.as_tuple().is_some_and(|parts| {
                    parts.len() == 2 && parts[0].compare(&second).is_eq()
                });
                elements.next().is_some_and(|e| e.compare(&first).is_eq())
                    && elements.next().is_some_and(nested)
            };
            prop_assert_eq!(within(&prefix, &list, zeros), begins_so, "{}", list);
        }
    }

    #[test]
    fn keys_are_within_the_bounds_of_their_class(term in any_term()) {
        let key = order_key(&term, Zeros::Distinct);
        let class = class_of(&term);
        for other in order::Class::ALL {
            let (from, to) = other.bounds();
            let within = *from <= *key && to.is_none_or(|to| *key < *to);
            prop_assert_eq!(within, other == class, "{} {:?}", term, other);
        }
    }

    #[test]
    fn bounds_of_binary_prefixes(
        prefix in bytes(0..4),
        rest in bytes(0..4),
        spare in 0usize..8,
        other in any_term(),
    ) {
        let (from, to) = order::binary_prefix_bounds(&prefix);
        let all = [&*prefix, &*rest].concat();
        let near = [&*all, &rest, &prefix[..prefix.len() / 2]].map(|bytes| {
            Bits::new(bytes, (8 * bytes.len()).saturating_sub(spare)).map(Term::Bits).unwrap()
        });
        for term in near.iter().chain([&other]) {
            let key = order_key(term, Zeros::Distinct);
            let begins_so = match term {
                Term::Bits(bits) => {
                    bits.bit_len() >= 8 * prefix.len() && bits.bytes().starts_with(&prefix)
                }
                _ => false,
            };
            prop_assert_eq!(from <= key && key < to, begins_so, "{:?} {}", prefix, term);
        }
    }

    #[test]
    fn exact_keys_can_be_written_in_parts(a in any_term(), b in any_term(), c in near_term()) {
        let whole = Term::from((a.clone(), Term::list_with_tail([b.clone()], c.clone())));
        for zeros in ALL_ZEROS {
            for atoms in [exact::Atoms::Word, exact::Atoms::Text] {
                let mut writer = exact::Writer::new(exact::Options { zeros, atoms });
                writer.tuple(2).term(&a).cons().term(&b).term(&c);
                prop_assert_eq!(writer.into_bytes(), exact_key(&whole, zeros, atoms));
            }
        }
    }

    #[test]
    fn integer_fast_path(value in prop_oneof![any::<i64>(), -70000i64..70000]) {
        let mut key = [0; order::MAX_INT_KEY];
        let length = order::order_key_int(value, &mut key);
        prop_assert_eq!(&key[..length], order_key(&Term::Int(value), Zeros::Distinct));
        prop_assert_eq!(order::number_of_order_key(&key[..length]), Some(value));
    }

    /// Only the key of a number of 64 bits is read back as a number.
    #[test]
    fn keys_tell_numbers(term in any_term()) {
        let key = order_key(&term, Zeros::Distinct);
        if let Some(number) = order::number_of_order_key(&key) {
            prop_assert_eq!(order_key(&Term::Int(number), Zeros::Distinct), key);
            prop_assert!(matches!(term, Term::Int(_) | Term::Float(_)));
        }
    }

    #[test]
    fn bytes_that_are_no_key_tell_no_other_number(key in bytes(0..12)) {
        if let Some(number) = order::number_of_order_key(&key) {
            prop_assert!(key[0].abs_diff(0x10) <= 8);
            let shortest = order_key(&Term::Int(number), Zeros::Distinct);
            prop_assert!(shortest.len() <= key.len());
        }
    }
}

/// Generates bytes that the formats of keys treat specially.
fn bytes(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let byte = proptest::sample::select(vec![0u8, 1, 8, 97, 254, 255]);
    proptest::collection::vec(byte, len)
}

fn class_of(term: &Term) -> order::Class {
    match term {
        Term::Int(_) | Term::Big(_) | Term::Float(_) => order::Class::Number,
        Term::Atom(_) => order::Class::Atom,
        Term::Ref(_) => order::Class::Reference,
        Term::LocalFun(_) | Term::ExternalFun(_) => order::Class::Fun,
        Term::Port(_) => order::Class::Port,
        Term::Pid(_) => order::Class::Pid,
        Term::Tuple(_) => order::Class::Tuple,
        Term::NativeRecord(_) => order::Class::Record,
        Term::Map(_) => order::Class::Map,
        Term::Nil => order::Class::Nil,
        Term::List(_) => order::Class::Cons,
        Term::Bits(_) => order::Class::Bitstring,
    }
}

fn within(prefix: &order::Prefix, term: &Term, zeros: Zeros) -> bool {
    let (from, to) = order::prefix_bounds(prefix.as_bytes());
    let key = order_key(term, zeros);
    from <= key && key < to
}

/// Distinct terms, sorted by hand in the standard order.
#[test]
fn the_standard_order() {
    let int = |i: i64| Term::Int(i);
    let float = |f: f64| Term::try_from(f).unwrap();
    let atom = |text: &str| Term::atom(text).unwrap();
    let list = |elements: Vec<Term>| Term::from(elements);
    let map = |pairs| Term::Map(ats_term::term::Map::new(pairs).unwrap());
    let ascending = [
        Term::from(-(1i128 << 100)),
        float(-1e19),
        int(i64::MIN),
        int(-256),
        int(-255),
        float(-1.5),
        int(-1),
        float(-5e-324),
        int(0),
        float(5e-324),
        float(0.5),
        int(1),
        float(1.0f64.next_up()),
        int((1 << 53) - 1),
        float(9_007_199_254_740_992.0),
        int((1 << 53) + 1),
        int(i64::MAX),
        float(9_223_372_036_854_775_808.0),
        Term::from((1u64 << 63) + 1),
        Term::from(u64::MAX),
        float(18_446_744_073_709_551_616.0),
        Term::from((1u128 << 64) + 1),
        float(f64::MAX),
        Term::integer(false, &[1; 200]),
        Term::integer(false, &[1; 300]),
        atom(""),
        atom("a"),
        atom("a\0"),
        atom("a\0\0"),
        atom("a\u{1}"),
        atom("ab"),
        atom("b"),
        Term::Tuple(Tuple::new(vec![])),
        Term::from((int(9),)),
        Term::from((1, atom("b"))),
        Term::from((float(1.5), atom("a"))),
        Term::from((int(2), atom("a"))),
        Term::Tuple(Tuple::new(vec![int(0); 247])),
        Term::Tuple(Tuple::new(vec![int(0); 248])),
        Term::Tuple(Tuple::new(vec![int(0); 256])),
        map(vec![]),
        map(vec![(int(1), atom("z"))]),
        map(vec![(int(2), atom("a"))]),
        map(vec![(float(1.0), atom("a"))]),
        map(vec![(int(1), int(1)), (int(2), int(0))]),
        Term::Nil,
        Term::list_with_tail([int(1)], int(5)),
        list(vec![int(1)]),
        list(vec![int(1), int(0)]),
        Term::list_with_tail([int(1)], Term::binary(b"")),
        list(vec![float(1.5)]),
        list(vec![int(2)]),
        Term::binary(b""),
        Term::binary(b"\0"),
        Term::binary(b"\0\0"),
        Term::binary(b"a"),
        Term::binary(b"a\0"),
        Term::binary(b"ab"),
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(a.compare(b), i.cmp(&j), "{a} and {b}");
            for zeros in ALL_ZEROS {
                let by_keys = order_key(a, zeros).cmp(&order_key(b, zeros));
                assert_eq!(by_keys, i.cmp(&j), "keys of {a} and {b}");
            }
        }
    }
}

#[test]
fn numbers_equal_by_value_have_one_order_key_and_two_exact_keys() {
    let pairs = [
        (Term::Int(1), 1.0),
        (Term::Int(0), -0.0),
        (Term::Int(i64::MIN), -9_223_372_036_854_775_808.0),
        (Term::from(1u128 << 70), 2f64.powi(70)),
        (Term::from(-(1i128 << 100)), -(2f64.powi(100))),
    ];
    for (integer, float) in pairs {
        let float = Term::try_from(float).unwrap();
        for (a, b) in [
            (integer.clone(), float.clone()),
            (
                Term::from((integer.clone(), 1)),
                Term::from((float.clone(), 1)),
            ),
        ] {
            assert!(a.compare(&b).is_eq());
            assert_ne!(a, b);
            for zeros in ALL_ZEROS {
                assert_eq!(order_key(&a, zeros), order_key(&b, zeros), "{a} and {b}");
                let exact = |term| exact_key(term, zeros, exact::Atoms::Word);
                assert_ne!(exact(&a), exact(&b), "{a} and {b}");
            }
        }
    }
}

#[test]
fn small_integers_have_short_keys() {
    let length = |i| order_key(&Term::Int(i), Zeros::Distinct).len();
    assert_eq!(
        [0, 1, -255, 256, 65_535, 1 << 20].map(length),
        [1, 2, 2, 3, 3, 4]
    );
    assert_eq!([i64::MIN, i64::MAX].map(length), [9, 9]);
}

#[test]
fn immediates_have_their_word_as_exact_key() {
    let key = |term: &Term| exact_key(term, Zeros::Distinct, exact::Atoms::Word);
    assert_eq!(key(&Term::Int(-1)), (-1i64 as u64).to_le_bytes());
    assert_eq!(key(&Term::Nil), 0x3Bu64.to_le_bytes());
    let atom = ats_term::Atom::new("a").unwrap();
    assert_eq!(
        key(&Term::Atom(atom)),
        (atom.id() << 6 | 0x0B).to_le_bytes()
    );
    for term in [
        Term::Int(1 << 59),
        Term::Int(-(1 << 59) - 1),
        Term::from((1,)),
    ] {
        assert_ne!(key(&term)[0] & 3, 3, "{term}");
    }
}

/// The keys of a map are sorted by their key bytes and keep their values.
#[test]
fn map_pairs_are_sorted() {
    let pairs = (0..40)
        .map(|i| (Term::Int(i), Term::from((i, "value"))))
        .collect();
    let map = Term::Map(ats_term::term::Map::new(pairs).unwrap());
    let outer = Term::from((map.clone(), Term::from(vec![map])));
    let mut key = Vec::new();
    order::order_key(OtherHostTerm(&outer), &mut key, Zeros::Distinct);
    assert_eq!(key, order_key(&outer, Zeros::Distinct));
}

/// All pairs of identifiers whose parts are at the limits that keys must distinguish.
#[test]
fn identifiers() {
    use ats_term::term::Identifier;
    let node = |text| ats_term::Atom::new(text).unwrap();
    let numbers: [&[u32]; 6] = [&[0, 1], &[1], &[1, 0], &[2, 1], &[u32::MAX, 0], &[0, 0]];
    let mut identifiers = Vec::new();
    for local in [false, true] {
        for node in ["a@b", "a@b\0", "a@c"].map(node) {
            for creation in [0, 1, 0xFF00_00FF, u32::MAX] {
                identifiers.extend(numbers.iter().filter_map(|numbers| {
                    Identifier::with_locality(local, node, creation, numbers)
                }));
            }
        }
    }
    assert_eq!(identifiers.len(), 144);
    for kind in [Term::Pid, Term::Port, Term::Ref] {
        for a in &identifiers {
            for b in &identifiers {
                check_pair(&kind(a.clone()), &kind(b.clone())).unwrap();
            }
        }
    }
}

/// The exact key of a fun, including its captured values, does not depend on the numbering of
/// atoms.
#[test]
fn captured_atoms_are_text() {
    use ats_term::term::{Identifier, LocalFun};
    let module = ats_term::Atom::new("m").unwrap();
    let creator = Identifier::new(module, 0, &[0, 1]).unwrap();
    let captured = Term::from((Term::atom("captured").unwrap(), 1));
    let fun = LocalFun::new(module, 0, 1, [0; 16], 1, 2, creator, vec![captured]);
    let fun = Term::LocalFun(fun);
    let key = |term: &Term, atoms| exact_key(term, Zeros::Distinct, atoms);
    assert_eq!(key(&fun, exact::Atoms::Word), key(&fun, exact::Atoms::Text));
    // The atom after the fun is not captured.
    let pair = Term::from((fun, Term::Atom(module)));
    assert_ne!(
        key(&pair, exact::Atoms::Word),
        key(&pair, exact::Atoms::Text)
    );
}
