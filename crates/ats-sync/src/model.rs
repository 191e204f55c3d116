//! Constants that differ where `loom` checks models or `shuttle` explores interleavings, of this
//! crate and of those above.
//!
//! A checker tries many orders of the same steps. So whatever takes many steps until something
//! happens must take few there, or it never happens: nodes are full after a handful of keys, and
//! threads soon stop pausing. Besides, atomics of `loom` are larger than words and have to be made
//! one by one, so tables of them are short under `loom`.

use std::time::Duration;

/// `NAME: type = value, value under loom, value under shuttle;`
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
    /// True if interleavings are explored. A run must be repeatable then, so nothing may depend on
    /// clocks or on numbers that are drawn anew for each run.
    IS_EXPLORED: bool = false, true, true;

    // Waiting. A pause is a step, and a thread that pauses again and again learns nothing new.

    /// Pauses of a thread that waits for a lock before it sleeps: about ten microseconds, which is
    /// the cost of sleeping and being woken.
    LOCK_SPINS: u32 = 400, 1, 1;
    /// Pauses of a thread that waits for another one before it gives its processor away.
    WAIT_SPINS: u32 = 1000, 1, 1;
    /// Attempts to add up the parts of a census before it closes its gate. A few more seldom fail
    /// all.
    GLANCES: u32 = 3, 1, 1;
    /// Pauses of a thread that waits for a group of readers before it sleeps. A thread that pauses
    /// under `loom` is not shown old values again. So there it makes none, and a load that is too
    /// weak is found.
    READER_GROUP_SPINS: u32 = 400, 0, 1;
    /// The number of times that a reader of groups looks at the gate before it puts the barrier up:
    /// as in the papers.
    READ_PATIENCE: u32 = 1_000, 1, 1;

    // Epochs.

    /// Retirements for which ripe objects are freed together, which takes a third of the
    /// instructions. After each one in models, whose threads retire a few.
    FREE_EVERY: u32 = 32, 1, 1;
    /// The time after the change of the kind of fences in which nothing is freed: some hundred
    /// thousand times as long as a store takes to become visible. A model of `loom` lets it pass
    /// when it says so, by joining the threads that read the old kind.
    QUARANTINE: Duration = Duration::from_secs(1), Duration::ZERO, Duration::from_secs(1);

    // The tree. In models a few keys fill leaves and inner nodes, and a few nodes are many.

    /// Most keys of a leaf.
    LEAF_KEYS: usize = 34, 8, 8;
    /// Most keys of a small leaf.
    SMALL_LEAF_KEYS: usize = 10, 2, 2;
    /// Most separators of an inner node.
    SEPARATORS: usize = 63, 7, 7;
    /// Keys that a thread remembers: a dozen kilobytes. In models different keys soon share a
    /// place.
    CACHED_KEYS: usize = 512, 2, 2;
    /// The level below which the nodes of a batch are not fetched ahead, since such a tree fits
    /// into the cache of a core: a few thousand keys. Models have no tree as high.
    LEAST_APPROACHED_LEVEL: u8 = 2, 1, 1;
    /// Nodes that are visited while a lock is held: about fifty microseconds, if none is in the
    /// cache. More than there are on the way to a leaf, and in models fewer than there are in a
    /// base node.
    NODES_HELD: usize = 400, 12, 12;
    /// The number of times that a thread that counts at one moment looks for one at which no batch
    /// is open: as long as a short batch takes.
    MOMENT_ATTEMPTS: usize = 64, 2, 2;
    /// Bits of a position that choose the slot in one node of a sequence. With few bits few values
    /// make several levels.
    SEQUENCE_BITS: u32 = 5, 2, 2;

    // The hash table. Under `loom` each slot and each bucket is an atomic to be made.

    /// Buckets that are always there, as a power of two: those of the first segment.
    FIRST_BUCKETS_BITS: u32 = 3, 1, 3;
    /// Segments whose addresses are in the directory itself: some hundred buckets.
    NEAR_SEGMENTS: usize = 6, 2, 6;
    /// Segments that there can be more: enough for every address space.
    FAR_SEGMENTS: usize = 39, 2, 39;
    /// Slots in a line of a bucket: with the way to the next line they fill a cache line.
    LINE_SLOTS: usize = 7, 2, 7;
    /// Buckets below which a stripe of locks is not split. In models there are few buckets.
    MIN_BUCKETS_PER_STRIPE: usize = 8, 1, 1;

    // Stores for comparison. In models a few keys meet, and a few records are many.

    /// Locks that the keys of a store share.
    KEY_LOCKS: usize = 256, 4, 4;
    /// Most records of a leaf of the lock-free tree.
    TREAP_LEAF_RECORDS: usize = 64, 8, 8;
    /// Records that a walk of a range takes with one look.
    RANGE_PIECE: usize = 64, 3, 3;
    /// Records that a scan of a locked hash map takes with one look, at least.
    LEAST_SCAN_PIECE: usize = 256, 3, 3;
}
