//! Constants of this crate and of those above that have other values under `loom` or `shuttle`.
//!
//! A checker tries many orders of the same steps. So events that normally take many steps must take
//! few there, or they never happen: nodes are full after a handful of keys, and threads soon stop
//! pausing. Besides, atomics of `loom` are larger than words and must be initialized one by one, so
//! tables of them are short under `loom`.

use std::time::Duration;

/// Defines constants: `NAME: type = value, value under loom, value under shuttle;`
macro_rules! constants {
    ($($(#[$about:meta])* $name:ident: $type:ty = $ordinary:expr, $loom:expr, $shuttle:expr;)*) => {
        $(
            $(#[$about])*
            pub const $name: $type = match (cfg!(loom), cfg!(shuttle)) {
                (true, _) => $loom,
                (_, true) => $shuttle,
                _ => $ordinary,
            };
        )*
    };
}

constants! {
    /// `true` if interleavings are explored. A run must be repeatable then, so nothing may depend
    /// on clocks or random numbers.
    IS_EXPLORED: bool = false, true, true;

    // Waiting. A pause is a step, and repeated pauses explore nothing new.

    /// Pauses of a thread that waits for a lock before it sleeps: about ten microseconds, the cost
    /// of a sleep and a wake-up.
    LOCK_SPINS: u32 = 400, 1, 1;
    /// Pauses of a thread that waits for another one before it yields its processor.
    WAIT_SPINS: u32 = 1000, 1, 1;
    /// Attempts to add up the parts of a census before it closes its gate. Several in a row seldom
    /// all fail.
    GLANCES: u32 = 3, 1, 1;
    /// Pauses of a thread that waits for a group of readers before it sleeps. A thread that pauses
    /// under `loom` does not read old values again. So it does not pause there, and a load that is
    /// too weak is detected.
    READER_GROUP_SPINS: u32 = 400, 0, 1;
    /// Number of times that a group reader checks the gate before it raises the barrier, as in the
    /// papers.
    READ_PATIENCE: u32 = 1_000, 1, 1;

    // Epochs.

    /// Number of retirements after which ripe objects are freed together, which takes a third of
    /// the instructions. One in models, whose threads retire few objects.
    FREE_EVERY: u32 = 32, 1, 1;
    /// Time after a change of the kind of fences in which nothing is freed: some hundred thousand
    /// times as long as a store takes to become visible. A `loom` model lets it pass by joining the
    /// threads that read the old kind.
    QUARANTINE: Duration = Duration::from_secs(1), Duration::ZERO, Duration::from_secs(1);

    // The tree. In models a few keys fill leaves and inner nodes, and a few nodes are many.

    /// Largest number of keys of a leaf.
    LEAF_KEYS: usize = 34, 8, 8;
    /// Largest number of keys of a small leaf.
    SMALL_LEAF_KEYS: usize = 10, 2, 2;
    /// Largest number of separators of an inner node.
    SEPARATORS: usize = 63, 7, 7;
    /// Slots of a thread's key cache: a dozen kilobytes. In models different keys soon share a
    /// slot.
    CACHED_KEYS: usize = 512, 2, 2;
    /// Level below which the nodes of a batch are not prefetched, because such a tree fits into the
    /// cache of a core: a few thousand keys. Trees in models are lower.
    LEAST_APPROACHED_LEVEL: u8 = 2, 1, 1;
    /// Number of nodes visited while a lock is held: about fifty microseconds, if none is cached.
    /// More than on the path to a leaf, and in models fewer than in a base node.
    NODES_HELD: usize = 400, 12, 12;
    /// Number of times that an exact count tries to find a moment without open batch: as long as a
    /// short batch takes.
    MOMENT_ATTEMPTS: usize = 64, 2, 2;
    /// Bits of a position that select the slot in one node of a persistent sequence. With few bits,
    /// few values make several levels.
    SEQUENCE_BITS: u32 = 5, 2, 2;

    // The hash table. Under `loom` each slot and each bucket is an atomic to be initialized.

    /// Binary logarithm of the number of permanent buckets: those of the first segment.
    FIRST_BUCKETS_BITS: u32 = 3, 1, 3;
    /// Number of segments whose addresses are in the directory itself: some hundred buckets.
    NEAR_SEGMENTS: usize = 6, 2, 6;
    /// Largest number of further segments: enough for every address space.
    FAR_SEGMENTS: usize = 39, 2, 39;
    /// Slots in a line of a bucket: with the link to the next line they fill a cache line.
    LINE_SLOTS: usize = 7, 2, 7;
    /// Number of buckets below which the records of several keys are not prefetched, because such a
    /// table fits into the cache of a core: a few thousand keys. Models have few buckets.
    LEAST_APPROACHED_BUCKETS: usize = 1024, 1, 1;
    /// Buckets whose order a thread remembers: seven kilobytes. In models different buckets soon
    /// share an entry.
    CACHED_ORDERS: usize = 64, 2, 2;
    /// Number of buckets below which a stripe is not split. Models have few buckets.
    MIN_BUCKETS_PER_STRIPE: usize = 8, 1, 1;

    // Stores for comparison. In models few keys collide, and few records are many.

    /// Number of locks that the keys of a store share.
    KEY_LOCKS: usize = 256, 4, 4;
    /// Largest number of records of a leaf of the lock-free tree.
    TREAP_LEAF_RECORDS: usize = 64, 8, 8;
    /// Number of records that a walk of a range reads at a time.
    RANGE_PIECE: usize = 64, 3, 3;
    /// Smallest number of records that a scan of a locked hash map reads at a time.
    LEAST_SCAN_PIECE: usize = 256, 3, 3;
}
