//! The caches that are compared, behind one small trait. They map numbers to numbers.

use ats::Limited;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

/// A cache from numbers to numbers that threads share.
pub trait Cache: Send + Sync + 'static {
    /// The name in the table of results.
    const NAME: &'static str;

    /// Makes a cache with room for `most` pairs.
    fn with_room(most: usize) -> Self;

    /// Returns the value of a key.
    fn get(&self, key: u64) -> Option<u64>;

    /// Sets the value of a key.
    fn put(&self, key: u64, value: u64);

    /// Does work that the cache has put off.
    fn settle(&self) {}
}

/// The hash map of ats with a bound.
pub struct Bounded(ats::HashMap<u64, u64, Limited>);

impl Cache for Bounded {
    const NAME: &'static str = "ats";

    fn with_room(most: usize) -> Self {
        Bounded(ats::HashMap::builder().max_len(most).build())
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(key)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.put(key, value);
    }
}

/// The synchronous cache of the crate `moka`: `TinyLFU`, with the hash function of the other peers.
pub struct Moka(moka::sync::Cache<u64, u64, foldhash::fast::RandomState>);

impl Cache for Moka {
    const NAME: &'static str = "moka";

    fn with_room(most: usize) -> Self {
        let builder = moka::sync::Cache::builder().max_capacity(most as u64);
        Moka(builder.build_with_hasher(foldhash::fast::RandomState::default()))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }

    fn settle(&self) {
        self.0.run_pending_tasks();
    }
}

type Quickly =
    quick_cache::sync::Cache<u64, u64, quick_cache::UnitWeighter, foldhash::fast::RandomState>;

/// The synchronous cache of the crate `quick_cache`: S3-FIFO.
pub struct Quick(Quickly);

impl Cache for Quick {
    const NAME: &'static str = "quick_cache";

    fn with_room(most: usize) -> Self {
        Quick(Quickly::with(
            most,
            most as u64,
            quick_cache::UnitWeighter,
            foldhash::fast::RandomState::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        ))
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        self.0.get(&key)
    }

    #[inline]
    fn put(&self, key: u64, value: u64) {
        self.0.insert(key, value);
    }
}

/// The keys by their last use.
#[derive(Default)]
struct Uses {
    /// The value of a key, and the time of its last use.
    pairs: HashMap<u64, (u64, u64)>,
    order: BTreeMap<u64, u64>,
    time: u64,
}

/// An exact LRU behind a lock, for its hits only.
pub struct Lru {
    uses: Mutex<Uses>,
    most: usize,
}

impl Lru {
    fn touch(&self, key: u64, value: Option<u64>) -> Option<u64> {
        let mut uses = self.uses.lock().expect("no panic");
        let old = uses.pairs.get(&key).copied();
        let value = value.or(old.map(|old| old.0))?;
        uses.time += 1;
        let time = uses.time;
        if let Some((_, last)) = old {
            uses.order.remove(&last);
        }
        uses.pairs.insert(key, (value, time));
        uses.order.insert(time, key);
        if uses.pairs.len() > self.most
            && let Some((_, oldest)) = uses.order.pop_first()
        {
            uses.pairs.remove(&oldest);
        }
        Some(value)
    }
}

impl Cache for Lru {
    const NAME: &'static str = "LRU";

    fn with_room(most: usize) -> Self {
        Lru {
            uses: Mutex::default(),
            most,
        }
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.touch(key, None)
    }

    fn put(&self, key: u64, value: u64) {
        self.touch(key, Some(value));
    }
}
