//! Terms as made, read and shown by Rust programs.

use ats_term::term::{
    Bits, BuildError, DuplicateKey, ExternalFun, Float, Identifier, List, LocalFun, Map, NotFinite,
    TermBuilder, Tuple,
};
use ats_term::{Atom, Kind, Term, TermRef, TermSink};

fn atom(text: &str) -> Term {
    Term::atom(text).unwrap()
}

fn float(value: f64) -> Term {
    Term::try_from(value).unwrap()
}

#[test]
fn terms_in_erlang_syntax() {
    let identifier =
        |numbers: &[u32]| Identifier::new(Atom::new("n@h").unwrap(), 1, numbers).unwrap();
    let (m, f) = (Atom::new("m").unwrap(), Atom::new("f").unwrap());
    let map = Map::new(vec![(atom("b"), Term::Nil), (Term::Int(1), float(1.0))]).unwrap();
    let cases = [
        (Term::Int(-5), "-5"),
        (Term::from(u64::MAX), "18446744073709551615"),
        (Term::from(-(1i128 << 64)), "-18446744073709551616"),
        (
            Term::from(1_000_000_000u128.pow(3)),
            "1000000000000000000000000000",
        ),
        (float(1.0), "1.0"),
        (float(-0.0), "-0.0"),
        (float(0.1), "0.1"),
        (float(1e300), "1.0e300"),
        (float(-1.5e-300), "-1.5e-300"),
        (atom("it's"), "'it\\'s'"),
        (Term::Nil, "[]"),
        (Term::from(vec![Term::Int(97), Term::Int(98)]), "[97,98]"),
        (
            Term::list_with_tail([Term::Int(1), Term::Nil], Term::from((1, 2))),
            "[1,[]|{1,2}]",
        ),
        (Term::from((atom("a"), (Term::Nil, 2))), "{a,{[],2}}"),
        (Term::Tuple(Tuple::new(vec![])), "{}"),
        (Term::Map(Map::new(vec![]).unwrap()), "#{}"),
        (Term::Map(map), "#{1 => 1.0,b => []}"),
        (Term::from("a \"b\" \\"), r#"<<"a \"b\" \\">>"#),
        (Term::binary(&[]), "<<>>"),
        (Term::binary(&[1, 255]), "<<1,255>>"),
        (
            Term::Bits(Bits::new(&[1, 0b1010_0000], 11).unwrap()),
            "<<1,5:3>>",
        ),
        (Term::Pid(identifier(&[0, 7])), "#Pid<n@h.0.7>"),
        (Term::Port(identifier(&[0, 7])), "#Port<n@h.0.7>"),
        (Term::Ref(identifier(&[3, 2, 1])), "#Ref<n@h.3.2.1>"),
        (
            Term::LocalFun(LocalFun::new(
                m,
                0,
                1,
                [0; 16],
                2,
                3,
                identifier(&[0, 1]),
                vec![],
            )),
            "#Fun<m.2.3>",
        ),
        (
            Term::ExternalFun(ExternalFun {
                module: m,
                function: f,
                arity: 2,
            }),
            "fun m:f/2",
        ),
    ];
    for (term, text) in cases {
        assert_eq!(term.to_string(), text);
        assert_eq!(format!("{term:?}"), text);
    }
    let huge = Term::integer(false, &[0xAB; 5000]).to_string();
    assert_eq!(huge, format!("16#{}", "AB".repeat(5000)));
}

#[test]
fn integers_have_one_representation() {
    assert!(matches!(
        Term::integer(true, &[0, 0, 0, 0, 0, 0, 0, 128, 0]),
        Term::Int(i64::MIN)
    ));
    assert!(matches!(
        Term::integer(false, &[0, 0, 0, 0, 0, 0, 0, 128]),
        Term::Big(_)
    ));
    assert!(matches!(Term::integer(true, &[]), Term::Int(0)));
    assert!(matches!(Term::from(i64::MAX as u64), Term::Int(i64::MAX)));
    let Term::Big(big) = Term::integer(true, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0]) else {
        panic!()
    };
    assert!(big.is_negative());
    assert_eq!(big.magnitude(), [1, 0, 0, 0, 0, 0, 0, 0, 2]);
    for value in [i128::MIN, -1, 0, 1, i128::MAX] {
        assert_eq!(Term::from(value).to_string(), value.to_string());
    }
}

#[test]
fn invalid_terms_cannot_be_made() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Float::new(value), Err(NotFinite));
    }
    let twice = vec![
        (Term::Int(1), Term::Nil),
        (float(1.0), Term::Nil),
        (Term::Int(1), atom("a")),
    ];
    assert_eq!(Map::new(twice).unwrap_err(), DuplicateKey(Term::Int(1)));
    assert_eq!(Bits::new(&[1], 9), None);
    let node = Atom::new("n@h").unwrap();
    assert!(Identifier::new(node, 0, &[]).is_none());
    assert!(Identifier::new(node, 0, &[0; 6]).is_none());
}

#[test]
fn bits_beyond_the_end_do_not_count() {
    assert_eq!(
        Bits::new(&[0xFF, 0xFF], 9),
        Bits::new(&[0xFF, 0x80, 0x55], 9)
    );
    assert_eq!(Bits::new(&[0xFF, 0xFF], 9).unwrap().bytes(), [0xFF, 0x80]);
    assert_ne!(Bits::new(&[0], 7), Bits::new(&[0], 8));
}

#[test]
fn maps_are_looked_up_by_identity() {
    let pairs = [
        (Term::Int(1), "int"),
        (float(1.0), "float"),
        (float(-0.0), "minus"),
        (float(0.0), "plus"),
    ];
    let map = Map::new(
        pairs
            .iter()
            .map(|(k, v)| (k.clone(), Term::from(*v)))
            .collect(),
    )
    .unwrap();
    for (key, value) in &pairs {
        assert_eq!(map.get(key), Some(&Term::from(*value)));
    }
    assert_eq!(map.get(&Term::Int(2)), None);
    assert_eq!(map.len(), 4);
    let keys: Vec<_> = map.keys().iter().map(Term::to_string).collect();
    assert_eq!(keys, ["1", "-0.0", "0.0", "1.0"]);
}

#[test]
fn lists_tell_their_elements_and_their_end() {
    let list = Term::list_with_tail([Term::Int(1), Term::Int(2)], atom("end"));
    let mut elements = list.as_list().unwrap();
    assert_eq!(
        elements
            .by_ref()
            .filter_map(Term::as_int)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(elements.tail(), &atom("end"));
    assert_eq!(Term::Nil.as_list().unwrap().count(), 0);
    assert!(atom("a").as_list().is_none());
    assert_eq!(Term::list_with_tail([], atom("end")), atom("end"));
}

/// Rebuilds a term through the two traits.
fn rebuild(term: &Term, builder: &mut TermBuilder) -> ats_term::term::Built {
    if let Some(word) = term.immediate() {
        return builder.immediate(word);
    }
    match term.kind() {
        Kind::Int(value) => builder.big(value < 0, &value.unsigned_abs().to_le_bytes()),
        Kind::Big => term.with_big(|negative, magnitude| builder.big(negative, magnitude)),
        Kind::Float(value) => builder.float(value),
        Kind::Cons(head, tail) => {
            let (head, tail) = (rebuild(head, builder), rebuild(tail, builder));
            builder.cons(head, tail)
        }
        Kind::Tuple(arity) => {
            let parts: Vec<_> = (0..arity)
                .map(|i| rebuild(term.element(i), builder))
                .collect();
            builder.tuple(&parts)
        }
        Kind::Map(_) => {
            let mut pairs = Vec::new();
            term.map_pairs(&mut pairs);
            let keys: Vec<_> = pairs
                .iter()
                .rev()
                .map(|(k, _)| rebuild(k, builder))
                .collect();
            let values: Vec<_> = pairs
                .iter()
                .rev()
                .map(|(_, v)| rebuild(v, builder))
                .collect();
            builder.map(&keys, &values)
        }
        Kind::Bits(bits) => term.with_bits(|bytes| builder.bits(bytes, bits)),
        _ => builder.add(term.clone()),
    }
}

proptest::proptest! {
    #[test]
    fn the_builder_makes_equal_terms(term in ats_term::arbitrary::any_term()) {
        let mut builder = TermBuilder::new();
        for _ in 0..2 {
            let built = rebuild(&term, &mut builder);
            proptest::prop_assert_eq!(builder.finish(built), Ok(term.clone()));
        }
    }
}

#[test]
fn the_builder_remembers_failures() {
    type Build = fn(&mut TermBuilder) -> ats_term::term::Built;
    let cases: [(Build, BuildError); 5] = [
        (|b| b.immediate(0x03), BuildError::UnknownWord(0x03)),
        (
            |b| b.immediate(u64::MAX << 6 | 0x0B),
            BuildError::UnknownWord(u64::MAX << 6 | 0x0B),
        ),
        (|b| b.float(f64::NAN), BuildError::NotFinite),
        (|b| b.bits(&[1], 9), BuildError::BitsTooShort),
        (
            |b| {
                let one = b.immediate(0x1F);
                b.map(&[one, one], &[one, one])
            },
            BuildError::BadMap,
        ),
    ];
    let mut builder = TermBuilder::new();
    for (build, error) in cases {
        let bad = build(&mut builder);
        let outer = builder.tuple(&[bad]);
        assert_eq!(builder.finish(outer), Err(error));
        let good = builder.immediate(0x1F);
        assert_eq!(builder.finish(good), Ok(Term::Int(1)));
    }
    let stale = builder.immediate(0x1F);
    assert!(builder.finish(stale).is_ok());
    assert_eq!(builder.finish(stale), Err(BuildError::UnknownTerm));
}

#[test]
fn sharing_parts_is_not_sharing_fate() {
    let inner = Term::from((1, 2));
    let outer = Term::List(List::new(inner.clone(), Term::Nil));
    drop(outer.clone());
    drop(outer);
    assert_eq!(inner, Term::from((1, 2)));
}
