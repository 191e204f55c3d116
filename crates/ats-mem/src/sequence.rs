//! A persistent sequence of values with stable positions.
//!
//! A sequence holds the objects of a bag's key that has very many: values that are appended,
//! removed anywhere, and read from any position on, while readers use complete, immutable versions.
//!
//! A value keeps the position at which it was appended; positions ascend and are never reused. A
//! version is a radix tree over positions, 32 wide, whose nodes have slots only for existing
//! children:
//!
//! ```text
//! height 2        bitmap 101            positions of 5 bits for each node:
//!                 |    \                height 2 looks at bits 9..5, height 1 at bits 4..0
//! height 1   1011       10000
//!            | | \          \
//! values     0 1  3          68
//! ```
//!
//! A new version is an [`Edit`] of an old one: it copies the nodes on the paths to the changes and
//! shares all others. Blocks count their references.
//!
//! # Two ways to a new version
//! To share, the copy of a node takes references to up to 31 children that the old node keeps as
//! well: that is 31 writes to blocks that are otherwise not touched. This is the price if the old
//! version may be needed again. If not, the new version *takes over*: it gets the old references,
//! and the old nodes are freed without their children once the last reader has left.
//!
//! # Invariants
//! - SEQUENCE-1. A block lives as long as it has references, and after that until all readers have
//!   left that could find it when the last reference was given up. A version has one
//!   reference to its root. A node has one reference to each of its children.
//! - SEQUENCE-2. Blocks do not change once their version is finished, except their counts. A
//!   version only changes when it is taken over.
//! - SEQUENCE-3. Nodes have at least one child. The root of height `h` covers all positions below
//!   32^h.
//! - SEQUENCE-4. References are made from references. A holder of a reference makes another one
//!   with `Link::share`. A reader that finds a version under a guard makes a reference to its root
//!   with `Link::share_if_any`, if the count is not 0. Consider a node with a single reference,
//!   held by a node that itself has a single reference, and so on up to a root whose count a thread
//!   has taken from 1 to 0. Such a node belongs to that thread, because no other thread can get a
//!   reference to it. Taking over relies on this.
//! - SEQUENCE-5. The resources that the words of a value own are released when its last reference
//!   is given up.
//! - SEQUENCE-6. A version that was taken over has no references. Its blocks can be read until the
//!   leftovers are retired and all readers pinned before have left.
//! - SEQUENCE-7. A marked link of a draft leads to a block that only the draft has; the others lead
//!   to blocks of the version it was made from, which live as long as the edit. A block
//!   at height 0 is a value, one above is a node.
//!
//! A reader under a guard is safe while its version is taken over: each block it can reach is
//! either still a block of the new version, or among the leftovers, which are retired after the new
//! version has replaced the old one. If the new version is itself taken over, or dropped, the same
//! holds for its leftovers, which are retired later than the guard was taken. A reader with a
//! reference to the root prevents its version from being taken over at all.
//!
//! # Sources
//! P. Bagwell, *Ideal hash trees*, 2001, for nodes with bitmaps; C. Okasaki, *Purely functional
//! data structures*, 1998, for persistence by copied paths. Changing a structure with a single
//! reference in place is an old idea of functional languages; see for instance A.
//! Reinking and others, *Perceus: garbage free reference counting with reuse*, PLDI 2021.

mod block;
mod edit;
mod finish;
mod free;
mod iter;
mod leftovers;
#[cfg(all(test, loom))]
mod models;
mod node;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod value;
mod version;

pub use edit::Edit;
pub use free::Remains;
pub use iter::Iter;
pub use leftovers::Leftovers;
pub use version::Sequence;
