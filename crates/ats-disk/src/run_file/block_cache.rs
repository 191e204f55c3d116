//! The cache of blocks, and of the parts that index them.
//!
//! One cache serves all files of a store, or of all stores that [share
//! memory](crate::state::memory). It has a budget in bytes, which it exceeds only by the items that
//! readers hold at the moment. `quick_cache` decides which items it lets go (a form of CLOCK-Pro,
//! which keeps items that are read again when something large is read once).
//!
//! Parts are looked at for each key that is looked up, and are a hundredth of the blocks that they
//! describe. So a quarter of the budget is for parts that their files hold themselves, where they
//! are found without a lookup in tables that all threads share.
//!
//! Files that are open or being written need memory, too: for the index of parts, and for the
//! buffers of compactions. That is [`Reserved`], and taken from the budget, of which it leaves at
//! least a half to blocks and parts. So a budget says how much a store takes besides its memtables.
//!
//! A key of the cache is the number of an open file in the process, which is not given again, and
//! an offset. So the items of a file that was closed are never found; they make room for other
//! items in time.

use super::block::Block;
use super::part::Part;
use ats_sync::ShardedCounter;
use ats_sync::thread::processors;
use parking_lot::Mutex;
use quick_cache::sync::DefaultLifecycle;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Bytes that the cache takes for an item besides the item, about: its slot in the tables, and
/// half a slot, since as many items again are remembered that were let go lately.
const ITEM_BYTES: usize = 144;
/// Divisor of the weight of an item that is added to it. Items that come and go leave room in the
/// slabs that later ones do not fill, up to a seventh of all.
const SLACK_SHARE: usize = 6;
/// The largest part of the budget of a shard that an item may take: a larger one would push out all
/// else.
const MAX_SHARE: usize = 4;
/// The approximate size of an item; from this follows the expected number of items.
const USUAL_BYTES: usize = 4 << 10;
/// A shard has this much at least, so that some blocks fit. A smaller cache has one shard.
const MIN_SHARD_BYTES: usize = 1 << 20;
/// Divisor of the budget that bounds the parts that files hold.
const HELD_SHARE: usize = 4;
/// Divisor of the budget that bounds reserved memory.
const RESERVED_SHARE: usize = 2;
/// Number of steps in which the budget of the tables follows held and reserved memory.
const STEPS: usize = 64;

/// An item of the cache.
#[derive(Clone)]
pub(crate) enum Cached {
    Block(Block),
    Part(Arc<Part>),
}

impl Cached {
    /// Returns the bytes of memory.
    fn memory(&self) -> usize {
        let bytes = match self {
            Cached::Block(block) => block.memory(),
            Cached::Part(part) => part.memory(),
        };
        ITEM_BYTES + bytes + bytes / SLACK_SHARE
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CacheKey {
    file: u64,
    offset: u64,
}

#[derive(Clone)]
struct Memory;

impl Weighter<CacheKey, Cached> for Memory {
    fn weight(&self, _key: &CacheKey, cached: &Cached) -> u64 {
        cached.memory() as u64
    }
}

/// The lookups of a store in its cache, and the memory that it has there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheStatistics {
    /// Lookups that found something.
    pub(crate) hits: u64,
    /// The number of lookups that read the file because the item was not there.
    pub(crate) misses: u64,
    /// Bytes that are held and reserved, and those of items that no other store may use.
    pub(crate) bytes: u64,
    /// Items that no other store may use.
    pub(crate) items: usize,
}

/// The items of a cache, and its budget.
struct Items {
    items: quick_cache::sync::Cache<CacheKey, Cached, Memory>,
    budget: AtomicUsize,
    /// Bytes that files hold.
    held: AtomicUsize,
    /// Bytes that are needed besides.
    reserved: AtomicUsize,
}

/// The cache of the stores that share memory, as long as there are some.
static SHARED: Mutex<Weak<Items>> = Mutex::new(Weak::new());

/// The cache of a store, which other stores may share. See the [module](self).
pub(crate) struct BlockCache {
    items: Arc<Items>,
    is_shared: bool,
    /// Bytes that files of this store hold.
    held: AtomicUsize,
    /// Bytes that this store needs besides.
    reserved: AtomicUsize,
    hits: ShardedCounter,
    misses: ShardedCounter,
}

impl Items {
    fn new(budget: usize) -> Self {
        let shards = (4 * processors()).min(budget / MIN_SHARD_BYTES).max(1);
        // Rounded down, as `quick_cache` rounds up.
        let shards = (shards + 1).next_power_of_two() / 2;
        let options = OptionsBuilder::new()
            .shards(shards)
            // The cache makes fewer shards if each would have fewer than 32 items.
            .estimated_items_capacity((budget / USUAL_BYTES).max(32 * shards))
            .weight_capacity(budget as u64)
            .build()
            .expect("both capacities are given");
        let items = quick_cache::sync::Cache::with_options(
            options,
            Memory,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        );
        Items {
            items,
            budget: AtomicUsize::new(budget),
            held: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
        }
    }

    fn budget(&self) -> usize {
        self.budget.load(Ordering::Relaxed)
    }

    /// Returns the most bytes of an item that is kept.
    fn max_bytes(&self) -> usize {
        self.budget() / self.items.num_shards() / MAX_SHARE
    }

    /// Leaves to the tables the budget that is neither held nor reserved, in large steps.
    fn follow(&self, before: usize, after: usize) {
        let step = (self.budget() / STEPS).max(1);
        if before.div_ceil(step) != after.div_ceil(step) {
            self.set_capacity();
        }
    }

    fn set_capacity(&self) {
        let budget = self.budget();
        let step = (budget / STEPS).max(1);
        let reserved = self.reserved.load(Ordering::Relaxed);
        let reserved = reserved.min(budget / RESERVED_SHARE);
        let taken = self.held.load(Ordering::Relaxed) + reserved;
        let taken = taken.div_ceil(step) * step;
        self.items.set_capacity(budget.saturating_sub(taken) as u64);
    }

    /// Returns the bytes of memory.
    fn bytes(&self) -> u64 {
        self.items.weight()
            + self.held.load(Ordering::Relaxed) as u64
            + self.reserved.load(Ordering::Relaxed) as u64
    }
}

/// Returns the bytes of memory of the cache that stores share.
pub(crate) fn shared_bytes() -> u64 {
    let shared = SHARED.lock().upgrade();
    shared.map_or(0, |items| items.bytes())
}

/// Gives the cache that stores share another budget.
pub(crate) fn set_shared_budget(budget: usize) {
    let shared = SHARED.lock().upgrade();
    if let Some(items) = shared {
        items.budget.store(budget, Ordering::Relaxed);
        items.set_capacity();
    }
}

impl BlockCache {
    /// Makes a cache with a budget in bytes, for one store; with 0, it keeps nothing.
    pub(crate) fn new(budget: usize) -> Self {
        BlockCache::of(Arc::new(Items::new(budget)), false)
    }

    /// Makes the cache that stores share. `budget` is that of the first one.
    pub(crate) fn new_shared(budget: usize) -> Self {
        let mut shared = SHARED.lock();
        let items = shared.upgrade().unwrap_or_else(|| {
            let items = Arc::new(Items::new(budget));
            *shared = Arc::downgrade(&items);
            items
        });
        drop(shared);
        BlockCache::of(items, true)
    }

    fn of(items: Arc<Items>, is_shared: bool) -> Self {
        BlockCache {
            items,
            is_shared,
            held: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            hits: ShardedCounter::new(),
            misses: ShardedCounter::new(),
        }
    }

    /// Returns a number for a file that is opened.
    pub(crate) fn next_file() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the item of a file at an offset.
    #[inline]
    pub(crate) fn get(&self, file: u64, offset: u64) -> Option<Cached> {
        let found = self.items.items.get(&CacheKey { file, offset });
        if found.is_some() {
            self.hits.add(1);
        }
        found
    }

    /// Counts a read of a file that followed a miss. A lookup that would have waited has read
    /// nothing, and is made again: it is no miss.
    pub(crate) fn on_read(&self) {
        self.misses.add(1);
    }

    /// Keeps a block or a part at an offset of a file, unless it is too large.
    pub(crate) fn insert(&self, file: u64, offset: u64, cached: Cached) {
        if cached.memory() <= self.items.max_bytes() {
            self.items.items.insert(CacheKey { file, offset }, cached);
        }
    }

    /// Counts a lookup that has found a part that its file holds.
    #[inline]
    pub(crate) fn on_held(&self) {
        self.hits.add(1);
    }

    /// Takes a share of the budget for a part that a file is to hold, if there is enough.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let most = self.items.budget() / HELD_SHARE;
        let held = self
            .items
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|held| *held <= most)
            });
        if let Ok(before) = held {
            self.held.fetch_add(bytes, Ordering::Relaxed);
            self.items.follow(before, before + bytes);
        }
        held.is_ok()
    }

    /// Gives back a share of the budget.
    pub(crate) fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        let before = self.items.held.fetch_sub(bytes, Ordering::Relaxed);
        self.items.follow(before, before - bytes);
    }

    pub(crate) fn statistics(&self) -> CacheStatistics {
        let items = &self.items.items;
        let (weight, items) = if self.is_shared {
            (0, 0)
        } else {
            (items.weight(), items.len())
        };
        CacheStatistics {
            hits: self.hits.sum() as u64,
            misses: self.misses.sum() as u64,
            bytes: weight
                + self.held.load(Ordering::Relaxed) as u64
                + self.reserved.load(Ordering::Relaxed) as u64,
            items,
        }
    }
}

/// Memory that is needed besides kept items, reserved until this is dropped.
pub(crate) struct Reserved {
    cache: Arc<BlockCache>,
    bytes: usize,
}

impl Reserved {
    /// Reserves so many bytes.
    pub(crate) fn new(cache: &Arc<BlockCache>, bytes: usize) -> Self {
        let mut reserved = Reserved {
            cache: Arc::clone(cache),
            bytes: 0,
        };
        reserved.set(bytes);
        reserved
    }

    /// Reserves so many bytes instead.
    #[inline]
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.change(bytes);
        }
    }

    #[cold]
    fn change(&mut self, bytes: usize) {
        // Wraps where it becomes less.
        let more = bytes.wrapping_sub(self.bytes);
        self.cache.reserved.fetch_add(more, Ordering::Relaxed);
        let items = &self.cache.items;
        let before = items.reserved.fetch_add(more, Ordering::Relaxed);
        self.bytes = bytes;
        items.follow(before, before.wrapping_add(more));
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: usize) -> Cached {
        // A value, no records, and one restart point.
        let mut content = vec![0; bytes - 4];
        content.extend(1u32.to_le_bytes());
        Cached::Block(Block::new(&content).expect("it has a restart point"))
    }

    #[test]
    fn the_budget_is_kept() {
        for budget in [0, 1, 4096, 40_000, 1 << 20, 10_000_000] {
            let cache = BlockCache::new(budget);
            let before = cache.items.items.capacity();
            assert!(before as usize <= budget + cache.items.items.num_shards());
            for offset in 0..4000 {
                cache.insert(1, offset, block(4096));
                assert!(cache.statistics().bytes <= before);
            }
            let held = cache.statistics();
            assert_eq!(held.bytes, (held.items * block(4096).memory()) as u64);
            if budget >= 40_000 {
                assert!(held.bytes as usize > budget / 2, "{held:?} of {budget}");
            }
        }
    }

    #[test]
    fn memory_of_files_is_part_of_the_budget() {
        let budget = 10_000_000;
        let cache = BlockCache::new(budget);
        let fill = || {
            for offset in 0..4000 {
                cache.insert(1, offset, block(4096));
            }
            cache.statistics().bytes as usize
        };
        assert!(fill() <= budget);
        let mut held = 0;
        while cache.hold(1000) {
            held += 1000;
            assert!(held <= budget / HELD_SHARE);
        }
        assert!(held > budget / HELD_SHARE - 1000);
        assert!(cache.hold(0) && !cache.hold(usize::MAX));
        assert!(cache.statistics().bytes as usize <= budget);
        assert!(fill() <= budget && cache.items.items.weight() as usize > budget / 2);
        cache.release(held);
        assert!(fill() > budget - budget / STEPS - (1 << 20));
        assert!(!BlockCache::new(0).hold(1));
    }

    #[test]
    fn reserved_memory_reduces_cached_blocks() {
        let budget = 10_000_000;
        let cache = Arc::new(BlockCache::new(budget));
        let fill = || {
            for offset in 0..4000 {
                cache.insert(1, offset, block(4096));
            }
            cache.items.items.weight() as usize
        };
        let all = fill();
        let mut reserved = Reserved::new(&cache, 1_000_000);
        let more = Reserved::new(&cache, 2_000_000);
        assert!(cache.items.items.weight() as usize <= budget - 3_000_000);
        reserved.set(500_000);
        assert!(fill() > budget - 2_500_000 - budget / STEPS - (1 << 20));
        // Half of the budget is left, however much is reserved.
        reserved.set(usize::MAX / 2);
        assert!((budget / 4..=budget / 2).contains(&fill()));
        drop(more);
        drop(reserved);
        assert_eq!(cache.reserved.load(Ordering::Relaxed), 0);
        assert_eq!(fill(), all);
    }

    #[test]
    fn small_caches_are_not_divided() {
        assert_eq!(BlockCache::new(100_000).items.items.num_shards(), 1);
        let cache = BlockCache::new(3 << 20);
        assert!(cache.items.items.num_shards() <= 2);
        assert!(cache.items.items.shard_capacity() >= MIN_SHARD_BYTES as u64);
    }

    #[test]
    fn large_blocks_are_not_cached() {
        let cache = BlockCache::new(1 << 20);
        cache.insert(1, 0, block(4096));
        cache.insert(1, 1, block(1 << 19));
        assert!(cache.get(1, 0).is_some());
        assert!(cache.get(1, 1).is_none());
    }

    #[test]
    fn files_are_told_apart_and_lookups_counted() {
        let cache = BlockCache::new(1 << 20);
        let (a, b) = (BlockCache::next_file(), BlockCache::next_file());
        cache.insert(a, 5, block(100));
        assert!(cache.get(a, 5).is_some());
        assert!(cache.get(a, 6).is_none());
        assert!(cache.get(b, 5).is_none());
        cache.on_read();
        let CacheStatistics {
            hits,
            misses,
            items,
            ..
        } = cache.statistics();
        assert_eq!((hits, misses, items), (1, 1, 1));
    }

    #[test]
    fn stores_share_a_cache_as_long_as_there_are_some() {
        let stores = [(); 2].map(|()| BlockCache::new_shared(1 << 20));
        let (a, b) = (BlockCache::next_file(), BlockCache::next_file());
        for (store, file) in stores.iter().zip([a, b]) {
            store.insert(file, 0, block(1000));
            assert!(store.get(file, 0).is_some());
            assert!(store.hold(5000));
            let CacheStatistics { hits, bytes, .. } = store.statistics();
            assert_eq!((hits, bytes), (1, 5000));
        }
        let both = 10_000 + 2 * block(1000).memory() as u64;
        assert_eq!(shared_bytes(), both);
        set_shared_budget(2000);
        assert!(shared_bytes() < both);
        assert!(!stores[0].hold(1));
        for store in &stores {
            store.release(5000);
        }
        drop(stores);
        assert_eq!(shared_bytes(), 0);
    }
}
