//! A counter that many threads can change without sharing a cache line.
//!
//! A single shared word limits a whole machine to some ten million changes a second, however many
//! processors it has. Here every thread adds to one of several words, each on its own cache line,
//! and a reader of the total adds them up. Good for numbers that change all the time and are read
//! now and then, such as the lookups of a cache; bad for numbers that are read as often as they
//! change, and for those that must be exact at some moment, for which there is
//! [`census`](crate::census).

use crate::cache_padded::CachePadded;
use crate::shim::atomic::{AtomicI64, Ordering};
use crate::thread;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// Largest number of shards: more cost more memory and summing than they save in sharing.
const MAX_SHARDS: usize = 64;

/// A sum spread over one shard for each processor (a power of two, at most 64).
#[derive(Debug)]
pub struct ShardedCounter {
    shards: Box<[CachePadded<AtomicI64>]>,
}

impl ShardedCounter {
    /// Creates a counter at 0.
    pub fn new() -> Self {
        let shards = (0..shard_count()).map(|_| CachePadded(AtomicI64::new(0)));
        Self {
            shards: shards.collect(),
        }
    }

    /// Adds `delta`, which may be negative. Atomic, O(1), wait-free where the processor has an
    /// atomic add. Wraps around at the limits of 64 bits.
    #[inline]
    pub fn add(&self, delta: i64) {
        let shard = thread_number() & (self.shards.len() - 1);
        // Relaxed: the counter publishes no other data.
        self.shards[shard].fetch_add(delta, Ordering::Relaxed);
    }

    /// Returns the total. Exact when no `add` is running; otherwise it belongs to no single moment,
    /// and is off by at most the concurrent changes. O(number of shards).
    pub fn sum(&self) -> i64 {
        self.shards.iter().fold(0, |sum: i64, shard| {
            sum.wrapping_add(shard.load(Ordering::Relaxed))
        })
    }

    /// Returns the bytes of memory held besides the counter itself.
    pub fn bytes(&self) -> usize {
        std::mem::size_of_val(&*self.shards)
    }
}

impl Default for ShardedCounter {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the number of shards: one for each processor, rounded up to a power of two, and at most
/// 64.
pub fn shard_count() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let processors = thread::processors();
        // Instrumented runs should represent large machines.
        let processors = if cfg!(counted) {
            MAX_SHARDS
        } else {
            processors
        };
        processors.next_power_of_two().min(MAX_SHARDS)
    })
}

/// Returns a small number of this thread, assigned in the order of first use, so that live threads
/// spread evenly over the shards.
#[inline]
pub fn thread_number() -> usize {
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(next_thread_number());
        }
        number.get()
    })
}

#[cold]
fn next_thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) & (usize::MAX >> 1)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn sums_the_additions_of_all_threads() {
        let counter = ShardedCounter::new();
        thread::scope(|scope| {
            for thread in 0..8 {
                let counter = &counter;
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        counter.add(thread);
                        counter.add(-1);
                    }
                });
            }
        });
        assert_eq!(counter.sum(), 10_000 * (28 - 8));
    }

    #[test]
    fn shards_share_no_cache_line() {
        let counter = ShardedCounter::new();
        assert!(counter.shards.len().is_power_of_two());
        assert_eq!(counter.bytes(), counter.shards.len() * 128);
    }

    #[test]
    fn wraps_instead_of_panicking() {
        let counter = ShardedCounter::new();
        counter.add(i64::MAX);
        counter.add(1);
        assert_eq!(counter.sum(), i64::MIN);
    }
}
