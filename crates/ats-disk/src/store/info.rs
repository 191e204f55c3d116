//! Figures that a store tells of itself.

use crate::engine::Engine;
use crate::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The figures of a store. The counters are since it was opened.
///
/// ```
/// # use ats_disk::{DiskStore, Options};
/// # let directory = std::env::temp_dir().join(format!("ats-disk-info-{}", std::process::id()));
/// # let store = DiskStore::open(&directory, Options::new())?;
/// store.put(b"pear", b"40")?;
/// assert_eq!(store.info().memtable_keys, 1);
/// store.flush()?;
/// assert_eq!(store.info().runs.len(), 1);
/// # drop(store);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Info {
    /// The files, the bytes and the entries of each run, from the newest to the oldest.
    pub runs: Vec<RunInfo>,
    /// The number of them that are being compacted.
    pub compacting: usize,
    /// Bytes of the files of all runs.
    pub file_bytes: u64,
    /// Bytes of memory of the memtables.
    pub memtable_bytes: usize,
    /// Keys in the memtables; those of each are counted.
    pub memtable_keys: usize,
    /// Memtables that wait for being written to runs.
    pub sealed_memtables: usize,
    /// Bytes of memory of blocks, filters and indexes, and of the buffers of compactions; without
    /// the blocks of a cache that stores [share](crate::shared_memory).
    pub cache_bytes: u64,
    /// The number of times that something wanted was in the cache.
    pub cache_hits: u64,
    /// The number of times that it was not, and was read from a file.
    pub cache_misses: u64,
    /// Snapshots that are alive, without scans.
    pub snapshots: usize,
    /// Files that no run has any more, but that snapshots and scans read.
    pub pinned_files: usize,
    /// Their bytes.
    pub pinned_bytes: u64,
    /// Bytes of memtables that are in runs, but that snapshots and scans read.
    pub pinned_memory: usize,
    /// Groups of batches that were written as one.
    pub groups: u64,
    /// Batches that were written.
    pub batches: u64,
    /// Bytes of the batches.
    pub batch_bytes: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// The number of syncs of the journal.
    pub syncs: u64,
    /// Memtables that were written to runs.
    pub flushes: u64,
    /// Bytes that this wrote.
    pub flushed_bytes: u64,
    /// Compactions of runs.
    pub compactions: u64,
    /// Bytes that these read.
    pub compaction_read_bytes: u64,
    /// Bytes that these wrote.
    pub compaction_written_bytes: u64,
    /// Runs beyond as many as there should be.
    pub debt: usize,
    /// The number of times that the values of a key could not be merged when they were written, so
    /// that they are kept apart.
    pub refused_merges: u64,
    /// Records that were found expired while they were written to a run; each once, unless a newer
    /// one had replaced it.
    pub expired: u64,
    /// The number of writes that were delayed.
    pub stalls: u64,
    /// The sum of the delays.
    pub stalled: Duration,
    /// The longest delay.
    pub longest_stall: Duration,
    /// The number of lookups of keys, without walks.
    pub reads: u64,
    /// Keys that were deleted, or whose value counts as missing, that walks have passed one by one.
    pub passed_keys: u64,
    /// The number of values that were read and merged of 2 entries, of up to 4, of up to 8, and so
    /// on; the last also of more.
    pub merged_reads: [u64; 8],
    /// Errors of the background threads, after which they tried again.
    pub background_errors: u64,
    /// The last of them.
    pub last_error: Option<Error>,
    /// The reason why the store is read-only, if it is.
    pub read_only: Option<Error>,
}

/// The figures of a run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunInfo {
    /// The number of its files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Their entries: values, operands and deletes.
    pub entries: u64,
}

impl Info {
    /// Returns the bytes written to files for each byte of a batch; `None` before anything was
    /// written.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.journal_bytes + self.flushed_bytes + self.compaction_written_bytes;
        (self.batch_bytes > 0).then(|| written as f64 / self.batch_bytes as f64)
    }

    /// Blocks, and parts of indexes with their filters, that were looked at for each key that was
    /// looked up, in the cache or on disk; walks and all. `None` before a key was looked up.
    #[must_use]
    pub fn read_amplification(&self) -> Option<f64> {
        let looked_at = self.cache_hits + self.cache_misses;
        (self.reads > 0).then(|| looked_at as f64 / self.reads as f64)
    }

    pub(crate) fn of(engine: &Engine) -> Self {
        let state = &engine.state;
        let version = state.versions.current_arc();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stats = &state.stats;
        let runs: Vec<_> = version
            .runs
            .iter()
            .map(|run| RunInfo {
                files: run.meta.files.len(),
                bytes: run.meta.bytes(),
                entries: run.meta.files.iter().map(|file| file.entries).sum(),
            })
            .collect();
        let (pinned_files, pinned_bytes) = state.obsolete.pinned_files();
        let cache = engine.files.cache.statistics();
        Info {
            file_bytes: runs.iter().map(|run| run.bytes).sum(),
            runs,
            compacting: engine.compactor.runs(),
            memtable_bytes: version.memtables().map(|memtable| memtable.bytes()).sum(),
            memtable_keys: version.memtables().map(|memtable| memtable.len()).sum(),
            sealed_memtables: version.sealed.len(),
            cache_bytes: cache.bytes,
            cache_hits: cache.hits,
            cache_misses: cache.misses,
            snapshots: state.expiry.count(),
            pinned_files,
            pinned_bytes,
            pinned_memory: state.obsolete.pinned_memory(),
            groups: load(&stats.groups),
            batches: load(&stats.batches),
            batch_bytes: load(&stats.batch_bytes),
            journal_bytes: load(&stats.journal_bytes),
            syncs: load(&stats.syncs),
            flushes: load(&stats.flushes),
            flushed_bytes: load(&stats.flushed_bytes),
            compactions: load(&stats.compactions),
            compaction_read_bytes: load(&stats.compaction_read_bytes),
            compaction_written_bytes: load(&stats.compaction_written_bytes),
            debt: state.debt(),
            refused_merges: load(&stats.refused_merges),
            expired: load(&stats.expired),
            stalls: load(&stats.stalls),
            stalled: Duration::from_nanos(load(&stats.stalled_ns)),
            longest_stall: Duration::from_nanos(load(&stats.longest_stall_ns)),
            reads: u64::try_from(stats.reads.sum()).unwrap_or(0),
            passed_keys: u64::try_from(stats.passed.sum()).unwrap_or(0),
            merged_reads: std::array::from_fn(|class| load(&stats.chains[class])),
            background_errors: load(&stats.background_errors),
            last_error: state.status.background_error(),
            read_only: state.status.check_writable().err(),
        }
    }
}
