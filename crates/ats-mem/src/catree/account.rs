//! How many keys there are below inner nodes, as far as a thread has asked: [subtree
//! counts](super::subtree_counts).

use super::base::Base;
use super::counting::Portable;
use super::kind::Kind;
use crate::record::Release;

/// Counts that a key comes to a base node (1), or goes (-1). The caller holds the lock.
#[inline]
pub(super) fn count_key<R: Release>(base: &Base<R>, key: &[u8], more: i64) {
    if base.counts_subtrees() {
        keep_subtree_counts(base, key, more);
    }
}

#[cold]
fn keep_subtree_counts<R: Release>(base: &Base<R>, key: &[u8], records: i64) {
    let mut node = base.root();
    while let Kind::Inner(inner) = node.kind() {
        let place = inner.child_for::<Portable>(key);
        inner.subtree_counts.add(place, records);
        node = inner.child(place);
    }
}
