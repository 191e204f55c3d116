//! Comparing keys, whose order is that of their bytes.

use std::cmp::Ordering;

/// Returns the number of bytes that two keys have in common at their beginning.
///
/// Keys are short. For them this, inlined, is several times as fast as a call of the function of
/// the C library for long memory.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let differ = |at: usize| -> Option<u64> {
        let a = u64::from_le_bytes(*a.get(at..)?.first_chunk()?);
        let b = u64::from_le_bytes(*b.get(at..)?.first_chunk()?);
        Some(a ^ b)
    };
    let mut at = 0;
    while let Some(bits) = differ(at) {
        if bits != 0 {
            return at + (bits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    // Fewer than eight bytes are left. The last eight bytes are compared once more: those that were
    // compared before are equal.
    if let Some(bits) = len.checked_sub(8).and_then(differ) {
        return len.min(len - 8 + (bits.trailing_zeros() / 8) as usize);
    }
    while at < len && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Returns the order of two keys.
#[inline]
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let common = common_prefix(a, b);
    a.get(common).cmp(&b.get(common))
}

/// Returns the first eight bytes of a key as a number, in which missing bytes are zero. Two keys
/// whose heads differ are in the order of their heads.
#[inline]
pub(crate) fn head(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn prefixes_are_compared_to_the_byte(
            prefix in prop::collection::vec(any::<u8>(), 0..40),
            a in prop::collection::vec(0..2u8, 0..4),
            b in prop::collection::vec(0..2u8, 0..4),
        ) {
            let plain = prefix.len() + a.iter().zip(&b).take_while(|(a, b)| a == b).count();
            let (a, b) = ([&prefix[..], &a].concat(), [&prefix[..], &b].concat());
            prop_assert_eq!(common_prefix(&a, &b), plain);
            prop_assert_eq!(compare(&a, &b), a.cmp(&b));
            let heads = head(&a).cmp(&head(&b));
            prop_assert!(heads.is_eq() || heads == a.cmp(&b));
            if let (Some(first), Some(second)) = (a.get(..8), b.get(..8)) {
                prop_assert_eq!(heads, first.cmp(second));
            }
        }
    }
}
