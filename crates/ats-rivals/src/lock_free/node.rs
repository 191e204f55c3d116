//! Nodes of the tree, the slots from which they hang, and the joins that base nodes take part in.
//!
//! The invariants (LOCK_FREE-1 and so on) are those of [`lock_free`](super).

#[cfg(test)]
use super::live;
use super::treap::{Link, Tree};
use ats_mem::record::Release;
use ats_mem::slab::{SharedSlice, SlabBox};
use ats_sync::Guard;
use ats_sync::shim::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::ptr;
use std::sync::{Arc, OnceLock};

/// Change of the statistics by an update that has failed before: see [`Base::after`].
pub(super) const CONTENDED: i32 = 250;
/// Change of the statistics by an update that succeeds at once.
pub(super) const UNCONTENDED: i32 = -1;
/// A base node with statistics above this is split.
pub(super) const SPLIT_ABOVE: i32 = 1000;
/// A base node with statistics below this is joined with a neighbour.
pub(super) const JOIN_BELOW: i32 = -1000;

/// A node that no other thread can reach.
pub(super) type NodeBox<R> = SlabBox<Node<R>>;

pub(super) enum Node<R: Release> {
    Route(Route<R>),
    Base(Base<R>),
}

/// An inner node of the tree. Keys below `key` are on the left, the others on the right.
pub(super) struct Route<R: Release> {
    pub key: SharedSlice<u8>,
    left: Slot<R>,
    right: Slot<R>,
    /// The join that is about to take out this node or a child of it (LOCK_FREE-4), or null. The
    /// pointer is only compared, and never followed.
    claim: AtomicPtr<u8>,
}

/// A leaf of the tree. It is immutable: a change replaces it.
pub(super) struct Base<R: Release> {
    tree: Link<R>,
    pub statistics: i32,
    /// The route node from which it hangs, or null at the root (LOCK_FREE-2).
    pub parent: *const Node<R>,
    /// The part of this node in a join, if it has one.
    pub part: Option<Part<R>>,
}

pub(super) const PREPARING: u8 = 0;
pub(super) const COMMITTED: u8 = 1;
pub(super) const DONE: u8 = 2;
pub(super) const ABORTED: u8 = 3;

/// The state of a join. Its base nodes share ownership of it, so it lives as long as any of them.
pub(super) struct Join<R: Release> {
    state: AtomicU8,
    /// The plan, set before the join commits. Threads read it only if they find the join committed
    /// and not yet done (LOCK_FREE-5).
    pub plan: OnceLock<Plan<R>>,
}

/// The nodes that a join takes out, and those that it inserts: see the drawing in
/// [`join`](super::join).
pub(super) struct Plan<R: Release> {
    pub parent: *const Node<R>,
    /// The route node above `parent`, or null if `parent` is at the root.
    pub grand: *const Node<R>,
    pub main: *const Node<R>,
    pub neighbour: *const Node<R>,
    pub joined: *const Node<R>,
    pub rest: *const Node<R>,
    /// Nodes of the containers of `main` and `neighbour` that are not in that of `joined`.
    pub replaced: Vec<Link<R>>,
}

// SAFETY: the nodes behind the pointers are shared between threads by design, and are accessed only
// as LOCK_FREE-3 and LOCK_FREE-5 allow.
unsafe impl<R: Release> Send for Join<R> {}
// SAFETY: the nodes behind the pointers are shared between threads by design, and are accessed only
// as LOCK_FREE-3 and LOCK_FREE-5 allow.
unsafe impl<R: Release> Sync for Join<R> {}

/// The part of a base node in a join, as `main` or as another of its base nodes.
pub(super) struct Part<R: Release> {
    pub join: Arc<Join<R>>,
    pub is_main: bool,
}

impl<R: Release> Part<R> {
    /// Returns `true` if the base node is replaceable again. The `main` of a join that is done
    /// never is: it was taken out together with its parent.
    pub(super) fn is_over(&self) -> bool {
        match self.join.state() {
            ABORTED => true,
            DONE => !self.is_main,
            _ => false,
        }
    }
}

impl<R: Release> Join<R> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Join {
            state: AtomicU8::new(PREPARING),
            plan: OnceLock::new(),
        })
    }

    pub(super) fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    /// Changes the state from `from` to `to`. Returns `false` if it is in another state than
    /// `from`.
    pub(super) fn change_state(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Returns the address of the join, which identifies it in claims.
    pub(super) fn name(&self) -> *const u8 {
        ptr::from_ref(self).cast()
    }
}

/// A link to a node.
pub(super) struct Slot<R: Release>(AtomicPtr<Node<R>>);

/// The left or the right side of a route node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

impl Side {
    pub(super) fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

/// Makes a node, and counts it in tests.
fn new_box<R: Release>(node: Node<R>) -> NodeBox<R> {
    #[cfg(test)]
    live::count::<R>(1);
    SlabBox::new(node)
}

#[cfg(test)]
impl<R: Release> Drop for Node<R> {
    fn drop(&mut self) {
        live::count::<R>(-1);
    }
}

impl<R: Release> Node<R> {
    pub(super) fn base(
        tree: Link<R>,
        statistics: i32,
        parent: *const Node<R>,
        part: Option<Part<R>>,
    ) -> NodeBox<R> {
        new_box(Node::Base(Base {
            tree,
            statistics,
            parent,
            part,
        }))
    }

    /// Makes a route node with two new base nodes, which have these containers.
    pub(super) fn route(left: Link<R>, key: SharedSlice<u8>, right: Link<R>) -> NodeBox<R> {
        let route = new_box(Node::Route(Route {
            key,
            left: Slot::empty(),
            right: Slot::empty(),
            claim: AtomicPtr::new(ptr::null_mut()),
        }));
        let at = ptr::from_ref::<Node<R>>(&route);
        let Node::Route(new) = &*route else {
            unreachable!("it was made above")
        };
        new.left.fill(Node::base(left, 0, at, None));
        new.right.fill(Node::base(right, 0, at, None));
        route
    }

    pub(super) fn as_route(&self) -> Option<&Route<R>> {
        match self {
            Node::Route(route) => Some(route),
            Node::Base(_) => None,
        }
    }

    pub(super) fn as_base(&self) -> Option<&Base<R>> {
        match self {
            Node::Base(base) => Some(base),
            Node::Route(_) => None,
        }
    }

    /// Drops a node that was not put into the tree, together with the base nodes that were made
    /// with it. Containers stay.
    pub(super) fn drop_new(node: NodeBox<R>) {
        let Node::Route(route) = &*node else {
            return;
        };
        for base in route.hanging() {
            // SAFETY: it comes from `into_raw` in `route`, and no other code has it.
            drop(unsafe { NodeBox::from_raw(base.cast_mut()) });
        }
    }

    /// Retires a node, but not the nodes to which it leads.
    ///
    /// # Safety
    /// It has been taken out of the tree, and no other thread retires it (LOCK_FREE-3).
    pub(super) unsafe fn retire(node: *const Node<R>, guard: &Guard) {
        unsafe fn free<R: Release>(raw: *mut u8) {
            // SAFETY: `retire` hands over a node that no thread can reach after the grace period.
            drop(unsafe { NodeBox::<R>::from_raw(raw.cast()) });
        }
        let raw = node.cast_mut().cast();
        // SAFETY: the caller says that the node has been taken out of the tree and that no other
        // thread retires it (LOCK_FREE-3).
        unsafe { guard.retire(raw, size_of::<Node<R>>(), free::<R>) };
    }
}

impl<R: Release> Route<R> {
    pub(super) fn slot(&self, side: Side) -> &Slot<R> {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// Returns the left slot, or the right one for `false`.
    pub(super) fn towards(&self, left: bool) -> &Slot<R> {
        self.slot(if left { Side::Left } else { Side::Right })
    }

    pub(super) fn children<'g>(&'g self, guard: &'g Guard) -> [&'g Node<R>; 2] {
        [self.left.load(guard), self.right.load(guard)]
    }

    /// Returns the addresses of the two children.
    pub(super) fn hanging(&self) -> [*const Node<R>; 2] {
        [self.left.peek(), self.right.peek()]
    }

    /// Returns the side on which a node hangs, or `None` if it is not a child.
    pub(super) fn side_of(&self, node: *const Node<R>) -> Option<Side> {
        let is_on = |side: &Side| ptr::eq(self.slot(*side).peek(), node);
        [Side::Left, Side::Right].into_iter().find(is_on)
    }

    /// Claims the node for a join. Returns `false` if another join has claimed it (LOCK_FREE-4).
    pub(super) fn claim(&self, join: *const u8) -> bool {
        let (free, join) = (ptr::null_mut(), join.cast_mut());
        self.claim
            .compare_exchange(free, join, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Releases the claim of this join, unless it was released already.
    pub(super) fn disclaim(&self, join: *const u8) {
        let (free, join) = (ptr::null_mut(), join.cast_mut());
        let _ = self
            .claim
            .compare_exchange(join, free, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl<R: Release> Base<R> {
    /// Returns the container, which lives as long as the reference to the base node.
    pub(super) fn tree(&self) -> Tree<'_, R> {
        // SAFETY: the base node was found under a guard that lives as long as the reference, hence
        // so was its container (TREAP-2).
        unsafe { self.tree.tree() }
    }

    pub(super) fn link(&self) -> Link<R> {
        self.tree
    }

    /// Returns `true` if an update, a split or a join may replace this base node by another
    /// (LOCK_FREE-1).
    pub(super) fn is_replaceable(&self) -> bool {
        self.part.as_ref().is_none_or(Part::is_over)
    }

    /// Returns the statistics after an update of this cost. They stop changing once they are beyond
    /// a threshold.
    pub(super) fn after(&self, cost: i32) -> i32 {
        let goes_on = if cost > 0 {
            self.statistics <= SPLIT_ABOVE
        } else {
            self.statistics >= JOIN_BELOW
        };
        self.statistics + if goes_on { cost } else { 0 }
    }
}

impl<R: Release> Slot<R> {
    fn empty() -> Self {
        Slot(AtomicPtr::new(ptr::null_mut()))
    }

    pub(super) fn new(node: NodeBox<R>) -> Self {
        Slot(AtomicPtr::new(NodeBox::into_raw(node)))
    }

    /// Sets the node of an empty slot. The slot is not published yet, so no other thread reads it.
    fn fill(&self, node: NodeBox<R>) {
        self.0.store(NodeBox::into_raw(node), Ordering::Relaxed);
    }

    pub(super) fn load<'g>(&'g self, _guard: &'g Guard) -> &'g Node<R> {
        // SAFETY: the word is never null once the node is published, and a node that is found in a
        // slot under a guard lives as long as the guard (LOCK_FREE-3).
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Returns the address of the node that hangs here.
    pub(super) fn peek(&self) -> *const Node<R> {
        self.0.load(Ordering::Acquire)
    }

    /// Replaces `old` by `new`, if `old` still hangs here. Returns `true` if it did.
    pub(super) fn exchange(&self, old: *const Node<R>, new: *const Node<R>) -> bool {
        let (old, new) = (old.cast_mut(), new.cast_mut());
        self.0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Replaces `old` by a new node, or gives that back if `old` no longer hangs here.
    pub(super) fn replace<'g>(
        &self,
        old: &Node<R>,
        new: NodeBox<R>,
        _guard: &'g Guard,
    ) -> Result<&'g Node<R>, NodeBox<R>> {
        let raw = NodeBox::into_raw(new);
        if self.exchange(old, raw) {
            // SAFETY: the node has come into the tree under this guard, so it is retired after
            // that, if at all (LOCK_FREE-3).
            Ok(unsafe { &*raw })
        } else {
            // SAFETY: it comes from `into_raw`, and no other code has it.
            Err(unsafe { NodeBox::from_raw(raw) })
        }
    }
}
