//! Tests of types of all forms and attributes of `serde` as values: an accepted value is read
//! unchanged.

use ats::take_part;
use ats::{OrderedMap, Serde, Value, ValueBytes};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;

trait Type: Clone + Debug + PartialEq + Serialize + DeserializeOwned {}

impl<T: Clone + Debug + PartialEq + Serialize + DeserializeOwned> Type for T {}

/// Checks that an accepted value is read unchanged, or returns the reason for its refusal.
#[track_caller]
fn refusal<T: Type>(value: &T) -> Option<String> {
    let mut bytes = ValueBytes::default();
    bytes.push_part::<Serde<T>>(&Serde(value.clone()));
    if let Some(reason) = bytes.refusal() {
        return Some(reason.into());
    }
    let mut rest = bytes.as_slice();
    assert_eq!(take_part::<Serde<T>>(&mut rest), Some(Serde(value.clone())));
    assert!(rest.is_empty());
    None
}

#[track_caller]
fn is_kept<T: Type>(value: T) {
    assert_eq!(refusal(&value), None, "{value:?}");
}

#[track_caller]
fn is_refused<T: Type>(value: T, reason: &str) {
    let text = refusal(&value).unwrap_or_else(|| panic!("{value:?} is taken"));
    assert!(text.contains(reason), "{text}");
    let name = std::any::type_name::<T>();
    assert!(text.contains(name), "{text}");
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Newtype<T>(T);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct Transparent<T> {
    inner: T,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pair<T>(T, Option<T>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename = "Other",
    rename_all = "SCREAMING-KEBAB-CASE",
    deny_unknown_fields
)]
struct Renamed<T> {
    first_field: T,
    #[serde(rename = "x y", alias = "z")]
    second: Option<T>,
    #[serde(default)]
    third: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SkipIf<T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<T>,
    second: u8,
    third: u8,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    last: Vec<T>,
    #[serde(skip)]
    never: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flattened<T> {
    own: u8,
    #[serde(flatten)]
    rest: T,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum External<T> {
    Unit,
    Newtype(T),
    #[serde(rename = "many")]
    Tuple(T, u8, T),
    Struct {
        field: T,
        #[serde(skip_serializing_if = "Option::is_none")]
        other: Option<T>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Internal<T> {
    Unit,
    Newtype(T),
    Struct { field: T, other: Option<T> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "content")]
enum Adjacent<T> {
    Unit,
    Newtype(T),
    Tuple(T, u8, T),
    Struct { field: T, other: Option<T> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged<T> {
    Struct { only_here: T, other: Option<T> },
    Tuple(T, u8, T, char),
    Newtype(T),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(T, u8)", into = "(T, u8)")]
struct Converted<T: Clone>(T);

impl<T: Clone> From<(T, u8)> for Converted<T> {
    fn from((inner, _): (T, u8)) -> Self {
        Converted(inner)
    }
}

impl<T: Clone> From<Converted<T>> for (T, u8) {
    fn from(Converted(inner): Converted<T>) -> Self {
        (inner, 9)
    }
}

/// Checks all forms of a type around another type. Forms that hold the inner value without its tag
/// do not accept every type; `is_plain` tells whether they accept this one.
fn around<T: Type>(inner: &T, is_plain: bool) {
    let one = || inner.clone();
    is_kept(one());
    is_kept(Some(one()));
    is_kept(Some(Some(one())));
    is_kept(Some(None::<T>));
    is_kept(vec![one(), one()]);
    is_kept([one(), one()]);
    is_kept(Box::new((one(), one())));
    is_kept(BTreeMap::from([(1_u32, one()), (300, one())]));
    is_kept(BTreeMap::from([((-1_i64, 'x'), Some(one()))]));
    is_kept(Newtype(one()));
    is_kept(Some(Newtype(Some(Newtype(one())))));
    is_kept(Transparent { inner: one() });
    is_kept(Pair(one(), Some(one())));
    is_kept(Renamed {
        first_field: one(),
        second: Some(one()),
        third: 1,
    });
    is_kept(Converted(one()));
    for first in [None, Some(one())] {
        let last = vec![one(); usize::from(first.is_none())];
        is_kept(SkipIf {
            first,
            second: 1,
            third: 9,
            last,
            never: 0,
        });
    }
    is_kept(External::<T>::Unit);
    is_kept(External::Newtype(one()));
    is_kept(External::Tuple(one(), 1, one()));
    is_kept(External::Struct {
        field: one(),
        other: None,
    });
    is_kept(Ok::<T, ()>(one()));
    is_kept(Adjacent::<T>::Unit);
    is_kept(Internal::<T>::Unit);

    let skip = || SkipIf {
        first: Some(one()),
        second: 2,
        third: 3,
        last: vec![],
        never: 0,
    };
    let buffered = [
        refusal(&Internal::Newtype(skip())),
        refusal(&Flattened {
            own: 1,
            rest: skip(),
        }),
        refusal(&Flattened {
            own: 1,
            rest: Some(skip()),
        }),
        refusal(&Internal::Struct {
            field: one(),
            other: Some(one()),
        }),
        refusal(&Adjacent::Newtype(one())),
        refusal(&Adjacent::Tuple(one(), 1, one())),
        refusal(&Adjacent::Struct {
            field: one(),
            other: None,
        }),
        refusal(&Untagged::Newtype(one())),
        refusal(&Untagged::Tuple(one(), 1, one(), 'x')),
        refusal(&Untagged::Struct {
            only_here: one(),
            other: Some(one()),
        }),
        refusal(&Flattened {
            own: 1,
            rest: BTreeMap::from([("a".to_string(), one())]),
        }),
        refusal(&Flattened {
            own: 1,
            rest: Internal::Struct {
                field: one(),
                other: None,
            },
        }),
        refusal(&Flattened {
            own: 1,
            rest: External::Newtype(one()),
        }),
    ];
    if is_plain {
        for refusal in &buffered {
            assert_eq!(refusal, &None, "{inner:?}");
        }
    }
}

/// Checks forms inside other forms.
fn check<T: Type>(inner: T) {
    let rest = BTreeMap::from([("b".to_string(), inner.clone())]);
    around(&External::Newtype(inner.clone()), true);
    around(
        &Internal::Struct {
            field: Some(inner),
            other: None,
        },
        true,
    );
    around(&Flattened { own: 3, rest }, true);
}

#[test]
fn forms_within_forms() {
    check(Some(()));
}

#[test]
fn types_of_std_and_others() {
    around(&(), true);
    around(&serde_json::Value::Null, true);
    // `serde` cannot buffer numbers of 16 bytes until it knows the variant.
    around(&(u128::MAX, i128::MIN, 1_u128), false);
    let numbers = (
        1_u8,
        -129_i16,
        u64::MAX,
        i64::MIN,
        1.5_f32,
        f64::MAX,
        'ä',
        true,
    );
    let numbers = Newtype(numbers);
    let texts = (
        numbers,
        None::<Option<Unit>>,
        "long ".repeat(100),
        vec![1_u8, 255],
        vec![None, Some(1_u32), Some(u32::MAX)],
        std::ffi::CString::from(c"bytes"),
        std::path::PathBuf::from("a/b"),
        std::ffi::OsString::from("a"),
        serde_json::json!({"a": [null, 1, -1, 1.5, "x", {"b": true}]}),
    );
    let others = (
        std::time::Duration::from_nanos(1_000_000_001),
        std::time::UNIX_EPOCH,
        1..9_u16,
        std::ops::Bound::Excluded(1_u8),
        std::num::NonZeroU16::MIN,
        std::num::Wrapping(1_i8),
        std::net::IpAddr::from([127, 0, 0, 1]),
        std::net::SocketAddr::from(([0_u16; 8], 80)),
        Ok::<u8, String>(1),
    );
    around(&(texts, others), true);
}

proptest! {
    #[test]
    fn numbers_and_texts(
        signed in any::<i64>(), unsigned in any::<u64>(), wide in any::<(u128, i128)>(),
        bits in any::<u64>(), text in ".{0,80}", shift in 0..64_u32,
    ) {
        is_kept((signed >> shift, unsigned >> shift, i128::from(signed >> shift)));
        is_kept(wide);
        is_kept(text);
        let float = f64::from_bits(bits);
        let map: OrderedMap<u8, Serde<(f64, f32)>> = OrderedMap::new();
        map.insert(0, Serde((float, float as f32)));
        let Serde((read, narrow)) = map.get(0).expect("it was inserted");
        prop_assert_eq!((read.to_bits(), narrow.to_bits()), (bits, (float as f32).to_bits()));
    }

    /// Arbitrary bytes are refused or decoded, and cause no panic.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(
        prop_oneof![0..23_u8, 62..66_u8, 126..130_u8], 0..30,
    )) {
        let _ = Serde::<serde_json::Value>::decode(&bytes);
        let _ = Serde::<Untagged<Internal<Option<u8>>>>::decode(&bytes);
        let _ = Serde::<Vec<External<Flattened<SkipIf<u64>>>>>::decode(&bytes);
        let _ = Serde::<BTreeMap<u128, (f64, char, ())>>::decode(&bytes);
    }
}

#[test]
fn sets_come_back_in_any_order() {
    let names = (0..50).map(|n| format!("{n}{}", "x".repeat(n)));
    is_kept(names.collect::<HashSet<String>>());
}

#[test]
fn asymmetric_encodings_are_refused() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Variants {
        #[serde(skip)]
        Never,
        #[serde(skip_deserializing)]
        Written,
        Last,
    }
    is_refused(Variants::Never, "cannot be serialized");
    is_refused(Variants::Written, "unknown variant `Written`");
    is_kept(Variants::Last);

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Unwritten {
        #[serde(skip_serializing)]
        name: u8,
    }
    is_refused(Unwritten { name: 1 }, "missing field `name`");

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Unread {
        #[serde(skip_deserializing)]
        name: u8,
    }
    is_refused(Unread { name: 1 }, "another value was read");
    is_kept(Unread { name: 0 });

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct OtherDefault {
        #[serde(default = "five", skip_serializing_if = "is_zero")]
        count: u8,
    }
    fn five() -> u8 {
        5
    }
    fn is_zero(count: &u8) -> bool {
        *count == 0
    }
    is_refused(OtherDefault { count: 0 }, "another value was read");
    is_kept(OtherDefault { count: 5 });

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Hidden {
        First(f64),
        Second(i64),
        Third(u128),
    }
    is_refused(Hidden::Second(1), "another value was read");
    is_refused(Hidden::Third(u128::MAX), "not read as it is written");
    is_kept(Hidden::First(1.0));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Deep(Option<Box<(u8, Deep)>>);

#[test]
fn deep_nesting_is_refused() {
    let nested = |depth| (0..depth).fold(Deep(None), |deep, _| Deep(Some(Box::new((1, deep)))));
    is_kept(nested(60));
    is_refused(nested(65), "nested 128 times");
    let lists = |depth| (0..depth).fold(serde_json::json!(1), |list, _| serde_json::json!([list]));
    is_kept(Untagged::Newtype(lists(120)));
    is_refused(lists(129), "nested 128 times");
    let levels = vec![21; 1 << 16];
    assert_eq!(Serde::<serde_json::Value>::decode(&levels), None);
}

#[test]
fn a_map_in_memory_panics_and_is_as_it_was() {
    let map: OrderedMap<u8, Serde<Result<u8, Deep>>> = OrderedMap::new();
    map.insert(1, Serde(Ok(1)));
    let deep = (0..100).fold(Deep(None), |deep, _| Deep(Some(Box::new((1, deep)))));
    let value = Serde(Err(deep));
    let calls: [&dyn Fn(); 5] = [
        &|| assert!(map.insert(1, &value).is_none()),
        &|| assert!(map.put(2, &value)),
        &|| assert!(map.insert_new(2, &value)),
        &|| map.insert_many([(1, &value), (2, &value)]),
        &|| assert!(map.compute(1, |_| Some(value.clone())).is_none()),
    ];
    for call in calls {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        let text = caught.expect_err("it is refused");
        let text = text.downcast_ref::<String>().expect("it has a text");
        assert!(text.contains("nested 128 times"), "{text}");
    }
    assert_eq!(map.iter().collect::<Vec<_>>(), [(1, Serde(Ok(1)))]);
}
