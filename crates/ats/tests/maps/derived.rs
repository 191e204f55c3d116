//! Tests of derived keys and values.

use crate::keys::{bytes, check_words};
use ats::{AsKey, Key, OrderedMap, Value};
use proptest::prelude::*;
use std::fmt::Debug;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key, Value)]
struct Named {
    text: String,
    number: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key, Value)]
struct Unnamed(Option<u8>, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key, Value)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key, Value)]
struct Generic<T, const N: usize> {
    r#type: [T; N],
    bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key, Value)]
enum Variants {
    Empty,
    One(Named),
    Several { reader: i64, rest: String },
    Last(Unit, Generic<bool, 2>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key, Value)]
struct Short {
    shop: i16,
    day: (u32, bool),
    unit: Unit,
}

fn named() -> impl Strategy<Value = Named> {
    ("[\0ab]{0,3}", any::<i32>()).prop_map(|(text, number)| Named { text, number })
}

fn variants() -> impl Strategy<Value = Variants> {
    prop_oneof![
        Just(Variants::Empty),
        named().prop_map(Variants::One),
        (any::<i64>(), "[\0ab]{0,3}").prop_map(|(reader, rest)| Variants::Several { reader, rest }),
        (any::<[bool; 2]>(), any::<u64>())
            .prop_map(|(r#type, bytes)| Variants::Last(Unit, Generic { r#type, bytes })),
    ]
}

fn check<T: Key + Value + Ord + Clone + Debug>(one: &T, other: &T) {
    assert_eq!(bytes(one).cmp(&bytes(other)), one.cmp(other));
    let map: OrderedMap<T, T> = OrderedMap::new();
    map.insert(one, other);
    assert_eq!(map.first(), Some((one.clone(), other.clone())));
    check_words(one);
}

proptest! {
    #[test]
    fn derived_keys_and_values(
        one in (named(), variants()),
        other in (named(), variants()),
        number in any::<(i32, i32)>(),
    ) {
        check(&one.0, &other.0);
        check(&one.1, &other.1);
        let unnamed = |named: Named| Unnamed(Some(named.number as u8), named.text);
        check(&unnamed(one.0), &unnamed(other.0));
        check(&Unit, &Unit);
        let short = |number: i32| Short {
            shop: number as i16,
            day: (number as u32, number < 0),
            unit: Unit,
        };
        check(&short(number.0), &short(number.1));
    }
}

/// The fields of a struct are words together, if they are short and their lengths are known.
#[test]
fn short_keys_are_words() {
    let short = Short {
        shop: -1,
        day: (7, true),
        unit: Unit,
    };
    assert!(short.as_words().is_some());
    let long = Generic {
        r#type: [1_u128; 1],
        bytes: 1,
    };
    assert!(long.as_words().is_none());
}

/// A struct takes as much memory as its fields, if their lengths are known.
#[test]
fn lengths_are_known() {
    assert_eq!(<Generic<u32, 3> as Value>::LEN, Some(20));
    assert_eq!(<Unit as Value>::LEN, Some(0));
    assert_eq!(<Named as Value>::LEN, None);
    assert_eq!(<Variants as Value>::LEN, None);
}
