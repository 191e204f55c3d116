//! The kinds of maps in memory.

use super::limited::LimitedStore;
use super::store::{MapStore, OrderedStore};
use crate::terms::TermHost;
use crate::terms::value::Values;
use ats_mem::{CaTree, HashTable, Plain};

/// A kind of maps in memory: [`Unlimited`] or [`Limited`].
#[expect(private_bounds, reason = "there are no other kinds")]
pub trait MapKind: Stores + 'static {}

/// The kind of maps whose pairs stay until they are removed.
#[derive(Clone, Copy, Debug)]
pub enum Unlimited {}

/// The kind of maps whose pairs expire, or which have a bound: see
/// [`HashMap::builder`](crate::HashMap::builder).
#[derive(Clone, Copy, Debug)]
pub enum Limited {}

/// The stores of the maps of a kind.
pub(crate) trait Stores {
    /// The store of a map without order.
    type Hash: MapStore;
    /// The store of a map in the order of its keys.
    type Tree: OrderedStore;
}

impl Stores for Unlimited {
    type Hash = HashTable<Plain>;
    type Tree = CaTree<Plain>;
}

impl Stores for Limited {
    type Hash = LimitedStore<HashTable<Values<TermHost>>>;
    type Tree = LimitedStore<CaTree<Values<TermHost>>>;
}

impl MapKind for Unlimited {}
impl MapKind for Limited {}
