//! Node types.

use super::base::Base;
use super::block::Block;
use super::header::BASE;
use super::inner::Inner;
use super::leaf::Leaf;
use super::link::{Node, NodeType};
use super::sizes::{LEAF, SMALL};
use crate::record::Release;

/// A reference to a node by its type.
pub(super) enum Kind<'n, R: Release> {
    Leaf(Leaf<'n, R>),
    /// An inner node or a route node.
    Inner(&'n Inner<R>),
    Base(&'n Base<R>),
}

// SAFETY: a `Block` begins with its heads, and these with a header of level 0 that is not marked as
// small.
unsafe impl<R: Release> NodeType<R> for Block<R, LEAF> {}
// SAFETY: a small `Block` begins with its heads, and these with a header of level 0 that is marked
// as small.
unsafe impl<R: Release> NodeType<R> for Block<R, SMALL> {}
// SAFETY: an `Inner` begins with its heads, and these with a header of neither level 0 nor `BASE`.
unsafe impl<R: Release> NodeType<R> for Inner<R> {}
// SAFETY: a `Base` begins with a header, whose level is `BASE`.
unsafe impl<R: Release> NodeType<R> for Base<R> {}

impl<'n, R: Release> Node<'n, R> {
    /// Returns the node by its type.
    #[inline(always)]
    pub(super) fn kind(self) -> Kind<'n, R> {
        let node = self.pointer();
        // SAFETY: the node lives as long as `'n` (CATREE-6), and its level implies its type
        // (`NodeType`).
        unsafe {
            match self.header().level {
                0 => Kind::Leaf(Leaf::of_node(self)),
                BASE => Kind::Base(&*node.cast::<Base<R>>()),
                _ => Kind::Inner(&*node.cast::<Inner<R>>()),
            }
        }
    }
}
