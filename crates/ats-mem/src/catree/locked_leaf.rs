//! The way of a writer: to the leaf of a key, and to the lock of the base node around it.

use super::base::Base;
use super::counting::{Counting, Portable};
#[cfg(target_arch = "x86_64")]
use super::counting::{Vectors, has_vectors};
use super::inner::Inner;
use super::kind::Kind;
use super::leaf::Leaf;
use super::link::Link;
use super::tree::CaTree;
use crate::backend::Busy;
use crate::record::Release;
use ats_sync::{Guard, Held};

/// Where a writer works: a leaf, and the base node around it, held.
pub(super) struct LockedLeaf<'g, R: Release> {
    pub base: &'g Base<R>,
    pub held: Held<'g>,
    pub leaf: Leaf<'g, R>,
    /// The word that leads to the leaf. Not known where the finger led, to a leaf that can take the key
    /// in place.
    pub link: Option<&'g Link<R>>,
    /// The place of the key, or where it would be inserted.
    pub found: Result<usize, usize>,
}

impl<R: Release> CaTree<R> {
    /// Takes the lock of the base node of `key`, and finds its leaf and its place there.
    pub(super) fn locked_leaf_for<'g>(&'g self, key: &[u8], guard: &'g Guard) -> LockedLeaf<'g, R> {
        let locked = self.try_locked_leaf(key, |base| Some(base.lock(&self.gate)), guard);
        locked.expect("this way of locking waits")
    }

    /// As [`locked_leaf_for`](Self::locked_leaf_for), for a way of locking that may give up.
    #[inline]
    pub(super) fn try_locked_leaf<'g>(
        &'g self,
        key: &[u8],
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<LockedLeaf<'g, R>, Busy> {
        #[cfg(target_arch = "x86_64")]
        if has_vectors() {
            // SAFETY: the processor has just said that it has these instructions.
            return unsafe { self.locked_leaf_by_vectors(key, take, guard) };
        }
        self.locked_leaf_by::<Portable>(key, take, guard)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn locked_leaf_by_vectors<'g>(
        &'g self,
        key: &[u8],
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<LockedLeaf<'g, R>, Busy> {
        self.locked_leaf_by::<Vectors>(key, take, guard)
    }

    #[inline(always)]
    fn locked_leaf_by<'g, C: Counting>(
        &'g self,
        key: &[u8],
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<LockedLeaf<'g, R>, Busy> {
        loop {
            let base = self.base_for::<C>(key, guard);
            if base.expects_row() {
                let mut held = take(base).ok_or(Busy)?;
                if base.header.is_dead() {
                    continue;
                }
                if let Some(finger) = base.finger(&mut held)
                    && let Some(leaf) = finger.leaf_below(key, guard)
                    && leaf.can_append(key, guard)
                {
                    return Ok(LockedLeaf {
                        base,
                        held,
                        leaf: Leaf::of_full(leaf),
                        link: None,
                        found: Err(leaf.len()),
                    });
                }
            }
            // Down to the leaf first, so that its misses are not suffered under the lock.
            let (mut leaf, mut link, parent) = descend::<R, C>(base, key);
            let held = take(base).ok_or(Busy)?;
            if base.header.is_dead() {
                continue;
            }
            if leaf.header().is_dead() || parent.is_some_and(|inner| inner.header().is_dead()) {
                (leaf, link, _) = descend::<R, C>(base, key);
            }
            return Ok(LockedLeaf {
                base,
                held,
                leaf,
                link: Some(link),
                found: leaf.search::<C>(key),
            });
        }
    }
}

/// From a base node to the leaf of `key`: the leaf, the word that leads to it, and the node with this
/// word unless that is the base node.
#[inline(always)]
fn descend<'g, R: Release, C: Counting>(
    base: &'g Base<R>,
    key: &[u8],
) -> (Leaf<'g, R>, &'g Link<R>, Option<&'g Inner<R>>) {
    let (mut link, mut parent) = (base.link(), None);
    let mut node = base.root();
    loop {
        match node.kind() {
            Kind::Leaf(leaf) => return (leaf, link, parent),
            Kind::Base(_) => unreachable!("no base node is below another"),
            Kind::Inner(inner) => {
                let place = inner.child_for::<C>(key);
                (link, parent) = (inner.link(place), Some(inner));
                node = inner.descend(place);
            }
        }
    }
}
