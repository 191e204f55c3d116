//! Tests of the bytes of values: they determine the value.

use ats::{HashMap, Value, ValueBytes};
use chrono::DateTime;
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::{self, BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

fn check<V: Value + PartialEq + Debug>(value: V) {
    let mut bytes = ValueBytes::default();
    value.encode(&mut bytes);
    let bytes = bytes.as_slice();
    assert!(V::LEN.is_none_or(|len| len == bytes.len()));
    assert_eq!(V::decode(bytes).as_ref(), Some(&value));
    let map: HashMap<u8, V> = HashMap::new();
    map.insert(0, &value);
    assert_eq!(map.get(0), Some(value));
}

proptest! {
    #[test]
    fn come_back(
        numbers in (any::<u8>(), any::<i16>(), any::<u128>(), any::<isize>(), any::<char>()),
        text in ".{0,40}",
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        flag in any::<bool>(),
        float in any::<f64>(),
    ) {
        check(numbers);
        check(text.clone());
        check(bytes.clone());
        check(flag);
        check(float);
        check(Some(text.clone()));
        check(Some(Some(numbers.1)));
        check((text.clone(), bytes.clone(), flag));
        check([text.clone(), String::new()]);
        check((Some(bytes), (numbers.0, text), [numbers.2; 3]));
    }

    #[test]
    fn collections_come_back(
        texts in prop::collection::vec(".{0,9}", 0..6),
        numbers in prop::collection::vec(any::<(i8, u64)>(), 0..9),
        bytes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..6),
        seconds in -1_000_000_000_000_i64..1_000_000_000_000,
        nanos in 0..1_000_000_000_u32,
    ) {
        check(texts.clone());
        check(numbers.clone());
        check(bytes.clone());
        check(vec![texts.clone(), Vec::new()]);
        check(numbers.iter().copied().collect::<BTreeMap<_, _>>());
        check(numbers.iter().copied().collect::<collections::HashMap<_, _>>());
        check(numbers.iter().copied().collect::<BTreeSet<_>>());
        check(texts.iter().cloned().collect::<HashSet<_>>());
        check(texts.iter().cloned().collect::<VecDeque<_>>());
        check((texts.clone(), Arc::new(numbers.clone()), Box::new(bytes.clone())));
        check(Arc::<[String]>::from(texts.clone()));
        check(Box::<[u8]>::from(&bytes.concat()[..]));
        check((Arc::<str>::from(texts.concat()), Box::<str>::from(texts.concat())));
        check(Cow::<'static, str>::Owned(texts.concat()));
        check(Cow::<'static, [u8]>::Owned(bytes.concat()));
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let epoch = SystemTime::UNIX_EPOCH;
        let begun = if seconds < 0 { epoch - whole } else { epoch + whole };
        check(Duration::new(seconds.unsigned_abs(), nanos));
        check(begun + Duration::from_nanos(nanos.into()));
        check(DateTime::from_timestamp(seconds, nanos).expect("a time of the calendar"));
        check(Uuid::from_u64_pair(seconds as u64, nanos.into()));
    }

    /// Arbitrary bytes are refused or decoded, and cause no panic.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let _ = <(String, Vec<u8>)>::decode(&bytes);
        let _ = <[Option<char>; 2]>::decode(&bytes);
        let _ = <(bool, usize)>::decode(&bytes);
        let _ = <Vec<String>>::decode(&bytes);
        let _ = <Vec<()>>::decode(&bytes);
        let _ = <BTreeMap<u8, Vec<u16>>>::decode(&bytes);
        let _ = <(Duration, SystemTime)>::decode(&bytes);
        let _ = <(SystemTime, Uuid)>::decode(&bytes);
        let _ = <DateTime<chrono::Utc>>::decode(&bytes);
    }
}

#[test]
fn small_ones() {
    check(());
    check(None::<u8>);
    check(Some(()));
    check(None::<Option<()>>);
    check(Some(None::<u8>));
    check(String::new());
    check([0_u8; 0]);
    check([7_u8; 16]);
    check(vec![(); 3]);
    check(Vec::<Vec<u8>>::new());
    check(vec![None::<u8>]);
    check(Duration::MAX);
    check(SystemTime::UNIX_EPOCH - Duration::from_nanos(1));
}

/// A million times no bytes would otherwise be a list that takes all memory.
#[test]
fn a_large_number_is_no_large_list() {
    assert_eq!(<Vec<u64>>::decode(&[255; 12]), None);
    assert_eq!(<Vec<String>>::decode(&[255, 255, 255, 255]), None);
}

/// Values are given as what has the same bytes, also in collections.
#[test]
fn values_stand_for_others() {
    let lists: HashMap<u8, Vec<String>> = HashMap::new();
    lists.insert(0, ["a", "b"]);
    lists.insert(1, vec!["a", "b"]);
    lists.insert(2, &["a", "b"][..]);
    for key in 0..3 {
        assert_eq!(
            lists.get(key).as_deref(),
            Some(&["a".into(), "b".into()][..])
        );
    }
    let bytes: HashMap<u8, Vec<u8>> = HashMap::new();
    bytes.insert(0, b"ab");
    bytes.insert(1, vec![b'a', 98]);
    bytes.insert(2, &b"ab"[..]);
    for key in 0..3 {
        assert_eq!(bytes.get(key).as_deref(), Some(&b"ab"[..]));
    }
    let texts: HashMap<u8, Arc<str>> = HashMap::new();
    texts.insert(0, "pear");
    assert_eq!(texts.get(0).as_deref(), Some("pear"));
}
