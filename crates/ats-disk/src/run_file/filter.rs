//! Filters: they tell, without reading blocks, that a key is missing.
//!
//! A split block Bloom filter, as the Parquet format specifies it (after Putze, Sanders and
//! Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007). A key belongs to one lane of
//! 256 bits and sets one bit in each of its eight words. So a lookup touches one cache line, and
//! all of its words are tested at a time. For that it takes an eighth more memory than a Bloom
//! filter whose bits are anywhere, at one false positive in a hundred; a ribbon filter takes a
//! third less, but building it takes several times as long.

use crate::coding::{Damaged, Decoder, put_varint};
use ats_mem::slab::SharedSlice;
use xxhash_rust::xxh3::xxh3_64;

/// Returns the hash of a key, which all filters are asked with.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// 256 bits, never over the border of a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
struct Lane([u32; 8]);

const LANE_BYTES: usize = size_of::<Lane>();

/// The factors with which the specification multiplies hashes, to get the bit of each word.
const SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

impl Lane {
    /// Returns the bits of a hash, which depend on its lower half only.
    #[inline]
    fn of(hash: u64) -> Lane {
        Lane(SALT.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27)))
    }

    #[inline]
    fn has(&self, bits: &Lane) -> bool {
        // Without an early end, for which all words are one vector.
        let missing = self.0.iter().zip(&bits.0).map(|(here, bit)| bit & !here);
        missing.fold(0, |missing, bit| missing | bit) == 0
    }
}

/// Returns the lane of a hash, which depends on its upper half only.
#[inline]
fn lane_of(hash: u64, lanes: usize) -> usize {
    // The number of lanes has 32 bits, so the result is below it.
    (((hash >> 32) * lanes as u64) >> 32) as usize
}

/// The size of filters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilterSize {
    /// The average number of keys that share a lane. Infinite if there is no filter.
    keys_per_lane: f64,
}

impl FilterSize {
    /// Makes the size with this rate of false positives; from 1.0 on, no filter. Rates below a
    /// millionth are not reached, since lanes would be almost empty.
    pub(crate) fn for_rate(false_positives: f64) -> Self {
        if false_positives.is_nan() || false_positives >= 1.0 {
            return FilterSize {
                keys_per_lane: f64::INFINITY,
            };
        }
        let wanted = false_positives.max(1e-6);
        // The rate grows with the number of keys.
        let (mut low, mut high) = (0.0, 256.0);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if false_positive_rate(middle) <= wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        FilterSize { keys_per_lane: low }
    }

    /// Returns `true` if there are filters at all.
    pub(crate) fn makes_filters(self) -> bool {
        self.keys_per_lane.is_finite()
    }

    fn lanes(self, keys: usize) -> usize {
        if self.makes_filters() {
            // The bound is the limit of `lane_of`. Above it are filters of 128 GiB.
            (keys as f64 / self.keys_per_lane)
                .ceil()
                .min(f64::from(u32::MAX)) as usize
        } else {
            0
        }
    }

    /// Returns the bytes of the filter of this many keys, about.
    pub(crate) fn bytes(self, keys: usize) -> usize {
        self.lanes(keys) * LANE_BYTES
    }
}

/// Returns the rate of false positives if this many keys share a lane on average. Keys choose lanes
/// at random, so the number of keys of a lane has a Poisson distribution, and the rate is the mean
/// over it.
fn false_positive_rate(keys_per_lane: f64) -> f64 {
    let mut probability = (-keys_per_lane).exp();
    let mut clear = 1.0;
    let mut rate = 0.0;
    let most = keys_per_lane + 12.0 * keys_per_lane.sqrt() + 20.0;
    for keys in 1..=most as u32 {
        probability *= keys_per_lane / f64::from(keys);
        clear *= 31.0 / 32.0;
        rate += probability * (1.0_f64 - clear).powi(8);
    }
    rate
}

/// A filter of some keys. Without lanes it knows nothing, and passes all keys.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    lanes: SharedSlice<Lane>,
}

impl Filter {
    /// Makes the filter of the keys with these hashes.
    pub(crate) fn new(hashes: &[u64], size: FilterSize) -> Self {
        let mut lanes = vec![Lane([0; 8]); size.lanes(hashes.len())];
        if !lanes.is_empty() {
            for &hash in hashes {
                let lane = &mut lanes[lane_of(hash, size.lanes(hashes.len()))];
                let bits = Lane::of(hash);
                lane.0
                    .iter_mut()
                    .zip(bits.0)
                    .for_each(|(word, bit)| *word |= bit);
            }
        }
        Filter {
            lanes: lanes.as_slice().into(),
        }
    }

    /// Returns `true` if the key with this hash may be there. O(1), one cache line.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        match self.lanes.get(lane_of(hash, self.lanes.len())) {
            Some(lane) => lane.has(&Lane::of(hash)),
            None => true,
        }
    }

    /// Appends the number of lanes, and their words.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.lanes.len() as u64);
        let words = self.lanes.iter().flat_map(|lane| lane.0);
        out.extend(words.flat_map(u32::to_le_bytes));
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let count = decoder.count()?;
        let bytes = count
            .checked_mul(LANE_BYTES)
            .filter(|_| u32::try_from(count).is_ok());
        let bytes = decoder.take(bytes.ok_or(Damaged("has too large a filter"))?)?;
        let (words, _) = bytes.as_chunks::<4>();
        let (lanes, _) = words.as_chunks::<8>();
        let lanes = lanes
            .iter()
            .map(|words| Lane(words.map(u32::from_le_bytes)));
        Ok(Filter {
            lanes: lanes.collect(),
        })
    }

    /// Returns the bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.lanes.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(from: u64, count: u64) -> Vec<u64> {
        let keys = from..from + count;
        keys.map(|key| key_hash(&key.to_be_bytes())).collect()
    }

    #[test]
    fn the_rate_of_false_positives_is_the_one_wanted() {
        for (wanted, keys) in [
            (0.5, 1000),
            (0.1, 3000),
            (0.01, 3000),
            (0.01, 200_000),
            (0.001, 20_000),
            (0.0001, 20_000),
        ] {
            let size = FilterSize::for_rate(wanted);
            let there = hashes(0, keys);
            let filter = Filter::new(&there, size);
            assert!(there.iter().all(|&hash| filter.may_contain(hash)));
            let tries = 1_000_000;
            let passed = hashes(1 << 40, tries);
            let passed = passed
                .iter()
                .filter(|&&hash| filter.may_contain(hash))
                .count();
            let rate = passed as f64 / tries as f64;
            assert!(
                (0.7..1.2).contains(&(rate / wanted)),
                "{rate} instead of {wanted}"
            );
        }
    }

    #[test]
    fn one_percent_takes_less_than_eleven_bits_a_key() {
        let bytes = FilterSize::for_rate(0.01).bytes(1_000_000);
        assert!((1_300_000..1_375_000).contains(&bytes), "{bytes}");
        assert_eq!(FilterSize::for_rate(1.0).bytes(1_000_000), 0);
        assert_eq!(FilterSize::for_rate(f64::NAN).bytes(1_000_000), 0);
        let most = FilterSize::for_rate(-1.0).bytes(1_000_000);
        assert!(most > bytes && most < 10 * bytes, "{most}");
    }

    #[test]
    fn no_filter_passes_everything() {
        let filter = Filter::new(&hashes(0, 10), FilterSize::for_rate(1.0));
        assert!(filter.memory() <= 64);
        assert!(hashes(10, 10).iter().all(|&hash| filter.may_contain(hash)));
    }

    #[test]
    fn encoded_filters_are_decoded() {
        let filter = Filter::new(&hashes(0, 100), FilterSize::for_rate(0.01));
        let mut bytes = Vec::new();
        filter.encode(&mut bytes);
        let mut decoder = Decoder::new(&bytes);
        assert_eq!(Filter::decode(&mut decoder).as_ref(), Ok(&filter));
        assert_eq!(decoder.end(), Ok(()));
        assert!(Filter::decode(&mut Decoder::new(&bytes[..bytes.len() - 1])).is_err());
    }

    /// An example of the specification of Parquet would be better, but it has none; the bits of a
    /// hash with known products are as good.
    #[test]
    fn bits_are_those_of_the_specification() {
        let bits = Lane::of(0xffff_ffff_0000_0001);
        assert_eq!(bits.0, SALT.map(|salt| 1 << (salt >> 27)));
        assert_eq!(bits.0[0], 1 << 8);
        assert_eq!(Lane::of(0).0, [1; 8]);
        assert_eq!(lane_of(0x8000_0000_0000_0000, 10), 5);
        assert_eq!(lane_of(u64::MAX, 10), 9);
    }
}
