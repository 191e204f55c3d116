//! Short keys as plain values.

/// A key of up to 16 bytes.
///
/// Stored as whole words, which are copied as such: a processor forwards a store only to a load of
/// the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortKey {
    /// The bytes as big-endian numbers, padded with zeros.
    words: [u64; 2],
    len: u64,
}

impl ShortKey {
    /// Creates a key of `len` bytes from the first `skip` bytes of one part, all bytes of another
    /// one, and a number, whose bytes after the key are zeros. Returns `None` if the two parts have
    /// more than eight bytes.
    #[inline(always)]
    pub(crate) fn in_parts(
        like: &[u8],
        skip: usize,
        prefix: &[u8],
        rest: u64,
        len: usize,
    ) -> Option<Self> {
        let start = skip + prefix.len();
        if start > 8 || like.len() < skip {
            return None;
        }
        // Shifts by all bits occur.
        let highest = |bytes: usize| !u64::MAX.unbounded_shr(8 * bytes as u32);
        let prefix = bits_at(prefix, 0).unbounded_shr(8 * skip as u32);
        let first = bits_at(like, 0) & highest(skip) | prefix & highest(start);
        Some(ShortKey {
            words: [
                first | rest.unbounded_shr(8 * start as u32),
                rest.unbounded_shl(64 - 8 * start as u32),
            ],
            len: len as u64,
        })
    }

    /// Creates a short key, if the key is short enough.
    #[must_use]
    #[inline(always)]
    pub fn of(key: &[u8]) -> Option<Self> {
        (key.len() <= 16).then(|| ShortKey {
            words: [bits_at(key, 0), bits_at(key, 8)],
            len: key.len() as u64,
        })
    }

    /// Creates a key of the bytes of this one and those of another one behind them, if it is short
    /// enough.
    #[must_use]
    #[inline(always)]
    pub fn followed_by(self, other: Self) -> Option<Self> {
        let bits = |key: Self| u128::from(key.words[0]) << 64 | u128::from(key.words[1]);
        let both = bits(self) | bits(other).unbounded_shr(8 * self.len as u32);
        let len = self.len + other.len;
        (len <= 16).then_some(ShortKey {
            words: [(both >> 64) as u64, both as u64],
            len,
        })
    }

    /// Returns the bytes, and the length of the key in them.
    #[inline(always)]
    pub fn to_bytes(&self) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.words[0].to_be_bytes());
        bytes[8..].copy_from_slice(&self.words[1].to_be_bytes());
        (bytes, self.len as usize)
    }
}

/// Returns eight bytes of `key` from `at` on as a number with the order of the bytes; missing bytes
/// are zero.
#[inline(always)]
pub(crate) fn bits_at(key: &[u8], at: usize) -> u64 {
    let Some(rest) = key.get(at..) else { return 0 };
    match (rest.first_chunk::<8>(), key.last_chunk::<8>()) {
        (Some(bytes), _) => u64::from_be_bytes(*bytes),
        (None, Some(_)) if rest.is_empty() => 0,
        // The last bytes of the key, without those before the rest.
        (None, Some(last)) => u64::from_be_bytes(*last) << (64 - 8 * rest.len()),
        (None, None) => short_head(rest),
    }
}

/// Returns the rest of a short key, left-aligned, without a call of `memcpy`, which would cost more
/// than the copy.
#[inline(always)]
fn short_head(rest: &[u8]) -> u64 {
    let len = rest.len();
    if len >= 4 {
        let low = u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]);
        let high = u32::from_be_bytes([rest[len - 4], rest[len - 3], rest[len - 2], rest[len - 1]]);
        u64::from(low) << 32 | u64::from(high) << (64 - 8 * len)
    } else if len > 0 {
        u64::from(rest[0]) << 56
            | u64::from(rest[len / 2]) << (56 - 8 * (len / 2))
            | u64::from(rest[len - 1]) << (56 - 8 * (len - 1))
    } else {
        0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn bytes(key: ShortKey) -> Vec<u8> {
        let (bytes, len) = key.to_bytes();
        bytes[..len].to_vec()
    }

    #[test]
    fn one_key_behind_another() {
        let whole: Vec<u8> = (1..=20).collect();
        for first in 0..=16 {
            for second in 0..=16.min(20 - first) {
                let (one, other) = whole[..first + second].split_at(first);
                let both = ShortKey::of(one).unwrap();
                let both = both.followed_by(ShortKey::of(other).unwrap());
                assert_eq!(both, ShortKey::of(&whole[..first + second]));
            }
        }
    }

    #[test]
    fn parts_make_the_key() {
        let whole: Vec<u8> = (1..=16).collect();
        for len in 0..=16 {
            let key = &whole[..len];
            assert_eq!(bytes(ShortKey::of(key).unwrap()), key);
            for skip in 0..=len {
                for start in skip..=len {
                    let made =
                        ShortKey::in_parts(key, skip, &key[skip..start], bits_at(key, start), len);
                    let fits = start <= 8 && len <= start + 8;
                    if fits {
                        assert_eq!(bytes(made.unwrap()), key, "{skip} {start}");
                    }
                    assert!(fits || start <= 8 || made.is_none());
                }
            }
        }
        assert_eq!(ShortKey::of(&[0; 17]), None);
        assert_eq!(ShortKey::in_parts(&[1], 2, &[], 0, 2), None);
    }
}
