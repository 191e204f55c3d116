//! Figures about stores: how much is in them, and how they have adapted.

/// The structure of a store that adapts to contention. Approximate while it is changing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adaptation {
    /// Nodes that only lead to base nodes.
    pub route_nodes: usize,
    /// Parts of the store, each with a lock of its own.
    pub base_nodes: usize,
    /// The largest number of route nodes on the way to a base node.
    pub depth: usize,
    /// Base nodes split in two since the store was made.
    pub splits: u64,
    /// Pairs of base nodes joined since the store was made.
    pub joins: u64,
    /// Acquisitions of base nodes' locks that had to wait.
    pub contended: u64,
    /// Acquisitions of base nodes' locks that did not have to wait.
    pub uncontended: u64,
}

/// A node of a store that adapts to contention: see [`CaTree::shape`](crate::CaTree::shape).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeNode {
    /// The number of route nodes above it.
    pub depth: usize,
    /// The state of a base node; a route node has none.
    pub base: Option<BaseState>,
}

/// The state of a base node, a moment old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseState {
    /// The number by which it adapts: contention makes it larger until the node is split, its
    /// absence smaller until the node is joined with a neighbour.
    pub statistics: i32,
    /// Acquisitions of its lock that had to wait.
    pub contended: u64,
    /// Acquisitions of its lock that did not have to wait.
    pub uncontended: u64,
}

/// The structure of a store that hashes. Approximate while it is changing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    /// Buckets in use.
    pub buckets: usize,
    /// Lines of buckets that overflow, beyond the one that each bucket has.
    pub lines: usize,
    /// Locks that the buckets share.
    pub locks: usize,
    /// The number of times that the number of locks was doubled since the store was made.
    pub doublings: u64,
    /// The number of times that the number of locks was halved.
    pub halvings: u64,
    /// Acquisitions of these locks that had to wait.
    pub contended: u64,
    /// Acquisitions of these locks that did not have to wait.
    pub uncontended: u64,
}

/// The content of a store at one moment: see [`Records::totals`](crate::Records::totals).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects that readers see, by the [weights](crate::Release::weight) of the records.
    pub objects: i64,
    /// Bytes of these records, and of deleted ones that a fixed store keeps for walks.
    pub bytes: i64,
    /// Bytes of the structure that leads to the records; about, while the store is changing.
    pub structure: i64,
}

/// Bytes of memory that a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in live records.
    pub records: usize,
    /// Bytes in the structure that leads to the records. They become fewer also when no record is
    /// removed, since the structure adapts to its use.
    pub structure: usize,
}
