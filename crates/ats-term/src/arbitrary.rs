//! Random terms for property tests, with the feature `proptest`.
//!
//! Most bugs sit where terms are nearly equal, so all values come from small sets of critical ones
//! as often as from wide ranges, and [`near_term`] draws from sets so small that equal terms, and
//! terms equal only by `==`, are frequent.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::atom::Atom;
use crate::term::{
    Bits, ExternalFun, Float, Identifier, List, LocalFun, Map, NativeRecord, Term, Tuple,
};

/// Generates terms of every kind, nested a few levels.
pub fn any_term() -> BoxedStrategy<Term> {
    nested(leaf(), 4, 24, 6)
}

/// Generates terms from few values, so that two of them are often equal or nearly so.
pub fn near_term() -> BoxedStrategy<Term> {
    let number = select(vec![
        Term::Int(0),
        Term::Int(1),
        Term::Int(-1),
        float(0.0),
        float(-0.0),
        float(1.0),
        float(1.5),
        float(-1.0),
        float(-0.5),
    ]);
    let other = select(vec![
        Term::Nil,
        Term::Atom(known_atom("")),
        Term::Atom(known_atom("a")),
        Term::Atom(known_atom("a\0")),
        Term::binary(b""),
        Term::binary(b"\0"),
    ]);
    nested(prop_oneof![3 => number, 1 => other].boxed(), 3, 8, 3)
}

/// Generates terms without parts.
pub fn leaf() -> BoxedStrategy<Term> {
    prop_oneof![
        6 => integer(),
        4 => finite_float(),
        3 => atom().prop_map(Term::Atom),
        1 => Just(Term::Nil),
        3 => bits(),
        1 => identifier(2).prop_map(Term::Pid),
        1 => identifier(2).prop_map(Term::Port),
        1 => identifier(5).prop_map(Term::Ref),
        1 => external_fun(),
    ]
    .boxed()
}

/// Generates integers of any size, often close to a power of two.
pub fn integer() -> BoxedStrategy<Term> {
    let near_power =
        (0u32..=130, -2i128..=2, any::<bool>()).prop_map(|(bits, offset, negative)| {
            let power = if bits < 127 { 1i128 << bits } else { i128::MAX };
            let value = power.saturating_add(offset);
            Term::from(if negative { -value } else { value })
        });
    let magnitude = vec(any::<u8>(), 0..140);
    let any_size = (any::<bool>(), magnitude).prop_map(|(sign, bytes)| Term::integer(sign, &bytes));
    prop_oneof![
        4 => (-300i64..300).prop_map(Term::Int),
        4 => near_power,
        2 => any::<i64>().prop_map(Term::Int),
        1 => any_size,
    ]
    .boxed()
}

/// Generates finite floats: all of them, integers, neighbours of integers, and the extremes.
pub fn finite_float() -> BoxedStrategy<Term> {
    let near_power =
        (-70i32..=1023, -2i64..=2, any::<bool>()).prop_map(|(exponent, steps, sign)| {
            let power = 2f64.powi(exponent).to_bits() as i64;
            let value = f64::from_bits((power + steps) as u64);
            float(if sign { -value } else { value })
        });
    let extreme = select(vec![
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
    ]);
    prop_oneof![
        2 => any::<f64>().prop_filter_map("finite", |value| Float::new(value).ok())
            .prop_map(Term::Float),
        3 => near_power,
        2 => (-600i32..600).prop_map(|halves| float(f64::from(halves) / 2.0)),
        1 => extreme.prop_map(float),
    ]
    .boxed()
}

/// Generates atoms, some of them prefixes of each other or with bytes that keys must escape.
pub fn atom() -> BoxedStrategy<Atom> {
    let known = [
        "",
        "a",
        "ab",
        "a\0",
        "a\0b",
        "\0",
        "\u{1}",
        "ÿ",
        "aÿ",
        "ж",
        "日本",
        "🦀",
        "undefined",
    ];
    prop_oneof![
        3 => select(known.map(known_atom).to_vec()),
        1 => "[a-e]{0,3}".prop_map(|text| known_atom(&text)),
    ]
    .boxed()
}

/// Generates binaries and bitstrings.
pub fn bits() -> BoxedStrategy<Term> {
    let byte = prop_oneof![Just(0u8), Just(255), Just(1), any::<u8>()];
    (vec(byte, 0..12), 0usize..8)
        .prop_map(|(bytes, spare)| {
            let bits = (bytes.len() * 8).saturating_sub(spare);
            Term::Bits(Bits::new(&bytes, bits).unwrap_or_else(|| Bits::from_bytes(&bytes)))
        })
        .boxed()
}

/// Generates identifiers with up to `max_numbers` numbers. Those of one node are either all local
/// or all remote: their encodings are equal, so a map with both could not be decoded.
pub fn identifier(max_numbers: usize) -> BoxedStrategy<Identifier> {
    let node = select(vec![
        (false, known_atom("a@b")),
        (false, known_atom("a@c")),
        (false, known_atom("a@b\0")),
        (true, known_atom("nonode@nohost")),
    ]);
    let number = prop_oneof![0u32..3, Just(u32::MAX), any::<u32>()];
    let creation = prop_oneof![0u32..3, Just(u32::MAX), Just(0xFF00_00FF)];
    // References have any number of words; pids and ports always have two.
    let fewest = if max_numbers == 2 { 2 } else { 1 };
    (node, creation, vec(number, fewest..=max_numbers))
        .prop_filter_map("numbers", |((local, node), creation, numbers)| {
            Identifier::with_locality(local, node, creation, &numbers)
        })
        .boxed()
}

fn external_fun() -> BoxedStrategy<Term> {
    (atom(), atom(), any::<u8>())
        .prop_map(|(module, function, arity)| {
            Term::ExternalFun(ExternalFun {
                module,
                function,
                arity,
            })
        })
        .boxed()
}

fn local_fun(free: Vec<Term>, (module, index, old_uniq): (Atom, u32, u32)) -> Option<Term> {
    let creator = Identifier::new(known_atom("a@b"), 0, &[0, 1])?;
    let uniq = [7; 16];
    Some(Term::LocalFun(LocalFun::new(
        module, 2, index, uniq, 3, old_uniq, creator, free,
    )))
}

fn nested(leaf: BoxedStrategy<Term>, depth: u32, size: u32, width: usize) -> BoxedStrategy<Term> {
    leaf.prop_recursive(depth, size, width as u32, move |part| {
        let parts = move || vec(part.clone(), 0..=width);
        let pairs = (parts(), parts()).prop_map(|(keys, values)| keys.into_iter().zip(values));
        let number = || prop_oneof![0u32..2, Just(u32::MAX)];
        prop_oneof![
            3 => parts().prop_map(|parts| Term::Tuple(Tuple::new(parts))),
            2 => parts().prop_map(Term::from),
            1 => (parts(), leaf_or_nil(parts())).prop_map(|(parts, tail)| improper(parts, tail)),
            2 => pairs.prop_map(|pairs| map(pairs.collect())),
            1 => (parts(), (atom(), number(), number()))
                .prop_filter_map("fun", |(free, head)| local_fun(free, head)),
            1 => (parts(), (atom(), atom(), any::<bool>()))
                .prop_map(|(values, head)| native_record(values, head)),
        ]
    })
    .boxed()
}

/// Returns a record whose fields differ from each other; records share few fields.
fn native_record(values: Vec<Term>, (module, name, exported): (Atom, Atom, bool)) -> Term {
    let fields = values.len() % 2..;
    let fields = fields.map(|i| known_atom(&format!("field{i}")));
    Term::NativeRecord(NativeRecord::new(
        module,
        name,
        exported,
        fields.zip(values),
    ))
}

fn leaf_or_nil(parts: impl Strategy<Value = Vec<Term>>) -> impl Strategy<Value = Term> {
    parts.prop_map(|mut parts| parts.pop().unwrap_or(Term::Nil))
}

fn improper(parts: Vec<Term>, tail: Term) -> Term {
    parts
        .into_iter()
        .fold(tail, |tail, head| Term::List(List::new(head, tail)))
}

/// Returns a map of the pairs whose keys are distinct even if `0.0` and `-0.0` are the same.
fn map(pairs: Vec<(Term, Term)>) -> Term {
    let mut seen = std::collections::HashSet::new();
    let distinct = pairs.into_iter().filter(|(key, _)| {
        let mut bytes = Vec::new();
        let options = crate::exact::Options {
            zeros: crate::Zeros::Same,
            ..Default::default()
        };
        crate::exact::exact_key(key, &mut bytes, options);
        seen.insert(bytes)
    });
    Map::new(distinct.collect()).map_or(Term::Nil, Term::Map)
}

fn float(value: f64) -> Term {
    Term::try_from(value).unwrap_or(Term::Nil)
}

/// Returns an atom of the generator itself, which uses few atoms and short ones.
fn known_atom(text: &str) -> Atom {
    Atom::new(text).unwrap_or_else(|error| panic!("{error}"))
}
