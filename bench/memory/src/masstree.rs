//! The tree of the crate `masstree`: a trie of B+trees, whose readers take no lock.

use crate::keys::bytes_of;
use crate::maps::Map;
use masstree::{MassTree, RangeBound};

/// A tree whose keys have `LENGTH` bytes; values lie in its leaves.
pub struct Trie<const LENGTH: usize>(MassTree<u64>);

impl<const LENGTH: usize> Default for Trie<LENGTH> {
    fn default() -> Self {
        Self(MassTree::new())
    }
}

impl<const LENGTH: usize> Map for Trie<LENGTH> {
    const NAME: &'static str = "masstree";

    #[inline]
    fn lookup(&self, key: u64) -> Option<u64> {
        let guard = self.0.guard();
        self.0.get_with_guard(&bytes_of::<LENGTH>(key), &guard)
    }

    #[inline]
    fn insert(&self, key: u64, value: u64) {
        let guard = self.0.guard();
        self.0
            .insert_with_guard(&bytes_of::<LENGTH>(key), value, &guard);
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        let guard = self.0.guard();
        let removed = self.0.remove_with_guard(&bytes_of::<LENGTH>(key), &guard);
        removed.expect("the tree removes").is_some()
    }

    fn lookups(&self, keys: &[u32]) -> u64 {
        let guard = self.0.guard();
        let values = keys.iter().filter_map(|key| {
            self.0
                .get_with_guard(&bytes_of::<LENGTH>(u64::from(*key)), &guard)
        });
        values.fold(0, u64::wrapping_add)
    }

    fn sum_above(&self, key: u64, count: usize) -> Option<(u64, usize)> {
        let (mut sum, mut seen) = (0_u64, 0);
        let from = bytes_of::<LENGTH>(key);
        let visit = |value: u64| {
            sum = sum.wrapping_add(value);
            seen += 1;
            seen < count
        };
        self.0.scan_values(
            RangeBound::Excluded(&from),
            RangeBound::Unbounded,
            visit,
            &self.0.guard(),
        );
        Some((sum, seen))
    }
}
