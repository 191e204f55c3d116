//! The contention adapting tree as its authors published it, to measure the project's own against.
//!
//! ```text
//!   route        a binary tree of separators, which is never balanced
//!   |   |
//!  base base     a readers-writer lock, how often it was contended, a valid flag
//!   |    |
//!  AVL  AVL      one record a node
//! ```
//!
//! K. Sagonas and K. Winblad, *A contention adapting approach to concurrent ordered sets* (JPDC
//! 2018), with the constants of `erl_db_catree.c` of Erlang/OTP: `ordered_set` with
//! `write_concurrency` since version 22. A base node whose lock is contended is split in two; one
//! whose lock is not, or that is empty, is joined with its neighbour. [`catree`](ats_mem::catree)
//! lists what it does in another way.
//!
//! Good for: measuring what those other ways give; writers that contend all over the keys. Bad at:
//! reading, since each lookup writes to the lock of its base node, and follows pointers from one
//! binary node to the next; tables that are no longer written to, which stay as finely split as
//! they were; memory, of which each base node takes half a kilobyte for its lock.
//!
//! # Where this is not to the letter
//! - One read in 512 lets a random base node drift towards joining in Erlang/OTP. This is left out.
//! - Erlang/OTP keeps records in the nodes of its trees. Ours are blocks of their own, since
//!   readers look at them after they have unlocked. So that this costs no cache miss at each node
//!   on the way, a node has the first eight bytes of its key.
//! - The lock is a [`ReaderGroupLock`](crate::ReaderGroupLock) with a single group of readers.
//! - The [store](super::shared_store) does what concerns several keys. Each write holds its lock as
//!   a reader.
//!
//! # Invariants
//! SHARED_STORE-1 and so on are those of [`shared_store`](super::shared_store).
//! - PAPER_TREE-1. The records of a base node are changed by a holder of its lock to write, and
//!   read by a holder of its lock. A base node is *valid* from when it is made until it is
//!   replaced, by a split or a join, under its lock. After that it has no records, and a thread
//!   that gets its lock starts again from the root.
//! - PAPER_TREE-2. A word that leads to a base node is stored to by a holder of the lock of that
//!   base node, while it is valid. A word that leads to a route node is stored to by a holder of
//!   the lock of that route node, and of the one that the word is in, unless it is the word of the
//!   root; while both are valid.
//! - PAPER_TREE-3. A route node is *valid* until it is spliced out, under its lock. A join splices
//!   out the parent of its base node with the locks of that base node and of the neighbour beyond
//!   the parent held, and replaces both. So the parent of a valid base node is valid, and is the
//!   same all its life. Separators next to it are, too: so it has the same range of keys all its
//!   life.
//! - PAPER_TREE-4. The words of a route node do not change once it is not valid. One of them leads
//!   to a base node that is not valid, the other to what is now in its place. So a thread that
//!   stands on it finds the base node of its key, or one that is not valid.
//! - PAPER_TREE-5. Threads wait for the lock of a base node while they hold no lock of the map. A
//!   thread that holds one only tries that of a neighbour. Then it waits for the lock of the
//!   parent, and then for that of the parent's parent. A holder of the lock of a route node waits
//!   for nothing but the lock of one nearer to the root, and the order of route nodes from the root
//!   does not change. So threads cannot wait in a circle.
//! - PAPER_TREE-6. A node is retired once, after its replacement was published: then no word leads
//!   to it but those of nodes that were retired no later. References to nodes are had under a guard
//!   that was there when the thread read the root.

mod adapt;
mod avl;
mod base;
mod find;
mod link;
mod node;
mod route;
mod shape;
mod side;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod walk;

use super::record_map::Kept;
use super::shared_map::{Exchange, SharedMap};
use super::shared_store::SharedStore;
use ats_mem::Adaptation;
use ats_mem::forcing::Forcing;
use ats_mem::record::{Record, Release};
use ats_sync::Guard;
use ats_sync::count::atomic::AtomicU64;
use link::Link;
use node::Made;
use std::ops::Bound;
use std::ptr::NonNull;

/// The contention adapting tree of the papers.
pub type PaperTree<R> = SharedStore<R, Routes<R>>;

/// The root of route nodes and base nodes; see the documentation of [`paper_tree`](self).
pub struct Routes<R: Release> {
    root: Link<R>,
    forcing: Forcing,
    splits: AtomicU64,
    joins: AtomicU64,
}

impl<R: Release> Default for Routes<R> {
    fn default() -> Self {
        Routes {
            root: Link::to(Made::Base(Box::default())),
            forcing: Forcing::default(),
            splits: AtomicU64::new(0),
            joins: AtomicU64::new(0),
        }
    }
}

impl<R: Release> SharedMap<R> for Routes<R> {
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        loop {
            let place = self.find(key, guard);
            if let Some(contents) = place.base.read() {
                let record = contents.records.find(key)?;
                // SAFETY: it is in the map while the lock is held (PAPER_TREE-1), and the guard is
                // older than that.
                return Some(unsafe { record.get_under(guard) });
            }
        }
    }

    fn change<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Exchange<'g, R>,
    ) {
        loop {
            let place = self.find(key, guard);
            let Some(mut contents) = place.base.write() else {
                continue;
            };
            let (way, here) = contents.records.search(key);
            // SAFETY: the record is in the map while the lock is held (PAPER_TREE-1), and the guard
            // is older than that.
            let here = here.map(|record| unsafe { record.get_under(guard) });
            match (decide(here), here) {
                (Exchange::Keep, _) | (Exchange::Take, None) => {}
                (Exchange::Put(new), Some(_)) => contents.records.replace(way, Kept::new(new)),
                (Exchange::Put(new), None) => contents.records.insert(way, Kept::new(new)),
                (Exchange::Take, Some(_)) => contents.records.remove(way),
            }
            return self.adapt_after(&place, contents, guard);
        }
    }

    fn gather<'g>(
        &'g self,
        from: Bound<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        self.walk_up(from, most, guard, found);
    }

    fn gather_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        most: usize,
        guard: &'g Guard,
        found: &mut Vec<&'g Record<R>>,
    ) {
        self.walk_down(below, most, guard, found);
    }

    fn all(&mut self) -> Vec<NonNull<Record<R>>> {
        self.records()
    }

    fn bytes(&self, records: usize, guard: &Guard) -> usize {
        records * avl::NODE_BYTES + self.node_bytes(guard)
    }

    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        self.forcing.set(splits, joins);
    }
}

impl<R: Release> PaperTree<R> {
    /// The adaptation of the tree to contention. Approximate while it is changing. O(base nodes),
    /// and waits for the lock of each.
    pub fn adaptation(&self) -> Adaptation {
        self.map().adaptation(&ats_sync::pin())
    }
}
