//! Tests of the bytes of keys: they have the order of the keys, and determine the key.

use ats::{AsKey, AsValue, DiskBatch, Key, KeyBytes, KeyReader, OrderedMap, Value, ValueBytes};
use proptest::prelude::*;
use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;
use std::time::Duration;

pub(crate) fn bytes<K>(key: &impl AsKey<K>) -> KeyBytes {
    let mut bytes = KeyBytes::default();
    key.encode(&mut bytes);
    bytes
}

/// Checks that the words of a key, if it has any, are its bytes.
pub(crate) fn check_words<K: Key + Debug>(key: &K) {
    if let Some(words) = key.as_words() {
        let (short, len) = words.to_bytes();
        assert_eq!(&short[..len], bytes(key).as_slice(), "{key:?} as words");
    }
}

/// Checks the rules for two keys in this order.
fn check_order<K: Key + Debug>(one: &K, other: &K, order: Ordering) {
    let (first, second) = (bytes(one), bytes(other));
    assert_eq!(first.cmp(&second), order, "{one:?}, {other:?}");
    let begins = second.as_slice().starts_with(first.as_slice());
    assert!(order.is_eq() || !begins, "{one:?} begins {other:?}");
    for (key, bytes) in [(one, first), (other, second)] {
        check_words(key);
        let mut reader = KeyReader::new(bytes.as_slice());
        let read = K::decode(&mut reader).expect("what was encoded is decoded");
        assert!(reader.is_at_end());
        // The comparison cannot use `==`, since NaNs are keys.
        assert_eq!(format!("{read:?}"), format!("{key:?}"));
    }
}

fn check<K: Key + Ord + Debug>(one: &K, other: &K) {
    check_order(one, other, one.cmp(other));
    check_order(other, one, other.cmp(one));
    check_order(one, one, Ordering::Equal);
}

/// Generates numbers, many of which are small or at an end of the range.
macro_rules! numbers {
    ($($test:ident $type:ident;)*) => {
        $(fn $test() -> impl Strategy<Value = $type> {
            prop_oneof![
                any::<$type>(),
                prop::sample::select(vec![0, 1, 2, 127, $type::MAX, $type::MIN, $type::MAX - 1]),
            ]
        })*

        proptest! {
            $(#[test]
            #[allow(non_snake_case)]
            fn $type(one in $test(), other in $test()) {
                check(&one, &other);
                check(&Reverse(one), &Reverse(other));
            })*
        }
    };
}

numbers! {
    any_u8 u8;
    any_u16 u16;
    any_u32 u32;
    any_u64 u64;
    any_u128 u128;
    any_usize usize;
    any_i8 i8;
    any_i16 i16;
    any_i32 i32;
    any_i64 i64;
    any_i128 i128;
    any_isize isize;
}

/// Generates texts of a few special bytes, so that many have a common prefix.
fn text() -> impl Strategy<Value = String> {
    let chars = prop::sample::select(vec![
        '\0',
        '\u{1}',
        '\u{2}',
        'a',
        '\u{7F}',
        'ä',
        '\u{10FFFF}',
    ]);
    prop::collection::vec(chars, 0..6).prop_map(|chars| chars.into_iter().collect())
}

fn byte_string() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(vec![0, 1, 2, 3, 254, 255]);
    prop::collection::vec(prop_oneof![special, any::<u8>()], 0..6)
}

/// Generates all floats, by their bits.
fn float() -> impl Strategy<Value = f64> {
    let special = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN,
    ];
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        prop::sample::select(special)
    ]
}

type Nested = (
    Option<(String, i64)>,
    Vec<Option<Vec<u8>>>,
    Reverse<(String, bool)>,
    [u16; 2],
);

fn nested() -> impl Strategy<Value = Nested> {
    let parts = (
        prop::option::of((text(), any_i64())),
        prop::collection::vec(prop::option::of(byte_string()), 0..3),
        (text(), any::<bool>()).prop_map(Reverse),
        [any_u16(), any_u16()],
    );
    parts.prop_map(|parts| parts)
}

proptest! {
    #[test]
    fn floats(one in float(), other in float()) {
        check_order(&one, &other, one.total_cmp(&other));
        let (one, other) = (one as f32, other as f32);
        check_order(&one, &other, one.total_cmp(&other));
        let bits = |float: f32| f32::from_bits(float.to_bits() ^ 1);
        check_order(&bits(one), &bits(other), bits(one).total_cmp(&bits(other)));
    }

    #[test]
    fn texts(one in text(), other in text()) {
        check(&one, &other);
        check(&Reverse(one.clone()), &Reverse(other.clone()));
        check(&(one.clone(), 1_u8), &(other.clone(), 0));
        check(&vec![one.clone(), other.clone()], &vec![other, one]);
    }

    #[test]
    fn byte_strings(one in byte_string(), other in byte_string()) {
        check(&one, &other);
        check(&Reverse(one.clone()), &Reverse(other.clone()));
        check(&Reverse(Reverse(one.clone())), &Reverse(Reverse(other.clone())));
        check(&(one.clone(), other.clone()), &(other, one));
    }

    #[test]
    fn parts(one in nested(), other in nested()) {
        check(&one, &other);
        check(&Reverse(one.clone()), &Reverse(other.clone()));
        check(&Some(one), &Some(other));
    }

    #[test]
    fn chars_and_times(
        chars in (any::<char>(), any::<char>()),
        times in ((any::<u64>(), 0..1_000_000_000_u32), (any::<u64>(), 0..1_000_000_000_u32)),
    ) {
        check(&chars.0, &chars.1);
        let time = |(seconds, nanos): (u64, u32)| Duration::new(seconds, nanos);
        check(&time(times.0), &time(times.1));
        check(&(chars.0, times.0.0, 7_i16), &(chars.1, times.1.0, -7));
        check(&((), times.0), &((), times.1));
        check(&(times.0.0, times.0), &(times.1.0, times.1));
    }

    /// Arbitrary bytes are refused or decoded, and cause no panic.
    #[test]
    fn any_bytes_are_read(bytes in byte_string()) {
        let _ = <Nested>::decode(&mut KeyReader::new(&bytes));
        let _ = <(char, Duration, usize) as Key>::decode(&mut KeyReader::new(&bytes));
        let _ = <Vec<Vec<String>> as Key>::decode(&mut KeyReader::new(&bytes));
    }
}

#[test]
fn small_ones() {
    check(&(), &());
    check(&false, &true);
    check(&None, &Some(()));
    check(&[1_u8; 0], &[]);
}

#[test]
fn borrowed_forms_of_keys_have_their_bytes() {
    fn same<K: Key>(key: &K, others: &[&dyn AsKey<K>]) {
        for other in others {
            let mut encoded = KeyBytes::default();
            other.encode(&mut encoded);
            assert_eq!(encoded, bytes(key));
        }
    }
    same(
        &String::from("a\0b"),
        &[&"a\0b", &&"a\0b", &Cow::Borrowed("a\0b")],
    );
    same(
        &vec![0_u8, 1, 255],
        &[&[0_u8, 1, 255], b"\0\x01\xFF", &&[0_u8, 1, 255][..]],
    );
    same(&vec![String::from("a")], &[&["a"], &vec!["a"]]);
    same(
        &(String::from("a"), 1_u32),
        &[&("a", 1_u32), &("a", &1_u32)],
    );
    same(&Some(String::from("a")), &[&Some("a")]);
    same(&[String::from("a")], &[&["a"]]);
    same(&Reverse(String::from("a")), &[&Reverse("a")]);
}

#[test]
fn prefixes_are_ranges() {
    let map: OrderedMap<(String, u8, Vec<u8>), u8> = OrderedMap::new();
    for (at, first) in ["", "a", "a\0", "ab", "b"].into_iter().enumerate() {
        for second in [0, 254, 255] {
            map.insert((first, second, [255, second]), at as u8);
        }
    }
    assert_eq!(map.prefix(("a",)).count(), 3);
    assert_eq!(map.prefix(("a", 255)).count(), 1);
    assert_eq!(map.prefix(("c",)).count(), 0);
    let values: Vec<u8> = map.prefix(("a\0",)).rev().map(|(_, value)| value).collect();
    assert_eq!(values, [2, 2, 2]);

    let texts: OrderedMap<String, ()> = OrderedMap::new();
    let bytes: OrderedMap<Vec<u8>, ()> = OrderedMap::new();
    for text in ["", "a", "a\0", "a\0b", "ab", "b"] {
        texts.insert(text, ());
        bytes.insert(text.as_bytes(), ());
    }
    bytes.insert([255], ());
    bytes.insert([255, 255, 7], ());
    assert_eq!(texts.prefix("").count(), 6);
    assert_eq!(texts.prefix("a").count(), 4);
    assert_eq!(texts.prefix("a\0").count(), 2);
    assert_eq!(bytes.prefix(b"a").count(), 4);
    assert_eq!(bytes.prefix([255]).count(), 2);
    assert_eq!(bytes.prefix([255, 255]).count(), 1);
}

/// A type of another crate that stands for a byte.
struct Byte(u8);

impl AsKey<u8> for Byte {
    fn encode(&self, bytes: &mut KeyBytes) {
        bytes.push(&[self.0]);
    }
}

/// Checks that all types that stand for a key, or for a key with it as a part, have the same bytes.
fn check_forms<K: Key + Clone>(key: &K) {
    fn same<K: Key>(key: &K, others: &[&dyn AsKey<K>]) {
        for other in others {
            let mut encoded = KeyBytes::default();
            other.encode(&mut encoded);
            assert_eq!(encoded, bytes(key));
        }
    }
    let own = || key.clone();
    same(
        key,
        &[&key, &&key, &Cow::Borrowed(key), &&Cow::Borrowed(key)],
    );
    same(
        &vec![own(), own()],
        &[
            &[own(), own()],
            &vec![key, key],
            &[key, key],
            &&[&key, &key][..],
            &vec![Cow::Borrowed(key), Cow::Owned(own())],
            &[&Cow::Borrowed(key), &Cow::Borrowed(key)],
            &Cow::Borrowed(&vec![key, key]),
        ],
    );
    same(&[own(), own()], &[&[key, key], &[&key, &key]]);
    same(
        &vec![vec![own()], vec![]],
        &[&[vec![key], vec![]], &[&[key][..], &[]]],
    );
    same(&vec![Some(own())], &[&[Some(key)], &[Some(&key)]]);
    same(&Some(vec![own()]), &[&Some([key]), &Some(vec![&key])]);
    same(
        &Reverse(vec![own()]),
        &[&Reverse([key]), &Reverse(vec![&key])],
    );
    same(
        &Box::new(vec![own()]),
        &[&Box::new([key]), &Box::new(vec![key])],
    );
    same(
        &(vec![own()], own(), [vec![own()]]),
        &[&([key], key, [[key]]), &(vec![&key], &key, [&[key][..]])],
    );
}

#[test]
fn references_stand_for_keys() {
    check_forms(&0_u8);
    check_forms(&255_u8);
    check_forms(&1_u16);
    check_forms(&-1_i128);
    check_forms(&1.5_f64);
    check_forms(&'x');
    check_forms(&true);
    check_forms(&());
    check_forms(&String::from("a\0"));
    check_forms(&vec![0_u8, 1, 2]);
    check_forms(&vec![vec![1_u8]]);
    check_forms(&Some(1_u8));
    check_forms(&[1_u8; 3]);
    check_forms(&Reverse(1_u8));
    check_forms(&Duration::from_nanos(1));
    check_forms(&(1_u8, String::new()));
    check_forms(&std::marker::PhantomData::<str>);

    let map: OrderedMap<Vec<u8>, u32> = OrderedMap::new();
    map.insert([1_u8, 0, 3], 7);
    assert_eq!(map.get(vec![&1_u8, &0, &3]), Some(7));
    assert_eq!(map.get([&1_u8, &0, &3]), Some(7));
    assert_eq!(map.get([Byte(1), Byte(0), Byte(3)]), Some(7));
    assert_eq!(map.range(&[&1_u8][..]..=&[&1_u8, &0, &3][..]).count(), 1);
    map.insert(vec![&1_u8, &1], 8);
    map.insert([Byte(2)], 9);
    let keys: Vec<Vec<u8>> = map.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [vec![1, 0, 3], vec![1, 1], vec![2]]);
}

/// A text with a manual implementation that forgets its end.
struct Endless(&'static str);

impl AsKey<String> for Endless {
    fn encode(&self, bytes: &mut KeyBytes) {
        bytes.push(self.0.as_bytes());
    }
}

/// A key and a value with a manual implementation that decodes only even numbers.
#[derive(Clone, Debug, PartialEq)]
struct Even(u8);

impl AsKey<Even> for Even {
    fn encode(&self, bytes: &mut KeyBytes) {
        bytes.push(&[self.0]);
    }
}

impl Key for Even {
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        let [number] = reader.take()?;
        number.is_multiple_of(2).then_some(Even(number))
    }
}

impl AsValue<Even> for Even {
    fn encode(&self, bytes: &mut ValueBytes) {
        bytes.push(&[self.0]);
    }
}

impl Value for Even {
    fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [number] => number.is_multiple_of(2).then_some(Even(*number)),
            _ => None,
        }
    }
}

#[track_caller]
fn is_refused<K: Key, V: Value>(key: impl AsKey<K>, value: impl AsValue<V>, reason: &str) {
    let mut batch: DiskBatch<K, V> = DiskBatch::new();
    let error = batch.put(&key, &value).expect_err("it is refused");
    assert!(error.to_string().contains(reason), "{error}");
    assert!(batch.is_empty());
    let map: OrderedMap<K, V> = OrderedMap::new();
    let insert = std::panic::AssertUnwindSafe(|| map.put(&key, &value));
    let caught = std::panic::catch_unwind(insert).expect_err("it is refused");
    let text = caught.downcast_ref::<String>().expect("it has a text");
    assert!(text.contains(reason), "{text}");
    assert!(map.is_empty());
}

#[test]
fn unreadable_keys_and_values_are_refused() {
    is_refused::<String, u8>(Endless("ab"), 1, "\"ab\" is not a key of type");
    is_refused::<(u8, String), u8>((1_u8, Endless("ab")), 1, "is not a key of type");
    is_refused::<Vec<String>, u8>([Endless("ab")], 1, "is not a key of type");
    is_refused::<Even, u8>(Even(1), 1, "Even");
    is_refused::<Option<Reverse<Even>>, u8>(Some(Reverse(Even(1))), 1, "Even");
    is_refused::<u8, Even>(1, Even(1), "Even");
    is_refused::<u8, Option<[(Even, u8); 1]>>(1, Some([(Even(1), 1)]), "Even");

    let map: OrderedMap<Even, Even> = OrderedMap::from([(Even(2), Even(4))]);
    assert_eq!(map.get(Even(1)), None);
    assert_eq!(map.first(), Some((Even(2), Even(4))));
}
