//! Locked leaves: a writer's search for the leaf of a key, and the lock of its base node.

use super::base::Base;
use super::inner::Inner;
use super::kind::Kind;
use super::leaf::Leaf;
use super::link::Link;
use super::root::Root;
#[cfg(target_arch = "x86_64")]
use super::simd_search::{Avx2, has_avx2};
use super::simd_search::{Baseline, Search};
use crate::change::Busy;
use crate::record::{Old, Record, Release};
use ats_sync::{Guard, Held};

/// A leaf on which a writer works, and its locked base node.
pub(super) struct LockedLeaf<'g, R: Release> {
    pub base: &'g Base<R>,
    pub held: Held<'g>,
    pub leaf: Leaf<'g, R>,
    /// The link to the leaf. Unknown if the finger led there; the leaf can then take the key in
    /// place.
    pub link: Option<&'g Link<R>>,
    /// The slot of the key, if the leaf has it.
    pub found: Option<usize>,
}

/// The writes that take the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Any,
    /// Writes to present keys. An absent key is reported as of a moment when the lock was not held.
    Present,
}

impl<'g, R: Release> LockedLeaf<'g, R> {
    /// Returns the record in the slot of the key, without reading it if the word suffices.
    #[inline(always)]
    pub(super) fn old(&self, guard: &'g Guard) -> Option<Old<'g, R>> {
        match self.leaf.word(self.found?).simple() {
            Some(simple) => Some(Old::Unseen(simple)),
            None => self.record(guard).map(Old::Seen),
        }
    }

    /// Returns the record in the slot of the key, if there is one; it may be a removal.
    #[inline(always)]
    pub(super) fn any_record(&self, guard: &'g Guard) -> Option<&'g Record<R>> {
        self.leaf.any_record(self.found?, guard)
    }

    /// Returns the record of the key, if there is one (it may be pending).
    #[inline(always)]
    pub(super) fn record(&self, guard: &'g Guard) -> Option<&'g Record<R>> {
        self.leaf.record(self.found?, guard)
    }
}

impl<R: Release> Root<R> {
    /// Takes the lock of the base node of `key` by `take`, which may give up, and finds its leaf
    /// and slot. Returns `None` for an absent key under `Present`.
    #[inline]
    pub(super) fn lock_leaf<'g>(
        &'g self,
        key: &[u8],
        wanted: Wanted,
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<Option<LockedLeaf<'g, R>>, Busy> {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the check above has found that the processor has these instructions.
            return unsafe { self.lock_leaf_avx2(key, wanted, take, guard) };
        }
        self.lock_leaf_by::<Baseline>(key, wanted, take, guard)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn lock_leaf_avx2<'g>(
        &'g self,
        key: &[u8],
        wanted: Wanted,
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<Option<LockedLeaf<'g, R>>, Busy> {
        self.lock_leaf_by::<Avx2>(key, wanted, take, guard)
    }

    #[inline(always)]
    fn lock_leaf_by<'g, C: Search>(
        &'g self,
        key: &[u8],
        wanted: Wanted,
        take: impl Fn(&'g Base<R>) -> Option<Held<'g>>,
        guard: &'g Guard,
    ) -> Result<Option<LockedLeaf<'g, R>>, Busy> {
        loop {
            let base = self.base_for::<C>(key, guard);
            if wanted == Wanted::Any && base.expects_row() {
                let mut held = take(base).ok_or(Busy)?;
                if base.header.is_dead() {
                    continue;
                }
                if let Some(finger) = base.finger(&mut held)
                    && let Some(leaf) = finger.leaf_below(key, guard)
                    && leaf.can_append(key, guard)
                {
                    return Ok(Some(LockedLeaf {
                        base,
                        held,
                        leaf: Leaf::of_full(leaf),
                        link: None,
                        found: None,
                    }));
                }
                base.expect_row(false);
            }
            base.prefetch_for_writer();
            // The slot is searched before locking, so that cache misses on the path do not happen
            // under the lock.
            let (mut leaf, mut link, parent) = descend::<R, C>(base, key);
            let len = leaf.len();
            let mut found = leaf.find::<C>(key);
            if wanted == Wanted::Present && !found.is_some_and(|at| leaf.is_live(at)) {
                return Ok(None);
            }
            let held = take(base).ok_or(Busy)?;
            if base.header.is_dead() {
                continue;
            }
            if leaf.header().is_dead() || parent.is_some_and(|inner| inner.header().is_dead()) {
                (leaf, link, _) = descend::<R, C>(base, key);
                found = leaf.find::<C>(key);
            } else if found.is_none() && leaf.len() != len {
                // A key in a leaf keeps its slot, but keys may have been added.
                found = leaf.find::<C>(key);
            }
            return Ok(Some(LockedLeaf {
                base,
                held,
                leaf,
                link: Some(link),
                found,
            }));
        }
    }
}

/// Descends from a base node to the leaf of `key`. Returns the leaf, the link to it, and the node
/// with this link unless that is the base node.
#[inline(always)]
fn descend<'g, R: Release, C: Search>(
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
                let child_index = inner.child_for::<C>(key);
                (link, parent) = (inner.link(child_index), Some(inner));
                node = inner.descend(child_index);
            }
        }
    }
}
