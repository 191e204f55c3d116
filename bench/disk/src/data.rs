//! Keys and values, computed from a number, so that results of an engine can be checked without a
//! copy of the data.
//!
//! The first eight bytes of a key are a bijection of its number. They tell which record it is, and
//! order keys as the whole key does.

/// Bytes of a key.
pub const KEY_BYTES: usize = 24;

/// Bytes of a value.
pub const VALUE_BYTES: usize = 150;

/// The bytes that a record counts as logically written.
pub const RECORD_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;

/// Keys with this number and above are never written.
pub const MISSING: u64 = 1 << 48;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
const SECOND: u64 = 0x94d0_49bb_1331_11eb;

/// Returns the output function of SplitMix64, a bijection.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(FIRST);
    word = (word ^ (word >> 27)).wrapping_mul(SECOND);
    word ^ (word >> 31)
}

/// Returns the inverse of [`mix`].
fn unmix(mut word: u64) -> u64 {
    word = (word ^ (word >> 31) ^ (word >> 62)).wrapping_mul(inverse(SECOND));
    word = (word ^ (word >> 27) ^ (word >> 54)).wrapping_mul(inverse(FIRST));
    word ^ (word >> 30) ^ (word >> 60)
}

/// Returns the multiplicative inverse of an odd number, by Newton's iteration: each step doubles
/// the bits that are right.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

/// A key.
pub type Key = [u8; KEY_BYTES];

/// A value.
pub type Value = [u8; VALUE_BYTES];

/// Returns the first eight bytes of the key with a number, as a number that orders as the keys do.
pub fn prefix(number: u64) -> u64 {
    mix(number.wrapping_add(GOLDEN))
}

/// Returns the key whose prefix is this.
pub fn key_with(prefix: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    let words = [prefix, mix(prefix ^ FIRST), mix(prefix ^ SECOND)];
    for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    key
}

/// Returns the key with a number.
pub fn key(number: u64) -> Key {
    key_with(prefix(number))
}

/// Returns the prefix of a key, if the key is one of ours.
pub fn prefix_of(key: &[u8]) -> Option<u64> {
    let word = u64::from_be_bytes(*key.first_chunk()?);
    (key_with(word) == *key).then_some(word)
}

/// Returns the number of the key with a prefix.
pub fn number_of(prefix: u64) -> u64 {
    unmix(prefix).wrapping_sub(GOLDEN)
}

/// Returns the first word of the value of a key. The rest is drawn from it.
fn stamp(prefix: u64, version: u64) -> u64 {
    mix(prefix ^ version.wrapping_mul(GOLDEN).rotate_left(17))
}

/// Returns the value that the key with a prefix has in a version: random bytes.
pub fn value(prefix: u64, version: u64) -> Value {
    let stamp = stamp(prefix, version);
    let mut random = fastrand::Rng::with_seed(stamp);
    let mut value = [0; VALUE_BYTES];
    for (at, bytes) in value.chunks_mut(8).enumerate() {
        let word = if at == 0 { stamp } else { random.u64(..) };
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
    value
}

/// Returns `true` if a value has the length and the first word of that of a key, which a timed loop
/// can afford.
pub fn looks_like_value(bytes: &[u8], prefix: u64, version: u64) -> bool {
    bytes.len() == VALUE_BYTES && bytes[..8] == stamp(prefix, version).to_le_bytes()
}

/// A record of a batch.
pub struct Record {
    /// Its key.
    pub key: Key,
    /// The value.
    pub value: Value,
}

impl Record {
    /// Returns the record with a number, in a version.
    pub fn new(number: u64, version: u64) -> Self {
        let prefix = prefix(number);
        Record {
            key: key_with(prefix),
            value: value(prefix, version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_their_number() {
        let mut random = fastrand::Rng::with_seed(1);
        for number in (0..1000).chain((0..1000).map(|_| random.u64(..))) {
            assert_eq!(unmix(mix(number)), number);
            let key = key(number);
            assert_eq!(prefix_of(&key).map(number_of), Some(number));
        }
        let mut other = key(7);
        other[23] ^= 1;
        assert_eq!(prefix_of(&other), None);
    }

    #[test]
    fn values_differ_by_key_and_version() {
        let (one, other) = (value(prefix(1), 0), value(prefix(1), 1));
        assert!(looks_like_value(&one, prefix(1), 0));
        assert!(!looks_like_value(&other, prefix(1), 0));
        assert!(!looks_like_value(&one, prefix(2), 0));
        assert!(!looks_like_value(&one[1..], prefix(1), 0));
        // Checks that no eight bytes of a value occur in it twice at aligned positions.
        let words: std::collections::HashSet<_> = one.chunks(8).collect();
        assert_eq!(words.len(), one.chunks(8).len());
    }
}
