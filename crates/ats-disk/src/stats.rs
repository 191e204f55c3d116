//! Counters of an open store.

use ats_sync::ShardedCounter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters since the store was opened. Those that writers touch are written by the leader of a
/// group only.
#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) groups: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) batch_bytes: AtomicU64,
    pub(crate) journal_bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) compaction_read_bytes: AtomicU64,
    pub(crate) compaction_written_bytes: AtomicU64,
    pub(crate) refused_merges: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) failed_removals: AtomicU64,
    pub(crate) background_errors: AtomicU64,
    pub(crate) stalls: AtomicU64,
    pub(crate) stalled_ns: AtomicU64,
    pub(crate) longest_stall_ns: AtomicU64,
    /// The number of lookups.
    pub(crate) reads: ShardedCounter,
    /// Number of keys without a value that walks have passed.
    pub(crate) passed: ShardedCounter,
    /// The number of lookups of a key that had 2 entries to be merged, up to 4, and so on: 2, 3 or
    /// 4, 5 to 8, and so on.
    pub(crate) chains: [AtomicU64; 8],
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Stats {
    pub(crate) fn on_group(&self, batches: usize, bytes: usize, written: u64) {
        add(&self.groups, 1);
        add(&self.batches, batches as u64);
        add(&self.batch_bytes, bytes as u64);
        add(&self.journal_bytes, written);
    }

    pub(crate) fn on_sync(&self) {
        add(&self.syncs, 1);
    }

    pub(crate) fn on_flush(&self, bytes: u64) {
        add(&self.flushes, 1);
        add(&self.flushed_bytes, bytes);
    }

    pub(crate) fn on_compaction(&self, read: u64, written: u64) {
        add(&self.compactions, 1);
        add(&self.compaction_read_bytes, read);
        add(&self.compaction_written_bytes, written);
    }

    pub(crate) fn on_refused_merges(&self, count: usize) {
        add(&self.refused_merges, count as u64);
    }

    pub(crate) fn on_expired(&self) {
        add(&self.expired, 1);
    }

    pub(crate) fn on_failed_removal(&self) {
        add(&self.failed_removals, 1);
    }

    pub(crate) fn on_background_error(&self) {
        add(&self.background_errors, 1);
    }

    pub(crate) fn on_stall(&self, wait: Duration) {
        let wait = wait.as_nanos() as u64;
        add(&self.stalls, 1);
        add(&self.stalled_ns, wait);
        self.longest_stall_ns.fetch_max(wait, Ordering::Relaxed);
    }

    /// Counts a read whose value was merged of so many entries. A key with one entry costs nothing
    /// here.
    #[inline]
    pub(crate) fn on_read(&self, entries: usize) {
        if entries > 1 {
            let class = (usize::BITS - (entries - 1).leading_zeros()) as usize - 1;
            add(&self.chains[class.min(self.chains.len() - 1)], 1);
        }
    }
}
