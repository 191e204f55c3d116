//! The Bf-Tree of the crate `bf-tree`, cache-only.
//!
//! All its pages are in one buffer, and there is no file. When the buffer is full it evicts a page,
//! and the records of the page are lost. So the buffer is larger than any workload needs, and a
//! tree that has evicted a page panics when it is dropped.

use crate::maps::Map;
use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField};
use std::thread;

/// The size of the buffer, a power of two. Ascending inserts leave pages half full, so that 4
/// million records of 16 bytes take 200 MiB of it. Memory that was never used is not taken.
const BUFFER: usize = 512 << 20;

/// A tree that has its buffer only. Keys are eight bytes, most significant first; the value is one
/// word.
pub struct CacheOnly(BfTree);

impl Default for CacheOnly {
    fn default() -> Self {
        // All else is as it has it by default.
        let config = Config::new(":cache:", BUFFER);
        Self(BfTree::with_config(config, None).expect("the configuration is valid"))
    }
}

impl Drop for CacheOnly {
    /// # Panics
    /// If a page was evicted, since records were lost then.
    fn drop(&mut self) {
        let buffer = self.0.get_buffer_metrics();
        let lossless = buffer.evicting_addr == 0;
        assert!(lossless || thread::panicking(), "a page was evicted");
    }
}

impl Map for CacheOnly {
    const NAME: &'static str = "BfTree";

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        let mut value = [0; 8];
        match self.0.read(&key.to_be_bytes(), &mut value) {
            LeafReadResult::Found(_) => Some(u64::from_ne_bytes(value)),
            LeafReadResult::Deleted | LeafReadResult::NotFound => None,
            LeafReadResult::InvalidKey => unreachable!("eight bytes are a valid key"),
        }
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        let result = self.0.insert(&key.to_be_bytes(), &value.to_ne_bytes());
        assert_eq!(result, LeafInsertResult::Success);
    }

    /// The tree does not report whether the key existed.
    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.0.delete(&key.to_be_bytes());
        true
    }

    /// The tree has no guard for several lookups.
    fn lookups(&self, keys: &[u32]) -> u64 {
        let values = keys.iter().filter_map(|key| self.lookup(u64::from(*key)));
        values.fold(0, u64::wrapping_add)
    }

    fn sum_above(&self, key: u64, count: usize) -> Option<(u64, usize)> {
        // A scan begins with the key itself.
        let from = (key + 1).to_be_bytes();
        let scan = self.0.scan_with_count(&from, count, ScanReturnField::Value);
        let mut scan = scan.expect("eight bytes are a valid key");
        let (mut sum, mut seen) = (0_u64, 0);
        let mut value = [0; 8];
        while scan.next(&mut value).is_some() {
            sum = sum.wrapping_add(u64::from_ne_bytes(value));
            seen += 1;
        }
        Some((sum, seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::value_of;

    /// The number of records that ascending inserts have.
    const KEYS: u32 = 1 << 20;

    #[test]
    fn keys_of_two_threads_are_all_found() {
        let map = CacheOnly::default();
        thread::scope(|scope| {
            for first in 0..2 {
                let (map, keys) = (&map, (first..KEYS).step_by(2));
                scope.spawn(move || keys.for_each(|key| map.insert(key.into(), value_of(key))));
            }
        });
        let mut above = 0_u64;
        for key in (0..KEYS).rev() {
            let count = (KEYS - key) as usize;
            if key % 10_000 == 0 {
                assert_eq!(map.sum_above(key.into(), count), Some((above, count - 1)));
            }
            let value = value_of(key);
            assert_eq!(map.lookup(key.into()), Some(value), "{key}");
            above = above.wrapping_add(value);
        }
    }

    #[test]
    fn removed_keys_are_neither_found_nor_visited() {
        let map = CacheOnly::default();
        (0..1000).for_each(|key| map.insert(key, key));
        (0..2000).filter(|key| key % 2 == 1).for_each(|key| {
            map.remove(key);
        });
        assert_eq!(map.lookup(500), Some(500));
        assert_eq!(map.lookup(501), None);
        assert_eq!(map.sum_above(500, 2), Some((502 + 504, 2)));
        map.insert(501, 7);
        assert_eq!(map.lookup(501), Some(7));
        assert_eq!(map.sum_above(500, 2), Some((7 + 502, 2)));
    }
}
