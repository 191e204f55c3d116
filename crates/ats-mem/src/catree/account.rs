//! The numbers that a writer keeps right: those of its base node, and [subtree counts](super::subtree_counts).

use super::base::Base;
use super::counting::Portable;
use super::kind::Kind;
use crate::record::Release;

/// Counts what a writer is about to do with a key: in the base node, of which it holds the lock, and in
/// the subtree counts on the way to the key.
#[inline]
pub(super) fn account<R: Release>(base: &Base<R>, key: &[u8], records: i64, bytes: i64) {
    base.account_bytes(bytes);
    if records != 0 {
        base.account_records(records);
        if base.counts_subtrees() {
            keep_subtree_counts(base, key, records);
        }
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
