//! The hash function: seeded, with 64 well-mixed bits.
//!
//! The function multiplies two words to 128 bits and folds the halves together. A key of up to 16
//! bytes takes two multiplications. The construction is that of Wang Yi's `wyhash`. The seed is
//! random for each table, so that an attacker cannot choose keys that collide in one bucket.

use ats_sync::model::IS_EXPLORED;
use std::hash::BuildHasher;

/// Words without pattern (the first decimals of pi in hexadecimal).
const MIX: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345];

/// The seed of a table's hash function.
#[derive(Clone, Copy)]
pub struct Seed {
    first: u64,
    second: u64,
}

impl Seed {
    /// Creates an unpredictable seed: the standard library takes it from the operating system. The
    /// same for all tables in runs that must be repeatable.
    pub fn random() -> Self {
        if IS_EXPLORED {
            let [first, second] = MIX;
            return Self { first, second };
        }
        let random = std::hash::RandomState::new();
        Self {
            first: random.hash_one(1),
            second: random.hash_one(2),
        }
    }

    /// Returns the hash of `key`.
    #[inline]
    pub fn hash(self, key: &[u8]) -> u64 {
        let (low, high) = match key.len() {
            8 => (word(key, 0), 0),
            9..=16 => (word(key, 0), word(key, key.len() - 8)),
            0..8 => (short(key), 0),
            _ => return self.hash_long(key),
        };
        self.finish(low ^ self.first, high ^ self.second, key.len())
    }

    fn hash_long(self, key: &[u8]) -> u64 {
        let mut state = self.first;
        let mut rest = key;
        while rest.len() > 16 {
            state = fold(word(rest, 0) ^ self.second, word(rest, 8) ^ state);
            rest = &rest[16..];
        }
        let (low, high) = (word(key, key.len() - 16), word(key, key.len() - 8));
        self.finish(low ^ state, high ^ self.second, key.len())
    }

    #[inline]
    fn finish(self, low: u64, high: u64, len: usize) -> u64 {
        fold(fold(low, high) ^ MIX[0] ^ len as u64, self.first ^ MIX[1])
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Returns a word of fewer than eight bytes. Keys of different lengths may give the same word, so
/// the length is hashed, too.
fn short(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..key.len()].copy_from_slice(key);
    u64::from_le_bytes(bytes)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn tables_differ() {
        assert_ne!(Seed::random().hash(b"key"), Seed::random().hash(b"key"));
    }

    #[test]
    fn lengths_and_every_byte_count() {
        let seed = Seed::random();
        let mut seen = HashSet::new();
        for len in 0..70 {
            let mut key = vec![0; len];
            assert!(seen.insert(seed.hash(&key)));
            for at in 0..len {
                key[at] = 1;
                assert!(seen.insert(seed.hash(&key)), "byte {at} of {len}");
                key[at] = 0;
            }
        }
    }

    /// Counters, in either byte order, are the most common keys: both the low bits (the bucket) and
    /// the high bits (the tag) must spread evenly.
    #[test]
    fn counters_spread_evenly() {
        const BUCKETS: usize = 1 << 10;
        const KEYS: usize = BUCKETS * 64;
        let seed = Seed::random();
        for big_endian in [false, true] {
            let mut low = vec![0u32; BUCKETS];
            let mut high = vec![0u32; BUCKETS];
            for key in 0..KEYS as u64 {
                let key = if big_endian { key.swap_bytes() } else { key };
                let hash = seed.hash(&key.to_le_bytes());
                low[hash as usize % BUCKETS] += 1;
                high[(hash >> 54) as usize] += 1;
            }
            for count in low.into_iter().chain(high) {
                // The mean is 64 and the standard deviation 8; six of them are a safe margin.
                assert!((16..=112).contains(&count), "{count} keys in a bucket");
            }
        }
    }
}
