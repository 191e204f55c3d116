//! Tests of ranges, beside looking at each key.

use super::*;
use crate::coding::put_bytes;
use crate::ids::Seq;
use ats_store::KeyRange;
use proptest::prelude::*;

type Owned = (Option<Vec<u8>>, Option<Vec<u8>>);

fn range((low, high): &Owned) -> KeyRange<'_> {
    KeyRange {
        low: low.as_deref(),
        high: high.as_deref(),
    }
}

/// Keys of up to two letters, and the empty one.
fn keys() -> Vec<Vec<u8>> {
    let letters = || b'a'..b'g';
    let short = letters().map(|letter| vec![letter]);
    let long = letters().flat_map(|first| letters().map(move |second| vec![first, second]));
    [vec![]].into_iter().chain(short).chain(long).collect()
}

fn bound() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop::option::weighted(0.9, prop::sample::select(keys()))
}

fn ranges(most: usize) -> impl Strategy<Value = Vec<Owned>> {
    prop::collection::vec((bound(), bound()), 0..most)
}

fn check_set(set: &RangeSet, is_in: impl Fn(&[u8]) -> bool) {
    for key in keys() {
        assert_eq!(set.covers(&key), is_in(&key), "{key:?} of {set:?}");
        let covering = set.find_covering(&key);
        assert_eq!(covering.is_some(), is_in(&key));
        assert!(covering.is_none_or(|range| range.has(&key)));
    }
    let ranges: Vec<_> = set.iter().collect();
    assert_eq!(ranges.len(), set.len());
    assert_eq!(ranges.is_empty(), set.is_empty());
    assert!(ranges.iter().all(|range| !range.is_empty()));
    for pair in ranges.windows(2) {
        assert!(pair[0].high.unwrap() < pair[1].low.unwrap(), "{ranges:?}");
    }
}

proptest! {
    #[test]
    fn a_set_has_the_keys_of_its_ranges(owned in ranges(12), bounds in (bound(), bound())) {
        let mut set = RangeSet::new();
        for (count, new) in owned.iter().enumerate() {
            set.insert(range(new));
            let inserted = &owned[..=count];
            check_set(&set, |key| inserted.iter().any(|owned| range(owned).has(key)));
        }
        let at_once: RangeSet = owned.iter().map(range).collect();
        prop_assert_eq!(&at_once, &set);
        let mut bytes = Vec::new();
        set.encode(&mut bytes);
        let decoded = RangeSet::decode(&bytes);
        prop_assert_eq!(decoded.as_ref(), Ok(&set));
        for len in 0..bytes.len() {
            prop_assert!(RangeSet::decode(&bytes[..len]).is_err());
        }
        let clipped = set.clip(range(&bounds));
        check_set(&clipped, |key| set.covers(key) && range(&bounds).has(key));
    }

    #[test]
    fn the_newest_range_is_found_as_of_any_time(owned in ranges(40), gap in 1..4_u64) {
        let deletes = RangeDeletes::default();
        prop_assert!(deletes.is_empty());
        let seq = |index: usize| Seq::new(10 + index as u64 * gap);
        for (index, new) in owned.iter().enumerate() {
            deletes.insert(range(new), seq(index));
        }
        let keys = keys();
        let borders = (0..=owned.len()).flat_map(|index| [seq(index) - 1, seq(index)]);
        for at in borders.chain([Seq::ZERO, Seq::MAX]) {
            for key in keys.iter().step_by(3) {
                let newest = (0..owned.len())
                    .rfind(|index| seq(*index) <= at && range(&owned[*index]).has(key))
                    .map(seq);
                prop_assert_eq!(deletes.newest_covering(key, at), newest);
            }
            check_set(&deletes.set(at), |key| deletes.newest_covering(key, at).is_some());
        }
    }
}

#[test]
fn ten_thousand_ranges_take_memory_in_proportion() {
    let number = if cfg!(debug_assertions) {
        2_000_u32
    } else {
        10_000
    };
    // Each lies within the one before, which is the worst for a list of ranges at each key.
    let deletes = RangeDeletes::default();
    for index in 0..number {
        let (low, high) = (index.to_be_bytes(), (u32::MAX - index).to_be_bytes());
        let range = KeyRange {
            low: Some(&low),
            high: Some(&high),
        };
        deletes.insert(range, Seq::new(u64::from(index) + 1));
    }
    assert_eq!(deletes.len(), number as usize);
    let levels = number.ilog2() as usize + 1;
    let of_one = deletes.bytes() / number as usize;
    assert!(of_one < 2 * 24 * levels + 400, "{of_one} bytes");
    for index in (0..number).step_by(97) {
        let key = index.to_be_bytes();
        let newest = u64::from(index) + 1;
        assert_eq!(
            deletes.newest_covering(&key, Seq::MAX),
            Some(Seq::new(newest))
        );
        assert_eq!(
            deletes.newest_covering(&key, Seq::new(newest / 2)),
            (newest > 1).then_some(Seq::new(newest / 2))
        );
    }
    assert_eq!(deletes.set(Seq::MAX).len(), 1);
    assert_eq!(
        deletes.newest_covering(&u32::MAX.to_be_bytes(), Seq::MAX),
        None
    );
}

#[test]
fn ranges_that_are_empty_overlap_or_touch_are_not_read() {
    let decoded = |ranges: &[(&str, &str)]| {
        let mut bytes = vec![ranges.len() as u8];
        for (low, high) in ranges {
            bytes.push(3);
            put_bytes(&mut bytes, low.as_bytes());
            put_bytes(&mut bytes, high.as_bytes());
        }
        RangeSet::decode(&bytes)
    };
    assert!(decoded(&[("a", "b"), ("c", "d")]).is_ok());
    assert!(decoded(&[("", "b")]).is_ok_and(|set| set.covers(b"")));
    for wrong in [
        &[("b", "b")][..],
        &[("b", "a")],
        &[("a", "c"), ("b", "d")],
        &[("a", "b"), ("b", "c")],
        &[("c", "d"), ("a", "b")],
        &[("a", "b"), ("d", "d")],
    ] {
        assert!(decoded(wrong).is_err(), "{wrong:?}");
    }
    assert!(RangeSet::decode(&[1, 4]).is_err());
    assert!(RangeSet::decode(&[2, 0, 1, 1, b'x']).is_err());
    assert_eq!(RangeSet::decode(&[1, 0]).map(|set| set.len()), Ok(1));
}
