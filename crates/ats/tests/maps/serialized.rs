//! Tests of maps and values with `serde`.

use ats::{HashMap, OrderedMap, Serde};
use std::collections::BTreeMap;

#[test]
fn maps_are_maps_of_serde() {
    let map: OrderedMap<String, u32> = OrderedMap::new();
    map.insert("pear", 40);
    map.insert("apple", 30);
    let text = serde_json::to_string(&map).expect("it is serialised");
    assert_eq!(text, r#"{"apple":30,"pear":40}"#);
    let again: OrderedMap<String, u32> = serde_json::from_str(&text).expect("it is a map");
    assert!(again.iter().eq(&map));
    let hash: HashMap<String, u32> = serde_json::from_str(&text).expect("it is a map");
    assert_eq!(hash.len(), 2);
    let text = serde_json::to_string(&hash).expect("it is serialised");
    let model: BTreeMap<String, u32> = serde_json::from_str(&text).expect("it is a map");
    assert!(map.iter().eq(model));
    assert!(serde_json::from_str::<OrderedMap<String, u32>>("[1]").is_err());
}

#[test]
fn whatever_is_serialised_is_a_value() {
    type Lists = BTreeMap<String, Vec<Option<f64>>>;
    let map: HashMap<u8, Serde<Lists>> = HashMap::new();
    let value = Lists::from([("a".into(), vec![Some(1.5), None]), (String::new(), vec![])]);
    map.insert(1, Serde(value.clone()));
    assert_eq!(map.get(1), Some(Serde(value)));
    type Pair = (Serde<Vec<u8>>, Serde<Option<String>>);
    let nested: OrderedMap<u8, Pair> = OrderedMap::new();
    let value = (Serde(vec![1, 2]), Serde(Some(String::from("x"))));
    nested.insert(1, value.clone());
    assert_eq!(nested.get(1), Some(value));
}
