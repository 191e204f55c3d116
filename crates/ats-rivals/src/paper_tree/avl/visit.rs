//! Walks over the records of one tree.

use super::{Avl, Sought, Tree};
use crate::record_map::Kept;
use ats_mem::record::Release;
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

impl<R: Release> Avl<R> {
    /// Visits records from a bound on, ascending, until `visit` breaks. O(log n + records visited).
    pub(in crate::paper_tree) fn visit_up(
        &self,
        from: Bound<&[u8]>,
        visit: &mut impl FnMut(&Kept<R>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        up(&self.0, from.map(Sought::new), visit)
    }

    /// Visits records below a key, or all, descending, until `visit` breaks. O(log n + records
    /// visited).
    pub(in crate::paper_tree) fn visit_down(
        &self,
        below: Option<&[u8]>,
        visit: &mut impl FnMut(&Kept<R>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        down(&self.0, below.map(Sought::new), visit)
    }
}

fn up<R: Release>(
    tree: &Tree<R>,
    from: Bound<Sought<'_>>,
    visit: &mut impl FnMut(&Kept<R>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some(node) = tree else {
        return ControlFlow::Continue(());
    };
    let is_below = match from {
        Bound::Unbounded => false,
        Bound::Included(key) => node.compare(key) == Ordering::Less,
        Bound::Excluded(key) => node.compare(key) != Ordering::Greater,
    };
    if is_below {
        return up(&node.right, from, visit);
    }
    up(&node.left, from, visit)?;
    visit(&node.record)?;
    up(&node.right, Bound::Unbounded, visit)
}

fn down<R: Release>(
    tree: &Tree<R>,
    below: Option<Sought<'_>>,
    visit: &mut impl FnMut(&Kept<R>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some(node) = tree else {
        return ControlFlow::Continue(());
    };
    if below.is_some_and(|key| node.compare(key) != Ordering::Less) {
        return down(&node.left, below, visit);
    }
    down(&node.right, below, visit)?;
    visit(&node.record)?;
    down(&node.left, None, visit)
}
