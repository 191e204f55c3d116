//! The external term format: encoded terms can be decoded, and other input is harmless.

use crate::common::other_host::OtherHostTerm;
use ats_term::arbitrary::any_term;
use ats_term::etf::{
    Atoms, DecodeErrorKind as Kind, Node, Options, decode, decode_first, decode_sealed_fun, encode,
    encode_into, encode_on_node, skip,
};
use ats_term::image::ImageBuilder;
use ats_term::term::{Bits, ExternalFun, Identifier, LocalFun, Map, NativeRecord, Tuple};
use ats_term::term_ref::{Kind as TermKind, TermRef, has_part};
use ats_term::{Atom, Term, Zeros};
use proptest::prelude::*;

const EXISTING: Options = Options {
    atoms: Atoms::Existing,
};

/// Makes all identifiers remote: bytes do not record the running node, so decoded identifiers are
/// never local.
fn without_locality(term: &Term) -> Result<Term, TestCaseError> {
    decode(&encode(term).unwrap(), Options::default())
        .map_err(|error| TestCaseError::fail(format!("{term}: {error}")))
}

fn write_into<T: TermRef>(term: T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_into(term, &mut bytes).unwrap();
    bytes
}

/// Encodes a term as an owned one, in an image, alone and as an element, and as shown by another
/// host.
fn write_everywhere(term: &Term) -> [Vec<u8>; 4] {
    let pair = Term::from((term.clone(), term.clone()));
    let mut builder = ImageBuilder::new(Zeros::Distinct);
    builder.encode_object(&pair).expect("a tuple");
    let whole = write_into(builder.object().term());
    let head = [131, 104, 2];
    assert_eq!(whole[..head.len()], head);
    let (first, second) = whole[head.len()..].split_at((whole.len() - head.len()) / 2);
    assert_eq!(first, second);
    let from_whole = [&[131], first].concat();
    let from_image = write_into(builder.object().element(1));
    [
        write_into(term),
        from_whole,
        from_image,
        write_into(OtherHostTerm(term)),
    ]
}

/// Returns `true` if hosts may show the pairs of a map in the term in different orders. Values
/// captured by a fun are the same owned terms for all of them.
fn has_order_to_choose(term: &Term) -> bool {
    has_part(
        term,
        |_, kind| matches!(kind, TermKind::Map(pairs) if *pairs > 1),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// Bytes do not depend on the representation of a term, except for the order of pairs in maps.
    #[test]
    fn terms_of_all_hosts_are_written_alike(term in any_term()) {
        let [owned, others @ ..] = write_everywhere(&term);
        prop_assert_eq!(&owned, &encode(&term).unwrap());
        let expected = without_locality(&term)?;
        for other in others {
            prop_assert_eq!(other.len(), owned.len());
            prop_assert_eq!(&decode(&other, Options::default()).unwrap(), &expected);
            prop_assert!(other == owned || has_order_to_choose(&term));
        }
    }

    #[test]
    fn round_trip(term in any_term()) {
        let read = without_locality(&term)?;
        prop_assert_eq!(term.to_string(), read.to_string());
        prop_assert_eq!(&without_locality(&read)?, &read);
        prop_assert_eq!(encode(&read).unwrap(), encode(&term).unwrap());
    }

    #[test]
    fn the_end_of_a_term_is_found(
        term in any_term(),
        next in any_term(),
        cut in any::<prop::sample::Index>(),
    ) {
        let (bytes, next) = (encode(&term).unwrap(), encode(&next).unwrap());
        let both = [&bytes[1..], &next].concat();
        prop_assert_eq!(ats_term::etf::skip(&both), Some(&next[..]));
        prop_assert_eq!(ats_term::etf::skip(&bytes[1..][..cut.index(bytes.len() - 1)]), None);
    }

    #[test]
    fn truncated_input_is_an_error(term in any_term(), cut in any::<prop::sample::Index>()) {
        let bytes = encode(&term).unwrap();
        let cut = cut.index(bytes.len());
        let error = decode(&bytes[..cut], EXISTING).unwrap_err();
        prop_assert_eq!(error.kind, Kind::Truncated);
        prop_assert!(error.offset <= cut);
    }

    /// Damaged input gives an error or a term that can be encoded and decoded.
    #[test]
    fn damaged_input(
        term in any_term(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut bytes = encode(&term).unwrap();
        for (position, byte) in damage {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        if let Ok((term, length)) = decode_first(&bytes, Options::default()) {
            prop_assert!(length <= bytes.len());
            prop_assert_eq!(without_locality(&term)?, term);
        }
    }

    #[test]
    fn random_input(mut bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        if let Some(first) = bytes.first_mut() {
            *first = 131;
        }
        if let Ok(term) = decode(&bytes, EXISTING) {
            prop_assert_eq!(without_locality(&term)?, term);
        }
    }
}

fn read(bytes: &[u8]) -> Result<Term, Kind> {
    let bytes: Vec<u8> = [&[131], bytes].concat();
    decode(&bytes, Options::default()).map_err(|error| error.kind)
}

fn node() -> Atom {
    Atom::new("n@h").unwrap()
}

#[test]
fn tags_that_are_only_read() {
    let text_float = |text: &str| {
        let mut bytes = vec![99];
        bytes.extend(text.bytes());
        bytes.resize(32, 0);
        bytes
    };
    let ident = |numbers: &[u32]| Identifier::new(node(), 2, numbers).unwrap();
    let cases: Vec<(Vec<u8>, Term)> = vec![
        (
            text_float("1.50000000000000000000e+00"),
            Term::try_from(1.5).unwrap(),
        ),
        (
            text_float("-2.22507385850720138309e-308"),
            Term::try_from(-f64::MIN_POSITIVE).unwrap(),
        ),
        (
            [&[100, 0, 2][..], &[b'a', 0xFF]].concat(),
            Term::atom("aÿ").unwrap(),
        ),
        (vec![115, 1, 0xE9], Term::atom("é").unwrap()),
        (vec![118, 0, 2, 0xC3, 0xA9], Term::atom("é").unwrap()),
        (
            b"\x67\x77\x03n@h\0\0\0\x07\0\0\0\x01\x02".to_vec(),
            Term::Pid(ident(&[1, 7])),
        ),
        (
            b"\x66\x77\x03n@h\0\0\0\x07\x02".to_vec(),
            Term::Port(ident(&[0, 7])),
        ),
        (
            b"\x59\x77\x03n@h\0\0\0\x07\0\0\0\x02".to_vec(),
            Term::Port(ident(&[0, 7])),
        ),
        (
            b"\x65\x77\x03n@h\0\0\0\x07\x02".to_vec(),
            Term::Ref(ident(&[7])),
        ),
        (
            b"\x72\0\x02\x77\x03n@h\x02\0\0\0\x07\0\0\0\x08".to_vec(),
            Term::Ref(ident(&[8, 7])),
        ),
        (vec![105, 0, 0, 0, 1, 106], Term::from((Term::Nil,))),
        (vec![111, 0, 0, 0, 3, 1, 5, 0, 0], Term::Int(-5)),
        (vec![108, 0, 0, 0, 0, 97, 5], Term::Int(5)),
        (vec![107, 0, 0], Term::Nil),
        (
            vec![77, 0, 0, 0, 1, 3, 0xFF],
            Term::Bits(Bits::new(&[0xE0], 3).unwrap()),
        ),
    ];
    for (bytes, term) in cases {
        assert_eq!(read(&bytes).as_ref(), Ok(&term), "{bytes:?}");
    }
}

#[test]
fn encodings_equal_those_of_the_vm() {
    let pid = Term::Pid(Identifier::new(node(), 2, &[1, 7]).unwrap());
    let fun = |module, function| {
        let (module, function) = (Atom::new(module).unwrap(), Atom::new(function).unwrap());
        Term::ExternalFun(ExternalFun {
            module,
            function,
            arity: 1,
        })
    };
    let cases: Vec<(Term, Vec<u8>)> = vec![
        (Term::Int(255), vec![97, 255]),
        (Term::Int(256), vec![98, 0, 0, 1, 0]),
        (Term::Int(-1), vec![98, 255, 255, 255, 255]),
        (Term::Int(1 << 31), vec![110, 4, 0, 0, 0, 0, 128]),
        (
            Term::Int(i64::MIN),
            vec![110, 8, 1, 0, 0, 0, 0, 0, 0, 0, 128],
        ),
        (
            Term::from(1u128 << 64),
            vec![110, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        ),
        (Term::atom("ab").unwrap(), vec![119, 2, b'a', b'b']),
        (
            Term::from((1, "x")),
            vec![104, 2, 97, 1, 109, 0, 0, 0, 1, b'x'],
        ),
        (
            Term::from(vec![Term::Int(1), Term::Int(2)]),
            vec![107, 0, 2, 1, 2],
        ),
        (
            Term::list_with_tail([Term::Int(1)], Term::Int(2)),
            vec![108, 0, 0, 0, 1, 97, 1, 97, 2],
        ),
        (Term::Map(Map::new(vec![]).unwrap()), vec![116, 0, 0, 0, 0]),
        (
            pid,
            b"\x58\x77\x03n@h\0\0\0\x07\0\0\0\x01\0\0\0\x02".to_vec(),
        ),
        (fun("m", "f"), b"\x71\x77\x01m\x77\x01f\x61\x01".to_vec()),
    ];
    for (term, bytes) in cases {
        assert_eq!(encode(&term).unwrap()[1..], bytes, "{term}");
        assert_eq!(read(&bytes), Ok(term));
    }
}

/// Sizes around the limits between short and long forms of the format.
#[test]
fn sizes_around_borders() {
    let bytes = |len: usize| vec![Term::Int(7); len];
    let mut with_another = bytes(10);
    with_another[9] = Term::Int(256);
    let big = |len: usize| Term::integer(true, &vec![1; len]);
    let cases = [
        (Term::from(bytes(65_535)), vec![107, 255, 255, 7]),
        (Term::from(bytes(65_536)), vec![108, 0, 1, 0, 0, 97, 7]),
        (Term::from(with_another), vec![108, 0, 0, 0, 10, 97, 7]),
        (
            Term::list_with_tail(bytes(10), Term::Int(7)),
            vec![108, 0, 0, 0, 10, 97, 7],
        ),
        (Term::Tuple(Tuple::new(bytes(255))), vec![104, 255, 97, 7]),
        (
            Term::Tuple(Tuple::new(bytes(256))),
            vec![105, 0, 0, 1, 0, 97, 7],
        ),
        (big(255), vec![110, 255, 1, 1]),
        (big(256), vec![111, 0, 0, 1, 0, 1, 1]),
        (Term::binary(&[1; 5000]), vec![109, 0, 0, 19, 136, 1]),
        (
            Term::Bits(Bits::new(&[255; 5000], 39_997).unwrap()),
            vec![77, 0, 0, 19, 136, 5, 255],
        ),
        (Term::atom(&"a".repeat(255)).unwrap(), vec![119, 255, b'a']),
        (
            Term::atom(&"å".repeat(255)).unwrap(),
            vec![118, 1, 254, 0xC3],
        ),
    ];
    for (term, start) in cases {
        let [owned, others @ ..] = write_everywhere(&term);
        assert_eq!(owned[1..=start.len()], start);
        assert_eq!(decode(&owned, Options::default()), Ok(term));
        for other in &others {
            assert_eq!(*other, owned);
        }
    }
}

/// Compares native records with bytes that Erlang/OTP 29 has written.
#[test]
fn native_records() {
    let atom = |text: &str| Atom::new(text).unwrap();
    let record = |name, exported, fields: &[(&str, Term)]| {
        let fields = fields
            .iter()
            .map(|(field, value)| (atom(field), value.clone()));
        Term::NativeRecord(NativeRecord::new(atom("r"), atom(name), exported, fields))
    };
    let private = record("a", false, &[("x", Term::Int(1)), ("y", Term::Int(2))]);
    let bytes = [
        131, 67, 0, 0, 0, 2, 0, 119, 1, 114, 119, 1, 97, 119, 1, 120, 119, 1, 121, 97, 1, 97, 2,
    ];
    assert_eq!(encode(&private).unwrap(), bytes);
    assert_eq!(decode(&bytes, Options::default()).unwrap(), private);
    assert_eq!(skip(&bytes[1..]), Some(&[][..]));
    assert_eq!(skip(&bytes[1..bytes.len() - 1]), None);
    assert_eq!(private.to_string(), "#r:a{x = 1,y = 2}");
    let mut reserved = bytes;
    reserved[6] = 2;
    let error = decode(&reserved, Options::default()).unwrap_err();
    assert_eq!(error.kind, Kind::BadRecord);

    // The order of the VM.
    let one = || Term::Int(1);
    let in_order = [
        Term::from((1, 2)),
        record("a", false, &[]),
        record("a", false, &[("z", one())]),
        private,
        record("a", false, &[("x", one()), ("y", Term::Int(3))]),
        record("a", false, &[("y", one()), ("x", one())]),
        record("a", true, &[("a", one())]),
        record("aa", false, &[]),
        record("b", false, &[]),
        Term::Map(Map::new(vec![]).unwrap()),
    ];
    let keys: Vec<_> = in_order
        .iter()
        .map(|term| {
            let mut key = Vec::new();
            ats_term::order::order_key(term, &mut key, ats_term::Zeros::Distinct);
            key
        })
        .collect();
    assert!(keys.is_sorted() && in_order.is_sorted_by(|a, b| a.compare(b).is_lt()));
    let float = record(
        "a",
        false,
        &[("x", Term::try_from(1.0).unwrap()), ("y", Term::Int(2))],
    );
    assert!(float.compare(&in_order[3]).is_eq() && float != in_order[3]);
}

/// A later VM may write terms that this library cannot decode.
#[test]
fn a_closure_is_read_although_it_has_captured_something_unknown() {
    let creator = Identifier::new(node(), 2, &[1, 7]).unwrap();
    let module = Atom::new("m").unwrap();
    let fun = |free| {
        let creator = creator.clone();
        Term::LocalFun(LocalFun::new(module, 1, 2, [3; 16], 4, 5, creator, free))
    };
    let mut bytes = encode(&fun(vec![Term::Int(255), Term::Nil])).unwrap();
    let at = bytes.len() - 3;
    assert_eq!(bytes[at..], [97, 255, 106]);
    bytes[at] = 200;
    assert!(decode(&bytes, Options::default()).is_err());
    let sealed = decode_sealed_fun(&bytes, Options::default()).unwrap();
    assert_eq!(sealed, fun(vec![Term::binary(&[200, 255, 106])]));
    let cut = &bytes[..bytes.len() - 1];
    assert!(decode_sealed_fun(cut, Options::default()).is_err());
    assert!(decode_sealed_fun(&[131, 106], Options::default()).is_err());
}

#[test]
fn identifiers_of_the_running_node_can_be_written_under_its_present_name() {
    let ident = |local, name, creation, numbers: &[u32]| {
        let node = Atom::new(name).unwrap();
        Identifier::with_locality(local, node, creation, numbers).unwrap()
    };
    let of_all = |local, name, creation| {
        let ident = |numbers: &[u32]| ident(local, name, creation, numbers);
        let free = vec![Term::Pid(ident(&[0, 9])), Term::Int(1)];
        let module = Atom::new("m").unwrap();
        let creator = ident(&[0, 8]);
        let fun = LocalFun::new(module, 1, 2, [3; 16], 4, 5, creator, free);
        Term::from(vec![
            Term::Pid(ident(&[1, 2])),
            Term::Port(ident(&[3, 4])),
            Term::Ref(ident(&[5, 6, 7])),
            Term::LocalFun(fun),
        ])
    };
    let node = Node {
        name: "late@host",
        creation: 7,
    };
    let read = |bytes: &[u8]| decode(bytes, Options::default()).unwrap();
    let read_on_node = |term: &Term| {
        let (mut owned, mut foreign) = (Vec::new(), Vec::new());
        encode_on_node(term, node, &mut owned).unwrap();
        encode_on_node(OtherHostTerm(term), node, &mut foreign).unwrap();
        assert_eq!(owned, foreign);
        read(&owned)
    };
    let at_first = of_all(true, "nonode@nohost", 0);
    let present = of_all(false, node.name, node.creation);
    let another = of_all(false, "other@host", 1);
    // `==` ignores the process that made a fun, but the bytes contain it.
    assert_eq!(encode(&read_on_node(&at_first)), encode(&present));
    assert_eq!(encode(&read_on_node(&another)), encode(&another));
    assert_eq!(
        read(&encode(&at_first).unwrap()),
        of_all(false, "nonode@nohost", 0)
    );
}

#[test]
fn malformed_input_is_rejected() {
    let cases: Vec<(Vec<u8>, Kind)> = vec![
        (vec![], Kind::Truncated),
        (vec![97, 1, 0], Kind::TrailingBytes),
        (vec![0], Kind::UnknownTag(0)),
        (vec![80, 0, 0, 0, 1], Kind::Compressed),
        (vec![121, 0], Kind::Local),
        (vec![70, 0x7F, 0xF0, 0, 0, 0, 0, 0, 0], Kind::BadFloat),
        (vec![70, 0x7F, 0xF8, 0, 0, 0, 0, 0, 0], Kind::BadFloat),
        (vec![119, 1, 0xFF], Kind::AtomText),
        (vec![77, 0, 0, 0, 1, 9, 0], Kind::BadBits),
        (vec![77, 0, 0, 0, 1, 0, 0], Kind::BadBits),
        (vec![77, 0, 0, 0, 0, 1], Kind::BadBits),
        (
            vec![116, 0, 0, 0, 2, 97, 1, 106, 98, 0, 0, 0, 1, 106],
            Kind::DuplicateKey,
        ),
        (vec![90, 0, 6, 119, 0], Kind::Truncated),
        (
            [vec![90, 0, 6, 119, 0], vec![0; 28]].concat(),
            Kind::BadReference,
        ),
        (
            [vec![90, 0, 0, 119, 0], vec![0; 4]].concat(),
            Kind::BadReference,
        ),
        (vec![88, 97, 1], Kind::UnknownTag(97)),
        // Lengths that reach far beyond the input.
        (vec![105, 255, 255, 255, 255], Kind::Truncated),
        (vec![108, 255, 255, 255, 255], Kind::Truncated),
        (vec![116, 255, 255, 255, 255], Kind::Truncated),
        (vec![109, 255, 255, 255, 255], Kind::Truncated),
        (vec![111, 255, 255, 255, 255, 0], Kind::Truncated),
    ];
    for (bytes, kind) in cases {
        assert_eq!(read(&bytes), Err(kind), "{bytes:?}");
    }
    let mut infinite = vec![99];
    infinite.extend(b"inf");
    infinite.resize(32, 0);
    assert_eq!(read(&infinite), Err(Kind::BadFloat));
    assert_eq!(
        decode(&[130, 106], EXISTING).unwrap_err().kind,
        Kind::BadVersion
    );
}

#[test]
fn new_atoms_are_limited() {
    let atoms = |prefix: &str| {
        let atom = |i| {
            let text = format!("{prefix}{i}");
            [&[119, text.len() as u8], text.as_bytes()].concat()
        };
        [vec![131, 104, 3], atom(1), atom(2), atom(1)].concat()
    };
    let limit = |limit| Options {
        atoms: Atoms::New { limit },
    };
    let error = decode(&atoms("limited_a"), EXISTING).unwrap_err();
    assert_eq!((error.kind, error.offset), (Kind::UnknownAtom, 3));
    assert_eq!(Atom::existing("limited_a1"), None);
    let error = decode(&atoms("limited_b"), limit(1)).unwrap_err();
    assert_eq!(error.kind, Kind::TooManyAtoms);
    assert_eq!(Atom::existing("limited_b2"), None);
    assert!(decode(&atoms("limited_c"), limit(2)).is_ok());
    assert!(decode(&atoms("limited_c"), EXISTING).is_ok());
}
