//! Bounds of the keys of a file: short, also where keys are long.
//!
//! The manifest has the bounds of all files, says them again when it is written anew, and a
//! compaction says those of its files each time another one is complete. Keys of megabytes would
//! make that more than the records. So a bound is a key of the file if that has up to
//! [`EXACT_BYTES`], and else about so many bytes of it, which are below the lowest key or above the
//! highest, but not so far that the files of a run overlap.

use crate::keys::common_prefix;
use std::borrow::Cow;

/// Keys with more bytes than this are shortened.
pub(crate) const EXACT_BYTES: usize = 256;

/// Returns the lower bound of keys of which this is the lowest: above `after`, if there is
/// something, which is below the key.
pub(crate) fn lower<'k>(first: &'k [u8], after: Option<&[u8]>) -> &'k [u8] {
    let shared = after.map_or(0, |after| common_prefix(first, after) + 1);
    first.get(..shared.max(EXACT_BYTES)).unwrap_or(first)
}

/// Returns the upper bound of keys of which this is the highest: below `before`, if there is
/// something, which is above the key.
pub(crate) fn upper<'k>(last: &'k [u8], before: Option<&[u8]>) -> Cow<'k, [u8]> {
    // The first byte that is another one stays as it is.
    let shared = before.map_or(0, |before| common_prefix(last, before) + 2);
    let least = shared.max(EXACT_BYTES);
    let rest = last.get(least - 1..).unwrap_or_default();
    match rest.iter().position(|byte| *byte < u8::MAX) {
        Some(at) if at + 1 < rest.len() => {
            let mut upper = last[..least + at].to_vec();
            upper[least - 1 + at] += 1;
            Cow::Owned(upper)
        }
        _ => Cow::Borrowed(last),
    }
}

/// Returns `true` if this is a lower bound of keys of which `first` is the lowest.
pub(crate) fn is_lower(bound: &[u8], first: &[u8]) -> bool {
    bound == first || bound.len() >= EXACT_BYTES && first.starts_with(bound)
}

/// Returns `true` if this is an upper bound of keys of which `last` is the highest.
pub(crate) fn is_upper(bound: &[u8], last: &[u8]) -> bool {
    let above = |bound: &[u8]| {
        let (end, prefix) = bound.split_last()?;
        let rest = last.strip_prefix(prefix)?;
        Some(bound.len() >= EXACT_BYTES && rest.len() > 1 && rest[0].checked_add(1) == Some(*end))
    };
    bound == last || above(bound) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Long keys, many of which begin in the same way.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let byte = || prop::sample::select(vec![0, 7, u8::MAX]);
        let fill = prop::sample::select(vec![0, 1, 254, 255, 256, 257, 300]);
        (byte(), fill, prop::collection::vec(byte(), 0..5))
            .prop_map(|(byte, fill, end)| [vec![byte; fill], end].concat())
    }

    proptest! {
        #[test]
        fn bounds_lie_between_keys(keys in prop::collection::btree_set(key(), 4)) {
            let keys: Vec<_> = keys.into_iter().collect();
            let upper_one = upper(&keys[1], Some(&keys[2]));
            prop_assert!(*keys[1] <= *upper_one && *upper_one < *keys[2]);
            let lower_two = lower(&keys[2], Some(&*upper_one));
            prop_assert!(*upper_one < *lower_two && *lower_two <= *keys[2]);
            prop_assert!(is_upper(&upper_one, &keys[1]) && is_lower(lower_two, &keys[2]));
            // Bounds without neighbours are short.
            let (low, high) = (lower(&keys[0], None), upper(&keys[0], None));
            prop_assert!(low <= &keys[0][..] && *keys[0] <= *high);
            prop_assert!(low.len() <= EXACT_BYTES);
            prop_assert!(is_lower(low, &keys[0]) && is_upper(&high, &keys[0]));
            if keys[0].len() < EXACT_BYTES {
                prop_assert!(low == &keys[0][..] && *high == *keys[0]);
                prop_assert!(!is_lower(low, &keys[1]) && !is_upper(&high, &keys[1]));
            }
        }
    }

    #[test]
    fn bounds_of_long_keys_are_short() {
        let key = |byte: u8, end: u8| [&vec![byte; 1 << 20][..], &[end]].concat();
        assert_eq!(upper(&key(3, 0), Some(&key(4, 0))).len(), EXACT_BYTES);
        assert_eq!(lower(&key(4, 0), Some(&key(3, 0))).len(), EXACT_BYTES);
        // The bytes that tell two keys apart are not left away.
        assert_eq!(*upper(&key(3, 1), Some(&key(3, 2))), *key(3, 1));
        assert_eq!(*lower(&key(3, 2), Some(&key(3, 1))), *key(3, 2));
        // The greatest key has no short bound above it.
        assert_eq!(*upper(&key(u8::MAX, 1), None), *key(u8::MAX, 1));
    }
}
