//! Tests of the bytes of values: they determine the value.

use ats::{HashMap, Value, ValueBytes};
use proptest::prelude::*;
use std::fmt::Debug;

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

    /// Arbitrary bytes are refused or decoded, and cause no panic.
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let _ = <(String, Vec<u8>)>::decode(&bytes);
        let _ = <[Option<char>; 2]>::decode(&bytes);
        let _ = <(bool, usize)>::decode(&bytes);
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
}
